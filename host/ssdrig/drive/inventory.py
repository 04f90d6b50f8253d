"""The whole disks of this machine, read from sysfs; a drive is named by its serial or by-id path, never by sdX.

Needs neither root nor udev: where udev runs, its by-id links are names too and its database fills what sysfs lacks.
A file that is missing, unreadable or odd leaves its field unknown. Serial and model of ATA disks come from their
IDENTIFY data in SCSI page 89h (SAT-4, ACS-3), because SCSI's own model field holds only 16 of the 40 characters.

IDENTIFY DEVICE of a disk behind a SCSI or USB bridge, through SG_IO: ATA PASS-THROUGH (SAT-4 12.2), as smartctl -d
sat asks. One response is cached for each appearance of a disk; a bridge that fails is tried again after a while."""

import ctypes
import os
import re
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ssdrig.base.errors import UsageError
from ssdrig.base.system import fcntl
from ssdrig.drive.identity import DRIVE, ENCLOSURE, IDENTIFY, Identity, one_namespace_each, twins
from ssdrig.drive.sysfs import (
    clean,
    device_number,
    lines,
    listing,
    natural_order,
    number,
    parents,
    raw,
    real,
    text,
    within,
)

SG_IO = 0x2285  # scsi/sg.h
DIRECTION_IN = -3
TIMEOUT_MS = 2000
AGAIN_S = 5.0
LENGTH = 512
# PIO data-in, one block in the sector count, from the device; 12 bytes for bridges that know no 16
COMMANDS = (
    bytes((0x85, 0x08, 0x0E, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xEC, 0)),
    bytes((0xA1, 0x08, 0x0E, 0, 1, 0, 0, 0, 0, 0xEC, 0, 0)),
)


class _Request(ctypes.Structure):
    """sg_io_hdr_t."""

    _fields_ = [
        ("interface_id", ctypes.c_int),
        ("direction", ctypes.c_int),
        ("command_length", ctypes.c_ubyte),
        ("sense_length", ctypes.c_ubyte),
        ("iovec_count", ctypes.c_ushort),
        ("length", ctypes.c_uint),
        ("data", ctypes.c_void_p),
        ("command", ctypes.c_void_p),
        ("sense", ctypes.c_void_p),
        ("timeout_ms", ctypes.c_uint),
        ("flags", ctypes.c_uint),
        ("pack_id", ctypes.c_int),
        ("user", ctypes.c_void_p),
        ("status", ctypes.c_ubyte),
        ("masked_status", ctypes.c_ubyte),
        ("message_status", ctypes.c_ubyte),
        ("sense_written", ctypes.c_ubyte),
        ("host_status", ctypes.c_ushort),
        ("driver_status", ctypes.c_ushort),
        ("residual", ctypes.c_int),
        ("duration", ctypes.c_uint),
        ("info", ctypes.c_uint),
    ]


_answers: dict[tuple, tuple[float, bytes]] = {}  # (node, number, appearance): when asked, the data


def data(node: str, major: int, minor: int, appearance: str) -> bytes:
    """The 512 bytes of IDENTIFY DEVICE; b"" where they cannot be had."""
    known = _answers.get((node, major, minor, appearance))
    if known and (known[1] or time.monotonic() - known[0] < AGAIN_S):
        return known[1]
    answer = _ata_asked(node, major, minor)
    _answers[node, major, minor, appearance] = time.monotonic(), answer
    return answer


def forget(node: str) -> None:
    """Have the disk at a node asked for its IDENTIFY data again, if it had answered."""
    for asked in [key for key, (_, answer) in _answers.items() if key[0] == node and answer]:
        del _answers[asked]


def _ata_asked(node: str, major: int, minor: int) -> bytes:
    try:
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        seen = os.fstat(fd)
        if not stat.S_ISBLK(seen.st_mode) or seen.st_rdev != os.makedev(major, minor):
            return b""
        return next((answer for command in COMMANDS if (answer := _sent(fd, command))), b"")
    except OSError:
        return b""
    finally:
        os.close(fd)


