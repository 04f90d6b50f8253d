"""The parts of a run. A run that was cut short goes on in a folder of its own, RUN/part-2, then RUN/part-3: a whole run
folder with its own clock. What lies before it is not touched. Parts are joined by UTC; no line is drawn across.
"""

import fcntl
import os
import time
from pathlib import Path

from ssdrig import integrity, journal
from ssdrig.errors import JournalError

DRIVE = "drive"  # in the run folder: what is kept of a SIMULATED drive until the run goes on


def of(run: str | os.PathLike) -> list[Path]:
    """The folders of a run, in order: itself, then its parts."""
    run = Path(run)
    try:
        names = [path.name for path in run.iterdir() if integrity.PART.fullmatch(path.name)]
    except OSError:
        names = []
    found = [run / name for name in sorted(names, key=lambda name: int(name[5:]))]
    return [run, *(part for part in found if (part / "run.json").is_file())]


def root(part: Path) -> Path:
    """The run that a folder is a part of; a run's own folder is itself."""
    return part.parent if integrity.PART.fullmatch(part.name) and (part.parent / "run.json").is_file() else part


def shown(run: str | os.PathLike) -> tuple[Path, str | None]:
    """The folder whose figures stand for the run, and a note if that is not all of it: the last part that had I/O, for
    what was cut short before is done again there."""
    found = of(run)
    if len(found) == 1:
        return found[0], None
    busy = [i for i, part in enumerate(found) if any(e["kind"] == "load.first_io" for e in journal.events(part))]
    chosen = busy[-1] if busy else 0
    words = f"the run was cut short and resumed: it has {len(found)} parts, the figures are of part {chosen + 1}"
    return found[chosen], words


def begin(run: str | os.PathLike, header: dict) -> journal.Journal:
    """The next part of a run, open for writing, with this run.json; the run is locked as long. Raises JournalError if
    a process still writes it, or if the folder cannot be made."""
    run = Path(run)
    lock = _locked(run)
    path = run / f"part-{len(of(run)) + 1}"
    started = {"t_ns": time.monotonic_ns(), "utc_ns": time.time_ns()}
    try:
        return journal.make(path, {"schema": journal.SCHEMA, **header, "started": started}, lock)
    except OSError as error:
        raise JournalError(
            f"a new part {path} of the run", error.strerror or str(error), "make room, or take a copy that is writable"
        ) from error


def _locked(run: Path) -> int:
    try:
        lock = os.open(run / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise JournalError(f"to lock {run}", error.strerror or str(error), "take a copy that is writable") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise JournalError(
            f"a run that has ended: {run}", "a process that still writes it", "wait for its end, or end it"
        ) from error
    return lock
