"""The run folder (schemas/journal.md, schema 1): written by one process through `Journal`, read by anyone.

Appends go straight to the kernel, so a killed writer loses nothing; the disk has them after `sync`, which runs
automatically at least once a second. Readers need no lock and may follow a run that is being written: they return
whole lines and records only, and the offset to continue from.
"""

import contextlib
import errno
import json
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from ssdrig.base import files, owner, system, temporary
from ssdrig.base.errors import JournalError
from ssdrig.base.files import fsync_folder, write_atomically
from ssdrig.runs import imported, integrity, rigbin
from ssdrig.runs.integrity import sealed

if TYPE_CHECKING:
    from ssdrig.runs import rigrecords

SCHEMA = 1
END_STATES = ("complete", "failed", "interrupted")
HALF_MADE = ".run-"  # begins the name of a folder in which a run is being made
SYNC_S = 0.5
NAMES = 10  # that are tried for a new run
LONG_BYTES = 100_000_000  # of a rig.bin
RESERVE = "reserve"  # a file of RESERVE_BYTES, which close() frees so that run.end fits on a full disk
RESERVE_BYTES = 64 << 10


# ---- writing


def create(runs_dir: str | os.PathLike, header: dict) -> "Journal":
    """Make a new run folder under runs_dir (made if absent) and open it for writing. It appears complete or not at all.

    `header` is the content of run.json; `schema` is set here, `started` and `run` (the folder's name) where absent.
    Raises JournalError if the folder cannot be made."""
    runs = Path(runs_dir)
    header = {"schema": SCHEMA, **header}
    header.setdefault("started", {"t_ns": time.monotonic_ns(), "utc_ns": time.time_ns()})
    names = [header["run"]] if "run" in header else [_name(header) for _ in range(NAMES)]
    if header["schema"] != SCHEMA or Path(names[0]).name != names[0]:
        raise JournalError(
            f"schema {SCHEMA} and a plain folder name", f"{header['schema']}, {names[0]!r}", "correct the header"
        )
    for name in names:
        try:
            return make(runs / name, {**header, "run": name})
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY) and name != names[-1]:
                continue  # of 24 SIMULATED drives that are started in one second, two may draw the same digits
            raise JournalError(
                f"a new run folder {runs / name}", error.strerror or str(error), "choose another --runs, or make room"
            ) from error
    raise AssertionError("names is never empty")


