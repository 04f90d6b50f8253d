"""Twins, moved, swapped and strange disks of a real kernel: only the named one is ever written, shown by what the
others hold outside of the guest."""

import contextlib
import json

import pytest

from guest.qemu import BOOT, MIB, NVME, SAS, SPACES, TWINS, USB, Disk
from guest.test_guest_guard import holder, refusals

pytestmark = pytest.mark.slow

PHOTOS = b"family photos\n"
SIZE = 32 * MIB
BAYS = [
    Disk(f"bay{n}", "", SIZE, f"scsi-hd,bus=dock.0,scsi-id=0,lun={n},serial=BAYS0001,drive={{id}}-file,id={{id}}")
    for n in (0, 1)
]
USB_TWIN = Disk("usb-twin", USB.serial, SIZE, "usb-storage,bus=usbbus.0,serial={serial},drive={id}-file,id={id}")
VIRTIO_TWIN = Disk("virtio-twin", BOOT.serial, SIZE, "virtio-blk-pci,bus=slot3,serial={serial},drive={id}-file,id={id}")
# a drive whose facts are all those of NVME, and one of another size
CLONE = Disk("clone", NVME.serial, NVME.size_bytes, NVME.device.replace("{id}-file,id={id}", "clone-file,id=nvme"))
SMALLER = CLONE._replace(id="smaller", size_bytes=SIZE, device=CLONE.device.replace("clone-file", "smaller-file"))

LUN = SAS.device.replace("scsi-hd,bus=sasbus.0", "scsi-hd,bus=sasbus.0,scsi-id=0,lun=1").replace("0002", "0003")
LUN_TWIN = Disk("lun-twin", SAS.serial, SIZE, LUN)
LUN_OTHER = Disk("lun-other", "LUNGUEST00002", SIZE, LUN)

# Hold each disk whose serial is given with every consent that there is, and write to it through the hold.
TRY = """
import json, sys
from ssdrig.drive import block, guard, inventory
from ssdrig.base.errors import UnsafeTarget
out = {}
for drive in inventory.all_drives():
    if drive.serial not in sys.argv[1:]:
        continue
    for consent in (None, drive.serial, drive.consent):
        try:
            with guard.hold(drive, consent) as held:
                held.recheck(follow=True)
                block.write(held.path, {0: b"X" * 4096})
        except UnsafeTarget as error:
            out.setdefault(drive.name, []).append("twin: " in str(error))
print(json.dumps(out))
"""


# Write to one namespace or LUN, named by its serial and number.
WRITE = """
import sys
from ssdrig.drive import block, guard, inventory
serial, number = sys.argv[1], int(sys.argv[2])
[drive] = [d for d in inventory.all_drives() if d.serial == serial and number in (d.nsid, d.lun)]
with guard.hold(drive, drive.consent) as held:
    held.recheck(follow=True)
    block.write(held.path, {0: b"X" * 4096})
"""


@pytest.fixture
def with_files(guest):
    """Give disks that are not there yet a file with photos in it, known to QEMU; yields the guest."""
    added = []

    def add(*disks: Disk):
        for disk in disks:
            path = guest.folder / disk.id
            path.write_bytes(PHOTOS * 4096)
            with open(path, "r+b") as file:
                file.truncate(disk.size_bytes)
            node = {"driver": "file", "filename": str(path)}
            guest.qmp("blockdev-add", **{"driver": "raw", "node-name": f"{disk.id}-file", "file": node})
            added.append(disk)
        return guest

    yield add
    for disk in added:
        guest.qmp("blockdev-del", **{"node-name": f"{disk.id}-file"})


@contextlib.contextmanager
def plugged(guest, disk: Disk):
    guest.plug(disk)
    try:
        yield
    finally:
        guest.unplug(disk)


def content(guest, disk: Disk) -> bytes:
    return (guest.folder / disk.id).read_bytes()


def all_refused(guest, *serials: str) -> None:
    """No disk of these serials may be held, each because of its twin."""
    done = guest.python(TRY, "try", *serials)
    assert done.exit_code == 0, str(done)
    out = json.loads(done.stdout)
    assert len(out) == 2 and all(tries == [True, True, True] for tries in out.values()), out


def test_twin_bays_of_a_usb_dock_are_not_written(with_files):
    guest = with_files(*BAYS)
    before = [content(guest, disk) for disk in BAYS]
    guest.qmp("device_add", driver="usb-bot", bus="usbbus.0", id="dock", serial="DOCK0001")
    try:
        for disk in BAYS:
            driver, *words = disk.device.format(**disk._asdict()).split(",")
            more = {key: int(value) if value.isdecimal() else value for key, value in (w.split("=") for w in words)}
            guest.qmp("device_add", driver=driver, **more)
        guest.qmp("qom-set", path="/machine/peripheral/dock", property="attached", value=True)
        guest.do("wait_for", "/dev/sdd")
        guest.do("wait_for", "/dev/sde")
        reasons = refusals(guest)
        assert {"twin"} <= reasons["DOCK0001"] and reasons[USB.serial] == set()
        all_refused(guest, "DOCK0001")
        assert guest.ssdrig("purge", "DOCK0001", "--destroy-data", "DOCK0001").exit_code == 2
    finally:
        guest.qmp("device_del", id="dock")
        guest.wait_event("DEVICE_DELETED", device="dock")
    assert [content(guest, disk) for disk in BAYS] == before


