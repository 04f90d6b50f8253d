"""Linux functions that Windows and macOS lack, for the modules that read runs there: locks, flags of open(2), the user,
the C library. Measuring needs Linux; `wear`, `report`, `runs`, `plans` and `check` do not."""

import ctypes
import os
import threading
from typing import TYPE_CHECKING

from ssdrig.base.deferred import Deferred

if TYPE_CHECKING:
    import fcntl
    import pwd
else:
    fcntl, pwd = Deferred("fcntl"), Deferred("pwd")

WINDOWS = not hasattr(os, "geteuid")
NOFOLLOW, NONBLOCK, DIRECTORY = (getattr(os, f"O_{name}", 0) for name in ("NOFOLLOW", "NONBLOCK", "DIRECTORY"))
CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Windows would change line ends
READ = os.O_RDONLY | NONBLOCK | CLOEXEC  # a pipe would wait for its writer
READ_NO_LINK = READ | NOFOLLOW
MS_WRAP = 1 << 32  # the kernel prints the milliseconds of a disk as 32 bits


def libc() -> ctypes.CDLL | None:
    """The C library of this process; None on Windows."""
    return None if WINDOWS else ctypes.CDLL(None, use_errno=True)


def boot_id() -> str | None:
    """The kernel's name of its present start; None where it has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return None


def user() -> int:
    """The effective user id; on Windows one that no file has."""
    return -1 if WINDOWS else os.geteuid()


def lock(file: int, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file (flock); on Windows, where no run is written, do nothing. Raises BlockingIOError where another
    process holds it and wait is False; OSError."""
    if not WINDOWS:
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(file, how if wait else how | fcntl.LOCK_NB)


_alone = threading.Lock()


def pread(file: int, count: int, offset: int) -> bytes:
    """Bytes of an open file from an offset, whatever other threads read of it. Raises OSError."""
    if not WINDOWS:
        return os.pread(file, count, offset)
    with _alone:
        os.lseek(file, offset, os.SEEK_SET)
        return os.read(file, count)
