"""Ordinary clients of a file system: a log of fsynced appends, and SQLite with each of its journals. What each has
written so far is in its Report, which outlives it; `left` shows what part of it survived.

A client writes records 1, 2, 3, …, one after the other, each with contents that follow from its number. It reports that
it begins one, then that the file system, or SQLite, has acknowledged it. Linux only; few imports, because the process
that mounts (mounts.py) starts one of each on each file system."""

import contextlib
import hashlib
import os
import sqlite3
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ssdrig.base.files import fsync_folder

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


def left(client: str, folder: str, session: int, begun: int) -> Left:
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
