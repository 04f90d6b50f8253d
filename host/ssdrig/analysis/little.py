"""Little's check of a run: in a closed loop, where as many I/Os are under way as were asked for (threads x queue
depth), IOPS x mean latency is that number, or the two are not of the same I/Os. Pure.

A load that is paced (`rate`) or has pauses is no closed loop. Each load has its figures in row_figures.py; what begins
and ends a load is part of it, so one that lasts only some tens of its mean latencies is off by the share of these."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.analysis.row_figures import WHOLE
from ssdrig.analysis.window_figures import LITTLE_PERCENT

if TYPE_CHECKING:
    from ssdrig.analysis.table import Row

FEW_LATENCIES = 50  # of a load, at 2 %: its beginning and its end are up to half a latency each


class Load(NamedTuple):
    """A load of a closed loop: I/Os in flight by its figures, how many were asked for, by how much that is off, how
    many of its mean latencies it lasted, and what of its kind takes I/Os out of flight ("": nothing that is known)."""

    label: str
    round: int | None
    in_flight: float
    asked: float
    error_percent: float
    latencies: float
    why: str = ""


def loads(rows: "Sequence[Row]") -> list[Load]:
    """The closed loops among the rows that ran to their end, in their order."""
    found = []
    for row in rows:
        figures = row.windows.get(WHOLE) or {}
        in_flight, error = figures.get("littles_qd"), figures.get("littles_error_percent")
        if row.state == "done" and in_flight is not None and error is not None:
            lasted_us = 1e6 * (figures["t1_s"] - figures["t0_s"])
            asked = in_flight / (1 + error / 100)
            latencies = lasted_us / figures["lat_mean_us"]
            why = _why(row, asked, latencies)
            found.append(Load(row.act.label, row.round, in_flight, asked, error, latencies, why))
    return found


def _why(row: "Row", asked: float, latencies: float) -> str:
    keys = row.act.keys
    if latencies < FEW_LATENCIES:
        return "too short: its beginning and its end count"
    if keys["threads"] > 1 and any(entry.ios for entry in keys.get("until", ())):
        return "a number of I/Os ends it: its threads end one after the other"
    return "one I/O at a time: fio needs time between two" if round(asked) == 1 else ""


def beyond(found: Sequence[Load]) -> list[Load]:
    """Those that are off by more than LITTLE_PERCENT, the worst first."""
    return sorted(
        (load for load in found if abs(load.error_percent) > LITTLE_PERCENT), key=lambda load: -abs(load.error_percent)
    )


def summary(rows: "Sequence[Row]") -> dict | None:
    """{"limit_percent", "loads", "within", "worst_percent"} for JSON; None without a closed loop."""
    found = loads(rows)
    if not found:
        return None
    worst = max((load.error_percent for load in found), key=abs)
    within = len(found) - len(beyond(found))
    return {"limit_percent": LITTLE_PERCENT, "loads": len(found), "within": within, "worst_percent": worst}


def words(rows: "Sequence[Row]") -> str:
    """ "Little's check (…): 280 of 280 loads of a closed loop are within 2 %, the worst is +0.31 % off"."""
    found = summary(rows)
    if not found:
        return ""
    return (
        f"Little's check (IOPS × mean latency = threads × queue depth): {found['within']} of {found['loads']}"
        f" load{'s' * (found['loads'] != 1)} of a closed loop within {found['limit_percent']:g} %, the worst"
        f" {found['worst_percent']:+.2f} % off"
    ).replace("-", "−")
