"""The parts of a run. An interrupted run continues in RUN/part-2, then RUN/part-3: each a complete run folder with its
own clock. Earlier parts are not touched. Parts are joined by UTC; no line is drawn across the gap.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from ssdrig.base import files, system
from ssdrig.base.errors import JournalError
from ssdrig.runs import integrity, journal

DRIVE = "drive"  # in the run folder: the state of a SIMULATED drive until the run is resumed
REVIEW = "review.json"  # in the folder of a review, which contains its runs


def all_runs(folder: str | os.PathLike) -> list[Path]:
    """The run folders in a folder, those of its reviews included, the latest first, and each once: a link to one of
    them is not another run. One that this user may not look into is among them. Raises OSError."""
    run_folders = []
    for path in Path(folder).iterdir():
        if path.name.startswith("."):  # one that is being made, or whose making was killed
            continue
        if _has(path, "run.json"):
            run_folders.append(path)
        elif _has(path, REVIEW):
            run_folders += [inner for inner in path.iterdir() if _has(inner, "run.json")]
    if links := [path for path in run_folders if path.is_symlink()]:
        run_folders = distinct([*(path for path in run_folders if path not in links), *links])
    return sorted(run_folders, key=lambda path: path.name, reverse=True)


def distinct(folders: Iterable[Path]) -> list[Path]:
    """The first of the paths to each folder, in their order."""
    by_place: dict[str, Path] = {}
    for folder in folders:
        by_place.setdefault(os.path.realpath(folder), folder)
    return [*by_place.values()]


def _has(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_file()
    except OSError:
        return name == "run.json"


def of(run: str | os.PathLike) -> list[Path]:
    """The folders of a run, in order: itself, then its parts."""
    run = Path(run)
    try:
        names = [path.name for path in run.iterdir() if integrity.PART.fullmatch(path.name) and not path.is_symlink()]
    except OSError:
        names = []
    folders = [run / name for name in sorted(names, key=lambda name: int(name[5:]))]
    return [run, *(part for part in folders if (part / "run.json").is_file())]


def root(part: Path) -> Path:
    """The run that a folder is a part of; a run's own folder is itself."""
    return part.parent if integrity.PART.fullmatch(part.name) and (part.parent / "run.json").is_file() else part


def number(part: Path) -> int:
    """The number of a part's folder; 1 for the run's own."""
    match = integrity.PART.fullmatch(part.name)
    return int(match[1]) if match else 1


def strange(run: str | os.PathLike) -> list[str]:
    """What of the folders of a run cannot be, in words: one is missing, unreadable, of another run, or all there is."""
    run = Path(run)
    whole, parts = _header(run), of(run)
    last = max([1, *(number(part) for part in run.glob("part-*") if integrity.PART.fullmatch(part.name))])
    there = {number(part) for part in parts[1:]}
    out = [f"part {missing} is missing, or has no run.json" for missing in range(2, last + 1) if missing not in there]
    out += [
        f"{part.name} belongs to another run, {_header(part).get('run')}"
        for part in parts[1:]
        if not _same(part, whole)
    ]
    if whole.get("resumed"):
        out.append("it is a later part of a run, without the parts before it")
    return out


def doubts(folders: list[Path]) -> list[str]:
    """Damage to the events that record the run's progress, except what a kill leaves. Raises JournalError for a damaged
    run.json, because it defines the run."""
    doubtful = []
    for part in folders:
        damage = integrity.damage(part)
        if wrong := [words for words in damage if words.startswith("run.json")]:
            raise JournalError(
                f"the run.json of {part} as the run wrote it", wrong[0], "take it from a copy of the run"
            )
        doubtful += [words for words in damage if words.startswith("events.jsonl") and "at its end" not in words]
    return doubtful


def _header(folder: Path) -> dict:
    try:
        header = integrity.document_of(folder / "run.json")
    except (OSError, ValueError):
        return {}
    return header if isinstance(header, dict) else {}


def _same(part: Path, whole: dict) -> bool:
    return _header(part).get("run") == whole.get("run")


def own(run: str | os.PathLike) -> list[Path]:
    """The folders of a run, without those of another run that lie in it."""
    run = Path(run)
    whole = _header(run)
    return [run, *(part for part in of(run)[1:] if _same(part, whole))]


def shown(run: str | os.PathLike) -> tuple[Path, str | None]:
    """The folder whose figures represent the run, and a note if other parts exist: the last part that had I/O, because
    it repeats the interrupted step."""
    run = Path(run)
    odd, folders = strange(run), own(run)
    if len(folders) == 1:
        return run, "; ".join(odd) or None
    busy = [part for part in folders if any(e["kind"] == "load.first_io" for e in journal.events(part))]
    chosen = busy[-1] if busy else run
    of_part = 1 if chosen == run else number(chosen)
    words = f"the run was interrupted and resumed: it has {len(folders)} parts, the figures are from part {of_part}"
    return chosen, "; ".join([words, *odd])


def begin(run: str | os.PathLike, header: dict) -> journal.Journal:
    """The next part of a run, open for writing, with this run.json; the run is locked as long. Raises JournalError if
    a process still writes it, if it has gone on since header["resumed"] was made, or if the folder cannot be made."""
    run = Path(run)
    lock = _locked(run)
    next_ = len(of(run)) + 1
    if (header.get("resumed") or {}).get("part", next_) != next_:
        os.close(lock)
        raise JournalError(
            f"the parts of {run} that were there when it was read",
            "another process has gone on with the run since",
            "resume it again",
        )
    for folder in of(run):
        _without_socket(folder)
    path = run / f"part-{next_}"
    started = {"t_ns": time.monotonic_ns(), "utc_ns": time.time_ns()}
    try:
        return journal.make(path, {"schema": journal.SCHEMA, **header, "started": started}, lock)
    except OSError as error:
        raise JournalError(
            f"a new part {path} of the run", error.strerror or str(error), "make room, or take a copy that is writable"
        ) from error


def _without_socket(folder: Path) -> None:
    """Removes the socket of a killed process, which no process listens on."""
    path = folder / integrity.CONTROL
    with contextlib.suppress(OSError):  # none is there, or the folder is read-only
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


def _locked(run: Path) -> int:
    try:
        lock = files.lock_file(run / "lock")
    except OSError as error:
        raise JournalError(f"to lock {run}", error.strerror or str(error), "take a copy that is writable") from error
    try:
        system.lock(lock, wait=False)
    except OSError as error:
        os.close(lock)
        raise JournalError(
            f"a run that has ended: {run}", "a process that still writes it", "wait for its end, or end it"
        ) from error
    return lock
