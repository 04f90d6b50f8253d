"""The closed loop, in model time and on a drive in memory: its shares, its clock, its aims, how it ends."""

import contextlib
import threading

import numpy as np
import pytest
from memory_drive import MemoryDrive

from selfcheck.powerloss_cuts import RUN, Campaign
from selfcheck.powerloss_scenes import KEPT
from ssdrig.base import prctl
from ssdrig.base.errors import DriveError
from ssdrig.plan.kinds import cut_mixes
from ssdrig.powerloss import fill, layout, readback, record, streams, verdict
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, ROW, TRIM, WRITE, ZEROS, History
from ssdrig.powerloss.writer import Aim, Writer

MIB = 1 << 20
MS = 1_000_000


@pytest.fixture
def memory():
    return MemoryDrive(8 * MIB)


PLACES = layout.make(512, 8 * MIB, canaries=40)


def writer_on(transport, path, promise=KEPT, places=PLACES, session=1, **more) -> Writer:
    return Writer(transport, History(path / f"history-{session}"), places, promise, RUN, session, 5, **more)


@pytest.mark.parametrize("MiB", [0.25, 2, 8])
def test_bytes_are_gathered_without_a_flush_and_then_nothing_more_is_submitted(memory, tmp_path, MiB):
    writer = writer_on(memory, tmp_path)
    writer.gather(round(MiB * (1 << 20)))
    writer.write(1000 * MS)
    writer.settle(MS)
    assert MiB <= writer.unflushed_bytes / (1 << 20) <= 1.25 * MiB + 0.25
    assert not (writer.book.written()["kind"] == FLUSH).any()


def test_every_command_is_a_row_and_leaves_its_data(memory, tmp_path):
    writer = writer_on(memory, tmp_path)
    ended = writer.write(5 * MS)
    assert (ended.reason, writer.in_flight) == ("time", 0) and writer.settle(MS) == memory.t_ns
    rows = writer.book.written()
    assert len(rows) == writer.commands > 200 and rows["seq"].tolist() == list(range(1, len(rows) + 1))
    assert (rows["submit_ns"] < rows["done_ns"]).all() and rows["done_ns"].max() <= memory.t_ns
    assert np.bincount(memory.kinds).tolist() == np.bincount(rows["kind"]).tolist()
    assert set(rows["status"]) == {0} and set(rows["kind"]) == {WRITE, FLUSH, TRIM, BLANK}
    blocks = readback.read(
        memory,
        PLACES,
        RUN,
        np.zeros(PLACES.base_blocks, np.int64),
        readback.wanted(rows, PLACES, np.random.default_rng(1)),
    )
    # nothing was lost here, and commands were done in the order in which they were submitted
    last = dict.fromkeys(blocks.lba.tolist(), record.ZEROS)
    for row in rows[rows["kind"] != BLANK]:
        for lba in range(int(row["lba"]), int(row["lba"]) + int(row["n"])):
            last[lba] = int(row["seq"]) if row["kind"] == WRITE and not row["flags"] & ZEROS else record.ZEROS
    assert dict(zip(blocks.lba.tolist(), blocks.seen.tolist())) == last


def test_the_shares_hold(memory, tmp_path):
    writer = writer_on(memory, tmp_path)
    writer.write(30 * MS)
    rows = writer.book.written()
    first, many = (np.array([streams.REGIONS.get(name, (99, 0))[i] for name in cut_mixes.NAMES]) for i in (0, 1))
    part = PLACES.piece_blocks // streams.PARTS
    within = (layout.index(PLACES, rows["lba"].astype(np.int64)) % PLACES.piece_blocks) // part
    data = rows["kind"] != FLUSH
    for i, name in enumerate(cut_mixes.NAMES[:-1]):
        share = 100 * (data & (within >= first[i]) & (within < first[i] + many[i])).mean()
        assert abs(share - cut_mixes.SHARES[name] * (8 / 9 if name == "log-flush" else 1)) < 1, name


