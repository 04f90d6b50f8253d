"""The kernel's energy counters of the processors (RAPL): the energy between two readings. Pure."""

MOST_W = 4000  # of one counter: a processor draws some hundreds; more means that it did not wrap but was reset
LEAST_NS = 1_000_000_000  # counters are updated every ms: below that a reading may have more than its own time


def spent_uJ(first_uJ: int, last_uJ: int, range_uJ: int, lasted_ns: int) -> int | None:
    """Energy between two readings of a counter that wraps; None if the counter was reset in between, as after a
    suspend or with a new driver.

    range_uJ: value at which it wraps
    lasted_ns: time between the readings"""
    if not 0 < range_uJ or max(first_uJ, last_uJ) > range_uJ:
        return None
    spent = (last_uJ - first_uJ) % range_uJ
    return spent if spent <= MOST_W * max(lasted_ns, LEAST_NS) / 1000 else None
