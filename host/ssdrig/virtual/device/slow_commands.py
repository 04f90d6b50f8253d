"""The latency monitor of the virtual drive: how many of its commands took long by its own model, for log C3h
(smartlog.py). Model time. The monitor is always on, its thresholds are fixed, and its buckets are never cleared, also
not by a power cycle: assumed."""

import numpy as np

from ssdrig.blockio import nbd_protocol

THRESHOLDS_MS = (5, 10, 40, 160)
DIRECTIONS = {nbd_protocol.READ: 0, nbd_protocol.WRITE: 1, nbd_protocol.WRITE_ZEROES: 1, nbd_protocol.TRIM: 2}
MOST = 0xFFFFFFFF
_FIRST_NS = THRESHOLDS_MS[0] * 1_000_000


def fresh() -> dict[str, list[list[int]]]:
    """The state of a drive that has not worked: {"counts", "measured_ms", "stamps_ms"}, each by direction
    (read, write, trim) and bucket. measured_ms: the longest of the bucket; stamps_ms: when that ended."""
    return {name: [[0] * len(THRESHOLDS_MS) for _ in range(3)] for name in ("counts", "measured_ms", "stamps_ms")}


def count(state: dict, batch: np.ndarray, owner: np.ndarray, done_ns: np.ndarray, now_ns: int) -> None:
    """Count what took long of a batch that came at now_ns.

    state: of `fresh`
    owner: by page command, its row of the batch
    done_ns: by page command, when it ends"""
    if not len(done_ns) or int(done_ns.max()) - now_ns < _FIRST_NS:
        return
    longest_ns: dict[int, int] = {}
    for row, end_ns in zip(owner.tolist(), done_ns.tolist(), strict=True):
        longest_ns[row] = max(longest_ns.get(row, 0), end_ns - now_ns)
    for row, lasted_ns in longest_ns.items():
        direction = DIRECTIONS.get(int(batch[row, nbd_protocol.OP]))
        if direction is None or lasted_ns < _FIRST_NS:
            continue
        ms = lasted_ns // 1_000_000
        bucket = sum(ms >= edge for edge in THRESHOLDS_MS) - 1
        counts, measured_ms, stamps_ms = (state[name][direction] for name in ("counts", "measured_ms", "stamps_ms"))
        counts[bucket] = min(MOST, counts[bucket] + 1)
        if ms > measured_ms[bucket]:
            measured_ms[bucket], stamps_ms[bucket] = ms, (now_ns + lasted_ns) // 1_000_000