@pytest.mark.parametrize(
    ("twin", "of", "node"), [(USB_TWIN, USB, "/dev/sdd"), (VIRTIO_TWIN, BOOT, "/dev/vdb")], ids=["usb", "virtio"]
)
def test_twin_disks_are_not_written(with_files, twin, of, node):
    """Two enclosures of one make show one serial, and so do two disks of a hypervisor."""
    guest = with_files(twin)
    with plugged(guest, twin):
        guest.do("wait_for", node)
        before = [content(guest, disk) for disk in (twin, of)]
        assert "twin" in refusals(guest)[of.serial]
        all_refused(guest, of.serial)
        assert [content(guest, disk) for disk in (twin, of)] == before
    assert refusals(guest)[of.serial] == set(), "free again once it is alone"


def test_twin_nvme_drives_are_not_written(guest):
    before = [content(guest, disk) for disk in TWINS]
    reasons = refusals(guest)
    assert "twin" in reasons[TWINS[0].serial] and reasons[NVME.serial] == set()
    all_refused(guest, TWINS[0].serial)
    assert [content(guest, disk) for disk in TWINS] == before


def test_namespaces_of_one_drive_are_no_twins(guest):
    first, second = SPACES
    assert refusals(guest)[first.serial] == set()
    before = content(guest, second)
    assert guest.python(WRITE, "write", first.serial, "1").exit_code == 0
    assert content(guest, first)[:4096] == b"X" * 4096 and content(guest, second) == before


@contextlib.contextmanager
def second_lun(guest, disk: Disk):
    """The target of SAS has this disk as its LUN 1."""
    driver, *words = disk.device.format(**disk._asdict()).split(",")
    more = {
        key: int(value) if key in ("scsi-id", "lun", "rotation_rate") else value for key, value in map(_pair, words)
    }
    guest.qmp("device_add", driver=driver, **more)
    try:
        for path in guest.do("matches", "/sys/class/scsi_host/host*/scan"):
            guest.do("put", path, "- - -")
        guest.do("wait_for", "/sys/class/scsi_device/*:1/device/vendor", "GUEST")
        guest.do("wait_for", "/dev/sdd")
        yield
    finally:
        guest.unplug(disk)
        for path in guest.do("matches", "/sys/class/scsi_device/*:1/device/delete"):
            guest.do("put", path, "1")


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key, value


def test_luns_of_one_target_with_one_serial_are_not_written(with_files):
    guest = with_files(LUN_TWIN)
    with second_lun(guest, LUN_TWIN):
        before = [content(guest, disk) for disk in (SAS, LUN_TWIN)]
        assert "twin" in refusals(guest)[SAS.serial]
        all_refused(guest, SAS.serial)
        assert [content(guest, disk) for disk in (SAS, LUN_TWIN)] == before
    assert refusals(guest)[SAS.serial] == set(), "free again once it is alone"


def test_luns_of_one_target_with_serials_of_their_own_are_free(with_files):
    guest = with_files(LUN_OTHER)
    with second_lun(guest, LUN_OTHER):
        reasons, before = refusals(guest), content(guest, SAS)
        assert reasons[SAS.serial] == reasons[LUN_OTHER.serial] == set()
        assert guest.python(WRITE, "write", LUN_OTHER.serial, "1").exit_code == 0
        assert content(guest, LUN_OTHER)[:4096] == b"X" * 4096 and content(guest, SAS) == before


def test_stranger_and_twin_in_the_place_of_a_held_drive_are_not_written(with_files):
    """In the gap of a cut: one of another size, then one whose facts are all the same, then the drive itself."""
    guest = with_files(CLONE, SMALLER)
    before = [content(guest, disk) for disk in (CLONE, SMALLER)]
    guest.do("fill", "/dev/nvme0n1", "written by this run\n", [0, 8 * MIB, 64 * MIB], 4096)
    with holder(guest) as (tell, line):
        assert line.split()[0] == "held"
        assert tell("mark") == "marked\n"
        for other, answer in ((SMALLER, "ChangedDrive"), (CLONE, "ExchangedDrive"), (NVME, "wrote")):
            assert tell("let go") == "let go\n"
            guest.unplug(NVME)
            guest.plug(other)
            guest.do("wait_for", "/dev/nvme0n1")
            assert tell("write").startswith(answer)
    assert [content(guest, disk) for disk in (CLONE, SMALLER)] == before
    assert content(guest, NVME)[16 * MIB :][:4096] == b"X" * 4096


def test_stranger_file_at_the_node_is_refused(guest):
    guest.sh("mv /dev/sdb /dev/sdb.away; : > /dev/sdb")
    try:
        assert "open" in refusals(guest)[SAS.serial]
        done = guest.python(TRY, "try", SAS.serial)
        assert json.loads(done.stdout) == {"sdb": [False, False, False]}
        assert guest.sh("wc -c < /dev/sdb") == "0\n"
    finally:
        guest.sh("rm /dev/sdb; mv /dev/sdb.away /dev/sdb")
