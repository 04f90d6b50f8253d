"""The figures of one window of a run: one flat object of numbers, each defined here once. All of them cover the same
whole seconds of drive time; unknown figures are None, with their reason in `notes`.

IOPS statistics follow the reviews (AnandTech 2015, 2016): mean and standard deviation (n - 1) of the per-second counts,
consistency = mean / sd; seconds without I/O count as 0. Percentiles of seconds interpolate linearly, percentiles of
latencies use the nearest rank, as fio's do, from fio's histogram (its bins are 1.6 % wide)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base.words import digits
from ssdrig.load.fiotext import plat_ns, plat_upper_ns
from ssdrig.meter import uncertainty
from ssdrig.plan.rules.windows import Window
from ssdrig.reading import errors, latency, own_report, power, witness
from ssdrig.reading.little import LITTLE_PERCENT as LITTLE_PERCENT
from ssdrig.reading.power import clipped_words
from ssdrig.reading.rundata import SECOND_NS, RunData
from ssdrig.reading.smart import window_wa

TAIL = 10  # a percentile P(p) or P(1 - p) needs this many values beyond it, so 10 / p values in all
SECONDS = {"iops_p0_1": 0.001, "iops_p1": 0.01, "iops_p5": 0.05}  # p of each
DOCUMENT_S = 1.0  # a status document may be this far from its edge
TIMED = (  # what a window has of its energy
    "power_mean_W, power_max_W, energy_J, energy_uJ_per_io, energy_uJ_per_io_above_idle, energy_J_per_GB, iops_per_W,"
    " power_uncertainty_percent"
)
LITTLE_OFF = (
    f"littles_qd: IOPS x mean latency is {{:.2f}} and should be the queue depth {{}} within {LITTLE_PERCENT:g} %; IOPS"
    " and latency are not of the same I/O, threads had ended, or the host could not keep the queue full"
)
SLAT_PERCENT = 5.0
EDGE_SHARE = 0.1  # of a window's length that a temperature may be read before or after its edge


class Term(NamedTuple):
    """One figure: its key, label, unit, decimal places, group, meaning, and which way is better."""

    key: str
    label: str
    unit: str
    places: int
    group: str
    meaning: str
    better: str = ""  # "more", "less", or "" where neither is


def terms(table: str) -> list[Term]:
    """The lines of a table: key | label | unit | decimal places | better | meaning; an indented line continues the one
    before, "# " begins a group."""
    out, group = [], ""
    for line in table.strip().replace("\n    ", " ").splitlines():
        if line.startswith("# "):
            group = line[2:]
            continue
        key, label, unit, places, better, meaning = (cell.strip() for cell in line.split("|"))
        out.append(Term(key, label, unit, int(places), group, meaning, better))
    return out


# Figures of one window; terms() parses a line.
TERMS = terms("""
# Performance
iops_mean | Mean IOPS |  | 0 | more | Mean of the I/O counts of the window's seconds; a second without any I/O counts as
    0.
iops_sd | Standard deviation | IOPS | 0 | less | Of the same seconds (n − 1): how far a second is from the mean.
consistency | Consistency |  | 2 | more | Mean divided by standard deviation over the same seconds. 10 means that a
    typical second is within 10 % of the mean.
iops_min | Slowest second | IOPS | 0 | more | The least I/O count of any second.
iops_p0_1 | IOPS, P0.1 |  | 0 | more | 0.1 % of the seconds were slower than this. Only from 10 000 seconds on.
iops_p1 | IOPS, P1 |  | 0 | more | 1 % of the seconds were slower. Only from 1000 seconds on.
iops_p5 | IOPS, P5 |  | 0 | more | 5 % of the seconds were slower. Only from 200 seconds on.
iops_p50 | IOPS, median |  | 0 | more | Half of the seconds were slower.
zero_seconds | Seconds without I/O | s | 0 | less | Seconds in which not one I/O completed.
bw_mean_MBps | Throughput | MB/s | 1 | more | Bytes of the same seconds / their number (1 MB = 10⁶ bytes).
ios | I/O completed |  | 0 |  | All I/O of the window's seconds, as fio counted them.
lat_mean_us | Mean latency (lat) | µs | 0 | less | From submission by fio to completion, queueing in the host included.
lat_p50_us | Median latency (lat) | µs | 0 | less | Half of the I/O were faster, from submission to completion.
lat_p99_us | P99 latency (lat) | µs | 0 | less | 99 % of the I/O were faster, from submission to completion. Only from
    1000 I/Os on.
