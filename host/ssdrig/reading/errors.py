"""What the figures of one window are uncertain by: half of the interval that holds the truth in 95 % of cases, in the
figure's own unit. One place for all of them; ratios and differences are made of these (uncertain.py).

    counts and means of seconds   the scatter of the seconds about their mean; of less than LEAST_S also that of the
                                  seconds around them, and none where these are too few (base())
    mean latency of I/Os after    the scatter of these I/Os
      pauses
    deviations, percentiles of    the error of a deviation, and of a rank, from this many
      seconds
    percentiles of latency        half a bin of fio's histogram, and what the rank leaves open, by the number of I/Os
                                  and by how their share beyond it differs by the second
    the longest latency           the bin whose upper edge it is
    energy                        the budget of the rig (power_uncertainty_percent)
    power, energy per I/O         the budget of the rig, and the scatter of the seconds
    highest sample                the budget of the rig, of one sample, and samples at the edges of the window
    write amplification           its own error

None: not known, and nothing is claimed of it."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ssdrig.base.uncertain import Uncertain, deviation_share, difference, mean_error, stretch_error, t95
from ssdrig.load.fiotext import plat_ns, plat_upper_ns
from ssdrig.meter import uncertainty
from ssdrig.plan.rules import windows

if TYPE_CHECKING:
    from ssdrig.reading.rundata import Rail, RunData

OF_SECONDS = ("iops_mean", "bw_mean_MBps", "lat_mean_us")
OF_POWER = ("power_mean_W", "energy_uJ_per_io", "energy_J_per_GB", "iops_per_W")
OF_QUANTILES = {"iops_p0_1": 0.001, "iops_p1": 0.01, "iops_p5": 0.05, "iops_p50": 0.5}  # of seconds, the share below
# of latency: one I/O in this many is slower
PERCENTILES = {"p50": 2, "p99": 100, "p999": 1000, "p9999": 10_000, "p99999": 100_000}
OF_PERCENTILES = tuple(f"{kind}_{name}_us" for kind in ("lat", "clat") for name in PERCENTILES)
OF_DIRECTIONS = tuple(
    f"{direction}_{key}"
    for direction in ("read", "write")
    for key in ("iops", "lat_mean_us", *(f"lat_{name}_us" for name in PERCENTILES if name != "p99999"), "lat_max_us")
)
# figures of a window that can have an error
KEYS = (
    *(*OF_SECONDS, *OF_PERCENTILES, *OF_POWER, "energy_uJ_per_io_above_idle", "wa", "temperature_max_C"),
    *("energy_J", "burst_iops", "pause_mean_W", "floor_W", "power_max_W", "peak_100us_W", "own_power_ratio"),
    *("iops_sd", "consistency", *OF_QUANTILES, "lat_max_us", "clat_mean_us", "clat_max_us"),
    *("temperature_start_C", "temperature_end_C"),
    *OF_DIRECTIONS,
)
COPIED = {  # figures whose error is a figure, too
    "wa": "wa_error",
    "own_power_ratio": "own_power_ratio_error",
    "peak_100us_W": "peak_100us_uncertainty_W",
}
# of several rounds the highest
OF_MOST = ("lat_max_us", "clat_max_us", "read_lat_max_us", "write_lat_max_us", "power_max_W", "peak_100us_W")
HALF_K = 0.5  # drives report whole degrees
# Seconds. Where a drive's speed wanders over a second, collects garbage each 4 s or stalls each 5 s, the scatter of
# fewer seconds holds the truth in 32 to 93 % of cases: two of three stretches of 2 s have no stall at all.
LEAST_S = 20
# of the load around a stretch: what drifts for longer is not scatter
AROUND_LEAST_S, AROUND_S, AROUND = 40, 60, 3
# figures that stand for more than the stretch; its energy, longest latency and highest sample do not
OF_STRETCH = frozenset(
    (
        *(*OF_SECONDS, *OF_POWER, "energy_uJ_per_io_above_idle", "clat_mean_us", "iops_sd", "consistency"),
        *(*OF_QUANTILES, *OF_PERCENTILES, *(key for key in OF_DIRECTIONS if not key.endswith("max_us")), "burst_iops"),
    )
)
OF_AROUND = frozenset((*OF_SECONDS, *OF_POWER, "energy_uJ_per_io_above_idle", "clat_mean_us"))  # those of base()


def of_window(data: "RunData", figures: Mapping, begin_s: int, end_s: int) -> dict[str, float]:
    """{key: error} of the figures of these whole seconds, without those of a histogram (of_percentiles)."""
    cut, longer = slice(begin_s, end_s), base(data, begin_s, end_s) or slice(begin_s, end_s)

    def error_of(values: np.ndarray) -> float | None:
        around = values[longer][np.isfinite(values[longer])]
        if len(around) < min(AROUND_LEAST_S, longer.stop - longer.start):
            around = values[cut]
        return stretch_error(values[cut], around)

    def part_of(values: np.ndarray, per: np.ndarray, quotient: float) -> float | None:
        """The error of a quotient of two sums, as a part of it, by what each second adds to it: both may rise and fall
        together, or against each other."""
        error = error_of(values - quotient * per)
        return None if error is None else error / abs(float(values[cut].mean()))

    iops, bw_Bps, watts, mean_us = data.iops, data.bw_Bps, data.power_mean_W, figures.get("lat_mean_us")
    out = {"iops_mean": error_of(iops), "bw_mean_MBps": error_of(bw_Bps / 1e6)}
    if mean_us is not None and iops[cut].any():
        off_us = error_of(np.where(iops > 0, iops * (data.lat_mean_us - mean_us), 0.0))
        out["lat_mean_us"] = None if off_us is None else off_us / float(iops[cut].mean())
    out = {key: error for key, error in out.items() if figures.get(key) is not None}
    if not len(watts[cut]) or not np.isfinite(watts[cut]).all():
        part, of_bytes = (_part(out, figures, key) for key in ("iops_mean", "bw_mean_MBps"))
        out |= _unseen(figures, part, of_bytes)
    else:
        mean_W, ios, moved = (float(of[cut].mean()) for of in (watts, iops, bw_Bps))
        scatter_W, of_ios, of_bytes = error_of(watts), None, None
        if mean_W and ios:
            of_ios = part_of(watts, iops, mean_W / ios)
        if mean_W and moved:
            of_bytes = part_of(watts, bw_Bps, mean_W / moved)
        out |= _of_power(figures, None if scatter_W is None else scatter_W / (mean_W or 1.0), of_ios, of_bytes)
        above, key = above_idle_W(data, figures), "energy_uJ_per_io_above_idle"
        if figures.get(key) is not None and above.value and above.error is not None and ios:
            over_W = watts - data.idle_mean_W
            of_above = part_of(over_W, iops, float(over_W[cut].mean()) / ios)
            out[key] = None if of_above is None else figures[key] * math.hypot(of_above, above.error / above.value)
    out |= _of_scatter(figures, iops[cut])
    if figures.get("clat_mean_us") is not None and figures.get("lat_mean_us") and out.get("lat_mean_us") is not None:
        out["clat_mean_us"] = (out["lat_mean_us"] or 0.0) * figures["clat_mean_us"] / figures["lat_mean_us"]
    out |= {key: figures.get(error) for key, error in COPIED.items() if figures.get(key) is not None}
    degrees = ("temperature_start_C", "temperature_max_C", "temperature_end_C")
    out |= {key: HALF_K for key in degrees if figures.get(key) is not None}
    return {key: value for key, value in out.items() if value is not None}


def base(data: "RunData", begin_s: int, end_s: int) -> slice | None:
    """The seconds from which the errors of a stretch of a load are known: those around it on its side of the cliff, at
    least AROUND times as long. None of a shorter one than LEAST_S where these are too few."""
    n, cliff_s, lasts_s = len(data.iops), None, end_s - begin_s
    if n >= AROUND_LEAST_S:
        cliff_s, _ = windows.cliff(data.iops)
    first, last = 0, n
    if cliff_s is not None and not begin_s < cliff_s < end_s:
        first, last = (0, cliff_s) if end_s <= cliff_s else (cliff_s, n)
    elif cliff_s is not None and lasts_s >= LEAST_S:
        return slice(begin_s, end_s)
    around_s = max(AROUND_S, AROUND * lasts_s)
    from_s = max(first, min((begin_s + end_s - around_s) // 2, last - around_s))
    around = slice(from_s, min(last, from_s + around_s))
    if around.stop - around.start >= max(AROUND_LEAST_S, lasts_s):
        return around
    return slice(begin_s, end_s) if lasts_s >= LEAST_S else None


def claimed(data: "RunData", begin_s: int, end_s: int, bounds: Mapping[str, float], notes: list[str]) -> dict:
    """The errors of a stretch of a load, without those that a short one does not show; then with a note."""
    short = [key for key in bounds if key in OF_STRETCH]
    lasts_s = end_s - begin_s
    if lasts_s >= LEAST_S or not short or not data.iops[begin_s:end_s].any():
        return dict(bounds)
    if base(data, begin_s, end_s) is not None:
        short = [key for key in short if key not in OF_AROUND]
    if short:
        notes.append(
            f"errors: {lasts_s} s are too short for those of rates, means and percentiles; {LEAST_S} s have them"
        )
    return {key: error for key, error in bounds.items() if key not in short}


def budget_W(rails: "Sequence[Rail]", watts: Sequence[float], seconds: "slice | np.ndarray") -> float | None:
    """The budget of the sum of these mean powers, one of each rail, of all samples of the seconds; None where a sample
    is at its sensor's limit, or the limits of a chip are not known."""
    means = []
    for rail, mean_W in zip(rails, watts, strict=True):
        if rail.facts is None or rail.volts_V is None or rail.clipped[seconds].any():
            return None
        samples = int(rail.samples[seconds].sum())
        low = uncertainty.part(samples, *rail.low[:, seconds].sum(axis=1))
        means.append(uncertainty.Mean(rail.facts, rail.volts_V, mean_W, samples, low=low))
    if not means:
        return None
    error = uncertainty.expanded_W(means)
    return error if math.isfinite(error) else None


