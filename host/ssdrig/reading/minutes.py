"""A load by the record, as the PTS counts it (a minute), made of its whole seconds: each record is the sum of its own
seconds, none is counted twice, and what is left behind the last whole record is named. Pure."""

from dataclasses import dataclass

import numpy as np

from ssdrig.load.fiotext import plat_upper_ns
from ssdrig.reading.rundata import RunData

RECORD_S = 60


@dataclass(frozen=True)
class Records:
    """Arrays have one value per whole record. `ios`, `bytes_`: sums; `lat_mean_us`: weighted by the I/Os;
    `lat_max_us`: upper edge of the highest bin; `energy_J`, `wa`: not-a-number where not known. `left_s`, `left_ios`:
    the whole seconds behind the last record, and their I/Os."""

    record_s: int
    ios: np.ndarray
    bytes_: np.ndarray
    lat_mean_us: np.ndarray
    lat_max_us: np.ndarray
    energy_J: np.ndarray
    left_s: int
    left_ios: int


def of(data: RunData, record_s: int = RECORD_S) -> Records:
    """The records of a load with so many seconds each."""
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
