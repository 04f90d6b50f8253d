"""The per-second log of an application that ran during a recording: a table with a time and columns of numbers, placed
on the run's axis.

A log with UTC is placed by this host's clock, to the resolution of its times. A log that counts from its own start is
placed by the command: its zero is not before the command's start, and its last row not after the command's end."""

import contextlib
import itertools
import math
import os
import re
import stat
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base import columns, table_file, utc
from ssdrig.base.columns import NS
from ssdrig.base.errors import LoadError, UsageError
from ssdrig.base.table_file import TIME_NAMES, UTC_FROM_NS, Layout
from ssdrig.base.terminal import printable

NAME = "application.csv"  # in the folder of a recording
EVENT = "application_log"  # of the journal
MOST_BYTES = 64 << 20
MOST_ROWS = 1_000_000
MOST_COLUMNS = 8
MOST_NAME = 60  # characters
MOST_NOTE = 200  # characters
MOST_VALUE = 1e30
LOOK = 20  # rows in which a column has a number, or counts as text
MISSED_ROWS = 3  # at an end of the recording: more are a part that the log does not cover
SECOND_NS = 1_000_000_000
DO = "write a line of headings, then a time and numbers in each line, separated by commas, tabs or blanks"
_OLDEST = {"s": 10**9, "ms": 10**12, "us": 10**15, "ns": 10**18}  # Unix times from 2001 on, by their unit


class Log(NamedTuple):
    """`t_ns`: int64, UTC, or since the application's own start; rising. `values`: of each column, float64,
    not-a-number where a row has none. `resolution_ns`: of the times. `notes`: omissions and assumptions. `zoned`: times
    of day state their zone."""

    utc: bool
    t_ns: np.ndarray
    values: Mapping[str, np.ndarray]
    resolution_ns: int
    notes: tuple[str, ...]
    zoned: bool = True


class Headings(NamedTuple):
    """`names`: of the columns of numbers; `left`: of the others; `resolution_ns`: of the times, at least."""

    names: list[str]
    left: list[str]
    resolution_ns: int


class Before(NamedTuple):
    """A log before the recording. `stamp`: see stamp(); `rows_bytes`, `crc`: of a file that has rows already."""

    stamp: tuple[int, int, int] | None
    rows_bytes: int = 0
    crc: int = 0


class Placed(NamedTuple):
    """`t_ns`: int64, CLOCK_MONOTONIC, off by at most `error_ns`; `clock`: "utc" or "command"."""

    t_ns: np.ndarray
    error_ns: int
    clock: str


def check(path: Path, has_command: bool) -> None:
    """Raises UsageError for a log that cannot go with a recording. A command may still make the file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if not has_command:
            do = "name one that exists, or a COMMAND that writes it"
            raise UsageError(f"a log at {path}", "no such file", do) from None
        if not path.parent.is_dir():
            raise UsageError(f"a folder {path.parent}", "no such folder", "correct --log") from None
        return
    except OSError as error:
        raise UsageError(f"a log at {path}", error.strerror or str(error), "correct --log") from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"a file {path}", "something else", "name the file that the application writes")
    if not status.st_size:
        return
    try:
        log = read(path)
    except LoadError as error:
        raise UsageError(error.expected, error.seen, error.do) from error
    if not log.utc and not has_command:
        do = "log UTC, or let ssdrig start the application: -- COMMAND"
        raise UsageError(f"UTC in {path}", "times since a start that is not known", do)


def stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when the file does; None without the file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def before(path: Path) -> Before:
    """A log as it is before a recording."""
    at = stamp(path)
    with contextlib.suppress(LoadError, OSError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            return Before(at)  # a pipe would wait for its writer
        read(path)
        data = path.read_bytes()
        return Before(at, len(data), zlib.crc32(data))
    return Before(at)


def utc_offsets_s(times_s: Sequence[float]) -> list[int]:
    """By how much this host's local time was ahead of UTC at these Unix times, each once."""
    return sorted({int(time.localtime(at_s).tm_gmtoff) for at_s in times_s})