lat_p999_us | P99.9 latency (lat) | µs | 0 | less | 99.9 % of the I/O were faster, from submission to completion. Only
    from 10 000 I/Os on.
lat_p9999_us | P99.99 latency (lat) | µs | 0 | less | 99.99 % of the I/O were faster, from submission to completion.
    Only from 100 000 I/Os on.
lat_p99999_us | P99.999 latency (lat) | µs | 0 | less | 99.999 % of the I/O (five nines) were faster, from submission to
    completion. Only from 1 000 000 I/Os on.
lat_max_us | Longest latency (lat) | µs | 0 | less | Of the slowest I/O, from submission to completion: the upper edge
    of its bin in fio's histogram, which is at most 1.6 % above it. Whether an I/O at an edge of a window, or of the
    figures after a first burst, was still in it is not always known: the error covers that.
clat_mean_us | Mean completion time (clat) | µs | 0 | less | From when the drive was given the I/O to its completion:
    latency less the time that submission took.
clat_p50_us | Median completion time (clat) | µs | 0 | less | Half of the I/O were faster, from when the drive was given
    them.
clat_p99_us | P99 completion time (clat) | µs | 0 | less | 99 % of the I/O were faster, from when the drive was given
    them. Only from 1000 I/Os on.
clat_p999_us | P99.9 completion time (clat) | µs | 0 | less | 99.9 % of the I/O were faster, from when the drive was
    given them. Only from 10 000 I/Os on.
clat_p9999_us | P99.99 completion time (clat) | µs | 0 | less | 99.99 % of the I/O were faster, from when the drive was
    given them. Only from 100 000 I/Os on.
clat_p99999_us | P99.999 completion time (clat) | µs | 0 | less | 99.999 % of the I/O were faster, from when the drive
    was given them. Only from 1 000 000 I/Os on.
clat_max_us | Longest completion time (clat) | µs | 0 | less | Of the slowest I/O, from when the drive was given it: the
    upper edge of its bin in fio's histogram. Whether an I/O at an edge of a window was still in it is not known: the
    error covers that.
read_iops | Reads a second | IOPS | 0 | more | Of a whole load: its reads alone, by fio's count.
read_lat_mean_us | Mean latency of reads (lat) | µs | 0 | less | Of a whole load: its reads alone, from fio's histogram.
read_lat_p50_us | Median latency of reads (lat) | µs | 0 | less | Half of the reads were faster.
read_lat_p99_us | P99 latency of reads (lat) | µs | 0 | less | 99 % of the reads were faster. Only from 1000 reads on.
read_lat_p999_us | P99.9 latency of reads (lat) | µs | 0 | less | 99.9 % of the reads were faster. Only from 10 000 on.
read_lat_p9999_us | P99.99 latency of reads (lat) | µs | 0 | less | 99.99 % of the reads were faster. Only from 100 000
    on.
read_lat_max_us | Longest read (lat) | µs | 0 | less | Of the slowest read: the upper edge of its bin.
write_iops | Writes a second | IOPS | 0 | more | Of a whole load: its writes alone, by fio's count.
write_lat_mean_us | Mean latency of writes (lat) | µs | 0 | less | Of a whole load: its writes alone, from fio's
    histogram.
write_lat_p50_us | Median latency of writes (lat) | µs | 0 | less | Half of the writes were faster.
write_lat_p99_us | P99 latency of writes (lat) | µs | 0 | less | 99 % of the writes were faster. Only from 1000 writes
    on.
write_lat_p999_us | P99.9 latency of writes (lat) | µs | 0 | less | 99.9 % of the writes were faster. Only from 10 000
    on.
write_lat_p9999_us | P99.99 latency of writes (lat) | µs | 0 | less | 99.99 % of the writes were faster. Only from
    100 000 on.
write_lat_max_us | Longest write (lat) | µs | 0 | less | Of the slowest write: the upper edge of its bin.
drive_writes_t0 | Drive writes at the start |  | 3 |  | How often the load had written the tested range when the window
    began; the fill is not counted.
drive_writes_t1 | Drive writes at the end |  | 3 |  | The same when the window ended.
# Power and energy
power_mean_W | Mean power | W | 3 |  | Energy of the window divided by its length.
power_max_W | Highest sample | W | 3 | less | The highest single reading of the sensor (one reading is one conversion,
    of a recording one of its samples); for several rails: the highest sum, averaged over one conversion of the
    slowest sensor. Its error covers a sample that is within the clock's error of an edge.
