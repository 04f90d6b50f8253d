"""An NBD client for the writer: requests built and replies parsed in compiled code, one send and one receive for many.

Source: NetworkBlockDevice/nbd doc/proto.md; simple replies only. The cookie of a request is used once, so a reply that
comes twice, or late, or to nothing, is no answer to another command: it ends the connection, as a lost one does."""

import select
import socket
import time

import numba
import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.nbd import REPLY, REPLY_MAGIC, REQUEST_MAGIC, NbdClient, address
from ssdrig.blockio.slots import Slots
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS

GREETING_S = 10.0  # for a server to say that it is there: who waits for a drive tries again
RECEIVE_BYTES, SEND_BYTES = 1 << 18, 1 << 20
_SEND_FLUSH, _SEND_FUA, _SEND_TRIM, _SEND_ZEROES = 1 << 2, 1 << 3, 1 << 5, 1 << 6  # of the flags that the server offers
_OPS = np.zeros(5, np.int64)
_OPS[[WRITE, FLUSH, TRIM, BLANK]] = nbd_protocol.WRITE, nbd_protocol.FLUSH, nbd_protocol.TRIM, nbd_protocol.READ
_HEADER, _REPLY = nbd_protocol.HEADER_BYTES, REPLY.size
_SLOT_BITS = 16
MOST_ERROR = (1 << 15) - 1  # a row of the history has 16 bits for it: no other number may become a 0 there
# words of the parser's state: the slot whose data comes, and how much of it is here
READING, FILLED = range(2)
NO_SLOT = -1


class Nbd(NbdClient):
    """A transport (slots.Transport) to nbd+unix:///EXPORT?socket=PATH or nbd://HOST[:PORT]/EXPORT. Raises DriveError
    where no drive is there, or none that takes FLUSH and FUA; UsageError for another address."""

    def __init__(self, uri: str):
        path, export = address(uri)
        super().__init__(path, GREETING_S, export)
        missing = [name for name, bit in (("FLUSH", _SEND_FLUSH), ("FUA", _SEND_FUA)) if not self.flags & bit]
        if missing:
            self.disconnect()
            raise DriveError(
                f"an NBD server at {uri} that takes FLUSH and FUA",
                f"no {', '.join(missing)}",
                "offer them (nbdkit: a plugin or filter that has them): without them nothing can be promised",
            )
        self.can_trim, self.can_zero = bool(self.flags & _SEND_TRIM), bool(self.flags & _SEND_ZEROES)
        self.slots, self.under_way, self.gone = Slots(), 0, ""
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)  # the kernel gives what it allows
        self._out = np.zeros(self.slots.n * (_HEADER + self.slots.bytes_each), np.uint8)
        self._out_view, self._out_at, self._out_end = memoryview(self._out), 0, 0
        self._in = np.zeros(RECEIVE_BYTES, np.uint8)
        self._in_view, self._in_end = memoryview(self._in), 0
        self._cookies = np.zeros(self.slots.n, np.uint64)  # of the command under way in each slot; 0: none is
        self._count = 0
        self._state = np.array([NO_SLOT, 0], np.int64)

    now_ns = staticmethod(time.monotonic_ns)

    def submit(self, order: np.ndarray, n: int) -> None:
        if self.gone:
            return
        if self._out_at:
            left = self._out_end - self._out_at
            self._out[:left] = self._out[self._out_at : self._out_end].copy()
            self._out_at, self._out_end = 0, left
        slots = self.slots
        self._out_end = pack(
            self._out,
            self._out_end,
            order,
            n,
            self._count,
            _OPS,
            slots.kind,
            slots.flags,
            slots.offset,
            slots.length,
            slots.data,
            slots.bytes_each,
            self._cookies,
        )
        self._count += n
        self.under_way += n
        self._send()

    def _send(self) -> None:
        try:
            while self._out_at < self._out_end:
                self._out_at += self.sock.send(self._out_view[self._out_at : self._out_end])
        except BlockingIOError:
            return
        except OSError as error:
            self._end(str(error))
            return
        self._out_at = self._out_end = 0

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        """As slots.Transport; `least` is not waited for."""
        if self.gone:
            return 0
        writers = [self.sock] if self._out_end else []
        readable, writable, _ = select.select([self.sock], writers, [], timeout_ns / 1e9)
        if writable:
            self._send()
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
        end, slots = self._in_end + got, self.slots
        used, n, whole = parse(
            self._in,
            end,
            self._cookies,
            slots.kind,
            slots.length,
            slots.data,
            slots.bytes_each,
            slots.status,
            ended,
            self._state,
        )
        self._in_end = end - used
        self._in[: self._in_end] = self._in[used:end].copy()
        self.under_way -= n
        if not whole:
            self._end("a reply that is none")
        return n

    def _end(self, why: str) -> None:
        """The connection is over: nothing is under way any more."""
        self.gone, self.under_way = why, 0
        self.sock.close()

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def close(self) -> None:
        """Say goodbye and close. Safe to call twice."""
        self.disconnect()