def _sent(fd: int, command: bytes) -> bytes:
    answer, sense = ctypes.create_string_buffer(LENGTH), ctypes.create_string_buffer(64)
    words = ctypes.create_string_buffer(command, len(command))
    request = _Request(
        interface_id=ord("S"),
        direction=DIRECTION_IN,
        command_length=len(command),
        sense_length=len(sense),
        length=LENGTH,
        data=ctypes.addressof(answer),
        command=ctypes.addressof(words),
        sense=ctypes.addressof(sense),
        timeout_ms=TIMEOUT_MS,
    )
    try:
        fcntl.ioctl(fd, SG_IO, request)
    except OSError:
        return b""
    good = not request.status and not request.host_status and request.residual < LENGTH
    return answer.raw if good and whole(answer.raw) else b""


def whole(answer: bytes) -> bool:
    """Whether it may be IDENTIFY data: of an ATA device (word 0 bit 15 clear), with a serial, and with the right sum
    where word 255 has the signature of one (ACS-3 7.12.7.88)."""
    if len(answer) != LENGTH or answer[1] & 0x80 or not answer[20:40].strip(b" \0"):
        return False
    return answer[510] != 0xA5 or sum(answer) % 256 == 0


BY_ID = "/dev/disk/by-id"
SECTOR_BYTES = 512  # the unit of sysfs' `size`, whatever the drive's own block is
PCIE_GENERATIONS = {
    "2.5": "1.0",
    "5.0": "2.0",
    "5": "2.0",
    "8.0": "3.0",
    "8": "3.0",
    "16.0": "4.0",
    "16": "4.0",
    "32.0": "5.0",
    "64.0": "6.0",
}
SATA_RATES = ((3, "6.0"), (2, "3.0"), (1, "1.5"))  # bit of IDENTIFY word 76, Gb/s
NOT_A_DRIVE = {
    "loop": "loop device",
    "ram": "RAM disk",
    "zram": "compressed RAM disk",
    "dm-": "device-mapper volume",
    "md": "software RAID",
    "sr": "optical drive",
    "fd": "floppy drive",
    "nbd": "network block device",
    "bcache": "bcache volume",
    "drbd": "DRBD volume",
    "rbd": "Ceph volume",
    "zd": "ZFS volume",
    "ublkb": "user-space block device",
    "nullb": "null block device",
    "mtdblock": "raw flash",
}
SHORTEST = 6  # part of a serial that is not in another one by chance
CONTROLLER = re.compile(r"nvme\d+$")
NAMESPACE = re.compile(r"(nvme\d+)n\d+")
HIDDEN_PATH = re.compile(r"nvme\d+c\d+n\d+$")  # one path of a multipath namespace; the namespace itself is nvme0n1
# Which of a disk's links is shown: those that read "model_serial" first, numbers only when there is nothing better.
LINK_ORDER = ("ata-", "nvme-", "usb-", "scsi-", "virtio-", "mmc-")
NUMBER_LINKS = ("nvme-eui.", "nvme-nvme.", "nvme-uuid.", "scsi-3", "scsi-2", "wwn-")


