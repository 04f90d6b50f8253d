"""Many I/Os under way on a block device or a file, by Linux AIO: arrays prepared by NumPy, one system call a batch.

Source: linux/aio_abi.h. Reads all go to one buffer, which nobody looks at; writes come from a pool of random bytes."""

import errno
import fcntl
import mmap
import os
import stat
import struct
import time
from pathlib import Path

import numpy as np

from ssdrig.base.errors import DriveError, UsageError
from ssdrig.blockio.aio import CONTROL, EVENT, FSYNC, PREAD, PWRITE, TRIM_LOOK_NS, Context, Discards
from ssdrig.drive.target import block
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE, ZEROES

_OPCODES = {READ: PREAD, WRITE: PWRITE, FLUSH: FSYNC}
_BLKSSZGET = 0x1268
MOST_UNDER_WAY = 1024
EVENTS = 256  # most that are reaped at once
POOL_BYTES = 32 << 20


def pool(longest: int, seed: int = 1) -> mmap.mmap:
    """Random bytes, page-aligned: any write of at most `longest` bytes that begins in the first POOL_BYTES fits."""
    memory = mmap.mmap(-1, POOL_BYTES + longest)
    np.frombuffer(memory, np.uint8)[:] = np.frombuffer(np.random.default_rng(seed).bytes(len(memory)), np.uint8)
    return memory


def pool_offsets(first: int, n: int) -> np.ndarray:
    """Where in the pool the data of n I/Os begins: another page for each of 8192 in a row."""
    return np.arange(first, first + n) * (977 * 4096) % POOL_BYTES


