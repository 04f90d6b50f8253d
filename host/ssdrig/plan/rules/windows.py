"""A window is a named stretch of the load, in whole seconds of drive time since its first I/O. Every figure belongs to
one (window_figures.py)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred
from ssdrig.base.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

FEWEST_S = 2  # a window of one second has no standard deviation
# the cliff: where a plateau of at least PLATEAU_S ends, and the seconds after it stay below DROP of its level
PLATEAU_S = 3
BEHIND_S = 5
DROP = 0.75
LEVEL_S = 600  # the level is the median of at most this many seconds from the start
FLAT = 0.85  # the last third of a plateau is at least this share of its first third
USUAL = 0.8  # of a plateau's seconds are above DROP of its level


CUT_SHORT, RUNNING = "cut short", "still running"


class Unfinished(NamedTuple):
    """A load that has not reached its end. `how`: CUT_SHORT or RUNNING; `of`: how long it was to take, "20 s" or "at
    most 21600 s", "" where that is not known."""

    how: str
    of: str = ""


@dataclass(frozen=True)
class Window:
    """`name` from t0_s to t1_s (drive time since the load's first I/O, whole seconds). `steady_state` is the verdict of
    steady.of_seconds on its IOPS. `unfinished`: of a window that goes to the load's end where that was not reached."""

    name: str
    t0_s: int
    t1_s: int
    steady_state: dict
    unfinished: Unfinished | None = None

    @property
    def times(self) -> str:
        """ "42–60 s", or "0–5 s of 20 s: cut short"."""
        times = f"{self.t0_s}–{self.t1_s} s"
        if self.unfinished is None:
            return times
        return f"{times}{f' of {self.unfinished.of}' if self.unfinished.of else ''}: {self.unfinished.how}"

    @property
    def label(self) -> str:
        """What people read. A window is called steady state only if the rule was tested and passed."""
        if self.name == "steady":
            return f"steady state, {self.times}" if self.steady_state["passed"] else self.times
        whole = "load" if self.unfinished else "whole load"
        words = {"fresh": "fresh plateau", "all": whole}.get(self.name, self.name)
        return f"{words}, {self.times}"


def parse(text: str) -> tuple[str, int, int]:
    """ "NAME=FROM:TO" in whole seconds of drive time -> (name, t0_s, t1_s). Raises UsageError."""
    name, _, times = text.partition("=")
    begin, _, end = times.partition(":")
    if (
        not name
        or name in ("fresh", "all", "steady")
        or not (begin.isdecimal() and end.isdecimal() and len(times) < 20)
    ):
        raise UsageError("a window as NAME=FROM:TO in seconds, such as burst=10:20", text, "see ./ssdrig report --help")
    return name, int(begin), int(end)


def cliff(iops: "np.ndarray") -> tuple[int | None, str | None]:
    """The second at which a fresh drive's plateau ends, or (None, why there is none).

    It is the first second below DROP of the level (the median from the start) after which the next seconds and most
    of the rest of the load are below it too; a stall, or a dip with a recovery, does not count. A load that falls from
    the start has no plateau."""
    iops = np.asarray(iops, float)
    n, level = len(iops), 0.0
    for end in range(PLATEAU_S, n - BEHIND_S + 1):
        if end <= LEVEL_S:  # from there on it is the same
            level = float(np.median(iops[: min(end, LEVEL_S)]))
        if iops[end] >= DROP * level:
            continue
        low = iops[end:] < DROP * level
        if low[:BEHIND_S].sum() <= BEHIND_S // 2 or low.sum() * 2 <= len(low):
            continue
        plateau = iops[:end]
        third = end // 3
        flat = np.median(plateau[-third:]) >= FLAT * np.median(plateau[:third])
        if flat and (plateau >= DROP * level).mean() >= USUAL:
            return end, None
        return None, f"no cliff: IOPS fall from the start on, by a quarter within {end} s"
    return None, f"no cliff: IOPS do not fall by a quarter and stay there within the load's {n} s"


def falls(iops: list[float]) -> bool:
    """Whether the latest second may be the first after the cliff: available immediately, but not certain."""
    return len(iops) > PLATEAU_S and iops[-1] < DROP * float(np.median(iops[:-1][:LEVEL_S]))
