"""What a campaign writes, and where: every command in its own region, the same from the same seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfcheck.powerloss_scenes import KEPT
from ssdrig.base.errors import UsageError
from ssdrig.blockio.slots import SLOT_BYTES
from ssdrig.plan.kinds import cut_mixes
from ssdrig.powerloss import layout, streams
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS
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
    layout_ = layout.make(block_bytes, size_MiB * MIB, window_MiB * MIB, canaries, at_byte)
    assert layout_.piece_blocks * block_bytes % MIB == 0 and layout_.base_blocks >= layout_.window_blocks > 0
    ends = np.append(layout_.starts + layout_.piece_blocks, layout_.canaries + layout_.unit) * block_bytes
    aligned = -(-at_byte // MIB) * MIB
    assert layout_.starts[0] * block_bytes == aligned and ends.max() <= aligned + size_MiB * MIB
    chance = np.random.default_rng(size_MiB)
    at = np.unique(np.append(chance.integers(0, layout_.base_blocks, 50), [0, layout_.base_blocks - 1]))
    lba = layout.lba(layout_, at)
    assert len(np.unique(lba)) == len(at) and layout.index(layout_, lba).tolist() == at.tolist()
    outside = layout_.starts[0] - 1, ends.max() // block_bytes
    assert layout.index(layout_, outside).tolist() == [-1, -1]


def test_a_range_that_is_too_small_is_refused():
    with pytest.raises(UsageError, match="at least 2097152"):
        layout.make(512, 2 * MIB - 1)
    with pytest.raises(UsageError, match="520"):
        layout.make(520, 1 << 30)


WHERE = st.tuples(st.sampled_from([512, 4096]), st.sampled_from([3, 40, 700, 70_000]))
PROMISES = st.tuples(st.sampled_from([1, 2, 8, 300]), st.sampled_from([0, 8, 16]), st.integers(0, 3))


@settings(max_examples=80, deadline=None)
@given(
    WHERE, PROMISES, st.sampled_from(cut_mixes.NAMES), st.integers(0, 1 << 40), st.integers(1, 999), st.integers(0, 99)
)
def test_a_stream_stays_in_its_region_and_is_the_same_again(where, promised, name, seed, session, chunk):
    block_bytes, size_MiB = where
    atomic, boundary, offset = promised
    promise = KEPT._replace(
        block_bytes=block_bytes, atomic_blocks=atomic, boundary_blocks=boundary, boundary_offset=offset
    )
    layout_ = layout.make(block_bytes, size_MiB * MIB)
    commands = streams.commands(name, layout_, promise, seed, session, chunk)
    assert (commands == streams.commands(name, layout_, promise, seed, session, chunk)).all()
    assert len(commands) and set(commands[:, KIND]) <= {WRITE, FLUSH, TRIM, BLANK}
    assert (commands[commands[:, KIND] == FLUSH, FLAGS:] == 0).all()
    data = commands[commands[:, KIND] != FLUSH]
    if not len(data):
        assert name == "flush"
        return
    assert data[:, N].min() >= 1
    assert data[data[:, KIND] != TRIM, N].max() <= SLOT_BYTES // block_bytes
    assert (layout.lba(layout_, data[:, AT]) == data[:, LBA]).all()
    first, many = (part * layout_.piece_blocks // streams.PARTS for part in streams.REGIONS[name])
    within = data[:, AT] % layout_.piece_blocks
    assert within.min() >= first and (within + data[:, N]).max() <= first + many
    fua = {"log-fua": {FUA}, "fua-long": {FUA}, "fua-over": {0, FUA}, "zeroes": {0, ZEROS}}.get(name, {0})
    assert set(data[:, FLAGS]) == fua


def test_regions_of_streams_do_not_overlap():
    parts = sorted(streams.REGIONS.values())
    assert [first for first, _ in parts] == [0, *np.cumsum([many for _, many in parts])[:-1]]
    assert sum(many for _, many in parts) == streams.PARTS and set(streams.REGIONS) == set(cut_mixes.NAMES) - {"flush"}
    assert sum(cut_mixes.SHARES.values()) == 100 and set(cut_mixes.DEPTH) == set(cut_mixes.SHARES)


FOUND = layout.make(512, 512 * MIB)


def test_what_each_stream_is_for():
    log = streams.commands("log-flush", FOUND, KEPT, 1, 1, 0)
    assert np.flatnonzero(log[:, KIND] == FLUSH).tolist() == list(range(8, len(log), 9))
    writes = log[log[:, KIND] == WRITE]
    follows = writes[1:, AT] == writes[:-1, AT] + writes[:-1, N]
    assert follows.mean() > 0.8 and set(writes[:, N]) <= {8, 16, 24, 32}
    hot = streams.commands("hot", FOUND, KEPT, 1, 1, 0)
    assert len(np.unique(hot[:, LBA])) <= streams.HOT_PLACES < len(hot)
    parts = streams.commands("rmw", FOUND, KEPT, 1, 1, 0)
    crossing = parts[:, LBA] % 8 + parts[:, N] > 8
    assert 0.3 < (parts[:, N] == 1).mean() < 0.7 and crossing.mean() > 0.2 and parts[:, N].max() <= 24
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


def test_what_a_cache_gets_wrong_is_sent():
    """S3 and S4 of the findings: none of this was sent before."""
    over = streams.commands("fua-over", FOUND, KEPT, 1, 1, 0)
    fua = np.flatnonzero(over[:, FLAGS] == FUA)
    before, now = over[fua - 1], over[fua]
    assert (before[:, FLAGS] == 0).all() and (before[:, LBA] <= now[:, LBA]).all()
    assert (now[:, LBA] + now[:, N] <= before[:, LBA] + before[:, N]).all()  # a part of it, or all
    assert 0.3 < (now[:, N] == 8).mean() < 0.9 and len(over) > 2 * len(fua)
    long = streams.commands("fua-long", FOUND, KEPT, 1, 1, 0)
    assert (long[:, N] > 8).mean() > 0.9 and long[:, N].max() > 128 and 0.3 < (long[:, LBA] % 8 > 0).mean() < 0.7
    large = streams.commands("large", layout.make(512, 1 << 40), KEPT, 1, 1, 0)
    assert (large[:, N] * 512 >= 256 << 10).mean() > 0.98  # some end with their part of the piece
    assert (large[:, N] * 512).max() == SLOT_BYTES
    overlap = streams.commands("overlap", FOUND, KEPT, 1, 1, 0)
    near = [abs(a[LBA] - b[LBA]) < max(a[N], b[N]) for a, b in zip(overlap, overlap[1:])]
    assert np.mean(near) > 0.2
    zeroed = streams.commands("zeroes", FOUND, KEPT, 1, 1, 0)
    zeros = np.flatnonzero(zeroed[:, FLAGS] == ZEROS)
    before, now = zeroed[zeros - 1], zeroed[zeros]
    assert (before[:, LBA] <= now[:, LBA]).all() and set(zeroed[:, KIND]) == {WRITE}
    assert (now[:, LBA] + now[:, N] <= before[:, LBA] + before[:, N]).all() and len(zeroed) > 2 * len(zeros)
    beside = streams.commands("trim-beside", FOUND, KEPT, 1, 1, 0)
    writes, trims = beside[::2], beside[1::2]
    assert set(writes[:, KIND]) == {WRITE} and set(trims[:, KIND]) == {TRIM}
    assert (trims[:, LBA] > writes[:, LBA]).all()
    assert (trims[:, LBA] + trims[:, N] < writes[:, LBA] + writes[:, N]).all()


def test_a_mix_is_drawn_by_the_plans_weights_and_changes_what_is_sent():
    names = [cut_mixes.drawn({"usual": 6, "unflushed": 3, "deep": 1}, seed) for seed in range(2000)]
    assert [round(names.count(name) / 200) for name in ("usual", "unflushed", "deep", "idle")] == [6, 3, 1, 0]
    assert cut_mixes.drawn({"deep": 1}, 7) == cut_mixes.drawn({"deep": 1}, 7, True) == "deep"
    assert {cut_mixes.drawn({"usual": 9, "idle": 1}, seed, True) for seed in range(20)} == {"idle"}
    usual = cut_mixes.mix("usual", cut_mixes.SHARES, 1, 1)
    assert usual.shares == cut_mixes.SHARES and usual.idle_ns == 0
    unflushed = cut_mixes.mix("unflushed", cut_mixes.SHARES, 1, 1)
    assert 0 < unflushed.shares["flush"] < 0.1 and unflushed.shares["log-flush"] == 0 and unflushed.shares["log-fua"]
    none = cut_mixes.mix("usual", cut_mixes.SHARES, 1, 1, flushes=False)
    assert none.shares["flush"] == none.shares["log-flush"] == 0 and none.shares["random"]
    assert any(cut_mixes.mix("usual", {"flush": 1}, 1, 1, flushes=False).shares.values())  # something is always sent
    deep = cut_mixes.mix("deep", {"trim": 1}, 1, 1)
    assert set(deep.shares) == {"random", "flush"} and deep.depth["random"] == 64
    assert cut_mixes.mix("idle", cut_mixes.SHARES, 1, 1).idle_ns >= 1_000_000_000