@numba.njit(cache=True)
def _put(out, at, n, value):
    for i in range(n):
        out[at + i] = np.uint8((value >> np.uint64(8 * (n - 1 - i))) & np.uint64(0xFF))


@numba.njit(cache=True)
def _big_endian(data, at, n):
    value = np.uint64(0)
    for i in range(n):
        value = (value << np.uint64(8)) | np.uint64(data[at + i])
    return value


@numba.njit(cache=True)
def pack(out, end, order, n, count, ops, kind, flags, offset, length, data, bytes_each, cookies):
    """The requests of n slots behind `end` in out (uint8), with the data of writes. `count`: of requests before.
    Returns the new end."""
    for k in range(n):
        slot = order[k]
        cookie = np.uint64(count + k + 1) << np.uint64(_SLOT_BITS) | np.uint64(slot)
        cookies[slot] = cookie
        fua = np.uint64(nbd_protocol.FUA) if flags[slot] & FUA else np.uint64(0)
        _put(out, end, 4, np.uint64(REQUEST_MAGIC))
        _put(out, end + 4, 2, fua)
        zeros = kind[slot] == WRITE and flags[slot] & ZEROS
        _put(out, end + 6, 2, np.uint64(nbd_protocol.WRITE_ZEROES if zeros else ops[kind[slot]]))
        _put(out, end + 8, 8, cookie)
        _put(out, end + 16, 8, np.uint64(offset[slot]))
        _put(out, end + 24, 4, np.uint64(length[slot]))
        end += _HEADER
        if kind[slot] == WRITE and not zeros:
            target = out[end : end + length[slot]]
            source = data[slot * bytes_each : slot * bytes_each + length[slot]]
            for i in range(len(source)):
                target[i] = source[i]
            end += length[slot]
    return end


@numba.njit(cache=True)
def parse(data_in, end, cookies, kind, length, data, bytes_each, status, ended, state):
    """Replies out of data_in[:end] (uint8), as far as they are whole; the data of reads goes to their slots as it
    comes. `ended` gets the slots that have ended, their `status` set. Returns (bytes used, slots ended, False where
    these are no replies to what is under way)."""
    at = n = 0
    while True:
        slot = state[READING]
        if slot != NO_SLOT:
            filled = state[FILLED]
            part = min(length[slot] - filled, end - at)
            target = data[slot * bytes_each + filled : slot * bytes_each + filled + part]
            source = data_in[at : at + part]
            for i in range(part):
                target[i] = source[i]
            at += part
            state[FILLED] = filled + part
            if state[FILLED] < length[slot]:
                return at, n, True
            state[READING] = NO_SLOT
            cookies[slot] = 0
            ended[n] = slot
            n += 1
        if end - at < _REPLY:
            return at, n, True
        cookie = _big_endian(data_in, at + 8, 8)
        slot = np.int64(cookie & np.uint64((1 << _SLOT_BITS) - 1))
        known = slot < len(cookies) and cookie != 0 and cookies[slot] == cookie
        if not known or _big_endian(data_in, at, 4) != np.uint64(REPLY_MAGIC):
            return at, n, False
        error = np.int64(_big_endian(data_in, at + 4, 4))
        at += _REPLY
        status[slot] = -min(error, MOST_ERROR)
        if kind[slot] == BLANK and error == 0:
            state[READING], state[FILLED] = slot, 0
        else:
            cookies[slot] = 0
            ended[n] = slot
            n += 1
