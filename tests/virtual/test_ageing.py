"""A drive that lay without power: which pages are slow or lost, what a read takes, refresh. In model time."""

import json
import math

import numpy as np
import pytest
from nvmetcp_serving import host_of, number, refused
from powercut_host import device
from serving import forked, serving  # noqa: F401  fixture

from ssdrig.base.errors import DriveError, UsageError
from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.nbd import NbdError
from ssdrig.virtual.device import admin, persistence
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.device.truth import TruthFolder
from ssdrig.virtual.flash import ageing, charge_loss, ftl, nand
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import PRESETS, SATA_TLC
from ssdrig.virtual.serve import storage

READ, WRITE, FLUSH = 0, 1, 3
MS, S = 1_000_000, 1_000_000_000
MIB = 1 << 20
UNREADABLE = 9
PAGES = 8192  # that a host has written
STEP_NS = SATA_TLC.t_R_ns + round(4096e9 / SATA_TLC.channel_B_per_s) + 20_000
LONG = 500_000.0  # hours at 30 C after which one page in two hundred of a new drive cannot be read


def worn(name: str = "sata-tlc", wear: float = 1.0, mib: int = 256, **how) -> VirtualDrive:
    """A drive written from end to end once, each of whose units has this share of its rated cycles."""
    drive = VirtualDrive(PRESETS[name], capacity_bytes=mib * MIB, **how)
    drive.precondition("seq", 1)
    drive.blk[:, ftl.PE] = round(wear * drive.preset.rated_pe_cycles)
    return drive


def read(drive: VirtualDrive, pages, t: int = S) -> np.ndarray:
    """ns that each takes, one after the other."""
    took = []
    for page in pages:
        end = int(drive.submit([READ], [page], [1], [0], t)[0])
        took.append(end - t)
        t = end + 1000
    return np.array(took)


def idle(drive: VirtualDrive, begin: int, end: int) -> None:
    for t in range(begin, end, 10 * MS):
        drive.advance(t)


@pytest.mark.parametrize("name", PRESETS)
def test_worn_out_a_drive_holds_for_its_class_and_not_for_three_times_that(name):
    drive = worn(name, mib=512)
    assert not ageing.levels(drive).any() and drive.m[nand.S_AGED] == 0
    hours = charge_loss.class_hours(drive.preset.drive_class)
    ageing.age(drive, [(hours, 30)])
    assert not drive.unreadable and 0 < np.count_nonzero(ageing.levels(drive)) < drive.pages
    ageing.age(drive, [(2 * hours, 30)])
    share = [charge_loss.share_beyond(rber, charge_loss.E2) for rber in ageing.medians(drive)]
    units = drive.l2p // drive.preset.block_pages
    expected = np.array(share)[units].sum()
    assert expected > 20 and abs(len(drive.unreadable) - expected) < 5 * math.sqrt(expected)


def test_a_new_drive_holds_for_ten_years():
    drive = worn(wear=0)
    ageing.age(drive, [(87_600, 30)])
    assert not drive.unreadable and np.count_nonzero(ageing.levels(drive)) < 100


def test_age_adds_up_and_what_is_written_later_is_new():
    drive = worn(wear=0)
    assert ageing.age(drive, [(12, 20), (12, 40)]) == pytest.approx(
        24 * math.exp(12765.0 * (1 / 303.15 - 1 / (35.2 + 273.15))), rel=0.02
    )
    written = drive.blk[:, ftl.STATE] != ftl.FREE
    minutes = drive.blk[written, ftl.AGE]
    assert len(set(minutes)) == 1 and not drive.blk[~written, ftl.AGE].any()
    ageing.age(drive, [(LONG, 30)])
    assert set(drive.blk[written, ftl.AGE]) == {minutes[0] + round(LONG * 60)}
    before = ageing.levels(drive)
    for page in range(40):  # into what was the open unit when the power went, or a new one
        drive.submit([WRITE], [page], [1], [0], S)
    assert before[:40].any() and not ageing.drawn(drive)[:40].any()
    assert (ageing.levels(drive)[40:] == before[40:]).all()


