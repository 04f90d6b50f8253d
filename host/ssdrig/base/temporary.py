"""Temporary folders: the process that makes one holds a lock in it, and the next that looks there removes what a killed
one left."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ssdrig.base import system

OWNER = "owner"  # a file in the folder, locked while its process lives


def make(prefix: str, parent: str | os.PathLike) -> tuple[Path, int]:
    """A new private folder in `parent`, and the descriptor that holds its lock. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:  # the file has its name only when it is locked: another process may sweep meanwhile
        fd = os.open(folder / f"{OWNER}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL | system.CLOEXEC, 0o600)
        try:
            with contextlib.suppress(OSError):  # where no lock is possible, none is removed either
                system.lock(fd)
            os.rename(folder / f"{OWNER}.new", folder / OWNER)
        except BaseException:
            os.close(fd)
            raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder, fd


def remove(folder: Path, lock: int) -> None:
    """Remove a folder of make(), then free its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def sweep(prefix: str, parent: str | os.PathLike) -> None:
    """Remove the folders of this prefix in `parent` whose process is gone: their lock is free. A folder without a lock,
    or of another user, is not touched."""
    for folder in Path(parent).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            fd = os.open(folder / OWNER, os.O_RDWR | system.NOFOLLOW | system.NONBLOCK | system.CLOEXEC)
            try:
                system.lock(fd, wait=False)
                if os.fstat(fd).st_uid == system.user() and not folder.is_symlink():
                    shutil.rmtree(folder, ignore_errors=True)
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
