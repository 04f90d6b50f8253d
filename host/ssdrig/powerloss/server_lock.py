"""One ssdrig at a time works on an NBD server. The lock is the server's, however its address is spelled, in a folder
that only root, or only this user, can write: no other user can take or block it."""

import contextlib
import fcntl
import hashlib
import ipaddress
import os
import socket
import stat
from pathlib import Path

from ssdrig.base import owner
from ssdrig.base.errors import UnsafeTarget
from ssdrig.base.terminal import printable
from ssdrig.blockio.nbd import address

ROOTS = Path("/run/ssdrig")
LOOPBACK = "this machine"  # any of its addresses: a server that listens on all of them is one


def names(uri: str) -> list[str]:
    """What the server of an address is known by, the same for every spelling; several where it has several addresses or
    its socket several names. Raises UsageError."""
    where, export = address(uri)
    if isinstance(where, str):
        return [f"{name} {export!r}" for name in _of_socket(where)]
    host, port = where
    return sorted({f"tcp {one} {port} {export!r}" for one in _addresses(host, port)})


def _of_socket(path: str) -> list[str]:
    """By its folder and name, which outlive a server that creates its socket again, and by the socket itself, which may
    have a second name."""
    if "\0" in path:
        return [f"abstract {path!r}"]
    real = os.path.realpath(path)
    locks = []
    with contextlib.suppress(OSError):
        folder = os.stat(os.path.dirname(real))
        locks.append(f"unix {folder.st_dev}:{folder.st_ino} {os.path.basename(real)!r}")
    with contextlib.suppress(OSError):
        itself = os.stat(real)
        locks.append(f"socket {itself.st_dev}:{itself.st_ino}")
    return locks or [f"unix {real!r}"]


def _addresses(host: str, port: int) -> set[str]:
    addresses = set()
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return {host.lower().rstrip(".")}  # the connection reports the error
    for row in rows:
        one = ipaddress.ip_address(str(row[4][0]).partition("%")[0])
        one = getattr(one, "ipv4_mapped", None) or one
        addresses.add(LOOPBACK if _is_ours(one) else str(one))
    return addresses


def _is_ours(one: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if one.is_loopback or one.is_unspecified:
        return True
    family = socket.AF_INET if one.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(one), 0))
    except OSError:
        return False
    return True


class ServerLock(contextlib.ExitStack):
    """What keeps every other ssdrig of this machine off an NBD server until it is closed, or this process ends. Raises
    UnsafeTarget: one is at work there, or no lock can be taken."""

    def __init__(self, uri: str, folder: Path | None = None):
        super().__init__()
        try:
            for name in names(uri):
                self._take(uri, folder or own_folder(), f"nbd-{hashlib.sha256(name.encode()).hexdigest()[:40]}.lock")
        except BaseException:
            self.close()
            raise

    def _take(self, uri: str, folder: Path, name: str) -> None:
        try:
            _made(folder)
            fd = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            seen = f"{folder}: {error.strerror or error}"
            raise UnsafeTarget(f"a lock on {printable(uri)}", seen, "correct the folder or its rights") from error
        self.callback(os.close, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            busy = folder != ROOTS and _held(ROOTS / name)
        except BlockingIOError:
            busy = True
        if busy:
            expected, seen = "a target that no other ssdrig writes to", f"one does, at {printable(uri)}"
            raise UnsafeTarget(expected, seen, "wait for its end")


def own_folder() -> Path:
    """The folder of this user's locks."""
    if os.geteuid() == 0:
        return ROOTS
    return owner.base("XDG_STATE_HOME", ".local/state") / "ssdrig/locks"


def _made(folder: Path) -> None:
    """The folder, which only its owner can write. Raises OSError."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise OSError("another user can write there")


def _held(path: Path) -> bool:
    """Whether root holds this lock, by /proc/locks: only root may open the file."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        where = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
        rows = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        return any(len(row) > 5 and row[1] == "FLOCK" and row[5] == where for row in rows)
    return False
