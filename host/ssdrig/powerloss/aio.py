"""A block device, or a file, for the writer, by Linux AIO: requests prepared and ends taken in compiled code. FUA is
RWF_DSYNC, FLUSH is FDSYNC (a block device makes a FLUSH of it), TRIM a discard and a write of zeros BLKZEROOUT, in a
thread; all of it past the page cache."""

import contextlib
import errno
import os
import time
from collections.abc import Iterator

import numba
import numpy as np

from ssdrig.blockio import aio, direct
from ssdrig.blockio.aio import CONTROL, FDSYNC, PREAD, PWRITE, RWF_DSYNC
from ssdrig.blockio.slots import AWAY, Slots
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS

_OPCODES = np.zeros(5, np.int64)
_OPCODES[[WRITE, FLUSH, BLANK]] = PWRITE, FDSYNC, PREAD
MOVE_NS = 1_000_000  # a thread submits from one CPU this long
_SHORT = -errno.EIO  # status of a transfer that is not whole


class Aio(aio.Queue):
    """A transport (slots.Transport). Raises DriveError where it cannot be opened, ToolMissing on a processor whose
    calls are not known. Only a block device takes TRIM. close() waits for the requests in flight. `queues`: see
    spread()."""

    def __init__(self, path: str, queues: int = 1):
        self.slots, self.under_way, self.gone = Slots(), 0, ""
        super().__init__(path, self.slots.n, self.slots.n)
        self.can_trim, self.can_zero = direct.takes(self.fd, direct.DISCARD), self.is_drive
        self._buffers = self.slots.data.ctypes.data + np.arange(self.slots.n, dtype=np.uint64) * self.slots.bytes_each
        self._asked = np.zeros(self.slots.n, np.uint64)  # addresses of the requests of one submit()
        self._asked_at = self._asked.ctypes.data
        self._queues, self._cpus, self._moved_ns = queues, [], 0
        self._answered: list[int] = []  # slots that have ended without a way into the kernel, or by a discard

    now_ns = staticmethod(time.monotonic_ns)

    @contextlib.contextmanager
    def spread(self) -> Iterator[None]:
        """Meanwhile submit() moves the thread that calls it from CPU to CPU, `queues` of them in turn: a kernel has a
        queue of the device for each CPU, or for some of them."""
        allowed = os.sched_getaffinity(0)
        self._cpus = sorted(allowed)[: self._queues] if min(self._queues, len(allowed)) > 1 else []
        try:
            yield
        finally:
            if self._cpus:
                self._cpus = []
                os.sched_setaffinity(0, allowed)

    def _move(self) -> None:
        now_ns = time.monotonic_ns()
        if now_ns - self._moved_ns > MOVE_NS:
            self._moved_ns = now_ns
            self._cpus = [*self._cpus[1:], self._cpus[0]]
            with contextlib.suppress(OSError):  # a CPU that was taken from this process
                os.sched_setaffinity(0, {self._cpus[0]})

    def submit(self, order: np.ndarray, n: int) -> None:
        slots = self.slots
        self.under_way += n
        if self._cpus:
            self._move()
        k, trims = prepare(
            self.controls,
            self._buffers,
            self.addresses,
            self._asked,
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
                taken = self._submit(self._asked_at + 8 * done, k - done)
            except OSError as error:  # of the first of them
                slot = int(self._asked[done] - self.addresses[0]) // CONTROL.itemsize
                self._answer(slot, -(error.errno or errno.EIO))
                taken = 1
            done += taken

    def _trim(self, slot: int, zeros: bool) -> None:
        if self.can_zero if zeros else self.can_trim:
            self._discard(slot, int(self.slots.offset[slot]), int(self.slots.length[slot]), zeros)
        else:
            self._answer(slot, -errno.EOPNOTSUPP)

    def _answer(self, slot: int, status: int) -> None:
        self.slots.status[slot] = status
        self._answered.append(slot)
        if -status in AWAY:
            self.gone = os.strerror(-status)

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        while answer := self._discarded():
            self._answer(answer[0], -answer[2])
        n = len(self._answered)
        if n:
            ended[:n], self._answered = self._answered, []
            self.under_way -= n
            return n
        try:
            got = self._wait(least, timeout_ns)
        except OSError as error:
            self.gone = os.strerror(error.errno or 0)
            return 0
        if got:
            worst = taken_in(self.events, got, self.slots.length, self.slots.kind, self.slots.status, ended)
            if -worst in AWAY:
                self.gone = os.strerror(-worst)
            self.under_way -= got
        return got

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)


@numba.njit(cache=True)
def prepare(controls, buffers, addresses, asked, order, n, opcodes, kind, flags, offset, length):
    """Fill the controls of n slots without trims and writes of zeros, and put their addresses into `asked`. Returns
    (requests, trims and writes of zeros)."""
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
        asked[k] = addresses[slot]
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
