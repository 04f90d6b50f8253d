"""CLOCK_MONOTONIC to UTC, by the anchors of a run folder."""

import bisect
from collections.abc import Iterable, Mapping

import numpy as np

MOST_STEP_NS = 10**9  # of a run's UTC: beyond this no time of a file is placed by it
CLOCK_SET_NS = 100_000_000  # a smaller difference between two anchors is the noise of reading two clocks


class Utc:
    """CLOCK_MONOTONIC -> UTC, ns. Linux runs both at one rate, so their distance changes only when someone sets the
    clock. A time gets the distance of the last anchor before it, which makes it the same whenever it is asked. No two
    distances differ by whole milliseconds, on which the seconds of power and fio lie: a clock that is set back lets a
    run pass through the same UTC twice, and no two of its points may come to share a time."""

    def __init__(self, t_ns: int, utc_ns: int):
        self._t, self._distance = [t_ns], [utc_ns - t_ns]

    def anchor(self, t_ns: int, utc_ns: int) -> None:
        """Take up an anchor; they come in rising order of t_ns."""
        distance = utc_ns - t_ns
        if abs(distance - self._distance[-1]) > CLOCK_SET_NS:
            while any((distance - earlier) % 1_000_000 == 0 for earlier in self._distance):
                distance += 1
            self._t.append(t_ns)
            self._distance.append(distance)

    def at(self, t_ns: int) -> int:
        return t_ns + self._distance[max(0, bisect.bisect_right(self._t, t_ns) - 1)]

    def at_all(self, t_ns: np.ndarray) -> np.ndarray:
        """at() of many (int64)."""
        known = np.searchsorted(np.array(self._t, np.int64), t_ns, "right") - 1
        return t_ns + np.array(self._distance, np.int64)[np.maximum(known, 0)]


def distance(events: Iterable[Mapping]) -> tuple[int, int] | None:
    """(UTC less CLOCK_MONOTONIC, by how much that moved) in ns, by the anchors among a run's events; None without
    one."""
    known = [event["utc_ns"] - event["t_ns"] for event in events if event["kind"] == "clock.anchor"]
    if not known:
        return None
    of = np.array(known, np.int64)
    middle = int(np.median(of - of[0])) + int(of[0])
    return middle, int(np.abs(of - middle).max())