@dataclass(frozen=True, kw_only=True)
class Drive(Identity):
    """One whole disk: its identity, and how this machine reaches it. Unknown text is "", unknown numbers and paths are
    None (a capacity, block size or device number that the kernel does not report is 0, which no
    disk has)."""

    name: str  # the kernel's, such as nvme0n1: moves from boot to boot
    node: str  # /dev/nvme0n1
    by_id: str | None  # /dev/disk/by-id/…
    firmware: str
    logical_block_bytes: int
    # interface: NVMe, NVMe/TCP, SATA, SAS, USB, virtio, other
    # "PCIe 4.0 x4", "SATA 6.0 Gb/s", "USB 10 Gb/s", "tcp 127.0.0.1:4420"; "… (drive: …)" when the drive can more
    link: str
    rotational: bool
    major: int
    minor: int
    controller: str | None  # /dev/nvme0; NVMe only
    smartctl_type: str  # what smartctl -d is given: nvme, sat, scsi, a USB bridge's; "auto" lets it guess
    usb_id: str  # "0bda:9210", vendor:product of a USB bridge
    simulated: bool  # the model contains SIMULATED
    zoned: str = "none"  # or "host-managed", "host-aware": the kernel's queue/zoned

    @property
    def has_zones(self) -> bool:
        """Whether it is written at the write pointers of its zones only."""
        return self.zoned == "host-managed"


def all_drives(root: str | os.PathLike = "/") -> list[Drive]:
    """Every whole disk, in the order of the kernel's names (sda, sdb, sdaa; nvme2n1, nvme10n1). Never raises."""
    links = _links_of_disks(root)
    names = [name for name in listing(within(root, "sys/block")) if not why_not_a_drive(name, root)]
    return [_read(name, root, links.get(name)) for name in sorted(names, key=natural_order)]


def find(word: str, root: str | os.PathLike = "/") -> Drive:
    """The drive that `word` names: a serial (upper and lower case count only where needed), or a path in
    /dev/disk/by-id.

    Raises UsageError for every other name of a disk, saying which to use instead; for a word that names none, listing
    what there is; and for a serial that several disks show."""
    drives = all_drives(root)
    if not word.strip():
        raise UsageError("a drive's serial or by-id path", "an empty word", f"choose one: {_choice(drives)}")
    if os.path.dirname(word) == BY_ID:  # no path through it to a name that moves: /dev/disk/by-id/../../sda
        return _by_link(word, drives, root)
    same = [d for d in drives if d.serial == word] or [
        d for d in drives if d.serial and d.serial.lower() == word.lower()
    ]
    if len(same) == 1:
        return same[0]
    if same:
        do = "name it by its by-id path"
        if twins(same[0], same):
            do = "unplug the others: of drives that share a serial none is written; to read one, give its by-id path"
        raise UsageError(f"one drive of serial {word}", f"{len(same)}: {_choice(same)}", do)
    name = os.path.basename(real(within(root, word))) if word.startswith("/") else word
    disk = _whole_disk(name, root)
    meant = next((d for d in drives if d.name == disk), None)
    if meant:
        what = "a partition of it" if disk != name else "a name that moves from boot to boot"
        raise UsageError("a serial or by-id path", f"{word}, {what}", f"if you mean that disk, use {_best_name(meant)}")
    if word.startswith("/dev/") and (why := why_not_a_drive(disk or name, root)):
        raise UsageError("a whole disk", f"{word}, which is not a drive: {why}", f"choose one: {_choice(drives)}")
    raise UsageError("a drive's serial or by-id path", f"{word}, which no drive has", f"choose one: {_choice(drives)}")


def why_not_a_drive(name: str, root: str | os.PathLike = "/") -> str:
    """Why the block device `name` is not a drive to test ("loop device", "partition", …); "" when it is a whole
    disk."""
    folder = within(root, "sys/block", name)
    if not os.path.isdir(folder):
        return "partition" if _whole_disk(name, root) else "no block device"
    if HIDDEN_PATH.match(name) or text(folder, "hidden") == "1":
        return "one path of a multipath drive"
    for prefix, what in NOT_A_DRIVE.items():
        if re.match(re.escape(prefix) + r"\d+", name):
            return what
    # NVMe over fabrics and native multipath hang below devices/virtual too, whatever else does is software.
    above = parents(folder, root)
    if above and os.path.basename(above[-1]) == "virtual" and not name.startswith("nvme"):
        return "virtual block device"
    return ""


