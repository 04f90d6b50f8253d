"""The highest power over a short time, as a data sheet states it: the mean over any stretch of so many milliseconds."""

import numpy as np

from ssdrig.meter.power import Power, integral_J

SECOND_NS = 10**9
LEAST_SAMPLES = 2  # in a stretch of this length, on average: with fewer the samples are no finer than the stretch


def highest_mean_W(power: Power, edges_ns: np.ndarray, width_ns: int) -> np.ndarray:
    """Of each row between edges (int64 host ns, rising): the highest mean (W, float64) over any width_ns within it;
    not-a-number where samples are too rare. Power is constant within a sample's own time, so the highest mean begins or
    ends with a sample, or at an edge."""
    out = np.full(len(edges_ns) - 1, np.nan)
    first, last = np.searchsorted(power.t_ns, edges_ns[[0, -1]])
    t_ns = power.t_ns[first:last]
    starts = np.concatenate([edges_ns[:-1], edges_ns[1:] - width_ns, t_ns, t_ns - width_ns])
    row = np.searchsorted(edges_ns, starts, "right") - 1
    inside = (row >= 0) & (row < len(out))
    inside[inside] = starts[inside] + width_ns <= edges_ns[row[inside] + 1]
    starts, row = starts[inside], row[inside]
    means = (integral_J(power, starts + width_ns) - integral_J(power, starts)) * (SECOND_NS / width_ns)
    np.fmax.at(out, row, means)
    count = np.diff(np.searchsorted(t_ns, edges_ns))
    out[count * width_ns < LEAST_SAMPLES * np.diff(edges_ns)] = np.nan
    return out
