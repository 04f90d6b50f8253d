"""Little's check of a run: in a closed loop, where as many I/Os are under way as were asked for (threads x queue
depth), IOPS x mean latency is that number, or the two are not of the same I/Os. Pure.

A load that is paced (`rate`) or has pauses is no closed loop. Of the others in_flight.py says where the check can be
made."""

from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.reading.row import WHOLE, Row
from ssdrig.reading.window_figures import LITTLE_PERCENT

ERROR = "littles_error_percent"


class Load(NamedTuple):
    """A load of a closed loop: I/Os in flight by its figures, how many were asked for, and by how much that is off;
    None: `why` it is not checked."""

    label: str
    round: int | None
    in_flight: float
    asked: float
    error_percent: float | None
    why: str = ""


def loads(rows: "Sequence[Row]") -> list[Load]:
    """The closed loops among the rows that ran to their end, in their order."""
    found = []
    for row in rows:
        figures = row.windows.get(WHOLE) or {}
        in_flight, error = figures.get("littles_qd"), figures.get(ERROR)
        if row.state == "done" and in_flight is not None:
            asked = row.act.keys["qd"] * row.act.keys["threads"]
            said = (note.partition(": ") for note in row.notes)
            why = "" if error is not None else next((words for key, _, words in said if key == ERROR), "not known")
            found.append(Load(row.act.label, row.round, in_flight, asked, error, why))
    return found


def checked(found: Sequence[Load]) -> list[Load]:
    """Those of which the check can be made."""
    return [load for load in found if load.error_percent is not None]


def beyond(found: Sequence[Load]) -> list[Load]:
    """Those that are off by more than LITTLE_PERCENT, the worst first."""
    off = [load for load in checked(found) if abs(load.error_percent or 0) > LITTLE_PERCENT]
    return sorted(off, key=lambda load: -abs(load.error_percent or 0))


def summary(rows: "Sequence[Row]") -> dict | None:
    """{"limit_percent", "loads": those that are checked, "within", "worst_percent", "not_checked": how many more closed
    loops there are} for JSON; None without a closed loop."""
    found = loads(rows)
    if not found:
        return None
    errors = [load.error_percent for load in checked(found) if load.error_percent is not None]
    return {
        "limit_percent": LITTLE_PERCENT,
        "loads": len(errors),
        "within": len(errors) - len(beyond(found)),
        "worst_percent": max(errors, key=abs, default=None),
        "not_checked": len(found) - len(errors),
    }


def words(rows: "Sequence[Row]") -> str:
    """ "Little's check (…): 280 of 280 loads of a closed loop within 2 %, the worst +0.31 % off; 3 not checked: too
    short, or the host took too much of the time"."""
    found = summary(rows)
    if not found:
        return ""
    out = (
        f"Little's check (IOPS × mean latency = threads × queue depth): {found['within']} of {found['loads']}"
        f" load{'s' * (found['loads'] != 1)} of a closed loop within {found['limit_percent']:g} %"
    )
    if found["worst_percent"] is not None:
        out += f", the worst {found['worst_percent']:+.2f} % off"
    if found["not_checked"]:
        out += f"; {found['not_checked']} not checked: too short, or the host took too much of the time"
    return out.replace("-", "−")
