"""What each figure is called, its unit, and what it means, in words for a reader. The page, the README and the short
table on the terminal are made from this list; `figures.figures_of` and `window_figures.figures_in` compute the keys."""

import math
from typing import NamedTuple


class Term(NamedTuple):
    """One figure: its key, label, unit, decimal places, group, meaning, and which way is better."""

    key: str
    label: str
    unit: str
    places: int
    group: str
    meaning: str
    better: str = ""  # "more", "less", or "" where neither is


# key | label | unit | decimal places | better | meaning; an indented line continues the one before
TABLE = """
# Performance
iops_mean | Mean IOPS |  | 0 | more | Mean of the I/O counts of the window's seconds; a second without any I/O counts as
    0.
iops_sd | Standard deviation | IOPS | 0 | less | Of the same seconds (n − 1): how far a second lies from the mean.
consistency | Consistency |  | 2 | more | Mean divided by standard deviation over the same seconds. 10 means that a
    typical second is within 10 % of the mean.
iops_min | Slowest second | IOPS | 0 | more | The least I/O count of any second.
iops_p0_1 | IOPS, P0.1 |  | 0 | more | 0.1 % of the seconds were slower than this. Only from 10 000 seconds on.
iops_p1 | IOPS, P1 |  | 0 | more | 1 % of the seconds were slower. Only from 1000 seconds on.
iops_p5 | IOPS, P5 |  | 0 | more | 5 % of the seconds were slower. Only from 200 seconds on.
iops_p50 | IOPS, median |  | 0 | more | Half of the seconds were slower.
zero_seconds | Seconds without I/O | s | 0 | less | Seconds in which not one I/O completed.
ios | I/O completed |  | 0 |  | All I/O of the window's seconds, as fio counted them.
lat_mean_us | Mean latency (lat) | µs | 0 | less | From submission by fio to completion, queueing in the host included.
lat_p50_us | Median latency (lat) | µs | 0 | less | Half of the I/O were faster, from submission to completion.
lat_p99_us | P99 latency (lat) | µs | 0 | less | 99 % of the I/O were faster, from submission to completion. Only from
    1000 I/Os on.
lat_p999_us | P99.9 latency (lat) | µs | 0 | less | 99.9 % of the I/O were faster, from submission to completion. Only
    from 10 000 I/Os on.
clat_mean_us | Mean completion time (clat) | µs | 0 | less | From when the drive was given the I/O to its completion:
    latency less the time that submission took.
clat_p50_us | Median completion time (clat) | µs | 0 | less | Half of the I/O were faster, from when the drive was given
    them.
clat_p99_us | P99 completion time (clat) | µs | 0 | less | 99 % of the I/O were faster, from when the drive was given
    them. Only from 1000 I/Os on.
clat_p999_us | P99.9 completion time (clat) | µs | 0 | less | 99.9 % of the I/O were faster, from when the drive was
    given them. Only from 10 000 I/Os on.
drive_writes_t0 | Drive writes at the start |  | 3 |  | How often the load had written the tested range when the window
    began; the fill is not counted.
drive_writes_t1 | Drive writes at the end |  | 3 |  | The same when the window ended.
iops_all_mean | Mean IOPS, whole load |  | 0 | more | All I/O of the load divided by its length, the fresh plateau
    included.
time_to_complete_s | Time to complete | s | 1 | less | The whole run in drive time, purge and fill included.
fill_s | Time of the fill | s | 1 | less | How long fio's sequential write of the tested range took.
fill_MBps | Fill speed | MB/s | 1 | more | Sequential write of the tested range: bytes / time of fio's own count.
# Power and energy
power_mean_W | Mean power | W | 3 |  | Energy of the window divided by its length.
power_max_W | Highest sample | W | 3 | less | The highest single reading of the sensor (one reading is one conversion,
    about a millisecond); for several rails: the highest sum, averaged over one conversion of the slowest sensor.
energy_J | Energy | J | 1 |  | Integral of voltage × current from the start of the window to its end, all rails of the
    rig together.
energy_uJ_per_io | Energy per I/O | µJ | 1 | less | Energy / I/O completed. Idle power is included: the drive cannot
    work without it.
energy_uJ_per_io_above_idle | Energy per I/O above idle | µJ | 1 | less | (Mean power − idle power) / IOPS: what one
    more I/O costs a drive that is awake. Only where idle power was measured (`--idle`).
energy_J_per_GB | Energy per gigabyte | J/GB | 2 | less | Energy / bytes moved (1 GB = 10⁹ bytes).
iops_per_W | IOPS per watt |  | 0 | more | I/O completed per joule.
fill_energy_J | Energy of the fill | J | 1 |  | The same integral over fio's sequential fill.
idle_mean_W | Idle power | W | 3 | less | Mean power of the idle step after the load (`--idle`), in which no SMART is
    read.
idle_uncertainty_W | Idle power uncertainty | W | 4 | less | Expanded uncertainty (k = 2, about 95 %) of the idle power,
    as below.
temperature_start_C | Temperature at the start | °C | 0 | less | What the drive itself reported within a tenth of the
    window of its start.
temperature_max_C | Highest temperature | °C | 0 | less | The highest temperature that the drive itself reported in the
    window.
temperature_end_C | Temperature at the end | °C | 0 | less | What the drive itself reported within a tenth of the window
    of its end.
# Wear
wa | Write amplification |  | 3 | less | NAND bytes / host bytes between the SMART readings nearest the window's edges
    (`wa_polls_s` says when). Its error covers the counters' steps, the time that the readings took, and what was
    written between them and the edges.
wa_settled | Write amplification, settled |  | 3 | less | From the reading before the load until the drive has come to
    rest (`--settle`): what it wrote by itself after the load counts too.
host_written_bytes | Host bytes written | B | 0 |  | Counted by the drive, between the same two readings.
nand_written_bytes | NAND bytes written | B | 0 |  | Counted by the drive, between the same two readings.
# Quality of the measurement
littles_qd | I/Os in flight, by Little's law |  | 2 |  | IOPS × mean latency. In a closed loop it is the queue depth
    within 2 %, or IOPS and latency are not of the same I/O.
littles_error_percent | Little's check, off by | % | 2 |  | How far that is from the queue depth that was asked for.
samples | Power samples |  | 0 |  | Readings of voltage and current in the window, each with its own time.
samples_lost | Samples lost |  | 0 | less | ADC conversions missing in the window, detected by index and sequence
    number.
power_uncertainty_percent | Power uncertainty | % | 2 | less | Expanded uncertainty (k = 2, about 95 %) of the window's
    mean power and of its energy: from the rig's calibration or, without one, from the data sheet of the chip and the
    shunt's tolerance. Null when a sample is at the sensor's limit (energy, mean and peaks are lower bounds then) or the
    chip is unknown.
closure_percent | Energy closure | % | 3 |  | Host integral against the sensor chip's own energy register over the same
    conversions of the run, the chip's clock corrected. 0 is perfect. For several rails: the worst.
chip_clock_ppm | Chip clock error | ppm | 0 |  | How fast the sensor chip's oscillator runs against the host's clock, as
    measured over the run.
clock_error_us | Largest clock error | µs | 0 | less | Upper limit of the difference between a sample's time and the
    host's clock, the largest in the window.
"""


def _terms(table: str) -> list[Term]:
    out, group = [], ""
    for line in table.strip().replace("\n    ", " ").splitlines():
        if line.startswith("# "):
            group = line[2:]
            continue
        key, label, unit, places, better, meaning = (cell.strip() for cell in line.split("|"))
        out.append(Term(key, label, unit, int(places), group, meaning, better))
    return out


TERMS = _terms(TABLE)

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
