"""drive/slot.py: what the kernel is made to drop and to scan, and what never."""

import errno
import os

import pytest
from disktree import USUAL_NVME, USUAL_SATA, DiskTree

from ssdrig.base.errors import DriveError, ExchangedDrive, UnsafeTarget
from ssdrig.drive import identity, slot
from ssdrig.drive.inventory import all_drives

PORT = "0000:00:06.0"
FUNCTION = f"sys/devices/pci0000:00/{PORT}/0000:01:00.0"
HOST = "sys/devices/pci0000:00/0000:00:17.0/ata1/host1"


def of(tree, name):
    return next(drive for drive in all_drives(tree.root) if drive.name == name)


def pcie(tree, index=0, hotplug=False):
    """The files that the kernel has for a PCIe function and the port above it."""
    bus, function = f"0000:0{index + 1}", f"sys/devices/pci0000:00/{PORT}/0000:0{index + 1}:00.0"
    for file in (f"{function}/remove", f"sys/devices/pci0000:00/{PORT}/remove", "sys/bus/pci/rescan"):
        tree.write(file, "")
    tree.write(f"sys/devices/pci0000:00/{PORT}/pci_bus/{bus}/rescan", "")
    tree.write("sys/devices/pci0000:00/pci_bus/0000:00/rescan", "")
    tree.write(f"{function}/config", b"\x4d\x14\x0c\xa8\x06\x04" + bytes(58))
    if hotplug:
        tree.write(f"sys/bus/pci_express/drivers/pciehp/{PORT}:pcie004/driver", "")
        tree.write("sys/bus/pci/slots/1/address", f"{bus}:00\n")
        tree.write("sys/bus/pci/slots/1/power", "1\n")


class Kernel:
    """Takes what is written: a disk is dropped, and comes back at a scan while `powered`, as `again` makes it."""

    def __init__(self, tree, name, again, powered=True):
        self.tree, self.name, self.again, self.powered, self.written, self.s = tree, name, again, powered, [], 0.0

    def write(self, file, content):
        file = os.path.relpath(file, self.tree.root)
        self.written.append((file, content))
        if file.endswith(("remove", "delete")) or (file.endswith("authorized") and content == "0"):
            self.tree.remove(self.name)
        elif self.powered and self.name not in os.listdir(self.tree.root / "sys/block"):
            self.name = self.again()

    def slot(self, name):
        return slot.Slot(of(self.tree, name), self.tree.root, self.write, lambda: self.s)


@pytest.fixture
def tree(tmp_path):
    return DiskTree(tmp_path)


def names(place, tree):
    """The files of a place, below its root."""
    files = lambda pairs: [os.path.relpath(file, tree.root) for file, _ in pairs]
    return files(place.drops), files(place.scans), files(place.wide)


def test_nvme_slot_without_hotplug_is_its_function_and_its_own_bus(tree):
    tree.nvme(0)
    pcie(tree)
    place = slot.of(of(tree, "nvme0n1"), tree.root)
    assert (place.kind, place.hotplug, place.power) == (slot.PCIE, False, "")
    assert names(place, tree) == (
        [f"{FUNCTION}/remove"],
        [f"sys/devices/pci0000:00/{PORT}/pci_bus/0000:01/rescan"],
        ["sys/devices/pci0000:00/pci_bus/0000:00/rescan", "sys/bus/pci/rescan"],
    )
    assert slot.refuse(of(tree, "nvme0n1"), tree.root) == place


def test_nvme_slot_with_pciehp_has_hotplug_and_its_power(tree):
    tree.nvme(0)
    pcie(tree, hotplug=True)
    place = slot.of(of(tree, "nvme0n1"), tree.root)
    assert place.hotplug and place.power == str(tree.root / "sys/bus/pci/slots/1/power")


