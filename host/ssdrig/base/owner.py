"""Whose the files are that a command makes: under sudo they belong to the person who called it, when it has ended."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ssdrig.base.system import pwd, user

_new: list[Path] = []


def person() -> tuple[int, int] | None:
    """(uid, gid) of the person who called sudo; None: this process is not root, or root itself called it."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if user() != 0 or not uid.isdecimal() or not int(uid):
        return None
    return int(uid), int(gid) if gid.isdecimal() else -1


def home() -> Path:
    """The home of the calling user, also under sudo, so that files stored there are found without sudo too."""
    caller = person()
    if caller:
        with contextlib.suppress(KeyError):  # no such user: root's own
            return Path(pwd.getpwuid(caller[0]).pw_dir)
    known = Path(os.path.expanduser("~"))
    return known if known.is_absolute() else Path("/")  # a container's user has none


def base(variable: str, below_home: str) -> Path:
    """A base folder of the XDG specification. A relative path is ignored: state such as a latch would depend on the
    current folder."""
    named = os.environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else home() / below_home


def new(path: str | os.PathLike) -> None:
    """Register a path before it is made: it, its contents and its missing parents will be given to the caller."""
    if person():
        path = Path(path).absolute()
        missing = [folder for folder in path.parents if not folder.exists()]
        _new.append(missing[-1] if missing else path)


@contextlib.contextmanager
def of_new_files() -> Iterator[None]:
    """Wraps a command, or the making of one file. Files registered by new() are given to the calling user when the
    block ends, also by an exception."""
    before = len(_new)
    try:
        yield
    finally:
        caller = person()
        while len(_new) > before:
            path = _new.pop()
            if caller:
                give(path, *caller)


def give(path: Path, uid: int, gid: int) -> None:
    """Give root's files at a path and below it to a user. Links are not followed and files with a second name are left
    alone, so another writer gains nothing by planting them. Files that cannot be given stay root's."""
    with contextlib.suppress(OSError):
        give_one(path, uid, gid)
    if not path.is_symlink() and path.is_dir():
        for _, folders, files, fd in os.fwalk(path, follow_symlinks=False):
            for name in (*folders, *files):
                with contextlib.suppress(OSError):
                    give_one(name, uid, gid, fd)


def give_one(path: str | os.PathLike, uid: int, gid: int, folder: int | None = None) -> None:
    """The same of one file or folder, by its name in an open folder. Raises OSError."""
    _give(os.stat(path, dir_fd=folder, follow_symlinks=False), uid, gid, path, folder)


def _give(status: os.stat_result, uid: int, gid: int, path: str | os.PathLike, folder: int | None = None) -> None:
    if status.st_uid == 0 and (stat.S_ISDIR(status.st_mode) or status.st_nlink == 1):
        os.chown(path, uid, gid, dir_fd=folder, follow_symlinks=False)
