"""Figures of a step by the second, and what they are called there."""

from collections.abc import Sequence

import numpy as np

from ssdrig.reading import latency
from ssdrig.reading.row import Row
from ssdrig.views.context import label

BY_SECOND = {  # what a figure is called where it is shown by the second
    "iops": "IOPS",
    "W": "Power",
    "lat_p99": "P99 of completion time (clat)",
    "wa": "Write amplification since the start of the step",
    "C": "Temperature that the drive reports",
}


P99 = {  # what P99 by the second are of, in a title and at an axis
    "clat": (BY_SECOND["lat_p99"], "P99 (clat)"),
    "lat": ("P99 latency (lat)", "P99 (lat)"),
    "": ("P99 of latency (lat, of some steps clat)", "P99 (lat, clat)"),
}


def timed(word: str, of: Sequence[Row] = ()) -> str:
    return _p99(of)[0] if word == "lat_p99" else BY_SECOND.get(word) or label(word)


def axis_title(word: str, name: str, of: Sequence[Row] = ()) -> str:
    words = {"wa": "NAND / host bytes", "C": "Temperature", "lat_p99": _p99(of)[1]}.get(word) or timed(word)
    return f"{words}, {name}" if name and name not in words else words


def _p99(of: Sequence[Row]) -> tuple[str, str]:
    """Of these rows: what RunData.hist_of says."""
    kinds = {row.data.hist_of for row in of if row.data is not None} or {"clat"}
    return P99[kinds.pop() if len(kinds) == 1 else ""]


def seconds(row: Row, word: str) -> tuple[np.ndarray, np.ndarray]:
    """A figure of each second of a step: (s since its first I/O, value); of SMART at each poll. P99 is of what
    RunData.hist_of says, also where that of a whole step is of lat."""
    data = row.data
    if data is None:
        return np.zeros(0), np.zeros(0)
    middle = np.arange(len(data.iops)) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "iops": data.iops,
            "MB/s": data.bw_Bps / 1e6,
            "W": data.power_mean_W,
            "uJ/IO": np.where(data.iops > 0, 1e6 * data.energy_J / data.iops, np.nan),
            "J/GB": np.where(data.bw_Bps > 0, 1e9 * data.energy_J / data.bw_Bps, np.nan),
            "iops/W": data.iops / data.energy_J,
            "lat_mean": data.lat_mean_us,
            "lat_p99": data.lat_p99_us,
            "lat_max": latency.max_us(data, len(data.iops)),
        }
    if word == "wa":
        return data.wa_t_s, data.wa_value
    if word == "C":
        return data.temp_t_s, data.temperature_C
    if word not in values:
        return np.zeros(0), np.zeros(0)
    return middle, values[word]
