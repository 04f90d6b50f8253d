"""Where the marks of a run are in a recording of another instrument: its clock's offset and drift, with their bound.

A mark is bursts and rests of reads in a random pattern at a known host time (run/sync_marks.py). Two of them, before
the first step and after the last, are looked for: coarsely by the correlation of power with the pattern, at every
offset and up to DRIFT_PPM between the two; then each burst's rise is timed by its area. The drive draws more power
between the submission of a burst's first reads and their end, so each rise says when the recording's clock was in that
interval, up to one sample. Where the host or the drive was late to begin some bursts, only those with short intervals
count: up to QUICK times the longest of the LEAST_RISES shortest. The offset at a mark is the mean of what these rises
say; its bound is CERTAIN of its standard errors (at most the furthest rise), half of the longest interval, and a
sample.

Between the marks the offset is a line. The recording's clock may bend by STEADY_PPM of rate either way: a crystal at
room temperature stays within it; a computer's clock that is being set does not."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.meter import pairing
from ssdrig.meter.clock import DRIFT_PPM as STEADY_PPM
from ssdrig.meter.recordings import Recording
from ssdrig.meter.tape import Knot

EVENT = "sync"  # of the journal
DRIFT_PPM = 1000.0  # between the marks, that is looked for
GRID_NS = 10_000_000
CANDIDATES = 20
LEAST_CORRELATION = 0.5
AROUND_NS = 100_000_000  # of a rise: the outer ends of its levels
SKIP_NS = 30_000_000  # next to the rise, of either level; its area is first taken within
NEAR_NS = 6_000_000  # and then within this, where noise has less of it
BURST_SHARE = 0.8  # of a slot before a rest, in which a burst begins I/Os
LEAST_RISES = 4  # that are seen
QUICK = 2.0
RISES = 6  # of a pattern
CERTAIN = 4.0  # standard errors of the mean of the rises
AGREE = 3.0  # times the median deviation: a rise that is further off is left out
KNOTS = 33
DO = "record from before the run's beginning to after its end, on the rail that feeds the drive; the run needs --sync"


class Mark(NamedTuple):
    """`slots`: True where bursts were asked for; of each burst after a rest, `rises`: host ns of its first submission
    and of the end of its first reads."""

    begin_ns: int
    slot_ns: int
    slots: tuple[bool, ...]
    slot_bytes: tuple[int, ...]
    rises: tuple[tuple[int, int], ...]


class Found(NamedTuple):
    """`knots`: of the recording's clock. `offset_ns`: host time less the recording's at the first mark; `drift_ppm`:
    how much faster the recording's clock runs, known to `drift_error_ppm`; `bound_ns`: the largest between the marks;
    `correlation`: the lower one of the two marks."""

    knots: list[Knot]
    offset_ns: int
    drift_ppm: float
    drift_error_ppm: float
    bound_ns: int
    correlation: float


def pattern(source: random.Random) -> tuple[bool, ...]:
    """A pattern of pairing.pattern() with RISES bursts behind a rest at least, the first slot a rest."""
    while True:
        slots = pairing.pattern(source)
        if not slots[0] and sum(burst and not rest for rest, burst in zip(slots, slots[1:])) >= RISES:
            return slots


def marks(events: Sequence[Mapping]) -> list[Mark]:
    """The marks of a run, in order, by its events."""
    found = []
    for event in events:
        if event.get("kind") != EVENT:
            continue
        try:
            slots = tuple(letter == "1" for letter in str(event["slots"]))
            rises = tuple((int(a), int(z)) for a, z in event["rises_ns"])
            begin_ns, slot_ns = int(event["begin_ns"]), int(event["slot_ns"])
            done = tuple(int(each) for each in event["slot_bytes"])
        except (KeyError, TypeError, ValueError):
            continue
        if slot_ns > 0 and len(done) == len(slots) > 0 and all(a <= z for a, z in rises):
            found.append(Mark(begin_ns, slot_ns, slots, done, rises))
    return found


def find(recording: Recording, wanted: Sequence[Mark]) -> Found:
    """The clock of a recording by the first and the last mark of its run.

    Raises UsageError where they are not in it."""
    if len(wanted) < 2:
        raise UsageError("a run with a mark at both ends", f"{len(wanted)} marks", "run it again with --sync")
    first, last = wanted[0], wanted[-1]
    grid, watts = _on_grid(recording)
    period_ns = max(int(np.median(np.diff(rail.t_ns))) for rail in recording.rails)
    slot = first.slot_ns
    if period_ns * pairing.LEAST_SAMPLES > slot * (1 - pairing.SETTLE):
        seen = f"one in {period_ns / 1e6:.3g} ms"
        raise UsageError(f"{pairing.LEAST_SAMPLES} samples in a burst of {slot / 1e6:g} ms", seen, "record it faster")
    at, correlation = _coarse(grid, watts, first, last)
    ends = [_offset(recording, mark, own_ns - mark.begin_ns, period_ns) for mark, own_ns in zip((first, last), at)]
    (offset_a, bound_a), (offset_z, bound_z) = ends
    hosts = [mark.begin_ns + len(mark.slots) * mark.slot_ns // 2 for mark in (first, last)]
    span_ns = hosts[1] - hosts[0]
    knots, most = [], 0
    margin = max(10**10, span_ns // 4)
    for host in np.unique(np.linspace(hosts[0] - margin, hosts[1] + margin, 2 * KNOTS).astype(np.int64)).tolist():
        share = (host - hosts[0]) / span_ns
        offset = round(offset_a + share * (offset_z - offset_a))
        inside = min(max(share, 0.0), 1.0)
        beyond_ns = max(hosts[0] - host, host - hosts[1], 0)
        bound = bound_a + inside * (bound_z - bound_a) + 2e-6 * STEADY_PPM * span_ns * inside * (1 - inside)
        bound += beyond_ns * ((bound_a + bound_z) / span_ns + 1e-6 * STEADY_PPM)
        knots.append(Knot(host - offset, host, round(bound)))
        most = max(most, round(bound)) if not beyond_ns else most
    drift_ppm = -1e6 * (offset_z - offset_a) / span_ns
    return Found(knots, round(offset_a), drift_ppm, 1e6 * (bound_a + bound_z) / span_ns, most, correlation)


def _on_grid(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """Edges (the recording's own ns) and the mean power of all rails between them."""
    begin = max(int(rail.t_ns[0]) for rail in recording.rails)
    end = min(int(rail.t_ns[-1]) for rail in recording.rails)
    edges = np.arange(begin, end, GRID_NS, dtype=np.int64)
    if len(edges) < 2:
        raise UsageError("a recording that is longer than a mark", f"{(end - begin) / 1e9:.3g} s", DO)
    return edges, np.sum([np.diff(_joules(rail, edges)) for rail in recording.rails], axis=0) / (GRID_NS * 1e-9)


def _joules(rail: Any, at_ns: np.ndarray) -> np.ndarray:
    """Energy of a rail up to its own times: a sample stands for the time since the one before it."""
    since = (rail.t_ns - rail.t_ns[0]).astype(float)
    joules = np.concatenate([[0.0], np.cumsum(rail.W[1:] * np.diff(since))]) * 1e-9
    return np.interp((at_ns - rail.t_ns[0]).astype(float), since, joules)


def _coarse(grid: np.ndarray, watts: np.ndarray, first: Mark, last: Mark) -> tuple[list[int], float]:
    """Where both marks begin, by the recording's own clock, and the lower correlation. Raises UsageError."""
    of_first, of_last = _correlation(watts, first), _correlation(watts, last)
    apart = (last.begin_ns - first.begin_ns) / GRID_NS
    reach = int(np.ceil(apart * DRIFT_PPM * 1e-6)) + 2
    best: tuple[float, int, int, float] | None = None
    heights = of_first.copy()
    for _ in range(CANDIDATES):
        if not len(heights) or heights.max() < LEAST_CORRELATION:
            break
        at = int(np.argmax(heights))
        heights[max(0, at - 5) : at + 6] = -1
        low, high = max(0, round(at + apart) - reach), round(at + apart) + reach + 1
        if low >= len(of_last) or not len(of_last[low:high]):
            continue
        other = low + int(np.argmax(of_last[low:high]))
        together = of_first[at] + of_last[other]
        if best is None or together > best[0]:
            best = together, at, other, min(of_first[at], of_last[other])
    if best is None or best[3] < LEAST_CORRELATION:
        top = [float(of.max()) if len(of) else 0.0 for of in (of_first, of_last)]
        seen = f"correlations of at most {top[0]:.2f} with the first and {top[1]:.2f} with the last, not together"
        raise UsageError("both marks of the run in the recording", seen, DO)
    at = [int(grid[best[1]]), int(grid[best[2]])]
    chance = _chance(grid, watts, (first, last), at) * len(of_first)
    if chance > pairing.ALPHA:
        seen = f"a pattern that chance makes with p {chance:.2g} (at most {pairing.ALPHA:g})"
        raise UsageError("both marks of the run in the recording", seen, DO)
    return at, float(best[3])


def _template(mark: Mark) -> np.ndarray:
    """The pattern on the grid, without its mean, of norm 1."""
    n = round(len(mark.slots) * mark.slot_ns / GRID_NS)
    at_ns = np.arange(n) * GRID_NS
    slot = np.minimum((at_ns // mark.slot_ns).astype(int), len(mark.slots) - 1)
    burst, followed = np.array(mark.slots)[slot], np.array([*mark.slots[1:], False])[slot]
    shape = (burst & (followed | (at_ns % mark.slot_ns < BURST_SHARE * mark.slot_ns))).astype(float)
    shape -= shape.mean()
    return shape / np.linalg.norm(shape)


def _correlation(watts: np.ndarray, mark: Mark) -> np.ndarray:
    """Correlation of power with the pattern that begins at each step of the grid."""
    template = _template(mark)
    n = len(template)
    if len(watts) < n:
        return np.zeros(0)
    size = 1 << int(np.ceil(np.log2(len(watts) + n)))
    level = watts - watts.mean()
    dot = np.fft.irfft(np.fft.rfft(level, size) * np.conj(np.fft.rfft(template, size)), size)[: len(watts) - n + 1]
    sums, squares = (np.cumsum(np.concatenate([[0.0], part])) for part in (level, level**2))
    variance = (squares[n:] - squares[:-n]) - (sums[n:] - sums[:-n]) ** 2 / n
    least = 1e-12 * max(float(squares[-1]), 1e-30)
    return np.where(variance > least, dot / np.sqrt(np.maximum(variance, least)), 0.0)


def _chance(grid: np.ndarray, watts: np.ndarray, wanted: Sequence[Mark], at: Sequence[int]) -> float:
    """How likely a recording that knows nothing of the marks fits both as well, at one place."""
    p = []
    for mark, own_ns in zip(wanted, at, strict=True):
        edges = own_ns + mark.slot_ns * np.arange(len(mark.slots) + 1, dtype=np.int64)
        rail = pairing.slots_of(grid[1:], watts, edges, 0.0)
        found = pairing.look(mark.slots, mark.slot_bytes, mark.slot_ns / 1e9, rail)
        p.append(1.0 if found.p is None else found.p)
    return pairing.combined(p)


def _offset(recording: Recording, mark: Mark, roughly_ns: int, period_ns: int) -> tuple[float, float]:
    """(host time less the recording's, its bound) at a mark, ns. `roughly_ns`: the recording's less host time. Raises
    UsageError where its rises do not agree."""
    found = []
    for begin_ns, end_ns in mark.rises:
        middle = (begin_ns + end_ns) // 2
        own = _rise(recording, middle + roughly_ns, end_ns - begin_ns)
        if own is not None:
            found.append((middle - own, (end_ns - begin_ns) / 2))
    if len(found) < LEAST_RISES:
        seen = f"{len(found)} of {len(mark.rises)}"
        raise UsageError(f"at least {LEAST_RISES} bursts of a mark whose rise is seen", seen, DO)
    offsets, halves = (np.array(column) for column in zip(*found, strict=True))
    quick = halves <= QUICK * max(float(np.sort(halves)[LEAST_RISES - 1]), period_ns / 2)
    offsets, halves = offsets[quick], halves[quick]
    middle = np.median(offsets)
    usual = np.median(np.abs(offsets - middle))
    keep = np.abs(offsets - middle) <= AGREE * max(float(usual), period_ns / 2)
    offset = float(offsets[keep].mean())
    scatter = CERTAIN * float(offsets[keep].std(ddof=1)) / np.sqrt(keep.sum())
    bound = min(scatter, float(np.abs(offsets[keep] - offset).max())) + float(halves[keep].max()) + period_ns
    return offset, bound


def _rise(recording: Recording, own_ns: int, lasts_ns: int) -> float | None:
    """The recording's own time at which its power rises near `own_ns`, by the area below the step; None where there is
    no step."""
    edge = own_ns
    for reach_ns in (SKIP_NS, SKIP_NS, NEAR_NS, NEAR_NS):
        half_ns = reach_ns + lasts_ns
        levels = []
        for begin, end in ((edge - AROUND_NS, edge - SKIP_NS), (edge + SKIP_NS, edge + AROUND_NS)):
            joules = _energy(recording, np.array([begin, end], np.int64))
            if joules is None:
                return None
            levels.append(float(joules[1] - joules[0]) / ((end - begin) * 1e-9))
        low, high = levels
        window = _energy(recording, np.array([edge - half_ns, edge + half_ns], np.int64))
        if window is None or high <= low:
            return None
        above_s = (float(window[1] - window[0]) - low * 2e-9 * half_ns) / (high - low)
        moved = edge + half_ns - round(above_s * 1e9)
        if abs(moved - edge) > half_ns:
            return None
        edge = moved
    return float(edge)


def _energy(recording: Recording, at_ns: np.ndarray) -> np.ndarray | None:
    """Energy of all rails up to these own times; None where a rail was not recorded."""
    if any(at_ns[0] < rail.t_ns[0] or at_ns[-1] > rail.t_ns[-1] for rail in recording.rails):
        return None
    parts = []
    for rail in recording.rails:
        a, z = np.searchsorted(rail.t_ns, [at_ns[0], at_ns[-1]])
        parts.append(
            _joules(rail._replace(t_ns=rail.t_ns[max(0, a - 1) : z + 1], W=rail.W[max(0, a - 1) : z + 1]), at_ns)
        )
    return np.sum(parts, axis=0)
