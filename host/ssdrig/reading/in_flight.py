"""Little's check of a whole load: the I/Os that were in flight by its latencies, against threads x queue depth. Pure.

The latencies of all I/Os, summed, are the time that I/Os were in flight, exactly. Divided by the time that the threads
ran, each by its own clock, that is how many were; threads that end one after the other change nothing. What is missing
for reasons that are no error is bounded: at its end a thread waits for its last I/Os while it begins no new ones, on
average half a latency; between two I/Os of a slot fio fills a buffer and counts, in its own time (user CPU); and it
counts the time in whole milliseconds. Where that may be more than MISSING_PERCENT the check would say something of the
load's length or of the host, and is not made."""

from collections.abc import Mapping
from typing import NamedTuple

LITTLE_PERCENT = 2.0
MISSING_PERCENT = LITTLE_PERCENT / 2
TICK_MS = 1.0  # of the time that fio says of a load


class InFlight(NamedTuple):
    """I/Os in flight; by how much that is off what was asked for, None: `why` the check is not made. What may be
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
