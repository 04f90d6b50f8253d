"""NVMe/TCP connections of the virtual drive: one TCP connection is one queue, an admin queue or an I/O queue.

A connection reads what the socket holds; runs of simple I/O commands go to the drive as one batch and wait until they
are due, as with NBD. Everything else is taken one by one: fabrics and admin commands, writes whose data comes after a
ready-to-transfer, Dataset Management, errors. A host that breaks the framing gets a C2HTermReq and its connection
ends.

Data that a host sends after it was asked for: ready-to-transfer PDUs out, H2CData PDUs in, for one connection."""

import socket
import struct
import time
from collections import deque

import numpy as np

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import io, pdu, status
from ssdrig.virtual.device.controller import Controller
from ssdrig.virtual.device.device import MAX_BATCH
from ssdrig.virtual.device.pdu import ProtocolError
from ssdrig.virtual.device.status import Refused
from ssdrig.virtual.device.subsystem import CONNECT_DATA_BYTES, Subsystem
from ssdrig.virtual.device.waiting import Waiting, receive, send

MAX_TRANSFERS = 8  # at a time; further commands wait for their turn


class Transfers:
    """The commands of one connection whose data is still to come."""

    def __init__(self):
        self._open: dict[int, tuple[bytes, np.ndarray, int]] = {}  # tag -> (command, data, bytes that have come)
        self._turns: deque[tuple[bytes, int]] = deque()  # (command, bytes)
        self._next_tag = 0

    @property
    def waiting(self) -> int:
        """Commands that wait for their turn."""
        return len(self._turns)

    def want(self, sqe: bytes, need: int) -> None:
        """A command that needs this many bytes."""
        self._turns.append((sqe, need))

    def grants(self) -> list[bytes]:
        """Ready-to-transfer PDUs for the commands whose turn it is."""
        out = []
        while self._turns and len(self._open) < MAX_TRANSFERS:
            sqe, need = self._turns.popleft()
            while self._next_tag in self._open:
                self._next_tag = (self._next_tag + 1) & 0xFFFF
            tag, self._next_tag = self._next_tag, (self._next_tag + 1) & 0xFFFF
            self._open[tag] = (sqe, np.empty(need, dtype=np.uint8), 0)
            out.append(pdu.r2t(struct.unpack_from("<H", sqe, 2)[0], tag, need))
        return out

    def take(self, head: bytes, content: np.ndarray) -> tuple[bytes, np.ndarray] | None:
        """An H2CData PDU. Returns the command with its data when that has come whole. Raises ProtocolError."""
        cid, tag, offset, length = struct.unpack_from("<HHII", head, 8)
        if tag not in self._open:
            raise ProtocolError(pdu.FES_HEADER_FIELD, 10)
        sqe, data, came = self._open[tag]
        if cid != struct.unpack_from("<H", sqe, 2)[0]:
            raise ProtocolError(pdu.FES_HEADER_FIELD, 8)
        if length != len(content):
            raise ProtocolError(pdu.FES_HEADER_FIELD, 16)
        if offset != came or offset + length > len(data):
            raise ProtocolError(pdu.FES_RANGE, 12)
        came += length
        if bool(head[1] & pdu.LAST) != (came == len(data)):
            raise ProtocolError(pdu.FES_HEADER_FIELD, 1)
        data[offset:came] = content
        self._open[tag] = (sqe, data, came)
        if came < len(data):
            return None
        del self._open[tag]
        return sqe, data


BUFFER_BYTES = 2 << 20
MAX_WAITING = 1024  # a host keeps at most 128 in a queue
MAX_UNSENT_BYTES = 8 << 20  # answers that a host does not read; nothing more of it is read then
LINGER_NS = 1_000_000_000  # for the host to take a C2HTermReq
FABRICS, PROPERTY_SET, CONNECT, PROPERTY_GET = 0x7F, 0x00, 0x01, 0x04
MAX_SQSIZE = 127  # 0's based, as CAP.MQES


