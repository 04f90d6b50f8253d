"""Temporary folders: the process that makes one holds a lock in it, and the next that looks there removes what a killed
one left."""

import contextlib
import glob
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ssdrig.base import system

OWNER = "owner"  # a file in the folder, locked while its process lives
MARK = f"temporary folder of ssdrig on {platform.node()}\n".encode()  # in that file; other hosts see no lock of NFS


def make(prefix: str, parent: str | os.PathLike) -> tuple[Path, int]:
    """A new private folder in `parent`, and the descriptor that holds its lock. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:  # the file has its name only when it is locked: another process may sweep meanwhile
        fd = os.open(folder / f"{OWNER}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o600)
        try:
            os.write(fd, MARK)
            if _try_lock(fd):
                os.rename(folder / f"{OWNER}.new", folder / OWNER)
        except BaseException:
            os.close(fd)
            raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, fd


def _try_lock(fd: int) -> bool:
    """Lock it; False where that is not possible: such a folder is never swept, because its file keeps its first
    name."""
    try:
        system.lock(fd)
    except OSError:
        return False
    return True


def remove(folder: Path, lock: int) -> None:
    """Remove a folder of make(), then free its lock. One that is killed meanwhile leaves what sweep() removes."""
    try:
        _empty(folder)
    finally:
        os.close(lock)


def _empty(folder: Path) -> None:
    """Remove a folder, its owner's file last."""
    with contextlib.suppress(OSError):
        for entry in [*os.scandir(folder)]:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != OWNER:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
    shutil.rmtree(folder, ignore_errors=True)


def sweep(prefix: str, parent: str | os.PathLike) -> None:
    """Remove the folders of this prefix in `parent` whose process is gone: their lock is free. A folder that make() of
    this host and user did not make, or without a lock, is not touched."""
    for folder in Path(parent).glob(f"{glob.escape(prefix)}*"):
        with contextlib.suppress(OSError):
            fd = os.open(folder / OWNER, os.O_RDWR | system.NOFOLLOW | system.NONBLOCK | system.CLOEXEC)
            try:
                system.lock(fd, wait=False)
                own = {os.fstat(fd).st_uid, os.lstat(folder).st_uid} == {system.user()}
                if own and not folder.is_symlink() and os.read(fd, len(MARK) + 1) == MARK:
                    _empty(folder)
            finally:
                os.close(fd)


@contextlib.contextmanager
def folder(prefix: str, parent: str | os.PathLike | None = None) -> Iterator[Path]:
    """A folder for the block, in `parent` (default: that of temporary files), after a sweep() there. Raises OSError."""
    parent = parent or tempfile.gettempdir()
    sweep(prefix, parent)
    made, lock = make(prefix, parent)
    try:
        yield made
    finally:
        remove(made, lock)
