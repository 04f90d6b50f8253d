"""Where a drive is plugged in: how the kernel is made to drop it, and to find it again after its power is back.

A PCIe slot without hot-plug keeps a drive that has lost its power, and finds it again only after that one is removed
and the bus is scanned. Nothing but the drive's own functions, SCSI device or USB device is ever removed: never a
bridge, a host bus adapter or a hub. Files: Linux, Documentation/ABI/testing/sysfs-bus-pci and sysfs-bus-usb."""

import errno
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred
from ssdrig.base.errors import DriveError, ExchangedDrive, UnsafeTarget, words_of
from ssdrig.base.terminal import printable
from ssdrig.drive import identity, inventory, sysfs
from ssdrig.drive.inventory import CONTROLLER, Drive

if TYPE_CHECKING:
    from ssdrig.drive import guard
else:
    guard = Deferred("ssdrig.drive.guard")  # it locks files, which Windows has another way for

PCIE, SCSI, USB, FABRIC, FIXED = "PCIe", "SCSI", "USB", "fabric", "fixed"
FUNCTION = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
PATH = re.compile(r"(nvme\d+)c\d+(n\d+)")  # one path of a namespace with several controllers
GONE = b"\xff" * 4  # what a PCI function without power reads as
# of its configuration space: it answers no access to its memory after a reset, until the kernel sets this bit
HEAD_BYTES, MEMORY = 8, 1 << 1
SCAN_S = 0.25  # between two scans of the drive's own bus
WIDE_S = 5.0  # before the whole machine is scanned, and between two such scans
STALE_S = 10.0  # before a disk that is there and does not read is dropped
WAYS_OUT = (
    "use a USB4 or Thunderbolt enclosure, a U.2 bay or another adapter, whose slot has hot-plug, or another slot;"
    " as root, `echo 1 > /sys/bus/pci/rescan` may bring the drive back, a restart of the host will"
)
PUT_BACK = "bring the drive back, then start again"
MANAGED = ("manage_system_start_stop", "manage_start_stop")  # of a scsi_disk; the second before Linux 6.6
Write = Callable[[str, str], None]


class Place(NamedTuple):
    """Folders and files of sysfs.

    drops: (file, content) that makes the kernel drop the drive and nothing else.
    scans: (file, content) that makes it look for the drive there; `wide`: further up, nearest first.
    power: of the slot, reads 0 while it is off; "" where it has none.
    hotplug: the kernel itself sees the drive go and come."""

    kind: str
    devices: tuple[str, ...] = ()
    drops: tuple[tuple[str, str], ...] = ()
    scans: tuple[tuple[str, str], ...] = ()
    wide: tuple[tuple[str, str], ...] = ()
    power: str = ""
    hotplug: bool = True

    @property
    def words(self) -> str:
        """The slot in words, and how the drive comes back in it."""
        at = ", ".join(os.path.basename(folder) for folder in self.devices)
        how = {
            PCIE: "hot-plug: the kernel detects the drive"
            if self.hotplug
            else "no hot-plug: the drive is removed while it has no power, and found again by a scan of its bus",
            SCSI: "the kernel sees the link; after 5 s its port is scanned",
            USB: "the kernel detects the drive; after 5 s it is authorized again",
            FABRIC: "the kernel reconnects",
            FIXED: "ssdrig cannot have it detected again",
        }[self.kind]
        return f"{self.kind} {at}: {how}" if at else f"{self.kind}: {how}"


def of(drive: Drive, root: str | os.PathLike = "/") -> Place:
    """Where `drive` is plugged in now."""
    block_folder = sysfs.within(root, "sys/block", drive.name)
    chain = sysfs.parents(block_folder, root)
    if drive.name.startswith("nvme"):
        above = sysfs.real(os.path.join(block_folder, "device"))
        folders = [above, *(os.path.join(above, entry) for entry in sorted(sysfs.listing(above)))]
        controllers = [sysfs.real(path) for path in folders if CONTROLLER.match(os.path.basename(path))]
        if any(sysfs.text(path, "transport") not in ("", "pcie") for path in controllers):
            return Place(FABRIC)
        return _pcie([sysfs.parents(path, root) for path in controllers], root)
    usb = next((folder for folder in chain if os.path.exists(os.path.join(folder, "idVendor"))), None)
    if usb:
        switch = os.path.join(usb, "authorized")
        return Place(USB, (usb,), ((switch, "0"),), ((switch, "1"),))
    if drive.name.startswith("sd"):
        device = sysfs.real(os.path.join(block_folder, "device"))
        host = next((os.path.basename(path) for path in chain if re.fullmatch(r"host\d+", os.path.basename(path))), "")
        scan = sysfs.within(root, "sys/class/scsi_host", host, "scan")
        return Place(SCSI, (device,), ((os.path.join(device, "delete"), "1"),), ((scan, "- - -"),) if host else ())
    if drive.name.startswith("vd"):
        return _pcie([chain], root)
    return Place(FIXED)


def _pcie(chains: list[list[str]], root) -> Place:
    """The place of a device; `chains`: the folder and its parents, one list for each of its functions."""
    functions = [[path for path in chain if FUNCTION.fullmatch(os.path.basename(path))] for chain in chains]
    functions = [chain for chain in functions if chain]
    if not functions:
        return Place(FIXED)
    devices = tuple(dict.fromkeys(chain[0] for chain in functions))
    above = [(*chain[1:], os.path.dirname(chain[-1])) for chain in functions]  # the last one: pci0000:00, the root
    near = [file for folders in above for file in _rescans(folders[0])]
    far = [file for folders in above for folder in folders[1:] for file in _rescans(folder)]
    slots = sysfs.within(root, "sys/bus/pci/slots")
    addresses = {os.path.basename(path).rpartition(".")[0] for path in devices}
    power = [
        os.path.join(slots, n, "power") for n in sysfs.listing(slots) if sysfs.text(slots, n, "address") in addresses
    ]
    hotplug = sysfs.listing(sysfs.within(root, "sys/bus/pci_express/drivers/pciehp"))
    ports = [os.path.basename(chain[1]) for chain in functions if len(chain) > 1]
    return Place(
        PCIE,
        devices,
        tuple((os.path.join(path, "remove"), "1") for path in devices),
        tuple((path, "1") for path in dict.fromkeys(near)),
        tuple((path, "1") for path in (*dict.fromkeys(far), sysfs.within(root, "sys/bus/pci/rescan"))),
        next(iter(power), ""),
        bool(ports) and all(any(address.startswith(f"{port}:") for address in hotplug) for port in ports),
    )


def _rescans(bridge: str) -> list[str]:
    """The files that have the buses below a bridge scanned."""
    buses = sorted(sysfs.listing(os.path.join(bridge, "pci_bus")))
    return [os.path.join(bridge, "pci_bus", bus, "rescan") for bus in buses]


def others(place: Place, drive: Drive, root: str | os.PathLike = "/") -> list[str]:
    """The disks, besides this drive's namespaces, that would go with it, or whose link a scan would reset."""
    folders = [path + os.sep for path in place.devices]
    if place.kind == SCSI and drive.interface == "SATA":  # a scan of an ATA port resets its link, a multiplier's too
        folders += [f"{host}{os.sep}" for host in _ata_port(place.devices[0])]
    below = set()
    for name in sysfs.listing(sysfs.within(root, "sys/block")):
        at = sysfs.real(sysfs.within(root, "sys/block", name))
        if any(at.startswith(folder) for folder in folders):
            below.add(PATH.sub(r"\1\2", name))
    mine = {other.name for other in inventory.all_drives(root) if other.unit and other.unit == drive.unit}
    return sorted(below - mine - {drive.name}, key=sysfs.natural_order)


def _ata_port(device: str) -> list[str]:
    """The folder of the ATA port (ata3) above a SCSI device; none of a host bus adapter's disk."""
    parts = device.split(os.sep)
    at = next((i for i in range(len(parts) - 1, 0, -1) if re.fullmatch(r"ata\d+", parts[i])), 0)
    return [os.sep.join(parts[: at + 1])] if at else []


