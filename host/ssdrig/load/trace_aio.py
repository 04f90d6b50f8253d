"""Many I/Os of a trace under way on a block device or a file, by Linux AIO: arrays prepared by NumPy.

All reads share one buffer, whose content is ignored; writes come from a pool of random bytes."""

import fcntl
import mmap
import os
import struct
import time

import numpy as np

from ssdrig.base.errors import DriveError, UsageError
from ssdrig.blockio import aio, direct
from ssdrig.blockio.aio import FSYNC, RWF_DSYNC
from ssdrig.load.traceform import FLUSH, FUA, READ, TRIM, ZEROES

_BLKSSZGET = 0x1268
MOST_UNDER_WAY = 1024
POOL_BYTES = 32 << 20


def pool(longest: int, seed: int = 1) -> mmap.mmap:
    """Random bytes, page-aligned: any write of at most `longest` bytes that begins in the first POOL_BYTES fits."""
    memory = mmap.mmap(-1, POOL_BYTES + longest)
    np.frombuffer(memory, np.uint8)[:] = np.frombuffer(np.random.default_rng(seed).bytes(len(memory)), np.uint8)
    return memory


def pool_offsets(first: int, n: int) -> np.ndarray:
    """Where in the pool the data of n I/Os begins: another page for each of 8192 in a row."""
    return np.arange(first, first + n) * (977 * 4096) % POOL_BYTES


class Aio(aio.Queue):
    """`path` for a player: `slots` requests can be prepared. `size_bytes`, `block_bytes` (of an I/O the smallest, and
    its alignment), `direct` (past the page cache; only a file may be otherwise). A context manager. Raises DriveError,
    ToolMissing."""

    def __init__(self, path: str, slots: int, longest: int, most: int = MOST_UNDER_WAY):
        self._read_to, self._write_from = mmap.mmap(-1, max(4096, longest)), pool(longest)
        super().__init__(path, slots, most, or_buffered=True)
        self.most, self.block_bytes = most, self._block_bytes()
        self._read_at, self._write_at = (
            np.frombuffer(m, np.uint8).ctypes.data for m in (self._read_to, self._write_from)
        )
        self._addresses_at = self.addresses.ctypes.data
        self._expected = np.zeros(slots, np.int64)
        self._is_trim, self._is_zero = np.zeros(slots, bool), np.zeros(slots, bool)
        self._trims = False  # whether a request that was prepared is one

    def _block_bytes(self) -> int:
        if self.is_drive:
            return struct.unpack("i", fcntl.ioctl(self.fd, _BLKSSZGET, bytes(4)))[0]
        return 4096 if self.direct else 512

    def prepare(self, first: int, rows: np.ndarray) -> None:
        """The requests of rows go into the slots from `first` on, which must be free. Raises UsageError."""
        n, op = len(rows), rows["op"]
        controls = self.controls[first : first + n]
        length = rows["length_bytes"]
        buffer = np.where(op == READ, self._read_at, self._write_at + pool_offsets(first, n))
        controls["opcode"] = np.where(op == FLUSH, FSYNC, op)  # READ and WRITE are PREAD and PWRITE
        controls["buffer"], controls["bytes"] = np.where(op == FLUSH, 0, buffer), length
        controls["offset"] = rows["offset_bytes"]
        controls["rw_flags"] = np.where(rows["flags"] & FUA, RWF_DSYNC, 0)
        self._expected[first : first + n] = length
        self._is_zero[first : first + n] = op == ZEROES
        self._is_trim[first : first + n] = trims = (op == TRIM) | (op == ZEROES)
        if not self._trims and trims.any():
            if not self.is_drive:
                raise UsageError(
                    "a block device for a trace with trims or Write Zeroes", self.path, "play it on a drive"
                )
            self._trims = True
        if (op == ZEROES).any() and not direct.takes(self.fd, direct.ZEROES):
            raise UsageError(
                "a drive with the Write Zeroes command, which this trace has",
                f"{self.path} without it: the kernel would write zeroes as data",
                "leave them out: ./ssdrig trace convert --no-zeroes",
            )

    def submit(self, first: int, n: int, now_ns: int = 0) -> int:
        """Hand over the requests of n slots (now_ns: as NbdPipe.submit, not needed here). Returns how many were taken,
        0 where too many are under way. Raises DriveError."""
        if self._trims and (trims := np.flatnonzero(self._is_trim[first : first + n])).size:
            if trims[0] == 0:
                row = self.controls[first]
                self._discard(first, int(row["offset"]), int(row["bytes"]), bool(self._is_zero[first]))
                return 1
            n = int(trims[0])
        try:
            return self._submit(self._addresses_at + 8 * first, n)
        except OSError as error:
            raise self._failed(f"I/O at byte {self.controls['offset'][first]}", error.errno or 0) from error

    def reap(self, timeout_ns: int, done_ns: np.ndarray) -> int:
        """Wait for an end, at most this long; done_ns of the slots that have ended becomes their time. Returns how
        many. Raises DriveError where one has failed."""
        ended = self._trimmed(done_ns)
        try:
            n = self._wait(1, 0 if ended else timeout_ns)
        except OSError as error:
            raise self._failed("AIO to answer", error.errno or 0) from error
        now = time.monotonic_ns()
        if not n:
            return ended
        slots = self.ended[:n]
        results = self.results[:n]
        if not np.array_equal(results, self._expected[slots]):
            self._refused(slots, results)
        done_ns[slots] = now
        return ended + n

    def _refused(self, slots: np.ndarray, results: np.ndarray) -> None:
        bad = int(np.flatnonzero(results != self._expected[slots])[0])
        slot, result = int(slots[bad]), int(results[bad])
        row = self.controls[slot]
        if result < 0:
            raise self._failed(f"{row['bytes']} bytes at byte {row['offset']}", -result)
        raise DriveError(
            f"{row['bytes']} bytes at byte {row['offset']} of {self.path}", f"{result}", "see the kernel's log (dmesg)"
        )

    def _trimmed(self, done_ns: np.ndarray) -> int:
        ended = 0
        while answer := self._discarded():
            slot, now, error = answer
            if error:
                what, option = ("Write Zeroes", "--no-zeroes") if self._is_zero[slot] else ("a discard", "--no-trims")
                raise self._failed(what, error, f"leave them out: ./ssdrig trace convert {option}")
            done_ns[slot] = now
            ended += 1
        return ended

    def _failed(self, what: str, number: int, do: str = "see the kernel's log (dmesg)") -> DriveError:
        return DriveError(f"{what} of {self.path}", os.strerror(number), do)
