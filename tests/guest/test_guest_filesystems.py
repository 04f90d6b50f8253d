"""`run powerloss --filesystems` with a real kernel: ext4, xfs and btrfs on the SIMULATED drive behind QEMU's SAS, cut
under their clients. The kernel keeps the drive then; ssdrig has it dropped, and scans for it. An honest drive is not
accused, a lying FLUSH is found on each, and a file system that was told to send no FLUSH is at fault itself."""

import os
from types import SimpleNamespace

import pytest

from guest import powerloss
from guest.qemu import SAS, Disk
from guest.test_guest_powerloss import Bench
from ssdrig.base.errors import PromiseBroken, Suspicion
from ssdrig.plan.kinds import cut_filesystems
from ssdrig.powerloss import above, campaign, cycle, filesystems, mounts
from ssdrig.runs import journal

WHY_NOT = "SSDRIG_TEST_GUEST_CUTS=1 runs it, on a free machine (5 min): a starved guest has written nothing when cut"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not os.environ.get("SSDRIG_TEST_GUEST_CUTS"), reason=WHY_NOT)]

ASKED = cut_filesystems.parse("ext4 xfs btrfs")
CAPACITY = filesystems.MOST_SHARE * filesystems.reserved_bytes(ASKED)
DISK = Disk(
    "fs",
    "FSGUEST000001",
    CAPACITY,
    "scsi-hd,bus=sasbus.0,serial={serial},vendor=GUEST,product=FS-DISK,ver=1.0,wwn=0x5000c50000000003,rotation_rate=1,"
    "drive={id}-node,id={id}",
)
HONEST_CUTS, LIAR_CUTS = 10, 3
NOT_SENT = "ext4:barrier=0 btrfs:nobarrier"  # xfs has no such option any more (Linux 4.19)


@pytest.fixture(scope="module")
def machine_with_holders(machine):
    machine.load_holders()
    return machine


def exchange(machine, gone: Disk, comes: Disk) -> None:
    machine.unplug_sas(gone)
    machine.plug_sas(comes)


def plugged(bench: Bench, *faults: str) -> SimpleNamespace:
    """The drive, and the switch of its power."""
    machine, served = bench.machine, bench.behind_qemu(DISK.id, "sata-tlc", CAPACITY, *faults)
    exchange(machine, SAS, DISK)
    bench.ends.append(lambda: exchange(machine, DISK, SAS))
    switch = bench.switch(lambda: served.admin(op="power_cut"), lambda: bench.powered(served, DISK.id))
    return SimpleNamespace(far=bench.far(DISK.serial, **machine.with_programs()), switch=switch)


def carry_out(machine, folder, cuts: int, asked, *faults: str) -> SimpleNamespace:
    """A campaign on a drive of its own: its outcome, verdicts on the blocks and above them, and what its FLUSHes
    were."""
    bench = Bench(machine, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "make", powerloss.small_layout)
        patch.setattr(cycle, "ANSWER_S", 0.2)
        patch.setattr(cycle, "LEAD_S", 0.05)
        patch.setattr(cycle, "READY_S", 200.0)  # a starved guest is no missing drive
        try:
            drive = plugged(bench, *faults)
            keys = {"write": 1.0, "filesystems": asked, "off_time": 0.05}
            run, outcome = powerloss.carry_out(drive.far, drive.switch, folder / "runs", cuts, "last", **keys)
        finally:
            bench.end()
    events = list(journal.events(run))
    of = lambda kind: [event for event in events if event["kind"] == kind]
    return SimpleNamespace(outcome=outcome, blocks=of("session.judged"), above=of(above.JUDGED), events=events)


def rows(campaign) -> dict[tuple[str, str], dict]:
    return {(row["filesystem"], row["client"]): row for row in above.totals(campaign.above)}


def test_honest_drive_and_file_systems_keep_all(machine_with_holders, tmp_path):
    campaign = carry_out(machine_with_holders, tmp_path, HONEST_CUTS, ASKED)
    assert campaign.outcome is None, campaign.outcome
    assert len(campaign.above) == len(campaign.blocks) == HONEST_CUTS + 1  # and a control session without a cut
    assert not [row["why_not"] for row in campaign.above if not row["judged"]]
    seen = rows(campaign)
    for name, _ in ASKED:
        assert seen[name, ""]["sessions"] == HONEST_CUTS + 1
        for client in mounts.NAMES:
            row, rest = seen[name, client], seen[name, f"{client}, at rest"]
            assert row["promised"] > HONEST_CUTS and rest["promised"] > 0, row
            assert not row["failing"] and not rest["failing"], row


def test_lying_flush_is_found_on_each_and_is_the_drives_fault(machine_with_holders, tmp_path):
    campaign = carry_out(machine_with_holders, tmp_path, LIAR_CUTS, ASKED, "--drive-faults", '{"lying_flush": 1}')
    assert isinstance(campaign.outcome, PromiseBroken), campaign.outcome
    seen = rows(campaign)
    for name, _ in ASKED:
        damaged = {cut for (kind, _), row in seen.items() if kind == name for cut in row["failing"]}
        assert damaged, (name, seen)
    proven = {session["cut"] for session in campaign.blocks if session["failed"]}
    for row in campaign.above:
        if row["failed"]:
            assert row["fault"] == (above.DRIVE if row["cut"] in proven else above.FILESYSTEM)
    assert any(row["fault"] == above.DRIVE for row in campaign.above)


def test_file_system_that_sends_no_flush_is_at_fault_itself(machine_with_holders, tmp_path):
    # a FLUSH of the block test makes durable what the file systems wrote, too: not each cut shows it
    campaign = carry_out(machine_with_holders, tmp_path, 2 * LIAR_CUTS, cut_filesystems.parse(NOT_SENT))
    assert isinstance(campaign.outcome, Suspicion), campaign.outcome
    assert not any(session["failed"] for session in campaign.blocks)
    assert {row["fault"] for row in campaign.above if row["failed"]} == {above.FILESYSTEM}
    assert any(row["failing"] for row in rows(campaign).values())