def partitions(name: str, root: str | os.PathLike = "/") -> dict[str, tuple[int, int]]:
    """Partitions that the kernel sees on a disk: {name: (major, minor)}, in order."""
    folder = within(root, "sys/block", name)
    names = [entry for entry in listing(folder) if os.path.exists(os.path.join(folder, entry, "partition"))]
    return {entry: device_number(text(folder, entry, "dev")) for entry in sorted(names, key=natural_order)}


def _read(name: str, root, by_id: str | None) -> Drive:
    folder = within(root, "sys/block", name)
    major, minor = device_number(text(folder, "dev"))
    facts: dict[str, Any] = {
        "model": "",
        "serial": "",
        "firmware": "",
        "wwn": "",
        "interface": "other",
        "link": "",
        "controller": None,
        "nsid": None,
        "smartctl_type": "auto",
        "usb_id": "",
        "lun": None,
        "unit": "",
        "serial_source": DRIVE,
        "enclosure_serial": "",
    }
    chain = parents(folder, root)
    udev = _udev(major, minor, root)
    if name.startswith("nvme"):
        facts |= _nvme(folder)
    elif name.startswith("vd"):
        facts |= {"serial": text(folder, "serial"), "interface": "virtio"}
    elif name.startswith("sd"):
        facts |= _scsi(folder, chain, udev, lambda: _asked(name, major, minor, root))
    else:  # mmcblk0, xvda, pmem0 …
        facts |= {"serial": text(folder, "device", "serial"), "model": text(folder, "device", "name")}
    for field in ("model", "serial", "firmware"):
        facts[field] = facts[field] or udev[field]
    return Drive(
        name=name,
        node=f"/dev/{name}",
        by_id=by_id,
        capacity_bytes=(number(folder, "size") or 0) * SECTOR_BYTES,
        logical_block_bytes=number(folder, "queue", "logical_block_size") or 0,
        rotational=text(folder, "queue", "rotational") == "1",
        major=major,
        minor=minor,
        simulated="SIMULATED" in facts["model"],
        zoned=text(folder, "queue/zoned") or "none",
        port=_port(folder, chain, root),
        multipath=_multipath(folder),
        diskseq=number(folder, "diskseq"),
        **facts,
    )


def _port(folder: str, chain: list[str], root) -> str:
    """Where a disk is plugged in: the folder of the device above it, without the numbers that the kernel assigns at
    each appearance (host6, target6:0:0, 6:0:0:0, nvme2, virtio1); for NVMe over fabrics its address."""
    if os.path.basename(folder).startswith("nvme"):
        above = real(os.path.join(folder, "device"))
        controllers = [real(os.path.join(above, entry)) for entry in listing(above) if CONTROLLER.match(entry)]
        controller = above if CONTROLLER.match(os.path.basename(above)) else min(controllers, default=above)
        if text(controller, "transport") not in ("", "pcie"):
            return _fabric_link(text(controller, "transport"), text(controller, "address"))
        chain = parents(controller, root)
    if not chain:
        return ""
    path = os.path.relpath(chain[0], real(within(root, "sys/devices")))
    path = re.sub(r"/(block|nvme|virtio\d+)(/.*)?$", "", path)
    path = re.sub(r"/(host|target|port-|end_device-|expander-|session|rport-)\d+", r"/\1", path)
    return re.sub(r"/\d+(:\d+:\d+:\d+)$", r"/\1", path)


def _multipath(folder: str) -> str:
    """The uuid of the map by which multipathd joins this path with others of its unit; "" if none does."""
    maps = (text(folder, "holders", holder, "dm", "uuid") for holder in listing(os.path.join(folder, "holders")))
    return next((uuid for uuid in sorted(maps) if uuid.startswith("mpath-")), "")


def _asked(name: str, major: int, minor: int, root) -> bytes:
    """IDENTIFY data of a disk at a bridge, b"" for a saved tree: only the running machine's disks can be queried."""
    if os.fspath(root) != "/":
        return b""
    folder = within(root, "sys/block", name)
    try:
        appearance = text(folder, "diskseq") or str(os.stat(folder).st_ino)
    except OSError:
        return b""
    return data(f"/dev/{name}", major, minor, appearance)


