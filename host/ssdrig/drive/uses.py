"""Who on this machine uses which disk: mounts, swap, the running system, drivers of the kernel, programs that write.

Devices are identified by the kernel's numbers and sysfs, not by the names in a table, and followed through
volumes, RAIDs, partitions and loop devices down to whole disks. host/docs/holders.md lists every way to hold a disk."""

import os
from dataclasses import dataclass

from ssdrig.drive import claims, inventory, layers, mounts, openers, sysfs
from ssdrig.drive.inventory import Drive
from ssdrig.drive.mounts import Mount

SYSTEM_MOUNTS = ("/", "/boot", "/boot/efi", "/efi", "/usr", "/var")


@dataclass(frozen=True)
class Machine:
    """Read once for many drives. Disks by the kernel's name."""

    drives: list[Drive]
    mounted: dict[str, dict[str, str]]  # {disk: {mount point: the device mounted there}}
    system: dict[str, set[str]]  # {disk: system mount points that need it}
    swap: dict[str, list[str]]  # {disk: devices swapped to}
    claims: dict[str, dict[str, list[str]]]  # {disk: {check: which drivers use it, in words}}
    writers: dict[str, list[str]]  # {disk: processes that have it, or a volume on it, open for writing}
    unseen: str  # why some processes are invisible; "" if all are visible


def survey(root: str | os.PathLike = "/") -> Machine:
    """Read who mounts, swaps to, exports and writes which disk."""
    known = mounts.all_mounts(root)
    attached = layers.attached_loops(root)
    below_loop = {name: _below_loop(*where, known, root) for name, where in attached.items()}

    def disks_of(devices) -> set[str]:
        return {disk for device in devices for disk in layers.disks_below(device, root, below_loop)}

    mounted: dict[str, dict[str, str]] = {}
    system: dict[str, set[str]] = {}
    for mount in known:
        devices = mounts.devices_of(mount, root)
        disks = disks_of(devices)
        for disk in disks:
            mounted.setdefault(disk, {})[mount.where] = ", ".join(sorted(devices))
        if mount.point in SYSTEM_MOUNTS and not mount.process:
            for disk in disks | disks_of(_devices_of_overlay(mount, known, root)):
                system.setdefault(disk, set()).add(mount.point)
    swap: dict[str, list[str]] = {}
    for line in sysfs.lines(sysfs.within(root, "proc/swaps"))[1:]:
        if line.startswith("/"):
            device = layers.name_of(mounts.unescape(line.split()[0]), root)
            for disk in disks_of({device}):
                swap.setdefault(disk, []).append(device)
    claimed: dict[str, dict[str, list[str]]] = {}
    for claim in claims.all_claims(root, attached):
        for disk in disks_of({claim.device}):
            claimed.setdefault(disk, {}).setdefault(claim.check, []).append(claim.why)
    opened, unseen = openers.writers(root)
    writers: dict[str, list[str]] = {}
    for device, who in opened.items():
        for disk in disks_of({device}):
            writers.setdefault(disk, []).extend(who)
    return Machine(inventory.all_drives(root), mounted, system, swap, claimed, writers, unseen)


def disks_of_folder(folder: str | os.PathLike, root: str | os.PathLike = "/") -> set[str]:
    """The disks that hold a folder, or would hold it once it is made."""
    known = mounts.all_mounts(root)
    where = mounts.nearest(os.path.realpath(folder), known)
    if where is None:
        return set()
    attached = layers.attached_loops(root)
    below_loop = {name: _below_loop(*at, known, root) for name, at in attached.items()}
    devices = mounts.devices_of(where, root) | _devices_of_overlay(where, known, root)
    return {disk for device in devices for disk in layers.disks_below(device, root, below_loop)}


def _below_loop(path: str, device: str, number: str, known: list[Mount], root) -> set[str]:
    """The block devices below a loop device: the one it is attached to, or those that hold the file it is attached
    to."""
    if device:
        return {device}
    by_number = [mount for mount in known if number and mount.number == number]
    # btrfs: files have other numbers
    mounts_of = by_number or [mount for mount in [mounts.nearest(path, known)] if mount]
    return {device for mount in mounts_of for device in mounts.devices_of(mount, root)}


def _devices_of_overlay(mount: Mount, known: list[Mount], root) -> set[str]:
    """The devices below the folders that an overlay (a container's or live system's root) is made of."""
    out = set()
    if mount.type == "overlay":
        for option in mount.options.split(","):
            name, _, folders = option.partition("=")
            for folder in folders.split(":") if name in ("lowerdir", "upperdir", "workdir") else ():
                below = mounts.nearest(mounts.unescape(folder), [m for m in known if m is not mount])
                out |= mounts.devices_of(below, root) if below else set()
    return out
