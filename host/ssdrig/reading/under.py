"""Reads and writes of one load told apart: what a reader waits for while another thread writes. Pure.

fio reports the two threads of such a load as one, reads on one side and writes on the other."""

from typing import Any

import numpy as np

from ssdrig.load import fiotext

TAIL = 10  # a percentile P(p) needs so many I/Os beyond it
PERCENTILES = {"p50_us": 2, "p99_us": 100, "p999_us": 1000, "p9999_us": 10_000}  # one I/O in so many lies above it
KEYS = ("iops", "mean_us", *PERCENTILES, "max_us")
WHY = "too few I/Os for this percentile"


def sides(document: dict | None, host_s: float, k: int) -> dict[str, dict[str, Any]]:
    """{"reads", "writes"}: see side(); of fio's last document."""
    return {f"{name}s": side(fiotext.bins(document, name, "lat_ns"), host_s, k) for name in ("read", "write")}


def side(counts: np.ndarray, host_s: float, k: int) -> dict[str, Any]:
    """KEYS of I/Os whose histogram of lat this is (bins of fiotext.plat_ns, host time), done in so many seconds of the
    host: drive time, None where there are too few. Nearest rank."""
    out: dict[str, Any] = dict.fromkeys(KEYS)
    n = int(counts.sum())
    if not n or not host_s:
        return out
    at = np.flatnonzero(counts)
    us, rising = fiotext.plat_ns(at) / 1000 / k, np.cumsum(counts[at])
    out |= {"iops": n / host_s * k, "mean_us": float((us * counts[at]).sum() / n)}
    out |= {"max_us": float(fiotext.plat_upper_ns(at[-1])) / 1000 / k}
    for name, one_in in PERCENTILES.items():
        if n >= TAIL * one_in:
            out[name] = float(us[np.searchsorted(rising, n - n // one_in)])
    return out
