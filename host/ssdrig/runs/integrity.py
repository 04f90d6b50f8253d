"""Detects changes to a finished run folder: numbered lines with a CRC in events.jsonl, the sums of all finished files
in the event `sums` before `run.end`. Mismatches are reported in words; nothing is repaired or hidden."""

import errno
import io
import json
import math
import os
import re
import stat
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any
from zlib import crc32

from ssdrig.base import system
from ssdrig.runs import imported

if TYPE_CHECKING:
    import numpy as np

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # escaped, or encoded as no UTF-8 is
SEAL = re.compile(rb', "line": (\d{1,12}), "crc": "([0-9a-f]{8})"\}$')
SUMMARY = "summary.bin"  # of reading/summary.py
FIGURES = "figures.json"  # of report
LABELS = "labels.json"  # of runs/labels.py
CONTROL = "control.sock"  # of run/control.py, while the run goes on
NOTES = "notes.jsonl"  # of annotations.py
# files that others write, that come after run.end, or that have CRCs of their own
APART = {
    "events.jsonl",
    "lock",
    "points.lp",
    "points.cursor",
    "points.made",
    "rejected.jsonl",
    NOTES,
    imported.NAME,
    "report.html",
    FIGURES,
    LABELS,
    SUMMARY,
}
APART_FOLDERS = {"truth", "drive"}
PART = re.compile(r"part-([2-9]|[1-9]\d{1,3})")  # a separate folder, with its own sums
FRAMED = {"rig.bin"}  # its records have CRCs: only its length is recorded
OF_STEPS = {"point": dict, "chosen": dict, "mean": dict}  # where step.start or step.end has them
# where an event of these kinds has them, null or of this kind
MAY_SAY: dict[str, dict[str, type]] = {
    **dict.fromkeys(("step.start", "step.end"), {"round": int, "why": str}),
    **{"not_run": {"label": str, "why": str}, "run.end": {"why": str}},
}
PIECE_BYTES = 1 << 18
# how long the files of a run may be, by name or ending; only those that are read as a whole
_DOCUMENT, _LINES, _LOG = 16 << 20, 128 << 20, 1 << 30
MOST_BYTES = {".json": _DOCUMENT, ".made": _DOCUMENT, ".cursor": _DOCUMENT, ".jsonl": _LINES, ".log": _LOG}
MOST_BYTES |= {
    "out.json": _LOG,
    "stderr.txt": _LINES,
    "history.bin": _LOG,
    "history.lost.bin": _LOG,
    ".z": _LOG,
    ".npz": _LOG,
    NOTES: _DOCUMENT,
}
MOST_BYTES |= {SUMMARY: _LOG}
MOST_UNPACKED_BYTES = 256 << 20  # of the arrays of a file; those of a session have some MB
MOST_ARRAYS = 1 << 15  # of a file; each costs 0.1 ms, however short it is
HOLE_BYTES = 1 << 30  # no run leaves a hole; a file system may, of some blocks, when the power goes
DEEPEST, MOST_ENTRIES = 16, 1 << 20  # folders in folders of a run, and files in it
SAID_AT_MOST = 8
# what the readers of an event rely on, by kind
FIELDS: dict[str, dict[str, type]] = {
    "clock.anchor": {"utc_ns": int},
    "step.start": {"step": str},
    "step.end": {"step": str},
    "smart.start": {"n": int},
    "smart.end": {"n": int, "ok": bool},
    "rig.hello": {"hello": dict},
    "windows": {"step": str, "windows": dict},
    "sums": {"files": dict},
    "run.end": {"state": str},
}


def sealed(event: dict, number: int) -> bytes:
    """One line of events.jsonl: the event, its number from 0, and the CRC-32 of the text before `, "crc"`."""
    text = json.dumps(event, ensure_ascii=False)[:-1] + f', "line": {number}'
    data = text.encode(errors="replace")
    return data + b', "crc": "%08x"}\n' % crc32(data)


