"""What the plots of the report page need from a run, packed into JSON: numbers as rows of bits in base64, for
packed.js."""

import base64
import zlib
from collections.abc import Iterable

import numpy as np

from ssdrig.reading import latency
from ssdrig.reading.course import WINDOW_STARTS
from ssdrig.reading.event_words import step_label
from ssdrig.views.svg import look

MISSING = 65535  # as a code of 16 bits (pack_samples.py)
STEPS = 16_376  # of a series of numbers: a milliwatt of 4 W is four of them, a pixel of a plot some seventy
COARSE = 16  # steps of a mean in one of its extremes, which are drawn and no more
BLOCK = 64  # codes that are written with the same number of bits
WIDTH_BITS = 6


# series of a run with a value for each second, as packed.js names them -> column of its CSV; see columns()
COLUMNS = {
    "iops": "iops",
    "lat_mean": "lat_mean_us",
    "lat_p99": "clat_p99_us",
    "power_mean": "power_mean_W",
    "power_min": "power_min_W",
    "power_max": "power_max_W",
    "energy": "energy_uJ_per_io",  # packed.js computes it
}


def columns(runs: Iterable) -> dict[str, str]:
    """COLUMNS for these runs: for a long load the P99 by the second cover lat (RunData.hist_of)."""
    kinds = {data.hist_of for data in runs}
    return COLUMNS | {"lat_p99": f"{kinds.pop()}_p99_us" if len(kinds) == 1 else "p99_us"}


def counts(values: np.ndarray) -> dict:
    """Whole numbers >= 0, exact."""
    return {"as": "count", **_written(np.rint(values))}


def linear(*series: np.ndarray) -> list[dict]:
    """Series of numbers in STEPS from the lowest to the highest of all. One scale for all of them keeps their order: a
    mean never becomes larger than its maximum. Not-a-number stays missing."""
    lo, step, codes = _codes(*series)
    return [_scaled("lin", lo, step, code) for code in codes]


def with_extremes(mean: np.ndarray, least: np.ndarray, most: np.ndarray) -> list[dict]:
    """As linear(); the extremes, which are drawn and no more, in steps COARSE times as large, rounded outwards, and
    counted from the mean: they are near it and need few bits."""
    lo, step, (of_mean, of_least, of_most) = _codes(mean, least, most)
    base = np.floor(of_mean / COARSE)
    return [
        _scaled("lin", lo, step, of_mean),
        _offset(base - np.floor(of_least / COARSE), -1),
        _offset(np.ceil(of_most / COARSE) - base, 1),
    ]


def _offset(away: np.ndarray, sign: int) -> dict:
    """Coarse steps below (-1) or above (1) the mean; below 0 where a mean, which includes the samples between the
    seconds, is further out."""
    least = int(np.nanmin(away)) if np.isfinite(away).any() else 0
    return {"as": "offset", "coarse": COARSE, "sign": sign, "least": least, **_written(_or_missing(away - least))}


def logarithmic(values: np.ndarray) -> dict:
    """Numbers > 0 over many decades: `linear` of their logarithm."""
    with np.errstate(invalid="ignore", divide="ignore"):
        lo, step, (codes,) = _codes(np.where(values > 0, np.log(values), np.nan))
    return _scaled("log", lo, step, codes)


def few(values: np.ndarray) -> dict:
    """Numbers > 0, many of them equal, such as middles of fio's bins: a list of them (five digits), and for each
    its place there."""
    known = np.isfinite(values) & (values > 0)
    different, at = np.unique(values[known], return_inverse=True)
    codes = np.full(len(values), np.nan)
    codes[known] = at
    return {"as": "few", "values": [float(f"{v:.5g}") for v in different], **_written(_or_missing(codes))}


def _codes(*series: np.ndarray) -> tuple[float, float, list[np.ndarray]]:
    """(lowest value, step, codes of each series: value = lowest + code * step, not-a-number where missing)."""
    together = np.concatenate(series)
    good = together[np.isfinite(together)]
    lo, hi = (float(good.min()), float(good.max())) if good.size else (0.0, 0.0)
    step = (hi - lo) / STEPS or 1e-6
    return lo, step, [np.where(np.isfinite(values), np.rint((values - lo) / step), np.nan) for values in series]


def _scaled(kind: str, lo: float, step: float, codes: np.ndarray) -> dict:
    return {"as": kind, "lo": lo, "step": step, **_written(_or_missing(codes))}