def test_hotplug_of_another_port_is_none_of_this_one(tree):
    """A slot of ACPI (acpiphp) has a power file too, and sees no drive vanish."""
    tree.nvme(0)
    pcie(tree)
    tree.write("sys/bus/pci_express/drivers/pciehp/0000:00:1d.0:pcie004/driver", "")
    tree.write("sys/bus/pci/slots/1/address", "0000:01:00\n")
    tree.write("sys/bus/pci/slots/1/power", "1\n")
    assert not slot.of(of(tree, "nvme0n1"), tree.root).hotplug


def test_each_kind_drops_the_drive_alone(tree):
    tree.sata("sda")
    tree.sas("sdb")
    tree.usb("sdc")
    tree.virtio("vda")
    tree.nvme_multipath(3)
    slots = {drive.name: slot.of(drive, tree.root) for drive in all_drives(tree.root)}
    assert {name: place.kind for name, place in slots.items()} == {
        "sda": slot.SCSI,
        "sdb": slot.SCSI,
        "sdc": slot.USB,
        "vda": slot.PCIE,
        "nvme3n1": slot.FABRIC,
    }
    assert names(slots["sda"], tree)[:2] == ([f"{HOST}/target1:0:0/1:0:0:0/delete"], ["sys/class/scsi_host/host1/scan"])
    assert names(slots["sdb"], tree)[0] == [
        "sys/devices/pci0000:00/0000:00:1c.0/0000:05:00.0/host9/port-9:0/end_device-9:0/target9:0:0/9:0:0:0/delete"
    ]
    usb = "sys/devices/pci0000:00/0000:00:14.0/usb2/2-1"
    assert names(slots["sdc"], tree)[:2] == ([f"{usb}/authorized"], [f"{usb}/authorized"])
    assert slots["sdc"].drops[0][1] == "0" and slots["sdc"].scans[0][1] == "1"


def test_kernel_tells_nvme_and_disks_whose_stop_it_manages_and_no_other(tree):
    tree.nvme(0)
    pcie(tree)
    tree.sata("sda")
    tree.sas("sdb")
    tree.usb("sdc")
    tree.virtio("vda")
    slots = {drive.name: (slot.of(drive, tree.root), drive) for drive in all_drives(tree.root)}
    for place, _ in slots.values():
        for file, _ in place.drops:
            tree.write(os.path.relpath(file, tree.root), "")
    tells = lambda: {name for name, (place, drive) in slots.items() if slot.announces(place, drive, tree.root)}
    assert tells() == {"nvme0n1"}
    for file, managed in (("manage_start_stop", "1"), ("manage_system_start_stop", "0")):
        tree.write(f"{HOST}/target1:0:0/1:0:0:0/scsi_disk/1:0:0:0/{file}", managed)
    assert tells() == {"nvme0n1", "sda"}
    (tree.root / FUNCTION / "remove").unlink()
    assert tells() == {"sda"}


def test_dual_port_drive_loses_both_functions(tree):
    """Each of two PCIe controllers of one subsystem has a path to the namespace."""
    tree.nvme_multipath(0, transport="pcie", address="0000:01:00.0", states=("live", "live"))
    subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    for nvme in (0, 1):
        function = f"sys/devices/pci0000:00/{PORT}/0000:0{nvme + 1}:00.0"
        tree.write(f"{function}/nvme/nvme{nvme}/transport", "pcie\n")
        tree.write(f"{function}/nvme/nvme{nvme}/serial", "FABRIC01\n")
        tree.link(f"{subsystem}/nvme{nvme}", f"{function}/nvme/nvme{nvme}")
        pcie(tree, nvme)
    drops, scans, _ = names(slot.of(of(tree, "nvme0n1"), tree.root), tree)
    assert drops == [f"sys/devices/pci0000:00/{PORT}/0000:0{n}:00.0/remove" for n in (1, 2)]
    assert scans == [f"sys/devices/pci0000:00/{PORT}/pci_bus/0000:0{n}/rescan" for n in (1, 2)]


