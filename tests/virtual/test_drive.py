"""The virtual drive in time, energy and state."""

import fcntl
import os
from dataclasses import replace

import numpy as np
import pytest

from ssdrig.base import kernels
from ssdrig.base.errors import DriveError, UsageError
from ssdrig.virtual.flash import feed, nand, versions
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import ENTERPRISE_PLP, NVME_TLC, PRESETS, SATA_MLC, SATA_TLC

READ, WRITE, FLUSH, TRIM = 0, 1, 3, 4
MS, S = 1_000_000, 1_000_000_000
QUARTER_GIB = 1 << 28


def test_one_of_many_processes_compiles(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)

    def another_may_compile() -> bool:
        with (tmp_path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    with pytest.raises(ZeroDivisionError), kernels.compiling("part"), kernels.compiling("part of it"):
        assert not another_may_compile()
        raise ZeroDivisionError
    with kernels.compiling("part"):  # it was not done
        assert not another_may_compile()
    with kernels.compiling("part"):
        assert another_may_compile()


def one(drive, op, page=0, n=1, flags=0, t=0):
    return int(drive.submit([op], [page], [n], [flags], t)[0])


def volatile(drive, t: int) -> np.ndarray:
    """Pages of which a version is in the write cache at t and outlives no power cut."""
    v, _ = versions.session(drive, 0, {})
    return np.unique(v["page"][(v["accepted_ns"] <= t) & (v["durable_ns"] > t)])


def test_a_read_takes_command_array_bus_and_link_time():
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    drive.precondition("seq", 1)
    p = SATA_TLC
    expected = p.cmd_read_ns + p.t_R_ns + round(4096e9 / p.channel_B_per_s) + round(4096e9 / p.link_B_per_s)
    assert one(drive, READ, 1000, t=S) - S == expected


def test_an_unmapped_page_and_a_buffered_page_need_no_nand():
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    link = round(4096e9 / SATA_TLC.link_B_per_s)
    assert one(drive, READ, 5, t=S) - S == SATA_TLC.cmd_read_ns + link
    one(drive, WRITE, 0, 24, t=2 * S)
    one(drive, READ, 0, t=2 * S)
    assert drive.ledger()["nand_reads"] == 0
    one(drive, READ, 0, t=3 * S)
    assert drive.ledger()["nand_reads"] == 1


def test_flush_and_fua_wait_for_the_program_and_plp_does_not():
    for preset, waits in ((SATA_TLC, True), (ENTERPRISE_PLP, False)):
        drive = VirtualDrive(preset, capacity_bytes=QUARTER_GIB)
        assert one(drive, WRITE, 0, t=S) - S < MS
        assert (one(drive, FLUSH, t=S) - S > preset.t_PROG_ns) == waits
        assert (one(drive, WRITE, 1, flags=1, t=2 * S) - 2 * S > preset.t_PROG_ns) == waits
        assert one(drive, FLUSH, t=3 * S) - 3 * S < MS
        one(drive, READ, 1, flags=1, t=4 * S)
        ledger = drive.ledger()
        assert (ledger["host_write_commands"], ledger["host_fua_write_commands"], ledger["host_flush_commands"]) == (
            2,
            1,
            2,
        )


def test_volatile_cache_content():
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    done = drive.submit([WRITE] * 30, range(100, 130), [1] * 30, [0] * 30, S)
    last = int(done[-1])
    assert list(volatile(drive, last)) == list(range(100, 130))  # 24 being programmed, 6 still buffered
    assert list(volatile(drive, int(done[4]))) == list(range(100, 105))  # the others are not acknowledged yet
    durable = one(drive, FLUSH, t=last)
    assert len(volatile(drive, durable - 1)) > 0 and len(volatile(drive, durable)) == 0
    plp = VirtualDrive(ENTERPRISE_PLP, capacity_bytes=QUARTER_GIB)
    one(plp, WRITE, t=S)
    assert len(volatile(plp, 2 * S)) == 0


def test_an_idle_drive_drains_its_cache():
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    one(drive, WRITE, 3, t=S)
    drive.advance(S + 20 * MS)
    assert list(volatile(drive, S + 20 * MS)) == [3]
    drive.advance(S + 60 * MS)
    assert len(volatile(drive, S + 70 * MS)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("preset", [SATA_MLC, SATA_TLC, NVME_TLC], ids=lambda p: p.name)
def test_sequential_write_rate_is_that_of_the_dies(preset):
    drive = VirtualDrive(replace(preset, slc_blocks=0), capacity_bytes=2 << 30)
    counts, _ = drive.closed_loop(
        queue_depth=32, t_ns=0, duration_ns=800 * MS, window_ns=100 * MS, npages=32, random=False
    )
    rate = preset.dies * preset.program_pages * 4096 / preset.t_PROG_ns  # bytes per ns
    assert counts[5:].mean() * 131072 / (100 * MS) == pytest.approx(rate, rel=0.02)


def test_queue_depth_matters_for_reads():
    rate = {}
    for depth in (1, 4, 32):
        drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
        drive.precondition("seq", 1)
        counts, _ = drive.closed_loop(queue_depth=depth, t_ns=0, duration_ns=S, read_share=1.0)
        rate[depth] = counts[0]
    assert rate[1] == pytest.approx(1e9 / (10_400 + 70_000 + 10_240 + 7_447), rel=0.01)
    assert 3 * rate[1] < rate[4] < rate[32] <= 1e9 / SATA_TLC.cmd_read_ns
    assert rate[32] > 0.7e9 / SATA_TLC.cmd_read_ns


def test_plateau_cliff_and_steady_state():
    drive = VirtualDrive(SATA_TLC)
    drive.precondition("seq", 1)
    counts, latencies = drive.closed_loop(queue_depth=32, t_ns=0, duration_ns=45 * S, samples=1000)
    assert counts[:4] == pytest.approx(1e9 / SATA_TLC.cmd_write_ns, rel=0.01)
    assert counts[5:12].max() < 0.3 * counts[0]
    assert counts[-10:].mean() == pytest.approx(9_800, rel=0.1)
    assert counts.sum() == pytest.approx(drive.ledger()["host_write_commands"], abs=33)
    assert (latencies >= SATA_TLC.cmd_write_ns).all()


def test_latency_model_changes_times_only():
    rng = np.random.default_rng(1)
    drives = [VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB, latency=latency) for latency in (True, False)]
    t = 0
    for _ in range(400):
        op = rng.choice([WRITE, WRITE, WRITE, WRITE, TRIM, FLUSH, READ], 256, p=[0.3, 0.3, 0.2, 0.16, 0.01, 0.01, 0.02])
        page, n, flags = rng.integers(0, drives[0].pages - 4, 256), rng.integers(1, 5, 256), rng.random(256) < 0.01
        done = [d.submit(op, page, n, flags, t) for d in drives]
        assert (done[0] > t).all() and (done[1] == t).all()
        t = int(done[0].max())
    timed, untimed = (d.ledger() for d in drives)
    assert timed["nand_gc_bytes"] > 10 * QUARTER_GIB / 100
    for key in timed:
        if key not in (
            "energy_J",
            "energy_static_J",
            "energy_controller_J",
            "energy_read_J",
            "energy_transfer_J",
            "nand_reads",
            "nand_read_bytes",
        ):
            assert timed[key] == untimed[key], key
    assert (drives[0].l2p == drives[1].l2p).all()


def history_and_future_nJ(drive):
    """Energy in the sealed history plus that in bins still to come."""
    ring = drive.ring
    sealed = int(drive.history.sum(dtype=np.uint64))
    index = np.arange(drive.m[nand.S_SEALED], drive.m[nand.S_SEALED] + feed.BINS)
    slots = ring[index % feed.BINS]
    return sealed + int(slots[slots[:, 0] == index % 2**32, 1].sum(dtype=np.uint64))


def test_what_nobody_asks_for_any_more_of_the_energy_takes_no_memory():
    """Over an hour the drive's server grew by 15 MB."""
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    drive.advance(700 * S)
    late_J, size = drive.energy_between(650 * S, 690 * S), len(drive.history)
    drive.forget_energy(599_999)
    assert drive.energy_between(0, S) > 0
    drive.forget_energy(640_000)
    assert drive.energy_between(650 * S, 690 * S) == late_J > 0 and len(drive.history) == size
    with pytest.raises(DriveError, match="a span inside 640000000000"):
        drive.energy_between(639 * S, 690 * S)
    drive.advance(1290 * S)
    assert drive.energy_between(700 * S, 1289 * S) > 0 and len(drive.history) == size


@pytest.mark.parametrize("latency", [True, False])
@pytest.mark.parametrize("preset", [SATA_TLC, NVME_TLC], ids=lambda p: p.name)
def test_every_nanojoule_of_the_ledger_lies_in_the_feed(preset, latency):
    drive = VirtualDrive(preset, capacity_bytes=QUARTER_GIB * 2, latency=latency, t_ns=3 * S)
    drive.precondition("seq", 1)
    rng, t = np.random.default_rng(2), 3 * S
    for i in range(300):
        n = 64
        done = drive.submit(
            rng.choice([WRITE, READ], n), rng.integers(0, drive.pages - 8, n), rng.integers(1, 8, n), [0] * n, t
        )
        t = int(done.max()) + int(rng.integers(1, 20)) * MS + (5 * S if i % 100 == 99 else 0)
    t = drive.format(t) + 20 * S
    drive.advance(t)
    ledger = drive.ledger()
    in_time = round((ledger["energy_J"] - ledger["energy_offline_J"]) * 1e9)
    assert ledger["energy_offline_J"] > 0 and ledger["energy_beyond_feed_J"] == 0
    assert history_and_future_nJ(drive) == in_time
    end = int(drive.m[nand.S_SEALED]) * feed.BIN_NS
    middle = 4 * S + 123_456_789
    whole = drive.energy_between(3 * S, end)
    assert drive.energy_between(3 * S, middle) + drive.energy_between(middle, end) == pytest.approx(whole, abs=1e-12)
    assert whole == pytest.approx(in_time * 1e-9, rel=0.01)


def test_only_bins_of_the_future_are_touched(tmp_path):
    ring = feed.create(str(tmp_path / "feed"), 0)
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB, ring=ring)
    rng, t = np.random.default_rng(3), 0
    for _ in range(200):
        t += 3 * MS + 77_777
        drive.advance(t)
        now = t // feed.BIN_NS
        past = ring[now - 8 : now + 1].copy() if now > 8 else None
        drive.submit([WRITE] * 100, rng.integers(0, drive.pages, 100), [1] * 100, [0] * 100, t)
        if past is not None:
            assert (ring[now - 8 : now + 1] == past).all()
        ahead = np.arange(now, now + 240 * MS // feed.BIN_NS)
        assert (ring[ahead, 0] == ahead).all()  # static power lies there already
        assert (ring[ahead, 1] >= SATA_TLC.P_idle_mW * feed.BIN_NS // 1000).all()
    assert drive.ledger()["feed_gap_ns"] == 0
    drive.advance(t + 3 * S)  # a process that slept leaves a gap, as the sensor saw it, and says so
    assert drive.ledger()["feed_gap_ns"] == pytest.approx(3 * S - 250 * MS, abs=feed.BIN_NS)


def test_energy_further_ahead_than_the_feed_reaches_is_counted():
    drive = VirtualDrive(SATA_MLC, capacity_bytes=4 * QUARTER_GIB)
    for _ in range(40):  # 43 GB at 400 MB/s, all handed over at once
        drive.submit([WRITE], [0], [drive.pages], [0], 0)
    ledger = drive.ledger()
    assert ledger["energy_beyond_feed_J"] > 0.5 * ledger["energy_program_J"]
    assert history_and_future_nJ(drive) == round((ledger["energy_J"] - ledger["energy_beyond_feed_J"]) * 1e9)


def test_power_when_idle_in_slumber_and_awake_again():
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    one(drive, READ, t=0)
    for t in range(0, 6 * S, 10 * MS):
        drive.advance(t)
    watts = lambda a, b: drive.energy_between(a, b) / (b - a) * 1e9
    assert watts(S, int(1.9 * S)) == pytest.approx(0.5, rel=1e-3)
    assert watts(3 * S, 5 * S) == pytest.approx(0.05, rel=1e-3)
    one(drive, READ, t=6 * S)
    for t in range(6 * S, 8 * S, 10 * MS):
        drive.advance(t)
    assert watts(int(6.1 * S), int(7.5 * S)) == pytest.approx(0.5, rel=1e-3)


def test_load_power_is_that_of_dies_controller_and_link():
    """All eight dies programming, 0.11 W each, the controller at work, and 0.03 W of NAND bus."""
    drive = VirtualDrive(SATA_TLC, capacity_bytes=1 << 30)
    drive.closed_loop(queue_depth=32, t_ns=0, duration_ns=2 * S, npages=32, random=False)
    expected = 0.5 + 0.45 + 8 * 0.11 + 80e-12 * 393.2e6
    assert drive.energy_between(S // 2, 19 * S // 10) / 1.4 == pytest.approx(expected, rel=0.01)


def test_power_off_takes_the_future_away():
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    done = drive.submit([WRITE] * 500, range(500), [1] * 500, [0] * 500, S)
    cut = int(done[250])
    dirty = volatile(drive, cut)
    assert 0 < len(dirty) <= 251
    drive.power_off(cut)
    assert drive.ledger()["energy_cut_J"] < 0
    drive.power_on(10 * S)
    drive.advance(12 * S)
    assert drive.energy_between(cut + feed.BIN_NS, 10 * S - MS) == pytest.approx(0, abs=1e-3)
    assert drive.energy_between(cut + MS, 10 * S - MS) == 0
    assert drive.energy_between(10 * S, 12 * S) == pytest.approx(1.0, rel=0.01)
    assert history_and_future_nJ(drive) == round(drive.ledger()["energy_J"] * 1e9)
    assert len(volatile(drive, 12 * S)) == 0
    assert one(drive, WRITE, 0, 30, t=12 * S) > 12 * S


def test_format_unmaps_wears_and_takes_time():
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    drive.precondition("seq", 1)
    written = int((drive.blk[:, 4] != 0).sum())
    done = drive.format(S)
    ledger = drive.ledger()
    assert done > S and ledger["mapped_pages"] == 0
    assert ledger["erases"] == written == drive.pe_counts().sum()
    blocks = written * SATA_TLC.block_pages // SATA_TLC.full_block_pages
    assert ledger["die_erases"] == blocks
    assert done - S == pytest.approx(-(-blocks // SATA_TLC.dies) * SATA_TLC.t_BERS_ns, abs=1000)
    assert drive.format(done) == done  # nothing left to erase


def test_snapshot_goes_on_as_if_nothing_had_happened(tmp_path):
    path = tmp_path / "state.npz"
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB, latency=False)
    drive.precondition("seq", 1)
    drive.precondition("random", 1.5, 7)
    drive.save(path)
    again = VirtualDrive.load(path, latency=False, t_ns=5 * S)
    assert again.preset == drive.preset and again.capacity_bytes == drive.capacity_bytes
    static = {"energy_J", "energy_static_J"}
    for key, value in drive.ledger().items():
        assert key in static or again.ledger()[key] == value, key
    for d in (drive, again):
        d.precondition("random", 0.5, 8)
    assert (drive.l2p == again.l2p).all() and (drive.pe_counts() == again.pe_counts()).all()
    assert os.listdir(tmp_path) == ["state.npz"]


def test_a_snapshot_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB, latency=False)
    drive.save(path)
    old = path.read_bytes()
    drive.precondition("seq", 0.5)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError):
        drive.save(path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["state.npz"]


def test_a_snapshot_of_another_simulator_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "state.npz"
    VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB, latency=False).save(path)
    monkeypatch.setattr(kernels, "DIGEST", "other")
    with pytest.raises(DriveError, match="another version"):
        VirtualDrive.load(path)


@pytest.mark.parametrize("content", [b"", b"not a state", b"PK\x03\x04" + bytes(100)])
def test_a_bad_snapshot_is_refused(tmp_path, content):
    path = tmp_path / "state.npz"
    path.write_bytes(content)
    with pytest.raises(DriveError, match="drive state"):
        VirtualDrive.load(path)
    with pytest.raises(DriveError):
        VirtualDrive.load(tmp_path / "missing.npz")


def test_the_spare_area_leaves_no_file(tmp_path):
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB, oob_dir=tmp_path)
    drive.precondition("seq", 1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "op, page, n", [(WRITE, -1, 1), (WRITE, 1 << 40, 1), (READ, 65_535, 2), (TRIM, 0, -1), (9, 0, 1)]
)
def test_commands_outside_the_drive_are_refused(op, page, n):
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    with pytest.raises(DriveError):
        drive.submit([op, WRITE], [page, 3], [n, 1], [0, 0], S)
    assert drive.ledger()["mapped_pages"] == 1  # the good one was carried out


def test_wrong_questions():
    drive = VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB)
    with pytest.raises(UsageError):
        drive.precondition("sideways", 1)
    for span in ((0, S), (2, 1), (-5, 0)):
        with pytest.raises(DriveError, match="span"):
            drive.energy_between(*span)


