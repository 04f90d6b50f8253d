"""Drivers of the kernel that use a disk without a mount, swap or process to show for it, each read where it shows
itself. Some open the disk without a claim (loop, NVMe and USB targets, a LIO file, Xen, OCFS2's heartbeat): an
exclusive open succeeds all the same."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ssdrig.base.words import serial_key
from ssdrig.drive import layers, openers, sysfs
from ssdrig.drive.identity import Identity

CONFIG = "sys/kernel/config"


@dataclass(frozen=True)
class Claim:
    device: str  # the kernel's name of the block device
    check: str  # short name of the refusal
    why: str


def all_claims(root: str | os.PathLike, loops: dict[str, tuple[str, str, str]]) -> list[Claim]:
    """What the kernel's drivers hold. loops: of layers.attached_loops()."""
    claims = [Claim(device, "loop", f"{loop} is attached to {device}") for loop, (_, device, _) in loops.items()]
    for reader in (
        *(_nvme_targets, _lio, _usb_gadgets, _rnbd, _xen, _ocfs2_heartbeat),
        *(_zram, _bcache, _btrfs, _bcachefs, _journals, _parameters),
    ):
        claims += reader(root)
    return [claim for claim in claims if claim.device]


def exported_devices(drive: Identity, root: str | os.PathLike) -> list[str]:
    """The block devices of this machine that hold the data of `drive`, because this machine exports them and sees them
    again as that drive (NVMe over fabrics or SCSI, to itself): their users are not the drive's to see."""
    of_nvme = [
        device
        for nqn, nsid, device, _ in _nvme_exports(root)
        if drive.unit and drive.unit == nqn and nsid in (None, drive.nsid)
    ]
    of_scsi = [
        device
        for store, device in _lio_exports(root)
        if drive.nsid is None and drive.key and drive.key == _unit_serial(store)
    ]
    return sorted({*of_nvme, *of_scsi} - {""})


def _nvme_exports(root) -> Iterator[tuple[str, int | None, str, str]]:
    """(NQN of the subsystem, its namespace or None for all of a controller, block device, what is exported)"""
    for subsystem in _folders(root, CONFIG, "nvmet/subsystems"):
        nqn = os.path.basename(subsystem)
        for namespace in _folders(subsystem, "namespaces"):
            device = layers.name_of(_path(namespace, "device_path"), root)
            nsid = os.path.basename(namespace)
            yield nqn, int(nsid) if nsid.isdecimal() else None, device, device
        controller = os.path.basename(_path(subsystem, "passthru/device_path"))
        if re.fullmatch(r"nvme\d+", controller):
            folder = sysfs.real(sysfs.within(root, "sys/class/nvme", controller))
            for device in openers.disks_of_character_device(folder):
                yield nqn, None, device, controller


def _nvme_targets(root) -> list[Claim]:
    return [
        Claim(device, "export", f"NVMe target {nqn} exports {what}") for nqn, _, device, what in _nvme_exports(root)
    ]


def _lio_exports(root) -> Iterator[tuple[str, str]]:
    """(folder of a backstore of iSCSI, Fibre Channel, vhost and loopback targets, block device). `info` names a
    fileio's path and an iblock's number."""
    for kind in _folders(root, CONFIG, "target/core"):
        for store in _folders(kind):
            info = sysfs.text(store, "info")
            number = re.search(r"Major: (\d+) Minor: (\d+)", info)
            file = re.search(r"File: (/\S+)", info)
            names = {
                layers.name_of(_path(store, "udev_path"), root),
                layers.name_of_number(f"{number[1]}:{number[2]}", root) if number else "",
                layers.name_of(file[1], root) if file else "",
            }
            for name in sorted(names):
                yield store, name


def _unit_serial(store: str) -> str:
    """The serial that the disks of a backstore show, in one spelling."""
    return serial_key(sysfs.text(store, "wwn/vpd_unit_serial").rpartition(":")[2].strip())


def _lio(root) -> list[Claim]:
    return [
        Claim(name, "export", f"SCSI target {'/'.join(store.split('/')[-2:])} exports {name}")
        for store, name in _lio_exports(root)
    ]


def _usb_gadgets(root) -> list[Claim]:
    # g_mass_storage, g_multi, g_acm_ms and g_nokia share this parameter
    modules = [folder for folder in _folders(root, "sys/module") if os.path.basename(folder).startswith("g_")]
    paths = [("USB gadget", os.path.join(folder, "parameters")) for folder in modules]
    for gadget in _folders(root, CONFIG, "usb_gadget"):
        for function in _folders(gadget, "functions"):
            paths += [(f"USB gadget {os.path.basename(gadget)}", lun) for lun in _folders(function)]
    return [
        Claim(device, "export", f"{what} exports {device}")
        for what, folder in paths
        for path in _path(folder, "file").split(",")
        if (device := layers.name_of(path, root) if path else "")
    ]