@pytest.mark.parametrize("index", [0, 1])
def test_drive_behind_the_same_bridge_is_never_dropped(tree, index):
    tree.nvme(0)
    tree.nvme(1, serial="S6Z1NX0W100002")
    for controller in (0, 1):
        pcie(tree, controller)
    kernel = Kernel(tree, f"nvme{index}n1", lambda: None)
    kernel.slot(f"nvme{index}n1").drop()
    assert kernel.written == [(f"sys/devices/pci0000:00/{PORT}/0000:0{index + 1}:00.0/remove", "1")]
    assert (
        slot.others(slot.of(of(tree, f"nvme{1 - index}n1"), tree.root), of(tree, f"nvme{1 - index}n1"), tree.root) == []
    )


def test_place_with_another_disk_is_refused_and_not_dropped(tree):
    """The bays of a dock are one USB device; disks behind a port multiplier lose the link at a scan of their port."""
    tree.usb("sda", serial="A1", port=1)
    tree.usb("sdb", serial="B1", port=1, lun=1)
    tree.sata("sdc", serial="C1", port=3)
    device = "sys/devices/pci0000:00/0000:00:17.0/ata3/host3/target3:1:0/3:1:0:0"
    tree.scsi("sdd", device, "ATA", "SYSTEM", "1", "D1", 1 << 33)
    for name, other in (("sda", "sdb"), ("sdb", "sda"), ("sdc", "sdd")):
        drive, kernel = of(tree, name), Kernel(tree, name, lambda: None)
        assert slot.others(slot.of(drive, tree.root), drive, tree.root) == [other]
        with pytest.raises(UnsafeTarget):
            slot.refuse(drive, tree.root)
        with pytest.raises(UnsafeTarget):
            kernel.slot(name).drop()
        assert kernel.written == []


def test_other_namespace_of_the_drive_goes_with_it_and_a_disk_of_its_hba_does_not(tree):
    tree.nvme(0)
    tree.nvme(0, nsid=2)
    tree.sas("sdb")
    tree.sas("sdc", serial="ZC1A0B2D", port=1, wwn="naa.5000c500a0b1c2d4")
    for name in ("nvme0n1", "sdb"):
        assert slot.others(slot.of(of(tree, name), tree.root), of(tree, name), tree.root) == []


def test_another_drive_in_the_slot_is_not_dropped(tree):
    tree.nvme(0)
    pcie(tree)
    kernel = Kernel(tree, "nvme0n1", lambda: None)
    it = kernel.slot("nvme0n1")
    tree.write(f"{FUNCTION}/nvme/nvme0/serial", "STRANGER\n")
    with pytest.raises(ExchangedDrive):  # whose power is not cut again
        it.drop()
    assert kernel.written == []


@pytest.mark.parametrize("kind", ["sata", "usb"])
def test_another_drive_in_the_slot_under_any_name_is_a_stranger(tree, kind):
    """Who still holds the old node open keeps its name: the next drive in the slot gets another one."""
    getattr(tree, kind)("sda", serial="OURS")
    own = slot.Slot(of(tree, "sda"), tree.root)
    own.refuse_stranger()
    tree.remove("sda")
    own.refuse_stranger()
    getattr(tree, kind)("sdb", serial="STRANGER")
    with pytest.raises(ExchangedDrive) as refusal:
        own.refuse_stranger()
    assert "STRANGER" in refusal.value.seen and "sdb" in refusal.value.seen


@pytest.mark.parametrize("text", ["(efault)", "(null)"])
def test_drive_whose_controller_is_not_identified_yet_is_no_stranger(tree, text):
    """What a Linux 6.1 guest showed of a drive that came back on a busy host."""
    tree.nvme(0, serial="OURS0001")
    own = slot.Slot(of(tree, "nvme0n1"), tree.root)
    tree.remove("nvme0n1")
    tree.nvme(1, serial=text, model=text)
    [drive] = all_drives(tree.root)
    assert (drive.serial, drive.model) == ("", "")
    own.refuse_stranger()


