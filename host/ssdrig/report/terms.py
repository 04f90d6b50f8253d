"""What each figure is called, its unit, and what it means, in words for a reader. The page, the README and the short
table on the terminal are made from this list; `figures.figures_of` computes the keys."""

import math
from typing import NamedTuple


class Term(NamedTuple):
    """One figure: key of `figures.figures_of`, label, unit, decimal places, group, meaning, and which way is better."""

    key: str
    label: str
    unit: str
    places: int
    group: str
    meaning: str
    better: str = ""  # "more", "less", or "" where neither is


TERMS = [
    Term(
        "iops_mean",
        "Mean IOPS, steady",
        "",
        0,
        "Performance",
        "Mean of the per-second I/O counts from the zoom start to the end; seconds without any I/O count as 0.",
        "more",
    ),
    Term(
        "iops_sd",
        "Standard deviation",
        "IOPS",
        0,
        "Performance",
        "Of the same seconds (n − 1): how far a second lies from the mean.",
        "less",
    ),
    Term(
        "consistency",
        "Consistency",
        "",
        2,
        "Performance",
        "Mean divided by standard deviation over the same seconds. 10 means that a typical second is within 10 % of the"
        " mean.",
        "more",
    ),
    Term(
        "iops_min",
        "Slowest second",
        "IOPS",
        0,
        "Performance",
        "The least I/O count of any second from the zoom start.",
        "more",
    ),
    Term(
        "iops_p0_1",
        "IOPS, P0.1",
        "",
        0,
        "Performance",
        "0.1 % of the seconds from the zoom start were slower than this.",
        "more",
    ),
    Term("iops_p1", "IOPS, P1", "", 0, "Performance", "1 % of the seconds were slower.", "more"),
    Term("iops_p5", "IOPS, P5", "", 0, "Performance", "5 % of the seconds were slower.", "more"),
    Term("iops_p50", "IOPS, median", "", 0, "Performance", "Half of the seconds were slower.", "more"),
    Term(
        "zero_seconds",
        "Seconds without I/O",
        "s",
        0,
        "Performance",
        "Seconds from the zoom start in which not one I/O completed.",
        "less",
    ),
    Term(
        "iops_all_mean",
        "Mean IOPS, whole load",
        "",
        0,
        "Performance",
        "All I/O of the load divided by its length, the fresh plateau included.",
        "more",
    ),
    Term("ios", "I/O completed", "", 0, "Performance", "All I/O of the load, as fio counted them."),
    Term(
        "lat_mean_us",
        "Mean latency",
        "µs",
        0,
        "Performance",
        "From submission to completion as fio saw it, over the whole load.",
        "less",
    ),
    Term("lat_p99_us", "P99 latency", "µs", 0, "Performance", "99 % of all I/O of the load were faster.", "less"),
    Term("lat_p999_us", "P99.9 latency", "µs", 0, "Performance", "99.9 % of all I/O of the load were faster.", "less"),
    Term(
        "time_to_complete_s",
        "Time to complete",
        "s",
        1,
        "Performance",
        "The whole run in drive time, purge and fill included.",
        "less",
    ),
    Term(
        "fill_MBps",
        "Fill speed",
        "MB/s",
        1,
        "Performance",
        "Sequential 128 KiB write of the tested range: bytes / time of fio's own count.",
        "more",
    ),
    Term("power_mean_W", "Mean power", "W", 3, "Power and energy", "Energy of the load divided by its length.", "less"),
    Term(
        "power_max_W",
        "Highest sample",
        "W",
        3,
        "Power and energy",
        "The highest single reading of the sensor during the load (one reading is one conversion, about a millisecond);"
        " of several rails the highest mean of their sum over one conversion of the slowest.",
        "less",
    ),
    Term(
        "energy_J",
        "Energy of the load",
        "J",
        1,
        "Power and energy",
        "Integral of voltage × current from the first I/O to the end of the load, all rails of the rig together.",
    ),
    Term(
        "energy_uJ_per_io",
        "Energy per I/O",
        "µJ",
        1,
        "Power and energy",
        "Energy of the load / I/O completed. Idle power is included: the drive cannot work without it.",
        "less",
    ),
    Term(
        "energy_J_per_GB",
        "Energy per gigabyte",
        "J/GB",
        2,
        "Power and energy",
        "Energy of the load / bytes moved (1 GB = 10⁹ bytes).",
        "less",
    ),
    Term("iops_per_W", "IOPS per watt", "", 0, "Power and energy", "I/O completed per joule.", "more"),
    Term(
        "fill_energy_J",
        "Energy of the fill",
        "J",
        1,
        "Power and energy",
        "The same integral over fio's sequential fill.",
    ),
    Term(
        "idle_mean_W",
        "Idle power",
        "W",
        3,
        "Power and energy",
        "Mean power of the idle step after the load (`--idle`), in which no SMART is read.",
        "less",
    ),
    Term(
        "idle_uncertainty_W",
        "Idle power, uncertain by",
        "W",
        4,
        "Power and energy",
        "Expanded uncertainty (k = 2, about 95 %) of the idle power, as below.",
        "less",
    ),
    Term(
        "temperature_max_C",
        "Highest temperature",
        "°C",
        0,
        "Power and energy",
        "The highest temperature the drive itself reported.",
        "less",
    ),
    Term(
        "wa",
        "Write amplification",
        "",
        3,
        "Wear",
        "NAND bytes / host bytes between the SMART reading before and the one after the load.",
        "less",
    ),
    Term(
        "wa_settled",
        "Write amplification, settled",
        "",
        3,
        "Wear",
        "The same once the drive has come to rest (`--settle`): what it wrote by itself after the load counts too.",
        "less",
    ),
    Term(
        "host_written_bytes",
        "Host bytes written",
        "B",
        0,
        "Wear",
        "Counted by the drive, between the same two readings.",
    ),
    Term(
        "nand_written_bytes",
        "NAND bytes written",
        "B",
        0,
        "Wear",
        "Counted by the drive, between the same two readings.",
    ),
    Term(
        "samples",
        "Power samples",
        "",
        0,
        "Quality of the measurement",
        "Readings of voltage and current during the load, each with its own time.",
    ),
    Term(
        "samples_lost",
        "Samples lost",
        "",
        0,
        "Quality of the measurement",
        "Conversions of the load that are missing, proven by index and sequence number.",
        "less",
    ),
    Term(
        "power_uncertainty_percent",
        "Power, uncertain by",
        "%",
        2,
        "Quality of the measurement",
        "Expanded uncertainty (k = 2, about 95 %) of the load's mean power and of its energy: from the rig's"
        " calibration or, without one, from the data sheet of the chip and the shunt's tolerance.",
        "less",
    ),
    Term(
        "closure_percent",
        "Energy closure",
        "%",
        3,
        "Quality of the measurement",
        "Host integral against the sensor chip's own energy register over the same conversions, the chip's clock"
        " corrected. 0 is perfect. Of several rails the worst.",
    ),
    Term(
        "chip_clock_ppm",
        "Chip clock error",
        "ppm",
        0,
        "Quality of the measurement",
        "How fast the sensor chip's oscillator runs against the host's clock, as measured.",
    ),
    Term(
        "clock_error_us",
        "Clock error, at most",
        "µs",
        0,
        "Quality of the measurement",
        "The largest bound during the load on the distance between a sample's time and the host's clock.",
        "less",
    ),
]

