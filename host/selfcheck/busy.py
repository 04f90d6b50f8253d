"""Runs on a machine with too little time: busy loops beside the quick variants of plans, each figure of power from the
JSON against the drive's own ledger, and what is claimed of two drives against a quiet run of the same."""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from selfcheck import Figure, at_least, at_most, exactly, in_turn, with_me
from ssdrig.base.errors import LoadError
from ssdrig.report import verdict
from ssdrig.runs import journal
from ssdrig.virtual.device import truth

LOOPS = 16
VIRTUAL = ["--virtual", "sata-tlc", "--capacity", "256MiB"]
PLANS = {  # as few rounds as the rule needs
    "sync-write": [],
    "slc-cache": [],
    "mix-sweep": [],
    "bs-sweep": [],
    "pts-lat": ["--set", "most=5"],
    "idle-wake": [],
    "qd-sweep": [],
    "used-state": [],
}
PAIR = ([], ["--op", "50"])  # of one drive, as the demo's
PAIR_S = 30
AT_ONCE = 3  # pairs beside the loops: each makes the host busier for the others
CLAIMED = ("iops_mean", "energy_uJ_per_io", "power_mean_W", "wa")
LEAST_IO_S, IO_SHARE = 2.0, 0.05  # the drive counts its I/O every 50 ms


class Seen(NamedTuple):
    """Of one window: how far its mean power is off from the ledger, and what it states, in % (None: it is null); its
    IOPS over the drive's own (None: there were reads, or none)."""

    where: str
    off_percent: float | None = None
    stated_percent: float | None = None
    why: str | None = None
    iops_ratio: float | None = None

    @property
    def inside(self) -> bool:
        return self.off_percent is None or self.stated_percent is None or self.off_percent <= self.stated_percent


@contextlib.contextmanager
def loops(count: int) -> Iterator[None]:
    """So many busy loops meanwhile; they end with this process."""
    made = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=with_me()) for _ in range(count)]
    try:
        yield
    finally:
        for process in made:
            process.kill()
        for process in made:
            process.wait()


