"""Processes that have a disk open for writing, by the device's number: a container may name the node anything.

A virtual machine or an NBD server opens its disk without O_EXCL, so the kernel lets others have it exclusively."""

import os
import re

from ssdrig.drive.target import sysfs

FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, linux/proc_ns.h
NVME_PATH = re.compile(r"nvme(\d+)(?:c\d+)?n(\d+)$")


def writers(root: str | os.PathLike) -> tuple[dict[str, list[str]], str]:
    """({block device: other processes that have it open or mapped for writing}, why some cannot be seen or "")."""
    out: dict[str, list[str]] = {}
    hidden = 0
    for process in sysfs.listing(sysfs.within(root, "proc")):
        if not process.isdecimal() or process == str(os.getpid()):
            continue
        here = sysfs.within(root, "proc", process)
        try:
            files = [os.path.join(here, "fd", fd) for fd in os.listdir(os.path.join(here, "fd")) if _writes(here, fd)]
        except PermissionError:
            hidden += 1
            continue
        except OSError:
            continue  # it has ended
        for name in {name for file in [*files, *_mapped(here)] for name in _disks_at(file, root)}:
            out.setdefault(name, []).append(f"process {process} ({sysfs.text(here, 'comm') or '?'})")
    return out, _unseen(hidden, root)


def _unseen(hidden: int, root) -> str:
    try:
        namespace = os.readlink(sysfs.within(root, "proc/self/ns/pid"))
    except OSError:
        namespace = FIRST_PID_NAMESPACE
    if namespace != FIRST_PID_NAMESPACE:
        return "a container hides the machine's other processes: run it outside of containers"
    return f"the open files of {hidden} processes cannot be read: run it as root" if hidden else ""


def _writes(process: str, fd: str) -> bool:
    lines = sysfs.lines(process, "fdinfo", fd)
    flags = next((line.removeprefix("flags:").strip() for line in lines if line.startswith("flags:")), "0")
    return bool(re.fullmatch("[0-7]{1,12}", flags)) and bool(int(flags, 8) & os.O_ACCMODE)


def _mapped(process: str) -> list[str]:
    """Links to the files that a process has mapped shared and writable; their descriptors may be closed."""
    out = []
    for line in sysfs.lines(process, "maps"):
        words = line.split(None, 5)
        if len(words) == 6 and words[1][1::2] == "ws" and words[4] != "0":
            try:
                first, last = (int(word, 16) for word in words[0].split("-"))
            except ValueError:
                continue
            out.append(os.path.join(process, "map_files", f"{first:x}-{last:x}"))
    return out


def _disks_at(file: str, root) -> list[str]:
    """Kernel names of the block devices that an open file reaches: the device itself, or, for a character device (SCSI
    generic, NVMe generic, NVMe controller), the disks behind it."""
    kind, number = sysfs.node_number(file)
    if not kind:
        return []
    here = os.path.realpath(sysfs.within(root, "sys/dev", kind, number))
    if kind == "block":
        return [os.path.basename(here)]
    return behind_character_device(here)


def behind_character_device(here: str) -> list[str]:
    """The disks behind a character device, whose real folder in sysfs is `here`."""
    name = os.path.basename(here)
    if re.fullmatch(r"ng\d+n\d+", name):
        return [f"nvme{name[2:]}"]
    if re.fullmatch(r"nvme\d+", name):  # a controller; a path of a multipath drive is hidden, the drive is not
        found = (NVME_PATH.match(entry) for entry in sysfs.listing(here))
        return [f"nvme{match[1]}n{match[2]}" for match in found if match]
    return sysfs.listing(os.path.join(here, "device", "block"))