def read(path: Path) -> Log:
    """The log in a file of CSV, with tabs, semicolons, commas or blanks. Raises LoadError."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > MOST_BYTES:
                raise LoadError(f"a log of at most {MOST_BYTES >> 20} MiB", "more", "log less often")
            if file.read(2) == b"\x1f\x8b":
                raise LoadError(f"text in {path.name}", "gzip", "unpack it")
        headings: list[Headings] = []
        t_ns, values, layout = table_file.read(path, lambda head: _layout(head, headings), MOST_ROWS)
    except OSError as error:
        raise LoadError(f"a log at {path}", error.strerror or str(error), "correct --log") from error
    except UsageError as error:
        raise LoadError(error.expected, error.seen, DO) from error
    return _log(path, t_ns, values, layout, headings[-1])


def _log(path: Path, t_ns: np.ndarray, values: dict, layout: Layout, headings: Headings) -> Log:
    names = headings.names
    is_utc = layout.places["t"][1] == "utc" or bool(len(t_ns)) and int(t_ns[0]) >= UTC_FROM_NS
    notes = [f"only its first {MOST_COLUMNS} columns of numbers are taken"] if len(names) > MOST_COLUMNS else []
    notes += layout.notes
    if headings.left:
        notes.append(f"without a number in the first {LOOK} rows, left out: {', '.join(headings.left)}"[:MOST_NOTE])
    fits = (t_ns >= UTC_FROM_NS) & (t_ns < 1 << 62) if is_utc else (t_ns >= 0) & (t_ns < UTC_FROM_NS)
    if not fits.any():
        raise LoadError(f"rows with a time in {path.name}", "none", DO)
    if not fits.all():
        notes.append(f"{int((~fits).sum())} rows without a possible time are left out")
    t_ns = np.rint(t_ns[fits] / 1000).astype(np.int64) * 1000  # of Unix time a float64 holds 0.3 µs
    if not is_utc and (np.diff(t_ns) < 0).any():
        row = int(np.flatnonzero(np.diff(t_ns) < 0)[0]) + 2
        raise LoadError(f"times that rise in {path.name}", f"row {row} before the one above it", "begin a new log")
    order = np.argsort(t_ns, kind="stable")
    out: dict[str, np.ndarray] = {}
    for role, name in enumerate(names[:MOST_COLUMNS]):
        column = values[str(role)][fits][order]
        column = np.where(np.abs(column) < MOST_VALUE, column, np.nan)
        if np.isfinite(column).any():
            out[name] = column
    if not out:
        raise LoadError(f"columns of numbers in {path.name}", "none", DO)
    resolution_ns = max(_resolution_ns(t_ns), headings.resolution_ns)
    return Log(is_utc, t_ns[order], out, resolution_ns, tuple(notes), layout.places["t"][1] != "utc" or layout.zoned)


def layout(head: Sequence[str]) -> tuple[int, Layout]:
    """The first line of values, and how they lie. Raises UsageError."""
    return _layout(head, [])


def _layout(head: Sequence[str], out: list[Headings]) -> tuple[int, Layout]:
    """layout(); puts the headings into `out`."""
    wanted = [(number, line) for number, line in enumerate(head) if line.strip()]
    rows = [(number, line) for number, line in wanted if not line.startswith("#")]
    for at, (number, line) in enumerate(rows):
        mark = columns.delimiter(line)
        fields = [columns.split(row, mark) for _, row in rows[at : at + LOOK]]
        before = [above for place, above in wanted if place < number][-1:]
        headings = columns.split(before[0].lstrip("# "), mark) if before else []
        headings = headings if len(headings) == len(fields[0]) else []
        decimal = columns.decimal(fields, mark)
        timed = next((n for n, heading in enumerate(headings) if _is_time(heading)), 0)
        factor = _factor(fields[0][timed], headings[timed] if headings else "", decimal) if fields[0] else None
        numbers = [n for n in range(len(fields[0])) if n != timed and _has_number(fields, n, decimal)]
        if factor is None or not numbers:
            continue
        others = [n for n in range(len(fields[0])) if n != timed and n not in numbers and (headings or fields[0])[n]]
        least_ns = _least_ns(fields[0][timed], factor)
        out.append(Headings(_names(headings, numbers), _names(headings, others), least_ns))
        places = {"t": (timed, factor)} | {str(role): (n, 1) for role, n in enumerate(numbers[:MOST_COLUMNS])}
        zoned = factor == "utc" and columns.has_zone(fields[0][timed])
        return number, Layout(mark, places, {}, factor == "utc", zoned, decimal, tolerant=True)
    raise UsageError("a time and numbers in each line", repr(head[0][:120]) if head else "an empty file", DO)


def _is_time(heading: str) -> bool:
    name = columns.named(heading)[0].casefold()
    return name in TIME_NAMES or name.split()[:1] in (["time"], ["timestamp"])


def _factor(text: str, heading: str, decimal: str) -> Any:
    """What makes ns of a time: "utc", or a factor by the heading's unit, or by the size of a Unix time; None: it is not
    a time."""
    if columns.utc_ns(text) is not None:
        return "utc"
    value = columns.exact(text, decimal)
    if value is None:
        return None
    unit = columns.named(heading)[1]
    if unit in NS:
        return NS[unit]
    if value < _OLDEST["s"]:
        return NS["s"]
    return next((NS[unit] for unit, oldest in _OLDEST.items() if oldest <= value < 100 * oldest), None)


def _least_ns(text: str, factor: Any) -> int:
    """What a time leaves open by its form: minutes without seconds, hours without minutes."""
    if factor == "utc":
        parts = re.search(r"[T ]\d\d(:?\d\d)?(:?\d\d)?", text)
        return 0 if parts is None or parts[2] else SECOND_NS * (60 if parts[1] else 3600)
    return NS["min"] if factor == NS["min"] and text.isdigit() else 0


def _has_number(rows: Sequence[Sequence[str]], field: int, decimal: str) -> bool:
    return any(field < len(row) and columns.exact(row[field], decimal) is not None for row in rows)


def _names(headings: Sequence[str], numbers: Sequence[int]) -> list[str]:
    """A name for each column, no two alike."""
    names: list[str] = []
    for n in numbers:
        name = printable(headings[n])[:MOST_NAME].strip() if headings else ""
        if not name or name in names:
            name = next(
                free for m in itertools.count(n + 1) if (free := f"column {m}") not in names and free not in headings
            )
        names.append(name)
    return names


def _resolution_ns(t_ns: np.ndarray) -> int:
    """The largest power of ten of 1 µs to 1 s that all times are multiples of."""
    common = int(np.gcd.reduce(t_ns // 1000))
    return next(1000 * step for step in (10**6, 10**5, 10**4, 1000, 100, 10, 1) if common % step == 0)


def placed(log: Log, events: Sequence[Mapping], step: str, changed: bool) -> Placed:
    """The rows on CLOCK_MONOTONIC.

    events: of the run
    step: path of the step that recorded
    changed: the file was written during the recording
    Raises LoadError."""
    if log.utc:
        known = utc.distance(events)
        if known is None or known[1] > utc.MOST_STEP_NS:
            seen = "no anchor" if known is None else f"a clock that was set by {known[1] / 1e9:.3g} s meanwhile"
            raise LoadError("a run whose UTC is known", seen, "record it again")
        return Placed(log.t_ns - np.int64(known[0]), known[1] + log.resolution_ns, "utc")
    own = {event["kind"]: event for event in events if event.get("step") == step}
    begun, ended = own.get("command.start"), own.get("command.end")
    if begun is None or ended is None:
        raise LoadError("UTC in the log, or a command", "times since a start that is not known", "log UTC")
    if not changed:
        raise LoadError("a log that the command wrote", "one that did not change while it ran", "see where it logs")
    from_ns = begun.get("from_ns")
    earliest = from_ns if type(from_ns) is int and 0 < from_ns <= begun["t_ns"] else begun["t_ns"]
    latest = ended["t_ns"] - int(log.t_ns[-1])
    if latest < earliest - log.resolution_ns:
        seen = f"a row {(earliest - latest) / 1e9:.3g} s after the command's end"
        raise LoadError("times of the command's run", seen, "log seconds since its start, or UTC")
    latest = max(earliest, latest)
    error_ns = (latest - earliest + 1) // 2 + log.resolution_ns
    return Placed(log.t_ns + np.int64((earliest + latest) // 2), error_ns, "command")


def laid(
    folder: Path, events: Sequence[Mapping], step: str, span_ns: tuple[int, int], k: int
) -> tuple[dict, Log, Placed]:
    """The rows of a recording that its log has, and their figures in drive time: {"file", "clock", "rows",
    "time_error_s", "period_s", "columns": [{"name", "rows", "mean", "min", "max"}], "notes"}.

    folder: recorded/<step>
    span_ns: the recording's first and last reading
    k: time dilation
    Raises LoadError; without a log that was asked for, too."""
    event = next((event for event in events if event["kind"] == EVENT and event.get("step") == step), {})
    if event.get("why"):
        raise LoadError("a log", str(event["why"])[:200], "see where the application logs")
    log = read(folder / NAME)
    if not log.utc and event.get("older_bytes"):
        raise LoadError("seconds of this command alone", "a log that had rows before it", "begin a new log")
    at = placed(log, events, step, bool(event.get("changed")))
    notes = [*log.notes]
    if not log.zoned:
        at, note = _in_zone(at, event, span_ns)
        notes.append(note)
    within = (at.t_ns >= span_ns[0] - at.error_ns) & (at.t_ns <= span_ns[1] + at.error_ns)
    if not within.any():
        away_s = (int(at.t_ns[0]) - span_ns[0]) / 1e9
        raise LoadError("a log of the recording's time", f"one that begins {away_s:+.3g} s from it", "see its clock")
    if not within.all():
        notes.append(f"{int((~within).sum())} rows of another time are left out")
    notes += _rotated(event)
    if event.get("left_bytes"):
        notes.append("its last line has no end and is left out")
    log = log._replace(t_ns=log.t_ns[within], values={name: of[within] for name, of in log.values.items()})
    at = at._replace(t_ns=at.t_ns[within])
    for name, of in log.values.items():
        if unknown := int(np.isnan(of).sum()):
            notes.append(f"{name}: {unknown} of {len(of)} rows have no number")
    period = np.diff(np.unique(at.t_ns))
    notes += _uncovered(at, period, span_ns, k)
    figures = {
        "file": printable(str(event.get("file") or NAME))[:MOST_NAME],
        "clock": at.clock,
        "rows": len(at.t_ns),
        "time_error_s": at.error_ns / SECOND_NS / k,
        "period_s": float(np.median(period)) / SECOND_NS / k if len(period) else None,
        "columns": [_figures(name, of) for name, of in log.values.items()],
        "notes": notes,
    }
    return figures, log, at


def _rotated(event: Mapping) -> list[str]:
    """Notes on the joined files that had the log's name."""
    ends, left = event.get("files"), event.get("left_files")
    ends = [end for end in ends if isinstance(end, str)] if isinstance(ends, list) else []
    notes = [f"rows of {len(ends)} earlier files of its name come first"] if ends else []
    if cut := ends.count("truncated"):
        notes.append(f"it was truncated {cut} times: rows of the 0.1 s before may be missing")
    if type(left) is int and left > 0:
        notes.append(f"{left} earlier files of its name have other columns and are left out")
    return notes