@dataclass
class Lines:
    """The lines read from events.jsonl."""

    events: list[dict] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)  # None: a line of an older folder, without number
    whole_bytes: int = 0  # up to the end of the last line
    left_bytes: int = 0  # after it
    damaged: list[int] = field(default_factory=list)  # bytes of each line that was left out


def lines(data: bytes) -> Lines:
    """Split bytes that begin at a line. A damaged line is left out and reading continues after it; if any line has a
    CRC, a line without one is damaged."""
    out = Lines()
    parts = data.split(b"\n")
    out.left_bytes = len(parts.pop())
    out.whole_bytes = len(data) - out.left_bytes
    seals = [SEAL.search(part) for part in parts]
    checked = any(seals)
    for part, seal in zip(parts, seals, strict=True):
        good = seal is None and not checked
        if seal:
            good = crc32(part[: seal.end(1)]) == int(seal.group(2), 16)
        event = _event(part) if good else None
        if event is None:
            out.damaged.append(len(part) + 1)
            continue
        number = event.pop("line", None) if seal else None
        if seal:
            event.pop("crc")
        out.events.append(event)
        out.numbers.append(number)
    return out


def document(raw: bytes, once_each: bool = False) -> Any:
    """A JSON document with valid text only: half of a surrogate pair, as in a path that is not UTF-8, becomes `?`.
    `once_each`: a key twice in one object is refused, because other readers may take the first. Raises ValueError,
    RecursionError."""
    value = json.loads(raw, object_pairs_hook=_once_each if once_each else None)
    if SURROGATE.search(raw):
        value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)[:60]!r} twice in one object")
    return value


def _event(part: bytes) -> dict | None:
    try:
        event = document(part)
        if not isinstance(event, dict) or type(event["t_ns"]) is not int or not isinstance(event["kind"], str):
            return None
        if not 0 <= event["t_ns"] < 1 << 62:
            return None
        for name, kind in FIELDS.get(event["kind"], {}).items():
            if type(event.get(name)) is not kind or (name == "utc_ns" and not 0 <= event[name] < 1 << 62):
                return None
        for name, kind in MAY_SAY.get(event["kind"], {}).items():
            if type(event.get(name)) not in (kind, NoneType):
                return None
        if event["kind"] in ("step.start", "step.end"):
            if not all(isinstance(event.get(name, {}), kind) for name, kind in OF_STEPS.items()):
                return None
    except (ValueError, KeyError, RecursionError):
        return None
    return event


def is_hidden(inside: Path) -> bool:
    """Whether a path in a run folder is of a half-made file; measured data never has such a name."""
    return any(part[0] == "." for part in inside.parts)


def sums(run: Path) -> dict[str, list]:
    """{path in the folder: [bytes, CRC-32 as 8 hex digits, or null of a file whose records have their own]} of all
    finished files. Raises OSError."""
    out = {}
    for name in _files(run):
        path = run / name
        if not path.is_file():
            continue  # a device would have no end; the reader names it
        out[name] = [path.stat().st_size, None if name in FRAMED else f"{crc_of(path):08x}"]
    return out


def _files(run: Path) -> list[str]:
    paths = []
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run)
        first = name.parts[0]
        if first in APART or first in APART_FOLDERS or PART.fullmatch(first) or is_hidden(name):
            continue
        if path.is_file() or path.is_symlink():
            paths.append(name.as_posix())
    return paths


