"""The rails of a run of any length, reduced while their samples are read to steps between given host times: at each
edge the running energy and the number of samples before it, in each step between two edges the extremes and the largest
clock error. rig.bin is read twice, first for the heads of its frames, some hundred bytes for fifty samples; each sample
is decoded once. power.Power answers for any edges, this for those that it was made for.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.meter import rails, ranges, samples, uncertainty
from ssdrig.meter.clock import ClockMap
from ssdrig.meter.closure import Closure, brackets, closed
from ssdrig.meter.fast import Peaks, of_rail
from ssdrig.meter.frames import Decoder, Places
from ssdrig.meter.pieces import Piece, Stream, clocks_of
from ssdrig.meter.power import Gaps

Watch = Callable[
    [np.ndarray, np.ndarray], None
]  # is given all samples in order: t_ns (int64), P or the sum of all rails
Heads = tuple[Decoder, dict[str, int], dict[int, ClockMap]]  # see samples.decoded and pieces.clocks_of


@dataclass
class Reduced:
    """One rail of one run, of these edges; others raise ValueError."""

    rail: int
    name: str
    facts: dict | None  # the rail's entry of the last hello that named it
    counts: dict  # see power.Power
    edges_ns: np.ndarray  # int64 (edges,), rising
    running_J: np.ndarray  # float64 (edges,)
    before: np.ndarray  # int64 (edges,): samples before each
    clipped: np.ndarray  # int64 (edges,): those of them at the end of the sensor's range
    clock_error_ns: np.ndarray  # float64 (steps,): the largest; 0 without samples
    sums_W: np.ndarray  # float64 (2, steps): of its samples' powers, and of their squares
    low: np.ndarray  # float64 (2, steps): how many of its samples belong to the low range, sum of their powers
    own_W: "Extremes"
    sum_W: "Extremes"  # of all rails together, on the grid of rails.py
    near: "Near"  # the same around the edges that are `timed`
    gaps: Gaps
    timed: uncertainty.Edges  # see edges()
    span_ns: tuple[int, int] | None = None  # times of the first and the last sample
    mean_V: float = float("nan")  # of the samples at which the rail had power
    closure: Closure | None = None
    fast: Peaks | None = None  # of the fast current channel; None: the rail has none

    @property
    def energy_filled_J(self) -> float:
        return float(self.gaps.J.sum())

    def integral_J(self, edges_ns) -> np.ndarray:
        """See power.integral_J."""
        return self.running_J[self._at(edges_ns)]

    def edges(self, t_ns) -> uncertainty.Edges:
        """See power.Power; of `timed` edges."""
        return self.timed.at(_places_of(self.timed.t_ns, t_ns))

    def samples_before(self, edges_ns) -> np.ndarray:
        """Number of samples before each edge."""
        return self.before[self._at(edges_ns)]

    def clipped_before(self, edges_ns) -> np.ndarray:
        """Those of them at the end of the sensor's range."""
        return self.clipped[self._at(edges_ns)]

    def clipped_in(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """See power.Power."""
        both = [begin_ns, end_ns]
        return int(np.diff(self.clipped_before(both))[0]), int(np.diff(self.samples_before(both))[0])

    def scatters_W(self, edges_ns) -> np.ndarray:
        """float64 (2, steps): sum of the powers of the samples in each step, and of their squares."""
        at = self._at(edges_ns)
        return np.add.reduceat(self.sums_W[:, : at[-1]], at[:-1], axis=1) if len(at) > 1 else np.empty((2, 0))

    def scatter(self, begin_ns: int, end_ns: int) -> tuple[int, float]:
        """How many samples lie between two edges, and the standard deviation of their power (W)."""
        samples = self.clipped_in(begin_ns, end_ns)[1]
        return samples, uncertainty.deviation_W(samples, *self.scatters_W([begin_ns, end_ns])[:, 0].tolist())

    def lows(self, edges_ns) -> np.ndarray:
        """float64 (2, steps): how many samples in each step belong to the low range, and the sum of their powers."""
        at = self._at(edges_ns)
        return np.add.reduceat(self.low[:, : at[-1]], at[:-1], axis=1) if len(at) > 1 else np.empty((2, 0))

    def low_in(self, begin_ns: int, end_ns: int) -> tuple[int, float]:
        """See power.Power."""
        count, sum_W = self.lows([begin_ns, end_ns])[:, 0].tolist()
        return int(count), sum_W

    def largest_error_ns(self, edges_ns) -> np.ndarray:
        """Largest error of the clock in each step; 0 without samples."""
        return self._over(np.maximum, self.clock_error_ns, edges_ns)

    def extremes_W(self, edges_ns, of_sum: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest power in each step, of this rail or of the sum; not-a-number without samples."""
        extremes = self.sum_W if of_sum else self.own_W
        return self._over(np.fmin, extremes.lowest, edges_ns), self._over(np.fmax, extremes.highest, edges_ns)

    def _at(self, edges_ns) -> np.ndarray:
        return _places_of(self.edges_ns, edges_ns)

    def _over(self, ufunc: np.ufunc, values: np.ndarray, edges_ns) -> np.ndarray:
        at = self._at(edges_ns)
        return ufunc.reduceat(values[: at[-1]], at[:-1]) if len(at) > 1 else np.empty(0)


def _places_of(edges_ns: np.ndarray, wanted_ns) -> np.ndarray:
    wanted = np.asarray(wanted_ns, np.int64)
    at = np.searchsorted(edges_ns, wanted)
    if len(wanted) and (at.max() >= len(edges_ns) or (edges_ns[at] != wanted).any()):
        raise ValueError("the samples were not reduced to these edges")
    return at


class Asked(NamedTuple):
    """Edges (host ns, in any order) of windows that figures are made of, and by how much each may itself be off, before
    the clock's error (fio's own clock against the host's)."""

    t_ns: np.ndarray  # int64
    error_ns: np.ndarray  # float64

    @classmethod
    def of(cls, t_ns, error_ns: float = 0.0) -> "Asked":
        edges = np.asarray(t_ns, np.int64)
        return cls(edges, np.full(len(edges), float(error_ns)))

    @classmethod
    def together(cls, lists: Iterable["Asked"]) -> "Asked":
        """All edges together; one that several ask for has the largest error."""
        lists = [cls.of([]), *lists]
        t_ns, which = np.unique(np.concatenate([one.t_ns for one in lists]), return_inverse=True)
        error_ns = np.zeros(len(t_ns))
        np.maximum.at(error_ns, which, np.concatenate([one.error_ns for one in lists]))
        return cls(t_ns, error_ns)


def extremes_W(powers: list[Reduced], edges_ns) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest power in each step of one rail, or of the sum of all; not-a-number where it is not known."""
    seen = rails.known(powers, edges_ns)
    lowest, highest = powers[0].extremes_W(edges_ns, of_sum=len(powers) > 1)
    return np.where(seen, lowest, np.nan), np.where(seen, highest, np.nan)


class Extremes:
    """Lowest and highest value in each step between edges (float64), not-a-number without any."""

    def __init__(self, edges_ns: np.ndarray):
        self.edges_ns, steps = edges_ns, max(0, len(edges_ns) - 1)
        self.lowest, self.highest = np.full(steps, np.nan), np.full(steps, np.nan)

    def add(self, t_ns: np.ndarray, values: np.ndarray) -> None:
        """Values at times that do not fall, nor lie before those of the last call; not-a-numbers count for nothing."""
        steps, begins, end = cut(self.edges_ns, t_ns)
        for ufunc, out in ((np.fmin, self.lowest), (np.fmax, self.highest)) if len(steps) else ():
            out[steps] = ufunc(out[steps], ufunc.reduceat(values[:end], begins))


class Near(NamedTuple):
    """The highest power near edges that may each be off by their error. float64 W (edges,), not-a-number without
    samples there."""

    t_ns: np.ndarray  # int64 (edges,), rising
    error_ns: np.ndarray  # int64 (edges,)
    extremes: Extremes  # between the edges, and the times that are off by their error

    @classmethod
    def of(cls, t_ns: np.ndarray, error_ns: np.ndarray) -> "Near":
        off_ns = np.ceil(error_ns).astype(np.int64)
        return cls(t_ns, off_ns, Extremes(np.unique(np.concatenate([t_ns - off_ns, t_ns, t_ns + off_ns]))))

    def before_W(self, t_ns) -> np.ndarray:
        """Within its error before each of these edges."""
        at = _places_of(self.t_ns, t_ns)
        return self._highest_W(self.t_ns[at] - self.error_ns[at], self.t_ns[at])

    def after_W(self, t_ns) -> np.ndarray:
        """Within its error after each of these edges."""
        at = _places_of(self.t_ns, t_ns)
        return self._highest_W(self.t_ns[at], self.t_ns[at] + self.error_ns[at])

    def since_W(self, t_ns) -> np.ndarray:
        """From each edge but the last, and its error, to the next one."""
        at = _places_of(self.t_ns, t_ns)
        return self._highest_W(self.t_ns[at[:-1]] + self.error_ns[at[:-1]], self.t_ns[at[1:]])

    def until_W(self, t_ns) -> np.ndarray:
        """From each edge but the last to the next one less its error."""
        at = _places_of(self.t_ns, t_ns)
        return self._highest_W(self.t_ns[at[:-1]], self.t_ns[at[1:]] - self.error_ns[at[1:]])

    def _highest_W(self, from_ns: np.ndarray, to_ns: np.ndarray) -> np.ndarray:
        first, last = (np.searchsorted(self.extremes.edges_ns, at) for at in (from_ns, to_ns))
        highest = self.extremes.highest
        out = np.full(len(first), np.nan)
        for i in np.flatnonzero(last > first):
            out[i] = np.fmax.reduce(highest[first[i] : last[i]])
        return out


def cut(edges_ns: np.ndarray, t_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Which steps some of these times (int64, one or more, not falling) lie in, the position of the first in each, and
    the end of the last."""
    first, last = (np.searchsorted(edges_ns, t_ns[[0, -1]], "right") - 1).tolist()
    inner = np.searchsorted(t_ns, edges_ns[first + 1 : last + 1])
    begins, ends = np.append(0, inner), np.append(inner, len(t_ns))
    steps = np.arange(first, last + 1)
    some = (begins < ends) & (steps >= 0) & (steps < len(edges_ns) - 1)
    return steps[some], begins[some], int(ends[some].max(initial=0))


def heads(run: str | os.PathLike) -> Heads:
    """The frames of a run folder without their samples. Raises JournalError without a run folder."""
    decoder, short = samples.decoded(run, Places)
    return decoder, short, clocks_of(decoder)


def seconds_with_samples(run: str | os.PathLike) -> list[np.ndarray]:
    """For each rail of the rig the seconds (int64, of CLOCK_MONOTONIC, rising) that have a sample. Raises what
    samples.load_rails raises."""
    decoder, _, clocks = heads(run)
    numbers, seconds_of = samples.rails_of(decoder), []
    samples.need_some(run, decoder, any(len(decoder.frames(rail).n) for rail in numbers))  # there may be no file
    with open(Path(run) / "rig.bin", "rb") as file:
        for rail in numbers:
            stream = Stream(file.fileno(), decoder, rail)
            stream.fit(clocks)
            of = [np.unique(piece.t_ns[1:] // samples.SECOND_NS) for piece in stream.pieces()]
            seconds_of.append(np.unique(np.concatenate([np.empty(0, np.int64), *of])))
    samples.need_some(run, decoder, any(len(of) for of in seconds_of))
    return seconds_of


def load_rails(
    run: str | os.PathLike,
    edges_ns,
    loaded: Heads | None = None,
    watch: Watch | None = None,
    timed: Asked | None = None,
) -> list[Reduced]:
    """Every rail of the rig, ordered by number, for these edges (int64 host ns, in any order) and those that are
    `timed`. found: heads() of the run, where they have been read. watch: receives all samples, to store some of them.
    Raises what samples.load_rails raises."""
    decoder, short, clocks = loaded or heads(run)
    numbers = samples.rails_of(decoder)
    timed = Asked.together([timed] if timed else [])
    edges, made = np.unique(np.concatenate([np.asarray(edges_ns, np.int64), timed.t_ns])), []
    samples.need_some(run, decoder, any(len(decoder.frames(rail).n) for rail in numbers))  # there may be no file
    with open(Path(run) / "rig.bin", "rb") as file:
        for rail in numbers:
            stream = Stream(file.fileno(), decoder, rail)
            stream.fit(clocks)
            made.append(_Rail(stream, decoder, edges, clocks, timed))
        samples.need_some(run, decoder, any(one.stream.samples for one in made))
        sum_W = made[0].out.own_W if len(made) == 1 else Extremes(edges)
        error_ns = [one.out.timed.error_ns for one in made]
        near = Near.of(timed.t_ns, np.max(error_ns, axis=0) if made else timed.error_ns)
        together = _Sum([one.stream.samples for one in made], (sum_W, near.extremes), watch)
        for i, piece in _by_time([one.pieces() for one in made]):
            together.take(i, piece)
    for one in made:
        one.end()
        one.out.sum_W, one.out.near, one.out.counts = sum_W, near, one.out.counts | short
    return [one.out for one in made]


def _by_time(rails_pieces: list[Iterator[Piece]]) -> Iterator[tuple[int, Piece]]:
    """All pieces with the position of their rail; next is always the rail with the earliest time."""
    reached_ns = dict.fromkeys(range(len(rails_pieces)), 0)
    while reached_ns:
        i = min(reached_ns, key=reached_ns.__getitem__)
        piece = next(rails_pieces[i], None)
        if piece is None:
            del reached_ns[i]
        else:
            reached_ns[i] = int(piece.t_ns[-1])
            yield i, piece


class _Rail:
    """One rail in the making."""

    def __init__(
        self, stream: Stream, decoder: Decoder, edges_ns: np.ndarray, clocks: dict[int, ClockMap], timed: Asked
    ):
        self.stream, n = stream, len(edges_ns)
        error_ns = timed.error_ns + stream.error_ns(timed.t_ns) + (stream.facts or {}).get("conversion_ns", 0)
        around = timed.t_ns[:, None] + np.rint(uncertainty.shifts_ns(error_ns)).astype(np.int64)
        self._around_order = np.argsort(around, axis=None, kind="stable")
        self._around_ns = around.ravel()[self._around_order]
        self._around_J, self._around_next = np.zeros(around.size), 0
        self.out = Reduced(
            stream.rail,
            decoder.rail_names().get(stream.rail, ""),
            stream.facts,
            stream.counts,
            edges_ns,
            np.zeros(n),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(max(0, n - 1)),
            np.zeros((2, max(0, n - 1))),
            np.zeros((2, max(0, n - 1))),
            Extremes(edges_ns),
            Extremes(edges_ns[:0]),
            Near.of(edges_ns[:0], np.empty(0)),
            Gaps(*[np.empty(0, np.int64)] * 7),
            uncertainty.Edges(timed.t_ns, error_ns, np.zeros(around.shape)),
        )
        energies = decoder.energies()
        mine = energies[energies["rail"] == stream.rail]
        self.out.fast = of_rail(stream.rail, decoder.fasts(), mine, decoder.boots, clocks)
        self._brackets, self._instead = brackets(stream.stretches(), mine, stream.rail, decoder.boots)
        ends = np.array([(one.first, one.last) for one in self._brackets], np.int64)
        self._asked = np.unique(ends)  # samples whose time and raw energy the closure needs
        self._ends, self._asked_ns, self._asked_J = ends.reshape(-1, 2), [np.empty(0, np.int64)], [np.empty(0)]
        self._counted = self._summed = self._answered = 0  # edges that are done, and of the asked samples
        self._volts_V, self._clipped, self._gaps, self._last_J = 0.0, 0, [self.out.gaps], 0.0
        self._lit, self._dark_V = 0, 0.0

    def pieces(self) -> Iterator[Piece]:
        for piece in self.stream.pieces():
            self._take(piece)
            yield piece

    def _take(self, piece: Piece) -> None:
        out, edges, t_ns = self.out, self.out.edges_ns, piece.t_ns[1:]
        steps, begins, end = cut(edges, t_ns)
        if len(steps):
            error_ns = largest_bound_ns(piece, begins, end).astype(np.float32)
            out.clock_error_ns[steps] = np.maximum(out.clock_error_ns[steps], error_ns)
            watts = piece.P[1 : end + 1]
            out.sums_W[0, steps] += np.add.reduceat(watts, begins)
            out.sums_W[1, steps] += np.add.reduceat(watts * watts, begins)
            if ranges.is_low(piece.facts):
                out.low[0, steps] += np.diff(np.append(begins, end))
                out.low[1, steps] += np.add.reduceat(watts, begins)
        out.own_W.add(t_ns, piece.P[1:])
        counted = slice(self._counted, int(np.searchsorted(edges, t_ns[-1], "right")))
        into = np.searchsorted(t_ns, edges[counted])
        out.before[counted] = piece.number + into
        out.clipped[counted] = self._clipped + np.searchsorted(piece.at_limit, into)
        summed = slice(self._summed, int(np.searchsorted(edges, t_ns[-1])))  # one at the last sample waits for the next
        out.running_J[summed] = between_J(piece.t_ns, piece.J, edges[summed])
        around = slice(self._around_next, int(np.searchsorted(self._around_ns, t_ns[-1])))
        self._around_J[around] = between_J(piece.t_ns, piece.J, self._around_ns[around])
        self._around_next = around.stop
        upto = piece.number + len(t_ns)
        answered = slice(self._answered, int(np.searchsorted(self._asked, upto)))
        asked = self._asked[answered] - piece.number + 1
        self._asked_ns.append(piece.t_ns[asked])
        self._asked_J.append(piece.raw_J[asked])
        self._counted, self._summed, self._answered = counted.stop, summed.stop, answered.stop
        if piece.lit:
            self._lit, self._volts_V = self._lit + piece.lit, self._volts_V + piece.volts_sum_V
        else:
            self._dark_V += piece.volts_sum_V
        self._clipped += len(piece.at_limit)
        self._gaps.append(piece.gaps)
        self._last_J = float(piece.J[-1])
        first_ns = out.span_ns[0] if out.span_ns else int(t_ns[0])
        out.span_ns = first_ns, int(t_ns[-1])

    def end(self) -> None:
        """No piece follows."""
        out, n = self.out, self.stream.samples
        out.before[self._counted :], out.clipped[self._counted :] = n, self._clipped
        out.running_J[self._summed :] = self._last_J
        self._around_J[self._around_next :] = self._last_J
        out.timed.J.ravel()[self._around_order] = self._around_J
        out.gaps = Gaps(*map(np.concatenate, zip(*self._gaps, strict=True)))
        if n:
            out.mean_V = self._volts_V / self._lit if self._lit else self._dark_V / n
            at = np.searchsorted(self._asked, self._ends)
            t_ns, raw_J = np.concatenate(self._asked_ns)[at], np.concatenate(self._asked_J)[at]
            out.closure = closed(self._brackets, self._instead, t_ns, self.stream.error_ns(t_ns), raw_J)


def largest_bound_ns(piece: Piece, begins: np.ndarray, end: int) -> np.ndarray:
    """The largest error of the samples' times from each of these positions to the next, of the last to `end`. It is
    linear between the knots of the clock: where ticks do not fall, samples next to knots and borders show it."""
    t_us = piece.t_us[:end]
    first, last = np.searchsorted(piece.clock.tick_us, t_us[[0, -1]] - piece.clock.base_us)
    # whole microseconds, or the search would turn all samples into floating point
    knots_us = np.ceil(piece.clock.tick_us[first:last]).astype(np.int64) + piece.clock.base_us
    borders = np.concatenate([begins, [end], np.searchsorted(t_us, knots_us)])
    at = np.unique(np.clip(np.concatenate([borders - 1, borders]), begins[0], end - 1))
    if (t_us[1:] < t_us[:-1]).any():
        at = np.arange(begins[0], end)
    return np.maximum.reduceat(piece.clock.bound_ns(t_us[at]) + piece.late_ns, np.searchsorted(at, begins))


def between_J(sample_ns: np.ndarray, running_J: np.ndarray, t_ns: np.ndarray) -> np.ndarray:
    """Running energy at any times (int64), linear between samples; before the first that of it."""
    upper = np.clip(np.searchsorted(sample_ns, t_ns, "right"), 1, len(sample_ns) - 1)
    from_ns, to_ns, from_J, to_J = (of[at] for of in (sample_ns, running_J) for at in (upper - 1, upper))
    share = np.clip((t_ns - from_ns) / np.maximum(to_ns - from_ns, 1), 0.0, 1.0)
    return from_J + share * (to_J - from_J)


class _Sum:
    """The power of all rails together, up to the last time that all have."""

    def __init__(self, samples_of: list[int], out: tuple[Extremes, Extremes], watch: Watch | None):
        self._out, self._held, self._watch = out, [_Held() for _ in samples_of], watch
        self._slowest = int(np.argmin(samples_of))
        self._silent = len(samples_of) == 1 or not all(samples_of)

    def take(self, i: int, piece: Piece) -> None:
        if self._silent:  # of a single rail its own; of a rail without any sample the sum is not known
            if len(self._held) == 1:
                self._out[1].add(piece.t_ns[1:], piece.P[1:])
                if self._watch:
                    self._watch(piece.t_ns[1:], piece.P[1:])
            return
        self._held[i].add(piece)
        if not all(len(held.t_ns) for held in self._held):
            return
        slow, reached_ns = self._held[self._slowest], min(int(held.t_ns[-1]) for held in self._held)
        n = int(np.searchsorted(slow.t_ns, reached_ns, "right"))
        if n > 1:
            t_ns = slow.t_ns[:n]
            joules = [between_J(held.t_ns, held.J, t_ns) for held in self._held if held is not slow]
            gaps = [gap for held in self._held for gap in held.gaps]
            spans = [(held.first_ns or 0, reached_ns) for held in self._held]
            watts = rails.sum_W(t_ns, slow.P[:n], joules, gaps, spans)
            for extremes in self._out:
                extremes.add(t_ns[1:], watts)
            if self._watch:
                self._watch(t_ns[1:], watts)
            for held in self._held:
                held.forget(int(t_ns[-1]))


class _Held:
    """Samples of one rail that the sum still needs."""

    def __init__(self):
        self.first_ns: int | None = None
        self.t_ns, self.P, self.J = np.empty(0, np.int64), np.empty(0), np.empty(0)
        self.gaps: list[tuple[int, int]] = []  # times of the samples before and after

    def add(self, piece: Piece) -> None:
        self.first_ns = int(piece.t_ns[1]) if self.first_ns is None else self.first_ns
        self.t_ns, self.P, self.J = (
            np.concatenate([held, new[1:]])
            for held, new in ((self.t_ns, piece.t_ns), (self.P, piece.P), (self.J, piece.J))
        )
        inside = piece.gaps.at > 0
        self.gaps += zip(piece.gaps.from_ns[inside].tolist(), piece.gaps.to_ns[inside].tolist(), strict=True)

    def forget(self, t_ns: int) -> None:
        """The part before the last sample up to this time."""
        first = max(0, int(np.searchsorted(self.t_ns, t_ns, "right")) - 1)
        self.t_ns, self.P, self.J = self.t_ns[first:], self.P[first:], self.J[first:]
        self.gaps = [gap for gap in self.gaps if gap[1] > t_ns]
