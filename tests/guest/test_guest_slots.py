"""Drives of a real kernel come back from a cut, on every kind of slot, or are refused before the first one; and what
comes back in another state is found.

Real here: the guest's kernel, its PCIe, AHCI, SAS and USB layers, and the loss of a PCIe function: a root port without
hot-plug switches the power of its slot off, so the function reads as ones, loses its settings and its commands, and
begins anew. Not real: what a drive loses of its cache, for its medium is a file; AHCI's loss of the link, which QEMU
has not: the kernel is told that the disk is gone, and finds it only where ssdrig has the port scanned."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from guest import powerloss
from guest.far_drive import FarDrive
from guest.power import Switch
from guest.qemu import FIXED, NVME, SAS, SATA, USB
from ssdrig.base.errors import ExchangedDrive, PromiseBroken, SlotError, Suspicion
from ssdrig.powerloss import campaign, cycle, judging
from ssdrig.runs import journal

WHY_NOT = "SSDRIG_TEST_GUEST_CUTS=1 runs it, on a free machine"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not os.environ.get("SSDRIG_TEST_GUEST_CUTS"), reason=WHY_NOT)]

CUTS = 20
PORT = "00:08.0"  # of FIXED
OFF_S = 1.0


class Bench:
    """Switches for drives of one guest; what speaks with QEMU or the guest is done by one thread at a time."""

    def __init__(self, machine, runs):
        self.machine, self.runs, self.acting = machine, runs, threading.RLock()

    def power(self, on: bool) -> None:
        with self.acting:
            self.machine.do("slot_power", PORT, on)

    def unplug(self, disk) -> None:
        with self.acting:
            self.machine.unplug(disk)

    def plug(self, disk) -> None:
        with self.acting:
            self.machine.plug(disk)

    def sata_gone(self) -> None:
        with self.acting:
            [place] = self.machine.do("matches", "/sys/class/scsi_device/0:*/device/delete")
            self.machine.do("put", place, "1")

    def sas_gone(self) -> None:
        with self.acting:
            self.machine.unplug_sas(SAS)

    def carry_out(self, serial: str, off, on, cuts: int = CUTS, **keys) -> SimpleNamespace:
        """A campaign: its run folder, events, outcome, and how often the power went."""
        switch = Switch(off, on)
        drive = FarDrive(self.machine, serial)
        try:
            run, outcome = powerloss.carry_out(drive, switch, self.runs, cuts, off_time=OFF_S, **keys)
        finally:
            drive.end()
            switch.end()
        events = list(journal.events(run))
        judged = [event for event in events if event["kind"] == "session.judged"]
        return SimpleNamespace(run=run, outcome=outcome, cuts=switch.cuts, events=events, judged=judged, drive=drive)


@pytest.fixture(scope="module")
def bench(machine, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "make", powerloss.small_layout)
        patch.setattr(cycle, "ANSWER_S", 0.2)
        patch.setattr(cycle, "LEAD_S", 0.05)
        patch.setattr(cycle, "READY_S", 200.0)  # a starved guest is no missing drive
        yield Bench(machine, tmp_path_factory.mktemp("slots"))


@pytest.fixture(scope="module")
def campaigns(bench):
    """One on each kind of slot, at the same time."""
    of = {
        "fixed": (FIXED.serial, lambda: bench.power(False), lambda: bench.power(True)),
        "hotplug": (NVME.serial, lambda: bench.unplug(NVME), lambda: bench.plug(NVME)),
        "sata": (SATA.serial, bench.sata_gone, lambda: None),
        "sas": (SAS.serial, bench.sas_gone, lambda: bench.plug(SAS)),
        "usb": (USB.serial, lambda: bench.unplug(USB), lambda: bench.plug(USB)),
    }
    with ThreadPoolExecutor(len(of)) as pool:
        results = {name: pool.submit(bench.carry_out, *words) for name, words in of.items()}
        return {name: result.result() for name, result in results.items()}


@pytest.mark.parametrize("name", ["fixed", "hotplug", "sata", "sas", "usb"])
def test_drive_comes_back_from_every_cut_and_is_not_accused(campaigns, name):
    campaign = campaigns[name]
    if campaign.outcome:
        raise campaign.outcome
    cuts = [session for session in campaign.judged if not session["control"]]
    assert campaign.cuts == 1 + CUTS  # and the rehearsal
    assert len(cuts) == CUTS and all(session["ready_s"] is not None for session in cuts)
    assert not [session for session in cuts if session["findings"]]
    assert {session["why_not"] for session in cuts if not session["judged"]} <= {judging.NOTHING_TESTED}
    assert not [event for event in campaign.events if event["kind"] == "drive.missing"]
    [rehearsed] = [event for event in campaign.events if event["kind"] == "slot.rehearsal"]
    kind = {"fixed": "PCIe", "hotplug": "PCIe", "sata": "SCSI", "sas": "SCSI", "usb": "USB"}[name]
    assert rehearsed["place"] == kind


def test_slot_that_does_not_give_the_drive_back_is_refused_before_the_first_cut(bench, monkeypatch):
    """After the rehearsal's cut the slot stays without power."""
    monkeypatch.setattr(cycle, "READY_S", 5.0)
    monkeypatch.setattr(campaign, "FIRST_S", 5.0)
    try:
        tested = bench.carry_out(FIXED.serial, lambda: bench.power(False), lambda: None, 2)
    finally:
        bench.power(True)
        bench.machine.do("put", "/sys/bus/pci/rescan", "1")
        bench.machine.do("wait_for", "/sys/block/nvme*/device/serial", FIXED.serial)
    assert isinstance(tested.outcome, SlotError) and tested.outcome.exit_code == 19
    assert tested.cuts == 1 and not tested.judged


