"""What the plots of the report page need from a run, packed into JSON: typed arrays as base64, for report.js."""

import base64

import numpy as np

MISSING, MISSING_SHORT = 65535, 4095  # as a code of 16, and of 12 bits
COARSE = 16  # steps of the fine scale in one of the other
SHAPES = {  # how panels.js draws a run's marks, and the glyph that stands for them in words
    "circle": "●",
    "square": "■",
    "up": "▲",
    "diamond": "◆",
    "down": "▼",
    "plus": "✚",
    "bar": "▮",
    "dash": "▬",
    "left": "◀",
    "right": "▶",
}
COLOURS = ["blue", "green", "purple", "orange", "sky", "ink-soft", "yellow"]  # Okabe-Ito, darkened; report.css has them


# series of a run with a value for each second, as report.js names them -> column of its CSV
COLUMNS = {
    "iops": "iops",
    "lat_mean": "lat_mean_us",
    "lat_p99": "clat_p99_us",
    "power_mean": "power_mean_W",
    "power_min": "power_min_W",
    "power_max": "power_max_W",
    "energy": "energy_uJ_per_io",  # report.js computes it
}


def look(index: int) -> dict:
    """Shape, glyph and colour (a custom property of report.css) of run `index`. The reviewed run is vermillion."""
    shape = list(SHAPES)[index % len(SHAPES)]
    return {"shape": shape, "glyph": SHAPES[shape], "colour": f"--{COLOURS[index % len(COLOURS)]}"}


def counts(values: np.ndarray) -> dict:
    """Whole numbers >= 0, exact: uint16 or uint32, base64, little endian."""
    values = np.rint(values)
    kind = "<u2" if values.size == 0 or values.max() < MISSING else "<u4"
    return {"as": kind[1:], "b": base64.b64encode(values.astype(kind).tobytes()).decode()}


def linear(*series: np.ndarray) -> list[dict]:
    """Series of numbers as uint16 steps from the lowest to the highest of all (1/65504 of that range each). One scale
    for all of them keeps their order: a mean never becomes larger than its maximum. Not-a-number stays missing."""
    lo, step, codes = _codes(*series)
    return [_fine("lin", lo, step, code) for code in codes]


def with_extremes(mean: np.ndarray, least: np.ndarray, most: np.ndarray) -> list[dict]:
    """As linear(); the extremes, which are drawn and no more, in 1/4094 of the range each, rounded outwards."""
    lo, step, (of_mean, of_least, of_most) = _codes(mean, least, most)
    return [
        _fine("lin", lo, step, of_mean),
        _short("lin", lo, step, of_least, np.floor),
        _short("lin", lo, step, of_most, np.ceil),
    ]


def logarithmic(values: np.ndarray, short: bool = False) -> dict:
    """Numbers > 0 over many decades: `linear` of their logarithm. short: in 1/4094 of the range, which of three decades
    is 0.2 %; fio's histogram has bins of 1.6 %."""
    with np.errstate(invalid="ignore", divide="ignore"):
        lo, step, (codes,) = _codes(np.where(values > 0, np.log(values), np.nan))
    return _short("log", lo, step, codes, np.rint) if short else _fine("log", lo, step, codes)


def _codes(*series: np.ndarray) -> tuple[float, float, list[np.ndarray]]:
    """(lowest value, step, codes of each series: value = lowest + code * step, not-a-number where missing)."""
    together = np.concatenate(series)
    good = together[np.isfinite(together)]
    lo, hi = (float(good.min()), float(good.max())) if good.size else (0.0, 0.0)
    step = (hi - lo) / (COARSE * (MISSING_SHORT - 1)) or 1e-6
    return lo, step, [np.where(np.isfinite(values), np.rint((values - lo) / step), np.nan) for values in series]


def _fine(kind: str, lo: float, step: float, codes: np.ndarray) -> dict:
    octets = np.where(np.isnan(codes), MISSING, codes).astype("<u2").tobytes()
    return {"as": kind, "lo": lo, "step": step, "b": base64.b64encode(octets).decode()}


def _short(kind: str, lo: float, step: float, codes: np.ndarray, rounded) -> dict:
    """Two codes of 12 bits in three bytes; `n` of them."""
    short = np.where(np.isnan(codes), MISSING_SHORT, rounded(codes / COARSE)).astype(np.int64)
    a, b = np.pad(short, (0, len(short) % 2)).reshape(-1, 2).T
    octets = np.stack([a & 255, a >> 8 | (b & 15) << 4, b >> 4], axis=1).astype("u1").tobytes()
    return {"as": kind, "lo": lo, "step": COARSE * step, "n": len(short), "b": base64.b64encode(octets).decode()}


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
        "lat_p99": logarithmic(data.lat_p99_us, short=True),
        "temp": {"t": rounded(data.temp_t_s), "v": rounded(data.temperature_C)},
        "wa": {"t": rounded(data.wa_t_s), "v": rounded(data.wa_value, 5), "e": rounded(data.wa_error, 5)},
        "rails": (
            [{"name": rail.name, "mean": linear(rail.power_mean_W)[0]} for rail in data.rails]
            if len(data.rails) > 1
            else []
        ),
        "polls": [[round(a, 3), round(b, 3)] for a, b, _ in data.polls],
        "marks": [[round(t, 3), text[:40]] for t, text in data.marks],
    }


def rounded(values, places: int = 3) -> list[float]:
    return [round(float(v), places) for v in values]
