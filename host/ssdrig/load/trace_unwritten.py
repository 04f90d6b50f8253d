"""Ranges that a trace reads before it writes them: a drive answers reads of unwritten places without its flash."""

from collections.abc import Iterable, Iterator

import numpy as np

from ssdrig.load.traceform import READ, WRITE

UNIT_BYTES = 4096  # a drive maps no smaller unit: a read of the rest of one that was written goes to the flash
CHUNK_UNITS = 1 << 20  # of the map of units seen, made where the trace goes
AT_ONCE_UNITS = 1 << 22  # of the I/Os that are looked at together: some 100 MB
AT_ONCE_IOS = 1 << 14


def ranges(windows: Iterable[np.ndarray]) -> np.ndarray:
    """int64 (n, 2): begin and end in bytes of each range that is read before it is written, in rising order, in whole
    units of 4 KiB and none touching another. `windows`: of traceform.ROW. Trims and Write Zeroes count as neither."""
    seen: dict[int, np.ndarray] = {}
    unwritten: dict[int, np.ndarray] = {}
    for rows in windows:
        for part in _parts(rows[rows["op"] <= WRITE]):
            units, is_read = _first_touches(part)
            chunks, inside = np.divmod(units, CHUNK_UNITS)
            starts = np.flatnonzero(np.diff(chunks, prepend=-1))
            for first, end in zip(starts.tolist(), [*starts[1:].tolist(), len(units)]):
                number = int(chunks[first])
                places, reads = inside[first:end], is_read[first:end]
                known = seen.setdefault(number, np.zeros(CHUNK_UNITS, bool))
                fresh = places[reads & ~known[places]]
                if len(fresh):
                    unwritten.setdefault(number, np.zeros(CHUNK_UNITS, bool))[fresh] = True
                known[places] = True
    return _merged(unwritten)


def _parts(rows: np.ndarray) -> Iterator[np.ndarray]:
    """The rows in parts whose I/Os have at most AT_ONCE_UNITS units, or one I/O."""
    for first in range(0, len(rows), AT_ONCE_IOS):
        part = rows[first : first + AT_ONCE_IOS]
        begin, end = _units(part)
        total = np.cumsum(end - begin)
        at = 0
        while at < len(part):
            before = int(total[at - 1]) if at else 0
            until = max(at + 1, int(np.searchsorted(total, before + AT_ONCE_UNITS, "right")))
            yield part[at:until]
            at = until


def _units(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    begin = rows["offset_bytes"] // UNIT_BYTES
    return begin, -(-(rows["offset_bytes"] + rows["length_bytes"]) // UNIT_BYTES)


def _first_touches(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the units that the rows read or write, rising; whether the first I/O of each is a read)"""
    begin, end = _units(rows)
    counts = end - begin
    before = np.cumsum(counts) - counts
    units = np.repeat(begin - before, counts) + np.arange(int(counts.sum()))
    numbers = np.repeat(np.arange(len(rows)), counts)
    distinct, first = np.unique(units, return_index=True)  # the first place of each: rows are in order
    return distinct, rows["op"][numbers[first]] == READ


def _merged(chunks: dict[int, np.ndarray]) -> np.ndarray:
    parts = [np.zeros((0, 2), np.int64)]
    for number in sorted(chunks):
        edges = np.flatnonzero(np.diff(chunks[number], prepend=False, append=False))
        parts.append(edges.reshape(-1, 2) + number * CHUNK_UNITS)
    merged = np.concatenate(parts)
    joins = merged[1:, 0] == merged[:-1, 1]  # a range over the border of two chunks
    keep_begin, keep_end = np.append(True, ~joins)[: len(merged)], np.append(~joins, True)[-len(merged) or None :]
    return np.stack([merged[keep_begin, 0], merged[keep_end, 1]], axis=1) * UNIT_BYTES if len(merged) else merged
