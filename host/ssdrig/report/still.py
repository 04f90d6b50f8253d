"""The plots over time as SVG: for readers without JavaScript, and for `--embed`. Of each stretch of seconds the lowest
and the highest value, so that no stall and no peak is lost."""

from collections.abc import Sequence

import numpy as np

from ssdrig.report.plates import WIDE, Plate, line
from ssdrig.views.svg import Plot, extent, thinned_series

HEIGHT = 300
POINTS = 1500  # of all runs of a plot together
PANELS = {  # panel: title, series of RunData, axis, logarithmic
    "whole": ("IOPS over the load", "iops", "IOPS", True),
    "power": ("Power, mean of each second", "power_mean_W", "W", False),
    "energy": ("Energy per I/O", "energy", "µJ per I/O", True),
    "latency": ("P99 of each second", "lat_p99_us", "µs", True),
    "wa": ("Write amplification since the start of the load", "wa", "NAND / host bytes", False),
}


def series(data, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Times (s) and values of a run (analysis.RunData)."""
    if key == "wa":
        return data.wa_t_s, data.wa_value
    if key == "energy":
        if len(data.power_mean_W) != len(data.iops):
            return np.zeros(0), np.zeros(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(data.iops > 0, data.power_mean_W / data.iops * 1e6, np.nan)
    else:
        values = getattr(data, key)
    return np.arange(len(values)), values


def plate(name: str, runs: Sequence, looks: Sequence[dict], review: int) -> Plate | None:
    """One panel of all runs; None where none of them has a value."""
    title, key, unit, log = PANELS[name]
    found = [series(data, key) for data in runs]
    values = np.concatenate([of for _, of in found])
    if not (np.isfinite(values) & ((values > 0) | (not log))).any():
        return None
    last = max(float(t.max()) for t, _ in found if len(t))
    plot = Plot(title, WIDE, HEIGHT, (0.0, max(1.0, last)), extent(values, log), y_log=log)
    plot.axes("s since the first I/O", unit)
    most = max(120, POINTS // len(runs))
    for i in sorted(range(len(runs)), key=lambda i: i == review):
        line(plot, thinned_series(*found[i], most), i, looks[i], i == review)
    return Plate(name, None, title, "", plot.text(False))


def looks(of: Sequence[dict], review: int) -> list[dict]:
    """The looks of runs, the reviewed one in its colour."""
    return [look | {"colour": "--review"} if i == review else look for i, look in enumerate(of)]
