"""Traces of others as ours: one device, in blocks, wrapped to a range, in the order of their times, with their queue
depths where the source has them.

A hostile line ends the conversion with its number; nothing is written then."""

import bz2
import gzip
import heapq
import itertools
import lzma
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from ssdrig.base.columns import Column
from ssdrig.base.errors import UsageError
from ssdrig.load import trace_formats, trace_kernel, trace_tables
from ssdrig.load.trace_line import DONE, ISSUED, QUEUED, REQUEUED, Format, Line
from ssdrig.load.traceform import (
    DEPTH_MOST,
    END_MOST_BYTES,
    FLUSH,
    FUA,
    MOST_BYTES,
    OPS,
    READ,
    ROW,
    T_MOST_NS,
    TRIM,
    WINDOW_IOS,
    WRITE,
    ZEROES,
)

LINE_MOST_BYTES, HEAD_BYTES = 4096, 1024
BINS_PER_OCTAVE = 64
TRIM_MOST_BYTES = 1 << 31
PIECES_MOST = 1024  # of one I/O that is longer than ours may be
FEW_EARLY, MOST_MERGED = 64, 4096  # completions without a beginning; I/Os in which merged ones are looked for
LOST_NS, LOST_IOS = 30 * 10**9, 10_000  # an I/O that has not ended by then has lost its completion
LOST_LEAST_NS, LOST_TIMES = 10**9, 10  # and so has one that is under way this much longer than the longest that ended
WRAP_BYTES, WRAP_LINES = 512 << 32, 64  # sector numbers of 32 bits begin again there; only soon after
Row = tuple[int, int, int, int, int, int, int]  # as traceform.ROW, then its end; times may be beyond an int64
FIX = "correct the line, or convert a part without it"
NO_LINE_END = "the last line, which has no end"
NO_BEGIN = "completions of I/Os that do not begin in the file"
LOST = re.compile(r"(?i)\bevents? (?:were )?(?:lost|dropped)\b|\b(?:lost|dropped) \d+ (?:events?|chunks?)\b", re.ASCII)
OVERWRITTEN = re.compile(r"# entries-in-buffer/entries-written: (\d{1,18})/(\d{1,18})\b.*", re.ASCII)


HOLE = "fetch or record it again: NUL bytes are a hole, or text in UTF-16"
DECIMALS = "write its decimals with a point, or record in the locale C (LC_ALL=C)"
_NEGATIVE = re.compile(r"(^|[\s,])-(?=\d)", re.ASCII)


def _with_points(line: str) -> Iterator[str]:
    """The line with a point in place of one of its commas between digits."""
    for match in itertools.islice(re.finditer(r"(?<=\d),(?=\d)", line, re.ASCII), 16):
        yield f"{line[: match.start()]}.{line[match.end() :]}"


@dataclass(frozen=True)
class Asked:
    """`device`: the one that is taken, "" the only one. `range_bytes`: places beyond it begin again at its beginning;
    None: as they are. `ios`: at most this many. `leave_out`: trims, flushes, Write Zeroes. `depth`: of each I/O, where
    the file lacks it. `zones`: whether the source may be a drive with zones. `fua`: whether writes keep this flag.
    `columns`: role -> column of a table (trace_tables.ROLES)."""

    device: str = ""
    range_bytes: int | None = None
    block_bytes: int = 512
    ios: int | None = None
    leave_out: tuple[int, ...] = ()
    depth: int | None = None
    zones: bool = True
    fua: bool = True
    columns: dict[str, Column] = field(default_factory=dict)

    def check(self) -> None:
        """Raises UsageError."""
        if self.block_bytes not in (512, 4096):
            raise UsageError("a block of 512 or 4096 bytes", str(self.block_bytes), "correct --block")
        if self.range_bytes is not None and (self.range_bytes < MOST_BYTES or self.range_bytes % self.block_bytes):
            least = f"a range of at least {MOST_BYTES >> 20} MiB in whole blocks"
            raise UsageError(least, f"{self.range_bytes} bytes", "correct --range")
        if self.ios is not None and self.ios < 1:
            raise UsageError("at least one I/O", str(self.ios), "correct --ios")
        if self.depth is not None and not 1 <= self.depth <= DEPTH_MOST:
            raise UsageError(f"a queue depth of 1 to {DEPTH_MOST}", str(self.depth), "correct --depth")