def of_totals(figures: Mapping, rates: Mapping[str, Sequence[float]], lasts_s: float) -> dict[str, float]:
    """{key: error} of the figures of a step that is known by its slices alone; of less than LEAST_S of I/O the energy
    alone has one.

    rates: {key: of each slice}
    lasts_s: of I/O, of all slices"""
    out: dict[str, float | None] = {}
    if lasts_s >= LEAST_S:
        out = {key: mean_error(values) for key, values in rates.items() if figures.get(key) is not None}
    ios, moved = (_part(out, figures, key) for key in ("iops_mean", "bw_mean_MBps"))
    of_power = _unseen(figures, ios, moved)
    return {key: value for key, value in (out | of_power).items() if value is not None}


def _unseen(figures: Mapping, ios: float | None, moved: float | None) -> dict[str, float | None]:
    """Errors of energy and power where only their sum is known: power is taken to scatter as the I/Os do, and against
    them. `ios`, `moved`: errors of IOPS and MB/s as parts of them; of None the energy alone has one."""
    of_power = _of_power(figures, ios, None if ios is None else 2 * ios, None if moved is None else 2 * moved)
    return of_power if ios is not None else {key: error for key, error in of_power.items() if key == "energy_J"}


def _part(bounds: Mapping, figures: Mapping, key: str) -> float | None:
    """The error of a figure as a part of it."""
    return bounds[key] / figures[key] if bounds.get(key) is not None and figures.get(key) else None


