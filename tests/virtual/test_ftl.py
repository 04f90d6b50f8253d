"""The flash translation layer: its bookkeeping after any sequence of commands, and its write amplification."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selfcheck import theory
from ssdrig.base.errors import DriveError, UsageError
from ssdrig.virtual.flash import books, ftl, nand, workload
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import NVME_TLC, SATA_TLC

READ, WRITE, FLUSH, TRIM, ZEROES = 0, 1, 3, 4, 6
PLAIN = replace(SATA_TLC, gc_low=0, gc_high=0, gc_pace=0.0, idle_gc_share=0.0)


def plain_drive(blocks, block_pages, spare_factor, policy="greedy", **fields):
    pages = round(blocks * block_pages * (1 - spare_factor))
    op = (blocks * block_pages + 0.5) / pages - 1
    preset = replace(PLAIN, block_pages=block_pages, op=op, gc_policy=policy, **fields)
    return VirtualDrive(preset, capacity_bytes=pages * 4096, latency=False)


def check_books(drive, mapped, formatted=False):
    """Every table agrees with every other, and with the set of pages that must be mapped."""
    m, np_ = drive.m, drive.preset.block_pages
    assert set(np.flatnonzero(drive.l2p != ftl.NONE)) == mapped
    books.check(drive, np.zeros(0, np.int64))
    state = drive.blk[: m[nand.K_UNITS], ftl.STATE]
    # each page placed lies in an erased, a full or the open block: the accounting identity, exactly
    placed = m[[nand.N_HOST, nand.N_GC, nand.N_IDLE_GC, nand.N_WL, nand.N_FOLD, nand.N_PAD]].sum()
    full = (state == ftl.CLOSED).sum() + (state == ftl.VICTIM).sum()
    opened = m[nand.S_OFF] if m[nand.S_BLOCK] >= 0 else 0
    if m[nand.K_SLC_UNITS] == 0 and not formatted:  # formatting erases half-full blocks
        assert placed == np_ * (m[nand.S_MAIN_ERASES] + full) + opened


COMMANDS = st.lists(
    st.tuples(
        st.sampled_from([WRITE, WRITE, WRITE, TRIM, ZEROES, FLUSH, READ]),
        st.floats(0, 1),
        st.integers(1, 40),
        st.booleans(),
    ),
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(COMMANDS, st.integers(0, 2**32), st.sampled_from(["foreground", "paced", "slc"]), st.booleans())
def test_books_balance_after_any_commands(script, seed, kind, latency):
    if kind == "slc":
        preset = replace(NVME_TLC, block_pages=96, op=0.4, slc_blocks=3, dies=4, gc_low=3, gc_high=5)
    else:
        paced = dict(gc_low=3, gc_high=6, gc_pace=1.5) if kind == "paced" else {}
        preset = replace(PLAIN, block_pages=48, op=0.4, wl_threshold=2, **paced)
    drive = VirtualDrive(preset, capacity_bytes=1920 * 4096, latency=latency)
    rng, mapped, t = np.random.default_rng(seed), set(), 0
    batches = [(WRITE, rng.integers(0, drive.pages), 1, False) for _ in range(rng.integers(0, 8000))]
    batches += [(op, min(int(x * drive.pages), drive.pages - n), n, fua) for op, x, n, fua in script]
    ops, page, n, flags = (np.array(c) for c in zip(*batches)) if batches else ((), (), (), ())
    for at in range(0, len(ops), 100):
        part = slice(at, at + 100)
        t += 2_000_000
        drive.submit(ops[part], page[part], n[part], flags[part], t)
    for op, first, count, _ in batches:
        if op == WRITE:
            mapped.update(range(first, first + count))
        elif op in (TRIM, ZEROES):
            mapped.difference_update(range(first, first + count))
    check_books(drive, mapped)
    for _ in range(50):  # idle: folding and what else is due
        t += 100_000_000
        drive.advance(t)
    check_books(drive, mapped)
    drive.format(t)
    check_books(drive, set(), formatted=True)


@pytest.mark.parametrize("policy, spare", [("greedy", 0.07), ("greedy", 0.2), ("fifo", 0.12)])
def test_steady_write_amplification(policy, spare):
    drive = plain_drive(800, 64, spare, policy)
    drive.precondition("seq", 1)
    drive.precondition("random", 10, 1)
    before = drive.m.copy()
    drive.precondition("random", 20, 2)
    host, moved, erased = (drive.m[i] - before[i] for i in (nand.N_HOST, nand.N_GC, nand.S_MAIN_ERASES))
    wa = (host + moved) / host
    alpha = theory.effective_alpha(800, drive.pages, 64, 2)
    expected = theory.wa_greedy(alpha, 64) if policy == "greedy" else theory.wa_fifo(alpha)
    assert wa == pytest.approx(expected, rel=0.005)
    victim = moved / erased
    assert wa == pytest.approx(64 / (64 - victim), rel=1e-3)  # A = NP / (NP - V)


@pytest.mark.slow
def test_write_amplification_with_trim():
    drive = plain_drive(800, 64, 0.07)
    drive.precondition("seq", 1)
    workload.write_trim_mix(drive._arrays, drive.rng, drive.pages, 12 * drive.pages, 100)
    before = drive.m.copy()
    workload.write_trim_mix(drive._arrays, drive.rng, drive.pages, 20 * drive.pages, 100)
    host, moved = (drive.m[i] - before[i] for i in (nand.N_HOST, nand.N_GC))
    expected = theory.wa_greedy_trim(theory.effective_alpha(800, drive.pages, 64, 2), 64, 0.1)
    assert (host + moved) / host == pytest.approx(expected, rel=0.006)
    assert drive.m[nand.S_MAPPED] / drive.pages == pytest.approx(theory.in_use_share(0.1), abs=0.01)


def test_sequential_overwrite_moves_nothing():
    drive = plain_drive(200, 48, 0.1)
    drive.precondition("seq", 5)
    ledger = drive.ledger()
    assert ledger["nand_gc_bytes"] == 0
    assert ledger["nand_write_bytes"] == ledger["host_write_bytes"] + ledger["nand_padding_bytes"]


def test_trimmed_drive_is_fresh_again():
    drive = plain_drive(400, 64, 0.1)
    drive.precondition("seq", 1)
    drive.precondition("random", 2, 1)
    drive.submit([TRIM], [0], [drive.pages], [0], 0)
    before = drive.ledger()
    drive.precondition("seq", 1)
    after = drive.ledger()
    assert before["mapped_pages"] == 0 and after["mapped_pages"] == drive.pages
    assert after["nand_gc_bytes"] == before["nand_gc_bytes"]


def test_static_wear_levelling_moves_cold_data():
    spread = {}
    for threshold in (5, 1_000_000):
        drive = plain_drive(200, 48, 0.15, wl_threshold=threshold)
        drive.precondition("seq", 1)
        workload.write_pages(drive._arrays, drive.rng, 0, drive.pages // 10, 30 * drive.pages, True)
        pe = drive.pe_counts()
        spread[threshold] = pe.max() - pe.min()
        assert (drive.ledger()["nand_wear_levelling_bytes"] > 0) == (threshold == 5)
    assert spread[5] < 0.5 * spread[1_000_000]


def test_flush_pads_to_a_nand_page_and_plp_does_not():
    for plp, padded in ((False, 3), (True, 0)):
        drive = plain_drive(200, 48, 0.2, plp=plp)
        drive.submit([WRITE, FLUSH, FLUSH], [7, 0, 0], [1, 0, 0], [0, 0, 0], 0)
        assert drive.ledger()["nand_padding_bytes"] == padded * 4096
        drive.submit([WRITE], [8], [1], [1], 0)  # FUA
        assert drive.ledger()["nand_padding_bytes"] == 2 * padded * 4096


def test_slc_takes_host_writes_first_and_is_folded_when_idle():
    preset = replace(NVME_TLC, slc_blocks=12)
    drive = VirtualDrive(preset, capacity_bytes=1 << 30)
    room = 12 * (preset.block_pages // 3)
    n = room + 1000
    drive.submit(np.full(n, WRITE), np.arange(n), np.ones(n), np.zeros(n), 0)
    ledger = drive.ledger()
    assert ledger["nand_slc_bytes"] == room * 4096 and ledger["slc_blocks_used"] == 12
    assert ledger["nand_slc_fold_bytes"] == 0
    for t in range(0, 5_000_000_000, 10_000_000):
        drive.advance(t)
    ledger = drive.ledger()
    assert ledger["nand_slc_fold_bytes"] == room * 4096 and ledger["slc_blocks_used"] == 0
    check_books(drive, set(range(n)))


@pytest.mark.parametrize("latency", [False, True])
def test_idle_collection_frees_blocks_without_host_writes(latency):
    drive = VirtualDrive(replace(SATA_TLC, idle_gc_share=0.5), capacity_bytes=1 << 28, latency=latency)
    drive.precondition("seq", 1)
    drive.precondition("random", 0.5, 1)
    before = drive.ledger()
    drive.submit([READ], [0], [1], [0], 0)
    for t in range(0, 20_000_000_000, 10_000_000):
        drive.advance(t)
    after = drive.ledger()
    assert after["host_write_bytes"] == before["host_write_bytes"]
    assert after["nand_idle_gc_bytes"] > 0 and after["nand_gc_bytes"] == before["nand_gc_bytes"]
    spare = drive.m[nand.K_UNITS] - drive.pages // drive.preset.block_pages
    assert after["free_blocks"] == pytest.approx(0.5 * spare, abs=1)
    assert after["free_blocks"] > before["free_blocks"] + 5
    check_books(drive, set(range(drive.pages)))


@pytest.mark.parametrize("preset", [SATA_TLC, PLAIN, NVME_TLC])
def test_a_run_of_writes_is_what_each_of_them_does(preset):
    """Plain writes of a batch go in runs, counted once each; pages come twice in a run, and collection goes on."""
    whole, single = (VirtualDrive(preset, capacity_bytes=1 << 29, latency=False) for _ in range(2))
    rng = np.random.default_rng(3)
    for drive in (whole, single):
        drive.precondition("seq", 1)
        drive.precondition("random", 1.0, 1)
    for k in range(12):
        page = rng.integers(0, 300 if k % 3 == 0 else whole.pages, 512)
        op = rng.choice([WRITE, WRITE, WRITE, WRITE, TRIM, READ], 512) if k % 4 == 1 else np.full(512, WRITE)
        ones, none = np.ones(512, np.int64), np.zeros(512, np.uint8)
        assert (whole.submit(op, page, ones, none, 0) == 0).all()
        for i in range(512):
            single.submit(op[i : i + 1], page[i : i + 1], ones[:1], none[:1], 0)
    assert all((one == other).all() for one, other in zip(whole._arrays, single._arrays, strict=True))
    assert whole.m[nand.N_GC] > 0
    check_books(whole, set(np.flatnonzero(whole.l2p != ftl.NONE)))


def test_a_drive_that_runs_full_says_so():
    drive = plain_drive(200, 48, 0.2)
    drive.m[nand.S_FREE] = 0
    with pytest.raises(DriveError, match="free block"):
        drive.submit([WRITE], [0], [1], [0], 0)


def test_too_small_a_drive_is_refused():
    with pytest.raises(UsageError, match="spare blocks"):
        VirtualDrive(SATA_TLC, capacity_bytes=1 << 20)
    with pytest.raises(UsageError, match="write cache"):
        VirtualDrive(replace(SATA_TLC, cache_bytes=4096))
