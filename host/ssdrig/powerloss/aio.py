"""A block device, or a file, for the writer, by raw Linux AIO: requests prepared and ends taken in compiled code, one
system call for many. FUA is RWF_DSYNC, FLUSH is FDSYNC (a block device makes a FLUSH of it), TRIM a discard and a
write of zeros BLKZEROOUT, in a thread; all of it past the page cache.

libaio and liburing need a library, and io_uring is forbidden on many hosts."""

import errno
import os
import stat
import time
from pathlib import Path

import numba
import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio.aio import CONTROL, EVENT, FDSYNC, PREAD, PWRITE, RWF_DSYNC, TRIM_LOOK_NS, Context, Discards
from ssdrig.blockio.slots import AWAY, Slots
from ssdrig.drive.target import block
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS

_OPCODES = np.zeros(5, np.int64)
_OPCODES[[WRITE, FLUSH, BLANK]] = PWRITE, FDSYNC, PREAD
CONTROL_BYTES = CONTROL.itemsize
_SHORT = -errno.EIO  # status of a transfer that is not whole


def opened(path: str) -> int:
    """The node, or a file, for direct I/O. Raises DriveError."""
    try:
        return os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        why = error.strerror or str(error)
        raise DriveError(f"{path} to open for direct I/O", why, "see whether it is there and not read-only") from error


def takes_trims(fd: int) -> bool:
    """Whether it is a block device to which the kernel passes discards on."""
    found = os.fstat(fd)
    if not stat.S_ISBLK(found.st_mode):
        return False
    node = Path(f"/sys/dev/block/{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}")
    for queue in (node / "queue", node / "../queue"):  # of a partition it is its disk's
        try:
            return int((queue / "discard_max_bytes").read_text()) > 0
        except (OSError, ValueError):
            continue
    return False


class Aio:
    """A transport (slots.Transport). Raises DriveError where it cannot be opened, ToolMissing on a processor whose
    calls are not known. Only a block device takes TRIM. close() waits for what is under way."""

    def __init__(self, path: str):
        self.path, self.slots, self.under_way, self.gone = path, Slots(), 0, ""
        self._context = Context(self.slots.n)
        try:
            self._fd = opened(path)
        except DriveError:
            self._context.close()
            raise
        self.size_bytes = os.lseek(self._fd, 0, os.SEEK_END)
        self.can_trim, self.can_zero = takes_trims(self._fd), stat.S_ISBLK(os.fstat(self._fd).st_mode)
        self._discards = Discards(self._fd) if self.can_trim or self.can_zero else None
        self._controls = np.zeros(self.slots.n, CONTROL)
        self._controls["data"], self._controls["fd"] = np.arange(self.slots.n), self._fd
        self._controls["buffer"] = self.slots.data.ctypes.data + np.arange(self.slots.n) * self.slots.bytes_each
        self._buffers = self._controls["buffer"].copy()
        self._pointers, self._events = np.zeros(self.slots.n, np.uint64), np.zeros(self.slots.n, EVENT)
        self._pointers_at, self._events_at = self._pointers.ctypes.data, self._events.ctypes.data
        self._controls_at = self._controls.ctypes.data
        self._refused: list[int] = []  # slots that have ended without a way into the kernel, or by a discard

    now_ns = staticmethod(time.monotonic_ns)

    def submit(self, order: np.ndarray, n: int) -> None:
        slots = self.slots
        self.under_way += n
        k, trims = prepare(
            self._controls,
            self._buffers,
            self._pointers,
            self._controls_at,
            order,
            n,
            _OPCODES,
            slots.kind,
            slots.flags,
            slots.offset,
            slots.length,
        )
        if trims:
            zeros = slots.flags[order[:n]] & ZEROS > 0
            for slot in order[:n][(slots.kind[order[:n]] == TRIM) | zeros].tolist():
                self._trim(slot, slots.kind[slot] == WRITE)
        done = 0
        while done < k:
            try:
                taken = self._context.submit(self._pointers_at + 8 * done, k - done)
            except OSError as error:  # of the first of them
                slot = int(self._pointers[done] - np.uint64(self._controls_at)) // CONTROL.itemsize
                self._answer(slot, -(error.errno or errno.EIO))
                taken = 1
            done += taken

    def _trim(self, slot: int, zeros: bool) -> None:
        if self._discards and (zeros or self.can_trim):
            request = block.BLKZEROOUT if zeros else block.BLKDISCARD
            self._discards.ask(slot, int(self.slots.offset[slot]), int(self.slots.length[slot]), request)
        else:
            self._answer(slot, -errno.EOPNOTSUPP)

    def _answer(self, slot: int, status: int) -> None:
        self.slots.status[slot] = status
        self._refused.append(slot)
        if -status in AWAY:
            self.gone = os.strerror(-status)

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        discards = self._discards
        while discards and (answer := discards.taken()):
            self._answer(answer[0], -answer[2])
        n = len(self._refused)
        if n:
            ended[:n], self._refused = self._refused, []
            self.under_way -= n
            return n
        if discards and discards.under_way:
            timeout_ns, least = min(timeout_ns, TRIM_LOOK_NS), 1
        try:
            got = self._context.wait(least if timeout_ns else 0, self.slots.n, self._events_at, timeout_ns)
        except OSError as error:
            self.gone = os.strerror(error.errno or 0)
            return 0
        if got:
            worst = taken_in(self._events, got, self.slots.length, self.slots.kind, self.slots.status, ended)
            if -worst in AWAY:
                self.gone = os.strerror(-worst)
            self.under_way -= got
        return got

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def close(self) -> None:
        """Safe to call twice."""
        if self._fd >= 0:
            if self._discards:
                self._discards.close()
            self._context.close()
            os.close(self._fd)
            self._fd = -1


@numba.njit(cache=True)
def prepare(controls, buffers, pointers, controls_at, order, n, opcodes, kind, flags, offset, length):
    """The requests of n slots but for trims and writes of zeros, their addresses into pointers. Returns (requests, the
    others)."""
    k = trims = 0
    for i in range(n):
        slot = order[i]
        if kind[slot] == TRIM or flags[slot] & ZEROS:
            trims += 1
            continue
        row = controls[slot]
        flush = kind[slot] == FLUSH
        row["opcode"] = opcodes[kind[slot]]
        row["rw_flags"] = RWF_DSYNC if kind[slot] == WRITE and flags[slot] & FUA else 0
        row["buffer"] = 0 if flush else buffers[slot]
        row["bytes"], row["offset"] = length[slot], 0 if flush else offset[slot]
        pointers[k] = np.uint64(controls_at) + np.uint64(slot) * np.uint64(CONTROL_BYTES)
        k += 1
    return k, trims


@numba.njit(cache=True)
def taken_in(events, n, length, kind, status, ended):
    """n events: their slots to `ended`, their status set. Returns the worst result."""
    worst = np.int64(0)
    for i in range(n):
        slot, result = np.int64(events[i]["data"]), events[i]["result"]
        whole = result == (0 if kind[slot] == FLUSH else length[slot])
        status[slot] = 0 if whole else result if result < 0 else _SHORT
        worst = min(worst, result)
        ended[i] = slot
    return worst