def _ssdrig(*words: str) -> str:
    argv = [sys.executable, "-P", "-m", "ssdrig", *words, "--json"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise LoadError(f"`ssdrig {' '.join(words)}` to end well", f"exit code {done.returncode}", "see its words")
    return done.stdout


def _run(runs: Path, *words: str) -> Path:
    return Path(json.loads(_ssdrig("run", *words, *VIRTUAL, "--runs", str(runs), "--quiet").splitlines()[-1])["run"])


def windows_of(folder: Path, document: Mapping) -> Iterator[Seen]:
    """Each window of a plan's JSON that has begun, against the ledger over the same times. A SIMULATED drive says by
    how much its power comes later than what it does."""
    header = journal.run_header(folder)
    k = int(header["drive"].get("time_dilation") or 1)
    lag_ns = round(float(header["drive"].get("power_lag_ms") or 0.0) * 1e6 * k)
    for row in document["rows"]:
        for name, window in row["windows"].items():
            if window is None or row["t0_s"] is None or row["state"] != "done" or window["t1_s"] <= window["t0_s"]:
                continue
            edges = [round((row["t0_s"] + window[key]) * k * 1e9) for key in ("t0_s", "t1_s")]
            begin_ns, end_ns = (header["started"]["t_ns"] + edge - lag_ns for edge in edges)
            where = f"{row['path']} {row['point']} {row['round'] or ''} {name}"
            true_J = truth.energy_between(str(folder / "truth"), begin_ns, end_ns)
            seen = judged(where, window, row["notes"], true_J, k)
            only_writes = row["point"].get("read") == 0 or "sync" in row["point"]
            if only_writes and window["ios"] and window["t1_s"] - window["t0_s"] >= LEAST_IO_S:
                counts = truth.counts_between(str(folder / "truth"), begin_ns + lag_ns, end_ns + lag_ns)
                seen = seen._replace(iops_ratio=window["ios"] / max(1.0, counts["host_write_commands"]))
            yield seen


def judged(where: str, window: Mapping, notes: Sequence[str], true_J: float | None, k: int) -> Seen:
    """Of one window; `true_J`: of the host's time."""
    if window["power_mean_W"] is None or true_J is None:
        return Seen(where, why=next((note for note in notes if "power_mean_W" in note), None))
    true_W = true_J / k / (window["t1_s"] - window["t0_s"])
    off = 100 * abs(window["power_mean_W"] / true_W - 1)
    return Seen(where, off, window.get("power_uncertainty_percent"))


def claims(pair: Sequence[Mapping]) -> dict[str, int]:
    """{key: 1 or -1} of the differences that a verdict claims of two runs: whether the first has more. Figures of a
    window each; nothing is claimed of what rests on a bad item of its trust strip."""
    a, b = (verdict.Run(str(n), verdict._trusted(dict(figures))) for n, figures in enumerate(pair))
    known = [key for key in CLAIMED if a.figures[key] is not None and b.figures[key] is not None]
    return {key: (1 if a.figures[key] > b.figures[key] else -1) for key in known if verdict._differ(key, a, b)}


def contradictions(busy: Sequence[Mapping], quiet: Sequence[Mapping]) -> list[str]:
    """Keys of which the busy pair claims a difference that the quiet pair does not have, of the same two methods in the
    same order. What the quiet pair has does not depend on its trust: the machine may not have been all quiet."""
    is_ = claims([{**figures, "trust": None} for figures in quiet])
    return [key for key, sign in claims(busy).items() if is_.get(key) != sign and quiet[0][key] is not None]


def whole_load(document: Mapping) -> dict:
    """Figures of the window `all` of the load, of what `report --json` prints for a consistency run."""
    (load,) = (row for row in document["rows"] if row["path"] == "load")
    return load["windows"]["all"]


def _pair(runs: Path) -> list[dict]:
    """Figures of the window `all` of two runs of one drive that differ in their over-provisioning."""
    figures = []
    for words in PAIR:
        folder = _run(runs, "consistency", "--duration", str(PAIR_S), *words)
        figures.append(whole_load(json.loads(_ssdrig("report", str(folder)).splitlines()[0])))
    return figures


def busy(plans: int = len(PLANS)) -> list[Figure]:
    runs = Path(tempfile.mkdtemp(prefix="ssdrig-busy-", dir="/var/tmp"))
    seen: list[Seen] = []
    try:
        with loops(LOOPS):
            for name in in_turn([*PLANS][:plans], "busy"):
                folder = _run(runs, name, "--variant", "quick", *PLANS[name])
                windows = list(windows_of(folder, json.loads(_ssdrig("report", str(folder)).splitlines()[0])))
                known = [one for one in windows if one.off_percent is not None]
                outside = [one for one in known if not one.inside]
                print(f"{name}: {len(known)} of {len(windows)} known, {len(outside)} outside", file=sys.stderr)
                for one in [*outside, *(one for one in windows if one.off_percent is None)]:
                    print(f"  {one}", file=sys.stderr)
                seen += windows
    finally:
        shutil.rmtree(runs, ignore_errors=True)
    known = [one for one in seen if one.off_percent is not None]
    ratios = [100 * abs(one.iops_ratio - 1) for one in seen if one.iops_ratio is not None]
    return [
        exactly("windows whose power is outside of what it states", sum(not one.inside for one in known), "windows", 0),
        exactly("of those with a power, without its uncertainty", sum(o.stated_percent is None for o in known), "", 0),
        exactly("null without a reason", sum(o.off_percent is None and not o.why for o in seen), "windows", 0),
        at_most("IOPS of writes, off from the drive's own", max(ratios, default=0.0), "%", 100 * IO_SHARE),
        at_least("windows with a power", 100 * len(known) / max(1, len(seen)), "%", 60),
        Figure("windows", len(seen), "", "none", True),
    ]


def busy_claims(pairs: int = 20) -> list[Figure]:
    runs = Path(tempfile.mkdtemp(prefix="ssdrig-busy-", dir="/var/tmp"))
    made, wrong, failed = 0, 0, 0
    try:
        quiet = _pair(runs / "quiet")
        known = claims([{**figures, "trust": None} for figures in quiet])
        with loops(LOOPS), ThreadPoolExecutor(AT_ONCE) as several:
            loaded = [several.submit(_pair, runs / str(n)) for n in range(pairs)]
            for n, pair in enumerate(in_turn(loaded, "busy-claims")):
                try:
                    figures = pair.result()
                except LoadError as error:
                    failed += 1
                    print(f"pair {n + 1}: {error}", file=sys.stderr)
                    continue
                claimed, against = claims(figures), contradictions(figures, quiet)
                made, wrong = made + len(claimed), wrong + len(against)
                words = f"{len(claimed)} claims, contradicted: {', '.join(against) or 'none'}"
                print(f"pair {n + 1}: {words}", file=sys.stderr, flush=True)
                shutil.rmtree(runs / str(n), ignore_errors=True)
    finally:
        shutil.rmtree(runs, ignore_errors=True)
    could = (pairs - failed) * len(known)
    return [
        exactly("claims that the quiet run contradicts", wrong, "claims", 0),
        Figure("claims made, of those that a quiet machine allows", 100 * made / max(1, could), "%", "none", True),
        Figure("pairs with figures", pairs - failed, "", "none", True),
        Figure("pairs of which a run failed, with its reason", failed, "", "none", True),
    ]


BENCHES = {
    "busy": (f"quick plans beside {LOOPS} busy loops: power within its stated error of the ledger, or null", busy),
    "busy-claims": (
        f"two drives compared beside {LOOPS} busy loops: no claim that a quiet run contradicts",
        busy_claims,
    ),
}
