"""The figures of a run as a whole, whatever its plan: the keys of figures.TERMS, each None where it is not known."""

import math
from typing import Any

from ssdrig.base import overprovisioning
from ssdrig.drive.wear import wa
from ssdrig.meter.closure import Closure
from ssdrig.plan import kinds
from ssdrig.reading.row import WHOLE, Row, Table


def of(table: Table) -> dict[str, Any]:
    """The figures of a run, and `load`: the label of the step that they are about."""
    main = principal(table)
    out: dict[str, Any] = {"load": main.label if main else None, **dict.fromkeys(KEYS)}
    out |= of_closure(table.data.closure)
    out |= {"purge": table.purges[-1] if table.purges else None}
    if main:
        out |= {"iops_all_mean": main.value("iops"), "time_to_complete_s": _to_complete_s(table, main)}
        out |= {"tested_bytes": main.act.range_bytes or None} | over_provisioning(table, main.act.range_bytes)
    if fill := _last(table, "fill"):
        out |= {"fill_s": _lasted_s(fill), "fill_MBps": fill.value("MB/s")}
        out["fill_energy_J"] = (fill.windows[WHOLE] or {}).get("energy_J")
    if idle := _last(table, "idle"):
        watts, percent = idle.value("W"), (idle.windows.get(WHOLE) or {}).get("power_uncertainty_percent")
        error_W = None if watts is None or percent is None else watts * percent / 100
        out |= {"idle_s": _lasted_s(idle), "idle_mean_W": watts, "idle_uncertainty_W": error_W}
    return out | {"wa_settled": _settled(table, main)}


KEYS = (
    *("purge", "tested_bytes", "iops_all_mean", "time_to_complete_s", "fill_s", "fill_MBps", "fill_energy_J"),
    *("op_raw_percent", "op_user_percent", "alpha", "wa_closed_form", "idle_s", "idle_mean_W", "idle_uncertainty_W"),
    *("wa_settled", "closure_percent", "chip_clock_ppm", "chip_clock_error_ppm"),
)


def principal(table: Table) -> Row | None:
    """The load that a run is about: of the steps outside repeats, or else of the points of one, the longest."""
    busy = [row for row in table.rows if row.act.do in kinds.IO and row.act.do != "fill" and row.t0_s is not None]
    alone = [row for row in busy if row.act.repeat is None]
    return max(alone or busy, key=lambda row: (row.t1_s or 0.0) - (row.t0_s or 0.0), default=None)


def of_closure(closure: Closure | None) -> dict[str, float | None]:
    """How energy closes, and how the chip's clock runs."""
    keys = "closure_percent", "chip_clock_ppm", "chip_clock_error_ppm"
    if closure is None:
        return dict.fromkeys(keys)
    error_ppm = closure.chip_clock_error_ppm if math.isfinite(closure.chip_clock_error_ppm) else None
    return dict(zip(keys, (closure.corrected_percent, closure.chip_clock_ppm, error_ppm), strict=True))


def over_provisioning(table: Table, tested_bytes: int) -> dict[str, float | None]:
    """Both definitions of it, and what theory says of the write amplification."""
    drive, out = table.data.header["drive"], {}
    capacity, raw = drive.get("capacity_bytes"), drive.get("raw_nand_bytes")
    if tested_bytes and capacity:
        out["op_user_percent"] = overprovisioning.of_user_percent(tested_bytes, capacity)
    if tested_bytes and raw:
        out |= {"op_raw_percent": overprovisioning.own_percent(tested_bytes, raw), "alpha": raw / tested_bytes}
        if raw > tested_bytes:
            out["wa_closed_form"] = overprovisioning.wa_fifo(raw / tested_bytes)
    return out


def _settled(table: Table, main: Row | None) -> float | None:
    """Write amplification from the reading before the load until the drive has come to rest."""
    readings = main.data.snapshots if main and main.data else []
    before = [s for s in readings if s["reason"] == "before" and not s.get("foreign_bytes")]
    quiet = [s for s in readings if s["reason"] == "after" and not s.get("foreign_bytes")]
    rest = [s for s in table.data.snapshots if s["reason"] == "settled"]
    if not (before and quiet and rest):
        return None
    found = wa.settled(before[-1], quiet[0], [quiet[0], *rest]).with_background
    return found.value if found else None


def _last(table: Table, do: str) -> Row | None:
    done = [row for row in table.rows if row.act.do == do and row.state == "done" and row.windows.get(WHOLE)]
    return done[-1] if done else None


def _lasted_s(row: Row) -> float:
    return (row.t1_s or 0.0) - (row.t0_s or 0.0)


def _to_complete_s(table: Table, main: Row) -> float | None:
    """From the start of the first step behind the check to the end of the load, drive time."""
    begun = [row.t0_s for row in table.rows if row.t0_s is not None]
    return None if main.state != "done" or main.t1_s is None else main.t1_s - min(begun)
