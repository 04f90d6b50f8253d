"""The files of one session in the run folder, powerloss/0007, each there as a whole or not at all:

    history.bin.z   the commands, history.ROW, deflated; while the session lasts history.bin, mapped
    seen.npz        the blocks that were read, verdict.Blocks, with the findings, and whether a trim may still come
    waveform.npz    the fall as the rig's ADC saw it: volts, t0_ns (host clock), dt_ns
    proofs.json     what speaks for each accusation (proof.py), of the first MOST_PROOFS blocks
    verdict.json    the record of the session, the promise it was judged by, the rig's report, the run's number and the
                    sums of the other files; sealed, written last

A session with a verdict.json is judged, whether or not its event was written before the process ended; one with an
event is, too, whatever became of its files. Files that do not fit each other, such as those of another session or run,
are as if they were not there, and doubts() names them."""

import contextlib
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ssdrig.powerloss import history
from ssdrig.powerloss.kinds import UNKNOWN
from ssdrig.runs import integrity, journal
from ssdrig.runs.journal import Journal

if TYPE_CHECKING:  # it is compiled, and a report wants the rest of this module
    from ssdrig.powerloss.layout import Layout
    from ssdrig.powerloss.verdict import Blocks, Known, Verdict

FOLDER = "powerloss"
LOST = "history.lost.bin"  # of a try in which the rig failed
LEARNT = "learnt.{}.bin.z"  # commands of no session, by the number of the first
BEGIN, JUDGED = "powerloss.begin", "session.judged"
FRAME = ("t_ns", "kind", "step", "line", "crc")  # of an event, besides its content
MOST_PROOFS = 20
MOST_SEQ = 1 << 60  # no campaign has that many commands: a damaged number
LOST_ROWS = 1 << 24  # this many commands of a session may be missing from a history whose host died


def folder(number: int) -> str:
    """Folder of a session, in the run folder."""
    return f"{FOLDER}/{number:04}"


def put(
    book: Journal,
    record: Mapping,
    rows: np.ndarray,
    blocks: "Blocks",
    verdict: "Verdict",
    proofs: list[dict],
    outcome: Mapping,
    waveform: Mapping | None,
) -> None:
    """All files of a judged session. `outcome`: the other fields of verdict.json, including `run`. Raises
    JournalError."""
    where = folder(record["cut"])
    seen = {**blocks._asdict(), "finding": verdict.finding, "trimmed_after": verdict.trimmed}
    files = {"history.bin.z": zlib.compress(rows.tobytes(), 1), "seen.npz": _npz(**seen)}
    if waveform:
        volts = np.asarray(waveform["volts"], np.float32)
        files["waveform.npz"] = _npz(volts=volts, t0_ns=waveform["t0_ns"], dt_ns=waveform["dt_ns"])
    if proofs:
        files["proofs.json"] = json.dumps(proofs).encode()
    for name, data in files.items():
        book.put(f"{where}/{name}", data)
    book.put(f"{where}/verdict.json", sealed({"record": record, **outcome, "sums": sums(files)}))
    (book.path / where / "history.bin").unlink(missing_ok=True)


