"""The figures of a run as a whole, whatever its plan: KEYS, each None where it is not known."""

import math
from collections.abc import Sequence
from typing import Any

from ssdrig.base import overprovisioning
from ssdrig.drive.wear import wa
from ssdrig.meter.closure import Closure
from ssdrig.plan import kinds
from ssdrig.reading.row import WHOLE, Row, Table
from ssdrig.reading.window_figures import terms

# Figures of the run as a whole; terms() of window_figures.py parses a line.
TERMS = terms("""
# Performance
iops_all_mean | Mean IOPS of the load |  | 0 | more | All I/O of the load divided by its length, the fresh plateau
    included; of one that was cut short the part that ran.
time_to_complete_s | Time to complete | s | 1 | less | The whole run in drive time, purge and fill included.
fill_s | Time of the fill | s | 1 | less | How long fio's sequential write of the tested range took.
fill_MBps | Fill speed | MB/s | 1 | more | Sequential write of the tested range: bytes / time of fio's own count.
# Over-provisioning
op_raw_percent | Over-provisioning, of raw NAND | % | 1 |  | Share of the raw NAND that is never written: 1 − tested /
    raw. Assumed where the raw NAND is (`raw_nand_assumed`).
op_user_percent | Over-provisioning, of the user capacity | % | 1 |  | Share of the user capacity that is left
    unwritten.
alpha | Raw NAND / tested range (α) |  | 3 |  | What write amplification depends on. Assumed where the raw NAND is.
wa_closed_form | Write amplification, closed form |  | 3 | less | Of uniformly random writes at this α where blocks are
    collected in turn, α / (α + W₀(−α e^−α)); the greedy choice of blocks comes near it from below. Assumed where the
    raw NAND is.
# Power and energy
fill_energy_J | Energy of the fill | J | 1 |  | The same integral over fio's sequential fill.
idle_mean_W | Idle power | W | 3 | less | Mean power of the idle step after the load (`--idle`), in which no SMART is
    read.
idle_uncertainty_W | Idle power uncertainty | W | 4 | less | Expanded uncertainty (k = 2, about 95 %) of the idle power,
    as below.
# Wear
wa_settled | Write amplification, settled |  | 3 | less | From the reading before the load until the drive has come to
    rest (`--settle`): its own writes after the load count too.
# Quality of the measurement
closure_percent | Energy closure | % | 3 |  | Host integral against the sensor chip's own energy register over the same
    conversions of the run, the chip's clock corrected. 0 is perfect. For several rails: the worst.
chip_clock_ppm | Chip clock error | ppm | 0 |  | How fast the sensor chip's oscillator runs against the host's clock, as
    measured over the run.
chip_clock_error_ppm | Chip clock error, known to | ppm | 0 |  | Largest error of that: the error of the host's time at
    both ends of the measured stretch.
""")


def of(table: Table) -> dict[str, Any]:
    """The figures of a run, and `load`: the label of the step that they are about."""
    main = principal(table)
    out: dict[str, Any] = {"load": main.label if main else None, **dict.fromkeys(KEYS)}
    out |= of_closure(table.data.closure)
    tested_bytes = table.data.asked("tested_bytes")
    out |= {"purge": table.purges[-1] if table.purges else None, "tested_bytes": tested_bytes}
    if main:
        out |= {"iops_all_mean": main.value("iops"), "time_to_complete_s": _to_complete_s(table, main)}
        out["tested_bytes"] = tested_bytes = main.act.range_bytes or tested_bytes
    out |= over_provisioning(table, tested_bytes)
    fill = _last(table, "fill")
    if fill and fill.value("MB/s") is not None:
        out |= {"fill_s": _lasted_s(fill), "fill_MBps": fill.value("MB/s")}
        out["fill_energy_J"] = (fill.windows[WHOLE] or {}).get("energy_J")
    if idle := _last(table, "idle"):
        watts, percent = idle.value("W"), (idle.windows.get(WHOLE) or {}).get("power_uncertainty_percent")
        error_W = None if watts is None or percent is None else watts * percent / 100
        out |= {"idle_s": _lasted_s(idle), "idle_mean_W": watts, "idle_uncertainty_W": error_W}
    amplification = settled(table, main)
    return out | {
        "wa_settled": amplification.with_background.value if amplification and amplification.with_background else None
    }


KEYS = (
    *("purge", "tested_bytes", "iops_all_mean", "time_to_complete_s", "fill_s", "fill_MBps", "fill_energy_J"),
    *("op_raw_percent", "op_user_percent", "alpha", "wa_closed_form", "idle_s", "idle_mean_W", "idle_uncertainty_W"),
    *("wa_settled", "closure_percent", "chip_clock_ppm", "chip_clock_error_ppm"),
)


def principal(table: Table) -> Row | None:
    """The load that a run is about."""
    return longest(table.rows)


def longest(rows: Sequence[Row]) -> Row | None:
    """The load that a run is about: the longest step outside repeats, or otherwise the longest point of one."""
    busy = [row for row in rows if row.act.do in kinds.IO and row.act.do != "fill" and row.t0_s is not None]
    alone = [row for row in busy if row.act.repeat is None]
    return max(alone or busy, key=lambda row: (row.t1_s or 0.0) - (row.t0_s or 0.0), default=None)


def of_closure(closure: Closure | None) -> dict[str, float | None]:
    """How energy closes, and how the chip's clock runs."""
    keys = "closure_percent", "chip_clock_ppm", "chip_clock_error_ppm"
    if closure is None:
        return dict.fromkeys(keys)
    error_ppm = closure.chip_clock_error_ppm if math.isfinite(closure.chip_clock_error_ppm) else None
    return dict(zip(keys, (closure.corrected_percent, closure.chip_clock_ppm, error_ppm), strict=True))


def over_provisioning(table: Table, tested_bytes: float | None) -> dict[str, float | None]:
    """Both definitions of it, and the write amplification in theory."""
    drive, out = table.data.header["drive"], {}
    capacity, raw = drive.get("capacity_bytes"), drive.get("raw_nand_bytes")
    if tested_bytes and capacity:
        out["op_user_percent"] = overprovisioning.of_user_percent(tested_bytes, capacity)
    if tested_bytes and raw:
        out |= {"op_raw_percent": overprovisioning.own_percent(tested_bytes, raw), "alpha": raw / tested_bytes}
        if raw > tested_bytes:
            out["wa_closed_form"] = overprovisioning.wa_fifo(raw / tested_bytes)
    return out


def settled(table: Table, main: Row | None) -> wa.Settled | None:
    """Write amplification from the reading before the load until the drive has come to rest; None: it was not read."""
    readings = main.data.snapshots if main and main.data else []
    before = [s for s in readings if s["reason"] == "before" and not s.get("foreign_bytes")]
    quiet = [s for s in readings if s["reason"] == "after" and not s.get("foreign_bytes")]
    rest = [s for s in table.data.snapshots if s["reason"] == "settled"]
    if not (before and quiet and rest):
        return None
    return wa.settled(before[-1], quiet[0], [quiet[0], *rest])


def _last(table: Table, do: str) -> Row | None:
    finished = [row for row in table.rows if row.act.do == do and row.state == "done" and row.windows.get(WHOLE)]
    return finished[-1] if finished else None


def _lasted_s(row: Row) -> float:
    return (row.t1_s or 0.0) - (row.t0_s or 0.0)


def _to_complete_s(table: Table, main: Row) -> float | None:
    """From the start of the first step after the check to the end of the load, drive time."""
    begun = [row.t0_s for row in table.rows if row.t0_s is not None]
    return None if main.state != "done" or main.t1_s is None else main.t1_s - min(begun)
