"""Processes that have a disk open for writing, by the device's number: a container may name the node anything.

A virtual machine or an NBD server opens its disk without O_EXCL, so the kernel lets others have it exclusively. Each
thread is looked at: /proc/PID/fd and maps are those of the main thread, which may have ended before the others, and a
thread may have its own files (unshare(2)). The programs that this process runs on its drive do not count: they are
known by their sessions, which no other program can join."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator

from ssdrig.drive import sysfs

FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO, linux/proc_ns.h
NO_FILES = ("socket:", "pipe:", "anon_inode:")  # what the link of such a descriptor begins with
NVME_PATH = re.compile(r"nvme(\d+)(?:c\d+)?n(\d+)$")


_own: set[int] = set()  # sessions of our programs


@contextlib.contextmanager
def own(process: subprocess.Popen) -> Iterator[None]:
    """Exempt a program of ours, started in its own session to work on a drive, and its children. The exemption outlives
    the block if the program waits in the kernel for the drive."""
    _own.add(process.pid)
    try:
        yield
    finally:
        if process.returncode is not None:
            _own.discard(process.pid)


def _is_own(process: str) -> bool:
    state = sysfs.text(process, "stat").rpartition(")")[2].split()
    return bool(_own) and len(state) > 3 and state[3].isdecimal() and int(state[3]) in _own


def writers(root: str | os.PathLike) -> tuple[dict[str, list[str]], str]:
    """({block device: other processes that have it open or mapped for writing}, why some cannot be seen or "")."""
    out: dict[str, list[str]] = {}
    hidden = 0
    for process in sysfs.listing(sysfs.within(root, "proc")):
        if not process.isdecimal() or process == str(os.getpid()):
            continue
        folder = sysfs.within(root, "proc", process)
        if _is_own(folder):
            continue
        files, unread = [], False
        for thread in threads(folder):
            try:
                files += _written(thread)
            except PermissionError:  # an ended thread has no files, and its folder belongs to root
                unread = unread or not _has_ended(thread)
        hidden += unread
        for name in {name for file in [*files, *_mapped(folder)] for name in _disks_at(file, root)}:
            out.setdefault(name, []).append(f"process {process} ({sysfs.text(folder, 'comm') or '?'})")
    return out, _unseen(hidden, root)


def threads(process: str) -> list[str]:
    """The folders of a process's threads, given its own."""
    return [os.path.join(process, "task", thread) for thread in sysfs.listing(os.path.join(process, "task"))]


def _written(thread: str) -> list[str]:
    """Links to the files that a thread has open for writing. Raises PermissionError."""
    try:
        return [os.path.join(thread, "fd", fd) for fd in os.listdir(os.path.join(thread, "fd")) if _writes(thread, fd)]
    except PermissionError:
        raise
    except OSError:
        return []  # it has ended


def _has_ended(thread: str) -> bool:
    """Whether a thread has ended: a main thread stays (Z) until all others have."""
    state = sysfs.text(thread, "stat").rpartition(")")[2].split()
    return bool(state) and state[0] in "ZX"


def _unseen(hidden: int, root) -> str:
    try:
        namespace = os.readlink(sysfs.within(root, "proc/self/ns/pid"))
    except OSError:
        namespace = FIRST_PID_NAMESPACE
    if namespace != FIRST_PID_NAMESPACE:
        return "a container hides the machine's other processes: run it outside of containers"
    return f"the open files of {hidden} processes cannot be read: run it as root" if hidden else ""


def _writes(thread: str, fd: str) -> bool:
    """Whether a descriptor is for writing, and of something that may be a device."""
    try:
        if os.readlink(os.path.join(thread, "fd", fd)).startswith(NO_FILES):
            return False
    except OSError:
        return False  # closed by now
    lines = sysfs.lines(thread, "fdinfo", fd)
    flags = next((line.removeprefix("flags:").strip() for line in lines if line.startswith("flags:")), "0")
    return bool(re.fullmatch("[0-7]{1,12}", flags)) and bool(int(flags, 8) & os.O_ACCMODE)


def _mapped(process: str) -> list[str]:
    """Paths of the files that a process has mapped shared and writable; their descriptors may be closed. All of its
    threads have the same, and the one that has ended none."""
    out = []
    for thread in threads(process):
        lines = [line for line in sysfs.lines(thread, "maps") if line]
        for line in lines:
            words = line.split(None, 5)
            if len(words) == 6 and words[1][1::2] == "ws" and words[4] != "0":
                out += _paths_of(process, thread, words[0], words[5])
        if lines:
            break
    return out


def _paths_of(process: str, thread: str, range_: str, path: str) -> list[str]:
    """Paths to a mapped file: the kernel's link, which disappears with the main thread, or its name as seen by this
    process or by the thread."""
    try:
        first, last = (int(word, 16) for word in range_.split("-"))
    except ValueError:
        return []
    link = os.path.join(process, "map_files", f"{first:x}-{last:x}")
    return [link] if os.path.islink(link) else [path, os.path.join(thread, "root", path.lstrip("/"))]


def _disks_at(file: str, root) -> list[str]:
    """Kernel names of the block devices that an open file reaches: the device itself, or, for a character device (SCSI
    generic, NVMe generic, NVMe controller), its disks."""
    kind, number = sysfs.node_number(file)
    if not kind:
        return []
    folder = sysfs.real(sysfs.within(root, "sys/dev", kind, number))
    if kind == "block":
        return [os.path.basename(folder)]
    return disks_of_character_device(folder)


def disks_of_character_device(folder: str) -> list[str]:
    """The disks of a character device, whose real folder in sysfs is `folder`."""
    name = os.path.basename(folder)
    if re.fullmatch(r"ng\d+n\d+", name):
        return [f"nvme{name[2:]}"]
    if re.fullmatch(r"nvme\d+", name):  # a controller; a path of a multipath drive is hidden, the drive is not
        paths = (NVME_PATH.match(entry) for entry in sysfs.listing(folder))
        return [f"nvme{match[1]}n{match[2]}" for match in paths if match]
    return sysfs.listing(os.path.join(folder, "device", "block"))
