"""What a campaign writes, and where: every command in its own region, the same from the same seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.benchmarks.powerloss_scenes import KEPT
from ssdrig.errors import UsageError
from ssdrig.powerloss import layout, streams
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE
from ssdrig.powerloss.slots import SLOT_BYTES
from ssdrig.powerloss.streams import AT, FLAGS, KIND, LBA, N

MIB = 1 << 20


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([512, 4096]),
    st.integers(2, 1 << 22),
    st.integers(1, 1 << 17),
    st.integers(0, 5000),
    st.integers(0, 9 * MIB),
)
def test_a_layout_stays_in_its_range_and_knows_each_of_its_blocks(block_bytes, size_MiB, window_MiB, canaries, at_byte):
    found = layout.make(block_bytes, size_MiB * MIB, window_MiB * MIB, canaries, at_byte)
    assert found.piece_blocks * block_bytes % MIB == 0 and found.base_blocks >= found.window_blocks > 0
    ends = np.append(found.starts + found.piece_blocks, found.canaries + found.unit) * block_bytes
    aligned = -(-at_byte // MIB) * MIB
    assert found.starts[0] * block_bytes == aligned and ends.max() <= aligned + size_MiB * MIB
    chance = np.random.default_rng(size_MiB)
    at = np.unique(np.append(chance.integers(0, found.base_blocks, 50), [0, found.base_blocks - 1]))
    lba = layout.lba(found, at)
    assert len(np.unique(lba)) == len(at) and layout.index(found, lba).tolist() == at.tolist()
    outside = found.starts[0] - 1, ends.max() // block_bytes
    assert layout.index(found, outside).tolist() == [-1, -1]


def test_a_range_that_is_too_small_is_refused():
    with pytest.raises(UsageError, match="at least 2097152"):
        layout.make(512, 2 * MIB - 1)
    with pytest.raises(UsageError, match="520"):
        layout.make(520, 1 << 30)


WHERE = st.tuples(st.sampled_from([512, 4096]), st.sampled_from([3, 40, 700, 70_000]))
PROMISES = st.tuples(st.sampled_from([1, 2, 8, 300]), st.sampled_from([0, 8, 16]), st.integers(0, 3))


@settings(max_examples=80, deadline=None)
@given(
    WHERE, PROMISES, st.sampled_from(streams.NAMES), st.integers(0, 1 << 40), st.integers(1, 999), st.integers(0, 99)
)
def test_a_stream_stays_in_its_region_and_is_the_same_again(where, promised, name, seed, session, chunk):
    block_bytes, size_MiB = where
    atomic, boundary, offset = promised
    promise = KEPT._replace(
        block_bytes=block_bytes, atomic_blocks=atomic, boundary_blocks=boundary, boundary_offset=offset
    )
    found = layout.make(block_bytes, size_MiB * MIB)
    commands = streams.commands(name, found, promise, seed, session, chunk)
    assert (commands == streams.commands(name, found, promise, seed, session, chunk)).all()
    assert len(commands) and set(commands[:, KIND]) <= {WRITE, FLUSH, TRIM, BLANK}
    assert (commands[commands[:, KIND] == FLUSH, FLAGS:] == 0).all()
    data = commands[commands[:, KIND] != FLUSH]
    if not len(data):
        assert name == "flush"
        return
    assert data[:, N].min() >= 1
    assert data[data[:, KIND] != TRIM, N].max() <= SLOT_BYTES // block_bytes
    assert (layout.lba(found, data[:, AT]) == data[:, LBA]).all()
    first, many = (part * found.piece_blocks // 16 for part in streams.REGIONS[name])
    within = data[:, AT] % found.piece_blocks
    assert within.min() >= first and (within + data[:, N]).max() <= first + many
    assert (data[:, FLAGS] == (FUA if name == "log-fua" else 0)).all()


def test_regions_of_streams_do_not_overlap():
    parts = sorted(streams.REGIONS.values())
    assert [first for first, _ in parts] == [0, *np.cumsum([many for _, many in parts])[:-1]]
    assert sum(many for _, many in parts) == 16 and set(streams.REGIONS) == set(streams.NAMES) - {"flush"}
    assert sum(streams.SHARES.values()) == 100 and set(streams.DEPTH) == set(streams.SHARES)


FOUND = layout.make(512, 512 * MIB)


def test_what_each_stream_is_for():
    log = streams.commands("log-flush", FOUND, KEPT, 1, 1, 0)
    assert np.flatnonzero(log[:, KIND] == FLUSH).tolist() == list(range(8, len(log), 9))
    writes = log[log[:, KIND] == WRITE]
    follows = writes[1:, AT] == writes[:-1, AT] + writes[:-1, N]
    assert follows.mean() > 0.8 and set(writes[:, N]) <= {8, 16, 24, 32}
    hot = streams.commands("hot", FOUND, KEPT, 1, 1, 0)
    assert len(np.unique(hot[:, LBA])) <= streams.HOT_PLACES < len(hot)
    assert set(streams.commands("rmw", FOUND, KEPT, 1, 1, 0)[:, N]) == {1}
    probes = streams.commands("atomic", FOUND, KEPT._replace(atomic_blocks=8, boundary_blocks=16), 1, 1, 0)
    whole = probes[probes[:, N] == 8]
    assert set(probes[:, N]) == {8, 9} and (whole[:, LBA] // 16 == (whole[:, LBA] + 7) // 16).all()
    assert set(whole[:, LBA] % 16) == {0, 8}


def test_trimmed_blocks_are_read_before_they_are_written_again():
    for after_trim in ("zeros", None):
        trims = streams.commands("trim", FOUND, KEPT._replace(after_trim=after_trim), 1, 1, 0)
        assert (BLANK in trims[:, KIND]) == (after_trim is not None)
        for before, row in zip(trims, trims[1:]):
            if row[KIND] == BLANK:
                assert before[KIND] == TRIM and before[AT] == row[AT] and before[N] >= row[N]