def why_not(place: Place, drive: Drive, root: str | os.PathLike = "/") -> str:
    """Why the drive cannot be removed from the kernel and detected again, according to sysfs; "" if it can."""
    if place.kind in (FABRIC, FIXED):
        return ""  # there is nothing to do: a rehearsal shows whether it comes back
    if sharing := others(place, drive, root):
        return f"{', '.join(sharing)} would go with it, or lose the link"
    if place.hotplug:
        return ""
    files = [file for file, _ in (*place.drops, *(place.scans or place.wide)[:1])]
    if missing := [file for file in files if not os.path.exists(file)]:
        return f"this kernel has no {', '.join(missing)}"
    if closed := [file for file in files if not os.access(file, os.W_OK)]:
        return f"{', '.join(closed)} may not be written: run as root, outside of containers"
    return ""


def announces(place: Place, drive: Drive, root: str | os.PathLike = "/") -> bool:
    """Whether the kernel shuts the drive down when it is made to drop it. Source: Linux, nvme_remove() of
    drivers/nvme/host/pci.c, sd_shutdown() of drivers/scsi/sd.c: a disk whose start and stop it manages, as it does of
    each SATA disk."""
    if not place.drops or not all(os.access(file, os.W_OK) for file, _ in place.drops):
        return False
    if place.kind == PCIE:
        return drive.name.startswith("nvme")
    disks = os.path.join(place.devices[0], "scsi_disk") if place.kind == SCSI else ""
    return any(sysfs.text(disks, name, key) == "1" for name in sysfs.listing(disks) for key in MANAGED)


def refuse(drive: Drive, root: str | os.PathLike = "/") -> Place:
    """Where the drive is. Raises UnsafeTarget where it could not be brought back from a cut."""
    place = of(drive, root)
    if why := why_not(place, drive, root):
        named = f"{printable(drive.model)} {printable(drive.serial)}".strip()
        raise UnsafeTarget(f"a slot that gives {named} back after a cut", f"{place.kind}: {why}", WAYS_OUT)
    return place


def _write(file: str, content: str) -> None:
    with open(file, "w") as opened:
        opened.write(content)


class Slot:
    """The place of one drive through its absences.

    drive: as it was proven last.
    write: takes a file and its content, in place of the kernel's."""

    def __init__(
        self,
        drive: Drive,
        root: str | os.PathLike = "/",
        write: Write = _write,
        now: Callable[[], float] = time.monotonic,
    ):
        self.drive, self._root, self._write, self._now = drive, root, write, now
        self.place = of(drive, root)
        self.dropped = False  # since it was seen last
        self.always = False  # have it dropped in each absence, in any place
        self.appearances = 1  # in the kernel; each except the first ended an absence
        self._away = self._scanned = self._stale = False  # since its power went
        self._by_scan = not self.place.hotplug  # only a scan detects it, as its slot or an earlier absence shows
        self._since: float | None = None  # the first look since then
        self._next = self._next_wide = 0.0

    @property
    def removes(self) -> bool:
        """Whether the kernel must be made to drop the drive while it has no power."""
        return bool(self.place.drops) if self.always else self.place.kind == PCIE and not self.place.hotplug

    def lost_power(self) -> bool:
        """Whether each of its PCI functions reads as unpowered, or as reset and not configured since. False if
        unknown."""
        configs = [os.path.join(path, "config") for path in self.place.devices]
        return self.place.kind == PCIE and all(not os.path.exists(path) or _lost(path) for path in configs)

    def drop(self) -> None:
        """Have the kernel drop the drive; one that has its power gets an orderly shutdown. Raises UnsafeTarget where
        anything else would go with it, ExchangedDrive where another one has its slot, DriveError where the kernel
        refuses."""
        if sharing := others(self.place, self.drive, self._root):
            seen, do = f"{', '.join(sharing)} at {self.place.words}", "connect the drive apart from them"
            raise UnsafeTarget("no other disk that would go with the drive", seen, do)
        serials = [serial for device in self.place.devices for serial in _serials(device)]
        if strange := [serial for serial in serials if serial != self.drive.serial]:
            seen = f"serial {', '.join(map(printable, strange))}"
            raise ExchangedDrive(f"drive {printable(self.drive.serial)} in its slot", seen, PUT_BACK)
        self.refuse_stranger()  # which may have this drive's name
        for file, content in self.place.drops:
            self._do(file, content)
        self.dropped = True

    def refuse_stranger(self) -> None:
        """Raises ExchangedDrive where a disk with another serial has its slot, under whatever name."""
        for other in inventory.all_drives(self._root):
            if other.serial in ("", self.drive.serial) or not self.place.devices:
                continue
            if of(other, self._root).devices == self.place.devices:
                seen = f"{printable(other.model) or 'a drive'}, serial {printable(other.serial)}, at {other.node}"
                raise ExchangedDrive(f"drive {printable(self.drive.serial)} in its slot", seen, PUT_BACK)

    def away(self) -> None:
        """Its power goes, or has gone. May be called again."""
        self._away, self._since, self._scanned, self._stale = True, None, False, False

    def seen(self, drive: Drive) -> None:
        """It is in the kernel again, and proven."""
        if drive.diskseq != self.drive.diskseq or drive.name != self.drive.name or self.dropped:
            self.place = of(drive, self._root)
            self._by_scan = not self.place.hotplug or self._by_scan or self._scanned
            self.appearances += 1
        self.drive, self.dropped = drive, False

    def look(self) -> None:
        """Do the next that may bring it back, when its time has come: to be called again and again while it has its
        power and is not there, or does not read. Raises as drop()."""
        if not self._away or self.place.kind in (FABRIC, FIXED):
            return
        now = self._now()
        if self._since is None:
            self._since, self._next, self._next_wide = now, now + (0 if self._by_scan else WIDE_S), now + WIDE_S
            if self.removes and not self.dropped:
                self.drop()
        if now - self._since >= STALE_S and not (self._stale or self.dropped):
            self._stale = True
            self.drop()
        if now >= self._next:
            self._scan(self.place.scans)
            self._next = self._now() + (SCAN_S if self._by_scan else WIDE_S)
        if now >= self._next_wide:
            off = self.place.power and sysfs.text(self.place.power) == "0"
            self._scan((*self.place.wide, *([(self.place.power, "1")] if off else [])))
            self._next_wide = self._now() + WIDE_S

    def _scan(self, files: tuple[tuple[str, str], ...]) -> None:
        for file, content in files:
            self._do(file, content)
        self._scanned = True

    def _do(self, file: str, content: str) -> None:
        """Write a file of sysfs. A missing file disappeared with the drive or its bridge."""
        try:
            self._write(file, content)
        except (FileNotFoundError, ProcessLookupError):
            return
        except OSError as error:
            if error.errno == errno.ENODEV:
                return
            raise DriveError(f"the kernel to take {content!r} at {file}", words_of(error), WAYS_OUT) from error


