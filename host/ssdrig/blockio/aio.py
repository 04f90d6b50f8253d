"""Linux AIO, as arrays that NumPy or compiled code fills: requests, ends, one system call a batch.

libaio and liburing need a library, and io_uring is forbidden on many hosts. Source: linux/aio_abi.h; RWF_DSYNC in
linux/fs.h."""

import ctypes
import errno
import os
import platform

import numpy as np

from ssdrig.base.errors import DriveError, ToolMissing
from ssdrig.blockio import direct
from ssdrig.drive import block

_SYSCALLS = {  # io_setup, io_destroy, io_getevents, io_submit
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
}
CONTROL = np.dtype(
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
EVENT = np.dtype([("data", "<u8"), ("control", "<u8"), ("result", "<i8"), ("result2", "<i8")])
PREAD, PWRITE, FSYNC, FDSYNC = range(4)  # opcodes
RWF_DSYNC = 2  # rw_flags of a write: on the medium when it returns, by FUA or by a FLUSH after it
EVENTS = 256  # most that are reaped together
TRIM_LOOK_NS = 1_000_000  # how often the end of a discard is looked for; its time is taken where it ends


def known() -> bool:
    """Whether AIO can be called here."""
    return platform.machine() in _SYSCALLS


class Context:
    """One AIO context for `most` requests under way. Raises ToolMissing on a processor whose calls are not known, and
    DriveError where the kernel gives none."""

    def __init__(self, most: int):
        if not known():
            raise ToolMissing("a processor whose AIO calls are known", platform.machine(), "use x86_64 or arm64")
        self._setup, self._destroy, self._getevents, self._submit = _SYSCALLS[platform.machine()]
        self._context = ctypes.c_ulong(0)
        if _call(self._setup, most, ctypes.addressof(self._context), 0, 0, 0) < 0:
            why = os.strerror(ctypes.get_errno())
            raise DriveError("AIO to be set up", why, "raise fs.aio-max-nr (sysctl)")
        self._timeout = np.zeros(2, np.int64)
        self._timeout_at = self._timeout.ctypes.data

    def submit(self, pointers_at: int, n: int) -> int:
        """n requests, whose addresses stand at pointers_at. Returns how many were taken, 0 where too many are under
        way. Raises OSError."""
        taken = _call(self._submit, self._context.value, n, pointers_at, 0, 0)
        if taken >= 0:
            return taken
        number = ctypes.get_errno()
        if number in (errno.EAGAIN, errno.EINTR):
            return 0
        raise OSError(number, os.strerror(number))

    def wait(self, least: int, most: int, events_at: int, timeout_ns: int) -> int:
        """Up to `most` ends into EVENT[] at events_at, waiting for `least` at most this long. Returns how many. Raises
        OSError."""
        self._timeout[0], self._timeout[1] = divmod(timeout_ns, 1_000_000_000)
        n = _call(self._getevents, self._context.value, least, most, events_at, self._timeout_at)
        if n >= 0:
            return n
        number = ctypes.get_errno()
        if number == errno.EINTR:
            return 0
        raise OSError(number, os.strerror(number))

    def close(self) -> None:
        """Waits for the requests in flight."""
        _call(self._destroy, self._context.value, 0, 0, 0, 0)


class Queue:
    """A block device, or a file, past the page cache, and `slots` requests to it, up to `most` of them under way. What
    carries I/O by AIO is a subclass. Raises DriveError, ToolMissing.

    `controls`: a CONTROL for each slot, whose number is its `data`; `addresses`: where each is; `events`: what _wait()
    has got, `ended` their slots and `results` their results. `or_buffered`: as direct.opened(). A context manager;
    leaving it, and close(), waits for the requests in flight."""

    def __init__(self, path: str, slots: int, most: int, or_buffered: bool = False):
        self._context = Context(most)
        try:
            self.fd, self.direct = direct.opened(path, or_buffered)
        except DriveError:
            self._context.close()
            raise
        self.path, self.is_drive = path, direct.is_block_device(self.fd)
        self.size_bytes = os.lseek(self.fd, 0, os.SEEK_END)
        self.controls = np.zeros(slots, CONTROL)
        self.controls["data"], self.controls["fd"] = np.arange(slots), self.fd
        self.addresses = self.controls.ctypes.data + np.arange(slots, dtype=np.uint64) * CONTROL.itemsize
        self.events = np.zeros(min(most, EVENTS), EVENT)
        self.ended, self.results = self.events["data"].view(np.int64), self.events["result"]
        self._events_at = self.events.ctypes.data
        self._discards: direct.Discards | None = None

    def _submit(self, addresses_at: int, n: int) -> int:
        """As Context.submit()."""
        return self._context.submit(addresses_at, n)

    def _wait(self, least: int, timeout_ns: int) -> int:
        """As Context.wait(), into `events`; shorter while a discard is under way, for one of them."""
        if self._discards is not None and self._discards.under_way:
            least, timeout_ns = 1, min(timeout_ns, TRIM_LOOK_NS)
        return self._context.wait(least if timeout_ns else 0, len(self.events), self._events_at, timeout_ns)

    def _discard(self, slot: int, offset: int, length: int, zeroes: bool) -> None:
        """Begin a discard, or a Write Zeroes, of a block device."""
        if self._discards is None:
            self._discards = direct.Discards(self.fd)
        self._discards.ask(slot, offset, length, block.BLKZEROOUT if zeroes else block.BLKDISCARD)

    def _discarded(self) -> tuple[int, int, int] | None:
        """(slot, ns, errno or 0) of the next discard that has ended, None: none has."""
        return None if self._discards is None else self._discards.taken()

    def close(self) -> None:
        """Safe to call twice."""
        if self.fd >= 0:
            if self._discards is not None:
                self._discards.close()
            self._context.close()
            os.close(self.fd)
            self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


_libc = ctypes.CDLL(None, use_errno=True)
_call = _libc["syscall"]
_call.restype = ctypes.c_long
_call.argtypes = [ctypes.c_long, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p]