peak_100us_W | Highest mean of 100 µs | W | 2 | less | The highest mean power over any 100 µs, at the drive: what OCP's
    Datacenter NVMe SSD Specification calls peak power (PCM-2). By the fast current channel, corrected by the sensor;
    null where the rig has none, or it did not see all of the window.
peak_100us_uncertainty_W | Highest mean of 100 µs, uncertainty | W | 2 | less | Expanded uncertainty (k = 2, about 95 %)
    of that peak: the channel's gain and non-linearity, what its filter hides of a burst of just 100 µs, the sag of the
    rail under it, the sensor's own, and the window's edges.
energy_J | Energy | J | 1 |  | Integral of voltage × current from the start of the window to its end, all rails of the
    rig together.
energy_uJ_per_io | Energy per I/O | µJ | 1 | less | Energy / I/O completed. Idle power is included: the drive cannot
    work without it.
energy_uJ_per_io_above_idle | Energy per I/O above idle | µJ | 1 | less | (Mean power − idle power) / IOPS: what one
    more I/O costs a drive that is awake. Only where idle power was measured (`--idle`).
energy_J_per_GB | Energy per gigabyte | J/GB | 2 | less | Energy / bytes moved (1 GB = 10⁹ bytes).
iops_per_W | IOPS per watt |  | 0 | more | I/O completed per joule.
temperature_start_C | Temperature at the start | °C | 0 | less | What the drive itself reported within a tenth of the
    window of its start.
temperature_max_C | Highest temperature | °C | 0 | less | The highest temperature that the drive itself reported in the
    window, the readings at its start and end included.
temperature_end_C | Temperature at the end | °C | 0 | less | What the drive itself reported within a tenth of the window
    of its end.
# Wear
wa | Write amplification |  | 3 | less | NAND bytes / host bytes between the SMART readings nearest the window's edges
    (`wa_polls_s` has their times). Its error covers the counters' steps, the time that the readings took, the writes
    between them and the edges, and what the drive may have written on its own between them and the load.
host_written_bytes | Host bytes written | B | 0 |  | Counted by the drive, between the same two readings.
nand_written_bytes | NAND bytes written | B | 0 |  | Counted by the drive, between the same two readings.
# Quality of the measurement
littles_qd | I/Os in flight, by Little's law |  | 2 |  | IOPS × mean latency of the window; in the report of a plan, of
    a whole load over the time that each thread ran. In a closed loop it is the queue depth within 2 %, or IOPS and
    latency are not of the same I/O.
littles_error_percent | Little's check, off by | % | 2 |  | How far that is from the queue depth that was asked for. In
    the report of a plan null for a load whose end, or fio's own work between two I/Os, may take more than 1 % of it.
samples | Power samples |  | 0 |  | Readings of voltage and current in the window, each with its own time.
samples_lost | Samples lost |  | 0 | less | Readings of the meter that are missing in the window, by their index and
    sequence number: of the board, conversions of its sensor.
samples_clipped | Samples at the limit |  | 0 | less | Readings at the end of the sensor's range; energy, mean and peaks
    are lower bounds where there are any.
filled_s | Time filled in | s | 3 | less | Time between samples whose readings are missing, of the rail that misses
    the most. Power is interpolated there.
filled_J | Energy filled in | J | 3 | less | The energy that is interpolated there, all rails together.
power_uncertainty_percent | Power uncertainty | % | 2 | less | Expanded uncertainty (k = 2, about 95 %) of the window's
    mean power and of its energy, at the drive: of the board from its calibration or, without one, from the data sheets
    of chip and shunt, with the leads; of another meter from the limits that it states. The time in which the current is
    not looked at, and the error of the window's own edges count. Null when a sample is at the sensor's limit (energy,
    mean and peaks are lower bounds then) or the accuracy of the meter is not known. Where the edges alone move the
    energy by more than 5 %, all figures of power are null.
own_power_ratio | Meter / the drive's own report |  | 3 |  | Power or energy that the rig measured, divided by what the
    drive itself reports of it (NVMe log 02h), at the readings in the window. Its error (k = 2) covers the rig, the
    drive's rounding and where the drive's interval of a second can have lain: 1 within it is an honest drive.
clock_error_us | Largest error of a time | µs | 0 | less | Upper limit of the difference between a sample's time and the
    host's clock, the largest in the window.