def _lost(config: str) -> bool:
    try:
        with open(config, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return not os.path.exists(config)
    return head[:4] == GONE or len(head) == HEAD_BYTES and not head[4] & MEMORY


def disks_at(folders: Sequence[str], root: str | os.PathLike = "/") -> list[Drive]:
    """The disks of these devices of sysfs (Place.devices), and of all that hangs below them."""
    if not folders:
        return []
    below = tuple(folder + os.sep for folder in folders)
    return [
        disk
        for disk in inventory.all_drives(root)
        if any(f"{device}{os.sep}".startswith(below) for device in of(disk, root).devices)
    ]


def bystanders(drive: Drive, root: str | os.PathLike = "/") -> list[Drive]:
    """The disks with a medium that are neither this drive nor a namespace or a path of it."""
    own = lambda disk: disk.name == drive.name or (disk.unit or None) == drive.unit or (disk.key or None) == drive.key
    return [disk for disk in inventory.all_drives(root) if disk.capacity_bytes and not own(disk)]


def went(before: Sequence[Drive], now: Sequence[Drive], root: str | os.PathLike = "/") -> list[Drive]:
    """The disks that are gone, or have appeared again (diskseq). Left out are a USB disk that is gone and stays so, as
    it may have been unplugged, and a disk whose power another ssdrig may have taken."""
    stayed = {(disk.name, disk.diskseq) for disk in now}
    lost = [disk for disk in before if (disk.name, disk.diskseq) not in stayed]
    again = lambda disk: any(identity.compare(disk, other).kind == identity.SAME for other in now)
    return [disk for disk in lost if not guard.busy(disk.serial, root) and (disk.interface != "USB" or again(disk))]


def _serials(device: str) -> list[str]:
    """The serials of the NVMe controllers of a PCI function."""
    serials = [sysfs.text(device, "nvme", name, "serial") for name in sysfs.listing(os.path.join(device, "nvme"))]
    return [serial for serial in serials if serial]
