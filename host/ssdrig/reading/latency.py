"""The latency histogram by the second, put together into what the plots of a report have room for: each window as a
whole, and a load in a few hundred stretches. Two hours have a million cells; these have some ten thousand.

And a load by the record, as the PTS counts it (a minute), made of its whole seconds: each record is the sum of its
seconds, none is counted twice, and the remainder after the last whole record is reported. Pure."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ssdrig.load.fiotext import BINS, plat_ns, plat_upper_ns
from ssdrig.reading.rundata import RunData

TAIL_ONE_IN = 1000  # of the percentile over time: P99.9
TAIL_IOS = 10 * TAIL_ONE_IN  # fewest I/Os of a stretch that has it
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


class Tail(NamedTuple):
    """P99.9 of successive stretches of a load.

    edges_s: seconds at which the stretches begin, and where the last one ends, int64 (n + 1,)
    us: the percentile of each stretch, of the latency that RunData.hist_of names, µs of drive time, float64 (n,)
    """

    edges_s: np.ndarray
    us: np.ndarray


def tail_over_time(data: RunData) -> Tail:
    """P99.9 over the load, by data.lat_over_time. A stretch ends when it has TAIL_IOS I/Os; those that remain at the
    end join the last one. Empty where the load has fewer."""
    cells, n = data.lat_over_time, stretches(data)
    ios = np.bincount(cells[:, 0], cells[:, 2], minlength=n) if n else np.zeros(0)
    begins, pending = [0], 0.0
    for column, more in enumerate(ios.tolist(), 1):
        pending += more
        if pending >= TAIL_IOS:
            begins.append(column)
            pending = 0.0
    if len(begins) < 2:
        return Tail(np.zeros(0, np.int64), np.zeros(0))
    begins[-1] = n
    us = []
    for first, last in zip(begins, begins[1:]):
        held = counts(of_window(cells, first, last))
        total = int(held.sum())
        at = np.searchsorted(np.cumsum(held), total - total // TAIL_ONE_IN)
        us.append(float(plat_ns(at)) / 1000 / data.k)
    seconds = len(data.iops)
    return Tail(np.array([-(-column * seconds // n) for column in begins], np.int64), np.array(us))


def place(data: RunData, figures: dict) -> None:
    """Sets `lat_over_time`, and `lat_in_window` of each window that the figures (course.figures_of) have."""
    data.lat_over_time = over_time(data)
    for name, window in figures["windows"].items():
        if window and len(data.hist):
            data.lat_in_window[name] = counts(of_window(data.hist, window["t0_s"], window["t1_s"]))


RECORD_S = 60


@dataclass(frozen=True)
class Records:
    """Arrays have one value per whole record. `ios`, `bytes_`: sums; `lat_mean_us`: weighted by the I/Os;
    `lat_max_us`: upper edge of the highest bin; `energy_J`, `wa`: not-a-number where not known. `left_s`, `left_ios`:
    the whole seconds after the last record, and their I/Os."""

    record_s: int
    ios: np.ndarray
    bytes_: np.ndarray
    lat_mean_us: np.ndarray
    lat_max_us: np.ndarray
    energy_J: np.ndarray
    left_s: int
    left_ios: int


def of(data: RunData, record_s: int = RECORD_S) -> Records:
    """The records of a load, `record_s` seconds each."""
    n = len(data.iops) // record_s
    cut = n * record_s
    ios = _sums(data.iops, n, record_s)
    waited = np.where(data.iops > 0, data.iops * np.nan_to_num(data.lat_mean_us), 0.0)
    energy = data.energy_J if len(data.energy_J) == len(data.iops) else np.full(len(data.iops), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = _sums(waited, n, record_s) / ios
    left = data.iops[cut:]
    return Records(
        record_s,
        ios,
        _sums(data.bw_Bps, n, record_s),
        mean,
        max_us(data, n, record_s),
        _sums(energy, n, record_s),
        len(left),
        int(left.sum()),
    )


def max_us(data: RunData, n: int, record_s: int = 1) -> np.ndarray:
    """The longest latency of each of n records, float64 (n,), not-a-number where none is known: the upper edge of the
    highest bin of the histogram by the second (data.hist_of)."""
    highest = np.full(n, -1, np.int64)
    record = data.hist[:, 0] // record_s
    inside = record < n
    np.maximum.at(highest, record[inside], data.hist[inside, 1])
    return np.where(highest >= 0, plat_upper_ns(np.maximum(highest, 0)) / 1000 / data.k, np.nan)


def _sums(values: np.ndarray, n: int, record_s: int) -> np.ndarray:
    return values[: n * record_s].reshape(n, record_s).sum(axis=1)
