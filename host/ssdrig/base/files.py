"""Files that hold the old content or the new, whatever happens in between."""

import contextlib
import ctypes
import errno
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ssdrig.base import owner, system

FOREIGN_S = 5.0


def write_atomically(target: Path, data: bytes, durable: bool = True) -> None:
    """replacing(), for content that is at hand."""
    with replacing(target, durable) as f:
        f.write(data)


@contextlib.contextmanager
def replacing(target: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """A file for the new content of `target`, which it replaces when the block ends without an exception. Readers get
    the old content or the new; with `durable` also after a power cut. Several writers take turns.
    Raises OSError, also if `target` is not a regular file (a folder, /dev/null, /dev/stdout)."""
    if target.exists() and not target.is_file():
        raise OSError(errno.EEXIST, "not a regular file", str(target))
    owner.new(target)
    partial = target.with_name(f".{target.name}.part")
    with _alone(partial) as f:  # locked until it has its name
        try:
            yield f
            f.flush()
            _chmod(f.fileno(), 0o666 & ~_umask())
            if durable:
                os.fsync(f.fileno())
            if system.WINDOWS:  # it renames no open file
                f.close()
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    if durable:
        fsync_folder(target.parent)


def part_from_copies(path: Path) -> None:
    """Give a file with several names (hard links), as `cp -al` makes them of a whole folder, a content of its own under
    this name: an append would change the other's too. Raises OSError."""
    try:
        seen = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISREG(seen.st_mode) and seen.st_nlink > 1:
        with open(path, "rb") as shared, replacing(path) as own:
            shutil.copyfileobj(shared, own)


def lock_file(path: str | os.PathLike, flags: int = 0) -> int:
    """A descriptor of a lock file, made if absent. Any user who can open a file can lock it, so only its owner may open
    this one. Follows no link. Raises OSError.

    flags: added to those of open(2)."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | system.NOFOLLOW | system.NONBLOCK | system.CLOEXEC | flags, 0o600)
    with contextlib.suppress(OSError):  # another's, or on a file system without rights
        _chmod(fd, 0o600)
    return fd


def is_locked(path: str | os.PathLike) -> bool:
    """Whether a process holds a flock on a file, also on one that this process may not open."""
    try:
        fd = os.open(path, system.READ)
    except PermissionError:
        return bool(locked_by(path))
    except OSError:
        return False
    try:
        system.lock(fd, shared=True, wait=False)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


def locked_by(path: str | os.PathLike) -> str:
    """The process that holds a flock on a file that this one may not open, "" where none does: by /proc/locks, whose
    lines are "1: FLOCK  ADVISORY  WRITE 512 00:19:1234 0 EOF" with the device in hexadecimal, then the inode. That of a
    btrfs or overlay is another there."""
    try:
        seen, lines = os.lstat(path), Path("/proc/locks").read_text().splitlines()
    except OSError:
        return ""
    device = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}" if os.major(seen.st_dev) else "00:"
    for line in lines:
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5].startswith(device):
            if words[5].rpartition(":")[2] == str(seen.st_ino):
                return words[4]
    return ""


def _chmod(fd: int, mode: int) -> None:
    if not system.WINDOWS:
        os.fchmod(fd, mode)


def _umask() -> int:
    """The umask of this process. umask(2) can only read it by setting it, which would affect other threads."""
    match = None
    with contextlib.suppress(OSError):  # a root without /proc
        match = re.search(r"^Umask:\s*(\d+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(match[1], 8) if match else 0o022


def _alone(path: Path) -> BinaryIO:
    """A new file that its writer holds locked; waits for another writer's, removes a killed one's. Raises OSError."""
    while True:
        try:
            f = open(path, "xb", opener=_private)  # x follows no link
        except FileExistsError:
            _wait_for(path)
            continue
        system.lock(f.fileno())
        if _is(path, f.fileno()):  # else it was taken for a killed writer's before it was locked
            return f
        f.close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _wait_for(path: Path) -> None:
    """Wait until the writer of a half-made file has ended, then remove the rest of the file. Another user could lock
    it for ever, so such a file is removed after FOREIGN_S. Raises OSError if it cannot be removed."""
    try:
        fd = os.open(path, system.READ_NO_LINK)
    except OSError:
        path.unlink(missing_ok=True)  # a link, or of another user
        return
    try:
        seen = os.fstat(fd)
        if seen.st_uid in (system.user(), *(owner.person() or ())[:1]) and not seen.st_mode & 0o077:
            system.lock(fd)
        else:
            _lock_within(fd, FOREIGN_S)
        if _is(path, fd):
            path.unlink()
    finally:
        os.close(fd)


def _lock_within(fd: int, seconds: float) -> None:
    """Lock a file; return without the lock after `seconds`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            system.lock(fd, wait=False)
            return
        time.sleep(0.02)


def _is(path: Path, fd: int) -> bool:
    """Whether the open file has this name."""
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def replace_folder(made: Path, target: Path) -> None:
    """Move the folder `made` to `target` and remove an old `target`. The exchange is atomic: a kill leaves one of the
    two complete. Raises OSError."""
    if not target.exists():
        made.rename(target)
    elif _exchanged(made, target):
        shutil.rmtree(made, ignore_errors=True)
    else:
        shutil.rmtree(target)
        made.rename(target)
    fsync_folder(target.parent)


_libc = system.libc()
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of renameat2(2)


def _exchanged(one: Path, other: Path) -> bool:
    """Two names changed places; False where the file system or the C library has no such call. Raises OSError."""
    if _libc is None or not hasattr(_libc, "renameat2"):
        return False
    if not _libc.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(code, os.strerror(code), str(other))


def fsync_folder(path: Path) -> None:
    """Make names that were added to a folder, or taken from it, outlast a power cut. Raises OSError."""
    if system.WINDOWS:  # it opens no folder
        return
    fd = os.open(path, os.O_RDONLY | system.DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def append_or_undo(fd: int, block: bytes, size: int) -> None:
    """Append all of block to the open file of `size` bytes, through to the disk; on OSError the file is as it was."""
    try:
        done = 0
        while done < len(block):
            done += os.write(fd, block[done:])
        getattr(os, "fdatasync", os.fsync)(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise
