"""Where the energy of a window went: what the drive would have taken idle, what the load took above that, its peaks,
and what the drive did by itself after the load. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ssdrig.base.uncertain import Uncertain, difference
from ssdrig.reading.below_second import BIN_W
from ssdrig.reading.rundata import RunData

PEAK = 1.2  # of the median sample: what lies above is a peak


class Parts(NamedTuple):
    """The first three add up to the energy of the window. after_J: above the floor, from the end of the load to the
    idle step; None where it is no more than it is uncertain by, or of a window that is not the whole load. peak_W:
    where peaks begin."""

    floor_J: float
    work_J: float
    peaks_J: float
    after_J: float | None
    peak_W: float


def of(data: RunData, name: str, figures: Mapping) -> Parts | None:
    """Of the window `name` ("all", "steady") and its figures. None without its energy, its samples, or an idle step to
    know the floor by."""
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
    found = difference(Uncertain(total_J, None if percent is None else percent / 100 * total_J), still)
    return found if found.known else Uncertain(max(0.0, total_J - (still.value or 0.0)))
