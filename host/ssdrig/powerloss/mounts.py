"""The process that mounts file systems of the drive and starts their clients: `python -m ssdrig.powerloss.mounts`.
A request is a line of JSON on stdin, {"do": name of an action, …}; its answer is one on stdout, {"error": [expected,
seen, do]} where it failed.

Each file system is on a loop device over its part of the drive, which is opened by the path that holds it
(drive/guard.py): reads and writes pass it by direct I/O, a FLUSH as one, FUA as a write and a FLUSH. Mounts are
seen by this process and its children only, and end with it, as the loop devices do.

Ordinary clients of a file system: a log of fsynced appends, and SQLite with each of its journals. What each has
written so far is in its Report, which outlives it; `left` shows what part of it survived.

A client writes records 1, 2, 3, …, one after the other, each with contents that follow from its number. It reports that
it begins one, then that the file system, or SQLite, has acknowledged it. Linux only; few imports, because the process
that mounts (mounts.py) starts one of each on each file system."""

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ssdrig.base import prctl
from ssdrig.base.files import fsync_folder
from ssdrig.plan.kinds.cut_filesystems import KINDS

APPENDS, WAL, ROLLBACK = "appends", "sqlite-wal", "sqlite-rollback"
HEAD = struct.Struct("<4sIII")  # MAGIC, session, record, bytes of the body
MAGIC = b"apnd"
MOST_BODY = 8192
RECORDS_OF_FILE = 64
# so a session of any length fits into the space of one file system (filesystems.SIZE_BYTES), twice
MOST_RECORDS = 12_000
PAUSE_S = 0.001  # between two records at least
FILE, DATABASE = "log-{:05}", "entries.db"
# EXTRA: after FULL's commit the rollback journal's removal may be lost, and with it the transaction
# (sqlite.org/pragma.html, "synchronous")
JOURNALS = {WAL: ("WAL", "FULL"), ROLLBACK: ("DELETE", "EXTRA")}
CHECKPOINT_PAGES = 50
NAMES = (APPENDS, WAL, ROLLBACK)


class Report:
    """The records a client has begun and had acknowledged, in memory that outlives it. Rows of (record,
    CLOCK_MONOTONIC in ns), the record negative where it begins."""

    ROW = struct.Struct("<qq")

    def __init__(self) -> None:
        self._file = os.memfd_create("report")

    def begins(self, record: int) -> None:
        os.write(self._file, self.ROW.pack(-record, time.monotonic_ns()))

    def acknowledged(self, record: int) -> None:
        os.write(self._file, self.ROW.pack(record, time.monotonic_ns()))

    def read(self) -> tuple[int, list[int]]:
        """(the last record that was begun, when each was acknowledged)."""
        size = os.fstat(self._file).st_size // self.ROW.size * self.ROW.size
        rows = list(self.ROW.iter_unpack(os.pread(self._file, size, 0)))
        return max((-n for n, _ in rows if n < 0), default=0), [t_ns for n, t_ns in rows if n > 0]

    def close(self) -> None:
        os.close(self._file)


class Left(NamedTuple):
    """`whole`: records that are there as they were written, as [first, last]; `differs`: others that are there in part
    or with other contents; `extra`: more than was ever begun, in bytes or rows; `why`: what cannot be read, or is not
    consistent in itself, "" where all is."""

    whole: list[list[int]]
    differs: list[int]
    extra: int
    why: str


def body(session: int, record: int) -> bytes:
    """What a record holds."""
    length = 64 + hashlib.blake2b(struct.pack("<II", session, record), digest_size=2).digest()[0] ** 2 % MOST_BODY
    return hashlib.shake_128(struct.pack("<III", 1, session, record)).digest(length)


def framed(session: int, record: int) -> bytes:
    """The same as a line of the log."""
    content = body(session, record)
    return HEAD.pack(MAGIC, session, record, len(content)) + content


