"""Ranges that a trace reads before it writes them, against a map of every unit."""

import numpy as np
import pytest
from trace_rows import rows_of

from ssdrig.load import trace_unwritten, traceform
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE, ZEROES

KIB = 1024


def by_hand(rows) -> list[tuple[int, int]]:
    written, unwritten = set(), set()
    for row in rows:
        units = range(int(row["offset_bytes"]) // 4096, -(-int(row["offset_bytes"] + row["length_bytes"]) // 4096))
        if row["op"] == WRITE:
            written.update(units)
        elif row["op"] == READ:
            unwritten.update(set(units) - written)
    edges = sorted({unit for unit in unwritten if unit - 1 not in unwritten})
    ends = sorted({unit + 1 for unit in unwritten if unit + 1 not in unwritten})
    return [(4096 * begin, 4096 * end) for begin, end in zip(edges, ends)]


def test_what_the_trace_itself_wrote_is_not_among_them():
    rows = rows_of(
        (0, 0, 8 * KIB, WRITE),
        (1, 4 * KIB, 8 * KIB, READ),
        (2, 512, 512, READ),
        (3, 100 * KIB, 4 * KIB, TRIM),
        (4, 100 * KIB, 4 * KIB, READ),
        (5, 200 * KIB, 4 * KIB, READ),
        (6, 200 * KIB, 4 * KIB, WRITE),
        (7, 0, 0, FLUSH),
        (8, 300 * KIB, 4 * KIB, ZEROES),
    )
    ranges = trace_unwritten.ranges([rows]).tolist()
    assert ranges == [[8 * KIB, 12 * KIB], [100 * KIB, 104 * KIB], [200 * KIB, 204 * KIB]]
    assert trace_unwritten.ranges([rows[:1]]).shape == (0, 2)


@pytest.mark.parametrize("seed", range(4))
def test_random_traces_agree_with_a_map_of_every_unit(seed, monkeypatch):
    monkeypatch.setattr(trace_unwritten, "CHUNK_UNITS", 64)
    monkeypatch.setattr(trace_unwritten, "AT_ONCE_UNITS", 50)
    monkeypatch.setattr(trace_unwritten, "AT_ONCE_IOS", 40)
    rng = np.random.default_rng(seed)
    rows = np.zeros(600, traceform.ROW)
    rows["t_ns"] = np.arange(600)
    rows["op"] = rng.choice([READ, READ, WRITE, TRIM], 600)
    rows["offset_bytes"] = rng.integers(0, 1 << 14, 600) * 512
    rows["length_bytes"] = rng.integers(1, 200, 600) * 512
    ranges = trace_unwritten.ranges(traceform.windows(rows, 100))
    assert ranges.tolist() == [list(pair) for pair in by_hand(rows)] and len(ranges) > 5
