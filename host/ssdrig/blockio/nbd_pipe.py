"""An NBD client with many requests under way: they are sent in batches and answered in any order, requests built and
replies parsed in compiled code (nbd_protocol), one system call for many.

Simple replies only. A reply that comes twice, or late, or to nothing is not an answer to another request: it ends the
connection, as a lost one does."""

import select
import socket
from typing import NamedTuple

import numpy as np

from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.nbd import NbdClient

RECEIVE_BYTES, SEND_BYTES = 1 << 18, 1 << 20
MOST_PARTS = 1024  # that one sendmsg() takes


class Requests(NamedTuple):
    """A request for each slot, in arrays that the user of a Pipe fills."""

    kind: np.ndarray  # uint8, and ...
    flags: np.ndarray  # ... uint8: words[flags, kind] is the NBD request (nbd_protocol.pack)
    offset: np.ndarray  # int64, bytes
    length: np.ndarray  # int64, bytes
    status: np.ndarray  # int64, of its answer: 0 or an errno with its sign
    at: np.ndarray  # int64: where its data begins
    data: memoryview  # what writes send
    into: np.ndarray  # uint8: what gets the data of reads; empty: it is dropped


class Pipe(NbdClient):
    """Connection with up to one request under way in each slot, whose number is in its cookie. Raises DriveError as
    NbdClient while it is made; afterwards `gone` is "" or why it has ended, and nothing is raised.

    `words`: of the requests, as for nbd_protocol.pack(). An answer repeats the cookie of its request; of the export
    nbd_protocol.STAMPED only the slot in it."""

    def __init__(
        self, path: str | tuple[str, int], timeout_s: float, export: bytes, requests: Requests, words: np.ndarray
    ):
        super().__init__(path, timeout_s, export)
        self.requests, self.under_way, self.gone = requests, 0, ""
        self._words, self._same_bits = words, nbd_protocol.SLOT_BITS if export == nbd_protocol.STAMPED else 64
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)  # the kernel may grant less
        self._unsent: list[memoryview] = []
        self._in = np.zeros(RECEIVE_BYTES, np.uint8)
        self._in_view, self._in_end = memoryview(self._in), 0
        n = len(requests.kind)
        self._cookies = np.zeros(n, np.uint64)  # of the request under way in each slot; 0: none is
        self._expected = np.zeros(n, np.int64)  # bytes that follow on its answer
        self._state = nbd_protocol.no_reply()
        self.cookies = np.zeros(n, np.uint64)
        self._pack(np.zeros(0, np.int64), 0, 0, 0)  # both are compiled or loaded before time matters
        self._parse(0, np.zeros(n, np.int64))

    def post(self, order: np.ndarray, n: int, number: int, step: int) -> None:
        """Send the requests in the first n slots of `order` (int64), or keep what the socket does not take. Their
        cookies have `number` above the slot, raised by `step` for each."""
        if self.gone:
            return
        self.under_way += n
        heads, lengths, writes = self._pack(order, n, number, step)
        begin = 0
        if writes:
            places = self.requests.at[order[:n]].tolist()
            for i, length in enumerate(lengths.tolist()):
                if length:
                    end = (i + 1) * nbd_protocol.HEADER_BYTES
                    self._unsent += heads[begin:end], self.requests.data[places[i] : places[i] + length]
                    begin = end
        if begin < len(heads):
            self._unsent.append(heads[begin:])
        self.send()

    def _pack(self, order: np.ndarray, n: int, number: int, step: int) -> tuple[memoryview, np.ndarray, int]:
        """(the requests without data, the length of the data of each, how many have some)"""
        heads, lengths = np.empty(n * nbd_protocol.HEADER_BYTES, np.uint8), np.empty(n, np.int64)
        fields = self.requests[:4]
        writes = nbd_protocol.pack(
            heads, lengths, order, n, number, step, self._words, *fields, self._cookies, self._expected
        )
        return memoryview(heads), lengths, writes

    def send(self) -> bool:
        """Send what the socket takes; True if nothing is left."""
        try:
            while self._unsent:
                sent = self.sock.sendmsg(self._unsent[:MOST_PARTS])
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
            self._end(str(error))
            return False
        return True

    @property
    def waits(self) -> bool:
        """Whether something is left to send."""
        return bool(self._unsent)

    def take(self, ended: np.ndarray, timeout_ns: int) -> int:
        """Wait for answers, at most this long. `ended` (int64) gets the slots that have ended, their status is set, and
        `cookies` has those of their answers. Returns how many."""
        if self.gone:
            return 0
        writers = [self.sock] if self._unsent else []
        readable, writable, _ = select.select([self.sock], writers, [], timeout_ns / 1e9)
        if writable:
            self.send()
        if not readable or self.gone:
            return 0
        try:
            got = self.sock.recv_into(self._in_view[self._in_end :])
        except BlockingIOError:
            return 0
        except OSError as error:
            self._end(str(error))
            return 0
        if not got:
            self._end("the end of the connection")
            return 0
        end = self._in_end + got
        used, n, whole = self._parse(end, ended)
        self._in_end = end - used
        if self._in_end:
            self._in[: self._in_end] = self._in[used:end].copy()
        self.under_way -= n
        if not whole:
            self._end("an invalid reply")
        return n

    def _parse(self, end: int, ended: np.ndarray) -> tuple[int, int, bool]:
        requests = self.requests
        return nbd_protocol.parse_replies(
            self._in,
            end,
            self._cookies,
            self._same_bits,
            self._expected,
            requests.at,
            requests.into,
            requests.status,
            ended,
            self.cookies,
            self._state,
        )

    def _end(self, why: str) -> None:
        """The connection is over: nothing is under way any more."""
        self.gone, self.under_way = why, 0
        self.sock.close()
