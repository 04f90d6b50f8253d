"""An NBD client with many requests under way, for the trace player: the requests of a window are prepared at once, sent
in batches, and answered in any order.

The drive is told when each was submitted, and tells when it is completed (nbd.STAMPED). That is when it counts, whether
its answer is here before or behind that time: what two processes of a busy host take is no time of the drive's."""

import errno
import heapq
import os
import select
import socket
import time

import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.nbd import REPLY, REPLY_MAGIC, REQUEST_MAGIC, NbdClient

HEADER = np.dtype(
    [("magic", ">u4"), ("flags", ">u2"), ("kind", ">u2"), ("cookie", ">u8"), ("offset", ">u8"), ("length", ">u4")]
)
KINDS = (
    nbd_protocol.READ,
    nbd_protocol.WRITE,
    nbd_protocol.TRIM,
    nbd_protocol.FLUSH,
    nbd_protocol.WRITE_ZEROES,
)  # by the number in traceform.OPS
BUFFER_BYTES, SEND_BYTES = 1 << 18, 1 << 20
SLOT_MASK, TIME_MASK = (1 << nbd_protocol.SLOT_BITS) - 1, (1 << nbd_protocol.TIME_BITS) - 1
MOST_UNDER_WAY = 1024


class NbdPipe(NbdClient):
    """Connection to the drive at a unix socket. `slots` requests can be prepared, whose number is their cookie; `pool`
    is where the data of writes is from, and pool_offsets(first slot, n) where in it. Errors as NbdClient, and
    DriveError where the drive refuses a request."""

    def __init__(self, path: str, slots: int, pool, pool_offsets):
        super().__init__(path, export=nbd_protocol.STAMPED)
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)  # the kernel gives what it allows
        self.most = MOST_UNDER_WAY
        self._headers = np.zeros(slots, HEADER)
        self._headers["magic"] = REQUEST_MAGIC
        self._slots = np.arange(slots, dtype=np.uint64)
        self._header_bytes = memoryview(self._headers.view(np.uint8))
        self._pool, self._pool_offsets = memoryview(pool), pool_offsets
        self._reads, self._writes = [0] * slots, [0] * slots  # bytes that follow on the answer, on the request
        self._from = [0] * slots
        self._unsent: list[memoryview] = []
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._held = 0  # bytes at the buffer's beginning that are no whole header yet
        self._skip = 0  # bytes of a read's data that are still to come ...
        self._reading = -1  # ... its slot ...
        self._reading_due_ns = 0  # ... and when it is completed
        self._early: list[tuple[int, int]] = []  # answers that are here before their time: (ns, slot)
        self.answers = self.late = self.late_ns = 0  # all, those here behind their time, by how much together

    @property
    def late_us(self) -> float:
        """By how much answers were behind the time of the drive, in the mean of all."""
        return self.late_ns / max(1, self.answers) / 1e3

    def prepare(self, first: int, rows: np.ndarray) -> None:
        """The requests of rows (op: an index into KINDS) go into the slots from `first` on, which must be free."""
        n, op, length = len(rows), rows["op"], rows["length_bytes"]
        here = self._headers[first : first + n]
        here["kind"], here["offset"], here["length"] = np.array(KINDS)[op], rows["offset_bytes"], length
        self._reads[first : first + n] = np.where(op == KINDS.index(nbd_protocol.READ), length, 0).tolist()
        self._writes[first : first + n] = np.where(op == KINDS.index(nbd_protocol.WRITE), length, 0).tolist()
        self._from[first : first + n] = self._pool_offsets(first, n).tolist()

    def submit(self, first: int, n: int, now_ns: int) -> int:
        """Send the requests of n slots, submitted now, or none (0) while the drive has not taken those before."""
        if self._unsent and not self._send():
            return 0
        stamp = np.uint64((now_ns & TIME_MASK) << nbd_protocol.SLOT_BITS)
        self._headers["cookie"][first : first + n] = self._slots[first : first + n] | stamp
        size, begin = HEADER.itemsize, first
        for slot in range(first, first + n):
            if length := self._writes[slot]:
                self._unsent.append(self._header_bytes[begin * size : (slot + 1) * size])
                self._unsent.append(self._pool[self._from[slot] : self._from[slot] + length])
                begin = slot + 1
        if begin < first + n:
            self._unsent.append(self._header_bytes[begin * size : (first + n) * size])
        self._send()
        return n

    def _send(self) -> bool:
        """Send what the socket takes; True if nothing is left."""
        try:
            while self._unsent:
                sent = self.sock.sendmsg(self._unsent)
                done = 0
                while done < len(self._unsent) and sent >= len(self._unsent[done]):
                    sent -= len(self._unsent[done])
                    done += 1
                del self._unsent[:done]
                if sent:
                    self._unsent[0] = self._unsent[0][sent:]
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._lost(error) from error
        return True

    def reap(self, timeout_ns: int, done_ns: np.ndarray) -> int:
        """Wait for the end of a request, at most so long; done_ns of the slots that have ended becomes their time.
        Returns how many."""
        ended = self._in_time(time.monotonic_ns(), done_ns)
        if ended:
            timeout_ns = 0
        elif self._early:
            timeout_ns = max(0, min(timeout_ns, self._early[0][0] - time.monotonic_ns()))
        readable, writable, _ = select.select([self.sock], [self.sock] if self._unsent else [], [], timeout_ns / 1e9)
        if writable:
            self._send()
        if not readable:
            return ended + self._in_time(time.monotonic_ns(), done_ns)
        try:
            got = self.sock.recv_into(self._view[self._held :])
        except BlockingIOError:
            return ended
        except OSError as error:
            raise self._lost(error) from error
        if not got:
            raise self._lost("the end of the connection")
        return ended + self._taken_in(self._held + got, time.monotonic_ns(), done_ns)

    def _in_time(self, now: int, done_ns: np.ndarray) -> int:
        """The requests whose answers were here and whose time has come."""
        ended = 0
        while self._early and self._early[0][0] <= now:
            due_ns, slot = heapq.heappop(self._early)
            done_ns[slot] = due_ns
            ended += 1
        return ended

    def _came(self, slot: int, due_ns: int, now: int, done_ns: np.ndarray) -> int:
        """How many have ended: none where its time is still to come. One that is late has ended when it was due."""
        self.answers += 1
        if due_ns > now:
            heapq.heappush(self._early, (due_ns, slot))
            return 0
        self.late, self.late_ns = self.late + 1, self.late_ns + now - due_ns
        done_ns[slot] = due_ns
        return 1

    def _taken_in(self, end: int, now: int, done_ns: np.ndarray) -> int:
        at, ended = 0, 0
        while True:
            if self._reading >= 0:
                taken = min(self._skip, end - at)
                at, self._skip = at + taken, self._skip - taken
                if self._skip:
                    break
                ended += self._came(self._reading, self._reading_due_ns, now, done_ns)
                self._reading = -1
            if end - at < REPLY.size:
                break
            magic, error, cookie = REPLY.unpack_from(self._buffer, at)
            at += REPLY.size
            slot = cookie & SLOT_MASK
            ahead_ns = ((cookie >> nbd_protocol.SLOT_BITS) - now) & TIME_MASK
            due_ns = now + ahead_ns - ((TIME_MASK + 1) if ahead_ns > TIME_MASK >> 1 else 0)
            if magic != REPLY_MAGIC or slot >= len(self._reads):
                raise self._lost("an answer to another request")
            if error:
                self._refused(slot, error)
            if length := self._reads[slot]:
                self._skip, self._reading, self._reading_due_ns = length, slot, due_ns
            else:
                ended += self._came(slot, due_ns, now, done_ns)
        self._held = end - at
        self._view[: self._held] = self._buffer[at:end]
        return ended

    def _refused(self, slot: int, number: int) -> None:
        row = self._headers[slot]
        raise DriveError(
            f"the drive at {self.path} to take NBD request {row['kind']} at {row['offset']}+{row['length']}",
            f"{errno.errorcode.get(number, number)} ({os.strerror(number)})",
            "see whether it has power and takes blocks this small",
        )
