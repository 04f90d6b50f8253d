"""What a trace is: its totals, rows of sizes and queue depths, sequential share and pauses, measured from its rows and
from nothing else. Pure."""

from collections.abc import Iterable

import numpy as np

from ssdrig.load import trace_mix
from ssdrig.load.trace_player import IDLE_NS
from ssdrig.load.trace_published import QD_ROWS, SIZE_ROWS
from ssdrig.load.traceform import FLUSH, FUA, OPS, READ, TRIM, WRITE, ZEROES

LOOK_BACK_IOS = 256


def sequential(rows: np.ndarray) -> np.ndarray:
    """bool: which I/Os begin where one of the LOOK_BACK_IOS before them, of the same direction, ended."""
    n, out = len(rows), np.zeros(len(rows), bool)
    number, key = np.arange(n), rows["offset_bytes"] // 512 * len(OPS) + rows["op"]
    ends = (rows["offset_bytes"] + rows["length_bytes"]) // 512 * len(OPS) + rows["op"]
    by_end = np.lexsort((number, ends))
    # the end that comes last before an I/O, among the equal ones: look for (key, number) in (end, number)
    both = np.concatenate([ends[by_end], key])
    tie = np.concatenate([2 * by_end, 2 * number - 1])
    order = np.lexsort((tie, both))
    is_end = order < n
    latest = np.maximum.accumulate(np.where(is_end, np.arange(2 * n), -1))
    asks = np.flatnonzero(~is_end & (latest >= 0))
    i, j = order[asks] - n, by_end[order[latest[asks]]]
    out[i] = (ends[j] == key[i]) & (i - j <= LOOK_BACK_IOS) & (i > j)
    return out & (rows["op"] <= WRITE)


def figures(windows: Iterable[np.ndarray], depths_known: bool = True) -> dict:
    """{"ios", "reads", "writes", "trims", "zeroes", "flushes", "fua_writes", "fua_bytes" (of writes with FUA),
    "read_bytes", "written_bytes", "trimmed_bytes", "zeroed_bytes", "read_mean_bytes", "write_mean_bytes" (None without
    any), "size_percent" and "depth_percent" (row -> share of reads and writes; None where depths are not known),
    "sequential_percent", "lasts_s", "idle_s" (in gaps of 25 ms and more), "longest_gap_s", "range_bytes"}."""
    counts, moved = np.zeros(len(OPS), np.int64), np.zeros(len(OPS), np.int64)
    size_rows, depth_rows = np.zeros(len(SIZE_ROWS), np.int64), np.zeros(len(QD_ROWS), np.int64)
    continued = idle_ns = longest_ns = reach = last_ns = fua_writes = fua_bytes = 0
    for rows in windows:
        op, length = rows["op"], rows["length_bytes"].astype(np.int64)
        counts += np.bincount(op, minlength=len(OPS))
        moved += np.array([int(length[op == kind].sum()) for kind in range(len(OPS))])
        io, through = rows[op <= WRITE], length[(rows["flags"] & FUA) > 0]
        fua_writes, fua_bytes = fua_writes + len(through), fua_bytes + int(through.sum())
        size_rows += np.bincount(trace_mix.row_of(io["length_bytes"]), minlength=len(SIZE_ROWS))
        depth = io["depth"]
        depth_rows += np.bincount(np.searchsorted([high for _, high in QD_ROWS[:-1]], depth), minlength=len(QD_ROWS))
        continued += int(sequential(rows).sum())
        gaps = np.diff(rows["t_ns"], prepend=last_ns)
        idle_ns += int(gaps[gaps >= IDLE_NS].sum())
        longest_ns, last_ns = max(longest_ns, int(gaps.max())), int(rows["t_ns"][-1])
        reach = max(reach, int((rows["offset_bytes"] + length).max()))
    ios = max(1, int(counts[READ] + counts[WRITE]))
    names = [f"{low}" if low == high else f"{low}-{high}" for low, high in QD_ROWS[:-1]] + [f">{QD_ROWS[-2][1]}"]
    return {
        "ios": int(counts.sum()),
        "reads": int(counts[READ]),
        "writes": int(counts[WRITE]),
        "trims": int(counts[TRIM]),
        "zeroes": int(counts[ZEROES]),
        "flushes": int(counts[FLUSH]),
        "fua_writes": fua_writes,
        "fua_bytes": fua_bytes,
        "read_bytes": int(moved[READ]),
        "written_bytes": int(moved[WRITE]),
        "trimmed_bytes": int(moved[TRIM]),
        "zeroed_bytes": int(moved[ZEROES]),
        "read_mean_bytes": float(moved[READ] / counts[READ]) if counts[READ] else None,
        "write_mean_bytes": float(moved[WRITE] / counts[WRITE]) if counts[WRITE] else None,
        "size_percent": dict(zip(SIZE_ROWS, (100 * size_rows / ios).tolist())),
        "depth_percent": dict(zip(names, (100 * depth_rows / ios).tolist())) if depths_known else None,
        "sequential_percent": 100 * continued / ios,
        "lasts_s": last_ns / 1e9,
        "idle_s": idle_ns / 1e9,
        "longest_gap_s": longest_ns / 1e9,
        "range_bytes": reach,
    }
