"""The drive's power over all rails of a rig: the sum of what each of them measured, and not known wherever one of them
is not.

Energy is the sum of the rails' own integrals; nothing is resampled for it. Lowest and highest reading need a common
grid, because the chips convert when they like: it is the conversions of the rail with the fewest, and each other rail
counts with its mean power over the same conversion (the difference of its integral). So the sum's extremes are means
over one conversion of the slowest rail: a shorter peak of a faster rail is flattened by that, and is seen in that
rail's own highest sample. Cells in which a rail lost a conversion are left out.

A gap of at most LONGEST_GAP_NS is filled in (power.py) and reported; over a longer one nothing is claimed.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ssdrig.meter import uncertainty
from ssdrig.meter.power import Closure, Gaps

SLACK_NS = 10_000_000  # samples within this of an edge cover it
LONGEST_GAP_NS = 10**9
NO_POWER = "power samples do not cover it"


class Rail(Protocol):
    """The interface of a rail: power.Power has it for any times, reduced.Reduced for its edges."""

    @property
    def span_ns(self) -> tuple[int, int] | None: ...
    @property
    def gaps(self) -> Gaps: ...
    @property
    def facts(self) -> dict | None: ...
    @property
    def mean_V(self) -> float: ...
    def integral_J(self, t_ns, /) -> np.ndarray: ...
    def scatter(self, begin_ns: int, end_ns: int) -> tuple[int, float]: ...
    def low_in(self, begin_ns: int, end_ns: int) -> tuple[int, float]: ...
    def edges(self, t_ns, /) -> uncertainty.Edges: ...


def dark(power: Rail) -> np.ndarray:
    """Stretches in which a rail is not known: int64 (stretches, 2), host ns from and to; its time before and after all
    samples too."""
    whole = np.iinfo(np.int64)
    if power.span_ns is None:
        return np.array([[whole.min, whole.max]])
    gaps, (first_ns, last_ns) = power.gaps, power.span_ns
    long = (gaps.ns > LONGEST_GAP_NS) & (gaps.at > 0)
    between = np.stack([gaps.from_ns[long], gaps.to_ns[long]], axis=1)
    return np.concatenate([[[whole.min, first_ns - SLACK_NS]], between, [[last_ns + SLACK_NS, whole.max]]])


def losses(power: Rail) -> list[tuple[int, int]]:
    """The dark stretches (host ns from and to) that have samples before and after."""
    return [(begin, end) for begin, end in dark(power).tolist()[1:-1]]


def known(powers: Sequence[Rail], edges_ns) -> np.ndarray:
    """Whether all the rails are known over each step between neighbouring edges (bool, one per step)."""
    edges = np.asarray(edges_ns, np.int64)
    out = np.full(len(edges) - 1, bool(powers))
    for power in powers:
        for begin, end in dark(power).tolist():
            out[(edges[1:] > begin) & (edges[:-1] < end)] = False
    return out


def energy_J(powers: Sequence[Rail], begin_ns: int, end_ns: int) -> float | None:
    """Energy of all the rails together between two host times; None if one of them is not known throughout."""
    if not known(powers, [begin_ns, end_ns])[0]:
        return None
    return float(sum(np.diff(power.integral_J([begin_ns, end_ns]))[0] for power in powers))


def steps_J(powers: Sequence[Rail], edges_ns) -> np.ndarray:
    """Energy of all the rails together in each step between edges (float64), not-a-number where one is not known."""
    total = sum((np.diff(power.integral_J(edges_ns)) for power in powers), np.zeros(len(edges_ns) - 1))
    return np.where(known(powers, edges_ns), total, np.nan)


def sum_W(t_ns, P, joules: list, lost: list[tuple[int, int]], spans_ns: list[tuple[int, int]]) -> np.ndarray:
    """The sum in each cell between neighbouring samples t_ns of the slowest rail (float64); P: its power, `joules`: the
    running energies of the others at t_ns, `lost`: times of the samples before and after each gap, `spans_ns`: of the
    first and last sample of all rails. Cells of no width, with a gap, or beyond the samples of a rail are
    not-a-number."""
    width_s = np.diff(t_ns) * 1e-9
    watts, wide = np.full(len(width_s), np.nan), width_s > 0
    total = P[1:] + sum(np.diff(of) / np.where(wide, width_s, 1.0) for of in joules)
    watts[wide] = total[wide]
    for from_ns, to_ns in lost:
        first = max(0, int(np.searchsorted(t_ns, from_ns, "right")) - 1)
        watts[first : int(np.searchsorted(t_ns, to_ns))] = np.nan
    for first_ns, last_ns in spans_ns:
        watts[(t_ns[1:] > last_ns) | (t_ns[:-1] < first_ns)] = np.nan
    return watts


def filled(power: Rail, edges_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each step between edges (int64 host ns, rising): for how long (s) conversions are missing, the energy (J)
    that is interpolated there, and by how much (J) that may be off where a bypass moved; of the host's time."""
    gaps = power.gaps
    inside = gaps.at > 0
    ends_ns = np.stack([gaps.from_ns[inside], gaps.to_ns[inside]], axis=1).ravel()
    lost = gaps.lost[inside] / np.maximum(gaps.lost[inside] + 1, 1)  # the sample after a gap covers a conversion
    out = []
    for of_gap in (gaps.ns[inside] * lost / 1e9, gaps.J[inside], gaps.bound_J[inside]):
        running = np.cumsum(of_gap)
        knots = np.stack([running - of_gap, running], axis=1).ravel()
        at_edges = np.interp(edges_ns, ends_ns, knots) if len(knots) else np.zeros(len(edges_ns))
        out.append(np.diff(at_edges))
    return out[0], out[1], out[2]