BARS = [
    "iops_mean",
    "consistency",
    "lat_p99_us",
    "power_mean_W",
    "energy_uJ_per_io",
    "iops_per_W",
    "wa",
    "time_to_complete_s",
]
BY_KEY = {term.key: term for term in TERMS}


def number(value, places: int) -> str:
    """A figure for people: '12 345.6', '–' for None; never a negative zero."""
    if value is None:
        return "–"
    text = f"{value:,.{places}f}"
    return (text if text.strip("-0.,") else text.lstrip("-")).replace(",", "\u202f").replace("-", "−")


def with_error(value, error, places: int) -> str:
    """'1.94100 ± 0.00030': the error with two significant digits and the value to its last one; without an error, or
    with an error of 0, the value alone to `places`."""
    if value is None or not error:
        return number(value, places)
    places = max(0, 1 - math.floor(math.log10(float(f"{error:.1e}"))))
    return f"{number(value, places)} ± {number(error, places)}"


def markdown() -> str:
    """The list as the README has it; a test compares the two."""
    lines = ["| figure | unit | key in `--json` | meaning |", "|---|---|---|---|"]
    for term in TERMS:
        lines.append(f"| {term.label} | {term.unit} | `{term.key}` | {term.meaning} |")
    return "\n".join(lines)