class Services:
    """Service times of the original's reads and writes, in bins of 1.1 %."""

    def __init__(self) -> None:
        self._bins: dict[int, Counter[int]] = {READ: Counter(), WRITE: Counter()}
        self._sums, self._most = dict.fromkeys((READ, WRITE), 0), dict.fromkeys((READ, WRITE), 0)

    def add(self, op: int, lasts_ns: int) -> None:
        if op in self._bins and lasts_ns >= 0:
            self._bins[op][round(BINS_PER_OCTAVE * math.log2(lasts_ns)) if lasts_ns else -1] += 1
            self._sums[op] += lasts_ns
            self._most[op] = max(self._most[op], lasts_ns)

    def words(self) -> dict | None:
        """{"reads", "writes": {"ios", "mean_us", "p50_us", "p99_us", "max_us"} or None without any}; None without
        both."""
        figures = {name: self._of(op) for name, op in (("reads", READ), ("writes", WRITE))}
        return figures if any(figures.values()) else None

    def _of(self, op: int) -> dict | None:
        bins = self._bins[op]
        if not (ios := bins.total()):
            return None
        places, counts = zip(*sorted(bins.items()), strict=True)
        rising = np.cumsum(counts)

        def quantile_us(share: float) -> float:
            place = places[int(np.searchsorted(rising, share * ios))]
            return 0.0 if place < 0 else min(2 ** (place / BINS_PER_OCTAVE), self._most[op]) / 1e3

        mean_us = self._sums[op] / ios / 1e3
        shares = {"p50_us": quantile_us(0.5), "p99_us": quantile_us(0.99)}
        return {"ios": ios, "mean_us": mean_us, **shares, "max_us": self._most[op] / 1e3}


class _Begun(NamedTuple):
    """An I/O under way: its last byte's end, when it began, I/Os that had ended by then, its operation."""

    end: int
    t_ns: int
    ended_before: int
    op: int