def comes_back_as(bench, changed):
    """A campaign on the SAS disk, which comes back from its second cut, and from all later ones, as `changed`."""
    cuts = []

    def on() -> None:
        cuts.append(1)
        bench.plug(changed if len(cuts) >= 3 else SAS)

    try:
        return bench.carry_out(SAS.serial, bench.sas_gone, on, 4)
    finally:
        bench.machine.unplug_sas(SAS)
        bench.machine.plug_sas(SAS)


def changed_disk(bench, name: str, size_bytes: int, serial: str = SAS.serial, **node):
    """A disk in the place of SAS, of another file that has all of its content."""
    path = bench.machine.folder / name
    path.write_bytes((bench.machine.folder / SAS.id).read_bytes()[:size_bytes])
    medium = {"driver": "file", "filename": str(path), **node}
    bench.machine.qmp("blockdev-add", **{"driver": "raw", "node-name": f"{name}-file", "file": medium, **node})
    return SAS._replace(serial=serial, device=SAS.device.replace("{id}-file", f"{name}-file"))


@pytest.mark.parametrize(
    ("name", "size_bytes", "serial", "node", "error", "finding"),
    [
        ("sas-smaller", SAS.size_bytes // 2, SAS.serial, {}, PromiseBroken, "CAPACITY"),
        ("sas-readonly", SAS.size_bytes, SAS.serial, {"read-only": True}, PromiseBroken, "READ_ONLY"),
        ("sas-stranger", SAS.size_bytes, "STRANGER0001", {}, ExchangedDrive, None),
    ],
)
def test_drive_that_comes_back_changed_is_found_and_not_written(
    bench, monkeypatch, name, size_bytes, serial, node, error, finding
):
    monkeypatch.setattr(cycle, "READY_S", 60.0)  # so long each change is looked at
    disk = changed_disk(bench, name, size_bytes, serial, **node)
    before = (bench.machine.folder / name).read_bytes()
    campaign = comes_back_as(bench, disk)
    assert (bench.machine.folder / name).read_bytes() == before  # not a byte is written to it
    assert isinstance(campaign.outcome, error), campaign.outcome
    assert len(campaign.judged) <= 2  # none after the change
    if finding:
        assert campaign.judged[-1]["findings"] == {finding: 1} and campaign.judged[-1]["failed"]


def test_late_drive_is_suspicious_and_still_the_same_drive(bench):
    """It comes 30 s after its power in one cut of six; before, after less than one."""
    cuts = []

    def on() -> None:
        cuts.append(1)
        if len(cuts) == 6:
            threading.Timer(30.0, lambda: bench.power(True)).start()
        else:
            bench.power(True)

    campaign = bench.carry_out(FIXED.serial, lambda: bench.power(False), on, 6)
    late = next(session for session in campaign.judged if session["cut"] == 5)
    assert late["ready_s"] >= 30 and "DEAD" not in late["findings"]
    assert isinstance(campaign.outcome, Suspicion) and set(late["findings"]) == {"SLOW_READY"}, late


def test_renamed_drive_is_followed(bench):
    """Its old name is held open by somebody while it is away."""
    cuts = []

    def off() -> None:
        cuts.append(1)
        if len(cuts) == 3:
            followed.drive.ask("keep open")
        bench.unplug(NVME)

    switch, followed = Switch(off, lambda: bench.plug(NVME)), SimpleNamespace()
    followed.drive = FarDrive(bench.machine, NVME.serial)
    try:
        _, outcome = powerloss.carry_out(followed.drive, switch, bench.runs, 3, off_time=OFF_S)
        assert outcome is None and len(followed.drive.nodes) > 1
    finally:
        followed.drive.end()
        switch.end()
        bench.unplug(NVME)
        bench.plug(NVME)
        bench.machine.do("wait_for", "/dev/nvme0n1")
