"""One run into a lake: every kind its own file, the row of the run last.

The content is a function of the run folder, of this ssdrig and of the lab, and so are the names: who exports twice
changes nothing, and two benches never write the same file. No row of a run names the remains of a kill; it is
written over when the run is exported again."""

import contextlib
import datetime
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ssdrig import __version__
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.meter import reduced
from ssdrig.publish.influx.line_protocol import drive_tag
from ssdrig.publish.lake import needs, read, rows, sampling, schema, seconds
from ssdrig.publish.lake.place import DO, Place
from ssdrig.reading import summary, table
from ssdrig.runs import integrity, labels, parts

if TYPE_CHECKING:
    import pyarrow as pa

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")  # of a run and of a lab: they become parts of paths
OF_RUN = re.compile(
    r"schema=\d+/kind=[a-z]+/date=[\d-]+/lab=[A-Za-z0-9._-]+/[A-Za-z0-9._-]+\.parquet"
)  # a file of a run
ROWS = 2000  # of smart and event per batch
NOT_IN_IT = {"lock", "reserve", *integrity.APART} - {"events.jsonl"}


class Exported(NamedTuple):
    """What export() did. `new`: False where the lake had the run as it is. `sample_bytes`: of all its samples."""

    run: str
    export: str
    new: bool
    files: list[str]
    bytes: int
    samples: int
    sample_bytes: int


def export(run: Path, place: Place, lab: str, with_samples: bool = True) -> Exported:
    """Put a run that has ended into the lake. Raises JournalError for a folder that is not such a run, RigError where
    rig.bin cannot be read, UsageError for an invalid name, or a run that is in the lake under another name."""
    run = parts.root(run)
    if place.is_local and Path(place.root).is_relative_to(run.resolve()):
        raise UsageError(f"a lake outside of the run folder {run}", place.words, "name another folder")
    of_parts = rows.read_parts(run)
    first = of_parts[0]
    name = name_of("the name of a run", first.header["run"])
    date = datetime.datetime.fromtimestamp(first.header["started"]["utc_ns"] / 1e9, datetime.UTC).date().isoformat()
    folder = f"date={date}/lab={name_of('the name of a lab', lab)}"
    digest = digest_of(run, lab, with_samples)
    mark = f"{read.KIND.format(schema.MARK)}/{folder}/{name}.parquet"
    before = earlier(place, mark, first.header)
    people = _labels(run)
    if before and before["export"] == digest and None not in place.sizes(before["files"]):
        if {key: before.get(key) for key in people} != people:  # they may change at any time: the row alone is new
            row = before | {"t_utc": round(before["t_utc"].timestamp() * 1e6)} | people
            _write(place, mark, schema.MARK, [schema.table(schema.MARK, [row])], {})
        return Exported(name, digest, False, before["files"], 0, before["samples"] or 0, 0)
    writer = _Writer(
        place, folder, f"{name}--{digest}", {"run": name, "export": digest, "drive": drive_tag(first.header)}
    )
    try:
        counts = _written(run, of_parts, writer, with_samples)
        if digest_of(run, lab, with_samples) != digest:
            raise JournalError(f"{run} as it was", "it was changed meanwhile", "do it again")
        if place.sizes(writer.files) != [*writer.files.values()]:  # whatever was stated when it was written
            raise JournalError(
                f"all files of {name} in {place.words}", "some that are missing, or of another length", DO
            )
        _write(place, mark, schema.MARK, [schema.table(schema.MARK, [counts | people])], {})
        if not read.row_of(place, mark):
            raise JournalError(f"the row of {name} in {place.words}", "none", DO)
        if before is None:
            _alone(place, mark)
    except BaseException:
        _tidy(place, mark, writer)
        raise
    for old in set(before["files"]) - set(writer.files) if before else ():
        if OF_RUN.fullmatch(old) and Path(old).name.startswith(f"{name}--"):  # guards against a foreign row
            place.remove(old)
    return Exported(
        name,
        digest,
        True,
        [*writer.files, mark],
        sum(writer.files.values()),
        counts["samples"] or 0,
        writer.sample_bytes,
    )


def _written(run: Path, of_parts: list[rows.Part], writer: "_Writer", with_samples: bool) -> rows.Row:
    """Writes all files but the row of the run, which it returns."""
    tables = schema.table
    whole = table.load(run)
    shared = rows.found_in(whole, of_parts)
    counts = _samples(writer, of_parts, with_samples)
    writer.put("figure", [tables("figure", ({**writer.same, **row} for row in shared.figures))])
    writer.put("cut", [tables("cut", ({**writer.same, **row} for row in rows.cuts(of_parts)))])
    writer.put("smart", writer.batches("smart", (row for part in of_parts for row in rows.smart(part))))
    writer.put("host", writer.batches("host", (row for part in of_parts for row in rows.host(part))))
    writer.put("application", writer.batches("application", rows.application(whole, of_parts)))
    writer.put("event", writer.batches("event", (row for part in of_parts for row in rows.events(part))))
    return rows.of_run(run, of_parts, shared) | writer.same | counts | {"files": [*writer.files]}


def _tidy(place: Place, mark: str, writer: "_Writer") -> None:
    """Removes what an export that failed has written, unless a row names it: where the disk is full, it is in the way
    of the next one."""
    with contextlib.suppress(JournalError):
        row = read.row_of(place, mark)
        for name in {*writer.files} - {*(row["files"] if row else ())}:
            place.remove(name)


def _labels(run: Path) -> dict[str, Any]:
    """The user's labels of a run, which are not part of its digest."""
    label = labels.read(run)
    return {"title": label.title, "tags": [*label.tags]}


