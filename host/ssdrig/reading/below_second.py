"""What only samples show of a run's power: the load and what follows in fine cells, the samples themselves around the
moments that a reader asks for, and how often each power was seen. One pass over rig.bin gives it all (reduced.py). And
where the energy of a window went, by these samples: parts_of()."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ssdrig.base.uncertain import Uncertain, difference
from ssdrig.base.words import digits
from ssdrig.meter import rails, reduced
from ssdrig.plan.rules import windows
from ssdrig.reading.rundata import SECOND_NS, RunData

STEPS_ms = (10, 20, 50, 100, 200, 500, 1000)
MOST_CELLS = 12_000
MOST_AFTER_S = 60  # of what follows the load
HALF_S = 1.0  # around a moment
MOST_SAMPLES = 6000  # of a moment
MOST_STALLS = MOST_MARKS = 3
BIN_W = 1e-3
MOST_W = 65.0  # higher values count as this


def fine_ns(data: RunData) -> np.ndarray:
    """Edges of the fine cells, int64 host ns, from the first I/O; [] without a load. Sets `fine_step_s`."""
    if data.t0_ns is None or not len(data.iops):
        return np.empty(0, np.int64)
    last_ns = max((event["t_ns"] for event in data.events), default=data.t0_ns)
    after_s = min(MOST_AFTER_S, float(data.axis_s(last_ns)) - len(data.iops))
    seconds = len(data.iops) + max(0, int(after_s))
    step_ms = next((step for step in STEPS_ms if seconds * 1000 <= step * MOST_CELLS), STEPS_ms[-1])
    data.fine_step_s = step_ms / 1000
    cells = seconds * 1000 // step_ms
    return data.t0_ns + data.k * step_ms * (SECOND_NS // 1000) * np.arange(cells + 1, dtype=np.int64)


def place(data: RunData, powers: list[reduced.Reduced], edges_ns: np.ndarray) -> None:
    """Mean, lowest and highest power of each fine cell."""
    if not powers or len(edges_ns) < 2:
        return
    step_s = data.fine_step_s * data.k
    data.fine_mean_W = rails.steps_J(powers, edges_ns) / step_s
    data.fine_min_W, data.fine_max_W = reduced.extremes_W(powers, edges_ns)


def moments(data: RunData) -> list[tuple[str, float]]:
    """Moments of interest (s of drive time), except the highest sample, which only the samples show."""
    n, marks = len(data.iops), [("start of the load", HALF_S)]
    if not n:
        return []
    cliff, _ = windows.cliff(data.iops)
    if cliff is not None:
        marks.append(("cliff", float(cliff)))
    still = np.flatnonzero(data.iops == 0)
    stalls = np.split(still, np.flatnonzero(np.diff(still) > 1) + 1) if len(still) else []
    stalls.sort(key=len, reverse=True)
    marks += [(f"stall of {len(stall)} s", float(stall[0]) + HALF_S) for stall in stalls[:MOST_STALLS]]
    marks.append(("end of the load", float(data.load_s)))
    return marks


class Watch:
    """Given all samples of a run in order: keeps those around moments, those around the highest, and the histograms.
    `everything`: keeps all samples of the load."""

    def __init__(self, data: RunData, everything: bool = False):
        self._data, self._k, n = data, data.k, len(data.iops)
        marks = [
            (str(event.get("text")), float(data.axis_s(event["t_ns"])))
            for event in data.events
            if event["kind"] in ("note", "rig.lost")
        ]
        marks = [(text, t) for t, text in data.remarks()] + marks
        wanted = [("all", 0.0, float(n))] if everything else []
        if not everything:
            around = moments(data) + [(text, t) for text, t in marks if 0 <= t <= n][:MOST_MARKS]
            wanted = [(words, max(0.0, t - HALF_S), t + HALF_S) for words, t in around]
        self._wanted = [(words, self._ns(a), self._ns(b)) for words, a, b in wanted] if data.t0_ns is not None else []
        self._pieces: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in self._wanted]
        self._whole = everything
        self._peak: tuple[float, np.ndarray, np.ndarray] = -np.inf, np.empty(0, np.int64), np.empty(0)
        spans = {"all": (0, n), "steady": (data.zoom_s, n)}
        self._spans = {name: (self._ns(a), self._ns(b)) for name, (a, b) in spans.items() if data.t0_ns and b > a}
        self._hist = {name: np.zeros(round(MOST_W / BIN_W) + 1, np.int64) for name in self._spans}

    def _ns(self, t_s: float) -> int:
        return int(self._data.t0_ns or 0) + round(t_s * self._k * SECOND_NS)

    def __call__(self, t_ns: np.ndarray, P: np.ndarray) -> None:
        if not len(t_ns):
            return
        for (_, begin, end), pieces in zip(self._wanted, self._pieces, strict=True):
            if begin <= t_ns[-1] and t_ns[0] < end:
                a, b = np.searchsorted(t_ns, (begin, end))
                pieces.append((t_ns[a:b].copy(), P[a:b].astype(np.float32)))
        for name, (begin, end) in self._spans.items():
            if begin <= t_ns[-1] and t_ns[0] < end:
                a, b = np.searchsorted(t_ns, (begin, end))
                watts = P[a:b]
                watts = watts[np.isfinite(watts)]
                bins = np.clip(watts, 0.0, MOST_W) * (1 / BIN_W)
                counts = np.bincount(bins.astype(np.int64))
                self._hist[name][: len(counts)] += counts
                if name == "all" and len(watts):
                    self._highest(t_ns[a:b], P[a:b])

    def _highest(self, t_ns: np.ndarray, P: np.ndarray) -> None:
        top = int(np.nanargmax(P))
        if P[top] > self._peak[0]:
            half = round(HALF_S * self._k * SECOND_NS)
            a, b = np.searchsorted(t_ns, (t_ns[top] - half, t_ns[top] + half))
            near = slice(max(int(a), top - MOST_SAMPLES // 2), min(int(b), top + MOST_SAMPLES // 2))
            self._peak = float(P[top]), t_ns[near].copy(), P[near].astype(np.float32)

    def end(self) -> None:
        """No sample follows: sets `moments` and `watts_hist` of the run."""
        data = self._data
        pieces = [
            (words, np.concatenate([t for t, _ in pieces]), np.concatenate([P for _, P in pieces]))
            for (words, *_), pieces in zip(self._wanted, self._pieces, strict=True)
            if pieces
        ]
        if self._peak[0] > -np.inf and not self._whole:
            pieces.insert(1, (f"highest sample, {digits(self._peak[0], 3)} W", *self._peak[1:]))
        for words, t_ns, P in pieces:
            if len(t_ns) > 1:
                middle, half = len(t_ns) // 2, MOST_SAMPLES // 2
                near = slice(None) if self._whole else slice(max(0, middle - half), middle + half)
                data.moments.append((words, data.axis_s(t_ns[near]), P[near]))
        for name, counts in self._hist.items():
            last = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
            data.watts_hist[name] = counts[:last].copy()


PEAK = 1.2  # of the median sample: higher samples are peaks


class Parts(NamedTuple):
    """The first three add up to the energy of the window. after_J: above the floor, from the end of the load to the
    idle step; None within its uncertainty, or of a window that is not the whole load. peak_W:
    where peaks begin."""

    floor_J: float
    work_J: float
    peaks_J: float
    after_J: float | None
    peak_W: float


def parts_of(data: RunData, name: str, figures: Mapping) -> Parts | None:
    """The parts of the energy of the window `name` ("all", "steady"). None without its energy, its samples, or an idle
    step for the floor."""
    counts, total_J = data.watts_hist.get(name), figures["energy_J"]
    if counts is None or not counts.sum() or data.idle_mean_W is None or total_J is None:
        return None
    seconds = figures["t1_s"] - figures["t0_s"]
    watts = (np.arange(len(counts)) + 0.5) * BIN_W
    peak_W = PEAK * float(watts[int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))])
    floor_J = min(data.idle_mean_W * seconds, total_J)
    peaks_J = float((counts * np.maximum(0, watts - peak_W)).sum() / counts.sum()) * seconds
    peaks_J = min(peaks_J, total_J - floor_J)
    after_J = None
    if name == "all" and data.after_J is not None and data.after_s:
        after = after_above(data, figures)
        after_J = None if after.known and (after.value or 0.0) <= (after.error or 0.0) else after.value
    return Parts(floor_J, total_J - floor_J - peaks_J, peaks_J, after_J, peak_W)


def after_above(data: RunData, figures: Mapping) -> Uncertain:
    """Energy above the floor from the end of the load to the idle step."""
    total_J, seconds, percent = data.after_J or 0.0, data.after_s or 0.0, figures.get("power_uncertainty_percent")
    still = Uncertain(data.idle_mean_W, data.idle_uncertainty_W).scaled(seconds)
    above = difference(Uncertain(total_J, None if percent is None else percent / 100 * total_J), still)
    return above if above.known else Uncertain(max(0.0, total_J - (still.value or 0.0)))