def test_a_read_takes_its_retries_and_takes_them_each_time(tmp_path):
    drive = worn()
    fresh = read(drive, range(2000))
    ageing.age(drive, [(2 * 8760, 30)])
    levels = ageing.levels(drive)[:2000]
    assert len(np.unique(levels)) > 6
    drive.save(tmp_path / "state")
    for again in (drive, VirtualDrive.load(tmp_path / "state")):
        assert again.unreadable == drive.unreadable and again.m[nand.S_AGED] == drive.m[nand.S_AGED] > 300
        assert (ageing.levels(again)[:2000] == levels).all()
        before = again.ledger()
        assert (read(again, range(2000), S + S // 2) == fresh + STEP_NS * np.minimum(levels, 8).astype(int)).all()
        after = again.ledger()
        assert after["soft_ecc_pages"] - before["soft_ecc_pages"] == np.count_nonzero(levels)
        steps = int(np.minimum(levels, 8).sum())
        assert after["nand_reads"] - before["nand_reads"] == 2000 + steps
        assert after["energy_read_J"] - before["energy_read_J"] == pytest.approx(
            (2000 + steps) * SATA_TLC.P_read_mW * SATA_TLC.t_R_ns * 1e-12
        )
    other = worn(seed=2)
    ageing.age(other, [(2 * 8760, 30)])
    assert (ageing.levels(other)[:2000] != levels).any()


def drawn(seed: int, pe: int, ppn: int, stress: int) -> int:
    """The level of a page as aged.py has it in words: SplitMix64 of seed, P/E cycles and place, a normal tail."""

    def mixed(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        return z ^ (z >> 31)

    u = ((mixed((mixed((seed + 0x9E3779B97F4A7C15) % 2**64) + pe * 2**32 + ppn) % 2**64) >> 11) + 0.5) / 2**53
    beyond = [0.5 * math.erfc((step - stress / 1e6) / (0.2 * math.sqrt(2))) for step in charge_loss.STEPS]
    return next((level for level, share in enumerate(beyond) if u >= share), UNREADABLE)


def test_each_page_has_the_level_that_its_place_draws():
    drive = worn()
    drive.blk[:, ftl.PE] += np.arange(len(drive.blk)) % 7
    ageing.age(drive, [(3 * 8760, 30)])
    levels, stress = ageing.drawn(drive), drive.blk[:, ftl.STRESS]
    seed, pages = int(drive.m[nand.S_SEED]), range(0, drive.pages, 61)
    place = [(int(drive.l2p[page]), int(drive.l2p[page]) // drive.preset.block_pages) for page in pages]
    assert [drawn(seed, int(drive.blk[b, ftl.PE]), at, int(stress[b])) for at, b in place] == levels[pages].tolist()
    assert len(set(levels[pages].tolist())) > UNREADABLE - 1
    page_levels = ageing.levels(drive)
    assert (
        ageing.truth(drive, page_levels)["slow_pages"]
        == sum(0 < level < UNREADABLE for level in page_levels.tolist())
        > 0
    )


def test_a_unit_takes_its_retries_whatever_the_units_beside_it_are():
    drive = worn()
    fresh = read(drive, range(2000))
    drive.blk[::2, ftl.PE] = 0
    ageing.age(drive, [(2 * 8760, 30)])
    levels = np.minimum(ageing.levels(drive)[:2000], 8).astype(int)
    assert 200 < np.count_nonzero(levels) < 1800
    assert (read(drive, range(2000), S + S // 2) == fresh + STEP_NS * levels).all()


def test_pages_of_one_nand_page_share_their_retries():
    drive = worn()
    ageing.age(drive, [(2 * 8760, 30)])
    levels = np.minimum(ageing.levels(drive)[:800], 8).reshape(-1, 8)
    begin = drive.ledger()["nand_reads"]
    for at in range(0, 800, 8):
        drive.submit([READ], [at], [8], [0], S + at * MS)
    assert drive.ledger()["nand_reads"] - begin == 100 + levels.max(axis=1).sum()


def test_an_idle_drive_refreshes_what_needs_retries():
    drive = worn()
    ageing.age(drive, [(2.5 * 8760, 30)])
    lost = set(drive.unreadable)
    drive.submit([WRITE], [0], [200], [0], S)  # a unit of none of them, and some of one that is collected then
    before = drive.ledger()
    assert lost and drive.m[nand.S_AGED]
    idle(drive, S, 31 * S)
    assert drive.ledger()["nand_refresh_bytes"] == 0
    slow, units = drive.m[nand.S_AGED], ageing.truth(drive, ageing.levels(drive))["units"]
    assert len(units) == slow and {unit["pe"] for unit in units} == {1000}
    idle(drive, 31 * S, 60 * S)
    after = drive.ledger()
    assert drive.m[nand.S_AGED] == 0 and after["refreshed_units"] == slow
    assert after["nand_refresh_bytes"] / 4096 == pytest.approx(drive.pages, rel=0.01)
    work_J = sum(after[key] - before[key] for key in ("energy_program_J", "energy_read_J", "energy_erase_J"))
    assert work_J > drive.pages * 4096 * 2e-9
    assert drive.energy_between(31 * S, 59 * S) - 28 * drive.energy_between(30 * S, 31 * S) > work_J
    levels = ageing.levels(drive)
    assert set(np.flatnonzero(levels)) == lost == drive.unreadable
    pages = [page for page in range(1000) if page not in lost]
    assert (read(drive, pages, 61 * S)[1:] < 110_000).all()
    ppn = drive.l2p.astype(np.int64)
    assert len(np.unique(ppn)) == drive.pages and (drive.p2l[ppn] == np.arange(drive.pages)).all()
    assert (drive.blk[:, ftl.VALID] == np.bincount(ppn // 192, minlength=len(drive.blk))).all()


def test_a_block_that_is_being_collected_is_refreshed_too():
    drive = worn()
    for seed in range(1000):
        drive.precondition("random", 0.002, seed)
        if drive.m[nand.S_VICTIM] >= 0 and drive.m[nand.S_FREE] >= drive.m[nand.K_IDLE_FREE]:
            break
    victim = drive.m[nand.S_VICTIM]
    ageing.age(drive, [(3 * 8760, 30)])
    assert drive.blk[victim, ftl.STATE] == ftl.VICTIM and drive.blk[victim, ftl.WORST] and drive.blk[victim, ftl.VALID]
    idle(drive, 0, 60 * S)
    assert drive.m[nand.S_AGED] == 0 and drive.m[nand.S_VICTIM] == -1 and not drive.m[nand.S_BROKEN]
    assert drive.blk[:, ftl.VALID].sum() == drive.pages


def host(drive_device: Device, op: int, page: int, pages: int = 1, bytes_: int = 0) -> int:
    """The errno of one request."""
    batch = np.zeros((1, nbd_protocol.COLUMNS), np.int64)
    batch[0, [nbd_protocol.OP, nbd_protocol.OFFSET, nbd_protocol.LENGTH]] = op, page * 4096, bytes_ or pages * 4096
    drive_device.execute(np.zeros(64 * 4096, np.uint8), batch, 1, 2 * S)
    return int(batch[0, nbd_protocol.ERROR])


@pytest.mark.slow
def test_a_page_that_is_lost_fails_and_counts_until_all_of_it_is_written(tmp_path):
    it = device(SATA_TLC, "sparse")
    for page in range(0, PAGES, 64):
        host(it, WRITE, page, 64)
    it.drive.drain()
    persistence.save(it, tmp_path / "drive")
    it.close()
    summary = persistence.age(tmp_path / "drive", [(LONG, 30)])
    again = kept_device(tmp_path / "drive")
    TruthFolder(str(tmp_path / "truth"), again).close(S)
    retention = admin.answer_truth(again, {"op": "retention"}, 0)[0]
    bad = retention["bad_pages"]
    assert set(bad) == again.unreadable and len(bad) == summary["bad_pages"] > 20 and again.power_cycles == 2
    levels = np.frombuffer((tmp_path / "truth" / "retries.bin").read_bytes(), np.uint8)
    assert np.flatnonzero(levels == UNREADABLE).tolist() == bad and summary["slow_pages"] == retention["slow_pages"]
    assert [page for page in range(PAGES) if host(again, READ, page)] == bad
    assert host(again, READ, max(0, bad[0] - 3), 4) == 5
    health = again.health()
    assert health["media_errors"] == len(bad) + 1 and health["soft_ecc_errors"] >= retention["slow_pages"]
    page = bytes.fromhex(admin.answer_admin(again, {"op": "log", "lid": 0xC0}, 0)[0]["hex"])
    assert int.from_bytes(page[56:64], "little") == len(bad) + 1
    assert int.from_bytes(page[64:72], "little") == health["soft_ecc_errors"]
    assert host(again, WRITE, bad[0], bytes_=512) == 0 and host(again, READ, bad[0]) == 5
    assert host(again, WRITE, bad[0]) == 0 and host(again, READ, bad[0]) == 0
    assert host(again, nbd_protocol.TRIM, bad[1]) == 0 and host(again, READ, bad[1]) == 0
    persistence.save(again, tmp_path / "drive")
    again.close()
    third = kept_device(tmp_path / "drive")
    assert third.unreadable == set(bad[2:]) and third.media_errors == len(bad) + 2
    assert admin.answer_truth(third, {"op": "retention"}, 0)[0]["bad_pages"] == bad[2:]
    assert third.drive.format(S) and not third.unreadable and third.drive.m[nand.S_AGED] == 0
    TruthFolder(str(tmp_path / "truth"), third).close(S)
    assert not {"retention.json", "retries.bin"} & {path.name for path in (tmp_path / "truth").iterdir()}
    third.close()


def kept_device(folder) -> Device:
    drive = VirtualDrive.load(folder / "flash.npz")
    it = Device(SATA_TLC, drive, drive.capacity_bytes, "sparse", 0, drive.ring, latency=True)
    persistence.restore(it, folder)
    return it


def test_what_is_no_storage_and_what_is_no_kept_drive_are_refused(tmp_path):
    it = device(SATA_TLC, "crc")
    folder = tmp_path / "drive"
    it.keep(str(folder))
    with pytest.raises(DriveError, match="a kept drive"):
        persistence.age(tmp_path, [(1, 30)])
    persistence.save(it, folder)
    with pytest.raises(DriveError, match="the server of .* runs"):
        persistence.age(folder, [(1, 30)])
    it.keep(None)
    it.close()
    before = (folder / "flash.npz").read_bytes()
    for profile in (
        [(0, 30)],
        [(-1, 30)],
        [(math.nan, 30)],
        [(math.inf, 30)],
        [(9, 30), (-1, 30)],
        [(9, 30), (0, 30)],
        [],
        [(5e5, 30), (5e5, 30)],
    ):
        with pytest.raises(UsageError, match="hours of storage above 0"):
            persistence.age(folder, profile)
    for celsius in (-41, 126, math.nan):
        with pytest.raises(UsageError, match="a storage temperature of -40 to 125"):
            persistence.age(folder, [(1, celsius)])
    assert (folder / "flash.npz").read_bytes() == before
    with pytest.raises(UsageError, match="--hours and --celsius, or --profile"):
        storage(1, None, None)
    with pytest.raises(UsageError, match="--hours and --celsius, or --profile"):
        storage(1, 30, "f")
    (tmp_path / "profile").write_text("# a summer\n12, 20\n\n12,40 # noon\n")
    assert storage(None, None, str(tmp_path / "profile")) == [(12, 20), (12, 40)]
    (tmp_path / "profile").write_text("12;20\n")
    with pytest.raises(UsageError, match="lines of `hours,celsius`"):
        storage(None, None, str(tmp_path / "profile"))
    lost = VirtualDrive(SATA_TLC, capacity_bytes=256 * MIB, latency=False)
    lost.unreadable.add(1)
    with pytest.raises(UsageError, match="1 that cannot"):
        lost.precondition("seq", 1)


@pytest.mark.slow
@pytest.mark.keeps_time
def test_a_drive_that_lay_on_a_shelf_between_two_servers_has_lost_what_the_truth_says(serving, tmp_path):
    folder, truth = tmp_path / "drive", tmp_path / "truth"
    words = ("--preset", "sata-tlc", "--no-latency")
    first = serving(*words, "--capacity", "256MiB")
    written = np.random.default_rng(1).bytes(8 * MIB)
    with first.client() as client:
        client.write(0, written)
    first.truth(op="keep", folder=str(folder))
    assert first.end() == 0
    aged = forked(tmp_path, "age", "--state", str(folder), "--hours", str(LONG), "--celsius", "30")
    document = json.loads(aged.stdout)
    assert document["simulated"] and document["pages"] == 2048 and document["equivalent_hours"] == LONG
    again = serving(*words, "--kept", str(folder), "--truth", str(truth), "--nvme-tcp", "127.0.0.1:0")
    bad = json.loads((truth / "retention.json").read_text())["bad_pages"]
    lost = []
    with again.client() as client:
        for page in range(2048):
            try:
                assert client.read(page * 4096, 4096) == written[page * 4096 : (page + 1) * 4096]
            except NbdError as error:
                assert error.errno == 5
                lost.append(page)
    assert lost == bad and len(bad) == document["bad_pages"] > 3
    with host_of(again, 1) as host:
        refused(0x281, host.io[0].read, bad[0] * 8, 8, retry=True)
        assert number(host.admin.log(0x01), 12, 13) >> 1 == 0x281
        assert number(host.admin.log(0x02), 160, 175) == len(bad) + 1