""")
KEYS = (
    *("name", "label", "t0_s", "t1_s", "unfinished", "steady_state"),
    *(term.key for term in TERMS),
    *("errors", "wa_error", "wa_polls_s", "own_power_ratio_error", "own_power_ratio_of", "rails", "trust", "notes"),
)


def figures_in(data: RunData, window: Window) -> dict:
    """All KEYS of one window."""
    out: dict[str, Any] = dict.fromkeys(KEYS)
    notes: list[str] = []
    out |= {
        "name": window.name,
        "label": window.label,
        "t0_s": window.t0_s,
        "t1_s": window.t1_s,
        "unfinished": window.unfinished and window.unfinished.how,
        "steady_state": window.steady_state,
        "rails": [],
    }
    out |= _drive_writes(data, window)
    out |= _iops(data, window, notes)
    out |= _latency(data, window, notes)
    out |= littles(data, out, notes)
    out |= _energy(data, window, out["ios"], notes)
    known_to = _power_max_error(data, window, out)
    if any(note.startswith(f"{TIMED}: ") for note in notes):
        notes.append("peak_100us_W, peak_100us_uncertainty_W: the seconds of the window are not known")
    else:
        out |= power.highest_of_100us(data, window, notes)
    out |= own_power(data, window, out["power_uncertainty_percent"], notes)
    out |= wear(data, window, notes)
    out |= temperature(data, window, notes)
    notes += witness.verdicts(data, None, window)
    bounds = {**(out["errors"] or {}), **known_to, **errors.of_window(data, out, window.t0_s, window.t1_s)}
    out["errors"] = errors.claimed(data, window.t0_s, window.t1_s, bounds, notes)
    return out | {"notes": notes}


def _cut(window: Window) -> slice:
    return slice(window.t0_s, window.t1_s)


def _drive_writes(data: RunData, window: Window) -> dict:
    """How often the load has written the tested range by each edge; the fill before it is not counted."""
    tested = data.asked("tested_bytes")
    if not tested:
        return {}
    drive_writes = np.concatenate([[0.0], np.cumsum(data.bw_Bps)]) / tested
    return {"drive_writes_t0": float(drive_writes[window.t0_s]), "drive_writes_t1": float(drive_writes[window.t1_s])}


def _iops(data: RunData, window: Window, notes: list[str]) -> dict:
    counts = data.iops[_cut(window)]
    mean, sd = float(counts.mean()), float(counts.std(ddof=1))
    if sd == 0:
        notes.append("consistency: the standard deviation is 0")
    few = {key: p for key, p in SECONDS.items() if len(counts) < TAIL / p}
    for key, p in few.items():
        notes.append(f"{key}: {len(counts)} s are too few for this percentile, which needs {TAIL / p:.0f}")
    return {
        "ios": int(counts.sum()),
        "iops_mean": mean,
        "iops_sd": sd,
        "consistency": mean / sd if sd else None,
        "iops_min": float(counts.min()),
        **{key: None if key in few else float(np.percentile(counts, 100 * p)) for key, p in SECONDS.items()},
        "iops_p50": float(np.median(counts)),
        "zero_seconds": int((counts == 0).sum()),
        "bw_mean_MBps": float(data.bw_Bps[_cut(window)].mean()) / 1e6,
    }


def _latency(data: RunData, window: Window, notes: list[str]) -> dict:
    """lat is from submission to completion, clat from when the drive was given the I/O."""
    counts, lat = data.iops[_cut(window)], data.lat_mean_us[_cut(window)]
    if not counts.sum():
        notes.append("latency: no I/O completed")
        return {}
    out: dict[str, Any] = {"lat_mean_us": float((counts[counts > 0] * lat[counts > 0]).sum() / counts.sum())}
    in_window = latency.of_window(data.hist, window.t0_s, window.t1_s)
    parts = _lat_parts(data, window)
    by_kind = {"lat": None, "clat": None, data.documents_of: None if parts is None else parts[0] + parts[1]}
    if len(in_window):
        by_kind[data.hist_of] = latency.counts(in_window)
    bounds: dict[str, float] = {}
    ranks_off = errors.rank_errors(data.hist, window.t0_s, window.t1_s)
    for kind, counts_of in by_kind.items():
        if counts_of is None or not counts_of.any():
            keys = ", ".join(f"{kind}_{name}_us" for name in (*errors.PERCENTILES, "max"))
            notes.append(f"{keys}: fio left no histogram of {kind} for these seconds")
        else:
            out |= (latencies := percentiles(kind, counts_of, data.k, notes))
            of_kind = errors.of_percentiles(kind, counts_of, errors.PERCENTILES, data.k, ranks_off)
            bounds |= {key: error for key, error in of_kind.items() if latencies.get(key) is not None}
            longest = f"{kind}_max_us"
            if parts is not None and kind == data.documents_of != data.hist_of:
                bounds[longest] = max(bounds[longest], out[longest] - _longest_us(parts, data.k))
            if kind == data.hist_of and len(in_window):
                bounds[longest] = max(bounds[longest], _off_by_rows_us(data, window, out[longest]))
    mean = out["lat_mean_us"]
    if mean and (slat := 100 * (mean - out.get("clat_mean_us", mean)) / mean) > SLAT_PERCENT:
        notes.append(f"lat_mean_us: {slat:.0f} % of it passed before the drive was given the I/O (slat)")
    return out | {"errors": bounds}


def lat_counts(data: RunData, window: Window) -> np.ndarray | None:
    """The I/Os of the window in each bin of lat, float64 (BINS,). Status documents do not coincide with the window's
    edges: of the I/Os between the two documents around an edge those count that the histogram of clat has on the
    window's side of it. Without that histogram the I/Os between the first and the last document in the window, so that
    no I/O belongs to another; where an edge has none in it within fio's second, the one nearest to the edge. None if
    that is further off."""
    parts = _lat_parts(data, window)
    return None if parts is None else parts[0] + parts[1]


def _longest_us(parts: tuple[np.ndarray, np.ndarray], k: int) -> float:
    """The longest latency if no I/O around an edge of the window was in it; of a window of such alone the shortest."""
    sure = np.flatnonzero(parts[0])
    at = sure[-1] if len(sure) else np.flatnonzero(parts[1])[0]
    return float(plat_upper_ns(at)) / 1000 / k


def _off_by_rows_us(data: RunData, window: Window, longest_us: float) -> float:
    """How far the longest latency is off if the slowest I/O of a second next to an edge belongs to the other side: fio
    ends a row of its log by an I/O that completes after the second."""
    inside, outside = latency.counts(latency.of_window(data.hist, window.t0_s, window.t1_s)), []
    edges = [(window.t0_s, window.t0_s - 1)] if window.t0_s > 0 else []
    edges += [(window.t1_s - 1, window.t1_s)] if window.t1_s < len(data.iops) else []
    for within_s, beyond_s in edges:
        for second, mine in ((within_s, True), (beyond_s, False)):
            bins = latency.of_window(data.hist, second, second + 1)[:, 1]
            if len(bins) and mine:
                inside[bins.max()] = max(0, inside[bins.max()] - 1)
            elif len(bins):
                outside.append(int(bins.max()))
    left = np.flatnonzero(inside)
    least, most = (
        float(plat_upper_ns(at)) / 1000 / data.k for at in (left[-1] if len(left) else 0, max(outside, default=0))
    )
    return max(longest_us - least, most - longest_us, 0.0)


def _lat_parts(data: RunData, window: Window) -> tuple[np.ndarray, np.ndarray] | None:
    """lat_counts() of the documents within the window, and of those around its edges."""
    t_s, most_s = data.lat_t_s, DOCUMENT_S / data.k
    if not len(t_s):
        return None
    # after the load's end there is nothing else
    end_s = window.t1_s if window.t1_s < len(data.iops) else np.inf
    first, last = (
        _document(t_s, edge, inside, most_s)
        for edge, inside in ((window.t0_s, t_s >= window.t0_s), (window.t1_s, t_s <= end_s))
    )
    if max(abs(t_s[first] - window.t0_s), abs(t_s[last] - window.t1_s)) > most_s:
        return None
    whole = latency.counts(data.lat_hist[(data.lat_hist[:, 0] > first) & (data.lat_hist[:, 0] <= last)]).astype(float)
    around = np.zeros_like(whole)
    if data.hist_of != "clat" or not len(data.hist):
        return whole, around
    if t_s[first] > window.t0_s:
        around += _split(data, first, window.t0_s, np.inf)
    if t_s[last] < end_s and last + 1 < len(t_s):
        around += _split(data, last + 1, -np.inf, window.t1_s)
    return whole, around


def _split(data: RunData, document: int, begin_s: float, end_s: float) -> np.ndarray:
    """The I/Os of lat between this status document and the one before it that fall from begin_s to end_s, by bin: in
    each bin the share that clat has there in the seconds of that side."""
    edges = data.lat_t_s[document - 1], data.lat_t_s[document]
    counts = latency.counts(data.lat_hist[data.lat_hist[:, 0] == document]).astype(float)
    inside, outside, weights = np.zeros(len(counts)), np.zeros(len(counts)), [0.0, 0.0]
    for second in range(int(edges[0]), int(np.ceil(edges[1]))):
        low, high = max(edges[0], second), min(edges[1], second + 1)
        within = max(0.0, min(high, end_s) - max(low, begin_s))
        of_second = latency.counts(latency.of_window(data.hist, second, second + 1))
        inside += within * of_second
        outside += max(0.0, high - low - within) * of_second
        weights = [weights[0] + within, weights[1] + max(0.0, high - low - within)]
    share = np.full(len(counts), np.nan)
    for width in (1, 4, 16, 64):  # lat is a little above clat: the same bin, otherwise its neighbours
        number = np.arange(len(counts)) // width
        near, off = (np.bincount(number, side)[number] for side in (inside, outside))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(np.isnan(share), near / (near + off), share)
    return counts * np.where(np.isnan(share), weights[0] / max(1e-9, sum(weights)), share)


def _document(t_s: np.ndarray, edge_s: int, inside: np.ndarray, most_s: float) -> int:
    off_s = np.abs(t_s - edge_s)
    good = np.flatnonzero(inside & (off_s <= most_s))
    return int(good[np.argmin(off_s[good])]) if len(good) else int(np.argmin(off_s))


def percentiles(kind: str, counts: np.ndarray, k: int, notes: list[str]) -> dict:
    """Mean of clat, and percentiles and the maximum of either, of the I/Os in each bin of a histogram, at least one."""
    bins = np.flatnonzero(counts)
    held = counts[bins]
    n, us = float(held.sum()), plat_ns(bins) / 1000 / k
    out = {"clat_mean_us": float((held * us).sum() / n)} if kind == "clat" else {}
    filled = bins[held >= 0.5]
    out[f"{kind}_max_us"] = float(plat_upper_ns(filled[-1] if len(filled) else bins[-1])) / 1000 / k
    few = {name: TAIL * one_in for name, one_in in errors.PERCENTILES.items() if round(n) < TAIL * one_in}
    for name, one_in in errors.PERCENTILES.items():
        if name not in few:
            at = min(int(np.searchsorted(np.cumsum(held), n - n // one_in)), len(bins) - 1)
            out[f"{kind}_{name}_us"] = float(us[at])
    for name, needs in few.items():
        notes.append(f"{kind}_{name}_us: {round(n)} I/Os are too few for this percentile, which needs {needs}")
    return out


def littles(data: RunData, out: Mapping, notes: list[str]) -> dict:
    """Little's law: I/Os in flight = rate x mean latency, which in a closed loop is the queue depth. `out`: the figures
    of the window so far."""
    depth = data.asked("queue_depth")
    if not depth or not out["iops_mean"] or out["lat_mean_us"] is None:
        return {}
    in_flight = out["iops_mean"] * out["lat_mean_us"] / 1e6
    error = 100 * (in_flight - depth) / depth
    if abs(error) > LITTLE_PERCENT:
        notes.append(LITTLE_OFF.format(in_flight, depth))
    return {"littles_qd": in_flight, "littles_error_percent": error}


def _energy(data: RunData, window: Window, ios: int, notes: list[str]) -> dict:
    """Power and energy of all rails together; ratios use the seconds that have power where some have none."""
    if not data.rails:
        return {}
    joules, cut = data.energy_J[_cut(window)], _cut(window)
    measured = np.isfinite(joules)
    out: dict[str, Any] = {
        "rails": [_rail(rail, window) for rail in data.rails],
        "samples": sum(int(rail.samples[cut].sum()) for rail in data.rails),
        "samples_lost": sum(int(rail.samples_lost[cut].sum()) for rail in data.rails),
        "samples_clipped": sum(int(rail.clipped[cut].sum()) for rail in data.rails),
        "filled_s": max(float(rail.filled_s[cut].sum()) for rail in data.rails) / data.k,
        "filled_J": sum(float(rail.filled_J[cut].sum()) for rail in data.rails) / data.k,
    }
    if out["samples"]:
        out["clock_error_us"] = max(float(rail.clock_error_ns[cut].max()) for rail in data.rails) / 1000
    for rail in data.rails:
        which = "the window" if len(data.rails) == 1 else f"the window, rail {rail.rail} ({rail.name}),"
        notes += clipped_words(which, int(rail.clipped[cut].sum()), int(rail.samples[cut].sum()))
    if not measured.all():
        dark = [f"{r.rail} ({r.name})" for r in data.rails if not np.isfinite(r.power_mean_W[cut]).all()]
        of = f" of rail {', '.join(dark)}, so the sum is not known there" if len(data.rails) > 1 else ""
        notes.append(
            f"energy_J: {(~measured).sum()} of {len(measured)} s have no power samples{of}; ratios use the seconds that"
            " have"
        )
    total = float(joules[measured].sum())
    if not total:
        return out
    if why := _untimed(data, total, cut.start + np.flatnonzero(measured)):
        notes.append(f"{TIMED}: {why}")
        for rail in out["rails"]:
            rail |= {"power_mean_W": None, "power_max_W": None, "energy_J": None, "power_uncertainty_percent": None}
        return out
    done, moved = float(data.iops[cut][measured].sum()), float(data.bw_Bps[cut][measured].sum())
    out |= ratios(total, int(measured.sum()), done, moved)
    out |= {"power_max_W": float(np.nanmax(data.power_max_W[cut]))}
    if measured.all():
        out["energy_J"] = total
        watts = [float(rail.power_mean_W[cut].mean()) for rail in data.rails]
        out["power_uncertainty_percent"] = _uncertainty_percent(data.rails, watts, cut)
    if done and data.idle_mean_W is not None:
        above = errors.above_idle_W(data, out)
        if above.known and (above.value or 0.0) <= (above.error or 0.0):
            words = f"the mean power is {digits(above.value, 3)} W above idle, no more than both are uncertain by"
            notes.append(f"energy_uJ_per_io_above_idle: {words}")
        else:
            more_W = out["power_mean_W"] - data.idle_mean_W
            out["energy_uJ_per_io_above_idle"] = 1e6 * more_W * int(measured.sum()) / done
    return out


def _untimed(data: RunData, joules: float, seconds: np.ndarray) -> str | None:
    """Why the energy of these seconds is not known for the clock's sake; None: it is."""
    edges_of = [rail.edges for rail in data.rails if rail.edges is not None]
    time_J = sum(edges.seconds_J(seconds) for edges in edges_of)
    error_ns = max((float(edges.error_ns[seconds].max()) for edges in edges_of), default=0.0)
    return uncertainty.untimed(time_J / data.k, joules, error_ns)


