"""Block devices by their numbers, and the whole disks that lie below a partition, a volume or a loop device."""

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterable, Mapping

from ssdrig.drive import sysfs

LOOP_GET_STATUS64 = 0x4C05  # linux/loop.h; struct loop_info64: u64 lo_device, lo_inode, lo_rdevice …
LOOP_INFO_BYTES = 232


def name_of_number(number: str, root: str | os.PathLike) -> str:
    """ "8:1" -> "sda1"; "" for a number that no block device has."""
    folder = sysfs.within(root, "sys/dev/block", number)
    return os.path.basename(sysfs.real(folder)) if number and os.path.exists(folder) else ""


def name_of(path: str, root: str | os.PathLike) -> str:
    """The kernel's name of the block device at a path: by the node's number, because nodes may have any name;
    otherwise by the name at the end of all links (/dev/mapper/vg0-root -> dm-0). "" if there is none."""
    try:
        where = sysfs.within(root, path)
        kind, number = sysfs.node_number(where)
        name = name_of_number(number, root) if kind == "block" else os.path.basename(sysfs.real(where))
        return name if name and os.path.isdir(sysfs.within(root, "sys/class/block", name)) else ""
    except (OSError, ValueError):
        return ""


def disks_below(device: str, root: str | os.PathLike, loops: Mapping[str, Iterable[str]]) -> set[str]:
    """The whole disks under a block device, down through volumes, RAIDs, partitions and loop devices. loops: {loop
    device: the block devices that hold its backing file}."""
    out: set[str] = set()
    todo, seen = [device], set()
    while todo:
        name = todo.pop()
        folder = sysfs.within(root, "sys/class/block", name)
        if name in seen or not name or not os.path.isdir(folder):
            continue
        seen.add(name)
        if os.path.exists(os.path.join(folder, "partition")):
            todo.append(os.path.basename(os.path.dirname(sysfs.real(folder))))
        else:
            out.add(name)
            todo += [*sysfs.listing(os.path.join(folder, "slaves")), *loops.get(name, ())]
    return out


def attached_loops(root: str | os.PathLike) -> dict[str, tuple[str, str, str]]:
    """{loop device: (path of its backing file, kernel name of the block device that this is or "", number of the
    device whose file system holds it or "")}. The path is as this process sees it; numbers are the kernel's own."""
    out = {}
    for name in sysfs.listing(sysfs.within(root, "sys/class/block")):
        folder = sysfs.within(root, "sys/class/block", name, "loop")
        if not os.path.isdir(folder):
            continue
        path = sysfs.raw(folder, "backing_file").decode(errors="replace").rstrip("\n").removesuffix(" (deleted)")
        block, holds = _loop_numbers(sysfs.within(root, "dev", name))
        out[name] = (path, name_of_number(block, root) or (name_of(path, root) if not holds else ""), holds)
    return out


def _loop_numbers(node: str) -> tuple[str, str]:
    """(number of the block device that a loop device is attached to or "", number of the device whose file system
    holds its backing file or ""); both "" if the kernel cannot be asked."""
    kind, _ = sysfs.node_number(node)
    if kind != "block":
        return "", ""
    with contextlib.suppress(OSError):
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            info = fcntl.ioctl(fd, LOOP_GET_STATUS64, bytes(LOOP_INFO_BYTES))
        finally:
            os.close(fd)
        device, _, block = struct.unpack_from("=QQQ", info)
        as_text = lambda number: f"{os.major(number)}:{os.minor(number)}" if number else ""
        return as_text(block), as_text(device)
    return "", ""
