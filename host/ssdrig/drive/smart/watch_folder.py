"""The watch folder (schemas/journal.md): what `ssdrig watch` has read from drives; a folder for each drive, a file for
each month (UTC), a JSON object on a line for each poll. Several processes may append; readers need no lock."""

import fcntl
import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ssdrig.base.errors import JournalError
from ssdrig.base.files import append_or_undo, fsync_folder, lock_file, part_from_copies
from ssdrig.drive import identity
from ssdrig.drive.smart.smart_answer import answered

DAY_NS = 86_400 * 10**9


def default_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """systemd's state folder of the service, otherwise $XDG_STATE_HOME/ssdrig/watch, otherwise
    ~/.local/state/ssdrig/watch."""
    if environ.get("STATE_DIRECTORY"):
        return Path(environ["STATE_DIRECTORY"].split(":")[0]) / "watch"
    named = environ.get("XDG_STATE_HOME", "")
    base = Path(named) if os.path.isabs(named) else Path(environ.get("HOME") or "/") / ".local" / "state"
    return base / "ssdrig" / "watch"


def drive_folder(folder: Path, drive: Mapping) -> Path:
    """FOLDER/<model>-<serial>; what no file name should hold becomes "-"."""
    return Path(folder) / f"{_plain(drive.get('model'))}-{_plain(drive.get('serial'))}"


def _plain(word) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", str(word or "")).strip("-.") or "unknown"


def keep(folder: Path, record: Mapping) -> tuple[Path, int]:
    """Append a record, which has utc_ns and drive. Returns the file and how many bytes of it are on the disk now: this
    record is among them. A torn line that a crash left is set aside first. Raises JournalError; then the file is as it
    was."""
    month = time.strftime("%Y-%m", time.gmtime(record["utc_ns"] // 10**9))
    path = drive_folder(folder, record["drive"]) / f"{month}.jsonl"
    line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path) as file:
            size = file.set_torn_aside()
            file.append(line, size)
        return path, size + len(line)
    except OSError as error:
        raise JournalError(
            f"to keep a poll in {path}",
            error.strerror or str(error),
            "free disk space or fix its permissions; it is not kept",
        ) from error


def set_torn_aside(folder: Path, say: Callable[[str], None]) -> None:
    """Move a torn last line to <month>.torn in the same folder and report it."""
    for path in sorted(Path(folder).glob("*/*.jsonl")):
        try:
            with _locked(path) as file:
                before = file.size()
                torn = before - file.set_torn_aside()
        except OSError as error:
            raise JournalError(
                f"to fix {path}", error.strerror or str(error), "free disk space or fix its permissions"
            ) from error
        if torn:
            say(
                f"{path}: {torn} bytes of a line that a crash cut off are set aside in {path.with_suffix('.torn').name}"
            )


class _locked:
    """One month's file, opened for appending, while the lock file next to it is held: everyone may read the month's,
    and who can open a file can lock it."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = lock_file(path.with_name("lock"))
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            fresh = not path.exists()
            part_from_copies(path)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        except BaseException:
            os.close(self._lock)
            raise
        if fresh:
            for folder in (path.parent, path.parent.parent):
                fsync_folder(folder)

    def __enter__(self) -> "_locked":
        return self

    def __exit__(self, *_) -> None:
        os.close(self._fd)
        os.close(self._lock)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def set_torn_aside(self) -> int:
        """Returns the length of the file, which ends with whole lines then."""
        size, tail = self.size(), b""
        while len(tail) < size and b"\n" not in tail:
            more = min(65536, size - len(tail))
            tail = os.pread(self._fd, more, size - len(tail) - more) + tail
        torn = tail[tail.rfind(b"\n") + 1 :]
        if torn:
            with open(self.path.with_suffix(".torn"), "ab") as aside:
                aside.write(torn + b"\n")
                aside.flush()
                os.fsync(aside.fileno())
            os.ftruncate(self._fd, size - len(torn))
        return size - len(torn)

    def append(self, line: bytes, size: int) -> None:
        append_or_undo(self._fd, line, size)


class Line(NamedTuple):
    """A line of a month's file: its record (None if it does not hold one) and where it ends."""

    record: dict | None
    end: int


def lines(path: Path, start: int = 0) -> Iterator[Line]:
    """Whole lines from a byte offset on. A torn last line is left. Empty for anything but a file."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would wait for a writer
    with open(fd, "rb") as f:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return
        f.seek(start)
        for line in f:
            if not line.endswith(b"\n"):
                return
            start += len(line)
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            good = (
                isinstance(record, dict)
                and isinstance(record.get("utc_ns"), int)
                and isinstance(record.get("drive"), dict)
            )
            yield Line(record if good else None, start)


def history(
    folder: Path, serial: str, warn: Callable[[str], None] = lambda text: print(text, file=sys.stderr)
) -> list[dict]:
    """All answered polls of a drive, in order of utc_ns: SMART documents (schemas/journal.md) with utc_ns, host and
    boot_id.

    `warn` reports the omissions: polls without an answer, damaged lines. Raises JournalError if the folder is
    none."""
    if not Path(folder).is_dir():
        raise JournalError(
            f"a watch folder at {folder}", "none", "give the folder that ssdrig watch writes, or start it"
        )
    polls, unanswered, broken = [], 0, 0
    for path in sorted(Path(folder).glob(f"*-{_plain(serial)}/*.jsonl")):
        for line_ in lines(path):
            if line_.record is None:
                broken += 1
            elif line_.record["drive"].get("serial") != serial:
                continue  # of a drive whose serial differs by what file names cannot hold
            elif answered(line_.record):
                polls.append(line_.record)
            else:
                unanswered += 1
    if unanswered:
        warn(f"{folder}: {unanswered} polls of {serial} left out: skipped, or not answered")
    if broken:
        warn(f"{folder}: {broken} damaged lines left out")
    return sorted(polls, key=lambda record: record["utc_ns"])


def last_answered(folder: Path, drive: Mapping) -> dict | None:
    """The newest answered poll of a drive."""
    for path in sorted(drive_folder(folder, drive).glob("*.jsonl"), reverse=True):
        last = None
        for line_ in lines(path):
            if line_.record is not None and answered(line_.record):
                last = line_.record
        if last:
            return last
    return None


def first_of_days(folder: Path, drive: Mapping) -> list[dict]:
    """The first answered poll of each day (UTC) of a drive, by time: enough for a history of years."""
    days: dict[int, dict] = {}
    for path in sorted(drive_folder(folder, drive).glob("*.jsonl")):
        for line_ in lines(path):
            if line_.record is None or not answered(line_.record) or identity.conflict(line_.record["drive"], drive):
                continue
            day = line_.record["utc_ns"] // DAY_NS
            if day not in days or line_.record["utc_ns"] < days[day]["utc_ns"]:
                days[day] = line_.record
    return [days[day] for day in sorted(days)]
