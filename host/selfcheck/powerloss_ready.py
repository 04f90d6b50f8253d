"""The limit on the time until a drive is ready again, alone and beside busy loops: pairs of the same campaign on the
whole virtual bench, by a drive that keeps the limit and by one that does not."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from selfcheck import Figure, exactly, in_turn, powerloss_runs, with_me
from selfcheck.busy import LOOPS, loops

BENCH = "powerloss-ready"
PAIRS, CUTS = 20, 2
LIMIT_S, LATE = 2.0, {"slow_recovery": {"after": 0, "factor": 40.0}}  # the drive's own: some 0.15 s
SET = ("aims={ random = 1 }", "write=0.3 s", "off_time=0.6 s", "window=16 MiB", f"ready={LIMIT_S:g} s")
CLASSES = ("READY_TOO_LATE", "READY_UNSURE", "SLOW_READY", "MISSING", "DEAD")
NOT_JUDGED = ("not judged",)
END_S = 600.0
AT_ONCE = 2  # campaigns beside the loops


class Verdict(NamedTuple):
    """A campaign's exit code, and of each cut its findings that are about the drive's return."""

    code: int | None
    cuts: tuple[tuple[str, ...], ...]


class Campaign(NamedTuple):
    """What a campaign came to; `ready_s`: (least, most) of each cut, s."""

    verdict: Verdict
    ready_s: tuple[tuple[float, float], ...]


def campaign(seed: int) -> Campaign:
    """One campaign; with an odd seed the drive comes back late."""
    faults = ["--drive-faults", json.dumps(LATE)] if seed & 1 else []
    with tempfile.TemporaryDirectory(prefix="ssdrig-ready-", dir="/var/tmp") as name:
        words = [sys.executable, "-P", "-m", "ssdrig", "run", "powerloss", "--virtual", "sata-tlc", *faults]
        words += ["--capacity", "128MiB", "--quiet", "--cuts", str(CUTS), "--seed", str(seed), "--runs", name]
        words += [word for one in SET for word in ("--set", one)]
        with open(Path(name, "output"), "wb") as output:
            process = subprocess.Popen(
                words, stdout=output, stderr=output, start_new_session=True, preexec_fn=with_me()
            )
        code, run = powerloss_runs.within(process, END_S), powerloss_runs.folder(Path(name))
        records = [one for one in powerloss_runs.records(run) if one["control"] is None] if run else []
        if code not in (0, 11):
            print(f"seed {seed}: exit code {code}: {powerloss_runs.last_output(Path(name))}", file=sys.stderr)
    ready_s = [(one["ready_s"] - one["stalled_s"], one["ready_s"]) for one in records if one["ready_s"] is not None]
    return Campaign(Verdict(code, tuple(of_return(one) for one in records)), tuple(ready_s))


def of_return(record: Mapping) -> tuple[str, ...]:
    """The findings of a session about the drive's return; NOT_JUDGED without a verdict."""
    return tuple(name for name in CLASSES if name in record["findings"]) if record["judged"] else NOT_JUDGED


def shown(pairs: int = PAIRS) -> list[Figure]:
    alone, beside = [campaign(seed) for seed in in_turn(range(pairs), BENCH)], []
    with loops(LOOPS), ThreadPoolExecutor(AT_ONCE) as several:
        for seed, one in enumerate(several.map(campaign, range(pairs))):
            beside.append(one)
            print(f"pair {seed + 1}: alone {alone[seed]}, beside {one}", file=sys.stderr, flush=True)
    same = sum(one.verdict == other.verdict for one, other in zip(alone, beside, strict=True))
    cuts = [
        (a, b)
        for one, other in zip(alone, beside, strict=True)
        for a, b in zip(one.verdict.cuts, other.verdict.cuts)
        if NOT_JUDGED not in (a, b)
    ]
    differ = sum(a != b for a, b in cuts)
    right = [11 if seed & 1 else 0 for seed in range(pairs)]
    widest_s = max((most - least for one in beside for least, most in one.ready_s), default=0.0)
    return [
        exactly(f"of {pairs} campaigns alone, right by the limit", _right(alone, right), "campaigns", pairs),
        exactly(f"of {pairs} pairs, the same verdict beside {LOOPS} busy loops", same, "pairs", pairs),
        exactly(f"of {len(cuts)} cuts judged in both, another finding on the return", differ, "cuts", 0),
        Figure("widest interval of a time to ready beside them", widest_s, "s", "to compare", True),
    ]


def _right(campaigns: list[Campaign], codes: list[int]) -> int:
    return sum(one.verdict.code == code for one, code in zip(campaigns, codes, strict=True))


BENCHES = {BENCH: (f"{PAIRS} campaigns with a limit on the time to ready, alone and beside {LOOPS} busy loops", shown)}