def make(path: Path, header: dict, *locks: int) -> "Journal":
    """A new folder at `path` with this run.json, open for writing, whole or not at all; `locks` are held with its own.
    Raises OSError; the locks are given back then, too."""
    owner.new(path)
    held, text = [*locks], json.dumps(header, indent=1, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.folder(HALF_MADE, path.parent) as hidden:
            partial = hidden / path.name
            partial.mkdir()
            held.append(files.lock_file(partial / "lock"))
            system.lock(held[-1], wait=False)
            for name in ("events.jsonl", "rig.bin"):
                (partial / name).touch()
            (partial / RESERVE).write_bytes(os.urandom(RESERVE_BYTES))  # not sparse, not compressed away
            write_atomically(partial / "run.json", text.encode(errors="replace"))
            if path.exists():  # rename would replace an empty folder
                raise FileExistsError(17, "File exists")
            partial.rename(path)
        fsync_folder(path.parent)
    except OSError:
        for lock in held:
            os.close(lock)
        raise
    return Journal(path, *held)


def _name(header: dict) -> str:
    """<UTC start>-<method>-<drive>-<4 random hex>"""
    utc = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(header["started"]["utc_ns"] // 10**9))
    drive = header.get("drive", {})
    words = [
        header.get("method", {}).get("name", "run"),
        drive.get("preset") or drive.get("serial") or drive.get("model") or "drive",
    ]
    return "-".join(
        [utc, *(re.sub(r"[^A-Za-z0-9]+", "-", str(w)).strip("-") or "x" for w in words), secrets.token_hex(2)]
    )


class Journal:
    """A run folder that is being written. All methods may be called from any thread.

    Raises JournalError when the disk refuses; earlier data stays readable."""

    def __init__(self, path: Path, *locks: int):
        self.path = Path(path)
        self._locks = locks
        self._mutex = threading.RLock()
        self._error: JournalError | None = None
        self._end: dict | None = None
        self._synced = {}
        self._lines = 0  # of events.jsonl
        self.heard: Callable[[dict], object] | None = None  # called with each written event
        self._files = {}  # name -> [descriptor, length]
        for name in ("events.jsonl", "rig.bin"):
            fd = os.open(self.path / name, os.O_WRONLY | os.O_APPEND)
            self._files[name] = [fd, os.fstat(fd).st_size]
            self._synced[name] = 0
        self._closing = threading.Event()
        self._syncer = threading.Thread(target=self._sync_often, name="journal-sync", daemon=True)
        self._syncer.start()

    def event(self, kind: str, t_ns: int | None = None, **fields) -> dict:
        """Append one line to events.jsonl. t_ns: CLOCK_MONOTONIC, now unless given. Returns the line's object."""
        with self._mutex:  # the stamp is taken inside, so that lines lie in the order of their times
            line = {"t_ns": time.monotonic_ns() if t_ns is None else t_ns, "kind": kind, **fields}
            self._append("events.jsonl", sealed(line, self._lines))
            self._lines += 1
        if self.heard:  # outside the lock, so that a stopped terminal does not block other writers
            self.heard(line)
        return line

    def record(self, kind: int, payload: bytes, t_ns: int) -> None:
        """Append one record to rig.bin."""
        self._append("rig.bin", rigbin.encode(kind, payload, t_ns))

    def record_all(self, rows: list[tuple[int, bytes, int]]) -> None:
        """Append records (kind, payload, t_ns) to rig.bin with one write."""
        if rows:
            self._append("rig.bin", b"".join([rigbin.encode(*row) for row in rows]))

    def sync(self) -> tuple[int, int]:
        """Bring all appends to the disk. Returns how many bytes of events.jsonl and of rig.bin are safe there."""
        with self._mutex:
            self._raise_earlier()
            target = [(name, fd, length) for name, (fd, length) in self._files.items()]
        try:
            for name, fd, length in target:  # outside the mutex: appends go on while the disk works
                if length > self._synced[name]:
                    getattr(os, "fdatasync", os.fsync)(fd)
                    self._synced[name] = max(length, self._synced[name])
        except OSError as error:
            with self._mutex:
                if self._end is None:  # otherwise closed, and synced, meanwhile
                    self._fail(error)
        return self._synced["events.jsonl"], self._synced["rig.bin"]

    def put(self, relpath: str, data: bytes) -> Path:
        """Write a whole file of the run folder: after this it is on the disk, before it was not there at all."""
        target = self.path / relpath
        if not target.resolve().is_relative_to(self.path.resolve()):
            raise JournalError(f"a path inside {self.path}", relpath, "name a file of the run folder")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, data)
        except OSError as error:
            raise JournalError(
                f"room and rights for {target}", error.strerror or str(error), "make room on the disk"
            ) from error
        return target

    def close(self, state: str, why: str | None = None, exit_code: int = 0, t_ns: int | None = None) -> dict:
        """Write the sums of all files and the run.end line, sync, give the lock back; the reserve makes room for that
        on a full disk. A run from which the disk refused anything is not complete, whatever was asked for: it failed.
        A second call changes nothing. Returns the line's object.

        t_ns: time of these lines, CLOCK_MONOTONIC; None: now."""
        if state not in END_STATES:
            raise ValueError(f"state {state!r} is not one of {END_STATES}")
        with self._mutex:
            if self._end is not None:
                return self._end
            with contextlib.suppress(OSError):
                (self.path / RESERVE).unlink(missing_ok=True)
            if self._error and state == "complete":
                state, why, exit_code = "failed", str(self._error), self._error.exit_code
            self._error = None  # there may be room now; each append has left whole lines only
            ends_ns = time.monotonic_ns() if t_ns is None else t_ns
            end = {"t_ns": ends_ns, "kind": "run.end", "state": state, "why": why, "exit_code": exit_code}
            try:
                with contextlib.suppress(OSError, JournalError):
                    self.event("sums", t_ns, files=integrity.sums(self.path))
                self._error = None
                end = self.event("run.end", t_ns, state=state, why=why, exit_code=exit_code)
                self.sync()
            finally:
                self._end = end
                self._closing.set()
                for fd, _ in self._files.values():
                    os.close(fd)
                for lock in self._locks:
                    os.close(lock)
        self._syncer.join()
        return end

    def _append(self, name: str, data: bytes) -> None:
        with self._mutex:
            self._raise_earlier()
            if self._end is not None:
                raise JournalError(f"an open run at {self.path}", "it was closed", "append before close()")
            file = self._files[name]
            try:
                written = 0
                while written < len(data):
                    written += os.write(file[0], data[written:] if written else data)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(file[0], file[1])  # no half record stays
                self._fail(error)
            file[1] += len(data)

    def _fail(self, error: OSError) -> None:
        self._error = JournalError(
            f"room on the disk for {self.path}", error.strerror or str(error), "make room; earlier data is safe"
        )
        raise self._error from error

    def _raise_earlier(self) -> None:
        if self._error:
            raise self._error

    def _sync_often(self) -> None:
        while not self._closing.wait(SYNC_S):
            try:
                self.sync()
            except JournalError:
                return  # every later append raises it where someone listens


# ---- reading


def open_run(run: str | os.PathLike) -> dict:
    """The header (run.json) of a run folder, with an imported recording as its rig.

    Raises JournalError if it is missing, has another schema, or the folder has an integrity.oddity()."""
    if os.path.isfile(Path(run) / "run.json") and (odd := integrity.oddity(Path(run))):
        raise JournalError(f"only what a run writes in {run}", odd, "remove it; no run makes one")
    try:
        header = integrity.document_of(Path(run) / "run.json")
        schema = header["schema"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        seen = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
        do = "give the path of a run folder"
        if os.path.isfile(run):  # results of fio, as people have them
            do = "results of fio become a run by ./ssdrig import FILE"
        raise JournalError(f"a run folder with a run.json at {run}", seen, do) from error
    if schema != SCHEMA:
        raise JournalError(
            f"journal schema {SCHEMA}",
            f"schema {schema!r:.40} in the run.json of {run}",
            "read it with the ssdrig that wrote it, or a newer one",
        )
    return imported.header(Path(run), header)


# what the readers of a run.json rely on: (object, key, kinds, least, most)
_HEADER: tuple[tuple[str, str, Any, tuple[int, int] | None], ...] = (
    ("", "run", str, None),
    ("started", "t_ns", int, (0, 1 << 62)),
    ("started", "utc_ns", int, (0, 1 << 62)),
    ("drive", "time_dilation", (int, NoneType), (1, 1_000_000)),
    *(("drive", key, (str, NoneType), None) for key in ("model", "serial", "preset", "firmware", "interface")),
    *(("drive", key, (str, NoneType), None) for key in ("target", "power_off", "power_on")),
    *(("drive", key, (int, NoneType), (0, 1 << 62)) for key in ("capacity_bytes", "raw_nand_bytes")),
    *(("drive", key, (int, float, NoneType), (0, 1 << 62)) for key in ("rated_write_bytes", "rated_pe_cycles")),
    ("drive", "power_states", (list, NoneType), None),
    ("drive", "placement_handles", (list, NoneType), None),
    ("drive", "logical_block_bytes", (int, NoneType), (1, 1 << 40)),
    *(("plan", key, (str, NoneType), None) for key in ("name", "variant", "text")),
    ("plan", "params", (dict, NoneType), None),
    ("method", "name", (str, NoneType), None),
    ("method", "op_percent", (int, float, NoneType), (0, 100)),
    *(("method", key, (int, NoneType), (0, 1 << 40)) for key in ("duration_s", "zoom_s", "smart_interval_s", "idle_s")),
    *(
        ("method", key, (int, NoneType), (0, 1 << 62))
        for key in ("tested_bytes", "block_bytes", "fill_block_bytes", "queue_depth", "seed")
    ),
)


def run_header(run: str | os.PathLike) -> dict:
    """open_run() of a folder that is to be analysed: its values have the kinds that the analysis relies on.

    Raises JournalError."""
    header = open_run(run)
    wrong = [name for name in ("started", "drive", "method") if not isinstance(header.get(name), dict)]
    wrong += [
        name for name in ("rig", "plan", "host", "review", "resumed") if not isinstance(header.get(name), dict | None)
    ]
    if wrong := wrong or wrong_values(header):
        raise JournalError(
            f"a whole run.json in {run}",
            f"no usable {', '.join(wrong)}",
            "it is damaged: take it from a copy of the run",
        )
    return header


def wrong_values(header: Mapping) -> list[str]:
    """Names of the values in a run.json, or a similar header, whose types are not those that its readers rely on."""
    wrong = []
    for part, key, kinds, bounds in _HEADER:
        if part not in ("", *header):
            continue
        value = ((header[part] or {}) if part else header).get(key)
        good = isinstance(value, kinds) and not isinstance(value, bool)
        if not good or (bounds and value is not None and not bounds[0] <= value <= bounds[1]):
            wrong.append(f"{part}.{key}".strip("."))
    return wrong


def events(run: str | os.PathLike) -> list[dict]:
    """All whole events of a run, in the order written. Damaged lines are left out; integrity.damage counts them."""
    return read_events(run)[0]


def read_events(run: str | os.PathLike, from_offset: int = 0) -> tuple[list[dict], int, int]:
    """Events from a byte offset on. Returns (events, offset to continue from, bytes after it that are not a
    whole line)."""
    read = integrity.lines(_bytes_from(run, "events.jsonl", from_offset))
    return read.events, from_offset + read.whole_bytes, read.left_bytes


def state(run: str | os.PathLike) -> str:
    """complete, failed or interrupted according to run.end; without it, running while the lock is held, otherwise
    died."""
    held = lock_is_held(run)  # before the events are read: a run that ends in between is not called died
    last = events(run)[-1:]
    if last and last[0]["kind"] == "run.end" and last[0].get("state") in END_STATES:
        return last[0]["state"]
    return "running" if held else "died"


def lock_is_held(run: str | os.PathLike) -> bool:
    """Whether a process writes the run, or continues it."""
    return files.is_locked(Path(run) / "lock")


def records(
    run: str | os.PathLike, from_offset: int = 0, at_most_bytes: int = -1, compiled: bool = False
) -> "rigrecords.Records":
    """Whole records of rig.bin from a byte offset on; to follow a live run, or to read a long one in pieces of
    at_most_bytes, call again with `next_offset`. compiled: for a rig.bin that is_long()."""
    from ssdrig.runs import rigrecords  # NumPy, whose import takes longer than a command that reads no samples

    in_a_row = None
    if compiled:
        from ssdrig.runs import walk  # not with this module, see is_long()

        in_a_row = walk.in_a_row
    return rigrecords.decode(_bytes_from(run, "rig.bin", from_offset, at_most_bytes), from_offset, in_a_row)


def is_long(run: str | os.PathLike) -> bool:
    """Whether rig.bin is long enough for compiled code to be worth its import, and a process its start."""
    try:
        return (Path(run) / "rig.bin").stat().st_size >= LONG_BYTES
    except OSError:
        return False


def _bytes_from(run: str | os.PathLike, name: str, offset: int, at_most: int = -1) -> bytes:
    try:
        fd = os.open(Path(run) / name, system.READ)
        with open(fd, "rb") as f:
            left = os.fstat(fd).st_size - offset
            if not stat.S_ISREG(os.fstat(fd).st_mode) or at_most < 0 and left > integrity.most_bytes(name):
                raise OSError(errno.EFBIG, "not a regular file, or far too long")
            f.seek(offset)
            return f.read(at_most)
    except FileNotFoundError:
        open_run(run)  # no run folder at all is an error; a run that died before its first record is not
        return b""
    except OSError as error:
        raise JournalError(
            f"a readable {name} in {run}", error.strerror or str(error), "check the path and its rights"
        ) from error
