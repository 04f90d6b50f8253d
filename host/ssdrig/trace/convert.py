"""Traces of others as ours: one device, in blocks, wrapped to a range, in the order of their times.

A hostile line ends the conversion with its number; nothing is written then."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import numpy as np

from ssdrig.errors import UsageError
from ssdrig.load.traceform import END_MOST_BYTES, FLUSH, MOST_BYTES, ROW, T_MOST_NS, TRIM, WINDOW_IOS
from ssdrig.trace import formats

LINE_MOST_BYTES = 4096
TRIM_MOST_BYTES = 1 << 31
PIECES_MOST = 1024  # of one I/O that is longer than ours may be
Row = tuple[int, int, int, int]  # as traceform.ROW; times of other clocks may be beyond an int64
FIX = "correct the line, or convert a part without it"


@dataclass(frozen=True)
class Asked:
    """`device`: the one that is taken, "" the only one. `range_bytes`: places beyond it begin again at its beginning;
    None: as they are. `ios`: at most so many. `leave_out`: trims, flushes."""

    device: str = ""
    range_bytes: int | None = None
    block_bytes: int = 512
    ios: int | None = None
    leave_out: tuple[int, ...] = ()

    def check(self) -> None:
        """Raises UsageError."""
        if self.block_bytes not in (512, 4096):
            raise UsageError("a block of 512 or 4096 bytes", str(self.block_bytes), "correct --block")
        if self.range_bytes is not None and (self.range_bytes < MOST_BYTES or self.range_bytes % self.block_bytes):
            least = f"a range of at least {MOST_BYTES >> 20} MiB in whole blocks"
            raise UsageError(least, f"{self.range_bytes} bytes", "correct --range")
        if self.ios is not None and self.ios < 1:
            raise UsageError("at least one I/O", str(self.ios), "correct --ios")


class Conversion:
    """`windows()` makes the rows of the file; `words()`, for the header, is whole when they have been made."""

    def __init__(self, path: Path, asked: Asked):
        asked.check()
        self.path, self.asked, self.device, self.cut = path, asked, asked.device, False
        self.format: formats.Format | None = None
        self.number = 0

    def words(self) -> dict:
        assert self.format
        of = f", device {self.device}" if self.device else ""
        return {
            "name": self.path.name,
            "synthetic": False,
            "scaled": self.cut,
            "timed": self.format.timed,
            "source": f"{self.format.name}{of}",
            "parameters": asdict(self.asked),
        }

    def windows(self) -> Iterator[np.ndarray]:
        """Arrays of traceform.ROW. Raises UsageError."""
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
                seen = f"one {(last_ns - out[0][0]) / 1e9:.6f} s before one {WINDOW_IOS} I/Os earlier"
                raise self._wrong("times that rise", seen, "sort the file by its times")
            if out[-1][0] - begin_ns > T_MOST_NS:
                raise self._wrong("times within 30 years", f"{(out[-1][0] - begin_ns) / 1e9:.0f} s", FIX)
            last_ns = out[-1][0]
            yield np.array([(t_ns - begin_ns, *rest) for t_ns, *rest in out], ROW)
        if begin_ns is None:
            raise self._wrong("I/Os", "none", "see whether --device names one of the file")

    def _rows(self) -> Iterator[Row]:
        made = 0
        for line in self._lines():
            for each in line:
                if each.op in self.asked.leave_out or not self._wanted(each.device):
                    continue
                for row in self._placed(each, made):
                    if made == self.asked.ios:
                        self.cut = True
                        return
                    made += 1
                    yield row

    def _lines(self) -> Iterator[tuple[formats.Line, ...]]:
        try:
            with self._open() as file:
                while raw := file.readline(LINE_MOST_BYTES + 1):
                    self.number += 1
                    line = raw.decode("latin-1").rstrip("\r\n")
                    if len(raw) > LINE_MOST_BYTES:
                        raise self._wrong(f"a line of at most {LINE_MOST_BYTES} bytes", f"{line[:60]!r} and more", FIX)
                    if self.format is None:
                        self.format = self._found(line)
                        if self.format.header and self.format.header.fullmatch(line):
                            continue
                    if self.format.end and self.format.end.match(line):
                        return
                    found = self.format.parse(line)
                    if found is None:
                        example = f"a line of {self.format.name}, such as {self.format.example!r}"
                        raise self._wrong(example, repr(line[:120]), FIX)
                    yield found
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._wrong("a gzip file that is whole", str(error), "fetch it again") from error
        except OSError as error:
            raise UsageError(f"a trace at {self.path}", error.strerror or str(error), "name another file") from error

    def _open(self) -> IO[bytes] | gzip.GzipFile:
        return gzip.open(self.path) if self.path.suffix == ".gz" else open(self.path, "rb")

    def _found(self, line: str) -> formats.Format:
        if found := formats.of(line):
            return found
        names = ", ".join(each.name for each in formats.FORMATS)
        raise self._wrong(f"a format that is known: {names}", repr(line[:120]), "see schemas/trace.md")

    def _wanted(self, device: str) -> bool:
        self.device = self.device or device
        if device == self.device:
            return True
        if self.asked.device:
            return False
        raise self._wrong(f"one device, as before {self.device!r}", repr(device), "choose one with --device")

    def _placed(self, line: formats.Line, made: int) -> Iterator[Row]:
        """In whole blocks, within the range, none longer than ours may be."""
        t_ns = made if line.t_ns is None else line.t_ns
        if line.op == FLUSH:
            yield t_ns, 0, 0, FLUSH
            return
        block, range_bytes = self.asked.block_bytes, self.asked.range_bytes
        begin, end = line.offset_bytes // block * block, -(-(line.offset_bytes + line.length_bytes) // block) * block
        most = TRIM_MOST_BYTES if line.op == TRIM else MOST_BYTES
        if not line.length_bytes or end > END_MOST_BYTES or end - begin > PIECES_MOST * most:
            what = f"an I/O of 1 to {PIECES_MOST * most} bytes that ends before byte {END_MOST_BYTES}"
            raise self._wrong(what, f"{line.length_bytes} bytes at byte {line.offset_bytes}", FIX)
        for at in range(begin, end, most):
            length = min(most, end - at)
            if range_bytes is not None:
                length = min(length, range_bytes)
                at = min(at % range_bytes, range_bytes - length)
            yield t_ns, at, length, line.op

    def _wrong(self, expected: str, seen: str, do: str) -> UsageError:
        return UsageError(expected, f"{seen} in line {self.number} of {self.path}", do)