def write(client: str, folder: str, session: int, report: Report, pause: Callable[[], Any]) -> None:
    """Write records until the drive is gone: an OSError or sqlite3.Error. `pause` follows each."""
    os.mkdir(folder)
    writer = _append(folder, session) if client == APPENDS else _insert(folder, session, *JOURNALS[client])
    for record in range(1, MOST_RECORDS + 1):
        if record == 1:
            next(writer)
            fsync_folder(Path(folder))
            fsync_folder(Path(folder).parent)
        report.begins(record)
        writer.send(record)
        report.acknowledged(record)
        pause()


def left_clients(client: str, folder: str, session: int, begun: int) -> Left:
    """The surviving records of 1 to `begun`. Whatever else the folder holds, it does not raise."""
    try:
        state = _appended(folder, session, begun) if client == APPENDS else _inserted(folder, session, begun)
    except (OSError, sqlite3.Error, ValueError, TypeError) as error:
        state = Left([], [], 0, f"{type(error).__name__}: {error}")
    return state


# ---- a log


def _append(folder: str, session: int):
    """Appends to a file, then fsync; of each new file its folder, too."""
    file = -1
    record = yield
    try:
        while True:
            if (record - 1) % RECORDS_OF_FILE == 0:
                if file >= 0:
                    os.close(file)
                name = os.path.join(folder, FILE.format((record - 1) // RECORDS_OF_FILE))
                file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
            data = framed(session, record)
            if os.write(file, data) != len(data):
                raise OSError("written in part")
            if record % 2:
                os.fsync(file)
            else:
                os.fdatasync(file)
            if (record - 1) % RECORDS_OF_FILE == 0:
                fsync_folder(Path(folder))
            record = yield
    finally:
        if file >= 0:
            os.close(file)


def _appended(folder: str, session: int, begun: int) -> Left:
    whole, differs, extra, why = [], [], 0, []
    names = set(os.listdir(folder))
    for first in range(1, begun + 1, RECORDS_OF_FILE):
        name, at, last = FILE.format((first - 1) // RECORDS_OF_FILE), 0, min(begun, first + RECORDS_OF_FILE - 1)
        if name not in names:
            continue
        names.discard(name)
        lines = {record: framed(session, record) for record in range(first, last + 1)}
        size = sum(map(len, lines.values()))
        try:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read(size)
                extra += max(0, os.fstat(file.fileno()).st_size - size)
        except OSError as error:  # a file system that keeps checksums reports altered data
            differs += range(first, last + 1)
            why.append(f"{name}: {error.strerror}")
            continue
        for record, data in lines.items():
            seen, at = content[at : at + len(data)], at + len(data)
            if seen == data:
                whole.append(record)
            elif seen:
                differs.append(record)
    return Left(ranges(whole), differs, extra + len(names), "; ".join(why))


# ---- a database


def _insert(folder: str, session: int, journal: str, synchronous: str):
    """One transaction for each record: its row, and a counter in another table."""
    with contextlib.closing(sqlite3.connect(os.path.join(folder, DATABASE), isolation_level=None)) as database:
        for line in (
            f"PRAGMA journal_mode = {journal}",
            f"PRAGMA synchronous = {synchronous}",
            f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}",
            "CREATE TABLE entries (record INTEGER PRIMARY KEY, body BLOB)",
            "CREATE TABLE counter (records INTEGER)",
            "INSERT INTO counter VALUES (0)",
        ):
            database.execute(line)
        while True:
            record = yield
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT INTO entries VALUES (?, ?)", (record, body(session, record)))
            database.execute("UPDATE counter SET records = ?", (record,))
            database.execute("COMMIT")


def _inserted(folder: str, session: int, begun: int) -> Left:
    path = os.path.join(folder, DATABASE)
    if not os.path.exists(path):
        raise OSError(f"no {DATABASE}")  # connect() would make one
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        checked = [str(row[0]) for row in database.execute("PRAGMA integrity_check(3)")]
        why = [] if checked == ["ok"] else [f"integrity_check: {' '.join('; '.join(checked).split())}"]
        rows = database.execute("SELECT record, body FROM entries ORDER BY record").fetchall()
        [(count,)] = database.execute("SELECT records FROM counter").fetchall()
    known = [(record, content) for record, content in rows if 1 <= record <= begun]
    whole = [record for record, content in known if content == body(session, record)]
    differs = sorted({record for record, _ in known} - set(whole))
    last = rows[-1][0] if rows else 0
    if count != last:  # one transaction writes both
        why.append(f"the counter is {count}, the last row {last}")
    return Left(ranges(whole), differs, len(rows) - len(known), "; ".join(why))


def ranges(numbers: list[int]) -> list[list[int]]:
    """Ascending numbers as [[first, last], …]."""
    out: list[list[int]] = []
    for number in numbers:
        if out and out[-1][1] == number - 1:
            out[-1][1] = number
        else:
            out.append([number, number])
    return out


LOOP_CONTROL, LOOP_CTL_GET_FREE, LOOP_CONFIGURE = "/dev/loop-control", 0x4C82, 0x4C0A  # linux/loop.h, Linux 5.8
AUTOCLEAR, DIRECT_IO = 4, 16
CONFIG = struct.Struct("<II24xQQ12xI176x64x")  # fd, block size; offset, size limit; flags
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8  # linux/mount.h
MS_REC, MS_PRIVATE, CLONE_NEWNS, MNT_DETACH = 0x4000, 0x40000, 0x20000, 2
FIRST_S = 120.0  # for each client to have its first record acknowledged
FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC  # whatever a drive makes of it
TRIES = 5
UNMOUNT_S = 10.0  # for what a killed client had open
PROGRAM_S = 300.0
_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """expected, seen, do, as in errors.py."""


class Part:
    """One file system. place: {"kind", "options", "offset", "size"} in bytes of the drive; folder: to mount it at."""

    def __init__(self, place: dict, folder: str):
        self.name, self.kind, self.options = place["kind"], KINDS[place["kind"]], place["options"]
        self.offset, self.size, self.folder = place["offset"], place["size"], folder
        self.loop, self.node, self.mounted, self.seen_options, self._since_bytes = -1, "", False, "", 0
        os.mkdir(folder)

    def attach(self, drive: str, block_bytes: int) -> None:
        """Make its loop device over the drive, a path that opens it."""
        backing = os.open(drive, os.O_RDWR)
        try:
            if not stat.S_ISBLK(os.fstat(backing).st_mode):
                raise Failed("a block device to mount", "something else", "name a drive of this machine")
            config = CONFIG.pack(backing, block_bytes, self.offset, self.size, AUTOCLEAR | DIRECT_IO)
            for last in (False,) * (TRIES - 1) + (True,):
                self.loop, self.node = free_loop()
                try:
                    fcntl.ioctl(self.loop, LOOP_CONFIGURE, config)
                    self._since_bytes = self._counted_bytes()
                    return
                except OSError as error:
                    os.close(self.loop)
                    self.loop = -1
                    if error.errno != errno.EBUSY or last:  # another program was quicker
                        raise
        finally:
            os.close(backing)

    def detach(self) -> None:
        if self.loop >= 0:
            os.close(self.loop)
        self.loop = -1

    def make(self) -> None:
        run([*self.kind.make, self.node])

    def mount(self) -> str:
        """Why it cannot be mounted, "" where it is."""
        what = (self.node.encode(), self.folder.encode(), self.name.encode())
        if _libc.mount(*what, ctypes.c_ulong(FLAGS), self.options.encode() or None) != 0:
            return os.strerror(ctypes.get_errno())
        self.mounted, self.seen_options = True, options_of(self.folder)
        return ""

    def unmount(self) -> bool:
        """Whether nothing of it is left in the kernel."""
        if not self.mounted:
            return True
        deadline = time.monotonic() + UNMOUNT_S
        while not (ended := _libc.umount2(self.folder.encode(), 0) == 0):
            if ctypes.get_errno() != errno.EBUSY or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if not ended:
            _libc.umount2(self.folder.encode(), MNT_DETACH)
        self.mounted = False
        return ended

    def check(self) -> str:
        """What its checker complains of, while it is not mounted; "" for nothing."""
        done = subprocess.run(
            [*self.kind.check, self.node], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_S
        )
        lines = (done.stdout + done.stderr).decode(errors="replace").split("\n")
        words = "; ".join(line.strip() for line in lines if line.strip())
        return "" if done.returncode == 0 else f"exit code {done.returncode}: {words[-500:]}"

    def written_bytes(self) -> int:
        """What went to the drive since its loop device was made."""
        return self._counted_bytes() - self._since_bytes

    def _counted_bytes(self) -> int:
        with open(f"/sys/block/{os.path.basename(self.node)}/stat") as file:
            return int(file.read().split()[6]) * 512


class Mounts:
    """The actions, named as a request names them, with the rest of the request as keywords."""

    def __init__(self, folder: str):
        self._folder = folder
        self._parts: dict[str, Part] = {}
        self._running: list[tuple[int, Report, dict]] = []
        self._drive, self._block_bytes, self._written = "", 512, 0

    def make(self, drive: str, block_bytes: int, places: list[dict]) -> dict:
        """Make the file systems again in their places."""
        self._drive, self._block_bytes = drive, block_bytes
        for place in places:
            name = place["kind"]
            if name not in self._parts:
                self._parts[name] = Part(place, os.path.join(self._folder, name))
            with self._attached([self._parts[name]]):
                self._parts[name].make()
        return {}

    def start(self, drive: str, session: int, at_rest: int) -> dict:
        """Mount all, remove files of other sessions, except `at_rest`, and start a client of each kind on each. Returns
        when each has a record acknowledged."""
        self.down()  # of an unfinished session
        self._drive, keep = drive, str(at_rest)
        for part in self._parts.values():
            part.attach(self._drive, self._block_bytes)
            if why := part.mount():
                raise Failed(f"{part.name} to be mounted as it was before", why, "see the kernel's log (dmesg)")
            for name in os.listdir(part.folder):
                if name.isdecimal() and name != keep:
                    shutil.rmtree(os.path.join(part.folder, name))
            os.mkdir(os.path.join(part.folder, str(session)))
            fsync_folder(Path(part.folder))
        for part in self._parts.values():
            for client in NAMES:
                folder = os.path.join(part.folder, str(session), client)
                report = Report()
                labels = {"filesystem": part.name, "client": client, "session": session}
                self._running.append((started(client, folder, session, report), report, labels))
        deadline = time.monotonic() + FIRST_S
        for pid, report, labels in self._running:
            while not report.read()[1]:
                if os.waitpid(pid, os.WNOHANG)[0] or time.monotonic() > deadline:
                    seen = "it ended before" if time.monotonic() < deadline else f"none in {FIRST_S:g} s"
                    what = f"a first record of {labels['client']} on {labels['filesystem']}"
                    raise Failed(what, seen, "see the kernel's log (dmesg)")
                time.sleep(0.01)
        return {}

    def down(self) -> dict:
        """End the clients and unmount all: {"clients": reports, "down_ns": since when nothing of it is in the kernel,
        None where something is}."""
        for pid, _, _ in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reports = []
        for pid, report, labels in self._running:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            begun, acked_ns = report.read()
            report.close()
            reports.append({**labels, "begun": begun, "acked_ns": acked_ns})
        self._running = []
        ended = True
        for part in self._parts.values():
            if part.loop >= 0:
                with contextlib.suppress(OSError):
                    self._written += part.written_bytes()
            ended = part.unmount() and ended
            part.detach()
        return {"clients": reports, "down_ns": time.monotonic_ns() if ended else None}

    def look(self, drive: str, asked: list[dict]) -> dict:
        """Mount all, check the data of the requested clients, unmount, and check: {"clients": as
        clients.Left has it, "filesystems", "written_bytes": by all file systems since this was asked last}."""
        self._drive, result = drive, dict[str, Any](clients=[], filesystems=[])
        for part in self._parts.values():
            with self._attached([part]):
                why = part.mount()
                for entry in asked:
                    if entry["filesystem"] == part.name and not why:
                        where = os.path.join(part.folder, str(entry["session"]), entry["client"])
                        left = left_clients(entry["client"], where, entry["session"], entry["begun"])
                        named = {key: entry[key] for key in ("filesystem", "client", "session")}
                        result["clients"].append(named | left._asdict())
                mounted, options = not why, part.seen_options
                unmounted = part.unmount()
                check = part.check() if unmounted else "it cannot be unmounted"
            state = {"filesystem": part.name, "mounted": mounted, "why": why, "options": options, "check": check}
            result["filesystems"].append(state)
        result["written_bytes"], self._written = self._written, 0
        return result

    @contextlib.contextmanager
    def _attached(self, parts: list[Part]):
        try:
            for part in parts:
                part.attach(self._drive, self._block_bytes)
            yield
        finally:
            for part in parts:
                if part.loop >= 0:
                    self._written += part.written_bytes()
                part.unmount()
                part.detach()


def free_loop() -> tuple[int, str]:
    """(descriptor, node) of a loop device that nothing uses."""
    control = os.open(LOOP_CONTROL, os.O_RDWR)
    try:
        node = f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
    finally:
        os.close(control)
    return os.open(node, os.O_RDWR), node


def options_of(folder: str) -> str:
    """The kernel's options of the file systems mounted there."""
    with open("/proc/self/mounts") as file:
        rows = [line.split() for line in file]
    return next((row[3] for row in reversed(rows) if row[1] == folder), "")


def run(words: list[str]) -> None:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_S)
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        seen = f"exit code {done.returncode}: {lines[-1] if lines else ''}"
        raise Failed(f"{words[0]} to make a file system", seen, "try it by hand")


def started(client: str, folder: str, session: int, report: Report) -> int:
    """The process id of a client at work."""
    parent = os.getpid()
    return os.fork() or at_work(parent, client, folder, session, report)


def at_work(parent: int, client: str, folder: str, session: int, report: Report) -> NoReturn:
    with contextlib.suppress(BaseException):  # an error is how each session ends
        prctl.die_with_parent(parent)
        write(client, folder, session, report, lambda: time.sleep(PAUSE_S))
        signal.pause()  # it has written enough: nothing more is under way
    os._exit(0)


def main() -> None:
    prctl.die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends ssdrig in order
    with tempfile.TemporaryDirectory(prefix="ssdrig-mounts-") as folder:
        error = [] if apart(folder) else ["its own mounts", os.strerror(ctypes.get_errno()), "run it as root"]
        mounts = Mounts(folder)
        for line in sys.stdin:
            request = json.loads(line)
            answer: dict = {"error": error}
            if not error:
                try:
                    answer = getattr(mounts, request.pop("do"))(**request)
                except Failed as failed:
                    answer = {"error": failed.args}
                except (OSError, subprocess.SubprocessError) as failed:
                    answer = {"error": ["file systems on the drive", str(failed), "see the kernel's log (dmesg)"]}
            print(json.dumps(answer), flush=True)
        mounts.down()
        _libc.umount2(folder.encode(), MNT_DETACH)


def apart(folder: str) -> bool:
    """Give this process its own mounts, with a tmpfs at `folder`."""
    if _libc.unshare(CLONE_NEWNS) or _libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None):
        return False
    return _libc.mount(b"tmpfs", folder.encode(), b"tmpfs", ctypes.c_ulong(0), None) == 0


if __name__ == "__main__":
    main()
