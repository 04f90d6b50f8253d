"""The plan `slc-recovery` through fio, NBD, firmware and wire: what it says of an SLC cache and of how that comes back,
against the ledgers of the drive. SMART is read around each rest, which the plan itself does not do: each reading marks
the ledger."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_most, exactly
from ssdrig.base.errors import LoadError
from ssdrig.plan import grammar
from ssdrig.reading import cache_recovery, filling, table
from ssdrig.runs import journal
from ssdrig.virtual.flash.presets import PRESETS, Preset

PRESET = "nvme-tlc-slc"
PLAN, AGAIN = "slc-recovery", "rests/again"
RESTS = ('name = "empty"\ndo   = "idle"\n', '  name = "pause"\n  do   = "idle"\n')  # in its text
WORK = ("controller", "read", "program", "erase", "transfer")  # energies of the ledger that rest alone does not take


def slc_recovery() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ssdrig-slc-", dir="/var/tmp") as folder:
        plan, text = Path(folder, "marked.toml"), grammar.find(PLAN)[0]
        for rest in RESTS:
            assert text.count(rest) == 1, rest
            text = text.replace(rest, f'{rest}smart = "edges"\n')
        plan.write_text(text)
        words = ["run", str(plan), "--variant", "quick", "--virtual", PRESET, "--quiet", "--json", "--runs", folder]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("SSDRIG_INFLUX")}
        argv = [sys.executable, "-P", "-m", "ssdrig", *words]
        done = subprocess.run(argv, stdout=subprocess.PIPE, env=environ, text=True, check=False)
        if done.returncode:
            raise LoadError(f"`ssdrig {' '.join(words)}` to end well", f"exit code {done.returncode}", "see its words")
        return against_ledger(Path(json.loads(done.stdout.splitlines()[-1])["run"]), PRESETS[PRESET])


def against_ledger(run: Path, preset: Preset) -> list[Figure]:
    """By how much the sizes of the cache, the folding rate, its delay and its energy are off, of a run with SMART
    readings around each burst. What the host limited is left out, and counted."""
    whole = table.load(run)
    rows = [row for row in whole.rows if row.act.path in ("use-up", AGAIN)]
    marks = [_marks(run, row.act.label) for row in rows]
    limited = sum(bool(row.result.get("host_limited")) for row in rows)
    sizes, outside = [], 0
    for row, (before, after) in zip(rows, marks, strict=True):
        true = _took((before, after)) + preset.cache_bytes  # with the buffer before it
        if row.result.get("cache_bytes") and true > cache_recovery.WHOLE * _whole(marks, preset):
            sizes.append(100 * abs(row.result["cache_bytes"] / true - 1))
        if row.result.get("cache_bytes"):
            outside += abs(row.result["cache_bytes"] - true) > row.result["cache_error_bytes"]
    recovery, _ = filling.recovery(rows[1:])
    if recovery.disturbed:
        for row in rows[1:]:
            known = {key: row.result.get(key) for key in ("rest_s", "cache_bytes", "cache_error_bytes", "host_limited")}
            levels = [round(level["bw_mean_MBps"]) for level in row.result.get("plateaus") or []]
            print(row.act.label, known, levels, *row.notes, file=sys.stderr)
    rests = [
        (row.result["rest_s"], _took(marks[i + 1]), *_folded(marks[i], marks[i + 1]))
        for i, row in enumerate(rows[1:])
        if row.result.get("rest_s") is not None
    ]
    most = max((rest[1] for rest in rests), default=0.0)
    low, high = (share * most for share in (cache_recovery.SOME, cache_recovery.WHOLE))
    part = [rest for rest in rests if low < rest[1] < high]
    rate, cost, delay_s = (float("nan"),) * 3
    if len(part) > 1:
        lengths, took, folded, by_then, joules = (np.array(column, float) for column in zip(*part, strict=True))
        rate, at_0 = (float(coefficient) for coefficient in np.polyfit(lengths, took, 1))
        per_byte = float(np.polyfit(by_then, joules, 1)[0] * np.polyfit(took, folded, 1)[0])
        delay_s, cost = -at_0 / rate, 1e9 * per_byte
    figures = (
        (recovery.rate_Bps, recovery.rate_error_Bps, rate),
        (recovery.delay_s, recovery.delay_error_s, delay_s),
        (recovery.energy_J_per_GB, recovery.energy_error_J_per_GB, cost),
    )
    outside += sum(value is not None and not abs(value - true) <= _or_nan(error) for value, error, true in figures)
    return [
        exactly("sizes, rate, delay and energy outside their stated error", outside, "", 0),
        exactly("bursts left out as disturbed, of ten", recovery.disturbed, "", 0),
        exactly("bursts that the host limited, of ten", limited, "", 0),
        at_most("size of the whole cache, off the ledger's", max(sizes, default=float("nan")), "%", 1),
        at_most("folding rate, off the ledger's", _off(recovery.rate_Bps, rate), "%", 2),
        at_most("delay before it folds, off the ledger's", 1e3 * abs(_or_nan(recovery.delay_s) - delay_s), "ms", 20),
        at_most("J per GB that came back, off the ledger's", _off(recovery.energy_J_per_GB, cost), "%", 3),
    ]


def _marks(run: Path, label: str) -> tuple[dict, dict]:
    """The ledgers at the SMART readings right before and right after a burst."""
    of = [e for e in journal.events(run) if e["kind"] in ("step.start", "step.end")]
    begin_ns, end_ns = (e["t_ns"] for e in of if grammar.label(str(e.get("step")), e.get("point") or {}) == label)
    marks = [json.loads(line) for line in (run / "truth/marks.jsonl").read_text().splitlines()]
    return [m for m in marks if m["t_ns"] <= begin_ns][-1], next(m for m in marks if m["t_ns"] >= end_ns)


def _whole(marks: list[tuple[dict, dict]], preset: Preset) -> float:
    return max(_took(mark) for mark in marks) + preset.cache_bytes


def _took(marks: tuple[dict, dict]) -> float:
    """What the cache took in a burst."""
    return marks[1]["nand_slc_bytes"] - marks[0]["nand_slc_bytes"]


def _folded(one: tuple[dict, dict], other: tuple[dict, dict]) -> tuple[float, float, float]:
    """Bytes folded in the rest between two bursts; those and the joules that rest alone does not take until the SMART
    reading before the second. The drive folds on from there until that begins; within the bursts it folds nothing."""
    whole = other[1]["nand_slc_fold_bytes"] - one[1]["nand_slc_fold_bytes"]
    before, after = one[1], other[0]
    joules = sum(after[f"energy_{work}_J"] - before[f"energy_{work}_J"] for work in WORK)
    return whole, after["nand_slc_fold_bytes"] - before["nand_slc_fold_bytes"], joules


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _off(value: float | None, true: float) -> float:
    return 100 * abs(_or_nan(value) / true - 1)


BENCHES = {
    "slc-recovery": ("what slc-recovery says of a cache and of its return, against the drive's ledgers", slc_recovery)
}
