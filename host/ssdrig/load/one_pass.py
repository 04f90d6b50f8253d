"""One pass of random writes after which flash blocks hold as many valid pages as in the steady state of uniformly
random writes, so that it need not be reached by writing the drive several times. Pure.

Source of the distribution: P. Desnoyers, "Analytic models of SSD write performance", ACM Transactions on Storage 8
(2012): blocks that are collected in the order in which they were written live for T host writes per page, alpha =
T / (1 - exp(-T)), and a block of age x T holds exp(-x T) of its pages. The order of the writes is ours: raw NAND is
written once, region by region, the oldest region first. Each page has its last write in one region; what else a region
holds are pages that later regions write again. A greedy collector comes to the same distribution where blocks are
large; one that keeps many blocks free has less spare area than its raw NAND shows. The steady state is still to be
shown by a rule.

No pass can be shorter: as long as a purged drive has free blocks, it collects nothing.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.base.overprovisioning import wa_fifo
from ssdrig.load.trace_published import ONE_PASS
from ssdrig.load.traceform import ROW, WRITE

PAGE_BYTES = 4096
DEPTH = 32
REGIONS = 256
ROUNDS = 4  # of the permutation
MOST_ALPHA = 4.0


@dataclass(frozen=True)
class Asked:
    """What the pass is made for: the range from the drive's beginning, and all raw NAND."""

    range_bytes: int
    raw_bytes: int
    seed: int = 1

    @property
    def ios(self) -> int:
        """Writes, within one in a hundred thousand."""
        return self.raw_bytes // PAGE_BYTES

    def words(self) -> dict:
        """For the header of the trace file."""
        return {
            "name": ONE_PASS,
            "synthetic": True,
            "scaled": False,
            "source": "valid pages in the steady state: Desnoyers, ACM Transactions on Storage 8; order ours",
            "depths": "our choice",
            "parameters": asdict(self),
        }


def pages(range_bytes: int, raw_bytes: int, seed: int, regions: int = REGIONS) -> Iterator[np.ndarray]:
    """Page numbers to write, in order, an array for each region.

    range_bytes: part of the drive, from its beginning; raw_bytes: its raw NAND less what the drive reserves. Together
    they are raw_bytes / range_bytes of the range. Raises UsageError for raw NAND outside 1 to 4 times the range."""
    count, alpha = range_bytes // PAGE_BYTES, raw_bytes / range_bytes
    if not 1 < alpha <= MOST_ALPHA:
        raise UsageError(
            f"raw NAND of 1 to {MOST_ALPHA:g} times the range", f"{alpha:.4g} times", "correct --raw-nand, or the range"
        )
    rng = np.random.Generator(np.random.PCG64(seed))
    keys = rng.integers(1, 1 << 31, ROUNDS, dtype=np.uint64)
    lifetime = alpha / wa_fifo(alpha)  # T
    edges = np.linspace(0, 1, regions + 1)  # of age, the newest first
    written = np.rint(alpha * count * edges).astype(np.int64)
    last = np.rint(alpha * count * -np.expm1(-lifetime * edges) / lifetime).astype(np.int64)
    last[-1] = count
    for region in range(regions - 1, -1, -1):
        begin, end = last[region], last[region + 1]
        again = max(0, written[region + 1] - written[region] - (end - begin))
        places = np.concatenate([np.arange(begin, end), rng.integers(0, begin or end, again)])
        rng.shuffle(places)
        yield permuted(places, count, keys)


def permuted(places: np.ndarray, count: int, keys: np.ndarray) -> np.ndarray:
    """A permutation of 0 to count - 1 that needs no table: a Feistel network on an even number of bits, applied again
    to what falls outside."""
    half = max(1, (int(count - 1).bit_length() + 1) // 2)
    mask = np.uint64((1 << half) - 1)
    out = places.astype(np.uint64)
    left = np.arange(len(out))
    while len(left):
        value = out[left]
        high, low = value >> np.uint64(half), value & mask
        for key in keys:
            mixed = (low + key) * np.uint64(0x9E3779B97F4A7C15)
            high, low = low, high ^ (mixed >> np.uint64(64 - half))
        out[left] = high << np.uint64(half) | low
        left = left[out[left] >= count]
    return out.astype(np.int64)


def generate(asked: Asked) -> Iterator[np.ndarray]:
    """The writes as windows of a trace (traceform.ROW), to be played closed. Raises UsageError."""
    for places in pages(asked.range_bytes, asked.raw_bytes, asked.seed):
        window = np.zeros(len(places), ROW)
        window["offset_bytes"], window["length_bytes"] = places * PAGE_BYTES, PAGE_BYTES
        window["op"], window["depth"] = WRITE, DEPTH
        yield window
