"""Which share of a bench's I/Os is a read or a write of which size: the published size rows, which do not separate
reads from writes, joined with the published totals, which do. Pure."""

import numpy as np

from ssdrig.load.trace_published import SIZE_ROWS, SIZES, SMALL, Bench

REST_BYTES = (12288, 20480, 24576, 49152, 98304)  # what "rest" is, is not published: sizes that Windows uses
GIVE = 0.006  # totals may change by this much where sizes of these rows cannot add up to them, then the rows


def cells(bench: Bench, block_bytes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sizes in bytes, share of all I/Os that are reads of that size, that are writes of it), for a drive with this
    logical block: with 4096, smaller sizes become 4 KiB."""
    rows = np.array(bench.sizes) / sum(bench.sizes)
    small = tuple(range(block_bytes, 4096, block_bytes)) or (4096,)
    kinds = [small, *((size,) for size in SIZES.values()), REST_BYTES]
    ios = bench.reads + bench.writes
    mean, read_mean = (bench.read_bytes + bench.written_bytes) / ios, bench.read_bytes / bench.reads
    rows, rest, mean_here = _agreed(rows, [float(np.mean(kind)) for kind in kinds], mean)
    sizes = np.concatenate([np.array(kind, float) for kind in kinds])
    inside = [np.full(len(kind), 1 / len(kind)) for kind in kinds[:-1]] + [rest]
    shares = np.concatenate([row * part for row, part in zip(rows, inside)])
    reads = shares * _read_share(sizes, shares, bench.reads / ios, read_mean * mean_here / mean)
    return sizes.astype(np.int64), reads, shares - reads


def _agreed(rows: np.ndarray, means: list[float], mean: float) -> tuple[np.ndarray, np.ndarray, float]:
    """(size rows, shares inside "rest", mean size) that fit each other. The mix inside "rest" is free; where that does
    not do, the mean gives way by GIVE, and the rest is moved evenly from the large rows to the small ones, or
    back."""
    others = float(rows[:-1] @ np.array(means[:-1]))
    sizes = np.array(REST_BYTES, float)
    wanted = (mean - others) / rows[-1]
    if sizes[0] < wanted < sizes[-1]:
        return rows, _tilted(sizes, wanted), mean
    rest_mean = float(np.clip(wanted, sizes[0], sizes[-1]))
    rest = (sizes == rest_mean).astype(float)
    trial = others + rows[-1] * rest_mean
    mean_here = float(np.clip(trial, mean * (1 - GIVE), mean * (1 + GIVE)))
    all_means = np.array([*means[:-1], rest_mean])
    sign = np.where(all_means.argsort().argsort() < len(rows) // 2, 1.0, -1.0)
    shift = (mean_here - trial) / float(sign @ all_means)
    return rows + sign * shift, rest, mean_here


def _tilted(sizes: np.ndarray, mean: float) -> np.ndarray:
    """The shares nearest to equal ones that have this mean: exponential in the size."""
    low, high = -1e-2, 1e-2
    for _ in range(200):
        tilt = (low + high) / 2
        shares = np.exp((sizes - sizes.mean()) * tilt)
        shares /= shares.sum()
        low, high = (tilt, high) if shares @ sizes < mean else (low, tilt)
    return shares


def _read_share(sizes: np.ndarray, shares: np.ndarray, reads: float, read_mean: float) -> np.ndarray:
    """The share of reads among the I/Os of each size: logistic in the size, with the share of reads among all and the
    mean read that were published (Newton's method)."""
    scaled, at = sizes / 65536, np.array([np.log(reads / (1 - reads)), 0.0])
    basis = np.stack([np.ones_like(scaled), scaled])
    wanted = reads * np.array([1.0, read_mean / 65536])
    for _ in range(100):
        share = 1 / (1 + np.exp(-(at @ basis)))
        slope = (basis * (shares * share * (1 - share))) @ basis.T
        at += np.linalg.solve(slope, wanted - basis @ (shares * share))
    return 1 / (1 + np.exp(-(at @ basis)))


def row_of(sizes: np.ndarray) -> np.ndarray:
    """The index into SIZE_ROWS of each size in bytes."""
    row = np.full(len(sizes), len(SIZE_ROWS) - 1)
    for name, size in SIZES.items():
        row[sizes == size] = SIZE_ROWS.index(name)
    row[sizes < 4096] = SIZE_ROWS.index(SMALL)
    return row
