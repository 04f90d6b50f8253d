"""The NBD side of the virtual drive's server: connections, and when each reply leaves.

A connection reads the socket, parses all complete requests in one pass, hands them to the drive as one batch and
keeps them until they are due; replies that are due leave in one send. A client that does not read its replies only
stops itself: nothing more of it is read."""

import socket
import time

import numpy as np

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device.device import MAX_BATCH, Device
from ssdrig.virtual.device.waiting import Waiting, receive, send

BUFFER_BYTES = 1 << 20
MAX_WAITING = 16384


class Connection:
    """One client. `closed` is true once the socket is gone."""

    def __init__(self, sock: socket.socket, device: Device):
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)  # the kernel may grant less
        self.sock, self.device = sock, device
        self.closed = False
        self.negotiation = nbd_protocol.Negotiation(device.capacity_bytes, device.store.min_block)
        self._buf = np.empty(BUFFER_BYTES, dtype=np.uint8)
        self._start = self._end = 0
        self._batch = np.zeros((MAX_BATCH, nbd_protocol.COLUMNS), dtype=np.int64)
        self.waiting = Waiting(device)
        self._out = np.empty(BUFFER_BYTES, dtype=np.uint8)
        self._out_at = self._out_end = 0
        self._send_words(nbd_protocol.Negotiation.greeting)

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def wants_read(self) -> bool:
        return self.waiting.n < MAX_WAITING and not self.wants_write

    @property
    def wants_write(self) -> bool:
        """True while replies are stuck because the client does not read."""
        return self._out_at < self._out_end

    @property
    def next_due_ns(self) -> int:
        """When the next replies should leave; -1: nothing waits for the clock."""
        return -1 if self.wants_write else self.waiting.next_due_ns

    def close(self) -> None:
        self.closed = True
        self.sock.close()

    def receive(self) -> None:
        """Read once and act on it."""
        got = receive(self.sock, memoryview(self._buf)[self._end :])
        if got == 0:
            self.close()
        if not got:
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
            n, used, need, state = nbd_protocol.parse(
                self._buf, self._start, self._end, device.capacity_bytes, device.store.min_block, self._batch
            )
            if n:
                execute = self.waiting.execute_stamped if self.negotiation.stamped else self.waiting.execute
                execute(self._buf, self._batch, n, now_ns)
            self._start += used
            if state != nbd_protocol.MORE:
                self.close()
            if n < MAX_BATCH:
                break
        self._make_room(need)

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
        """Send the replies of all requests that are due at now_ns, until the client's buffer is full."""
        while not self.closed:
            if self.wants_write:
                sent = send(self.sock, memoryview(self._out)[self._out_at : self._out_end])
                if sent is None:
                    self.close()
                    return
                self._out_at += sent
                if self.wants_write:
                    return
            waiting = self.waiting
            if waiting.n == 0 or waiting.next_due_ns > now_ns:
                return
            waiting.replying(now_ns)
            if len(self._out) < waiting.longest_read + nbd_protocol.REPLY_BYTES:
                self._out = np.empty(waiting.longest_read + nbd_protocol.REPLY_BYTES, dtype=np.uint8)
            left, used, n_reads, next_due_ns = nbd_protocol.collect(
                waiting.rows, waiting.n, now_ns, self._out, waiting.reads
            )
            self._out_at, self._out_end = 0, used
            waiting.left(left, next_due_ns)
            if n_reads:
                self.device.store.read(self._out, waiting.reads, n_reads)

    def _send_words(self, words: bytes) -> None:
        """The few bytes of the negotiation; a client that does not even take those is dropped."""
        try:
            if words and self.sock.send(words) != len(words):
                self.close()
        except OSError:
            self.close()
