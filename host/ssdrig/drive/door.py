"""The way into a drive that this process holds: a number among its descriptors, which others open as /proc/PID/fd/N.

Opening that path opens the device that is held, whatever its name in /dev means by now; the kernel gives neither the
name nor the device number to another disk while the descriptor is open, and answers ENXIO once the disk is gone. The
number is never given to another file: while no drive is held it is a socket's, which no path can open."""

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from typing import Protocol

from ssdrig.base.errors import DriveError, UnsafeTarget
from ssdrig.base.system import fcntl
from ssdrig.drive import placement, sysfs
from ssdrig.drive.inventory import Drive

BLKGETDISKSEQ = 0x80081280  # linux/fs.h, Linux 5.15: the kernel's number of this appearance of a disk
HINT = "bring the drive back, then start again"
AGAIN = "start again with the drive's serial"
CLASSES = {"controller": "nvme", "namespace": "nvme-generic"}  # of sysfs, by the kind of node


class Way(Protocol):
    """A drive that may be written, and how: guard.Held."""

    @property
    def drive(self) -> Drive: ...
    @property
    def path(self) -> str: ...
    def controller(self) -> contextlib.AbstractContextManager[str]: ...
    def recheck(self) -> Drive: ...


class Door:
    """Shut at first. `fd`: the number that is its own until close(); `is_open`: it opens a drive."""

    def __init__(self) -> None:
        with socket.socket(socket.AF_UNIX) as shut:
            self.fd = fcntl.fcntl(shut, fcntl.F_DUPFD_CLOEXEC, 0)
        self.is_open, self._number, self._sequence, self._block = False, 0, "", True

    def put(self, opened: int, block_only: bool = True) -> None:
        """Have the number stand for the device that is open as `opened`, too. `block_only`: anything but a block device
        is refused from then on."""
        os.dup2(opened, self.fd, inheritable=False)
        self.is_open, self._block = True, block_only
        self._number, self._sequence = os.fstat(self.fd).st_rdev, sequence(self.fd)

    def shut(self) -> None:
        """Let go of the device; the number stays taken."""
        if self.is_open:
            with socket.socket(socket.AF_UNIX) as shut:
                os.dup2(shut.fileno(), self.fd, inheritable=False)
            self.is_open = False

    def close(self) -> None:
        """Give the number back. Safe to call twice."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd, self.is_open = -1, False

    def path(self, drive: Drive) -> str:
        """The path that opens the held device, because this process and its children. Raises DriveError if nothing is
        held or the disk is gone, UnsafeTarget if it is no longer the block device of `drive`."""
        words = f"{drive.model or 'a drive'}, serial {drive.serial or 'unknown'}, to be held"
        if not self.is_open:
            raise DriveError(words, "it was let go, and has not been found again", HINT)
        seen = os.fstat(self.fd)
        if self._block and not stat.S_ISBLK(seen.st_mode):
            raise UnsafeTarget(words, "not a block device", "remove the file that has the drive's name in /dev")
        if self._block and seen.st_rdev != os.makedev(drive.major, drive.minor):
            opened = f"device {os.major(seen.st_rdev)}:{os.minor(seen.st_rdev)}, not {drive.major}:{drive.minor}"
            raise UnsafeTarget(words, opened, AGAIN)
        if not alive(self.fd):
            raise DriveError(words, "the disk is gone", HINT)
        if (now := sequence(self.fd)) != self._sequence:
            raise UnsafeTarget(words, f"another medium (diskseq {now}, not {self._sequence})", AGAIN)
        return path_of(self.fd)


def path_of(fd: int) -> str:
    """The path by which this process and others of its user open the file of `fd`."""
    return f"/proc/{os.getpid()}/fd/{fd}"


def alive(fd: int) -> bool:
    """False once the disk of the descriptor was removed: its size is 0 from then on."""
    try:
        return os.lseek(fd, 0, os.SEEK_END) > 0
    except OSError:
        return False


def sequence(fd: int) -> str:
    """The kernel's number of this appearance of the disk that is open as `fd`; "" where it has none."""
    try:
        return str(struct.unpack("=Q", fcntl.ioctl(fd, BLKGETDISKSEQ, bytes(8)))[0])
    except OSError:
        return ""


@contextlib.contextmanager
def controller(drive: Drive, root: str | os.PathLike = "/") -> Iterator[str]:
    """The path that opens the NVMe controller of a drive that is held; it is held meanwhile, too. Raises DriveError
    if there is none, UnsafeTarget if the node is not that of the drive's controller."""
    if not drive.controller:
        raise DriveError("an NVMe controller", f"none of {drive.name}", "see nvme list")

    def belongs(folder: str) -> bool:
        named = os.path.realpath(folder)
        above = sysfs.within(root, "sys/dev/block", f"{drive.major}:{drive.minor}", "device")
        # of a drive with several paths it is the subsystem, which has a link to each controller
        return named in {os.path.realpath(os.path.join(above, link)) for link in (".", os.path.basename(named))}

    with _held_node(drive, "controller", drive.controller, os.O_RDONLY, belongs, root) as path:
        yield path


@contextlib.contextmanager
def generic(drive: Drive, root: str | os.PathLike = "/") -> Iterator[str]:
    """The path that opens the generic character device (/dev/ng0n1) of a namespace that is held; it is held meanwhile,
    too. Raises DriveError if there is none, UnsafeTarget if the node is not that of the drive's namespace."""

    def belongs(folder: str) -> bool:
        block = sysfs.within(root, "sys/dev/block", f"{drive.major}:{drive.minor}")
        same = os.path.realpath(os.path.join(folder, "device")) == os.path.realpath(os.path.join(block, "device"))
        return same and os.path.basename(os.path.realpath(block)) == drive.name

    with _held_node(drive, "namespace", placement.generic(drive.name), os.O_RDWR, belongs, root) as path:
        yield path


@contextlib.contextmanager
def _held_node(
    drive: Drive, kind: str, node: str, flags: int, belongs: Callable[[str], bool], root: str | os.PathLike
) -> Iterator[str]:
    """The path that opens the character device `node` of `drive`, which is held meanwhile. Raises DriveError if it
    cannot be opened, UnsafeTarget if it is not the drive's.

    kind: of CLASSES.
    belongs: whether the node's folder in sysfs is the drive's."""
    try:
        fd = os.open(sysfs.within(root, node), flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DriveError(f"{node} to open", error.strerror or str(error), HINT) from error
    try:
        seen, expected = os.fstat(fd), f"{node} to be the {kind} of {drive.name}"
        number = f"{os.major(seen.st_rdev)}:{os.minor(seen.st_rdev)}"
        folder = sysfs.within(root, "sys/class", CLASSES[kind], os.path.basename(node))
        if root == "/" and not stat.S_ISCHR(seen.st_mode):
            raise UnsafeTarget(expected, "no character device", AGAIN)
        if root == "/" and sysfs.text(folder, "dev") != number:
            raise UnsafeTarget(expected, f"device {number}", AGAIN)
        if not belongs(folder):
            raise UnsafeTarget(expected, "another drive's", AGAIN)
        yield path_of(fd)
    finally:
        os.close(fd)