def ratios(joules: float, seconds: float, ios: float, moved_bytes: float) -> dict:
    """Mean power, and energy per I/O and per byte, from an energy (above 0) and a drive time."""
    out = {"power_mean_W": joules / seconds}
    if ios:
        out |= {"energy_uJ_per_io": 1e6 * joules / ios, "iops_per_W": ios / joules}
    if moved_bytes:
        out["energy_J_per_GB"] = 1e9 * joules / moved_bytes
    return out


def _power_max_error(data: RunData, window: Window, figures: Mapping) -> dict[str, float]:
    """Error of the highest sample: the budget of the rails at their own highest, in the second in which the sum is, and
    how far it is off if samples within the clock's error of an edge belong to the other side."""
    if figures.get("power_max_W") is None:
        return {}
    second = np.array([window.t0_s + int(np.nanargmax(data.power_max_W[_cut(window)]))])
    highest = [float(rail.power_max_W[second[0]]) for rail in data.rails]
    error = errors.budget_W(data.rails, highest, second)
    return {} if error is None else {"power_max_W": error + _off_by_edges_W(data, window, figures["power_max_W"])}


def _off_by_edges_W(data: RunData, window: Window, highest_W: float) -> float:
    near, first, last = data.near_edges, window.t0_s, window.t1_s
    if near is None:
        return 0.0
    beyond_W = [near.before_W[first], near.after_W[last]]
    within_W = [near.since_W[first], *data.power_max_W[first + 1 : last - 1], near.until_W[last - 1]]
    most_W, least_W = (
        float(np.nanmax(watts)) if np.isfinite(watts).any() else np.nan for watts in (beyond_W, within_W)
    )
    return max(0.0, np.nan_to_num(most_W - highest_W), np.nan_to_num(highest_W - least_W))


