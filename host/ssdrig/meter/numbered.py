"""Times of readings that an instrument numbers and does not stamp: made at an even pace, and come with a delay that a
busy host, USB and buffers lengthen. Those that came fastest show when they were made."""

WINDOW_NS = 5_000_000_000  # of the arrivals: its crystal drifts by less than a millisecond in two of them
TICK_NS = 1000  # of a frame


class Numbered:
    """When readings with these numbers ended.

    period_ns: from one to the next, by the instrument's own clock."""

    def __init__(self, period_ns: int):
        self._period_ns, self._since_ns = period_ns, 0
        self._before_ns: int | None = None  # least arrival less number of the last window, and
        self._least_ns: int | None = None  # of this one
        self._last_ns = 0

    def came(self, number: int, now_ns: int) -> None:
        """Take note of an arrival."""
        late_ns = now_ns - number * self._period_ns
        if self._least_ns is None or now_ns - self._since_ns > WINDOW_NS:
            self._before_ns, self._least_ns, self._since_ns = self._least_ns, late_ns, now_ns
        self._least_ns = min(self._least_ns, late_ns)

    def end_ns(self, number: int) -> int:
        """CLOCK_MONOTONIC, each later than those asked for before; came() first."""
        assert self._least_ns is not None
        base_ns = self._least_ns if self._before_ns is None else min(self._least_ns, self._before_ns)
        self._last_ns = max(self._last_ns + TICK_NS, base_ns + number * self._period_ns)
        return self._last_ns