def test_preconditioning_reports_progress_and_is_repeatable():
    seen = []
    drives = [VirtualDrive(SATA_TLC, capacity_bytes=QUARTER_GIB) for _ in range(2)]
    for d in drives:
        d.precondition("seq", 1)
        d.precondition("random", 20, 3, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (20 * drives[0].pages, 20 * drives[0].pages) and len(seen) == 4
    assert (drives[0].l2p == drives[1].l2p).all()
    assert volatile(drives[0], 0).size == 0


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS.keys())
def test_raw_capacity_and_ledger_of_each_preset(preset):
    drive = VirtualDrive(preset, latency=False)
    raw = drive.raw_nand_bytes - preset.slc_reserve_units * preset.block_pages * 4096
    assert raw / drive.capacity_bytes - 1 == pytest.approx(preset.op, abs=0.001)
    assert drive.raw_nand_bytes * 0.75 < drive.capacity_bytes  # 25 % of raw can be set aside
    ledger = drive.ledger()
    assert ledger["wa"] is None and ledger["host_write_bytes"] == 0 and ledger["free_blocks"] == drive.m[nand.K_UNITS]
    causes = [
        k
        for k in ledger
        if k.startswith("nand_")
        and k.endswith("_bytes")
        and k not in ("nand_write_bytes", "nand_read_bytes", "nand_slc_bytes")
    ]
    drive.precondition("random", 0.01)
    ledger = drive.ledger()
    assert sum(ledger[k] for k in causes) == ledger["nand_write_bytes"] > 0