def _uncertainty_percent(rails: list, watts: list[float], cut: slice) -> float | None:
    """Expanded uncertainty (k = 2) of the sum of the rails' mean powers in the seconds of `cut`, in % of it. None where
    a sample is at its sensor's limit, or the limits of a chip are not known."""
    if not sum(watts) > 0 or any(rail.facts is None or rail.clipped[cut].any() for rail in rails):
        return None
    means = [_mean(rail, w, cut) for rail, w in zip(rails, watts, strict=True)]
    percent = 100 * uncertainty.expanded_W(means) / sum(watts)
    return percent if np.isfinite(percent) else None


def _mean(rail, mean_W: float, cut: slice) -> uncertainty.Mean:
    samples = int(rail.samples[cut].sum())
    sd_W = uncertainty.deviation_W(samples, *rail.scatters_W[:, cut].sum(axis=1).tolist())
    time_W = share = moved_W = 0.0
    if rail.edges is not None:
        edges = rail.edges.at([cut.start, cut.stop])
        lasts_s = float(edges.t_ns[1] - edges.t_ns[0]) / SECOND_NS
        time_W, share = edges.time_J() / lasts_s, float(rail.filled_s[cut].sum()) / lasts_s
        moved_W = float(rail.bound_J[cut].sum()) / lasts_s
    low = uncertainty.part(samples, *rail.low[:, cut].sum(axis=1))
    return uncertainty.Mean(rail.facts, rail.volts_V, mean_W, samples, sd_W, time_W, share, low, moved_W)