def _or_missing(codes: np.ndarray) -> np.ndarray:
    """Each code one larger: 0 is missing."""
    return np.where(np.isnan(codes), 0, np.nan_to_num(codes) + 1)


def _written(codes: np.ndarray) -> dict:
    """Whole numbers >= 0 as a row of bits, the lowest first, in base64: of each BLOCK how many bits a number has
    (WIDTH_BITS), the least of them (`bits`), and how much each is above it. `n`: how many numbers."""
    n = len(codes)
    codes = codes.astype(np.int64)
    begins = np.arange(0, n, BLOCK)
    least = np.minimum.reduceat(codes, begins) if n else codes
    above = np.maximum.reduceat(codes, begins) - least if n else codes
    block = np.arange(n) // BLOCK
    bits = _bit_length(codes.max(initial=0)[None])[0]
    width = _bit_length(above)
    # the values and their widths in bits: before each block its head
    values = np.insert(codes - least[block], np.repeat(begins, 2), np.stack([width, least], axis=1).ravel())
    heads = np.stack([np.full_like(width, WIDTH_BITS), np.full_like(width, bits)], axis=1).ravel()
    widths = np.insert(width[block], np.repeat(begins, 2), heads)
    starts = np.cumsum(widths) - widths
    row = np.zeros(int(widths.sum()), np.uint8)
    for bit in range(int(widths.max(initial=0))):
        there = widths > bit
        row[starts[there] + bit] = values[there] >> bit & 1
    octets = np.packbits(row, bitorder="little").tobytes()
    return {"n": n, "bits": int(bits), "b": base64.b64encode(octets).decode()}


def _bit_length(values: np.ndarray) -> np.ndarray:
    """Bits that whole numbers below 2**53 need: 0 for 0."""
    return np.frexp(values.astype(float))[1].astype(np.int64)


def run_data(data, figure: dict, names: tuple[str, str, str, str], index: int, of_views: list[dict]) -> dict:
    """What report.js needs of one run (analysis.RunData, its figures, and those of each view); t in seconds of drive
    time."""
    drive, op, label, short = names
    power = with_extremes(data.power_mean_W, data.power_min_W, data.power_max_W)
    return {
        "id": figure["run"],
        "label": label,
        "short": short,
        "drive": drive,
        "op": op,
        "index": index,
        **look(index),
        "n": int(data.iops.size),
        "windows": [None if f["t0_s"] is None else [f["t0_s"], f["t1_s"], f["label"]] for f in of_views],
        "iops": counts(data.iops),
        **dict(zip(("power_mean", "power_min", "power_max"), power, strict=True)),
        "lat_mean": logarithmic(data.lat_mean_us),
        "lat_p99": few(data.lat_p99_us),
        "tail": tail(data),
        "temp": {"t": rounded(data.temp_t_s, 2), "v": rounded(data.temperature_C)},
        "wa": {"t": rounded(data.wa_t_s, 2), "v": rounded(data.wa_value, 5), "e": rounded(data.wa_error, 5)},
        "rails": (
            [{"name": rail.name, "mean": linear(rail.power_mean_W)[0]} for rail in data.rails]
            if len(data.rails) > 1
            else []
        ),
        "polls": [rounded(poll[:2], 2) for poll in data.polls],
        "marks": [[round(t, 3), text[:40]] for t, text in data.marks],
        "lanes": lanes(data),
    }


RIG = ("rig ", "rail ", "no samples ", "power cut ")  # how a mark of the meter or the switch begins
AFTER_s = 60  # after the load, as the cells


def lanes(data) -> list[list]:
    """[name, [[from s, to s, words]]] of each lane of events that has some: steps after the load and its window; the
    meter and the switch; notes, and what failed."""
    steps, of_rig, others = [], [], []
    begun: dict[str, float] = {}
    for event in data.events:
        if event["kind"] == "step.start":
            begun[step_label(event)] = float(data.axis_s(event["t_ns"]))
        elif event["kind"] == "step.end" and (label := step_label(event)) in begun:
            from_s, to_s = begun.pop(label), float(data.axis_s(event["t_ns"]))
            if 0 < from_s < len(data.iops) + AFTER_s:
                steps.append([round(from_s, 3), round(to_s, 3), label[:24]])
    for t_s, text in data.marks:
        lane = steps if text == WINDOW_STARTS else of_rig if text.startswith(RIG) else others
        lane.append([round(t_s, 3), round(t_s, 3), text[:40]])
    return [[name, lane] for name, lane in (("Steps", steps), ("Rig", of_rig), ("Notes", others)) if lane]


