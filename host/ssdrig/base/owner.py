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
    """The home of the person who called, also under sudo: what is kept there is found again without it."""
    found = person()
    if found:
        with contextlib.suppress(KeyError):  # nobody has this number: root's own
            return Path(pwd.getpwuid(found[0]).pw_dir)
    known = Path(os.path.expanduser("~"))
    return known if known.is_absolute() else Path("/")  # a container's user has none


def base(variable: str, below_home: str) -> Path:
    """A base folder as the XDG specification has it: a relative one is ignored. Else what is kept, such as a latch,
    would be another in each folder that a command is started in."""
    named = os.environ.get(variable, "")
    return Path(named) if os.path.isabs(named) else home() / below_home


def new(path: str | os.PathLike) -> None:
    """Called before a file or folder is made: it, all that will lie in it, and the folders made for it are new."""
    if person():
        path = Path(path).absolute()
        missing = [folder for folder in path.parents if not folder.exists()]
        _new.append(missing[-1] if missing else path)


@contextlib.contextmanager
def of_new_files() -> Iterator[None]:
    """Around a command, or what makes a file that must not wait for its end: what is new inside belongs to the person
    at the end, however it ends."""
    before = len(_new)
    try:
        yield
    finally:
        found = person()
        while len(_new) > before:
            path = _new.pop()
            if found:
                give(path, *found)


def give(path: Path, uid: int, gid: int) -> None:
    """Root's files at a path and below it become a person's. No link is followed, and no file with a second name is
    touched: whoever may write there meanwhile gains nothing by it. What cannot be given stays root's."""
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


def _give(found: os.stat_result, uid: int, gid: int, path: str | os.PathLike, folder: int | None = None) -> None:
    if found.st_uid == 0 and (stat.S_ISDIR(found.st_mode) or found.st_nlink == 1):
        os.chown(path, uid, gid, dir_fd=folder, follow_symlinks=False)