def _rail(rail, window: Window) -> dict:
    """Figures of one rail in a window; its mean power covers the seconds that it has where it was not there all
    the time."""
    cut = _cut(window)
    watts = rail.power_mean_W[cut]
    measured = np.isfinite(watts)
    mean_W = float(watts[measured].mean()) if measured.any() else None
    return {
        "rail": rail.rail,
        "name": rail.name,
        "power_mean_W": mean_W,
        "power_max_W": float(np.nanmax(rail.power_max_W[cut])) if measured.any() else None,
        "energy_J": float(watts.sum()) if measured.all() else None,
        "power_uncertainty_percent": _uncertainty_percent([rail], [mean_W or 0.0], cut) if measured.all() else None,
        "samples": int(rail.samples[cut].sum()),
        "samples_lost": int(rail.samples_lost[cut].sum()),
    }


def own_power(data: RunData, window: Window, rig_percent: float | None, notes: list[str]) -> dict:
    """The rig's power against the drive's own report of it."""
    if data.t0_ns is None or not data.rails or not len(data.own_ns):
        return {}
    begin_ns, end_ns = (data.t0_ns + round(t_s * data.k * SECOND_NS) for t_s in (window.t0_s, window.t1_s))
    comparison = own_report.compare(data, begin_ns, end_ns, rig_percent)
    if comparison.ratio is None:
        notes.append(f"own_power_ratio: {comparison.why}")
        return {}
    if abs(comparison.ratio - 1) > (comparison.error or 0):
        notes.append(f"own_power_ratio: the drive's own report is off by {100 * (1 / comparison.ratio - 1):+.1f} %")
    of = f"{comparison.of}, {comparison.readings} readings"
    return {"own_power_ratio": comparison.ratio, "own_power_ratio_error": comparison.error, "own_power_ratio_of": of}


