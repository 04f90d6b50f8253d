"""An NBD drive for the trace player: the requests of a window are prepared together, sent in batches, and answered in
any order.

Each request carries its submission time, each answer its completion time (nbd_protocol.STAMPED). That is when it
counts, whether its answer arrives before or after that time: what two processes of a busy host take is not a time of
the drive's."""

import errno
import heapq
import os
import time

import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio import nbd_numbers, nbd_protocol
from ssdrig.blockio.nbd_pipe import Pipe, Requests
from ssdrig.load import traceform

KINDS = (
    nbd_protocol.READ,
    nbd_protocol.WRITE,
    nbd_protocol.TRIM,
    nbd_protocol.FLUSH,
    nbd_protocol.WRITE_ZEROES,
)  # by the number in traceform.OPS
WORDS = np.array([KINDS, KINDS], np.int64)  # by the flags of a row
WORDS[traceform.FUA] |= nbd_numbers.FUA << 16
TIME_MASK = (1 << nbd_protocol.TIME_BITS) - 1
GREETING_S = 30.0
MOST_UNDER_WAY = 1024


class NbdPipe(Pipe):
    """Connection to the drive at a unix socket. `slots` requests can be prepared; `pool` is where the data of writes is
    from, and pool_offsets(first slot, n) where in it. Errors as NbdClient, and DriveError where the drive refuses a
    request."""

    def __init__(self, path: str, slots: int, pool, pool_offsets):
        kind, flags = np.zeros((2, slots), np.uint8)
        offset, length, status, at = np.zeros((4, slots), np.int64)
        requests = Requests(kind, flags, offset, length, status, at, memoryview(pool), np.zeros(0, np.uint8))
        super().__init__(path, GREETING_S, nbd_protocol.STAMPED, requests, WORDS)
        self.most, self._pool_offsets = MOST_UNDER_WAY, pool_offsets
        self._slots, self._ended = np.arange(slots), np.zeros(slots, np.int64)
        self._early: list[tuple[int, int]] = []  # answers that are here before their time: (ns, slot)
        self.answers = self.late = self.late_ns = 0  # all, those later than their time, by how much together

    @property
    def late_us(self) -> float:
        """Mean delay of all answers against the drive's time."""
        return self.late_ns / max(1, self.answers) / 1e3

    def prepare(self, first: int, rows: np.ndarray) -> None:
        """The requests of rows (op: an index into KINDS) go into the slots from `first` on, which must be free."""
        slots, requests = slice(first, first + len(rows)), self.requests
        requests.kind[slots], requests.offset[slots] = rows["op"], rows["offset_bytes"]
        requests.flags[slots] = rows["flags"]
        requests.length[slots], requests.at[slots] = rows["length_bytes"], self._pool_offsets(first, len(rows))

    def submit(self, first: int, n: int, now_ns: int) -> int:
        """Send the requests of n slots, submitted now, or none (0) while the drive has not taken those before."""
        if not self.send() and not self.gone:
            return 0
        self.post(self._slots[first : first + n], n, now_ns & TIME_MASK, 0)
        self._still_there()
        return n

    def reap(self, timeout_ns: int, done_ns: np.ndarray) -> int:
        """Wait for the end of a request, at most this long; done_ns of the slots that have ended becomes their time.
        Returns how many."""
        ended = self._in_time(time.monotonic_ns(), done_ns)
        if ended:
            timeout_ns = 0
        elif self._early:
            timeout_ns = max(0, min(timeout_ns, self._early[0][0] - time.monotonic_ns()))
        n = self.take(self._ended, timeout_ns)
        now, status = time.monotonic_ns(), self.requests.status
        for slot, cookie in zip(self._ended[:n].tolist(), self.cookies[:n].tolist()):
            if status[slot]:
                raise self._refused(slot)
            ahead_ns = ((cookie >> nbd_protocol.SLOT_BITS) - now) & TIME_MASK
            due_ns = now + ahead_ns - ((TIME_MASK + 1) if ahead_ns > TIME_MASK >> 1 else 0)
            ended += self._came(slot, due_ns, now, done_ns)
        self._still_there()
        return ended + self._in_time(now, done_ns)

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

    def _still_there(self) -> None:
        if self.gone:
            raise self._lost(self.gone)

    def _refused(self, slot: int) -> DriveError:
        requests, number = self.requests, -int(self.requests.status[slot])
        asked = f"NBD request {KINDS[requests.kind[slot]]} at {requests.offset[slot]}+{requests.length[slot]}"
        return DriveError(
            f"the drive at {self.path} to take {asked}",
            f"{errno.errorcode.get(number, number)} ({os.strerror(number)})",
            "see whether it has power and takes blocks this small",
        )