def tail(data) -> dict | None:
    """P99.9 over time: `s`, how long each stretch is, and `us`; None where no stretch has enough I/Os."""
    over_time = latency.tail_over_time(data)
    if not len(over_time.us):
        return None
    return {"s": counts(np.diff(over_time.edges_s)), "us": few(over_time.us)}


def rounded(values, places: int = 3) -> list[float]:
    """Whole numbers are ints, which take two characters less in JSON."""
    near = [round(float(v), places) for v in values]
    return [int(v) if v.is_integer() else v for v in near]


TICK_s = 20e-6  # in which the times of samples are written
LONGEST_TICKS = 50_000  # a longer gap begins a new piece
LEVELS = 60_000
OF_SAMPLES = 4_000  # levels of samples, whose noise is larger than a step of these
ROUGH = 16  # steps of an extreme, which is drawn and no more, in one of a mean
MOMENTS = 24  # of all runs together, if each has at least two
FIRST = ("highest", "cliff", "stall", "")  # which moments stay where there are many runs


def zipped(*arrays: np.ndarray) -> str:
    """uint16 arrays, deflated, as base64."""
    planes = [array.astype("<u2").view(np.uint8).reshape(-1, 2).T.tobytes() for array in arrays]
    return base64.b64encode(zlib.compress(b"".join(planes), 9)).decode()


def fine(data) -> dict | None:
    """The cells of a run (analysis.RunData); None where they are not finer than its seconds."""
    if not len(data.fine_mean_W) or data.fine_step_s >= 1 or not np.isfinite(data.fine_mean_W).any():
        return None
    lo, step = _scale(data.fine_mean_W, data.fine_min_W, data.fine_max_W)
    mean = _sample_codes(data.fine_mean_W, lo, step, 1, np.rint)
    least = _sample_codes(data.fine_min_W, lo, step, ROUGH, np.floor)
    most = _sample_codes(data.fine_max_W, lo, step, ROUGH, np.ceil)
    return {"every": data.fine_step_s, "lo": lo, "step": step, "n": len(mean), "z": zipped(mean, least, most)}


def moments(data, runs: int, everything: bool = False) -> list[dict]:
    """The samples around moments; of many runs the first few of each."""
    shown = sorted(data.moments, key=lambda one: [one[0].startswith(word) for word in FIRST].index(True))
    shown = shown if everything else shown[: max(2, MOMENTS // runs)]
    return [
        {"words": words[:60], **_samples(t_s[piece], P[piece])}
        for words, t_s, P in sorted(shown, key=lambda one: one[1][0])
        for piece in _pieces(t_s)
    ]


def _pieces(t_s: np.ndarray) -> list[slice]:
    cuts = [0, *(np.flatnonzero(np.diff(t_s) > LONGEST_TICKS * TICK_s) + 1).tolist(), len(t_s)]
    return [slice(a, b) for a, b in zip(cuts, cuts[1:]) if b - a > 1]


def _samples(t_s: np.ndarray, P: np.ndarray) -> dict:
    ticks = np.rint((t_s - t_s[0]) / TICK_s).astype(np.int64)
    lo, step = _scale(P, levels=OF_SAMPLES)
    codes = zipped(np.diff(ticks, prepend=0), _sample_codes(P, lo, step, 1, np.rint))
    return {"t0": round(float(t_s[0]), 6), "tick": TICK_s, "lo": lo, "step": step, "n": len(P), "z": codes}


def _scale(*series: np.ndarray, levels: int = LEVELS) -> tuple[float, float]:
    low = min(float(np.nanmin(values)) for values in series)
    high = max(float(np.nanmax(values)) for values in series)
    return low, (high - low) / (levels - ROUGH) or 1e-6


def _sample_codes(values: np.ndarray, lo: float, step: float, rough: int, rounded) -> np.ndarray:
    """Steps from lo, whole multiples of `rough`; MISSING for not-a-number."""
    with np.errstate(invalid="ignore"):
        steps = rounded(np.round((values - lo) / step, 3) / rough) * rough
    return np.where(np.isfinite(values), steps, MISSING).astype(np.uint16)
