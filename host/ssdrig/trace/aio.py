"""Many I/Os under way on a block device or a file, by Linux AIO: arrays prepared by NumPy, one system call a batch.

Source: linux/aio_abi.h. Reads all go to one buffer, which nobody looks at; writes come from a pool of random bytes."""

import collections
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import queue
import stat
import struct
import threading
import time

import numpy as np

from ssdrig.drive.target import block
from ssdrig.errors import DriveError, ToolMissing, UsageError
from ssdrig.load.traceform import FLUSH, READ, TRIM, WRITE

_SYSCALLS = {  # io_setup, io_destroy, io_getevents, io_submit
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
}
_CONTROL = np.dtype(
    [
        ("data", "<u8"),
        ("key", "<u4"),
        ("rw_flags", "<u4"),
        ("opcode", "<u2"),
        ("priority", "<i2"),
        ("fd", "<u4"),
        ("buffer", "<u8"),
        ("bytes", "<u8"),
        ("offset", "<i8"),
        ("reserved", "<u8"),
        ("flags", "<u4"),
        ("event_fd", "<u4"),
    ]
)
_EVENT = np.dtype([("data", "<u8"), ("control", "<u8"), ("result", "<i8"), ("result2", "<i8")])
_OPCODES = {READ: 0, WRITE: 1, FLUSH: 2}  # PREAD, PWRITE, FSYNC
_BLKSSZGET = 0x1268
MOST_UNDER_WAY = 1024
EVENTS = 256  # most that are reaped at once
POOL_BYTES = 32 << 20
TRIM_LOOK_NS = 1_000_000  # how often the end of a discard is looked for; its time is taken where it ends


def known() -> bool:
    """Whether AIO can be called here."""
    return platform.machine() in _SYSCALLS


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
        self.path, self.most, self.direct, self._context = path, most, True, ctypes.c_ulong(0)
        if not known():
            raise ToolMissing("a processor whose AIO calls are known", platform.machine(), "play it on x86_64 or arm64")
        self._setup, self._destroy, getevents, submit = _SYSCALLS[platform.machine()]
        self.fd = self._open()
        try:
            self.is_drive = stat.S_ISBLK(os.fstat(self.fd).st_mode)
            self.size_bytes = os.lseek(self.fd, 0, os.SEEK_END)
            self.block_bytes = self._block_bytes()
            if _call(self._setup, most, ctypes.addressof(self._context), 0, 0, 0) < 0:
                raise self._failed("AIO to be set up", ctypes.get_errno(), "raise fs.aio-max-nr (sysctl)")
        except BaseException:
            os.close(self.fd)
            raise
        self._read_to, self._write_from = mmap.mmap(-1, max(4096, longest)), pool(longest)
        self._read_at, self._write_at = (
            np.frombuffer(m, np.uint8).ctypes.data for m in (self._read_to, self._write_from)
        )
        self._controls = np.zeros(slots, _CONTROL)
        self._controls["data"], self._controls["fd"] = np.arange(slots), self.fd
        self._pointers = self._controls.ctypes.data + np.arange(slots, dtype=np.uint64) * _CONTROL.itemsize
        self._expected = np.zeros(slots, np.int64)
        self._is_trim = np.zeros(slots, bool)
        self._events, self._timeout = np.zeros(EVENTS, _EVENT), np.zeros(2, np.int64)
        self._event_slots, self._event_results = self._events["data"].view(np.int64), self._events["result"]
        self._trims: _Trims | None = None
        # what never changes of the two calls
        self._at, self._submit = self._pointers.ctypes.data, submit
        self._wait = (getevents, self._context.value, EVENTS, self._events.ctypes.data, self._timeout.ctypes.data)

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
        self._is_trim[first : first + n] = op == TRIM
        if self._trims is None and (op == TRIM).any():
            if not self.is_drive:
                raise UsageError("a block device for a trace with trims", self.path, "play it on a drive")
            self._trims = _Trims(self.fd)

    def submit(self, first: int, n: int, now_ns: int = 0) -> int:
        """Hand over the requests of n slots (now_ns: as nbdpipe.submit, not needed here). Returns how many were taken,
        0 where too many are under way. Raises DriveError."""
        if self._trims is not None and (trims := np.flatnonzero(self._is_trim[first : first + n])).size:
            if trims[0] == 0:
                row = self._controls[first]
                self._trims.asked.put((first, int(row["offset"]), int(row["bytes"])))
                self._trims.under_way += 1
                return 1
            n = int(trims[0])
        taken = _call(self._submit, self._context.value, n, self._at + 8 * first, 0, 0)
        if taken >= 0:
            return taken
        if ctypes.get_errno() in (errno.EAGAIN, errno.EINTR):
            return 0
        raise self._failed(f"I/O at byte {self._controls['offset'][first]}", ctypes.get_errno())

    def reap(self, timeout_ns: int, done_ns: np.ndarray) -> int:
        """Wait for an end, at most so long; done_ns of the slots that have ended becomes their time. Returns how many.
        Raises DriveError where one has failed."""
        ended = self._trimmed(done_ns) if self._trims is not None else 0
        if ended:
            timeout_ns = 0
        elif self._trims is not None and self._trims.under_way:
            timeout_ns = min(timeout_ns, TRIM_LOOK_NS)
        self._timeout[0], self._timeout[1] = divmod(timeout_ns, 1_000_000_000)
        call, context, most, events, timeout = self._wait
        n = _call(call, context, 1 if timeout_ns else 0, most, events, timeout)
        now = time.monotonic_ns()
        if n <= 0:
            if n < 0 and ctypes.get_errno() != errno.EINTR:
                raise self._failed("AIO to answer", ctypes.get_errno())
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
        while self._trims.answered:
            slot, now, error = self._trims.answered.popleft()
            self._trims.under_way -= 1
            if error:
                raise self._failed("a discard", error, "leave trims out: ./ssdrig trace convert --no-trims")
            done_ns[slot] = now
            ended += 1
        return ended

    def _failed(self, what: str, number: int, do: str = "see the kernel's log (dmesg)") -> DriveError:
        return DriveError(f"{what} of {self.path}", os.strerror(number), do)

    def close(self) -> None:
        """Waits for what is under way. Safe to call twice."""
        if self.fd >= 0:
            if self._trims:
                self._trims.asked.put(None)
                self._trims.thread.join()
            _call(self._destroy, self._context.value, 0, 0, 0, 0)
            os.close(self.fd)
            self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Trims:
    """Discards, one after the other in a thread of their own: AIO has none. `answered`: (slot, ns, errno or 0)."""

    def __init__(self, fd: int):
        self.fd, self.under_way = fd, 0
        self.asked: queue.SimpleQueue = queue.SimpleQueue()
        self.answered: collections.deque[tuple[int, int, int]] = collections.deque()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (asked := self.asked.get()) is not None:
            slot, offset, length = asked
            number = 0
            try:
                fcntl.ioctl(self.fd, block.BLKDISCARD, struct.pack("=QQ", offset, length))
            except OSError as error:
                number = error.errno or errno.EIO
            self.answered.append((slot, time.monotonic_ns(), number))


_libc = ctypes.CDLL(None, use_errno=True)
_call = _libc["syscall"]
_call.restype = ctypes.c_long
_call.argtypes = [ctypes.c_long, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p]