def test_drive_beside_the_slot_is_no_stranger(tree):
    tree.sata("sda", serial="OURS", port=1)
    own = slot.Slot(of(tree, "sda"), tree.root)
    tree.sata("sdb", serial="OTHER", port=2)
    tree.remove("sda")
    own.refuse_stranger()
    tree.sata("sdc", serial="OTHER2", port=1)
    with pytest.raises(ExchangedDrive) as refusal:
        own.refuse_stranger()
    assert "OTHER2" in refusal.value.seen


@pytest.mark.parametrize("kind", ["sata", "usb"])
def test_stranger_at_the_port_with_the_drives_name_is_not_dropped(tree, kind):
    """A name that is free is the next disk's."""
    plug = {"sata": tree.sata, "usb": tree.usb}[kind]
    plug("sdb", serial="OURS0001", port=1)
    kernel = Kernel(tree, "sdb", lambda: None)
    it = kernel.slot("sdb")
    it.away()
    tree.remove("sdb")
    plug("sdb", serial="STRANGER", port=1)
    it.look()
    with pytest.raises(ExchangedDrive):
        it.drop()
    kernel.s = slot.STALE_S
    with pytest.raises(ExchangedDrive):
        it.look()
    assert not [file for file, _ in kernel.written if file.endswith(("delete", "authorized"))]


def test_drive_whose_facts_are_not_read_yet_is_dropped(tree):
    """It is there again, and its medium is not: what is stale."""
    tree.sata("sdb", serial="OURS0001", port=1)
    it = Kernel(tree, "sdb", lambda: None).slot("sdb")
    tree.remove("sdb")
    tree.sata("sdb", serial="", size_bytes=0, port=1)
    it.drop()
    assert it.dropped


def test_without_rights_or_files_a_slot_is_refused_before_any_cut(tree, monkeypatch):
    tree.nvme(0)
    drive = of(tree, "nvme0n1")
    assert "has no" in slot.why_not(slot.of(drive, tree.root), drive, tree.root)
    pcie(tree)
    assert slot.why_not(slot.of(drive, tree.root), drive, tree.root) == ""
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "run as root" in slot.why_not(slot.of(drive, tree.root), drive, tree.root)
    pcie(tree, hotplug=True)
    assert slot.why_not(slot.of(drive, tree.root), drive, tree.root) == ""  # nothing has to be written


def test_slot_without_hotplug_drops_once_and_scans_until_the_drive_is_there(tree):
    tree.nvme(0)
    pcie(tree)

    def back():
        name = tree.nvme(1, serial=USUAL_NVME)
        pcie(tree, 1)
        return name

    kernel = Kernel(tree, "nvme0n1", back, powered=False)
    it = kernel.slot("nvme0n1")
    assert it.removes and not it.lost_power()
    it.look()
    assert kernel.written == []  # its power has not gone
    tree.write(f"{FUNCTION}/config", b"\xff" * 64)
    assert it.lost_power()
    tree.write(f"{FUNCTION}/config", b"\x4d\x14\x0c\xa8\x00\x00" + bytes(58))  # it has begun anew
    assert it.lost_power()
    it.drop()
    it.away()
    for kernel.s in (0.0, 0.1, 0.3, 0.6):
        it.look()
    assert [file for file, _ in kernel.written].count(f"{FUNCTION}/remove") == 1
    assert len(kernel.written) == 1 + 3  # a scan each quarter of a second
    kernel.powered, kernel.s = True, 1.0
    it.look()
    now = of(tree, "nvme1n1")
    assert identity.compare(it.drive, now).kind == identity.SAME
    it.seen(now)
    assert it.place.devices == (str(tree.root / FUNCTION.replace("01:00.0", "02:00.0")),)
    assert it.drive.name == "nvme1n1" and it.appearances == 2
    it.seen(now)
    assert it.appearances == 2


def test_stale_drive_is_dropped_when_power_is_back_before_the_first_scan(tree):
    tree.nvme(0)
    pcie(tree)
    kernel = Kernel(tree, "nvme0n1", lambda: tree.nvme(0))
    it = kernel.slot("nvme0n1")
    it.away()
    it.look()
    assert [os.path.basename(file) for file, _ in kernel.written] == ["remove", "rescan"]