def name_of(what: str, name: Any) -> str:
    """A name that is a part of a path and of no other. Raises UsageError."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UsageError(f"{what}: letters, digits and . _ - ", repr(name), "name it so")
    return name


def digest_of(run: Path, lab: str, with_samples: bool = True) -> str:
    """Digest of the folder's exported content, 16 hex digits. Raises JournalError."""
    digest = hashlib.sha256(f"{schema.VERSION} {__version__} {summary.code()} {lab} {with_samples}\n".encode())
    try:
        for path in sorted(run.rglob("*")):
            inside = path.relative_to(run)
            apart = path.name in NOT_IN_IT or integrity.APART_FOLDERS & {*inside.parts} or integrity.is_hidden(inside)
            if apart or not path.is_file():
                continue
            digest.update(f"{inside} {integrity.crc_of(path):08x} {path.stat().st_size}\n".encode("utf-8", "replace"))
    except OSError as error:
        raise JournalError(f"to read {run}", error.strerror or str(error), "fix the folder") from error
    return digest.hexdigest()[:16]


def of_another_lab(place: Place, mark: str) -> None:
    """Raises UsageError where the lake has the run of another lab."""
    date = mark.split("/lab=")[0]
    others = [name for name in place.names(date) if name.rpartition("/")[2] == mark.rpartition("/")[2] and name != mark]
    if others:
        lab = others[0].split("/lab=")[1].split("/")[0]
        raise UsageError(f"a run that the lake {place.words} does not have", f"it, of lab {lab}", f"use --lab {lab}")


def earlier(place: Place, mark: str, header: Mapping[str, Any]) -> dict | None:
    """The row of this run that the lake has. Raises UsageError where that is another run's, or of another lab."""
    of_another_lab(place, mark)
    row = read.row_of(place, mark)
    if row and (row["t_ns"], row["serial"]) != (header["started"]["t_ns"], header["drive"].get("serial")):
        seen = f"one of drive {row['serial']} that began at {row['t_utc']}"
        raise UsageError(f"no other run of this name in the lake {place.words}", seen, "name another lake, or --lab")
    return row


def _alone(place: Place, mark: str) -> None:
    """A bucket has no lock: if two labs export one run at the same time, each of them looked before the
    other had written. Who then finds the other takes its own row away. Raises UsageError."""
    try:
        of_another_lab(place, mark)
    except UsageError:
        place.remove(mark)
        raise


class _Writer:
    """The files of one export, as they come. `files`: name -> bytes."""

    def __init__(self, place: Place, folder: str, stem: str, same: Mapping[str, Any]):
        self.place, self.same = place, dict(same)
        self._folder, self._stem = folder, stem
        self.files: dict[str, int] = {}
        self.sample_bytes = 0

    def put(self, kind: str, tables: Iterable["pa.Table"], more: str = "") -> None:
        """Write a file, unless it would be empty."""
        name = f"{read.KIND.format(kind)}/{self._folder}/{self._stem}{more}.parquet"
        written = _write(self.place, name, kind, (table for table in tables if table.num_rows), self.same)
        if written is not None:
            self.files[name] = written
            self.sample_bytes += written if kind == "sample" else 0

    def batches(self, kind: str, rows_: Iterator[rows.Row]) -> Iterator["pa.Table"]:
        held: list[rows.Row] = []
        for row in rows_:
            held.append(self.same | row)
            if len(held) == ROWS:
                yield schema.table(kind, held)
                held = []
        yield schema.table(kind, held)


def _samples(writer: _Writer, of_parts: list[rows.Part], with_samples: bool) -> rows.Row:
    """The samples and seconds of all parts; their columns in the row of the run."""
    seen: list[reduced.Reduced] = []
    by_second: list[Iterable[pa.Table]] = []
    for part in of_parts:
        same = {**writer.same, "part": part.number}
        steps = seconds.steps(part.folder, part.events)
        heads = sampling.heads_of(part)
        powers = seconds.powers_of(part.folder, steps, heads)
        if heads is not None and powers and with_samples:
            for rail, name in sampling.rails(heads):
                more = f"--{rail}" + (f"--{part.number}" if part.number > 1 else "")
                writer.put("sample", sampling.tables(part.folder, rail, heads, part.utc, {**same, "rail": name}), more)
        by_second.append(seconds.tables(steps, powers, part.utc, same))
        seen += powers
    writer.put("second", (table for tables in by_second for table in tables))
    if not seen:
        return dict.fromkeys(("rails", "calibrated", "samples", "samples_lost"))
    return {
        "rails": len({one.rail for one in seen}),
        "calibrated": all((one.facts or {}).get("calibration") for one in seen),
        "samples": sum(int(one.samples_before([seconds.ALL_NS])[0]) for one in seen),
        "samples_lost": sum(int(one.gaps.lost.sum()) for one in seen),
    }


def _write(place: Place, name: str, kind: str, tables: Iterable["pa.Table"], same: Mapping[str, Any]) -> int | None:
    """Bytes of the file; None: no row, no file."""
    parquet = needs("pyarrow.parquet")
    tables = iter(tables)
    first = next(tables, None)
    if first is None:
        return None
    metadata = {
        "ssdrig": __version__,
        "schema": str(schema.VERSION),
        "kind": kind,
        **{k: str(v) for k, v in same.items()},
    }
    with place.writing(name) as file:
        with parquet.ParquetWriter(file, schema.of(kind), **schema.written_as(kind)) as writer:
            writer.add_key_value_metadata(metadata)
            writer.write_table(first, row_group_size=sampling.GROUP)
            for table in tables:
                writer.write_table(table, row_group_size=sampling.GROUP)
        return file.tell()
