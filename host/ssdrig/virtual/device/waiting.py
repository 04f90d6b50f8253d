"""What connections of all protocols share: how they read and send, and the commands that were executed and wait
until they are due.

Calibrated on two cores shared with fio, for the rate that it sees to be the model's: replies leave early by the time it
takes until the client's next request is here; in a deep queue that one also waits for its turn after the others'
replies."""

import socket

import numpy as np

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device.device import MAX_BATCH, Device

LEAD_NS, DEEP_LEAD_NS = 60_000, 120_000
GATHER_NS = 20_000  # replies of a deep queue leave at most this often
DEEP = 8
# A busy host must not slow the drive down: in a deep queue, what follows a reply later than USUAL_NS after that was due
# counts as having come then, at most MAKE_UP_NS ago, and the drive works on from where it would be. The power feed lags
# by 4 ms (nand.LAG_NS), so nothing that it has shown already is changed.
USUAL_NS, MAKE_UP_NS = 200_000, 2_000_000
AHEAD_NS = 500_000  # an answer may arrive this early at a client that knows the time (nbd.STAMPED)


def receive(sock: socket.socket, room: memoryview) -> int | None:
    """Receive into `room`. Returns the number of bytes; None: nothing yet; 0: the other side is gone."""
    try:
        return sock.recv_into(room)
    except BlockingIOError:
        return None
    except OSError:
        return 0


def send(sock: socket.socket, words) -> int | None:
    """How many of the words the other side takes now, 0 too; None: it is gone."""
    try:
        return sock.send(words)
    except BlockingIOError:
        return 0
    except OSError:
        return None


class Waiting:
    """`rows[:n]` wait, int64 as nbd.COLUMNS; `reads` has room for as many reads as rows; `longest_read` in bytes."""

    def __init__(self, device: Device):
        self.device = device
        self.rows = np.zeros((MAX_BATCH, nbd_protocol.COLUMNS), dtype=np.int64)
        self.reads = np.zeros((MAX_BATCH, 3), dtype=np.int64)
        self.n = self.longest_read = 0
        self._first_due_ns = -1
        self._replied_ns = self._follow_ns = self._lead_ns = 0

    def execute(self, buf: np.ndarray, batch: np.ndarray, n: int, now_ns: int) -> None:
        """Hand the first n rows of batch, which came at now_ns, to the drive."""
        lead_ns = LEAD_NS if self.n + n < DEEP else DEEP_LEAD_NS
        self._lead_ns = lead_ns
        came_ns = self._follow_ns if 0 < now_ns - self._follow_ns < MAKE_UP_NS else now_ns
        first_due_ns, longest_read = self.device.execute(buf, batch, n, came_ns, lead_ns)
        self.longest_read = max(self.longest_read, longest_read)
        self.keep(batch, n, first_due_ns)

    def execute_stamped(self, buf: np.ndarray, batch: np.ndarray, n: int, now_ns: int) -> None:
        """The same for requests with a submission time; at most MAKE_UP_NS ago is accepted."""
        self.device.lead_ns = self._lead_ns = AHEAD_NS
        first = 0
        while first < n:
            end, came_ns = nbd_protocol.came_together(batch, first, n, now_ns, MAKE_UP_NS)
            part = batch[first:end]
            _, longest_read = self.device.execute(buf, part, end - first, came_ns)
            self.longest_read = max(self.longest_read, longest_read)
            self.keep(part, end - first, nbd_protocol.stamp(part, end - first, now_ns, AHEAD_NS))
            first = end

    def keep(self, batch: np.ndarray, n: int, first_due_ns: int) -> None:
        """The first n rows of batch, their DUE set, wait from now on."""
        total = self.n + n
        while total > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
            self.reads = np.zeros((len(self.rows), 3), dtype=np.int64)
        self.rows[self.n : total] = batch[:n]
        self.n = total
        self._first_due_ns = first_due_ns if self._first_due_ns < 0 else min(self._first_due_ns, first_due_ns)

    @property
    def next_due_ns(self) -> int:
        """When the next replies should leave; -1: nothing waits."""
        if self.n == 0:
            return -1
        if self.n < DEEP or not self.device.latency:
            return self._first_due_ns
        return max(self._first_due_ns, self._replied_ns + GATHER_NS)

    def replying(self, now_ns: int) -> None:
        """Call before the rows that are due are taken out ..."""
        self._follow_ns = self._first_due_ns + USUAL_NS if self.n >= DEEP and self.device.latency else 0
        self._replied_ns = now_ns
        if self.device.latency:
            nbd_protocol.count_late(self.rows, self.n, now_ns, self._lead_ns, self.device.pace.counts)

    def left(self, n: int, first_due_ns: int) -> None:
        """... and after: n rows are left, the first of them due at first_due_ns (-1 if none)."""
        self.n, self._first_due_ns = n, first_due_ns
