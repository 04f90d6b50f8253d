"""An NBD client with many requests under way, for the trace player: the requests of a window are prepared at once, sent
in batches, and answered in any order."""

import errno
import os
import select
import time

import numpy as np

from ssdrig.errors import DriveError
from ssdrig.virtual.device import nbd
from ssdrig.virtual.nbdclient import REPLY, REPLY_MAGIC, REQUEST_MAGIC, NbdClient

HEADER = np.dtype(
    [("magic", ">u4"), ("flags", ">u2"), ("kind", ">u2"), ("cookie", ">u8"), ("offset", ">u8"), ("length", ">u4")]
)
KINDS = (nbd.READ, nbd.WRITE, nbd.TRIM, nbd.FLUSH)
BUFFER_BYTES = 1 << 18
MOST_UNDER_WAY = 1024


class NbdPipe(NbdClient):
    """Connection to the drive at a unix socket. `slots` requests can be prepared, whose number is their cookie; `pool`
    is where the data of writes is from, and pool_offsets(first slot, n) where in it. Errors as NbdClient, and
    DriveError where the drive refuses a request."""

    def __init__(self, path: str, slots: int, pool, pool_offsets):
        super().__init__(path)
        self.sock.setblocking(False)
        self.most = MOST_UNDER_WAY
        self._headers = np.zeros(slots, HEADER)
        self._headers["magic"], self._headers["cookie"] = REQUEST_MAGIC, np.arange(slots)
        self._header_bytes = memoryview(self._headers.view(np.uint8))
        self._pool, self._pool_offsets = memoryview(pool), pool_offsets
        self._reads, self._writes = [0] * slots, [0] * slots  # bytes that follow on the answer, on the request
        self._from = [0] * slots
        self._unsent: list[memoryview] = []
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._held = 0  # bytes at the buffer's beginning that are no whole header yet
        self._skip = 0  # bytes of a read's data that are still to come ...
        self._reading = -1  # ... and its slot

    def prepare(self, first: int, rows: np.ndarray) -> None:
        """The requests of rows (op: an index into KINDS) go into the slots from `first` on, which must be free."""
        n, op, length = len(rows), rows["op"], rows["length_bytes"]
        here = self._headers[first : first + n]
        here["kind"], here["offset"], here["length"] = np.array(KINDS)[op], rows["offset_bytes"], length
        self._reads[first : first + n] = np.where(op == KINDS.index(nbd.READ), length, 0).tolist()
        self._writes[first : first + n] = np.where(op == KINDS.index(nbd.WRITE), length, 0).tolist()
        self._from[first : first + n] = self._pool_offsets(first, n).tolist()

    def submit(self, first: int, n: int) -> int:
        """Send the requests of n slots, or none (0) while the drive has not taken those before."""
        if self._unsent and not self._send():
            return 0
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
        """Wait for an answer, at most so long; done_ns of the slots that were answered becomes their time. Returns how
        many."""
        readable, writable, _ = select.select([self.sock], [self.sock] if self._unsent else [], [], timeout_ns / 1e9)
        if writable:
            self._send()
        if not readable:
            return 0
        try:
            got = self.sock.recv_into(self._view[self._held :])
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._lost(error) from error
        if not got:
            raise self._lost("the end of the connection")
        return self._taken_in(self._held + got, time.monotonic_ns(), done_ns)

    def _taken_in(self, end: int, now: int, done_ns: np.ndarray) -> int:
        at, ended = 0, 0
        while True:
            if self._reading >= 0:
                taken = min(self._skip, end - at)
                at, self._skip = at + taken, self._skip - taken
                if self._skip:
                    break
                done_ns[self._reading] = now
                ended, self._reading = ended + 1, -1
            if end - at < REPLY.size:
                break
            magic, error, slot = REPLY.unpack_from(self._buffer, at)
            at += REPLY.size
            if magic != REPLY_MAGIC or slot >= len(self._reads):
                raise self._lost("an answer to another request")
            if error:
                self._refused(slot, error)
            if length := self._reads[slot]:
                self._skip, self._reading = length, slot
            else:
                done_ns[slot] = now
                ended += 1
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
