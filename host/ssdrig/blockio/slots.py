"""Commands under way, as a transport sees them: a slot each, its fields in arrays and its data in one page-aligned
memory. A transport takes the numbers of slots and gives back the numbers of those that have ended.

A transport has: `slots`; `size_bytes`; `can_trim`; `can_zero`, whether it takes writes of zeros; `under_way`, how many
it holds; `gone`, "" or why the drive cannot be reached any more; now_ns(), the clock of all its times; submit(order,
n), hand over these slots; reap(ended, timeout_ns, least) -> n, wait for `least` ends or this long and put the slots
that have ended into `ended`, their `status` set; pause(ns); close(). None of them raises because the drive went away:
that is in `gone`."""

import errno
import mmap
from typing import Protocol

import numpy as np

from ssdrig.base.errors import DriveError

SLOTS = 128
SLOT_BYTES = 512 << 10  # the longest command with data
# errnos of a drive that is not there any more
AWAY = (errno.ENODEV, errno.ENXIO, errno.ENOTCONN, errno.ESHUTDOWN, errno.ENOMEDIUM)
WAIT_NS, HANG_NS = 100_000_000, 30_000_000_000


class Slots:
    """kind: of history (BLANK is any read), flags: history.FUA and ZEROS, offset and length in bytes, status: 0 or an
    errno with its sign. The data of slot i is data[i * bytes_each:], words[i] as 64-bit words."""

    def __init__(self, n: int = SLOTS, bytes_each: int = SLOT_BYTES):
        self.n, self.bytes_each = n, bytes_each
        self.kind, self.flags = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        self.offset, self.length = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.status = np.zeros(n, np.int64)
        self.memory = mmap.mmap(-1, n * bytes_each)
        self.data = np.frombuffer(self.memory, np.uint8)
        self.words = self.data.view(np.uint64).reshape(n, -1)


class Transport(Protocol):
    slots: Slots
    size_bytes: int
    can_trim: bool
    can_zero: bool
    under_way: int
    gone: str

    def now_ns(self) -> int: ...
    def submit(self, order: np.ndarray, n: int) -> None: ...
    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int: ...
    def pause(self, ns: int) -> None: ...
    def close(self) -> None: ...


def carry_out(transport: Transport, n: int, prepare, taken, most: int = SLOTS) -> None:
    """n commands, up to `most` under way: prepare(numbers, slots) fills the slots of these commands, and taken(numbers,
    slots) gets them when they have ended; both arrays. Raises DriveError where the drive is gone, or holds commands
    longer than HANG_NS. A wait counts WAIT_NS at most: the time of a suspended host is not the drive's."""
    free = list(range(min(most, transport.slots.n)))
    number_in = np.zeros(transport.slots.n, np.int64)
    ended = np.zeros(transport.slots.n, np.int64)
    first = done = 0
    silent_ns = 0
    while done < n:
        if free and first < n:
            slots = np.array([free.pop() for _ in range(min(len(free), n - first))])
            number_in[slots] = np.arange(first, first + len(slots))
            first += len(slots)
            transport.slots.status[slots] = 0
            prepare(number_in[slots], slots)
            transport.submit(slots, len(slots))
        asked_ns = transport.now_ns()
        got = transport.reap(ended, WAIT_NS, max(1, transport.under_way // 2))
        if got:
            slots = ended[:got].copy()
            taken(number_in[slots], slots)
            free += slots.tolist()
            done, silent_ns = done + got, 0
            continue
        silent_ns += min(transport.now_ns() - asked_ns, WAIT_NS)
        if transport.gone or silent_ns > HANG_NS:
            why = transport.gone or f"no answer for {HANG_NS // 10**9} s, {transport.under_way} commands under way"
            raise DriveError("the drive to answer", why, "see whether it has power, and the kernel's log (dmesg)")