def _nvme(block_folder: str) -> dict:
    above = real(os.path.join(block_folder, "device"))
    if CONTROLLER.match(os.path.basename(above)):
        controllers = [above]
    else:  # native multipath: `device` is the subsystem, which links to its controllers
        controllers = [
            os.path.join(above, entry) for entry in sorted(listing(above), key=natural_order) if CONTROLLER.match(entry)
        ]
        controllers.sort(key=lambda folder: text(folder, "state") != "live")
    controller = controllers[0] if controllers else above
    transport = text(controller, "transport")
    return {
        "model": text(controller, "model") or text(above, "model"),
        "serial": text(controller, "serial") or text(above, "serial"),
        "firmware": text(controller, "firmware_rev") or text(above, "firmware_rev"),
        "wwn": text(block_folder, "wwid"),
        "unit": text(controller, "subsysnqn") or text(above, "subsysnqn") or os.path.basename(above),
        "interface": "NVMe" if transport in ("", "pcie") else f"NVMe/{transport.upper()}",
        "link": _pcie_link(os.path.join(controller, "device"))
        if transport in ("", "pcie")
        else _fabric_link(transport, text(controller, "address")),
        "controller": f"/dev/{os.path.basename(controller)}" if controllers else None,
        "nsid": number(block_folder, "nsid"),
        "smartctl_type": "nvme",
    }


def _pcie_link(device: str) -> str:
    """The negotiated link of the drive's own PCI function, and its capability if that is more."""

    def link(which):
        speed, width = text(device, f"{which}_link_speed").split(" ")[0], number(device, f"{which}_link_width")
        generation = PCIE_GENERATIONS.get(speed)
        return f"{generation} x{width}" if generation and width else ""

    now, best = link("current"), link("max")
    return (f"PCIe {now}" + (f" (drive: {best})" if best and best != now else "")) if now else ""


def _fabric_link(transport: str, address: str) -> str:
    """ "traddr=127.0.0.1,trsvcid=4420,…" -> "tcp 127.0.0.1:4420"."""
    words = dict(word.split("=", 1) for word in address.split(",") if "=" in word)
    return f"{transport} {words.get('traddr', '')}{':' + words['trsvcid'] if 'trsvcid' in words else ''}".strip()


def _scsi(block_folder: str, chain: list[str], udev: dict, ask: Callable[[], bytes]) -> dict:
    device = os.path.join(block_folder, "device")
    vendor, wwid = text(device, "vendor"), text(device, "wwid")
    usb = next((folder for folder in chain if os.path.exists(os.path.join(folder, "idVendor"))), None)
    ata = vendor == "ATA"  # libata's, and that of SAS controllers with a SATA disk
    identify = _identify_page(raw(device, "vpd_pg89"))
    if (
        not identify and usb and text(block_folder, "removable") == "0"
    ):  # as udev: card readers and sticks are left alone
        identify = identify_words(ask())
    identify = identify or (udev if udev["ata"] else {})  # its database may still be of the disk before
    out = {
        "model": identify.get("model")
        or (text(device, "model") if ata else f"{vendor} {text(device, 'model')}".strip()),
        "serial": identify.get("serial") or _page_80h(raw(device, "vpd_pg80")),
        "firmware": identify.get("firmware") or text(device, "rev"),
        "wwn": wwid if wwid.startswith(("naa.", "eui.")) else "",
        "lun": number_at_end(os.path.basename(real(device))),
    }
    if usb:
        megabit = number(usb, "speed")
        link = "" if not megabit else f"USB {megabit // 1000} Gb/s" if megabit >= 1000 else f"USB {megabit} Mb/s"
        enclosure = text(usb, "serial")
        own = identify.get("serial") or ("" if _same_number(out["serial"], enclosure) else out["serial"])
        return out | {
            "interface": "USB",
            "link": link,
            "serial": own or enclosure or udev["serial"],
            "serial_source": IDENTIFY if identify.get("serial") else DRIVE if own else ENCLOSURE,
            "enclosure_serial": enclosure,
            "usb_id": f"{text(usb, 'idVendor')}:{text(usb, 'idProduct')}",
        }
    if ata:
        rate, best = _sata_rate(chain) or _sas_rate(chain), identify.get("rate")
        more = f" (drive: {best})" if rate and best and float(best) > float(rate) else ""
        return out | {"interface": "SATA", "smartctl_type": "sat", "link": f"SATA {rate} Gb/s{more}" if rate else ""}
    if any(os.path.basename(folder).startswith("end_device-") for folder in chain):
        rate = _sas_rate(chain)
        return out | {"interface": "SAS", "smartctl_type": "scsi", "link": f"SAS {rate} Gb/s" if rate else ""}
    return out


