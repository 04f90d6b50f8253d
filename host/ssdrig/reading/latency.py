"""The latency histogram by the second, put together into what the plots of a report have room for: each window as a
whole, and a load in a few hundred stretches. Two hours have a million cells; these have some ten thousand. Pure."""

import numpy as np

from ssdrig.load.fiotext import BINS
from ssdrig.reading.rundata import RunData

STRETCHES = 240  # of a load, at most: the columns of a heat map


def of_window(cells: np.ndarray, t0_s: float, t1_s: float) -> np.ndarray:
    """The cells (int64 (n, 3), by second: second, bin, latencies) from t0_s on and before t1_s."""
    first, last = np.searchsorted(cells[:, 0], (t0_s, t1_s))
    return cells[first:last]


def counts(cells: np.ndarray) -> np.ndarray:
    """Latencies in each bin of fio's histogram, int64 (BINS,)."""
    return np.bincount(cells[:, 1], cells[:, 2], minlength=BINS).astype(np.int64)


def stretches(data: RunData) -> int:
    """Into how many stretches of equal length the load is divided."""
    return min(STRETCHES, len(data.iops))


def over_time(data: RunData) -> np.ndarray:
    """data.hist with a stretch of the load in place of each second, int64 (cells, 3)."""
    n = stretches(data)
    if not len(data.hist) or not n:  # a load that ended within its first second has I/Os, and no second
        return data.hist[:0]
    stretch = np.minimum(data.hist[:, 0] * n // max(1, len(data.iops)), n - 1)
    held = np.bincount(stretch * BINS + data.hist[:, 1], data.hist[:, 2]).astype(np.int64)
    there = np.flatnonzero(held)
    return np.stack([*np.divmod(there, BINS), held[there]], axis=1)


def place(data: RunData, figures: dict) -> None:
    """Sets `lat_over_time`, and `lat_in_window` of each window that the figures (course.figures_of) have."""
    data.lat_over_time = over_time(data)
    for name, window in figures["windows"].items():
        if window and len(data.hist):
            data.lat_in_window[name] = counts(of_window(data.hist, window["t0_s"], window["t1_s"]))
