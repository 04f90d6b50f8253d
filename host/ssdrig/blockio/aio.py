"""Linux AIO, as arrays that NumPy or compiled code fills: requests, ends, one system call a batch; and discards, which
AIO has not, in a thread.

Source: linux/aio_abi.h; RWF_DSYNC in linux/fs.h."""

import collections
import ctypes
import errno
import fcntl
import os
import platform
import queue
import struct
import threading
import time

import numpy as np

from ssdrig.base.errors import DriveError, ToolMissing
from ssdrig.drive.target import block

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
RWF_DSYNC = 2  # rw_flags of a write: on the medium when it returns, by FUA or by a FLUSH behind it
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
        """Up to `most` ends into EVENT[] at events_at, waiting for `least` at most so long. Returns how many. Raises
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
        """Waits for what is under way."""
        _call(self._destroy, self._context.value, 0, 0, 0, 0)


class Discards:
    """Discards and Write Zeroes of a block device, one after the other in a thread of their own. `answered`: (name, ns,
    errno or 0)."""

    def __init__(self, fd: int):
        self.fd, self.under_way = fd, 0
        self._asked: queue.SimpleQueue = queue.SimpleQueue()
        self.answered: collections.deque[tuple[int, int, int]] = collections.deque()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask(self, name: int, offset: int, length: int, request: int = block.BLKDISCARD) -> None:
        self.under_way += 1
        self._asked.put((name, offset, length, request))

    def taken(self) -> tuple[int, int, int] | None:
        """The next that has ended, None: none has."""
        if not self.answered:
            return None
        self.under_way -= 1
        return self.answered.popleft()

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            name, *where = asked
            number = discard(self.fd, *where)
            self.answered.append((name, time.monotonic_ns(), number))

    def close(self) -> None:
        """Waits for what is under way."""
        self._asked.put(None)
        self._thread.join()


def discard(fd: int, offset: int, length: int, request: int = block.BLKDISCARD) -> int:
    """Errno, or 0. `request`: BLKDISCARD or BLKZEROOUT."""
    try:
        fcntl.ioctl(fd, request, struct.pack("=QQ", offset, length))
    except OSError as error:
        return error.errno or errno.EIO
    return 0


_libc = ctypes.CDLL(None, use_errno=True)
_call = _libc["syscall"]
_call.restype = ctypes.c_long
_call.argtypes = [ctypes.c_long, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_void_p]