class Aio:
    """`path` for a player: `slots` requests can be prepared. `size_bytes`, `block_bytes` (of an I/O the smallest, and
    its alignment), `direct` (past the page cache; only a file may be otherwise). A context manager. Raises DriveError,
    ToolMissing."""

    def __init__(self, path: str, slots: int, longest: int, most: int = MOST_UNDER_WAY):
        self.path, self.most, self.direct = path, most, True
        self.fd = self._open()
        try:
            self.is_drive = stat.S_ISBLK(os.fstat(self.fd).st_mode)
            self.size_bytes = os.lseek(self.fd, 0, os.SEEK_END)
            self.block_bytes = self._block_bytes()
            self._context = Context(most)
        except BaseException:
            os.close(self.fd)
            raise
        self._read_to, self._write_from = mmap.mmap(-1, max(4096, longest)), pool(longest)
        self._read_at, self._write_at = (
            np.frombuffer(m, np.uint8).ctypes.data for m in (self._read_to, self._write_from)
        )
        self._controls = np.zeros(slots, CONTROL)
        self._controls["data"], self._controls["fd"] = np.arange(slots), self.fd
        self._pointers = self._controls.ctypes.data + np.arange(slots, dtype=np.uint64) * CONTROL.itemsize
        self._expected = np.zeros(slots, np.int64)
        self._is_trim, self._is_zero = np.zeros(slots, bool), np.zeros(slots, bool)
        self._events = np.zeros(EVENTS, EVENT)
        self._event_slots, self._event_results = self._events["data"].view(np.int64), self._events["result"]
        self._trims: Discards | None = None
        self._at, self._events_at = self._pointers.ctypes.data, self._events.ctypes.data

    def _open(self) -> int:
        for flags in (os.O_DIRECT, 0):
            try:
                fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags)
            except OSError as error:
                if error.errno != errno.EINVAL or not flags:  # a file system without direct I/O
                    raise self._failed("it to open", error.errno or 0, "see whether it is still there") from error
                continue
            if flags or stat.S_ISREG(os.fstat(fd).st_mode):
                self.direct = bool(flags)
                return fd
            os.close(fd)
        raise self._failed("direct I/O", errno.EINVAL, "play the trace on a block device")

    def _block_bytes(self) -> int:
        if self.is_drive:
            return struct.unpack("i", fcntl.ioctl(self.fd, _BLKSSZGET, bytes(4)))[0]
        return 4096 if self.direct else 512

    def _takes_zeroes(self) -> bool:
        number = os.fstat(self.fd).st_rdev
        path = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}/queue/write_zeroes_max_bytes")
        return path.exists() and int(path.read_text()) > 0

    def prepare(self, first: int, rows: np.ndarray) -> None:
        """The requests of rows go into the slots from `first` on, which must be free. Raises UsageError."""
        n, op = len(rows), rows["op"]
        here = self._controls[first : first + n]
        length = rows["length_bytes"]
        buffer = np.where(op == READ, self._read_at, self._write_at + pool_offsets(first, n))
        here["opcode"] = np.where(op == FLUSH, _OPCODES[FLUSH], op)  # READ and WRITE are PREAD and PWRITE
        here["buffer"], here["bytes"] = np.where(op == FLUSH, 0, buffer), length
        here["offset"] = rows["offset_bytes"]
        self._expected[first : first + n] = length
        self._is_zero[first : first + n] = op == ZEROES
        self._is_trim[first : first + n] = trims = (op == TRIM) | (op == ZEROES)
        if self._trims is None and trims.any():
            if not self.is_drive:
                raise UsageError(
                    "a block device for a trace with trims or Write Zeroes", self.path, "play it on a drive"
                )
            self._trims = Discards(self.fd)
        if (op == ZEROES).any() and not self._takes_zeroes():
            raise UsageError(
                "a drive with the Write Zeroes command, which this trace has",
                f"{self.path} without it: the kernel would write zeroes as data",
                "leave them out: ./ssdrig trace convert --no-zeroes",
            )

    def submit(self, first: int, n: int, now_ns: int = 0) -> int:
        """Hand over the requests of n slots (now_ns: as nbdpipe.submit, not needed here). Returns how many were taken,
        0 where too many are under way. Raises DriveError."""
        if self._trims is not None and (trims := np.flatnonzero(self._is_trim[first : first + n])).size:
            if trims[0] == 0:
                row = self._controls[first]
                request = block.BLKZEROOUT if self._is_zero[first] else block.BLKDISCARD
                self._trims.ask(first, int(row["offset"]), int(row["bytes"]), request)
                return 1
            n = int(trims[0])
        try:
            return self._context.submit(self._at + 8 * first, n)
        except OSError as error:
            raise self._failed(f"I/O at byte {self._controls['offset'][first]}", error.errno or 0) from error

    def reap(self, timeout_ns: int, done_ns: np.ndarray) -> int:
        """Wait for an end, at most so long; done_ns of the slots that have ended becomes their time. Returns how many.
        Raises DriveError where one has failed."""
        ended = self._trimmed(done_ns) if self._trims is not None else 0
        if ended:
            timeout_ns = 0
        elif self._trims is not None and self._trims.under_way:
            timeout_ns = min(timeout_ns, TRIM_LOOK_NS)
        try:
            n = self._context.wait(1 if timeout_ns else 0, EVENTS, self._events_at, timeout_ns)
        except OSError as error:
            raise self._failed("AIO to answer", error.errno or 0) from error
        now = time.monotonic_ns()
        if not n:
            return ended
        slots = self._event_slots[:n]
        results = self._event_results[:n]
        if not np.array_equal(results, self._expected[slots]):
            self._refused(slots, results)
        done_ns[slots] = now
        return ended + n

    def _refused(self, slots: np.ndarray, results: np.ndarray) -> None:
        bad = int(np.flatnonzero(results != self._expected[slots])[0])
        slot, result = int(slots[bad]), int(results[bad])
        row = self._controls[slot]
        if result < 0:
            raise self._failed(f"{row['bytes']} bytes at byte {row['offset']}", -result)
        raise DriveError(
            f"{row['bytes']} bytes at byte {row['offset']} of {self.path}", f"{result}", "see the kernel's log (dmesg)"
        )

    def _trimmed(self, done_ns: np.ndarray) -> int:
        assert self._trims is not None
        ended = 0
        while answer := self._trims.taken():
            slot, now, error = answer
            if error:
                what, option = ("Write Zeroes", "--no-zeroes") if self._is_zero[slot] else ("a discard", "--no-trims")
                raise self._failed(what, error, f"leave them out: ./ssdrig trace convert {option}")
            done_ns[slot] = now
            ended += 1
        return ended

    def _failed(self, what: str, number: int, do: str = "see the kernel's log (dmesg)") -> DriveError:
        return DriveError(f"{what} of {self.path}", os.strerror(number), do)

    def close(self) -> None:
        """Waits for what is under way. Safe to call twice."""
        if self.fd >= 0:
            if self._trims:
                self._trims.close()
            self._context.close()
            os.close(self.fd)
            self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
