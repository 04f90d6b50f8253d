"""Where the marks of a run are in a recording of another instrument: its clock's offset and drift, with their bound.

A mark is bursts and rests of I/O at known host times: a random pattern, then trains of bursts (run/sync_marks.py). Two
marks, before the first step and after the last, are found coarsely by the correlation of power with the pattern, at
every offset and up to DRIFT_PPM between the two. Then each burst's rise is timed by its area: the time at which a step
between the levels on both sides would have to lie for the same energy.

The same is done to the I/O of the host, once with all bytes at their submission and once at their end. The drive spends
an I/O's energy between the two, and wakes between the first submission and the first end: these four times are the
interval of the rise by the host's clock (rise()). A burst that a busy host drew badly has a long interval, or none.

Each rise gives an offset: the middle of its interval less the recording's time, off by half of the interval and by
noise. The mean over the k rises with the shortest intervals is off by at most the mean of their halves, CERTAIN
standard errors, and a sample, because an instrument may stamp a sample anywhere in it. k is what makes that least.

A recording with samples that are longer than SLOW_NS has no levels on both sides, and a very busy host makes hardly an
edge. Then the offset is the one at which the pattern fits best, off by a sample and by the time in which a burst before
a rest ends.

Between the marks the offset is a line. The recording's clock may bend by STEADY_PPM of rate either way: a crystal at
room temperature stays within it; a computer's clock that is being set does not."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.base.words import digits
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
SKIP_NS = 30_000_000  # next to the rise, of either level
HALVES_NS = (30_000_000, 30_000_000, 10_000_000, 10_000_000)  # of the window of the area, as it closes in
BURST_SHARE = 0.8  # of a slot before a rest, in which a burst begins I/Os
LEAST_RISES = 5  # that are seen
RISES = 6  # of a pattern
CERTAIN = 3.3  # standard errors of the mean of many rises: 1 in 1000 is further off
AGREE = 4.0  # times the median deviation: a rise that is further off is left out
MEDIAN_SHARE = 0.6745  # the median deviation of normal noise, of its standard deviation
SLOW_NS = 15_000_000
SLOW_STEP_NS, SLOW_REACH_NS = 2_000_000, 200_000_000  # of the offsets at which the pattern is fitted
KNOTS = 33
DO = "record from before the run's beginning to after its end, on the rail that feeds the drive; the run needs --sync"


class Mark(NamedTuple):
    """`slots`: True where bursts were asked for; `rises`: host ns between which the rise of a burst is, see rise();
    those of the trains after the pattern, too."""

    begin_ns: int
    slot_ns: int
    slots: tuple[bool, ...]
    slot_bytes: tuple[int, ...]
    rises: tuple[tuple[int, int], ...]


class Match(NamedTuple):
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


def marks(events: Sequence[Mapping], lag_ns: int = 0) -> list[Mark]:
    """The marks of a run, in order, by its events.

    lag_ns: by which the drive's power comes after its cause; of a SIMULATED one, which states it (power_lag_ms)."""
    marks_of_run = []
    for event in events:
        if event.get("kind") != EVENT:
            continue
        try:
            slots = tuple(letter == "1" for letter in str(event["slots"]))
            rises = tuple((int(a) + lag_ns, int(z) + lag_ns) for a, z in event["rises_ns"])
            begin_ns, slot_ns = int(event["begin_ns"]), int(event["slot_ns"])
            done = tuple(int(count) for count in event["slot_bytes"])
        except (KeyError, TypeError, ValueError):
            continue
        if slot_ns > 0 and len(done) == len(slots) > 0 and all(a <= z for a, z in rises):
            marks_of_run.append(Mark(begin_ns, slot_ns, slots, done, rises))
    return marks_of_run


def find(recording: Recording, wanted: Sequence[Mark]) -> Match:
    """The clock of a recording by the first and the last mark of its run.

    Raises UsageError where they are not in it."""
    if len(wanted) < 2:
        raise UsageError("a run with a mark at both ends", f"{len(wanted)} marks", "run it again with --sync")
    first, last = wanted[0], wanted[-1]
    grid, watts = _on_grid(recording)
    period_ns = max(int(np.median(np.diff(rail.t_ns))) for rail in recording.rails)
    slot = first.slot_ns
    if period_ns > slot // 2:
        seen = f"one in {digits(period_ns / 1e6, 3)} ms"
        raise UsageError(f"2 samples in a burst of {slot / 1e6:g} ms", seen, "record it faster")
    at, correlation = _coarse(grid, watts, first, last)
    offset_of = _offset if period_ns <= SLOW_NS else _offset_slow
    ends = [offset_of(recording, mark, own_ns - mark.begin_ns, period_ns) for mark, own_ns in zip((first, last), at)]
    (offset_a, bound_a, host_a), (offset_z, bound_z, host_z) = ends
    hosts = host_a, host_z
    span_ns = host_z - host_a
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
    return Match(knots, round(offset_a), drift_ppm, 1e6 * (bound_a + bound_z) / span_ns, most, correlation)


