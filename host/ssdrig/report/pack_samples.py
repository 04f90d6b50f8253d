"""Power below the second as the page carries it: arrays of 16 bits, low and high bytes apart, deflated (samples.js)."""

import base64
import zlib

import numpy as np

from ssdrig.report.pack import MISSING

TICK_s = 20e-6  # in which the times of samples are written
LONGEST_TICKS = 50_000  # a longer gap begins a new piece
LEVELS = 60_000
OF_SAMPLES = 4_000  # levels of samples, whose noise is larger than a step of these
ROUGH = 16  # steps of an extreme, which is drawn and no more, in one of a mean
MOMENTS = 24  # of all runs together, as long as each has two
FIRST = ("highest", "cliff", "stall", "")  # which moments stay where there are many runs


def zipped(*arrays: np.ndarray) -> str:
    """uint16 arrays, deflated, as base64."""
    planes = [array.astype("<u2").view(np.uint8).reshape(-1, 2).T.tobytes() for array in arrays]
    return base64.b64encode(zlib.compress(b"".join(planes), 9)).decode()


def fine(data) -> dict | None:
    """The cells of a run (analysis.RunData); None where they are no finer than its seconds."""
    if not len(data.fine_mean_W) or data.fine_step_s >= 1 or not np.isfinite(data.fine_mean_W).any():
        return None
    lo, step = _scale(data.fine_mean_W, data.fine_min_W, data.fine_max_W)
    mean = _codes(data.fine_mean_W, lo, step, 1, np.rint)
    least = _codes(data.fine_min_W, lo, step, ROUGH, np.floor)
    most = _codes(data.fine_max_W, lo, step, ROUGH, np.ceil)
    return {"every": data.fine_step_s, "lo": lo, "step": step, "n": len(mean), "z": zipped(mean, least, most)}


def moments(data, runs: int, everything: bool = False) -> list[dict]:
    """The samples around moments; of many runs the first few of each."""
    kept = sorted(data.moments, key=lambda one: [one[0].startswith(word) for word in FIRST].index(True))
    kept = kept if everything else kept[: max(2, MOMENTS // runs)]
    return [
        {"words": words[:60], **_samples(t_s[piece], P[piece])}
        for words, t_s, P in sorted(kept, key=lambda one: one[1][0])
        for piece in _pieces(t_s)
    ]


def _pieces(t_s: np.ndarray) -> list[slice]:
    cuts = [0, *(np.flatnonzero(np.diff(t_s) > LONGEST_TICKS * TICK_s) + 1).tolist(), len(t_s)]
    return [slice(a, b) for a, b in zip(cuts, cuts[1:]) if b - a > 1]


def _samples(t_s: np.ndarray, P: np.ndarray) -> dict:
    ticks = np.rint((t_s - t_s[0]) / TICK_s).astype(np.int64)
    lo, step = _scale(P, levels=OF_SAMPLES)
    codes = zipped(np.diff(ticks, prepend=0), _codes(P, lo, step, 1, np.rint))
    return {"t0": round(float(t_s[0]), 6), "tick": TICK_s, "lo": lo, "step": step, "n": len(P), "z": codes}


def _scale(*series: np.ndarray, levels: int = LEVELS) -> tuple[float, float]:
    low = min(float(np.nanmin(values)) for values in series)
    high = max(float(np.nanmax(values)) for values in series)
    return low, (high - low) / (levels - ROUGH) or 1e-6


def _codes(values: np.ndarray, lo: float, step: float, rough: int, rounded) -> np.ndarray:
    """Steps from lo, whole multiples of `rough`; MISSING for not-a-number."""
    with np.errstate(invalid="ignore"):
        steps = rounded(np.round((values - lo) / step, 3) / rough) * rough
    return np.where(np.isfinite(values), steps, MISSING).astype(np.uint16)
