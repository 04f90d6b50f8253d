"""Little's check of a run: in a closed loop, where as many I/Os are under way as were asked for (threads x queue
depth), IOPS x mean latency is that number, or the two are not of the same I/Os. Pure.

A load that is paced (`rate`) or has pauses is not a closed loop. For the others of_load() reports whether the check
can be made:

The latencies of all I/Os, summed, are the time that I/Os were in flight, exactly. Divided by the time that the threads
ran, each by its own clock, that is how many were; threads that end one after the other change nothing. Time missing
for valid reasons is bounded: at its end a thread waits for its last I/Os while it begins no new ones, on
average half a latency; between two I/Os of a slot fio fills a buffer and counts, in its own time (user CPU); and it
counts the time in whole milliseconds. Where that may be more than MISSING_PERCENT the check would depend on the
load's length or the host, and is not made."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ssdrig.reading.row import WHOLE, Row

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
    out = []
    for row in rows:
        figures = row.windows.get(WHOLE) or {}
        in_flight, error = figures.get("littles_qd"), figures.get(ERROR)
        if row.state == "done" and in_flight is not None:
            asked = row.act.keys["qd"] * row.act.keys["threads"]
            notes = (note.partition(": ") for note in row.notes)
            why = "" if error is not None else next((words for key, _, words in notes if key == ERROR), "not known")
            out.append(Load(row.act.label, row.round, in_flight, asked, error, why))
    return out


def checked(checks: Sequence[Load]) -> list[Load]:
    """The loads that can be checked."""
    return [load for load in checks if load.error_percent is not None]


def beyond(of_loads: Sequence[Load]) -> list[Load]:
    """Those that are off by more than LITTLE_PERCENT, the worst first."""
    off = [load for load in checked(of_loads) if abs(load.error_percent or 0) > LITTLE_PERCENT]
    return sorted(off, key=lambda load: -abs(load.error_percent or 0))


def summary(rows: "Sequence[Row]") -> dict | None:
    """{"limit_percent", "loads": those that are checked, "within", "worst_percent", "not_checked": how many more closed
    loops there are} for JSON; None without a closed loop."""
    of_loads = loads(rows)
    if not of_loads:
        return None
    errors = [load.error_percent for load in checked(of_loads) if load.error_percent is not None]
    return {
        "limit_percent": LITTLE_PERCENT,
        "loads": len(errors),
        "within": len(errors) - len(beyond(of_loads)),
        "worst_percent": max(errors, key=abs, default=None),
        "not_checked": len(of_loads) - len(errors),
    }


def words(rows: "Sequence[Row]") -> str:
    """ "Little's check (…): 280 of 280 loads of a closed loop within 2 %, the worst +0.31 % off; 3 not checked: too
    short, or the host took too much of the time"."""
    totals = summary(rows)
    if not totals:
        return ""
    out = (
        f"Little's check (IOPS × mean latency = threads × queue depth): {totals['within']} of {totals['loads']}"
        f" load{'s' * (totals['loads'] != 1)} of a closed loop within {totals['limit_percent']:g} %"
    )
    if totals["worst_percent"] is not None:
        out += f", the worst {totals['worst_percent']:+.2f} % off"
    if totals["not_checked"]:
        out += f"; {totals['not_checked']} not checked: too short, or the host took too much of the time"
    return out.replace("-", "−")


LITTLE_PERCENT = 2.0
MISSING_PERCENT = LITTLE_PERCENT / 2
TICK_MS = 1.0  # of the duration that fio reports of a load


class InFlight(NamedTuple):
    """I/Os in flight; their deviation from the requested number, None: `why` the check is not made. What may be
    missing of the time, in percent: by the load's end, by fio's own work between two I/Os, and by its clock."""

    in_flight: float
    error_percent: float | None
    end_percent: float
    work_percent: float
    tick_percent: float
    why: str | None = None


def of_load(totals: Mapping, asked: float, threads: int) -> InFlight | None:
    """`totals`: fio's, of the whole load (fiotext.totals). `asked`: threads x queue depth. None without I/O, or
    where the latency is not known."""
    lasted_ms = totals.get("threads_ms", 0) / threads or totals["runtime_ms"]
    if not totals["ios"] or not lasted_ms or totals["lat_sum_ns"] is None:
        return None
    in_flight = totals["lat_sum_ns"] / 1e6 / lasted_ms
    depth, latency_ms = asked / threads, totals["lat_sum_ns"] / 1e6 / totals["ios"]
    end = 50 * latency_ms / lasted_ms * (1 - 1 / depth)
    work = (totals.get("user_percent") or 0.0) / threads / depth
    tick = 100 * TICK_MS / lasted_ms
    why = None
    if end + work + tick > MISSING_PERCENT:
        lasted = f"it lasted {lasted_ms / latency_ms:.0f} mean latencies, so that its end may take {end:.1f} %"
        between = f"fio's own work between two I/Os may take {work:.1f} % of the time"
        clock = f"fio's time, in whole ms, may be off by {tick:.1f} %"
        parts = ((lasted, end), (between, work), (clock, tick))
        more = " and ".join(words for words, part in parts if part > MISSING_PERCENT / 4)
        why = f"not checked: {more}, which leaves less than half of {LITTLE_PERCENT:g} % to the check"
    error = 100 * (in_flight - asked) / asked
    return InFlight(in_flight, None if why else error, end, work, tick, why)