def _of_scatter(figures: Mapping, counts: np.ndarray) -> dict[str, float]:
    """Errors of deviation, consistency and quantiles of the `counts` of seconds. The deviation: by how the squares
    differ; a few seconds may make up most of it. A rank is known to 2 sqrt(n p (1 - p)); neighbouring seconds are
    alike: twice that is taken, or what their share below the quantile shows."""
    n, out = len(counts), {}
    if not n:
        return {}
    squares = (counts - counts.mean()) ** 2
    square, share = float(squares.sum()) / max(1, n - 1), deviation_share(n) if n > 1 else 0.0
    off = mean_error(squares)
    if square and off is not None:
        share = max(share, math.sqrt(1 + off / square) - 1, 1 - math.sqrt(max(0.0, 1 - off / square)))
    if n > 1:
        out = {key: figures[key] * share for key in ("iops_sd", "consistency") if figures.get(key) is not None}
    rising = np.sort(counts)
    for key, p in OF_QUANTILES.items():
        value = figures.get(key)
        if value is not None:
            off = max(4 * math.sqrt(n * p * (1 - p)), n * (mean_error(counts < value) or 0.0))
            low, high = np.interp(p * (n - 1) + np.array([-off, off]), np.arange(n), rising)
            out[key] = max(float(high) - value, value - float(low))
    return out