def _on_grid(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """Edges (the recording's own ns) and the mean power of all rails between them."""
    begin = max(int(rail.t_ns[0]) for rail in recording.rails)
    end = min(int(rail.t_ns[-1]) for rail in recording.rails)
    edges = np.arange(begin, end, GRID_NS, dtype=np.int64)
    if len(edges) < 2:
        raise UsageError("a recording that is longer than a mark", f"{digits((end - begin) / 1e9, 3)} s", DO)
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
        seen = f"a pattern that chance makes with p {digits(chance, 2)} (at most {pairing.ALPHA:g})"
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
        look = pairing.look(mark.slots, mark.slot_bytes, mark.slot_ns / 1e9, rail)
        p.append(1.0 if look.p is None else look.p)
    return pairing.combined(p)


def rise(ios_ns: Sequence[tuple[int, int]], begin_ns: int, end_ns: int) -> tuple[int, int] | None:
    """Host ns between which the power of a burst rises; None where its I/O makes no rise.

    ios_ns: submission and end of each I/O of the mark, of one length, in order of submission.
    begin_ns, end_ns: within which the burst's I/Os were submitted."""
    asked, done = np.array(ios_ns, np.int64).reshape(-1, 2).T
    a, z = np.searchsorted(asked, [begin_ns, end_ns])
    if a == z:
        return None
    edges = [float(asked[a]), float(done[a:z].min())]
    for times in (asked, np.sort(done)):
        for halves_ns in (HALVES_NS, HALVES_NS[:2]):
            edge = _edge(lambda at_ns, times=times: np.searchsorted(times, at_ns).astype(float), edges[0], halves_ns)
            if edge is None:
                return None
            edges.append(edge)
    return round(min(edges)), round(max(edges))


def _edge(total: Callable[[np.ndarray], np.ndarray | None], edge_ns: float, halves_ns: Sequence[int]) -> float | None:
    """The time of a step near `edge_ns`, by the area below it; None without a step.

    total: energy, or I/Os, up to these times; None outside the recording."""
    for half_ns in halves_ns:
        away = np.array([-AROUND_NS, -SKIP_NS, -half_ns, half_ns, SKIP_NS, AROUND_NS])
        values = total(round(edge_ns) + away)
        if values is None:
            return None
        low, high = (float(values[at + 1] - values[at]) / (AROUND_NS - SKIP_NS) for at in (0, 4))
        if high <= low:
            return None
        above_ns = (float(values[3] - values[2]) - low * 2 * half_ns) / (high - low)
        moved_ns = half_ns - above_ns
        if abs(moved_ns) > half_ns:
            return None
        edge_ns = round(edge_ns) + moved_ns
    return edge_ns


def _offset(recording: Recording, mark: Mark, roughly_ns: int, period_ns: int) -> tuple[float, float, int]:
    """(host time less the recording's, its bound, the host time of both) at a mark, ns. `roughly_ns`: the recording's
    less host time. Raises UsageError where the recording does not have all of the mark."""
    halves_ns = HALVES_NS if 3 * period_ns <= 2 * HALVES_NS[-1] else HALVES_NS[:2]
    rows = []
    for begin_ns, end_ns in mark.rises:
        middle = (begin_ns + end_ns) // 2
        own = _edge(lambda at_ns: _energy(recording, at_ns), middle + roughly_ns, halves_ns)
        noise_ns = None if own is None else _noise_ns(recording, round(own), halves_ns[-1])
        if own is not None and noise_ns is not None and noise_ns < halves_ns[-1]:
            rows.append((middle - own, (end_ns - begin_ns) / 2, noise_ns, middle - mark.begin_ns))
    best = None
    rows.sort(key=lambda row: row[1])
    for many in range(LEAST_RISES, len(rows) + 1):
        offsets, halves, noises, since_ns = np.array(rows[:many]).T
        away = np.abs(offsets - np.median(offsets))
        usual = max(float(np.median(away)), MEDIAN_SHARE * float(np.median(noises)))
        keep = away <= AGREE / MEDIAN_SHARE * usual
        n = int(keep.sum())
        if n < LEAST_RISES:
            continue
        scatter = max(float(offsets[keep].std(ddof=1)), float(np.sqrt(np.mean(noises[keep] ** 2))))
        bound = float(halves[keep].mean()) + _certain(n) * scatter / np.sqrt(n) + period_ns
        if best is None or bound < best[1]:
            best = float(offsets[keep].mean()), bound, mark.begin_ns + round(float(since_ns[keep].mean()))
    return best or _offset_slow(recording, mark, roughly_ns, period_ns)


def _certain(n: int) -> float:
    """Standard errors of the mean of n values whose scatter is their own, for CERTAIN of many: Student's t, within
    5 % from n = 5 on."""
    return CERTAIN * (1 + 2.8 / (n - 1) + 13 / (n - 1) ** 2)


def _noise_ns(recording: Recording, own_ns: int, half_ns: int) -> float | None:
    """Standard deviation that the samples' noise makes of a rise by its area; None where there are too few."""
    step_W, squares = 0.0, 0.0
    for sign in (-1, 1):
        begin, end = sorted((own_ns + sign * SKIP_NS, own_ns + sign * AROUND_NS))
        for rail in recording.rails:
            a, z = np.searchsorted(rail.t_ns, [begin, end], "right")
            watts = rail.W[a + 1 : z]
            if len(watts) < 2:
                return None
            step_W += sign * float(watts.mean())
            squares += float(watts.var(ddof=1)) * (end - begin) / len(watts) / 2
    if step_W <= 0:
        return None
    return float(np.sqrt(squares * (2 * half_ns + 2 * half_ns**2 / (AROUND_NS - SKIP_NS)))) / step_W


def _offset_slow(recording: Recording, mark: Mark, roughly_ns: int, period_ns: int) -> tuple[float, float, int]:
    """_offset() of a recording with long samples, or of a mark with hardly an edge."""
    shares = _shares(mark)
    own_begin = mark.begin_ns + roughly_ns
    base = recording.rails[0].t_ns
    a, z = np.searchsorted(base, [own_begin - mark.slot_ns, own_begin + (len(mark.slots) + 1) * mark.slot_ns])
    at_ns = base[max(0, a - 1) : z]
    joules = _energy(recording, at_ns) if len(at_ns) > len(mark.slots) // 2 else None
    if joules is None:
        raise UsageError("a recording that is longer than its marks", f"{len(at_ns)} samples of one", DO)
    watts = np.diff(joules) / (np.diff(at_ns) * 1e-9)
    watts = watts - watts.mean()
    moves = np.arange(-SLOW_REACH_NS, SLOW_REACH_NS + 1, SLOW_STEP_NS)
    since = (at_ns - own_begin).astype(float)
    fits = []
    for move in moves.tolist():
        drawn = np.diff(np.interp(since - move, *shares)) / np.diff(at_ns)
        drawn -= drawn.mean()
        norm = float(np.linalg.norm(drawn))
        fits.append(float(drawn @ watts) / norm if norm else -np.inf)
    best = int(np.argmax(fits))
    model = [
        np.diff(np.interp(since - moves[best] + way * SLOW_STEP_NS, *shares)) / np.diff(at_ns) for way in (-1, 0, 1)
    ]
    drawn = model[1] - model[1].mean()
    step_W = float(drawn @ watts) / float(drawn @ drawn)
    rest_W = float(np.std(watts - step_W * drawn, ddof=2))
    slope = step_W * float(np.linalg.norm(model[2] - model[0])) / (2 * SLOW_STEP_NS)
    noise_ns = rest_W / slope if slope > 0 else float(SLOW_REACH_NS)
    bound = period_ns + (1 - BURST_SHARE) * mark.slot_ns + 2 * CERTAIN * noise_ns + SLOW_STEP_NS
    return float(-roughly_ns - moves[best]), bound, mark.begin_ns + len(mark.slots) * mark.slot_ns // 2


def _shares(mark: Mark) -> tuple[np.ndarray, np.ndarray]:
    """(ns since the mark's begin, ns of bursts up to then)"""
    edges, total = [0.0], [0.0]
    for burst, followed in zip(mark.slots, (*mark.slots[1:], False)):
        lasts = (1.0 if followed else BURST_SHARE) * mark.slot_ns if burst else 0.0
        begin, before = edges[-1], total[-1]
        if 0 < lasts < mark.slot_ns:
            edges.append(begin + lasts)
            total.append(before + lasts)
        edges.append(begin + mark.slot_ns)
        total.append(before + lasts)
    return np.array(edges), np.array(total)


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
