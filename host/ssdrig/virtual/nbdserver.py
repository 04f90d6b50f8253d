"""The NBD side of the virtual drive's server: connections, and when each reply leaves.

A connection reads what the socket holds, parses all whole requests at once, hands them to the drive as one batch and
keeps them until they are due; replies that are due leave in one send. A client that does not read its replies only
stops itself: nothing more of it is read."""

import socket
import time

import numpy as np

from ssdrig.virtual import nbd
from ssdrig.virtual.device import MAX_BATCH, Device

BUFFER_BYTES = 1 << 20
MAX_WAITING = 16384
# Calibrated on two cores shared with fio, for the rate that it sees to be the model's: replies leave early by what it takes
# until the client's next request is here; in a deep queue that one also waits for its turn behind the others' replies.
LEAD_NS, DEEP_LEAD_NS = 60_000, 120_000
GATHER_NS = 20_000  # replies of a deep queue leave at most this often
DEEP = 8
# A busy host must not slow the drive down: in a deep queue, what follows a reply later than USUAL_NS after that was due
# counts as having come then, at most MAKE_UP_NS ago, and the drive works on from where it would be. The power feed lags by
# 4 ms (nand.LAG_NS), so nothing that it has shown already is changed.
USUAL_NS, MAKE_UP_NS = 200_000, 2_000_000


class Connection:
    """One client. `closed` is true once the socket is gone."""

    def __init__(self, sock: socket.socket, device: Device):
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)  # the kernel gives what it allows
        self.sock, self.device = sock, device
        self.closed = False
        self.negotiation = nbd.Negotiation(device.capacity_bytes, device.store.min_block)
        self._buf = np.empty(BUFFER_BYTES, dtype=np.uint8)
        self._start = self._end = 0
        self._batch = np.zeros((MAX_BATCH, nbd.COLUMNS), dtype=np.int64)
        self._waiting = np.zeros((MAX_BATCH, nbd.COLUMNS), dtype=np.int64)
        self._reads = np.zeros((MAX_BATCH, 3), dtype=np.int64)
        self.n_waiting = 0
        self._first_due_ns = -1  # of the requests that wait; -1: none
        self._replied_ns = self._follow_ns = 0
        self._out = np.empty(BUFFER_BYTES, dtype=np.uint8)
        self._out_at = self._out_end = self._longest_read = 0
        self._send_words(nbd.Negotiation.greeting)

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def wants_read(self) -> bool:
        return self.n_waiting < MAX_WAITING and not self.wants_write

    @property
    def wants_write(self) -> bool:
        """True while replies are stuck because the client does not read."""
        return self._out_at < self._out_end

    @property
    def next_due_ns(self) -> int:
        """When the next replies should leave; -1: nothing waits for the clock."""
        if self.n_waiting == 0 or self.wants_write:
            return -1
        if self.n_waiting < DEEP or not self.device.latency:
            return self._first_due_ns
        return max(self._first_due_ns, self._replied_ns + GATHER_NS)

    def close(self) -> None:
        self.closed = True
        self.sock.close()

    def receive(self) -> None:
        """Read once and act on it."""
        try:
            got = self.sock.recv_into(memoryview(self._buf)[self._end :])
        except BlockingIOError:
            return
        except OSError:
            got = 0
        if got == 0:
            self.close()
            return
        self._end += got
        now = time.monotonic_ns()
        if self.negotiation.state != "ready":
            self._negotiate()
            if self.negotiation.state != "ready":
                return
        self._act(now)

    def _negotiate(self) -> None:
        answer = self.negotiation.receive(self._buf[self._start : self._end].tobytes())
        self._start = self._end = 0
        self._send_words(answer)
        if self.negotiation.state == "closed":
            self.close()
        elif self.negotiation.state == "ready":
            rest = np.frombuffer(self.negotiation.rest, dtype=np.uint8)
            self._buf[: len(rest)] = rest
            self._end = len(rest)

    def _act(self, now_ns: int) -> None:
        device = self.device
        while not self.closed:
            n, used, need, state = nbd.parse(
                self._buf, self._start, self._end, device.capacity_bytes, device.store.min_block, self._batch
            )
            if n:
                lead_ns = LEAD_NS if self.n_waiting + n < DEEP else DEEP_LEAD_NS
                came_ns = self._follow_ns if 0 < now_ns - self._follow_ns < MAKE_UP_NS else now_ns
                self._keep(n, *device.execute(self._buf, self._batch, n, came_ns, lead_ns))
            self._start += used
            if state != nbd.MORE:
                self.close()
            if n < MAX_BATCH:
                break
        self._make_room(need)

    def _keep(self, n: int, first_due_ns: int, longest_read: int) -> None:
        total = self.n_waiting + n
        while total > len(self._waiting):
            self._waiting = np.concatenate([self._waiting, np.zeros_like(self._waiting)])
            self._reads = np.zeros((len(self._waiting), 3), dtype=np.int64)
        self._waiting[self.n_waiting : total] = self._batch[:n]
        self.n_waiting = total
        self._longest_read = max(self._longest_read, longest_read)
        self._first_due_ns = first_due_ns if self._first_due_ns < 0 else min(self._first_due_ns, first_due_ns)

    def _make_room(self, need: int) -> None:
        """Room for the rest of the next request, or for another full read."""
        held = self._end - self._start
        if held == 0:
            self._start = self._end = 0
        elif need > len(self._buf) or len(self._buf) - self._end < BUFFER_BYTES // 4:
            buf = np.empty(need, dtype=np.uint8) if need > len(self._buf) else self._buf
            buf[:held] = self._buf[self._start : self._end].copy()
            self._buf, self._start, self._end = buf, 0, held

    def reply(self, now_ns: int) -> None:
        """Send the replies of all requests that are due at now_ns, as far as the client takes them."""
        while not self.closed:
            if self.wants_write:
                try:
                    self._out_at += self.sock.send(memoryview(self._out)[self._out_at : self._out_end])
                except BlockingIOError:
                    return
                except OSError:
                    self.close()
                    return
                if self.wants_write:
                    return
            if self.n_waiting == 0 or self.next_due_ns > now_ns:
                return
            self._follow_ns = self._first_due_ns + USUAL_NS if self.n_waiting >= DEEP and self.device.latency else 0
            self._out_at, self._replied_ns = 0, now_ns
            if len(self._out) < self._longest_read + nbd.REPLY_BYTES:
                self._out = np.empty(self._longest_read + nbd.REPLY_BYTES, dtype=np.uint8)
            self.n_waiting, self._out_end, n_reads, self._first_due_ns = nbd.collect(
                self._waiting, self.n_waiting, now_ns, self._out, self._reads
            )
            if n_reads:
                self.device.store.read(self._out, self._reads, n_reads)

    def _send_words(self, words: bytes) -> None:
        """The few bytes of the negotiation; a client that does not even take those is dropped."""
        try:
            if words and self.sock.send(words) != len(words):
                self.close()
        except OSError:
            self.close()
