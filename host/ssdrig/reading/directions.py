"""Reads and writes of one load separately, from fio's last document, which counts each direction. Pure."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ssdrig.load import fiotext
from ssdrig.reading import errors

DIRECTIONS = ("read", "write")
PERCENTILES = {name: one_in for name, one_in in errors.PERCENTILES.items() if name != "p99999"}
KEYS = errors.OF_DIRECTIONS
WHY = "it has too few I/Os of that direction, or reads and writes are not counted apart: fio does that for a load only"
TAIL = 10  # a percentile P(p) needs this many I/Os beyond it


def histograms(document: dict | None) -> dict[str, np.ndarray]:
    """{"read", "write"}: the histogram of lat of fio's last document, int64 (bins of fiotext.plat_ns,), host time."""
    return {direction: fiotext.bins(document, direction, "lat_ns") for direction in DIRECTIONS}


def figures(
    counts: Mapping[str, np.ndarray], seconds: float, k: int, ranks_off: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """KEYS, each None where there are too few I/Os, and `errors`: {key: half of the 95 % interval}.

    counts: as histograms() makes them
    seconds: of drive time, in which these I/Os were done
    k: time dilation
    ranks_off: see errors.of_percentiles; of all I/Os together
    Percentiles use the nearest rank, the mean the bins' middles, good to half a bin (0.8 %)."""
    out: dict[str, Any] = dict.fromkeys(KEYS)
    bounds: dict[str, float] = {}
    for direction, by_bin in counts.items():
        n = int(by_bin.sum())
        out[f"{direction}_iops"] = n / seconds if seconds else None
        if not n:
            continue
        at = np.flatnonzero(by_bin)
        us, rising = fiotext.plat_ns(at) / 1000 / k, np.cumsum(by_bin[at])
        mean_us = float((us * by_bin[at]).sum() / n)
        half_bin_us = fiotext.plat_upper_ns(at) / 1000 / k - us
        bounds[f"{direction}_lat_mean_us"] = float((half_bin_us * by_bin[at]).sum() / n)
        out[f"{direction}_lat_mean_us"] = mean_us
        out[f"{direction}_lat_max_us"] = float(fiotext.plat_upper_ns(at[-1])) / 1000 / k
        for name, one_in in PERCENTILES.items():
            if n >= TAIL * one_in:
                out[f"{direction}_lat_{name}_us"] = float(us[np.searchsorted(rising, n - n // one_in)])
        for key, error in errors.of_percentiles("lat", by_bin, PERCENTILES, k, ranks_off).items():
            bounds[f"{direction}_{key}"] = error
    return out | {"errors": {key: error for key, error in bounds.items() if out[key] is not None}}


def scattered(figures: Mapping[str, Any], bounds: Mapping[str, float]) -> dict[str, float]:
    """{key: error} of the rates and the means of latency: reads and writes scatter by the second as all I/Os do, which
    is all that is known by the second.

    figures: of the whole load, KEYS among them
    bounds: the errors of `figures`, those of KEYS from figures() above"""
    out: dict[str, float] = {}
    for whole, key in (("iops_mean", "iops"), ("lat_mean_us", "lat_mean_us")):
        if not figures.get(whole) or bounds.get(whole) is None:
            continue
        for direction in DIRECTIONS:
            value = figures.get(f"{direction}_{key}")
            if value:
                share = bounds[whole] / figures[whole]
                out[f"{direction}_{key}"] = float(np.hypot(value * share, bounds.get(f"{direction}_{key}", 0.0)))
    return out