def _rnbd(root) -> list[Claim]:
    out = []
    for entry in _folders(root, "sys/class/rnbd-server/ctl/devices"):
        device = os.path.basename(sysfs.real(os.path.join(entry, "block_dev")))
        out.append(Claim(device, "export", f"RNBD server exports {device}"))
    return out


def _xen(root) -> list[Claim]:
    """Disks of Xen's virtual machines (xen-blkback). The kernel prints the number in hexadecimal: "8:10" is 8:16."""
    out = []
    for entry in _folders(root, "sys/bus/xen-backend/devices"):
        number = re.fullmatch(r"([0-9a-f]+):([0-9a-f]+)", sysfs.text(entry, "physical_device"))
        device = layers.name_of_number(f"{int(number[1], 16)}:{int(number[2], 16)}", root) if number else ""
        out.append(Claim(device, "export", f"Xen's {os.path.basename(entry)} gives {device} to a virtual machine"))
    return out


def _ocfs2_heartbeat(root) -> list[Claim]:
    """A region of the cluster's heartbeat, written every two seconds, on a disk that need not be mounted."""
    out = []
    for cluster in _folders(root, CONFIG, "cluster"):
        for region in _folders(cluster, "heartbeat"):
            device = sysfs.text(region, "dev")
            out.append(Claim(device, "holder", f"the OCFS2 cluster {os.path.basename(cluster)} writes to {device}"))
    return out


def _zram(root) -> list[Claim]:
    out = []
    for folder in _folders(root, "sys/block"):
        path = _path(folder, "backing_dev")
        device = layers.name_of(path, root) if path.startswith("/") else ""
        out.append(Claim(device, "holder", f"{os.path.basename(folder)} writes back to {device}"))
    return out


def _bcache(root) -> list[Claim]:
    """A backing device has its bcache0 as a holder; a cache device has none."""
    return [
        Claim(os.path.basename(folder), "holder", f"bcache uses {os.path.basename(folder)}")
        for folder in _folders(root, "sys/class/block")
        if not os.path.basename(folder).startswith("bcache") and os.path.isdir(os.path.join(folder, "bcache"))
    ]


def _btrfs(root) -> list[Claim]:
    """Listed while mounted in any namespace."""
    return [
        Claim(os.path.basename(device), "holder", f"btrfs {os.path.basename(pool)} uses {os.path.basename(device)}")
        for pool in _folders(root, "sys/fs/btrfs")
        for device in _folders(pool, "devices")
    ]


def _bcachefs(root) -> list[Claim]:
    out = []
    for pool in _folders(root, "sys/fs/bcachefs"):
        for member in (folder for folder in _folders(pool) if os.path.exists(os.path.join(folder, "block"))):
            device = os.path.basename(sysfs.real(os.path.join(member, "block")))
            out.append(Claim(device, "holder", f"bcachefs {os.path.basename(pool)} uses {device}"))
    return out


def _journals(root) -> list[Claim]:
    """jbd2 names a journal by its device; "-8" follows when it is an inode of that device's own ext4."""
    out = []
    for entry in sysfs.listing(sysfs.within(root, "proc/fs/jbd2")):
        device = re.sub(r"-\d+$", "", entry).replace("!", "/")
        out.append(Claim(device, "holder", f"the journal of a mounted file system is on {device}"))
    return out


def _parameters(root) -> list[Claim]:
    """Devices that kernel parameters name: the crash log and the hibernation image."""
    log = sysfs.text(sysfs.within(root, "sys/module/pstore_blk/parameters/blkdev"))
    device = layers.name_of(log, root) if log.startswith("/") else layers.name_of_number(log, root)
    resume = layers.name_of_number(sysfs.text(sysfs.within(root, "sys/power/resume")), root)
    return [
        Claim(device, "holder", f"the kernel keeps its crash log on {device}"),
        Claim(resume, "holder", f"the kernel hibernates to {resume}"),
    ]


def _folders(*parts) -> list[str]:
    """The entries of a folder that are folders or link to one, as paths."""
    folder = sysfs.within(*parts)
    paths = (os.path.join(folder, entry) for entry in sorted(sysfs.listing(folder)))
    return [path for path in paths if os.path.isdir(path)]


def _path(folder: str, name: str) -> str:
    return sysfs.raw(folder, name).decode(errors="replace").strip("\n\0")