def test_link_that_is_watched_by_the_kernel_is_left_alone_for_five_seconds(tree):
    tree.sata("sda")
    kernel = Kernel(tree, "sda", lambda: tree.sata("sda", serial=USUAL_SATA))
    it = kernel.slot("sda")
    it.away()
    for kernel.s in (0.0, 1.0, 4.9):
        it.look()
    assert kernel.written == []
    kernel.s = 5.1
    it.look()
    assert kernel.written == [("sys/class/scsi_host/host1/scan", "- - -")]
    for kernel.s in (10.2, 20.0):  # it is there and does not read
        it.look()
    assert [content for file, content in kernel.written if file.endswith("delete")] == ["1"]
    it.seen(of(tree, "sda"))
    it.away()
    kernel.written, kernel.s = [], 30.0
    it.look()  # only a scan has found it before
    assert kernel.written == [("sys/class/scsi_host/host1/scan", "- - -")]


def test_slot_power_is_switched_on_where_it_is_off(tree):
    tree.nvme(0)
    pcie(tree, hotplug=True)
    kernel = Kernel(tree, "nvme0n1", lambda: tree.nvme(0))
    it = kernel.slot("nvme0n1")
    it.away()
    it.look()
    tree.write("sys/bus/pci/slots/1/power", "0\n")
    kernel.s = 6.0
    it.look()
    assert ("sys/bus/pci/slots/1/power", "1") in kernel.written
    assert not [file for file, _ in kernel.written if file.endswith("remove")]


def test_refusal_of_the_kernel_is_an_error_and_a_vanished_file_is_none(tree):
    tree.nvme(0)
    pcie(tree)
    errors = [PermissionError(errno.EACCES, "no"), FileNotFoundError(errno.ENOENT, "gone")]

    def write(*_):
        raise errors.pop(0)

    it = slot.Slot(of(tree, "nvme0n1"), tree.root, write)
    with pytest.raises(DriveError):
        it.drop()
    it.drop()
    assert errors == []


# --- other disks, whose power is not to be cut


@pytest.fixture
def company(tree):
    """A drive under test, nvme0n1, its other namespace, and three disks beside it."""
    tree.nvme(0)
    tree.nvme(0, nsid=2)
    tree.nvme(1, serial="NEIGHBOUR1")
    tree.sata("sda", serial="NEIGHBOUR2", port=1)
    tree.usb("sdb", serial="NEIGHBOUR3", port=2)
    tree.usb("sdc", serial="", size_bytes=0, port=3, host=8)  # a card reader without a card
    return tree


def test_other_disks_are_those_with_a_medium_that_are_not_the_drives(company):
    assert [disk.name for disk in slot.bystanders(of(company, "nvme0n1"), company.root)] == ["sda", "sdb", "nvme1n1"]


WENT = [("nvme1n1", 0, 1), ("sda", 1, 1), ("sda", 0, 1), ("sdb", 1, 1), ("sdb", 0, 0)]


@pytest.mark.parametrize("name, back, lost", WENT)
@pytest.mark.parametrize("held", [False, True])
def test_disk_that_went_with_the_drive_is_seen(company, monkeypatch, name, back, lost, held):
    """A USB disk that stays away may have been unplugged; a disk that another ssdrig holds has cuts of its own."""
    drive = of(company, "nvme0n1")
    before = slot.bystanders(drive, company.root)
    assert slot.went(before, slot.bystanders(drive, company.root), company.root) == []
    company.remove(name)
    company.remove("nvme0n1")
    if back:
        (company.sata if name == "sda" else company.usb)(
            name, serial=next(disk.serial for disk in before if disk.name == name), port=back + (name == "sdb")
        )
    if held:
        monkeypatch.setattr(slot.guard, "busy", lambda serial, root: True)
    gone = slot.went(before, slot.bystanders(drive, company.root), company.root)
    assert [disk.name for disk in gone] == [name] * lost * (not held)
