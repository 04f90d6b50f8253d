"""The drive's power over all rails of a rig: the sum of what each of them measured, and not known wherever one of them
is not.

Energy is the sum of the rails' own integrals; nothing is resampled for it. Lowest and highest reading need a common
grid, because the chips convert when they like: it is the conversions of the rail with the fewest, and each other rail
counts with its mean power over the same conversion (the difference of its integral). So the sum's extremes are means
over one conversion of the slowest rail: a shorter peak of a faster rail is flattened by that, and is seen in that
rail's own highest sample. Cells in which a rail lost a conversion are left out.

What lies in a gap of at most LONGEST_GAP_NS is filled in (power.py) and said; over a longer one nothing is claimed.
"""

import numpy as np

from ssdrig.meter import calibration
from ssdrig.meter.power import Closure, Power, integral_J

SLACK_NS = 10_000_000  # samples within this of an edge cover it
LONGEST_GAP_NS = 10**9


def dark(power: Power) -> np.ndarray:
    """Stretches in which a rail is not known: int64 (stretches, 2), host ns from and to; its time before and after all
    samples too."""
    if not len(power.t_ns):
        return np.array([[np.iinfo(np.int64).min, np.iinfo(np.int64).max]])
    behind = power.gap[(power.gap_ns > LONGEST_GAP_NS) & (power.gap > 0)]
    ends = (
        [np.iinfo(np.int64).min, int(power.t_ns[0]) - SLACK_NS],
        [int(power.t_ns[-1]) + SLACK_NS, np.iinfo(np.int64).max],
    )
    return np.concatenate([ends[:1], np.stack([power.t_ns[behind - 1], power.t_ns[behind]], axis=1), ends[1:]])


def losses(power: Power) -> list[tuple[int, int]]:
    """The dark stretches (host ns from and to) that samples lie before and behind."""
    return [(begin, end) for begin, end in dark(power).tolist()[1:-1]]


def known(powers: list[Power], edges_ns) -> np.ndarray:
    """Whether all the rails are known over each step between neighbouring edges (bool, one per step)."""
    edges = np.asarray(edges_ns, np.int64)
    out = np.full(len(edges) - 1, bool(powers))
    for power in powers:
        for begin, end in dark(power).tolist():
            out[(edges[1:] > begin) & (edges[:-1] < end)] = False
    return out


def energy_J(powers: list[Power], begin_ns: int, end_ns: int) -> float | None:
    """Energy of all the rails together between two host times; None if one of them is not known throughout."""
    if not known(powers, [begin_ns, end_ns])[0]:
        return None
    return float(sum(np.diff(integral_J(power, [begin_ns, end_ns]))[0] for power in powers))


def steps_J(powers: list[Power], edges_ns) -> np.ndarray:
    """Energy of all the rails together in each step between edges (float64), not-a-number where one is not known."""
    total = sum((np.diff(integral_J(power, edges_ns)) for power in powers), np.zeros(len(edges_ns) - 1))
    return np.where(known(powers, edges_ns), total, np.nan)


def extremes_W(powers: list[Power], t0_ns: int, steps: int, step_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest reading of the sum in each of `steps` steps of step_ns from host time t0_ns on (float64), on
    the grid that is said above; not-a-number where a rail is not known."""
    edges = t0_ns + step_ns * np.arange(steps + 1, dtype=np.int64)
    seen = known(powers, edges)
    lowest, highest = np.full(steps, np.nan), np.full(steps, np.nan)
    if seen.any():
        t_ns, watts = grid(powers)
        cuts = np.searchsorted(t_ns, edges)
        some = np.flatnonzero(np.diff(cuts))
        if len(some):  # fmin and fmax pass over what is not a number
            lowest[some], highest[some] = (
                ufunc.reduceat(watts[: cuts[-1]], cuts[some]) for ufunc in (np.fmin, np.fmax)
            )
    return np.where(seen, lowest, np.nan), np.where(seen, highest, np.nan)


def grid(powers: list[Power]) -> tuple[np.ndarray, np.ndarray]:
    """(host ns, W) of the sum at each conversion of the rail with the fewest, but for its first; not-a-number where a
    rail lost a conversion. Of a single rail its samples. Every rail must have some."""
    if len(powers) == 1:
        return powers[0].t_ns, powers[0].P
    slowest = min(powers, key=lambda power: len(power.t_ns))
    t_ns = slowest.t_ns
    width_s = np.diff(t_ns) * 1e-9
    watts = np.full(len(width_s), np.nan)
    wide = width_s > 0
    total = slowest.P[1:] + sum(
        np.diff(integral_J(power, t_ns)) / np.where(wide, width_s, 1.0) for power in powers if power is not slowest
    )
    watts[wide] = total[wide]
    for power in powers:
        behind = power.gap[power.gap > 0]
        first = np.searchsorted(t_ns, power.t_ns[behind - 1], "right") - 1
        last = np.searchsorted(t_ns, power.t_ns[behind], "left")
        for a, z in zip(np.maximum(first, 0).tolist(), last.tolist(), strict=True):
            watts[a:z] = np.nan
        watts[(t_ns[1:] > power.t_ns[-1]) | (t_ns[:-1] < power.t_ns[0])] = np.nan
    return t_ns[1:], watts


def worst(closures: list[Closure | None]) -> Closure | None:
    """The closure that stands for all the rails: that which is further off than its chip's own rounding explains by the
    most."""
    there = [c for c in closures if c is not None]
    return max(there, key=lambda c: abs(c.corrected_percent) - c.resolution_percent, default=None)


def uncertainty_W(powers: list[Power], watts: list[float]) -> float:
    """Expanded uncertainty (k = 2) of the sum of the rails' mean powers; what two rails have in common because one
    meter calibrated both adds up, all else is independent (calibration.py)."""
    return calibration.sum_uncertainty(
        [(power.facts, float(power.V.mean()), w) for power, w in zip(powers, watts, strict=True)]
    )
