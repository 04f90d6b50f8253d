"""The user's notes on a run: notes.jsonl in its folder, one line a note. The run itself is never changed."""

import json
import os
import time
from pathlib import Path

from ssdrig.base import owner, system
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.files import append_or_undo, part_from_copies
from ssdrig.base.terminal import line
from ssdrig.runs import integrity, journal

MOST_CHARS = 200
MOST_NOTES = 1000  # that are read


def add(run: Path, text: str, at_s: float | None) -> dict:
    """Add a note at `at_s` seconds of drive time since the load's first I/O; None: now, in a running run. Returns the
    stored note. Raises UsageError, JournalError."""
    text = line("a note", text, MOST_CHARS)
    if not text:
        raise UsageError(f"a note of 1 to {MOST_CHARS} characters", "none", "describe what you saw")
    if at_s is None and not journal.lock_is_held(run):
        raise UsageError("--at TIME for a run that has ended", "none", "time since the load's first I/O, such as 10m")
    note = {"text": text, "utc_ns": time.time_ns()}
    note |= {"t_ns": time.monotonic_ns()} if at_s is None else {"at_s": at_s}
    path = run / integrity.NOTES
    try:
        how = os.O_RDWR | os.O_CREAT | os.O_APPEND | system.NOFOLLOW | system.NONBLOCK | system.CLOEXEC
        part_from_copies(path)
        owner.new(path)
        fd = os.open(path, how, 0o644)
        try:
            size = os.fstat(fd).st_size
            torn = size and system.pread(fd, 1, size - 1) != b"\n"  # of a writer that was killed
            append_or_undo(
                fd, b"\n" * bool(torn) + json.dumps(note, ensure_ascii=False).encode(errors="replace") + b"\n", size
            )
        finally:
            os.close(fd)
    except OSError as error:
        raise JournalError(f"to write {path}", error.strerror or str(error), "make room, or ask its owner") from error
    return note


def read(run: Path) -> list[dict]:
    """The notes of a run folder: each has "text" and either "at_s" or "t_ns"; invalid lines are left out."""
    path, notes = run / integrity.NOTES, []
    try:
        if not path.is_file():
            return []
        with open(path, "rb") as lines:
            for line_read in lines:
                try:
                    note = integrity.document(line_read.decode(errors="replace").encode())
                except (ValueError, RecursionError):
                    continue
                if not isinstance(note, dict) or not isinstance(note.get("text"), str):
                    continue
                at = note.get("at_s", note.get("t_ns"))
                if isinstance(at, int | float) and not isinstance(at, bool) and 0 <= at < 1 << 62:
                    notes.append(note | {"text": note["text"][:MOST_CHARS]})
                if len(notes) == MOST_NOTES:
                    break
    except OSError:
        return notes
    return notes