class Connection:
    """One queue. `closed` is true once the socket is gone; `qid` is -1 until Connect."""

    def __init__(self, sock: socket.socket, subsystem: Subsystem):
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)  # the kernel may grant less
        self.sock, self.subsystem, self.device = sock, subsystem, subsystem.device
        self.closed = False
        self.controller: Controller | None = None
        self.qid, self.sqsize, self._sqhd, self._no_sqhd = -1, 1, 0, False
        self._data_at = 0  # where data starts in a C2HData PDU; 0 until the connection is initialised
        self._buf = np.empty(BUFFER_BYTES, dtype=np.uint8)
        self._start = self._end = 0
        self._batch = np.zeros((MAX_BATCH, nbd_protocol.COLUMNS), dtype=np.int64)
        self.waiting = Waiting(self.device)
        self._transfers = Transfers()
        self._answers: list[tuple[int, bytes]] = []  # (due, bytes) of commands taken one by one
        self._out = np.empty(BUFFER_BYTES, dtype=np.uint8)
        self._sending = memoryview(b"")
        self._ended_ns = 0  # when a TermReq was sent: all that comes is thrown away

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def wants_read(self) -> bool:
        return bool(self._ended_ns) or (
            self.waiting.n < MAX_WAITING and self._transfers.waiting < MAX_WAITING and self._unsent() < MAX_UNSENT_BYTES
        )

    def _unsent(self) -> int:
        return len(self._sending) + sum(len(answer) for _, answer in self._answers)

    @property
    def wants_write(self) -> bool:
        """True while answers are stuck because the host does not read."""
        return len(self._sending) > 0

    @property
    def next_due_ns(self) -> int:
        """When something should leave or end; -1: nothing waits for the clock."""
        if self._ended_ns:
            return self._ended_ns + LINGER_NS
        if self.wants_write:
            return -1
        due = [t for t, _ in self._answers]
        if self.waiting.n:
            due.append(self.waiting.next_due_ns)
        return min(due, default=-1)

    def close(self, at_once: bool = False) -> None:
        """End the connection, with it an I/O queue, or with an admin queue its controller. at_once: as when power is
        cut, without delivering its content."""
        if self.closed:
            return
        self.closed = True
        if at_once:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        if self.controller:
            if self.qid == 0:
                self.controller.end(at_once)
            else:
                self.controller.queues.pop(self.qid, None)

    # --- in

    def receive(self) -> None:
        """Read once and act on it."""
        got = receive(self.sock, memoryview(self._buf)[self._end :])
        if got == 0:
            self.close()
        if not got:
            return
        if self._ended_ns:
            return
        self._end += got
        try:
            self._act(time.monotonic_ns())
        except ProtocolError as e:
            self._terminate(e)

    def _act(self, now_ns: int) -> None:
        while not self.closed and not self._ended_ns:
            if self.qid > 0:
                self._take_run(now_ns)
            held = self._end - self._start
            if held < pdu.COMMON_BYTES:
                break
            kind, hlen, plen = pdu.header(self._buf, self._start)
            if (kind == pdu.IC_REQ) == bool(self._data_at) and kind != pdu.H2C_TERM:
                raise ProtocolError(pdu.FES_SEQUENCE)
            if held < plen:
                break
            at = self._start
            self._take(kind, self._buf[at : at + hlen].tobytes(), self._buf[at + hlen : at + plen], now_ns)
            self._start += plen
        self._make_room()

    def _take_run(self, now_ns: int) -> None:
        """All simple commands at the start of the received bytes, unless the drive refuses I/O now."""
        assert self.controller
        while self.controller.ready and not self.subsystem.busy(now_ns):
            n, used = pdu.parse(
                self._buf,
                self._start,
                self._end,
                self.device.capacity_bytes,
                self.subsystem.lba_shift,
                int(self.subsystem.write_through),
                self._batch,
            )
            self._start += used
            if n:
                self._sqhd = (self._sqhd + n) % self.sqsize
                self._execute(self._buf, self._batch, n, now_ns)
            if n < MAX_BATCH:
                return

    def _execute(self, buf: np.ndarray, batch: np.ndarray, n: int, now_ns: int, placement_id: int = 0) -> None:
        if placed := self.device.placement:
            written = batch[:n, nbd_protocol.LENGTH][batch[:n, nbd_protocol.OP] == nbd_protocol.WRITE]
            if len(written):
                placed.wrote(placement_id, int(written.sum()), self._t_ms(now_ns))
        self.waiting.execute(buf, batch, n, now_ns)
        if batch[:n, nbd_protocol.ERROR].any():
            for op, _, cid, offset, _, _, error, _ in batch[:n].tolist():
                if error:
                    medium = status.UNRECOVERED_READ_ERROR if op == nbd_protocol.READ else status.WRITE_FAULT
                    self.subsystem.log_error(self.qid, cid, medium, None, offset >> self.subsystem.lba_shift, 1)

    def _make_room(self) -> None:
        """Room for the longest PDU, which is far shorter than the buffer."""
        held = self._end - self._start
        if held == 0:
            self._start = self._end = 0
        elif len(self._buf) - self._end < len(self._buf) // 2:
            self._buf[:held] = self._buf[self._start : self._end].copy()
            self._start, self._end = 0, held

    def _take(self, kind: int, head: bytes, content: np.ndarray, now_ns: int) -> None:
        if kind == pdu.IC_REQ:
            self._initialise(head)
        elif kind == pdu.COMMAND:
            self._sqhd = (self._sqhd + 1) % self.sqsize
            self._command(head[pdu.COMMON_BYTES :], content, now_ns)
        elif kind == pdu.H2C_DATA:
            self._data(head, content, now_ns)
        else:
            self.close()  # the host reports that we broke the framing

    def _initialise(self, head: bytes) -> None:
        version, alignment = struct.unpack_from("<HB", head, 8)
        if version != 0:
            raise ProtocolError(pdu.FES_UNSUPPORTED, 8)
        if alignment > 31:
            raise ProtocolError(pdu.FES_HEADER_FIELD, 10)
        step = 4 * (alignment + 1)
        self._data_at = -(-pdu.DATA_HEADER_BYTES // step) * step
        self._answers.append((0, pdu.ic_response()))

    def _terminate(self, error: ProtocolError) -> None:
        culprit = self._buf[self._start : self._end][:128].tobytes()
        if len(culprit) >= pdu.COMMON_BYTES:
            culprit = culprit[: max(pdu.COMMON_BYTES, culprit[2])]
        try:
            self.sock.send(pdu.term_request(error.fes, error.fei, culprit))
            self.sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
            return
        self._ended_ns = time.monotonic_ns()
        self._start = self._end = 0
        self._sending, self._answers = memoryview(b""), []
        self.waiting.left(0, -1)
        if self.controller and self.qid == 0:
            for queue in list(self.controller.queues.values()):
                queue.close()

    # --- commands, one by one

    def _command(self, sqe: bytes, held: np.ndarray, now_ns: int) -> None:
        try:
            need = self._need(sqe, now_ns)
            if need == 0:
                self._run(sqe, held[:0], now_ns)
            elif sqe[39] == pdu.SGL_IN_CAPSULE:
                if struct.unpack_from("<Q", sqe, 24)[0] != 0 or need > len(held):
                    raise Refused(
                        status.INVALID_SGL_OFFSET if sqe[24:32] != bytes(8) else status.DATA_SGL_LENGTH_INVALID, 24
                    )
                self._run(sqe, held[:need].copy(), now_ns)
            elif sqe[39] == pdu.SGL_TRANSPORT:
                self._transfers.want(sqe, need)
                self._grant()
            else:
                raise Refused(status.INVALID_SGL_TYPE, 39)
        except Refused as refused:
            self._refuse(sqe, refused)

    def _need(self, sqe: bytes, now_ns: int) -> int:
        """Bytes of data that the command wants from the host. Raises Refused if it is wrong."""
        if sqe[0] == FABRICS:
            return CONNECT_DATA_BYTES if sqe[4] == CONNECT else 0
        if self.qid < 0:
            raise Refused(status.SEQUENCE_ERROR)
        assert self.controller
        if self.qid == 0:
            return self.controller.admin_bytes(sqe)
        if not self.controller.ready:
            raise Refused(status.SEQUENCE_ERROR)
        if busy := self.subsystem.busy(now_ns):
            raise Refused(busy, retry=True)
        placed = self.device.placement is not None
        return io.wanted_bytes(sqe, self.device.capacity_bytes, self.subsystem.lba_shift, placed)

    def _run(self, sqe: bytes, content: np.ndarray, now_ns: int) -> None:
        cid = struct.unpack_from("<H", sqe, 2)[0]
        if sqe[0] == FABRICS:
            self.complete(cid, 0, self._fabrics(sqe, content.tobytes(), now_ns))
        elif self.qid == 0 and self.controller:
            answer = self.controller.command(sqe, content.tobytes(), now_ns)
            if answer:
                result, page, due_ns = answer
                self.complete(cid, 0, result, page, due_ns)
        elif (placed := self.device.placement) and sqe[0] in (pdu.IO_RECEIVE, pdu.IO_SEND):
            page = io.managed(sqe, content.tobytes(), placed, self.subsystem.lba_shift, self._t_ms(now_ns))
            self.complete(cid, 0, 0, page)
        else:
            through = self.subsystem.write_through
            asked = io.rows(
                sqe,
                content.tobytes() if sqe[0] == pdu.DSM else b"",
                self.device.capacity_bytes,
                self.subsystem.lba_shift,
                through,
            )
            self._execute_one(content, asked, now_ns, io.placement_id(sqe))

    def _t_ms(self, now_ns: int) -> int:
        """The drive's own time, by which events are stamped: since its server began."""
        return (now_ns - self.device.t0_ns) // 1_000_000

    def _execute_one(self, content: np.ndarray, asked: np.ndarray, now_ns: int, placement_id: int) -> None:
        """The rows of one command, which ends when the last of them does."""
        if len(asked) == 1:
            self._execute(content, asked, 1, now_ns, placement_id)
            return
        self.device.execute(content, asked, len(asked), now_ns)
        last = asked[asked[:, nbd_protocol.DUE].argmax()][None]
        self.waiting.keep(last, 1, int(last[0, nbd_protocol.DUE]))

    def complete(self, cid: int, code: int, result: int = 0, page: bytes | None = None, due_ns: int = 0) -> None:
        """The completion of a command that was taken on its own, from due_ns on, after its data if there is any."""
        data = pdu.data(cid, page, self._data_at) if page else b""
        self._answers.append((due_ns, data + pdu.response(cid, self._head(), code, result)))

    def _head(self) -> int:
        return 0xFFFF if self._no_sqhd else self._sqhd

    def _refuse(self, sqe: bytes, refused: Refused) -> None:
        cid, nsid, lba = *struct.unpack_from("<HI", sqe, 2), struct.unpack_from("<Q", sqe, 40)[0]
        io_lba = lba if self.qid > 0 and sqe[0] in (pdu.READ, pdu.WRITE, pdu.WRITE_ZEROES) else 0
        self.subsystem.log_error(max(0, self.qid), cid, refused.code, refused.at, io_lba, nsid)
        self.complete(cid, refused.code, refused.dw0)

    # --- data of the host

    def _grant(self) -> None:
        """Ask for the data of the commands whose turn it is."""
        self._answers += [(0, ready) for ready in self._transfers.grants()]

    def _data(self, head: bytes, content: np.ndarray, now_ns: int) -> None:
        whole = self._transfers.take(head, content)
        if not whole:
            return
        sqe, data = whole
        try:
            self._need(sqe, now_ns)  # a format may have begun meanwhile
            self._run(sqe, data, now_ns)
        except Refused as refused:
            self._refuse(sqe, refused)
        self._grant()

    # --- fabrics commands

    def _fabrics(self, sqe: bytes, content: bytes, now_ns: int) -> int:
        """Execute a fabrics command; its result. Raises Refused."""
        kind = sqe[4]
        if kind == CONNECT:
            return self._connect(sqe, content, now_ns)
        if self.qid < 0:
            raise Refused(status.SEQUENCE_ERROR)
        if kind == PROPERTY_GET and self.qid == 0 and self.controller:
            return self.controller.property_get(sqe, now_ns)
        if kind == PROPERTY_SET and self.qid == 0 and self.controller:
            self.controller.property_set(sqe, now_ns)
            return 0
        raise Refused(status.INVALID_OPCODE if kind not in (PROPERTY_GET, PROPERTY_SET) else status.INVALID_FIELD, 4)

    def _connect(self, sqe: bytes, content: bytes, now_ns: int) -> int:
        if self.qid >= 0:
            raise Refused(status.SEQUENCE_ERROR)
        _, qid, sqsize, attributes, _, kato_ms = struct.unpack_from("<HHHBBI", sqe, 40)
        if not 0 < sqsize <= MAX_SQSIZE:
            raise Refused(status.CONNECT_INVALID_PARAMETERS, 44, dw0=44)
        if qid == 0:

            def make(cntlid: int, hostid: bytes, hostnqn: bytes) -> Controller:
                return Controller(self.subsystem, cntlid, hostid, hostnqn, kato_ms, self, now_ns)

            self.controller = self.subsystem.connect_admin(sqe, content, make)
        else:
            self.controller = self.subsystem.connect_io(sqe, content, qid)
            self.controller.queues[qid] = self
        self.qid, self.sqsize, self._no_sqhd = qid, sqsize + 1, bool(attributes & 4)
        self._sqhd = 1 % self.sqsize
        return self.controller.cntlid

    # --- out

    def reply(self, now_ns: int) -> None:
        """Send the completions due at now_ns, until the host's buffer is full."""
        if self._ended_ns:
            if now_ns - self._ended_ns >= LINGER_NS:
                self.close()
            return
        while not self.closed:
            if self._sending:
                sent = send(self.sock, self._sending)
                if sent is None:
                    self.close()
                    return
                self._sending = self._sending[sent:]
                if self._sending:
                    return
            if self._answers and any(due <= now_ns for due, _ in self._answers):
                self._sending = memoryview(b"".join(answer for due, answer in self._answers if due <= now_ns))
                self._answers = [later for later in self._answers if later[0] > now_ns]
                continue
            if self.waiting.n == 0 or self.waiting.next_due_ns > now_ns:
                return
            self._collect(now_ns)

    def _collect(self, now_ns: int) -> None:
        waiting = self.waiting
        waiting.replying(now_ns)
        room = waiting.longest_read + self._data_at + pdu.RESPONSE_BYTES
        if len(self._out) < room:
            self._out = np.empty(room, dtype=np.uint8)
        left, used, n_reads, next_due_ns = pdu.collect(
            waiting.rows, waiting.n, now_ns, self._head(), self._data_at, self._out, waiting.reads
        )
        waiting.left(left, next_due_ns)
        if n_reads:
            self.device.store.read(self._out, waiting.reads, n_reads)
        self._sending = memoryview(self._out)[:used]
