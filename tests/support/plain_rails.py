"""Of several rails, all samples at once: what reduced.py makes of them in pieces, for tests."""

import numpy as np

from ssdrig.meter.power import Power
from ssdrig.meter.rails import known, sum_W


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
    joules = [power.integral_J(t_ns) for power in powers if power is not slowest]
    lost = [(f, t) for p in powers for f, t, at in zip(p.gaps.from_ns, p.gaps.to_ns, p.gaps.at, strict=True) if at > 0]
    spans = [power.span_ns for power in powers if power.span_ns]
    return t_ns[1:], sum_W(t_ns, slowest.P, joules, lost, spans)
