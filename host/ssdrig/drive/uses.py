"""Who on this machine uses which disk: mounts, swap, the running system, programs that write to it.

Devices are told apart by the kernel's numbers and sysfs, not by the names that a mount table shows, and followed
through volumes, RAIDs and partitions down to whole disks.
"""

import os
import re
from dataclasses import dataclass

from ssdrig.drive import inventory, sysfs
from ssdrig.drive.inventory import Drive

SYSTEM_MOUNTS = ("/", "/boot", "/boot/efi", "/efi", "/usr", "/var")


@dataclass(frozen=True)
class Machine:
    """Read once for many drives. Disks by the kernel's name."""

    drives: list[Drive]
    mounted: dict[str, dict[str, str]]  # {disk: {mount point: the device mounted there}}
    system: dict[str, set[str]]  # {disk: system mount points that need it}
    swap: dict[str, list[str]]  # {disk: devices swapped to}
    writers: dict[str, list[str]]  # {/dev/…: processes that have it open for writing}


def survey(root: str | os.PathLike = "/") -> Machine:
    """Read who mounts, swaps to and writes which disk."""
    mounts = _mounts(root)
    mounted: dict[str, dict[str, str]] = {}
    system: dict[str, set[str]] = {}
    for mount in mounts:
        devices = _devices_of(mount, root)
        disks = {disk for device in devices for disk in _disks_below(device, root)}
        for disk in disks:
            mounted.setdefault(disk, {})[mount["point"]] = ", ".join(sorted(devices))
        if mount["point"] in SYSTEM_MOUNTS:
            for disk in disks | _disks_of_overlay(mount, mounts, root):
                system.setdefault(disk, set()).add(mount["point"])
    swap: dict[str, list[str]] = {}
    for line in sysfs.lines(sysfs.within(root, "proc/swaps"))[1:]:
        if line.startswith("/dev/"):
            device = _kernel_name(_unescape(line.split()[0]), root)
            for disk in _disks_below(device, root):
                swap.setdefault(disk, []).append(device)
    return Machine(inventory.all_drives(root), mounted, system, swap, _writers(root))


def _mounts(root) -> list[dict]:
    """Of this process and, where it may be read, of process 1, which sees what a private mount namespace hides."""
    out = {}
    for process in ("1", "self"):
        for line in sysfs.lines(sysfs.within(root, "proc", process, "mountinfo")):
            words, _, rest = line.partition(" - ")
            words, rest = words.split(" "), rest.split(" ")
            if len(words) >= 6 and len(rest) >= 2:
                point, options = _unescape(words[4]), rest[2] if len(rest) > 2 else ""
                source = _unescape(rest[1])
                out[words[2], point, source] = {
                    "number": words[2],
                    "point": point,
                    "type": rest[0],
                    "source": source,
                    "options": options,
                }
    return list(out.values())


def _unescape(text: str) -> str:
    """The kernel writes blanks in paths as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def _devices_of(mount: dict, root) -> set[str]:
    """Kernel names of the block devices that a mounted file system lies on. btrfs shows a number that is no device's
    and one of possibly several sources."""
    by_number = sysfs.within(root, "sys/dev/block", mount["number"])
    out = {os.path.basename(os.path.realpath(by_number))} if os.path.exists(by_number) else set()
    if mount["source"].startswith("/dev/"):
        out.add(_kernel_name(mount["source"], root))
    if mount["type"] == "btrfs":
        for pool in sysfs.listing(sysfs.within(root, "sys/fs/btrfs")):
            members = set(sysfs.listing(sysfs.within(root, "sys/fs/btrfs", pool, "devices")))
            out |= members if members & out else set()
    return {name for name in out if os.path.isdir(sysfs.within(root, "sys/class/block", name))}


def _kernel_name(path: str, root) -> str:
    """/dev/mapper/vg0-root -> dm-0"""
    try:
        return os.path.basename(os.path.realpath(sysfs.within(root, path)))
    except (OSError, ValueError):
        return ""


def _disks_below(device: str, root) -> set[str]:
    """The whole disks that a block device lies on, down through volumes, RAIDs and partitions."""
    out, todo, seen = set(), [device], set()
    while todo:
        name = todo.pop()
        here = sysfs.within(root, "sys/class/block", name)
        if name in seen or not name or not os.path.isdir(here):
            continue
        seen.add(name)
        if os.path.exists(os.path.join(here, "partition")):
            todo.append(os.path.basename(os.path.dirname(os.path.realpath(here))))
        else:
            out.add(name)
            todo += sysfs.listing(os.path.join(here, "slaves"))
    return out


def _disks_of_overlay(mount: dict, mounts: list[dict], root) -> set[str]:
    """The disks below the folders that an overlay (a container's or live system's root) is made of."""
    out = set()
    if mount["type"] == "overlay":
        for option in mount["options"].split(","):
            name, _, folders = option.partition("=")
            for folder in folders.split(":") if name in ("lowerdir", "upperdir", "workdir") else ():
                inside = [
                    m
                    for m in mounts
                    if m is not mount and (_unescape(folder) + "/").startswith(m["point"].rstrip("/") + "/")
                ]
                if inside:
                    nearest = max(inside, key=lambda m: len(m["point"]))
                    out |= {disk for device in _devices_of(nearest, root) for disk in _disks_below(device, root)}
    return out


def _writers(root) -> dict[str, list[str]]:
    """{/dev/…: which other processes have it open for writing}, as far as this user may see. A virtual machine opens
    its disk without O_EXCL."""
    out: dict[str, list[str]] = {}
    for process in sysfs.listing(sysfs.within(root, "proc")):
        if not process.isdecimal() or process == str(os.getpid()):
            continue
        here = sysfs.within(root, "proc", process)
        for fd in sysfs.listing(os.path.join(here, "fd")):
            try:
                path = os.readlink(os.path.join(here, "fd", fd))
            except OSError:
                continue
            if path.startswith("/dev/") and os.path.exists(sysfs.within(root, "sys/class/block", path[5:])):
                flags = next(
                    (line[6:].strip() for line in sysfs.lines(here, "fdinfo", fd) if line.startswith("flags:")), "0"
                )
                if re.fullmatch("[0-7]{1,12}", flags) and int(flags, 8) & os.O_ACCMODE:
                    out.setdefault(path, []).append(f"process {process} ({sysfs.text(here, 'comm') or '?'})")
    return out