def _uncovered(at: Placed, period: np.ndarray, span_ns: tuple[int, int], k: int) -> list[str]:
    """How much of the recording is before the first row and after the last: of a log that was rotated, truncated or
    replaced only the rows since then are in the file."""
    least_ns = at.error_ns + MISSED_ROWS * (float(np.median(period)) if len(period) else 0.0)
    ends_ns = int(at.t_ns.min()) - span_ns[0], span_ns[1] - int(at.t_ns.max())
    words = "its rows begin {:.1f} s after the recording did", "its rows end {:.1f} s before the recording did"
    return [text.format(ns / SECOND_NS / k) for text, ns in zip(words, ends_ns, strict=True) if ns > least_ns]


def _in_zone(at: Placed, event: Mapping, span_ns: tuple[int, int]) -> tuple[Placed, str]:
    """Times of day without a zone, as UTC or as the host's local time: the one that puts rows into the recording and
    none after the copy. Also returns a note with that choice. Raises LoadError where both are possible."""
    stated = event.get("utc_offsets_s")
    offsets = [of for of in stated if type(of) is int and abs(of) < 86400] if isinstance(stated, list) else []
    fitting = []
    for offset_s in sorted({0, *offsets}, key=abs):
        t_ns = at.t_ns - np.int64(offset_s * SECOND_NS)
        of_it = (t_ns >= span_ns[0] - at.error_ns) & (t_ns <= span_ns[1] + at.error_ns)
        if of_it.any() and t_ns[-1] <= event.get("t_ns", span_ns[1]) + at.error_ns:
            fitting.append((offset_s, at._replace(t_ns=t_ns)))
    if len(fitting) > 1:
        words = " and ".join(_zone(offset_s) for offset_s, _ in fitting)
        raise LoadError(
            "times with their zone", f"times without, which fit as {words}", "log UTC with a Z, or Unix time"
        )
    offset_s, placed_at = fitting[0] if fitting else (0, at)
    return placed_at, f"its times state no zone and are taken as {_zone(offset_s)}"


def _zone(offset_s: int) -> str:
    return f"UTC{offset_s / 3600:+g} h" if offset_s else "UTC"


def _figures(name: str, values: np.ndarray) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    out = {"mean": float(known.mean()), "min": float(known.min()), "max": float(known.max())} if len(known) else {}
    return {"name": name, "rows": len(known), **(out or dict.fromkeys(("mean", "min", "max")))}


def by_second(t_s: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """At most a value a second of an axis: rows as they are, or the means of each second's, at its begin. Rows without
    a number are left out. t_s: rising."""
    known = np.isfinite(values)
    t_s, values = t_s[known], values[known]
    seconds, firsts = np.unique(np.floor(t_s), return_index=True)
    if len(seconds) == len(t_s):
        return t_s, values
    edges = [*firsts.tolist(), len(t_s)]
    means = [math.fsum(values[a:z].tolist()) / (z - a) for a, z in itertools.pairwise(edges)]
    return seconds, np.array(means)
