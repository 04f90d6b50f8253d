"""A table in a file that another program wrote, also .gz: times and numbers of its lines, by a layout that the caller
makes of its first lines."""

import codecs
import gzip
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ssdrig.base import columns
from ssdrig.base.errors import UsageError

LINES_AT_ONCE = 200_000
HEAD_LINES = 60  # before the headings
MOST_LINE_BYTES = 1 << 16
MOST_SAMPLES = 100_000_000  # of a CSV; each takes some 100 bytes of memory until it is in the run
NO_NUMBER = 9e37  # instruments write 9.9e37 for an overflow and 9.91e37 for not-a-number (SCPI-1999, 7.2.1.4)
UTC_FROM_NS = 10**18  # numbers from here on are Unix times, of 2001 and later
TIME_NAMES = ("time", "timestamp", "t", "utc", "date", "datetime", "date/time", "elapsed", "elapsed time", "seconds")
DO = "correct the line, or leave it out"
NO_LINE_END = "the last line has no end, so it may be cut: it is left out"


class Layout(NamedTuple):
    """`places`: role -> (field, factor to ns, V, A or W); `rails`: number of a rail as roles have it -> name; `zoned`:
    its times of day state their zone. `tolerant`: a field without a number is not-a-number, and a line without a time
    is left out; otherwise both are refused. `notes`: what read() left out."""

    mark: str
    places: dict[str, tuple[int, Any]]
    rails: dict[str, str]
    utc: bool
    zoned: bool
    decimal: str = "."
    quarch: bool = False
    tolerant: bool = False
    notes: tuple[str, ...] = ()


def read(
    path: Path, layout_of: Callable[[Sequence[str]], tuple[int, Layout]], most: int | None = None
) -> tuple[np.ndarray, dict[str, np.ndarray], Layout]:
    """The columns of a table: times (int64 ns), the values of each role in its unit, NaN without a number, and how they
    lie.

    layout_of: given the first lines, returns the number of the first line with values, and how they lie
    most: lines that are read, MOST_SAMPLES by default; a file with more is refused
    Raises UsageError, OSError, EOFError, zlib.error."""
    parts, count = [], 0
    notes: list[str] = []
    most = MOST_SAMPLES if most is None else most
    with _open(path) as file:
        lines = _lines(file, path, notes)
        head = list(itertools.islice(lines, HEAD_LINES))
        at, layout = layout_of(head)
        for chunk in _chunks(itertools.chain(head[at:], lines)):
            count += len(chunk)
            if count > most:
                raise UsageError(f"at most {most} samples in {path}", "more", "take a part of it, or average it first")
            parts.append(_part(layout, chunk, at + 1, path))
    if not parts:
        raise UsageError(f"lines of numbers in {path}", "none", "name another file")
    t_ns = np.concatenate([part[0] for part in parts])
    values = {role: np.concatenate([part[1][role] for part in parts]) for role in parts[0][1]}
    values = {role: np.where(np.abs(of) < NO_NUMBER, of, np.nan) for role, of in values.items()}
    return t_ns, values, layout._replace(notes=tuple(notes))


def _lines(file: IO[bytes], path: Path, notes: list[str]) -> Iterator[str]:
    """The lines of a CSV. A last one without an end is left out, with a note: "3.30" may be of "3.301". Raises
    UsageError for a line that is too long."""
    while raw := file.readline(MOST_LINE_BYTES):
        if len(raw) == MOST_LINE_BYTES:
            raise UsageError(
                f"lines of a CSV in {path}", f"one of {MOST_LINE_BYTES} bytes or more", "name another file"
            )
        if not raw.endswith(b"\n") and raw.strip():
            notes.append(NO_LINE_END)
            return
        yield raw.decode("utf-8-sig", "replace").rstrip("\r\n")


def _open(path: Path) -> IO[bytes]:
    """The file, unpacked. Raises UsageError for UTF-16."""
    with open(path, "rb") as file:
        begin = file.read(2)
    if begin in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise UsageError(f"text in UTF-8 in {path}", "UTF-16", "convert it: iconv -f UTF-16 -t UTF-8")
    packed = begin == b"\x1f\x8b"
    return gzip.open(path) if packed else open(path, "rb")  # type: ignore[return-value]


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    wanted = (line for line in lines if line.strip() and not line.startswith("#"))
    while chunk := list(itertools.islice(wanted, LINES_AT_ONCE)):
        yield chunk


def _part(layout: Layout, lines: list[str], first: int, path: Path) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times and values of these lines."""
    utc = layout.places["t"][1] == "utc"
    numbers = {role: place for role, place in layout.places.items() if not (utc and role == "t")}
    texts = [columns.unquoted(line, layout.mark) for line in lines]
    if layout.decimal == ",":  # a point is then a mark of thousands, or of nothing that is known
        texts = [text.replace(".", "?").replace(",", ".") for text in texts]
    fields = [place[0] for place in numbers.values()]
    try:
        table = np.loadtxt(texts, delimiter=layout.mark or None, usecols=fields, ndmin=2, comments=None)
    except ValueError as error:
        if not layout.tolerant:
            seen = f"{error} (counted from line {first})"[:200]
            raise UsageError(f"a number in each column of {path}", seen, DO) from error
        rows = (columns.split(line, layout.mark) for line in lines)
        table = np.array([_numbers(row, fields, layout.decimal) for row in rows], float)
    values = {}
    for column, (role, (_, factor)) in enumerate(numbers.items()):
        with np.errstate(over="ignore"):
            values[role] = table[:, column] * float(factor)
    if not utc:
        at = values.pop("t")
        if layout.tolerant:
            timed = np.isfinite(at) & (np.abs(at) < 2**62)
            at, values = at[timed], {role: of[timed] for role, of in values.items()}
        if not (np.isfinite(at) & (np.abs(at) < 2**62)).all():
            raise UsageError(
                f"times in {path}", "text that is not a number", "correct the lines, or --column t=NAME:UNIT"
            )
        return np.rint(at).astype(np.int64), values
    place = layout.places["t"][0]
    rows = [columns.split(line, layout.mark) for line in lines]
    times = [columns.utc_ns(row[place]) if place < len(row) else None for row in rows]
    if layout.tolerant:
        timed = np.array([t_ns is not None for t_ns in times], bool)
        times, values = [t for t in times if t is not None], {role: of[timed] for role, of in values.items()}
    if None in times:
        seen = repr(next(line for line, t_ns in zip(lines, times, strict=True) if t_ns is None)[:80])
        raise UsageError(f"an ISO 8601 time in each line of {path}", seen, DO)
    return np.array(times, np.int64), values


def _numbers(row: Sequence[str], fields: Sequence[int], decimal: str) -> list[float]:
    """These fields of a row; not-a-number where one is missing, or is text."""
    numbers = [columns.exact(row[field], decimal) if field < len(row) else None for field in fields]
    return [np.nan if number is None else float(number) for number in numbers]
