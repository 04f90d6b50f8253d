"""One ssdrig at a time works on a drive: a lock on a file for each serial, in a folder that only its owner can write.

Any process that can open a file can lock it, so only the owner may open these; a process that may not open one reads
/proc/locks."""

import contextlib
import fcntl
import os
import re
import stat
import time

from ssdrig.base import files
from ssdrig.base.words import serial_key
from ssdrig.drive import sysfs

FOLDER = "run/ssdrig"


def name(serial: str) -> str:
    """Name of the lock file: the same for each spelling of a serial."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", serial_key(serial).upper())[:100] + ".lock"


def take(serial: str, root: str | os.PathLike) -> tuple[int | None, str]:
    """(descriptor that holds the lock until it is closed, ""), or (None, why not)."""
    folder = sysfs.within(root, FOLDER)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o755)
        if why := _not_safe(folder):
            return None, f"no lock can be taken ({folder} {why})"
        path = os.path.join(folder, name(serial))
        fd = files.lock_file(path)
    except OSError as error:
        return None, f"no lock can be taken ({folder}: {error.strerror}): run it as root"
    for _ in range(25):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)  # a holder() elsewhere takes it for an instant
            continue
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return fd, ""
    who = _pid_in(fd)
    os.close(fd)
    return None, f"{who} is at work on this drive"


def holder(serial: str, root: str | os.PathLike) -> str | None:
    """The holder of the drive, in words, or None."""
    folder = sysfs.within(root, FOLDER)
    path = os.path.join(folder, name(serial))
    if _not_safe(folder):
        return None  # no ssdrig takes a lock there
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        pid = files.locked_by(path)
        return f"another ssdrig, process {pid}," if pid else None
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid_in(fd)
    finally:
        os.close(fd)
    return None


def _not_safe(folder: str) -> str:
    """Why another user could put a file there; "" if none could."""
    try:
        seen = os.lstat(folder)
    except OSError as error:
        return f"is not to be had: {error.strerror}"
    if not stat.S_ISDIR(seen.st_mode):
        return "is not a folder"
    if seen.st_uid not in (0, os.geteuid()):
        return f"belongs to user {seen.st_uid}"
    return "can be written by other users" if seen.st_mode & 0o022 else ""


def _pid_in(fd: int) -> str:
    words = sysfs.clean(os.pread(fd, 20, 0))
    return f"another ssdrig, process {words}," if words.isdecimal() else "another ssdrig"