def oddity(run: Path) -> str:
    """An entry of the folder that a run cannot have made, in words; "" if there is none: something other than a file, a
    folder or a link to one, such as a pipe or a device, which could be read without end; a link out of the run, which
    reads and writes would follow; a file far too long, which would fill the memory; and folders nested without end. A
    run's own socket cannot be opened, and is skipped."""
    top = os.path.realpath(run)
    if PART.fullmatch(os.path.basename(top)):
        top = os.path.dirname(top)
    left, seen = [(str(run), 0)], 0
    while left:
        folder, depth = left.pop()
        try:
            with os.scandir(folder) as listing:
                entries = [*listing]
        except OSError:
            continue
        seen += len(entries)
        if depth > DEEPEST or seen > MOST_ENTRIES:
            return f"{folder}, with more folders or files than a run has"
        for entry in entries:
            if entry.is_symlink() and not (os.path.realpath(entry.path) + os.sep).startswith(top + os.sep):
                return f"{entry.path}, a link out of it"  # also to where nothing is: a write would create it
            try:
                status = entry.stat()
            except OSError:  # a link in a circle, or it has gone meanwhile
                continue
            if stat.S_ISDIR(status.st_mode):
                if not entry.is_symlink():
                    left.append((entry.path, depth + 1))
            elif not stat.S_ISREG(status.st_mode):
                if entry.name != CONTROL or not stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                    return f"{entry.path}, which is not a regular file"
            elif status.st_size > (most := most_bytes(entry.name)):
                return f"{entry.path} of {status.st_size} bytes, where a run writes at most {most}"
            elif status.st_size > HOLE_BYTES and (hole := _hole(entry.path)):
                return f"{entry.path} with a hole of {hole} bytes"
    return ""


def most_bytes(name: str) -> int:
    """Largest valid size of a file in a run folder that is read as a whole; unlimited for one that is read in
    pieces."""
    return MOST_BYTES.get(name) or MOST_BYTES.get(os.path.splitext(name)[1]) or 1 << 62


def _hole(path: str) -> int:
    """How many bytes the first hole of a file has, if it is a long one; else 0."""
    try:
        with open(path, "rb", buffering=0) as file:
            fd, size = file.fileno(), file.seek(0, os.SEEK_END)
            begin = os.lseek(fd, 0, os.SEEK_HOLE)
            try:
                end = os.lseek(fd, begin, os.SEEK_DATA) if begin < size else size
            except OSError:  # no data after it
                end = size
    except OSError:
        return 0
    return end - begin if end - begin > HOLE_BYTES else 0


