"""The highest power over a short time, as a data sheet states it: the mean over any stretch of N milliseconds."""

import numpy as np

from ssdrig.meter.power import Power

SECOND_NS = 10**9
LEAST_SAMPLES = 2  # in a stretch of this length, on average: with fewer the samples are not finer than the stretch


def highest_mean_W(power: Power, edges_ns: np.ndarray, width_ns: int) -> np.ndarray:
    """For each row between edges (int64 host ns, rising): the highest mean (W, float64) over any width_ns within it;
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
    if not len(t_ns):
        return out
    x, y = _running(power, first, last)
    base_ns = int(power.t_ns[0])
    energy_J = np.interp(starts + width_ns - base_ns, x, y) - np.interp(starts - base_ns, x, y)
    np.fmax.at(out, row, energy_J * (SECOND_NS / width_ns))
    count = np.diff(np.searchsorted(t_ns, edges_ns))
    out[count * width_ns < LEAST_SAMPLES * np.diff(edges_ns)] = np.nan
    return out


def _running(power: Power, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Times since the first sample (ns, float64) and the running energy there, of these samples and one on each side:
    what power.integral_J interpolates, which is slower where there are as many times as samples."""
    t_ns, a, z = power.t_ns, max(0, first - 1), min(len(power.t_ns), last + 1)
    start_ns = 2 * t_ns[0] - t_ns[min(1, len(t_ns) - 1)]
    x = t_ns[a:z] if a else np.append(start_ns, t_ns[a:z])
    y = power.energy_J[a:z] if a else np.append(0.0, power.energy_J[a:z])
    return (x - t_ns[0]).astype(float), y