class Flight:
    """I/Os of one device that have begun and not ended; several may have the same place. `lost`: of how many a line is
    missing; `unmatched`: completions of none of them. `services`: takes how long each of them lasts."""

    def __init__(self, services: Services | None = None) -> None:
        self._services = services or Services()
        self.lost = self.ended = self.begun = self.under_way = self.unmatched = 0
        self._early = 0  # completions of I/Os that may have begun before the file
        self._ends: dict[int, list[_Begun]] = {}  # by their first byte, in the order of their begins
        self._again: set[tuple[int, int, int]] = set()  # place, end, operation of those that are issued once more
        self._since_ns: int | None = None
        self._longest_ns = 0  # of those that ended

    def begin(self, t_ns: int, begin: int, length: int, op: int = READ) -> int | None:
        """How many are under way with this one. None: it is under way already, and issued again."""
        self._since_ns = t_ns if self._since_ns is None else self._since_ns
        self.begun += 1
        if self.under_way > DEPTH_MOST:
            self.lost += self.under_way
            self.under_way = 0
            self._ends.clear()
        if (key := (begin, begin + length, op)) in self._again:
            self._again.remove(key)
            return None
        self._ends.setdefault(begin, []).append(_Begun(begin + length, t_ns, self.ended, op))
        self.under_way += 1
        return self.under_way

    def requeue(self, begin: int, length: int, op: int) -> None:
        """An I/O under way goes back to its queue: its next begin is the same I/O."""
        if any(one.end == begin + length and one.op == op for one in self._ends.get(begin, ())):
            self._again.add((begin, begin + length, op))

    def grown(self, begin: int, length: int, op: int) -> list[tuple[int, int]]:
        """The ranges (begin, end), by place, of I/Os that were taken back and are part of this longer one, which takes
        their place: others were merged with them in the queue."""
        inside = {key for key in self._again if key[2] == op and begin <= key[0] and key[1] <= begin + length}
        inside.discard((begin, begin + length, op))
        for at, end, _ in inside:
            self._take(at, next(one for one in self._ends[at] if one.end == end and one.op == op))
        self._again -= inside
        return sorted((at, end) for at, end, _ in inside)

    def end(self, t_ns: int, begin: int, length: int, op: int = READ) -> None:
        """The I/Os within this range have ended."""
        until, there = begin + length, self._ends.get(begin, [])
        same = [one for one in there if one.end == until]
        if same:
            within = [(begin, next((one for one in same if one.op == op), same[0]))]
        else:  # merged, or in parts: an end after the range has only moved on
            if longer := next((one for one in there if one.end > until), None):
                self._take(begin, longer)
                self._ends.setdefault(until, []).append(longer)
                self.under_way += 1
                return
            places = self._ends.items() if self.under_way <= MOST_MERGED else ()
            within = [(at, one) for at, begun in places if begin <= at for one in begun if one.end <= until]
        if not within:
            self.unmatched += 1
            early = self._since_ns is None or t_ns - self._since_ns <= LOST_NS
            self._early += early
            self.lost += not early
        for at, one in within:
            self._take(at, one)
            self._services.add(one.op, t_ns - one.t_ns)
            self._longest_ns = max(self._longest_ns, t_ns - one.t_ns)
        self.ended += len(within)

    def _take(self, begin: int, one: _Begun) -> None:
        self._ends[begin].remove(one)
        self.under_way -= 1
        if not self._ends[begin]:
            del self._ends[begin]

    def close(self, t_ns: int) -> None:
        """No more lines come."""
        left = (one for begun in self._ends.values() for one in begun)
        most_ns = min(LOST_NS, max(LOST_LEAST_NS, LOST_TIMES * self._longest_ns)) if self.ended else LOST_NS
        late = (t_ns - one.t_ns > most_ns or self.ended - one.ended_before > LOST_IOS for one in left)
        self.lost += sum(late) + (self._early if self._early > max(FEW_EARLY, self.begun // 100) else 0)


class Responses:
    """Queue depths of I/Os whose ends are known. The I/Os come in the order of their times."""

    def __init__(self) -> None:
        self._ends: list[int] = []

    def of(self, t_ns: int, end_ns: int) -> int:
        while self._ends and self._ends[0] <= t_ns:
            heapq.heappop(self._ends)
        heapq.heappush(self._ends, max(end_ns, t_ns + 1))
        return len(self._ends)


class Conversion:
    """`windows()` makes the rows of the file; `words()`, for the header, is complete once they exist."""

    def __init__(self, path: Path, asked: Asked):
        asked.check()
        self.path, self.asked, self.device, self.cut = path, asked, asked.device, False
        self.format: Format | None = None
        self.number = 0
        self.services = Services()
        self.flight, self.responses = Flight(self.services), Responses()
        self.passed: dict[str, int] = {}  # why a line, or a flag, is left out -> how many
        self._over: dict[tuple[int, int], int] | None = {}  # I/Os across WRAP_BYTES; None: later ones are beyond it
        self.begins, self.ends = QUEUED, False  # the stage whose lines are taken; whether completions are there

    def _depths(self) -> tuple[str | None, str | None]:
        """The source of queue depths, or None and the reason."""
        assert self.format
        if self.asked.depth:
            return f"given: {self.asked.depth}", None
        if self.format.staged and not self.ends:
            return None, "the file has no lines of completed I/Os"
        if self.flight.lost:
            return None, f"lines are missing: of {self.flight.lost} I/Os the beginning or the end is not in the file"
        return self.format.depths.format(self.begins) or None, self.format.depths_why or None

    def words(self) -> dict:
        assert self.format
        of = f", device {self.device}" if self.device else ""
        depths, why = self._depths()
        return {
            "name": self.path.name,
            "synthetic": False,
            "scaled": self.cut,
            "timed": self.format.timed,
            "source": f"{self.format.name}{of}",
            "depths": depths,
            "depths_why": why,
            "step_ns": self.format.step_ns if self.format.timed else None,
            "left_out": self.passed | ({NO_BEGIN: self.flight.unmatched} if self.flight.unmatched else {}),
            "service": self.services.words() if depths or not self.format.staged else None,
            "parameters": asdict(self.asked),
        }

    def windows(self) -> Iterator[np.ndarray]:
        """Arrays of traceform.ROW. Raises UsageError."""
        self._look()
        begin_ns, last_ns, held = None, 0, []
        rows = self._rows()
        while True:
            for row in rows:
                held.append(row)
                if len(held) >= 2 * WINDOW_IOS:
                    break
            if not held:
                break
            whole = len(held) < 2 * WINDOW_IOS
            held.sort(key=lambda row: row[0])  # stable: traces of several CPUs are slightly out of order
            out, held = (held, []) if whole else (held[:WINDOW_IOS], held[WINDOW_IOS:])
            if begin_ns is None:
                begin_ns = last_ns = out[0][0]
            if out[0][0] < last_ns:
                raise self._back(last_ns - out[0][0])
            if out[-1][0] - begin_ns > T_MOST_NS:
                raise self._wrong("times within 30 years", f"{(out[-1][0] - begin_ns) / 1e9:.0f} s", FIX)
            last_ns = out[-1][0]
            yield self._window(out, begin_ns)
        if begin_ns is None:
            raise self._nothing()
        self.flight.close(last_ns)

    def _nothing(self) -> UsageError:
        device = "see whether --device names one of the file" if self.asked.device else "name a file that has some"
        if not (self.format and self.format.staged):
            return self._wrong("I/Os", "none", device)
        record = "record requests issued (D, block_rq_issue) and completed (C, block_rq_complete)"
        seen = "their ends alone" if self.ends else "none"
        return self._wrong("I/Os as they begin", seen, record if self.ends or not self.asked.device else device)

    def _window(self, rows: list[Row], begin_ns: int) -> np.ndarray:
        """Rows of ROW. I/Os of one time are under way together, so they have the depth of the last."""
        assert self.format
        made, depths = np.array([(row[0] - begin_ns, *row[1:6]) for row in rows], ROW), [row[5] for row in rows]
        if self.asked.depth:
            depths = [self.asked.depth] * len(rows)
        elif not self.format.staged and self.format.depths:
            depths = [self.responses.of(row[0], row[6]) for row in rows]
        starts = np.flatnonzero(np.diff(made["t_ns"], prepend=-1))
        most = np.maximum.reduceat(np.minimum(depths, DEPTH_MOST), starts)
        made["depth"] = np.repeat(most, np.diff(starts, append=len(made)))
        return made

    def _look(self) -> None:
        """Read a file whose I/Os may have several lines once, to learn which it has: requests issued to the drive are
        used if present, otherwise queued ones."""
        stages, device = set(), self.asked.device
        for line in self._lines():
            assert self.format
            if not self.format.staged:
                break
            for request in (request for request in line if not request.passed):
                device = device or request.device
                if request.device == device:
                    stages.add(request.stage)
        self.begins, self.ends = ISSUED if ISSUED in stages else QUEUED, DONE in stages
        self.number, self.format = 0, None

    def _rows(self) -> Iterator[Row]:
        made = 0
        for request in self._requests():
            if request.passed:
                self._pass(request.passed)
                continue
            if request.stage == REQUEUED:
                self.flight.requeue(request.offset_bytes, request.length_bytes, request.op)
                continue
            if request.stage == DONE:
                if request.length_bytes:
                    place = request.offset_bytes, request.length_bytes
                    self.flight.end(request.t_ns or 0, *place, request.op)
                continue
            self._refuse_wrapped(request)
            parts = self._new_parts(request)
            depth = self._depth(request)
            if depth is None or request.op in self.asked.leave_out:
                continue
            self._playable(request)
            if request.fua and (request.op != WRITE or not self.asked.fua):
                self._pass(f"the flag FUA of a {OPS[request.op]}")
            if request.lasts_ns is not None:
                self.services.add(request.op, request.lasts_ns)
            for row in (row for part in parts for row in self._placed(part, made, depth)):
                if made == self.asked.ios:
                    self.cut = True
                    return
                made += 1
                yield row

    def _requests(self) -> Iterator[Line]:
        """The Lines of the device that is taken. Those of a file whose I/Os have several lines come in the order of
        their times, whatever processor's buffer they come from: depths are counted by it."""
        held: list[tuple[int, int, Line]] = []  # time, number of the line
        last_ns = None
        lines = self._lines()
        while True:
            for line in lines:
                for request in line:
                    if request.passed:  # it does not show which device is meant
                        if request.device != (self.device or request.device) or request.stage not in ("", self.begins):
                            continue
                    elif not self._wanted(request.device) or request.stage not in (self.begins, DONE, REQUEUED):
                        continue
                    if not (self.format and self.format.staged):
                        yield request
                        continue
                    held.append((request.t_ns or 0, self.number, request))
                if len(held) >= 2 * WINDOW_IOS:
                    break
            if not held:
                return
            whole = len(held) < 2 * WINDOW_IOS
            held.sort(key=lambda row: row[0])
            out, held = (held, []) if whole else (held[:WINDOW_IOS], held[WINDOW_IOS:])
            read = self.number
            for t_ns, number, request in out:
                self.number = number
                if last_ns is not None and t_ns < last_ns:
                    raise self._back(last_ns - t_ns)
                last_ns = t_ns
                yield request
            self.number = read

    def _back(self, by_ns: int) -> UsageError:
        seen = f"one {by_ns / 1e9:.6f} s before one {WINDOW_IOS} I/Os earlier"
        return self._wrong("times that rise", seen, "sort the file by its times")

    def _refuse_wrapped(self, line: Line) -> None:
        """Raises UsageError where an I/O ends at or after sector 2^32, and one of the next begins at that end modulo
        2^32."""
        end_bytes = line.offset_bytes + line.length_bytes
        if self._over and line.offset_bytes >= WRAP_BYTES:
            self._over = None
        elif self._over is not None:
            since = self._over.get((line.op, line.offset_bytes))
            if since is not None and self.number - since <= WRAP_LINES:
                end = line.offset_bytes + WRAP_BYTES
                seen = f"byte {line.offset_bytes} right after the I/O that ends at byte {end}"
                do = "record again by a tool whose sector numbers have 64 bits"
                raise self._wrong("sector numbers that go on from 4294967295", seen, do)
            if line.length_bytes and line.offset_bytes < WRAP_BYTES <= end_bytes:
                self._over[line.op, end_bytes - WRAP_BYTES] = self.number

    def _pass(self, why: str) -> None:
        self.passed[why] = self.passed.get(why, 0) + 1

    def _new_parts(self, line: Line) -> list[Line]:
        """The line, without the I/Os that were taken back and have grown to it: they have their rows."""
        end, parts = line.offset_bytes + line.length_bytes, []
        earlier = self.flight.grown(line.offset_bytes, line.length_bytes, line.op) if line.op != FLUSH else []
        at = line.offset_bytes
        for begin, until in [*earlier, (end, end)]:
            if begin > at:
                parts.append(line._replace(offset_bytes=at, length_bytes=begin - at))
            at = until
        return parts if earlier else [line]

    def _depth(self, line: Line) -> int | None:
        """By completions that the file has; 0: not known yet, or without any, None: the line repeats an I/O."""
        if not self.format or not self.format.staged:
            return 0
        if line.op == FLUSH:
            return min(self.flight.under_way + 1, DEPTH_MOST) if self.ends else 0
        depth = self.flight.begin(line.t_ns or 0, line.offset_bytes, line.length_bytes, line.op)
        return None if depth is None else min(depth, DEPTH_MOST) if self.ends else 0

    def _playable(self, line: Line) -> None:
        """Raises UsageError."""
        if line.refusal:
            do = "leave Write Zeroes out with --no-zeroes" if line.op == ZEROES else FIX
            if line.op == TRIM and line.refusal:
                do = "leave trims out with --no-trims"
            if trace_kernel.ZONES in line.refusal:
                do = "record the load on a drive without zones: other drives have no zone pointers"
            if line.refusal in (trace_tables.LONG, trace_tables.PARTS):
                do = "name the columns by --column, with their unit"
            if line.refusal == trace_tables.NOT_READ:
                do = "record by blktrace, or ./ssdrig trace record"
            raise self._wrong("an I/O that can be played on a drive without zones", line.refusal, do)
        if line.unnamed and self.asked.zones:
            what = "the name of an operation (its kernel names Write Zeroes and Zone Append N)"
            do = "--no-zones if its drive has no zones: N is Write Zeroes then"
            raise self._wrong(what, f"N of {line.length_bytes} bytes", do)

    def _lines(self) -> Iterator[tuple[Line, ...]]:
        try:
            with self._open() as file:
                head, first, number, ended = file.read(HEAD_BYTES), 0, 0, False
                file.seek(0)
                while raw := file.readline(LINE_MOST_BYTES + 1):
                    number += 1
                    self.number = number
                    line = raw.decode("latin-1").rstrip("\r\n")
                    if self.number == 1:
                        line = line.removeprefix("\xef\xbb\xbf")  # a mark of UTF-8, as Windows writes it
                    if not line.strip():
                        continue
                    if self.format is None:
                        if line.startswith("#") and not (self.asked.columns or trace_formats.begins(line)):
                            continue  # a comment, or the heading of a table without one of ours
                        self.format = self._format_of(line, head)
                        first = self.number
                        if self.format.record_bytes:
                            yield from self._records(file, self.format)
                            return
                    if len(raw) > LINE_MOST_BYTES:
                        do = HOLE if "\0" in line else FIX
                        raise self._wrong(f"a line of at most {LINE_MOST_BYTES} bytes", f"{line[:60]!r} and more", do)
                    if self.number == first and self.format.header and self.format.header.fullmatch(line):
                        continue
                    if raw[-1:] != b"\n":
                        self.passed[NO_LINE_END] = 1
                        return
                    if overwritten := OVERWRITTEN.fullmatch(line):
                        self._overwritten(*map(int, overwritten.groups()))
                    ended = ended or bool(self.format.end and self.format.end.match(line))
                    request = self.format.parse(line)
                    if ended:
                        if request:
                            one = "one recording: nothing after its sums"
                            raise self._wrong(one, repr(line[:120]), "convert the files before they are joined")
                        continue
                    if request is None and LOST.search(line):
                        do = "record again with a larger buffer, or convert a part without the loss"
                        raise self._wrong("a recording without lost events", repr(line[:120]), do)
                    if request is None:
                        example = f"a line of {self.format.name}, such as {self.format.example!r}"
                        raise self._wrong(example, repr(line[:120]), self._hint(line, self.format))
                    yield request
        except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
            raise self._wrong("a compressed file that is whole", str(error), "fetch it again") from error
        except OSError as error:
            raise UsageError(f"a trace at {self.path}", error.strerror or str(error), "name another file") from error

    def _overwritten(self, stored: int, written: int) -> None:
        if written > stored:
            self.passed["events overwritten before the first one of the file"] = written - stored

    def _records(self, file: IO[bytes], format_: Format) -> Iterator[tuple[Line, ...]]:
        """The Lines of a binary file; `number` counts its records."""
        file.seek(0)
        self.number = 0
        while record := file.read(format_.record_bytes):
            self.number += 1
            lines = format_.parse(record.decode("latin-1")) if len(record) == format_.record_bytes else None
            if lines is None:
                seen = f"{len(record)} bytes of another content, or the end"
                raise self._wrong(f"a record of {format_.record_bytes} bytes of {format_.name}", seen, FIX)
            yield lines

    def _open(self) -> IO[bytes]:
        with open(self.path, "rb") as file:
            first = file.read(6)
        for magic, opened in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open)):
            if first.startswith(magic):
                return opened(self.path)  # type: ignore[operator, return-value]
        return open(self.path, "rb")

    def _format_of(self, line: str, head: bytes) -> Format:
        if not self.asked.columns and (other := trace_tables.refusal(head, line)):
            raise self._wrong("a trace that can be read", other[0], other[1])
        if format_ := trace_formats.of(line, self.asked.columns, head):
            return format_
        expected = f"a format that is known: {', '.join(trace_formats.names())}"
        do = "name the columns of a table by --column, or see schemas/trace.md"
        if "\0" in line:
            do = HOLE
        elif not self.asked.columns and any(trace_formats.of(other) for other in _with_points(line)):
            do = DECIMALS
        raise self._wrong(expected, repr(line[:120]), do)

    @staticmethod
    def _hint(line: str, known: Format) -> str:
        """What to do about a line that is not of the format."""
        if "\0" in line:
            return HOLE
        if known.header and known.header.fullmatch(line):
            return "convert the files before they are joined, or take the heading out if their times go on"
        if any(known.parse(other) for other in _with_points(line)):
            return DECIMALS
        if known.parse(_NEGATIVE.sub(r"\1", line)):
            return "record again by a tool whose numbers do not overflow: none of an I/O is below 0"
        return FIX

    def _wanted(self, device: str) -> bool:
        self.device = self.device or device
        if device == self.device:
            return True
        if self.asked.device:
            return False
        raise self._wrong(f"one device, as before {self.device!r}", repr(device), "choose one with --device")

    def _placed(self, line: Line, made: int, depth: int) -> Iterator[Row]:
        """In whole blocks, within the range, none longer than ours may be."""
        t_ns = made if line.t_ns is None else line.t_ns
        end_ns = t_ns + (line.lasts_ns or 0)
        if line.op == FLUSH:
            yield t_ns, 0, 0, FLUSH, 0, depth, end_ns
            return
        flags = FUA if line.fua and line.op == WRITE and self.asked.fua else 0
        block, range_bytes = self.asked.block_bytes, self.asked.range_bytes
        begin, end = line.offset_bytes // block * block, -(-(line.offset_bytes + line.length_bytes) // block) * block
        if line.op == TRIM and line.length_bytes and line.offset_bytes >= 0:  # a part of a block holds other data
            begin = -(-line.offset_bytes // block) * block
            end = (line.offset_bytes + line.length_bytes) // block * block
            if end <= begin:
                self._pass(f"a trim of less than a block of {block} bytes")
                return
        most = TRIM_MOST_BYTES if line.op in (TRIM, ZEROES) else MOST_BYTES
        if line.length_bytes < 1 or begin < 0 or end > END_MOST_BYTES or end - begin > PIECES_MOST * most:
            what = f"an I/O of 1 to {PIECES_MOST * most} bytes that ends before byte {END_MOST_BYTES}"
            raise self._wrong(what, f"{line.length_bytes} bytes at byte {line.offset_bytes}", FIX)
        for at in range(begin, end, most):
            length = min(most, end - at)
            if range_bytes is not None:
                length = min(length, range_bytes)
                at = min(at % range_bytes, range_bytes - length)
            yield t_ns, at, length, line.op, flags, depth, end_ns

    def _wrong(self, expected: str, seen: str, do: str) -> UsageError:
        return UsageError(expected, f"{seen} in line {self.number} of {self.path}", do)
