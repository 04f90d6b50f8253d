"""The plateaus of a fill: where a drive's speed changes with the amount written, such as at the end of its SLC cache.
Pure.

A stall writes nothing, so it is in a single sample: a running median removes it. The written bytes are then divided
into bins of equal size. Least squares of log speed with a penalty for each change, solved exactly (Jackson et al.,
An algorithm for optimal partitioning of data on an interval, IEEE Signal Processing Letters 12, 2005); the penalty is
3 s^2 log n with s from the differences of neighbours (Killick et al. 2012 take multiples of s^2 log n). Neighbours that
differ by less than JUMP are one. A change is then placed within the samples around it by the two speeds."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

BINS = 1000
LEAST_SHARE = 0.01  # of the written bytes, for a plateau
JUMP = 0.2  # least difference of two neighbours
MEDIAN_OF = 3  # samples
FEWEST = 4  # samples of a plateau
STALL = 0.5  # of the usual speed: a sample slower than that holds a stall
NEAR = 3  # bins around a change in which it is looked for
WITHIN = 8.0  # times the scatter: a change that fits worse by more is elsewhere with less than 5 %
TOGETHER = 4  # samples, from whose means it is seen whether neighbours are off together


class Plateau(NamedTuple):
    """A plateau, in bytes and seconds since the start."""

    from_bytes: float
    to_bytes: float
    from_s: float
    to_s: float

    @property
    def speed_Bps(self) -> float:
        return (self.to_bytes - self.from_bytes) / (self.to_s - self.from_s)


def find(at_s: ArrayLike, done_bytes: ArrayLike, finer: tuple[ArrayLike, ArrayLike] | None = None) -> list[Plateau]:
    """at_s, done_bytes: rising, the first 0 and 0: the bytes written by each time. [] if those are too few.
    `finer`: the same in smaller steps, whose speeds may be rough; they locate the changes."""
    t, done = _with_io(at_s, done_bytes)
    fine = _with_io(*finer) if finer is not None else (t, done)
    if len(t) <= FEWEST or not all((np.diff(axis) > 0).all() for axis in (t, fine[0])):
        return []
    edges = np.linspace(0, done[-1], BINS + 1)
    speeds = _median(np.log(np.diff(done) / np.diff(t)))
    sample = np.searchsorted(done, (edges[1:] + edges[:-1]) / 2) - 1
    level = speeds[sample]
    cuts = _merged(t, done, sample, _partition(level))
    usual = [_usual(np.diff(t[a : z + 1]), np.diff(done[a : z + 1])) for a, z in _spans(sample, cuts)]
    places = [_place(*fine, _near(done, edges, cuts, k), *usual[k - 1 : k + 1]) for k in range(1, len(cuts) - 1)]
    places = [(0.0, 0.0), *places, (float(t[-1]), float(done[-1]))]
    plateaus = [Plateau(b, e, a, z) for (a, b), (z, e) in zip(places, places[1:], strict=False)]
    return (
        plateaus
        if all(plateau.to_bytes > plateau.from_bytes and plateau.to_s > plateau.from_s for plateau in plateaus)
        else []
    )


def cache_bytes(plateaus: Sequence[Plateau]) -> tuple[float | None, str | None]:
    """Bytes accepted before the first drop of the speed, or None and the reason."""
    if not plateaus:
        return None, "too few samples of the written bytes"
    if len(plateaus) < 2:
        return None, f"the speed did not fall by {100 * JUMP:g} % within the written bytes"
    if plateaus[1].speed_Bps > plateaus[0].speed_Bps:
        return None, "the speed rose first"
    return plateaus[0].to_bytes, None


def cache_error_bytes(plateaus: Sequence[Plateau], at_s: ArrayLike, done_bytes: ArrayLike) -> float:
    """By how much the first fall of the speed may be elsewhere, by the samples of find() (`finer`, if it had them).

    Wherever a change there fits them hardly worse than the best one, by their own scatter, which counts for more where
    neighbours are off together; and a sample more."""
    t, done = _with_io(at_s, done_bytes)
    cost, residual = _split(t, done, 0, len(t) - 1, *(math.log(plateau.speed_Bps) for plateau in plateaus[:2]))
    limit = cost.min() + WITHIN * _together(residual) * float((residual**2).mean())
    fits = np.flatnonzero(cost <= limit)
    size = plateaus[0].to_bytes
    at = min(len(done) - 2, int(np.searchsorted(done, size, "right")) - 1)
    return float(max(size - done[fits[0]], done[fits[-1]] - size, 0.0) + done[at + 1] - done[at])


def _with_io(at_s: ArrayLike, done_bytes: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """A sample without I/O belongs to the next one."""
    t, done = np.asarray(at_s, float), np.asarray(done_bytes, float)
    rising = np.concatenate([[True], np.diff(done) > 0])
    return t[rising], done[rising]


def _median(values: np.ndarray) -> np.ndarray:
    """Running median of each value and its neighbours."""
    half = MEDIAN_OF // 2
    padded = np.pad(values, half, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, MEDIAN_OF), axis=1)


def _partition(level: np.ndarray) -> list[int]:
    """Edges of the stretches, 0 and len(level) too, that fit best, each of at least LEAST_SHARE."""
    n, least = len(level), max(1, round(LEAST_SHARE * len(level)))
    sums, squares = (np.concatenate([[0.0], np.cumsum(power)]) for power in (level, level**2))
    spread = 1.4826 * float(np.median(np.abs(np.diff(level)))) / np.sqrt(2)
    penalty = max(3 * spread**2 * np.log(n), least / 4 * np.log(1 - JUMP) ** 2)
    best, last = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    best[0] = -penalty
    for end in range(least, n + 1):
        begins = np.arange(0, end - least + 1)
        total = sums[end] - sums[begins]
        cost = best[begins] + penalty + squares[end] - squares[begins] - total**2 / (end - begins)
        last[end] = at = int(np.argmin(cost))
        best[end] = cost[at]
    cuts = [n]
    while cuts[-1]:
        cuts.append(int(last[cuts[-1]]))
    return cuts[::-1]


def _merged(t: np.ndarray, done: np.ndarray, sample: np.ndarray, cuts: list[int]) -> list[int]:
    """Without plateaus of a few samples, which are those around a change, and without changes that are smaller than
    JUMP; the smallest change first. `sample`: the sample of each bin."""
    while len(cuts) > 2:
        spans = _spans(sample, cuts)
        steps = np.abs(np.diff([_usual(np.diff(t[a : z + 1]), np.diff(done[a : z + 1])) for a, z in spans]))
        short = [z - a < FEWEST for a, z in spans]
        beside = [first or second for first, second in zip(short, short[1:], strict=False)]
        least = int(np.argmin(np.where(beside, steps, np.inf) if any(beside) else steps))
        if not any(beside) and steps[least] >= -np.log(1 - JUMP):
            break
        cuts = cuts[: least + 1] + cuts[least + 2 :]
    return cuts


def _spans(sample: np.ndarray, cuts: list[int]) -> list[tuple[int, int]]:
    """The samples of each stretch, from one to before the other."""
    return [(int(sample[a]), int(sample[z - 1]) + 1) for a, z in zip(cuts, cuts[1:], strict=False)]


def _usual(took: np.ndarray, moved: np.ndarray) -> float:
    """Log of the mean speed of samples, those that hold a stall left out."""
    speeds = moved / took
    moving = speeds > STALL * np.median(speeds)
    return float(np.log(moved[moving].sum() / took[moving].sum()))


def _near(done: np.ndarray, edges: np.ndarray, cuts: list[int], k: int) -> tuple[float, float]:
    """The range of bytes that contains the k-th change."""
    near = [max(cuts[k - 1], cuts[k] - NEAR), min(cuts[k + 1], cuts[k] + NEAR)]
    a, z = (int(np.searchsorted(done, edges[at])) for at in near)
    return float(done[max(0, a - 2)]), float(done[min(len(done) - 1, z + 1)])  # a sample may be longer than these bins


def _place(
    t: np.ndarray, done: np.ndarray, near: tuple[float, float], first: float, last: float
) -> tuple[float, float]:
    """(s, bytes) of the change `near` there, between these log speeds. The sample that separates
    them best; its bytes and those of its neighbours are divided between the two speeds by the time they took."""
    a, z = (int(np.searchsorted(done, at)) for at in near)
    at = a + int(np.argmin(_split(t, done, a, z, first, last)[0]))
    a, z = max(a, at - 1), min(z, at + 1)
    moved, took = np.diff(done[a : z + 1]), np.diff(t[a : z + 1])
    part = np.clip((took - moved / np.exp(last)) / (np.exp(-first) - np.exp(-last)), 0, moved).sum()
    return float(t[a] + part / np.exp(first)), float(done[a] + part)


def _split(t: np.ndarray, done: np.ndarray, a: int, z: int, first: float, last: float) -> tuple[np.ndarray, np.ndarray]:
    """(how badly a change of the log speed from `first` to `last` fits the samples a to z, at each of their edges; what
    the best one leaves of each)."""
    each_log = np.log(np.diff(done[a : z + 1]) / np.diff(t[a : z + 1]))
    # a stall slows a sample and nothing speeds one up, so a deviation to the slow side counts half
    off = [np.minimum((each_log - own) ** 2, (first - last) ** 2) for own in (first, last)]
    off = [np.where(each_log < own, squares / 2, squares) for own, squares in zip((first, last), off, strict=True)]
    cost = np.concatenate([[0.0], np.cumsum(off[0])]) + np.concatenate([[0.0], np.cumsum(off[1][::-1])])[::-1]
    at = int(np.argmin(cost))
    levels = np.where(np.arange(len(each_log)) < at, first, last)
    return cost, each_log - levels


def _together(residual: np.ndarray) -> float:
    """By how much more than its share a sample counts, as neighbours are off together: 1 where they are not."""
    whole = len(residual) // TOGETHER * TOGETHER
    if whole < 2 * TOGETHER or not residual.any():
        return 1.0
    of_blocks = residual[:whole].reshape(-1, TOGETHER).mean(axis=1)
    return max(1.0, TOGETHER * float((of_blocks**2).mean()) / float((residual[:whole] ** 2).mean()))
