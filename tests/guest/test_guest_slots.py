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
            [place] = self.machine.do("found", "/sys/class/scsi_device/0:*/device/delete")
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
        judged = [each for each in events if each["kind"] == "session.judged"]
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
    found = campaigns[name]
    if found.outcome:
        raise found.outcome
    cuts = [each for each in found.judged if not each["control"]]
    assert found.cuts == 1 + CUTS  # and the rehearsal
    assert len(cuts) == CUTS and all(each["ready_s"] is not None for each in cuts)
    assert not [each for each in cuts if each["findings"]]
    assert {each["why_not"] for each in cuts if not each["judged"]} <= {judging.NOTHING_TESTED}
    assert not [each for each in found.events if each["kind"] == "drive.missing"]
    [rehearsed] = [each for each in found.events if each["kind"] == "slot.rehearsal"]
    kind = {"fixed": "PCIe", "hotplug": "PCIe", "sata": "SCSI", "sas": "SCSI", "usb": "USB"}[name]
    assert rehearsed["place"] == kind


def test_slot_that_does_not_give_the_drive_back_is_refused_before_the_first_cut(bench, monkeypatch):
    """After the rehearsal's cut the slot stays without power."""
    monkeypatch.setattr(cycle, "READY_S", 5.0)
    monkeypatch.setattr(campaign, "FIRST_S", 5.0)
    try:
        found = bench.carry_out(FIXED.serial, lambda: bench.power(False), lambda: None, 2)
    finally:
        bench.power(True)
        bench.machine.do("put", "/sys/bus/pci/rescan", "1")
        bench.machine.do("wait_for", "/sys/block/nvme*/device/serial", FIXED.serial)
    assert isinstance(found.outcome, SlotError) and found.outcome.exit_code == 19
    assert found.cuts == 1 and not found.judged


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
        ("smaller", SAS.size_bytes // 2, SAS.serial, {}, PromiseBroken, "CAPACITY"),
        ("readonly", SAS.size_bytes, SAS.serial, {"read-only": True}, PromiseBroken, "READ_ONLY"),
        ("stranger", SAS.size_bytes, "STRANGER0001", {}, ExchangedDrive, None),
    ],
)
def test_drive_that_comes_back_changed_is_found_and_not_written(
    bench, monkeypatch, name, size_bytes, serial, node, error, finding
):
    monkeypatch.setattr(cycle, "READY_S", 60.0)  # so long each change is looked at
    disk = changed_disk(bench, name, size_bytes, serial, **node)
    before = (bench.machine.folder / name).read_bytes()
    found = comes_back_as(bench, disk)
    assert (bench.machine.folder / name).read_bytes() == before  # not a byte is written to it
    assert isinstance(found.outcome, error), found.outcome
    assert len(found.judged) <= 2  # none after the change
    if finding:
        assert found.judged[-1]["findings"] == {finding: 1} and found.judged[-1]["failed"]


def test_late_drive_is_suspicious_and_still_the_same_drive(bench):
    """It comes 30 s after its power in one cut of six; before, after less than one."""
    cuts = []

    def on() -> None:
        cuts.append(1)
        if len(cuts) == 6:
            threading.Timer(30.0, lambda: bench.power(True)).start()
        else:
            bench.power(True)

    found = bench.carry_out(FIXED.serial, lambda: bench.power(False), on, 6)
    late = next(each for each in found.judged if each["cut"] == 5)
    assert late["ready_s"] >= 30 and "DEAD" not in late["findings"]
    assert isinstance(found.outcome, Suspicion) and set(late["findings"]) == {"SLOW_READY"}, late


def test_renamed_drive_is_followed(bench):
    """Its old name is held open by somebody while it is away."""
    cuts = []

    def off() -> None:
        cuts.append(1)
        if len(cuts) == 3:
            found.drive.ask("keep open")
        bench.unplug(NVME)

    switch, found = Switch(off, lambda: bench.plug(NVME)), SimpleNamespace()
    found.drive = FarDrive(bench.machine, NVME.serial)
    try:
        _, outcome = powerloss.carry_out(found.drive, switch, bench.runs, 3, off_time=OFF_S)
        assert outcome is None and len(found.drive.nodes) > 1
    finally:
        found.drive.end()
        switch.end()
        bench.unplug(NVME)
        bench.plug(NVME)
        bench.machine.do("wait_for", "/dev/nvme0n1")
