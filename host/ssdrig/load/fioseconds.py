"""One fio step by the second: from its logs (fiolog.py) or its once-a-second documents (fiostatus.py). Pure."""

from dataclasses import dataclass

import numpy as np

from ssdrig.load.fiotext import BINS, plat_ns, plat_upper_ns

WINDOW_MS = 1000
TAIL_MS = 100  # a shorter rest at the end of a job is not a separate second
QUANTILES = {0.5: 2, 0.99: 100, 0.999: 1000}  # one I/O in this many is above it


class Senseless(Exception):
    """Numbers that no fio run can have left."""


@dataclass(frozen=True)
class Seconds:
    """One fio step by the second. All arrays are int64 of the same length; a second without I/O is all zeros."""

    # CLOCK_MONOTONIC at the start of each second, 1e9 apart ("status" without start.json: from 0)
    t_ns: np.ndarray
    iops: np.ndarray  # I/Os completed in the second; the sum is the job's total
    bw_bytes: np.ndarray
    lat_mean_ns: np.ndarray  # submission to completion
    lat_p50_ns: np.ndarray
    lat_p99_ns: np.ndarray
    lat_p999_ns: np.ndarray
    lat_max_ns: np.ndarray  # upper edge of the highest histogram bin used
    hist: np.ndarray  # int64 (cells, 3), by second: second, bin of fiotext.plat_ns, latencies in it, as in hist_of
    zero_seconds: int
    partial: bool  # the last second is shorter than one (job cut short or bounded by size)
    source: str  # "logs": as above; "status": made from fio's once-a-second documents, good to a second
    directions: tuple[str, ...]  # those with I/O, of read, write, trim
    totals: dict  # see fiotext.totals(); ios, bytes and lat_sum_ns are None where documents and logs disagree
    torn_bytes: int  # left at the end of logs that a crash cut off
    notes: tuple[str, ...] = ()  # contradictions, in words
    clock_notes: tuple[str, ...] = ()  # those of them that are about a clock: every I/O is counted all the same
    start_error_ns: float = 1e9  # by how much t_ns may be off, all by the same
    hist_of: str = "clat"  # "clat": since the device was given the I/O, of all lat_p*; "lat": since submission


def quantiles(cells: np.ndarray, n: int) -> dict:
    """Per second p50, p99, p999 (nearest rank, as fio does), max and mean, ns, of cells (second, bin, count); 0 where
    empty. `hist`: the cells by second, each once."""
    key, where = np.unique(cells[:, 0] * BINS + cells[:, 1], return_inverse=True)
    held = np.bincount(where, cells[:, 2], minlength=len(key)).astype(np.int64)
    second, index = np.divmod(key[held > 0], BINS)
    held = held[held > 0]
    of = np.bincount(second, held, minlength=n).astype(np.int64)
    below = np.concatenate([[0], np.cumsum(of)])[:-1]
    rising = np.cumsum(held)
    some = of > 0
    out: dict[float | str, np.ndarray] = {}
    for q, one_in in QUANTILES.items():
        rank = below[some] + of[some] - of[some] // one_in
        out[q] = np.zeros(n, np.int64)
        out[q][some] = plat_ns(index[np.searchsorted(rising, rank)])
    out["max"] = np.zeros(n, np.int64)
    out["max"][some] = plat_upper_ns(index[np.searchsorted(rising, below[some] + of[some])])
    out["mean"] = np.bincount(second, held * plat_ns(index), minlength=n) / np.maximum(of, 1)
    out["hist"] = np.stack([second, index, held], axis=1)
    return out


def seconds(zero_ms, iops, mean, levels, partial, source, total, torn) -> Seconds:
    """The seconds of a job; `levels`: its percentiles, as quantiles() gives them."""
    whole = np.cumsum(iops)  # bytes in proportion, so that their sum is exact too
    moved = whole * (total["bytes"] / max(1, total["ios"]))
    bw = np.diff(np.rint(moved).astype(np.int64), prepend=0)
    return Seconds(
        t_ns=zero_ms * 1_000_000 + np.arange(len(iops), dtype=np.int64) * 1_000_000_000,
        iops=iops,
        bw_bytes=bw,
        lat_mean_ns=np.rint(mean).astype(np.int64),
        lat_p50_ns=levels[0.5],
        lat_p99_ns=levels[0.99],
        lat_p999_ns=levels[0.999],
        lat_max_ns=levels["max"],
        hist=levels["hist"],
        zero_seconds=int((iops == 0).sum()),
        partial=bool(partial),
        source=source,
        directions=total["directions"],
        totals=total,
        torn_bytes=torn,
    )


def empty(source: str, total: dict) -> Seconds:
    none = np.zeros(0, np.int64)
    return seconds(
        0,
        none,
        none,
        {0.5: none, 0.99: none, 0.999: none, "max": none, "hist": none.reshape(0, 3)},
        False,
        source,
        total,
        0,
    )