def _page_80h(page: bytes) -> str:
    """Unit serial number (SPC-4 7.8.14)."""
    return clean(page[4 : 4 + int.from_bytes(page[2:4], "big")]) if len(page) > 4 and page[1] == 0x80 else ""


def _same_number(page: str, enclosure: str) -> bool:
    """Whether page 80h repeats the serial of the USB device, as a whole or cut off, or padded with zeros or blanks."""
    one, other = (re.sub(r"[^0-9A-Z]", "", serial.upper()).lstrip("0") for serial in (page, enclosure))
    return one == other or min(len(one), len(other)) >= SHORTEST and (one in other or other in one)


def number_at_end(address: str) -> int | None:
    """The LUN of "6:0:0:1"; None for any other text."""
    match = re.fullmatch(r"\d+:\d+:\d+:(\d+)", address, re.ASCII)
    return int(match[1]) if match else None


def _identify_page(page: bytes) -> dict:
    """What the ATA information page 89h (SAT-4 12.4.2) has of IDENTIFY DEVICE: 512 bytes at byte 60."""
    return identify_words(page[60:572]) if len(page) >= 572 and page[1] == 0x89 and page[56] == 0xEC else {}


def identify_words(data: bytes) -> dict:
    """model, serial, firmware and the best SATA rate in Gb/s from the 512 bytes of IDENTIFY DEVICE, whose text has the
    bytes of each word swapped (ACS-3 3.3.10); nothing from fewer bytes."""
    if len(data) < 512:
        return {}

    def swapped(first_word, words):
        part = data[2 * first_word : 2 * (first_word + words)]
        return clean(bytes(part[i ^ 1] for i in range(len(part))))

    sata = int.from_bytes(data[152:154], "little")  # word 76
    rate = next((rate for bit, rate in SATA_RATES if sata not in (0, 0xFFFF) and sata >> bit & 1), None)
    return {"serial": swapped(10, 10), "firmware": swapped(23, 4), "model": swapped(27, 20), "rate": rate}


def _sata_rate(chain: list[str]) -> str:
    for folder in chain:
        if match := re.fullmatch(r"ata(\d+)", os.path.basename(folder)):
            link = f"link{match[1]}"
            words = text(folder, link, "ata_link", link, "sata_spd").split(" ")
            return words[0] if re.fullmatch(r"\d+\.\d", words[0], re.ASCII) else ""
    return ""


def _sas_rate(chain: list[str]) -> str:
    for folder in chain:
        if os.path.basename(folder).startswith("port-"):
            for phy in sorted(entry for entry in listing(folder) if entry.startswith("phy-")):
                rate = text(folder, phy, "sas_phy", phy, "negotiated_linkrate").split(" ")[0]
                if re.fullmatch(r"\d+\.\d", rate, re.ASCII):
                    return rate
    return ""