def _npz(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def sums(files: Mapping[str, bytes]) -> dict[str, int]:
    """{name: CRC-32} of the files of a session, as in its verdict.json."""
    return {name: zlib.crc32(data) for name, data in files.items()}


def sealed(verdict: Mapping) -> bytes:
    """A verdict.json."""
    return json.dumps({**verdict, "crc32": zlib.crc32(json.dumps(verdict).encode())}).encode()


def unsealed(path: Path) -> dict | None:
    """The content of a verdict.json; None where it is not there, not as it was written, or of another session."""
    try:
        document = integrity.document_of(path)
        crc32 = document.pop("crc32")
        mine = isinstance(document["sums"], dict) and document["record"]["cut"] == int(path.parent.name)
        return document if mine and zlib.crc32(json.dumps(document).encode()) == crc32 else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def proofs_of(folder: Path, document: Mapping) -> list[dict]:
    """The proofs of a session with this verdict.json; empty if they were altered."""
    try:
        return integrity.document(content(folder, document, "proofs.json"))
    except (OSError, ValueError, RecursionError):
        return []


def content(folder: Path, document: Mapping, name: str) -> bytes:
    """A file of a session with this verdict.json. Raises OSError, ValueError where it is not as it was
    written."""
    data = integrity.content(folder / name)
    if zlib.crc32(data) != (document.get("sums") or {}).get(name):
        raise ValueError(f"{name} is not what the verdict was written with")
    return data


class Doubts(NamedTuple):
    """What of the judged sessions of a run is not as it was written, each in words that begin with the file's name.
    `lost`: missing or damaged; `wrong`: differs from the journal, or belongs to another run."""

    lost: list[str]
    wrong: list[str]


def doubts(folders: Iterable[Path]) -> Doubts:
    """Sessions of the parts of a run, oldest first."""
    parts, result = list(folders), Doubts([], [])
    events = [event for part in parts for event in journal.events(part)]
    runs = {event.get("run") for event in events if event["kind"] == BEGIN}
    events_of = {event["cut"]: record_of(event) for event in events if event["kind"] == JUDGED}
    there = set()
    for number, path in _by_number(parts):
        if not (path / "verdict.json").exists():
            continue
        there.add(number)
        name, document = f"{folder(number)}/verdict.json", unsealed(path / "verdict.json")
        if document is None:
            result.lost.append(f"{name}: is damaged, or of another session")
            continue
        if runs and document.get("run") not in runs:
            result.wrong.append(f"{name}: belongs to another run")
        if number in events_of and (differ := _differ(document["record"], events_of[number])):
            result.wrong.append(f"{name}: the event of the session differs in {', '.join(differ)}")
        for other in document["sums"]:
            try:
                content(path, document, other)
            except (OSError, ValueError):
                result.lost.append(f"{folder(number)}/{other}: is missing, damaged or of another session")
    result.lost.extend(f"{folder(number)}/verdict.json: is missing" for number in sorted(events_of.keys() - there))
    return result


def _differ(record: Mapping, other: Mapping) -> list[str]:
    keys = sorted({*record, *other})
    return [
        key
        for key in keys
        if json.dumps(record.get(key, ...), default=str) != json.dumps(other.get(key, ...), default=str)
    ]


def judged(folders: Iterable[Path]) -> dict[int, dict]:
    """{number: record} of all sessions in the parts of a run that came to their verdict."""
    by_cut = {}
    for part in folders:
        for event in journal.events(part):
            if event["kind"] == JUDGED:
                by_cut[event["cut"]] = record_of(event)
        for path in (part / FOLDER).glob("*/verdict.json"):
            if document := unsealed(path):
                by_cut[document["record"]["cut"]] = document["record"]
    return by_cut


def record_of(event: Mapping) -> dict:
    """The session fields of an event session.judged."""
    return {key: value for key, value in event.items() if key not in FRAME}


def rows_of(path: Path) -> np.ndarray:
    """The commands of a session's folder, history.ROW[n]. Raises OSError, zlib.error."""
    packed = path / "history.bin.z"
    return _inflated(packed) if packed.exists() else history.read(path / "history.bin")


def _inflated(path: Path) -> np.ndarray:
    most, unpacker = integrity.most_bytes("history.bin"), zlib.decompressobj()
    data = unpacker.decompress(integrity.content(path), most)
    if not unpacker.eof:
        raise zlib.error(f"cut short, or more than {most} bytes")
    return np.frombuffer(data[: len(data) // history.ROW.itemsize * history.ROW.itemsize], history.ROW)


def _by_number(folders: Iterable[Path]) -> Iterator[tuple[int, Path]]:
    """(number, folder) of each session of the parts of a run, in the order in which they took place."""
    for part in folders:
        for path in sorted((part / FOLDER).glob("*")):
            if path.name.isdecimal() and path.is_dir():
                yield int(path.name), path


def unjudged(folders: Iterable[Path]) -> list[np.ndarray]:
    """The commands, history.ROW[n], of each session that did not come to its verdict, of each try of one in which the
    rig failed, and of those by which the drive's current was learnt."""
    rows = []
    for _, path in _by_number(folders):
        for name in ("history.bin", LOST):
            with contextlib.suppress(OSError):
                rows.append(history.read(path / name))
        for learnt in sorted(path.glob(LEARNT.format("*"))):
            with contextlib.suppress(OSError, zlib.error):
                rows.append(_inflated(learnt))
    return rows


def known(folders: Iterable[Path], layout: "Layout", numbers: Iterable[int]) -> "Known":
    """The state after the judged sessions of a run, by number, from their files. Where those of one are
    damaged or not there, nothing is known any more."""
    from ssdrig.powerloss import layout as layouts
    from ssdrig.powerloss import verdict

    contents, missing = verdict.known(layout.base_blocks, 0), set(numbers)
    for number, path in _by_number(folders):
        document = unsealed(path / "verdict.json")
        if document is None:
            continue
        record = document["record"]
        try:
            stored = integrity.arrays(content(path, document, "seen.npz"))
            fields = {name: stored[name] for name in verdict.Blocks._fields}
            trimmed, finding = stored["trimmed_after"], stored["finding"]
            at = layouts.index(layout, fields["lba"])
            if not len(at) == len(fields["seen"]) == len(trimmed) == len(finding) or (at < 0).any():
                raise ValueError("blocks outside the campaign")
        except Exception:  # whatever zipfile and numpy raise of damaged bytes: a dozen kinds
            continue
        missing.discard(number)
        if record.get("whole"):
            contents.verified[:] = number
        verdict.record_contents(contents, at, verdict.Blocks(**fields), trimmed, number)
    if missing:
        contents.content[:], contents.trimmed[:] = UNKNOWN, True
    return contents


def first_seq(folders: Iterable[Path], base: np.ndarray) -> int:
    """A number for the next command that none of the run had before: neither on the drive, `base`, nor in a history,
    whose end may be missing."""
    highest, begun = int(base.max(initial=0)), False
    for part in folders:
        for path in (part / FOLDER).glob("*"):
            begun = True
            try:
                rows = rows_of(path)
            except (OSError, zlib.error):
                continue
            if len(rows) and rows["seq"][-1] < MOST_SEQ:
                highest = max(highest, int(rows["seq"][-1]))
    return highest + 1 + begun * LOST_ROWS