def above_idle_W(data: "RunData", figures: Mapping) -> Uncertain:
    """Mean power of the window less that of the idle step."""
    watts, percent = figures.get("power_mean_W"), figures.get("power_uncertainty_percent")
    mean = Uncertain(watts, None if percent is None or watts is None else percent / 100 * watts)
    return difference(mean, Uncertain(data.idle_mean_W, data.idle_uncertainty_W))


def _of_power(
    figures: Mapping, scatter: float | None, of_ios: float | None, of_bytes: float | None
) -> dict[str, float | None]:
    """Errors of energy, mean power and their quotients.

    scatter: error of the mean power by how the seconds differ, as a part of it; None: not known
    of_ios, of_bytes: the same of the energy of an I/O, and of a byte"""
    percent, mean_W = figures.get("power_uncertainty_percent"), figures.get("power_mean_W")
    if percent is None or not mean_W:
        return {}
    budget = percent / 100
    shares = {"energy_J": budget, "power_mean_W": math.hypot(budget, scatter or 0.0)}
    for key in ("energy_uJ_per_io", "iops_per_W"):
        shares[key] = None if of_ios is None else math.hypot(budget, of_ios)
    shares["energy_J_per_GB"] = None if of_bytes is None else math.hypot(budget, of_bytes)
    return {
        key: None if figures.get(key) is None or share is None else share * abs(figures[key])
        for key, share in shares.items()
    }


def rank_errors(hist: np.ndarray, begin_s: int, end_s: int) -> dict[str, float]:
    """{name of PERCENTILES: by how much the share of I/Os beyond it is uncertain}, by how that share differs from
    second to second. `hist`: cells as in RunData.hist; {} without any in these seconds."""
    cells = hist[(hist[:, 0] >= begin_s) & (hist[:, 0] < end_s)] if len(hist) else hist
    if not len(cells):
        return {}
    second, bins, counts = cells[:, 0] - begin_s, cells[:, 1], cells[:, 2].astype(float)
    ios = np.bincount(second, counts, end_s - begin_s)
    rising = np.cumsum(np.bincount(bins, counts))
    out = {}
    for name, one_in in PERCENTILES.items():
        beyond = bins > np.searchsorted(rising, rising[-1] * (1 - 1 / one_in))
        slower = np.bincount(second[beyond], counts[beyond], end_s - begin_s)
        error = mean_error((slower - ios * slower.sum() / ios.sum()) / ios.mean())
        if error is not None:
            out[name] = error
    return out