def _udev(major: int, minor: int, root) -> dict[str, str]:
    """Model, serial and firmware of a disk in udev's database; "ata" is "1" if they come from ATA IDENTIFY data."""
    known = {}
    for line in lines(within(root, "run/udev/data", f"b{major}:{minor}")):
        if line.startswith("E:") and "=" in line:
            key, value = line[2:].split("=", 1)
            known[key] = clean(
                re.sub(r"\\x([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), value) if key.endswith("_ENC") else value
            )
    return {
        "model": known.get("ID_MODEL_ENC") or known.get("ID_MODEL", "").replace("_", " "),
        "serial": known.get("ID_SERIAL_SHORT", ""),
        "firmware": known.get("ID_REVISION", ""),
        "ata": known.get("ID_ATA", ""),
    }


def _links_of_disks(root) -> dict[str, str]:
    """{kernel name of a whole disk: its best by-id link}"""
    out: dict[str, list[str]] = {}
    for link in listing(within(root, BY_ID)):
        out.setdefault(os.path.basename(real(within(root, BY_ID, link))), []).append(link)

    controllers = [match[1] for name in out if (match := NAMESPACE.fullmatch(name))]

    def rank(name: str, link: str):
        kind = next((i for i, prefix in enumerate(LINK_ORDER) if link.startswith(prefix)), len(LINK_ORDER))
        nsid = number(within(root, "sys/block", name), "nsid")
        match = NAMESPACE.fullmatch(name)
        shared = match is not None and controllers.count(match[1]) > 1 and not _of_namespace(link, nsid)
        return shared, link.startswith(NUMBER_LINKS), kind, len(link), link

    return {name: f"{BY_ID}/{min(links, key=lambda link: rank(name, link))}" for name, links in out.items()}


def _by_link(path: str, drives: list[Drive], root) -> Drive:
    if not os.path.lexists(within(root, path)):
        raise UsageError("a link in /dev/disk/by-id", f"no {path}", f"choose one: {_choice(drives)}")
    name = os.path.basename(real(within(root, path)))
    disk = _whole_disk(name, root)
    drive = next((d for d in drives if d.name == disk), None)
    if drive is None:
        why = why_not_a_drive(name, root) or "its disk is gone"
        raise UsageError("a by-id link of a whole disk", f"{path}: {why}", f"choose one: {_choice(drives)}")
    if disk != name:
        raise UsageError("a whole disk", f"{path}, a partition", f"if you mean its whole disk, use {_best_name(drive)}")
    others = [other for other in drives if one_namespace_each(drive, other)]
    if others and not _of_namespace(os.path.basename(path), drive.nsid):
        at = lambda disk: natural_order(disk.name)  # udev gives it to one of them, whichever came last
        seen = f"{path}, a link of any namespace of this drive"
        raise UsageError(
            "a by-id link of one namespace", seen, f"choose one: {_choice(sorted([drive, *others], key=at))}"
        )
    return drive


def _of_namespace(link: str, nsid: int | None) -> bool:
    """Whether a by-id link of an NVMe drive is that of one namespace."""
    return link.startswith(NUMBER_LINKS) or link.endswith(f"_{nsid}")


def _whole_disk(name: str, root) -> str | None:
    """The disk of a block device: itself, or the disk of a partition; None if it is not a block device."""
    if not name or "/" in name or name in (".", ".."):
        return None
    folder = within(root, "sys/class/block", name)
    if os.path.isdir(within(root, "sys/block", name)):
        return name
    return (
        os.path.basename(os.path.dirname(real(folder))) if os.path.exists(os.path.join(folder, "partition")) else None
    )


def _best_name(drive: Drive) -> str:
    return " or ".join(filter(None, (drive.serial, drive.by_id))) or "nothing: it shows no serial and has no by-id link"


def _choice(drives: list[Drive]) -> str:
    return (
        "; ".join(f"{_best_name(d)} ({d.model or 'model unknown'}, {d.node})" for d in drives)
        or "this machine has no whole disk"
    )
