"""The ways of the writer to a target, each a transport (slots.Transport).

Aio: a block device, or a file, by Linux AIO: requests prepared and ends taken in compiled code. FUA is RWF_DSYNC, FLUSH
is FDSYNC (a block device makes a FLUSH of it), TRIM a discard and a write of zeros BLKZEROOUT, in a thread; all of it
past the page cache.

Threads: the same where AIO is forbidden, a thread for each command in flight.

Connections: several connections to one NBD server: each command goes over the next connection, so a FLUSH has to cover
what came by the others. Source: NetworkBlockDevice/nbd doc/proto.md, NBD_FLAG_CAN_MULTI_CONN: a FLUSH on one connection
covers all that was answered on any."""

import contextlib
import errno
import os
import queue
import select
import threading
import time
from collections.abc import Iterator

import numba
import numpy as np

from ssdrig.blockio import aio, direct
from ssdrig.blockio.aio import CONTROL, FDSYNC, PREAD, PWRITE, RWF_DSYNC
from ssdrig.blockio.slots import AWAY, Slots
from ssdrig.drive import block
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS
from ssdrig.powerloss.nbdwriter import Nbd


class Connections:
    """A transport (slots.Transport) over `n` connections; over one where the server does not promise that a FLUSH
    covers all. Raises DriveError, UsageError as Nbd does."""

    def __init__(self, uri: str, n: int):
        first = Nbd(uri)
        self.links, self.slots, self.size_bytes = [first], first.slots, first.size_bytes
        self.can_trim, self.can_zero, self._next = first.can_trim, first.can_zero, 0
        self.under_way, self.gone = 0, ""
        try:
            while first.flush_is_of_all and len(self.links) < n:
                self.links.append(Nbd(uri, self.slots))
        except Exception:
            self.close()
            raise

    now_ns = staticmethod(time.monotonic_ns)

    @property
    def server(self) -> int | None:
        """As Nbd.server."""
        return self.links[0].server

    def submit(self, order: np.ndarray, n: int) -> None:
        if self.gone:
            return
        many = len(self.links)
        for i in range(min(many, n)):
            part = order[i:n:many]
            self.links[(self._next + i) % many].submit(np.ascontiguousarray(part), len(part))
        self._next = (self._next + n) % many
        self._see()

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        """As slots.Transport; `least` is not waited for."""
        if self.gone:
            return 0
        socks = {link.sock: link for link in self.links}
        readable, writable, _ = select.select(
            socks, [sock for sock, link in socks.items() if link.waits], [], timeout_ns / 1e9
        )
        for sock in writable:
            socks[sock].send()
        n = 0
        for sock in readable:
            n += socks[sock].take(ended[n:], 0)
        if any(link.gone for link in self.links):  # they go together: what the others have brought still counts
            for link in self.links:
                while got := link.take(ended[n:], 0):
                    n += got
        self._see()
        return n

    def _see(self) -> None:
        self.gone = next((link.gone for link in self.links if link.gone), "")
        self.under_way = 0 if self.gone else sum(link.under_way for link in self.links)
        if self.gone:
            self.close()

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def close(self) -> None:
        """Disconnect each and close. Safe to call twice."""
        for link in self.links:
            link.close()


THREADS = 32


class Threads:
    """A transport (slots.Transport); as aio.Aio. At most THREADS commands are at the drive, the others wait for a
    thread."""

    def __init__(self, path: str):
        self.path, self.slots, self.under_way, self.gone = path, Slots(), 0, ""
        self._fd, _ = direct.opened(path)
        self.size_bytes = os.lseek(self._fd, 0, os.SEEK_END)
        self.can_trim, self.can_zero = direct.takes(self._fd, direct.DISCARD), direct.is_block_device(self._fd)
        self._view = memoryview(self.slots.memory)
        self._asked: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._answered: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(THREADS)]
        for thread in self._threads:
            thread.start()

    now_ns = staticmethod(time.monotonic_ns)

    def submit(self, order: np.ndarray, n: int) -> None:
        self.under_way += n
        for slot in order[:n].tolist():
            self._asked.put(slot)

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        n = 0
        try:
            if timeout_ns:
                ended[0] = self._answered.get(timeout=timeout_ns / 1e9)
                n = 1
            while True:
                ended[n] = self._answered.get_nowait()
                n += 1
        except queue.Empty:
            pass
        self.under_way -= n
        away = [-int(status) for status in self.slots.status[ended[:n]] if -status in AWAY]
        if away:
            self.gone = os.strerror(away[0])
        return n

    def _run(self) -> None:
        while (slot := self._asked.get()) is not None:
            try:
                self.slots.status[slot] = self._do(slot)
            except OSError as error:
                self.slots.status[slot] = -(error.errno or errno.EIO)
            self._answered.put(slot)

    def _do(self, slot: int) -> int:
        slots = self.slots
        kind, offset, length = int(slots.kind[slot]), int(slots.offset[slot]), int(slots.length[slot])
        if kind == FLUSH:
            os.fdatasync(self._fd)
            return 0
        if kind == TRIM:
            return -direct.discard(self._fd, offset, length) if self.can_trim else -errno.EOPNOTSUPP
        if kind == WRITE and slots.flags[slot] & ZEROS:
            return -direct.discard(self._fd, offset, length, block.BLKZEROOUT)
        begin = slot * slots.bytes_each
        data = self._view[begin : begin + length]
        if kind == WRITE:
            done = os.pwritev(self._fd, [data], offset, os.RWF_DSYNC if slots.flags[slot] & FUA else 0)
        else:
            assert kind == BLANK
            done = os.preadv(self._fd, [data], offset)
        return 0 if done == length else -errno.EIO

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def close(self) -> None:
        """Waits for the commands in flight. Safe to call twice."""
        if self._fd >= 0:
            for _ in self._threads:
                self._asked.put(None)
            for thread in self._threads:
                thread.join()
            os.close(self._fd)
            self._fd = -1


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