def content(path: str | os.PathLike, most: int | None = None) -> bytes:
    """A whole file of a run folder. Raises OSError, also if it is not a regular file or is longer than a run writes it,
    so a pipe cannot block the reader and a huge file cannot fill the memory.

    most: bytes of the file; None: as many as a run writes into one of this name"""
    fd = os.open(path, system.READ)
    with open(fd, "rb") as file:
        status, most = os.fstat(fd), most_bytes(os.path.basename(path)) if most is None else most
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(min(status.st_size, most) + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return data


def document_of(path: str | os.PathLike) -> Any:
    """The JSON document of a file of a run folder. Raises OSError, ValueError."""
    try:
        return document(content(path))
    except RecursionError:
        raise ValueError("lists in lists without an end") from None


def arrays(packed: bytes, most_bytes: int = MOST_UNPACKED_BYTES) -> "dict[str, np.ndarray]":
    """The arrays of an .npz. Raises ValueError if they exceed `most_bytes`, and for any other content."""
    import numpy as np

    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as members:
            left = most_bytes
            if len(members.infolist()) > MOST_ARRAYS:
                raise ValueError(f"more than {MOST_ARRAYS} arrays")
            for member in members.infolist():
                with members.open(member) as file:
                    version = np.lib.format.read_magic(file)
                    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                    shape, _, kind = read[version](file)
                left -= max(member.file_size, math.prod(shape) * kind.itemsize)
                if left < 0 or kind.hasobject:
                    raise ValueError(f"{member.filename}: objects, or more than {most_bytes} bytes in all")
        with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # whatever zipfile, zlib and NumPy raise of damaged bytes: a dozen kinds
        raise ValueError(f"no arrays: {error}") from error


def crc_of(path: Path) -> int:
    """CRC-32 of a file. Raises OSError."""
    value, piece = 0, memoryview(bytearray(PIECE_BYTES))
    with open(path, "rb", buffering=0) as f:
        while count := f.readinto(piece):
            value = crc32(piece[:count], value)
    return value


def damage(run: Path) -> list[str]:
    """What of a run folder is not as it was written, each in words that begin with the file's name; [] if all is. A run
    that is not closed has no sums yet: then only its lines are checked."""
    try:
        data = content(run / "events.jsonl")
    except OSError as error:
        return [f"events.jsonl: cannot be read ({error.strerror or error})"]
    read = lines(data)
    out = _line_words(read)
    kinds = [event["kind"] for event in read.events]
    closed = [event for event in read.events if event["kind"] == "sums"]
    if closed:
        out += _sum_words(run, _with_import(run, closed[-1]["files"]))
    elif "run.end" in kinds and any(number is not None for number in read.numbers):
        out.append("events.jsonl: the sums of the files, which come before run.end, are missing")
    begun = next((event.get("run_json") for event in read.events if event["kind"] == "run.start"), None)
    if begun is not None and not any(words.startswith("run.json") for words in out):
        out += _begin_words(run, begun)
    return out


def header_sum(run: Path) -> str:
    """CRC-32 of run.json, which the event run.start has. Raises OSError."""
    return f"{crc_of(run / 'run.json'):08x}"


def _begin_words(run: Path, begun: Any) -> list[str]:
    try:
        return [] if header_sum(run) == begun else ["run.json: is damaged, its content is not what the run began with"]
    except OSError as error:
        return [f"run.json: cannot be checked ({error})"]


def _with_import(run: Path, written: dict) -> dict:
    """The sums of a run, of its rig.bin those of the recording that was imported into it."""
    made = imported.read(run)
    of_rig = written.get("rig.bin")
    empty = isinstance(of_rig, list) and of_rig[:1] == [0]
    return {**written, "rig.bin": made["rig_bin"]} if made and empty else written


def _line_words(read: Lines) -> list[str]:
    out = []
    if read.damaged:
        out.append(f"events.jsonl: {len(read.damaged)} damaged lines ({sum(read.damaged)} bytes) were left out")
    if read.left_bytes:
        out.append(f"events.jsonl: {read.left_bytes} bytes at its end are not a whole line")
    numbers = [number for number in read.numbers if number is not None]
    if not read.events and not read.damaged:
        out.append("events.jsonl: has no event")
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[:1] not in ([], [0]):
        missing = max(numbers) + 1 - len(set(numbers)) - len(read.damaged)
        if missing > 0:
            out.append(f"events.jsonl: {missing} lines are missing")
        if len(set(numbers)) < len(numbers):
            out.append(f"events.jsonl: {len(numbers) - len(set(numbers))} lines are there twice")
        if numbers != sorted(numbers):
            out.append("events.jsonl: its lines are not in the order of their numbers")
    return out


def _sum_words(run: Path, written: dict) -> list[str]:
    out = []
    for name, entry in written.items():
        try:
            size, crc = entry
            if not Path(os.path.realpath(run / name)).is_relative_to(os.path.realpath(run)):
                raise ValueError("it is outside the run folder")
            there = (run / name).stat().st_size
            if there < size:
                out.append(f"{name}: {there} of {size} bytes are left")
            elif there > size:
                out.append(f"{name}: has {there - size} bytes that the run did not write")
            elif crc is not None and f"{crc_of(run / name):08x}" != crc:
                out.append(f"{name}: is damaged, its content is not what the run wrote")
        except FileNotFoundError:
            out.append(f"{name}: is missing")
        except (OSError, TypeError, ValueError) as error:
            out.append(f"{name}: cannot be checked ({error})")
    try:
        out += [f"{name}: was not written by the run" for name in _files(run) if name not in written]
    except OSError as error:
        out.append(f"the run folder cannot be listed ({error})")
    if len(out) > SAID_AT_MOST:
        out = [
            *out[:SAID_AT_MOST],
            f"and {len(out) - SAID_AT_MOST} more files: " + ", ".join(w.split(":")[0] for w in out[SAID_AT_MOST:]),
        ]
    return out