def worst(closures: list[Closure | None]) -> Closure | None:
    """The closure of all the rails: that which is further off than its chip's own rounding explains by the
    most."""
    there = [c for c in closures if c is not None]
    return max(there, key=lambda c: abs(c.corrected_percent) - c.resolution_percent, default=None)


def means(powers: Sequence[Rail], span_ns: Sequence[int], watts: list[float]) -> list[uncertainty.Mean]:
    """The rails' mean powers between two host times, as uncertainty.py wants them; `watts`: that of each rail."""
    out = []
    for power, mean_W in zip(powers, watts, strict=True):
        if power.facts:
            samples, sd_W = power.scatter(span_ns[0], span_ns[1])
            time_W = power.edges(span_ns).time_J() / (span_ns[1] - span_ns[0]) * 1e9
            missing_s, _, bound_J = (float(of[0]) for of in filled(power, np.asarray(span_ns)))
            lasts_s = (span_ns[1] - span_ns[0]) / 1e9
            low = uncertainty.part(samples, *power.low_in(span_ns[0], span_ns[1]))
            of_gaps = missing_s / lasts_s, low, bound_J / lasts_s
            out.append(uncertainty.Mean(power.facts, power.mean_V, mean_W, samples, sd_W, time_W, *of_gaps))
    return out


class Timed(NamedTuple):
    """Energy of all rails between two host times, and by how much the clock's error may move it (host J). `why`: it is
    not known, and J and time_J are 0."""

    J: float = 0.0
    time_J: float = 0.0
    why: str | None = None

    @property
    def percent(self) -> float:
        return uncertainty.time_percent(self.time_J, self.J)


def timed_J(powers: Sequence[Rail], begin_ns: int, end_ns: int) -> Timed:
    """The energy that a figure may be made of: of rails that are known throughout, between edges that are known well
    enough."""
    joules = energy_J(powers, begin_ns, end_ns)
    if joules is None or end_ns <= begin_ns:
        return Timed(why=NO_POWER)
    edges = [power.edges([begin_ns, end_ns]) for power in powers]
    time_J = sum(of.time_J() for of in edges)
    why = uncertainty.untimed(time_J, joules, max(float(of.error_ns.max()) for of in edges))
    return Timed(why=why) if why else Timed(joules, time_J)


def uncertainty_W(powers: Sequence[Rail], span_ns: Sequence[int], watts: list[float]) -> float:
    """Expanded uncertainty (k = 2) of the sum of the rails' mean powers between two host times; what two rails have in
    common because one meter calibrated both adds up, all else is independent (uncertainty.py)."""
    return uncertainty.expanded_W(means(powers, span_ns, watts))