def of_percentiles(
    kind: str, counts: np.ndarray, names: Mapping[str, int], k: int, ranks_off: Mapping[str, float] | None = None
) -> dict[str, float]:
    """{key: error} of percentiles and of the longest of these I/Os (by bin of fiotext.plat_ns, host time; `k` times
    dilated), `names`: one in this many is slower. The rank of a percentile is itself only known to 2 sqrt(n p (1 - p)),
    and I/Os come in bursts: twice that is taken, or what rank_errors() shows of them (`ranks_off`)."""
    bins = np.flatnonzero(counts)
    if not len(bins):
        return {}
    rising, n = np.cumsum(counts[bins]), float(counts.sum())
    upper, middle = plat_upper_ns(bins) / 1000 / k, plat_ns(bins) / 1000 / k
    last = np.flatnonzero(counts[bins] >= 0.5)[-1:]
    longest = int(last[0]) if len(last) else -1
    out = {f"{kind}_max_us": 2 * float(upper[longest] - middle[longest]) or 0.001}
    for name, one_in in names.items():
        share = 1 / one_in
        off = max(4 * math.sqrt(n * share * (1 - share)), n * (ranks_off or {}).get(name, 0.0))
        ranks = n * (1 - share) + np.array([-1, 0, 1]) * off
        ranks = np.clip(ranks, 1, n)
        places = np.minimum(np.searchsorted(rising, ranks), len(bins) - 1)
        half_us = np.maximum(upper[places] - middle[places], 0.0005)
        within = 2 * (ranks - rising[places]) / counts[bins[places]] + 1  # from -1 to 1
        low_us, _, high_us = middle[places] + np.clip(within, -1, 1) * half_us
        at_us = middle[places[1]]
        out[f"{kind}_{name}_us"] = float(max(half_us[1], high_us - at_us, at_us - low_us))
    return out


def of_apart_us(counts: np.ndarray, k: int) -> float | None:
    """The error of the mean latency of I/Os that each come after a pause; None of fewer than two. fio reports nothing
    in a pause, so the seconds of such I/Os are not known, but they do not come in bursts either.

    counts: by bin of fiotext.plat_ns, host time
    k: time dilation"""
    bins = np.flatnonzero(counts)
    held, n = counts[bins], float(counts.sum())
    if n < 2:
        return None
    middle_us, half_us = (
        np.asarray(ns, float) / 1000 / k for ns in (plat_ns(bins), plat_upper_ns(bins) - plat_ns(bins))
    )
    mean_us = float(held @ middle_us) / n
    square = float(held @ ((middle_us - mean_us) ** 2 + half_us**2 / 3)) / (n - 1)
    return t95(n - 1) * math.sqrt(square / n)


def together(rounds: Sequence[Mapping], out: Mapping) -> dict[str, float]:
    """Errors of several rounds of one point, from their figures `rounds` and the joint figures `out`: the larger of the
    rounds' own errors and of their scatter."""
    errors = [figures.get("errors") or {} for figures in rounds]
    made: dict[str, float] = {}
    for key in set.intersection(*map(set, errors)) if errors else ():
        if out.get(key) is None:
            continue
        own = max(
            error[key] for error in errors
        )  # errors that they share, such as the rig's calibration, do not average out
        if key in OF_MOST:
            made[key] = own
            continue
        if key == "energy_J":  # a sum; the rig's error is the same in each
            made[key] = sum(error[key] for error in errors)
            continue
        if key in OF_SECONDS:
            own = math.sqrt(sum(error[key] ** 2 for error in errors)) / len(errors)
        between = mean_error([figures[key] for figures in rounds if figures.get(key) is not None])
        made[key] = max(own, between or 0.0)
    return made


def cause(key: str, rounds: str = "") -> str:
    """What the error of a figure comes from, in words; "" where this module does not make it. `rounds`: that its value
    is of, in words."""
    if rounds:
        return f"the rounds differ ({rounds})"
    if key in OF_SECONDS:
        return "its seconds differ"
    if key in OF_POWER:
        return "its seconds differ, and the budget of the rig"
    if key in OF_PERCENTILES:
        return "the width of a bin of fio's histogram, and the number of I/Os beyond it"
    return "the bin of fio's histogram in which the slowest I/O is, and I/Os at the edges" if key in OF_MOST[:4] else ""


def named(figures: Mapping) -> dict[str, float]:
    """{"KEY_error": error} of the figures of a window: a column each, as databases have them."""
    errors = figures.get("errors") or {}
    return {f"{key}_error": errors[key] for key in KEYS if errors.get(key) is not None}


def of(key: str, figures: Mapping, why: str = "") -> Uncertain:
    """A figure of a window with its error."""
    value = figures.get(key)
    if value is None:
        return Uncertain(None, None, "unknown", why or f"{key} is not known")
    return Uncertain(float(value), (figures.get("errors") or {}).get(key))
