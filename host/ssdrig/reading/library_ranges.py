"""What a figure of a stranger's file may be: a range of each quantity, so wide that every drive and instrument fits and
so narrow that a slip of a decimal point by some places, another unit or an invention does not. Pure."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Range(NamedTuple):
    """`keys`: a pattern of the figures; `why`: the reason of both ends."""

    keys: str
    least: float
    most: float
    unit: str
    why: str


DAY_US = 86_400e6
RANGES = (
    Range(r".*iops(_mean|_min|_sd|_p\d+(_1)?)?", 0, 1e8, "IOPS", "PCIe 6.0 x4 carries 6e7 blocks of 512 B a second"),
    Range(r"bw_mean_MBps", 0, 1e6, "MB/s", "PCIe 7.0 x16 carries 242 000 MB/s"),
    Range(r"bw_Bps", 0, 1e12, "B/s", "PCIe 7.0 x16 carries 2.4e11 B/s"),
    Range(r".*lat_.*_us|clock_error_us", 0, DAY_US, "us", "Linux resets a drive after 30 s and gives up within a day"),
    Range(r"iops_per_W", 0, 1e12, "IOPS/W", "1e8 IOPS at 0.1 mW, the least that an error leaves"),
    Range(r"\w*_W", -1, 1000, "W", "at rest a sensor's offset reads below 0; a PCIe card takes 600 W at most"),
    Range(r"energy_J|filled_J", -1e9, 1e12, "J", "the power's range, over 30 years"),
    Range(r"energy_(uJ_per_io|uJ_per_io_above_idle|J_per_GB)", -1e12, 1e12, "", "1000 W at one I/O in 1000 s"),
    Range(r"wa|wa_value|wa_error", 0, 1e6, "", "an erase block of 512 MB for 512 B"),
    Range(r"temperature_(\w+_)?C", -60, 200, "°C", "parts of drives are rated from -40 to 125 °C"),
    Range(r"\w+_percent", -1e6, 1e6, "%", "10 000 processors at 100 %, and as much for a ratio"),
    Range(r"consistency|littles_qd|own_power_ratio|drive_writes_t[01]", 0, 1e9, "", "65 536 queues of 16 384 commands"),
    Range(r"t[01]_s|load_s|gap_s|filled_s|zero_seconds", 0, 1e9, "s", "30 years"),
    Range(r"\w+_t_s", -1e9, 1e9, "s", "30 years before the load or after it"),
    Range(r"(host|nand)_written_bytes", 0, 1e21, "B", "1000 EB: no drive is rated for a hundredth of it"),
    Range(r"ios|samples(_lost|_clipped)?", 0, 1e18, "", "1e8 a second for 30 years"),
)
# of the result of a step, by the unit at the end of the key; in addition to RANGES
OF_RESULTS = (
    Range(r"\w+_error_\w+", 0, 1e21, "", "an error is half the width of an interval"),
    Range(r"\w*_?MBps", 0, 1e6, "MB/s", "PCIe 7.0 x16 carries 242 000 MB/s; of a curve also the GB written"),
    Range(r"\w*_Bps", 0, 1e12, "B/s", "PCIe 7.0 x16 carries 2.4e11 B/s"),
    Range(r"(\w*_)?bytes", 0, 1e21, "B", "1000 EB: no drive is rated for a hundredth of it"),
    Range(r"\w+_J_per_GB", -1e12, 1e12, "J/GB", "1000 W at one I/O in 1000 s"),
    Range(r"\w+_J", -1e9, 1e12, "J", "the power's range, over 30 years"),
    Range(r"\w+_s", -1e9, 1e9, "s", "30 years"),
    Range(r"\w+_us", 0, DAY_US, "us", "Linux resets a drive after 30 s and gives up within a day"),
)
_OF_KEY: dict[str, Range | None] = {}


def of(key: str) -> Range:
    """The range of a figure. Raises LookupError for one without."""
    if key not in _OF_KEY:
        _OF_KEY[key] = next((one for one in RANGES if re.fullmatch(one.keys, key)), None)
    range_ = _OF_KEY[key]
    if range_ is None:
        raise LookupError(f"{key} has no range")
    return range_


def check(key: str, values: float | np.ndarray) -> None:
    """Raises ValueError, with the range and its reason, where a value is outside. Not-a-number is not compared."""
    _check(key, np.asarray(values, np.float64), of(key))


def check_result(key: str, value: Any) -> None:
    """check() of the result of a step: of a key whose name ends with a unit, and of all in it. Raises ValueError also
    for such a key with a text or a truth value."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            check_result(str(name), item)
        return
    if isinstance(value, list):
        for item in value:
            check_result(key, item)
        return
    one = next((one for one in (*OF_RESULTS, *RANGES) if re.fullmatch(one.keys, key)), None)
    if value is None or one is None:
        return
    if isinstance(value, bool | str):
        raise ValueError(f"{key} without a number")
    _check(key, np.asarray(value, np.float64), one)


def _check(key: str, known: np.ndarray, one: Range) -> None:
    known = known[~np.isnan(known)]
    wrong = known[(known < one.least) | (known > one.most)]
    if len(wrong):
        unit = f" {one.unit}" if one.unit else ""
        raise ValueError(f"{key} {wrong[0]:.6g}{unit} instead of {one.least:g} to {one.most:g} ({one.why})")
