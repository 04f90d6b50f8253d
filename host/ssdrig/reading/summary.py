"""The results of a run folder, stored in it, so that a report of unchanged runs need not read them again.
It has all of RunData but the latency histogram by the second, a million cells that no plot has room for: in its place
are the results of latency.py.

A summary is believed only where nothing has changed: it carries the sums of all files that it was made from, a digest
of the code and of the user's table of attributes that made it, and one of itself. One that is damaged, stale or of
another ssdrig is ignored and made again; a run in progress has none; deleting it loses nothing. It holds
numbers and text only, so that reading the folder of a stranger runs no code of his.

    magic | SHA-256 of all that follows | JSON of the key and the values, a line | the arrays, as NumPy's npz
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base import prctl, system
from ssdrig.base.files import write_atomically
from ssdrig.drive.smart import ata_table
from ssdrig.drive.wear import wa
from ssdrig.meter.power import Closure
from ssdrig.reading import table
from ssdrig.reading.course import Course
from ssdrig.reading.row import Table
from ssdrig.reading.rundata import NearEdges, OwnWork, Rail, RunData
from ssdrig.runs import integrity, journal, parts

Whole = tuple[RunData, dict, dict | None]  # the run, its figures, and the document made of its table
MAGIC = b"ssdrig summary 1\n"
CODE = Path(__file__).parents[1]
KINDS = {kind.__name__: kind for kind in (RunData, Rail, Closure, NearEdges, OwnWork, wa.WriteAmplification)}
_SHA_BYTES = 32
PACKED_BYTES = 1 << 16  # more than the heads of the arrays take
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of mallopt(3)
# rig.bin of several runs together that is worth a process for each core: a copy of this one, or a new one
WORTH_BYTES = {"fork": 10_000_000, "forkserver": 100_000_000}


def load(run: Path) -> tuple[RunData, dict]:
    """made_of() the run, from a valid summary; otherwise it is made, and stored if the folder is
    writable. Raises what analysis.load() raises."""
    return current(run) or _made(run, None)[:2]


def current(run: Path) -> tuple[RunData, dict] | None:
    """The result of load(), from a valid summary; None: it must be made."""
    stored = _stored(run)
    return stored and stored[:2]


def with_document(run: Path, document: Callable[[Table], dict]) -> Whole:
    """load() of a run, and what `document` makes of its table, a JSON object, which the summary holds as well."""
    stored = _stored(run)
    return stored if stored and stored[2] is not None else _made(run, document)


def _stored(run: Path) -> Whole | None:
    """What a valid summary holds; its document may be missing: None."""
    if not (run / integrity.SUMMARY).is_file() or _stamps(run) is None:
        return None
    key = _key(run)
    return _read(run, key) if key else None


def _made(run: Path, document: Callable[[Table], dict] | None) -> Whole:
    before = _stamps(run)
    course = table.in_full(run)
    result = (*made_of(course), document(course.table) if document else None)
    key = _key(run) if before else None
    if key and _stamps(run) == before:  # nothing wrote to it meanwhile
        _write(run, key, result)
    return result


def made_of(course: Course) -> tuple[RunData, dict]:
    """The parts of a run that a report without options needs: its load without `hist`, and without `fast` and `edges`
    of its rails, from which the figures are made; and the figures (course.KEYS)."""
    rails = [dataclasses.replace(rail, fast=None, edges=None) for rail in course.data.rails]
    return dataclasses.replace(course.data, hist=course.data.hist[:0], rails=rails, rig_edges=[]), course.figures


@functools.cache
def code() -> str:
    """Digest of all code and tables of this ssdrig, and of the version of NumPy: whatever may change a figure."""
    files = []
    for folder, _, names in os.walk(CODE):  # a Path for each of 600 files takes longer than to read it
        within = folder[len(str(CODE)) + 1 :]
        ours = [os.path.join(within, name) for name in names if name.endswith((".py", ".toml"))]
        # an editor's lock is a link to nowhere, and a pipe of that name would be waited for
        files += [name for name in ours if os.path.isfile(f"{CODE}/{name}")]
    digest = hashlib.sha256(np.__version__.encode())
    for name in sorted(files, key=lambda name: name.split("/")):
        with open(f"{CODE}/{name}", "rb", buffering=0) as file:
            content = file.readall()
        digest.update(f"{name} {len(content)}\n".encode(errors="surrogateescape") + content)
    return digest.hexdigest()


def _files(run: Path) -> list[Path]:
    """All files of the folder, its parts included, but those that are made from the others."""
    apart = integrity.APART - {"events.jsonl", integrity.NOTES}
    named = ((path, path.relative_to(run)) for path in sorted(run.rglob("*")) if path.name not in apart)
    of_it = (path for path, name in named if not (integrity.APART_FOLDERS & {*name.parts} or integrity.is_hidden(name)))
    return [path for path in of_it if path.is_file()]


def _stamps(run: Path) -> list | None:
    """Size and time of each file; None where no summary is possible: not a run, one in progress, or one that
    contains something other than files."""
    try:
        if not (run / "run.json").is_file() or integrity.oddity(run):
            return None
        if any(map(journal.lock_is_held, parts.of(run))):
            return None
        return [(path, (status := path.stat()).st_size, status.st_mtime_ns) for path in _files(run)]
    except OSError:
        return None


def _key(run: Path) -> str | None:
    """What a summary of the folder as it is now must carry."""
    digest = hashlib.sha256(code().encode())
    try:
        own = ata_table.user_file()
        digest.update(own.read_bytes() + b"\n" if own.exists() else b"")
        for path in _files(run):
            digest.update(f"{path.relative_to(run)} {integrity.crc_of(path):08x} {path.stat().st_size}\n".encode())
    except OSError:
        return None
    return digest.hexdigest()


def _read(run: Path, key: str) -> Whole | None:
    try:
        content = integrity.content(run / integrity.SUMMARY)
        body = content[len(MAGIC) + _SHA_BYTES :]
        if content[: -len(body)] != MAGIC + hashlib.sha256(body).digest():
            return None
        line, _, packed = body.partition(b"\n")
        head = json.loads(line)
        if head["key"] != key:
            return None
        arrays = integrity.arrays(packed, 2 * len(packed) + PACKED_BYTES)  # they are not compressed
        data, figures = _opened(head["values"], arrays)
        document = head["document"]
    except Exception:  # correct sums prove nothing about their author: on any error the run itself is read
        return None
    if not (isinstance(data, RunData) and isinstance(figures, dict) and isinstance(document, dict | None)):
        return None
    return data, figures, document


def _write(run: Path, key: str, summary: Whole) -> None:
    """Does nothing where the folder takes no more."""
    with contextlib.suppress(OSError):
        body = sealed(key, summary)
        write_atomically(run / integrity.SUMMARY, MAGIC + hashlib.sha256(body).digest() + body, durable=False)


def sealed(key: str, summary: Whole) -> bytes:
    """The content of a summary. Raises TypeError for a value of a kind that it does not know."""
    arrays: dict[str, np.ndarray] = {}
    packed = io.BytesIO()
    *values, document = summary
    values = _packed(values, arrays)
    np.savez(packed, allow_pickle=False, **arrays)
    head = {"key": key, "values": values, "document": document}
    return json.dumps(head).encode() + b"\n" + packed.getvalue()


def _packed(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON has it. What JSON does not have is an object with the only key "@": [kind, content]."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_packed(item, arrays) for item in value]
    if type(value) is dict and "@" not in value and all(type(key) is str for key in value):
        return {key: _packed(item, arrays) for key, item in value.items()}
    if type(value) is dict:
        return {"@": ["dict", [[_packed(key, arrays), _packed(item, arrays)] for key, item in value.items()]]}
    if type(value) is tuple:
        return {"@": ["tuple", [_packed(item, arrays) for item in value]]}
    if isinstance(value, np.ndarray | np.generic):
        name = str(len(arrays))
        arrays[name] = np.asarray(value)
        return {"@": ["scalar" if isinstance(value, np.generic) else "array", name]}
    if type(value) in KINDS.values():
        names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
        return {"@": [type(value).__name__, {name: _packed(getattr(value, name), arrays) for name in names}]}
    raise TypeError(f"{type(value).__name__} is nothing that a summary holds")


def _opened(value: Any, arrays) -> Any:
    if type(value) is list:
        return [_opened(item, arrays) for item in value]
    if type(value) is not dict:
        return value
    if "@" not in value:
        return {key: _opened(item, arrays) for key, item in value.items()}
    kind, content = value["@"]
    if kind == "dict":
        return {_opened(key, arrays): _opened(item, arrays) for key, item in content}
    if kind == "tuple":
        return tuple(_opened(item, arrays) for item in content)
    if kind in ("array", "scalar"):
        return arrays[content] if kind == "array" else arrays[content][()]
    return KINDS[kind](**{name: _opened(item, arrays) for name, item in content.items()})


def of_folders(folders: list[Path], document: Callable[[Table], dict] | None = None):
    """load() of each folder, in order, or with_document(); large ones on all cores."""
    prctl.small_pages()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        known = list(threads.map(_stored, folders))
    if document:
        known = [stored if stored and stored[2] is not None else None for stored in known]
    how = functools.partial(with_document, document=document) if document else load
    computed = of_each(how, [folder for folder, stored in zip(folders, known, strict=True) if stored is None])
    size = 3 if document else 2
    yield from (stored[:size] if stored else next(computed) for stored in known)


def of_each(function: Callable, folders: list[Path]) -> Iterator:
    """The function of each folder, in order; of large ones on all cores."""
    cores = os.cpu_count() or 1
    total = sum(p.stat().st_size for folder in folders if (p := folder / "rig.bin").exists())
    # a fork copies the locks of other threads; a server of forks imports everything again in most of a second
    how = "fork" if threading.active_count() == 1 else "forkserver"
    if len(folders) < 2 or cores < 2 or total < WORTH_BYTES[how] or system.WINDOWS:  # it starts each from scratch
        yield from map(function, folders)
        return
    context = multiprocessing.get_context(how)
    with concurrent.futures.ProcessPoolExecutor(min(len(folders), cores), context, _keep_memory) as pool:
        yield from pool.map(function, folders)


def _keep_memory() -> None:
    """Freed memory stays in this process for its next array. glibc would return it, and the kernel clear hundreds of MB
    again for each run, which takes longer than decoding it."""
    if mallopt := getattr(system.libc(), "mallopt", None):  # another C library has none
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 1 << 30)