def test_a_header_says_what_was_there_before(memory, tmp_path):
    base = np.full(PLACES.base_blocks, record.ZEROS, np.int64)
    base[: PLACES.window_blocks // 2] = 77
    writer = writer_on(memory, tmp_path, base=base, shares={"hot": 100})
    writer.write(3 * MS)
    before: dict[int, int] = {}
    bases = []
    for row in writer.book.written():
        lba = int(row["lba"])
        bases.append(before.get(lba, max(0, int(base[layout.index(PLACES, [lba])[0]]))))
        before[lba] = int(row["seq"])
    for lba, seq in before.items():
        header = record.header(memory.bytes[lba * 512 : lba * 512 + 512].tobytes())
        assert header and (header["seq"], header["prev_seq"], header["session"]) == (seq, bases[seq - 1], 1)
    assert {0, 77} < set(bases)


@pytest.mark.parametrize("kind, flags, stream", [(FLUSH, 0, None), (WRITE, FUA, "log-fua"), (TRIM, 0, "trim")])
def test_an_aimed_command_goes_alone_at_its_time(memory, tmp_path, kind, flags, stream):
    writer = writer_on(memory, tmp_path)
    writer.write(60 * MS, Aim(kind, 40 * MS, hold_ns=10 * MS, silence_ns=5 * MS))
    rows = writer.book.written()
    aimed = rows[rows["seq"] == writer.aimed_seq][0]
    assert (aimed["kind"], aimed["flags"]) == (kind, flags) and 0 <= aimed["submit_ns"] - 40 * MS < 50_000
    alike = rows[(rows["kind"] == kind) & (rows["flags"] & flags == flags) & (rows["seq"] != aimed["seq"])]["submit_ns"]
    assert not ((alike > 30 * MS) & (alike < 45 * MS)).any()
    assert (alike < 30 * MS).any() and (alike > 45 * MS).any()
    others = rows[rows["seq"] != aimed["seq"]]["submit_ns"]
    assert ((others > 30 * MS) & (others < 39 * MS)).any() and not ((others > 40 * MS) & (others < 45 * MS)).any()


@pytest.mark.parametrize(("at", "urgent", "urgent_ms"), [(40, True, [20, 40]), (40, False, []), (70, True, [50, 60])])
def test_an_urgent_command_has_real_time_from_the_hold_on_until_it_is_submitted(
    memory, tmp_path, monkeypatch, at, urgent, urgent_ms
):
    """Also where the drive goes before: the thread must not keep it."""
    times = []

    @contextlib.contextmanager
    def real_time():
        times.append(memory.t_ns / MS)
        yield
        times.append(memory.t_ns / MS)

    monkeypatch.setattr(prctl, "real_time", real_time)
    writer = writer_on(memory, tmp_path)
    writer.write(60 * MS, Aim(FLUSH, at * MS, hold_ns=20 * MS, urgent=urgent))
    assert times == pytest.approx(urgent_ms, abs=0.2) and (writer.aimed_seq is None) == (at > 60)


def test_silence_alone(memory, tmp_path):
    writer = writer_on(memory, tmp_path)
    writer.write(20 * MS, Aim(0, 5 * MS, silence_ns=10 * MS))
    at = writer.book.written()["submit_ns"]
    assert writer.aimed_seq is None and not ((at > 5 * MS) & (at < 15 * MS)).any() and (at > 15 * MS).any()


def test_how_it_ends(memory, tmp_path):
    writer = writer_on(memory, tmp_path)
    threading.Timer(0.05, writer.stop).start()
    assert writer.write(NEVER).reason == "stopped"
    memory.gone = "pulled out"
    assert writer_on(memory, tmp_path, session=2).write(NEVER)[::2] == ("gone", "pulled out")
    memory.gone, memory.refuses = "", True
    refused = writer_on(memory, tmp_path, session=3)
    assert refused.write(NEVER).reason == "error" and set(refused.book.written()["status"]) >= {-5}
    memory.mute = True
    silent = writer_on(memory, tmp_path, session=4)
    silent.write(memory.t_ns + 10 * MS)
    assert silent.in_flight > 0 and silent.settle(10 * MS) is None
    assert (silent.book.written()["done_ns"] == NEVER).all()


def test_a_drive_without_trims_gets_none(memory, tmp_path):
    memory.can_trim = False
    writer_on(memory, tmp_path, shares={"random": 50, "trim": 50}).write(2 * MS)
    assert set(memory.kinds) == {WRITE}


def test_bytes_that_no_flush_covers_are_counted(memory, tmp_path):
    writer = writer_on(memory, tmp_path, shares={"random": 100})
    writer.write(5 * MS)
    assert writer.unflushed_bytes == writer.commands * 4096 > 0
    writer.write(10 * MS, Aim(FLUSH, memory.t_ns, silence_ns=NEVER >> 2))
    assert writer.unflushed_bytes == 0
    fua = writer_on(memory, tmp_path, session=2, shares={"log-fua": 100})
    fua.write(memory.t_ns + MS)
    assert fua.unflushed_bytes == 0 < fua.commands


def test_the_fill_is_everywhere_and_canaries_are_named(memory):
    shown = []
    fill.fill(memory, PLACES, RUN, lambda done, of: shown.append((done, of)))
    assert shown[-1][0] == shown[-1][1] == PLACES.base_blocks * 512 and memory.kinds[-1] == FLUSH
    base = np.full(PLACES.base_blocks, record.UNKNOWN, np.int64)
    blocks = readback.read(memory, PLACES, RUN, base, readback.all_blocks(PLACES))
    assert len(blocks.lba) == PLACES.base_blocks and set(blocks.seen.tolist()) == {0}
    assert blocks.canary.sum() == 40 * 8 and (memory.bytes == 0).any()
    memory.refuses = True
    with pytest.raises(DriveError, match="error 5"):
        fill.fill(memory, PLACES, RUN)


def test_a_block_that_cannot_be_read_is_tried_again(memory):
    fill.fill(memory, PLACES, RUN)
    at = int(PLACES.starts[1])
    # the first read is of the whole piece, then each block alone
    memory.bad = {at * 512: 100, (at + 9) * 512: 3, (at + 10) * 512: 4}
    base = np.zeros(PLACES.base_blocks, np.int64)
    blocks = readback.read(memory, PLACES, RUN, base, np.array([[at, at + 64]]))
    assert memory.paused_ns == 3 * readback.BETWEEN_NS
    assert blocks.seen.tolist() == [record.UNREADABLE, *[0] * 9, record.UNREADABLE, *[0] * 53]
    assert readback.block(memory, PLACES, at) is None
    header = record.header(readback.block(memory, PLACES, at + 1) or b"")
    assert header and header["lba512"] == at + 1
    memory.mute = True
    with pytest.raises(DriveError, match="no answer for 30 s"):
        readback.block(memory, PLACES, at)
    memory.gone = "pulled out"
    with pytest.raises(DriveError, match="pulled out"):
        readback.block(memory, PLACES, at)


def test_of_a_large_window_is_kept_what_was_touched_or_has_changed(memory, tmp_path, monkeypatch):
    fill.fill(memory, PLACES, RUN)
    writer = writer_on(memory, tmp_path, base=np.zeros(PLACES.base_blocks, np.int64))
    writer.write(memory.t_ns + MS)
    rows, where = writer.book.written(), (memory, PLACES, RUN, np.zeros(PLACES.base_blocks, np.int64))
    memory.bytes[int(PLACES.canaries[3]) * 512] ^= 1
    all_of_it = readback.read(*where, readback.all_blocks(PLACES), rows)
    assert len(all_of_it.lba) == PLACES.base_blocks
    monkeypatch.setattr(readback, "PORTION_BLOCKS", 3000)
    blocks_read = readback.read(*where, readback.all_blocks(PLACES), rows)
    touched = readback.wanted(rows, PLACES, np.random.default_rng(1), canary_share=0)
    expected = sorted({lba for first, end in touched for lba in range(first, end)} | {int(PLACES.canaries[3])})
    assert blocks_read.lba.tolist() == expected and blocks_read.canary.sum() == 1
    at = np.searchsorted(all_of_it.lba, blocks_read.lba)
    assert all((part == whole[at]).all() for part, whole in list(zip(blocks_read, all_of_it))[:4])
    assert (readback.again(*where, blocks_read) == blocks_read.seen).all()


def test_what_is_read_back_is_what_was_touched_and_what_lies_beside():
    def row(kind, lba, n, done=9, status=0):
        return (1, lba, n, kind, 0, status, 1, done)

    places = layout.make(512, 64 * MIB, canaries=0)
    rows = np.array([row(WRITE, 1000, 8), row(FLUSH, 0, 0), row(TRIM, 1004, 20), row(BLANK, 1100, 1)], ROW)
    assert readback.wanted(rows, places, np.random.default_rng(1)).tolist() == [[1000, 1024], [1100, 1101]]
    open_ = np.array([row(WRITE, 200, 8, NEVER), row(WRITE, 500, 20, status=-5)], ROW)
    assert readback.wanted(open_, places, np.random.default_rng(1)).tolist() == [[128, 256], [384, 640]]
    first, n = readback.pieces(np.array([[128, 700], [1000, 1001]]), 256)
    assert list(zip(first.tolist(), n.tolist())) == [(128, 128), (256, 256), (512, 188), (1000, 1)]
    parts = list(readback.portions(np.array([[0, 700], [1000, 1001], [2000, 2600]]), 512))
    second = [[512, 700], [1000, 1001], [2000, 2048], [2048, 2560]]
    assert [part.tolist() for part in parts] == [[[0, 512]], second, [[2560, 2600]]]
    many = layout.make(512, 64 * MIB, canaries=200)
    some = readback.wanted(rows[:0], many, np.random.default_rng(1), canary_share=0.05)
    assert (some[:, 1] - some[:, 0]).tolist() == [8] * len(some) and len(some) == 11
    assert (
        readback.wanted(rows, many, np.random.default_rng(1), full=True).tolist() == readback.all_blocks(many).tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "preset, cache_on, torn, cuts",
    [("sata-tlc", True, 0, 6), ("sata-tlc", True, 0.5, 4), ("sata-tlc", False, 0, 6), ("enterprise-plp", True, 0, 5)],
)
def test_an_honest_drive_is_accused_of_nothing(tmp_path, preset, cache_on, torn, cuts):
    session_ns = (2 * MS, 60 * MS if preset == "sata-tlc" else 12 * MS)
    campaign = Campaign(preset, tmp_path, 3, cache_on, session_ns=session_ns, torn=torn, adversary=True)
    repeated = lost = without_R1 = 0
    try:
        for _ in range(cuts):
            cut = campaign.cut()
            rows, on_ns = cut.session.rows, cut.session.on_ns
            assert cut.verdict.why_not == "" and cut.ended.reason == "gone"
            assert not cut.verdict.finding.any(), cut.verdict
            repeated += int(((rows["status"] == 0) & (rows["done_ns"] > on_ns) & (rows["done_ns"] < NEVER)).sum())
            lost += len(cut.verdict.lost_volatile)
            late = cut.session._replace(on_ns=NEVER)
            without_R1 += int(verdict.judge(late, cut.blocks, campaign.promise).finding.any())
    finally:
        campaign.close()
    assert repeated > 0 and (lost > 0) == (preset == "sata-tlc" and cache_on)
    assert without_R1 > 0  # what a kernel repeats after the outage would accuse the drive


def test_a_second_of_silence_is_followed_by_a_flush_alone(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(cut_mixes, "IDLE_EVERY_NS", 3 * MS)
    writer = writer_on(memory, tmp_path, shares={"random": 1}, idle_ns=20 * MS)
    writer.write(80 * MS)
    rows = writer.book.written()
    flushes = np.flatnonzero(rows["kind"] == FLUSH)
    assert 2 <= len(flushes) <= 4
    for at in flushes:
        before, flush = rows[at - 1], rows[at]
        assert flush["submit_ns"] - before["submit_ns"] >= 20 * MS
        assert (rows["submit_ns"][at + 1 :] >= flush["submit_ns"]).all()
    assert (rows["kind"] == WRITE).sum() > 50


def test_without_flushes_more_is_left_unflushed(memory, tmp_path):
    most = {}
    for name in (cut_mixes.USUAL, cut_mixes.UNFLUSHED):
        folder = tmp_path / name
        folder.mkdir()
        mix = cut_mixes.mix(name, cut_mixes.SHARES, 5, 1)
        writer = writer_on(memory, folder, shares=mix.shares, depth=mix.depth)
        most[name] = 0
        for _ in range(20):
            writer.write(memory.t_ns + 2 * MS)
            most[name] = max(most[name], writer.unflushed_bytes)
    assert most[cut_mixes.UNFLUSHED] > 4 * most[cut_mixes.USUAL] > 0