def wear(data: RunData, window: Window, notes: list[str]) -> dict:
    amplification, polls_s, why = window_wa(data, window)
    if why:
        notes.append(f"wa: {why}")
    out: dict[str, Any] = {"wa_polls_s": polls_s}
    if amplification is not None:
        out |= {"wa": amplification.value, "wa_error": amplification.error}
        out |= {"host_written_bytes": amplification.host_bytes, "nand_written_bytes": amplification.nand_bytes}
    return out


def temperature(data: RunData, window: Window, notes: list[str]) -> dict:
    """What the drive itself reported near the window's edges, and the highest in it."""
    slack = EDGE_SHARE * (window.t1_s - window.t0_s)
    near = (data.temp_t_s >= window.t0_s - slack) & (data.temp_t_s <= window.t1_s + slack)
    t, celsius = data.temp_t_s[near], data.temperature_C[near]
    if not len(t):
        notes.append(
            "temperature_start_C, temperature_max_C, temperature_end_C: none was reported in the window or near it"
        )
        return {}

    def at(edge_s: int) -> float | None:
        i = int(np.argmin(np.abs(t - edge_s)))
        return float(celsius[i]) if abs(t[i] - edge_s) <= slack else None

    first, last = at(window.t0_s), at(window.t1_s)
    of_it = [*celsius[(t >= window.t0_s) & (t <= window.t1_s)], *(edge for edge in (first, last) if edge is not None)]
    out = {"temperature_start_C": first, "temperature_max_C": float(max(of_it)), "temperature_end_C": last}
    far = [key for key, value in out.items() if value is None]
    if far:
        notes.append(f"{', '.join(far)}: no SMART reading within a tenth of the window of that edge")
    return out
