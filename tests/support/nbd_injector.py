"""The faulty drive as an NBD server, written from the protocol (github.com/NetworkBlockDevice/nbd, doc/proto.md): fixed
newstyle handshake, NBD_OPT_GO, simple replies, FLUSH, FUA, TRIM and Write Zeroes, several connections.

    python nbd_injector.py SOCKET TRUTH.json SIZE SEED FAULT MODE

SIGUSR1 takes the power: what is under way gets no answer, all links break, the socket goes. SIGUSR2 gives it back. The
truth so far is in TRUTH.json after each; it is there as a whole or not at all. FAULT may be "wheel": another one at
every other power-on, with none between."""

import contextlib
import heapq
import json
import os
import random
import selectors
import signal
import socket
import struct
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
from support.faulty_drive import FAULTS, FLUSH, OF_DRIVE, READ, TRIM, WITHOUT_CUT, WRITE, ZEROES, Drive

NBDMAGIC, IHAVEOPT, REPLY_MAGIC = 0x4E42444D41474943, 0x49484156454F5054, 0x3E889045565A9
REQUEST, SIMPLE_REPLY = 0x25609513, 0x67446698
FIXED, NO_ZEROES = 1, 2
HAS_FLAGS, SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_ZEROES, MULTI_CONN = 1, 1 << 2, 1 << 3, 1 << 5, 1 << 6, 1 << 8
OFFERED = HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_ZEROES | MULTI_CONN
OPT_EXPORT, OPT_ABORT, OPT_INFO, OPT_GO = 1, 2, 6, 7
ACK, INFO, UNSUP = 1, 3, (1 << 31) + 1
CMD_DISC, CMD_FUA = 2, 1
TOOK_NS = {
    READ: (20_000, 200_000),
    WRITE: (50_000, 1_500_000),
    ZEROES: (50_000, 1_500_000),
    FLUSH: (500_000, 3_000_000),
    TRIM: (50_000, 500_000),
}


class Connection:
    """Bytes in and out, and where its handshake is."""

    def __init__(self, sock: socket.socket):
        self.sock, self.inbox, self.outbox = sock, bytearray(), bytearray()
        self.state, self.no_zeroes = "flags", False
        self.outbox += struct.pack(">QQH", NBDMAGIC, IHAVEOPT, FIXED | NO_ZEROES)


class Server:
    def __init__(self, path: str, truth: str, drive: Drive, wheel: bool):
        self.path, self.truth, self.drive, self.wheel = path, Path(truth), drive, wheel
        self.select, self.listener = selectors.DefaultSelector(), None
        self.links: dict[int, Connection] = {}
        self.due: list[tuple[int, int, Connection, int, object]] = []
        self.chance, self.number, self.faults = random.Random("latency"), 0, {}
        self.listen_at_ns: int | None = 0

    def run(self) -> None:
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        wake, far = socket.socketpair()
        for end in (wake, far):
            end.setblocking(False)
        signal.set_wakeup_fd(far.fileno())
        self.select.register(wake, selectors.EVENT_READ, "wake")
        while True:
            now_ns = time.monotonic_ns()
            self.drive.t_ns = now_ns
            if self.listen_at_ns is not None and now_ns >= self.listen_at_ns:
                self._listen()
            self._answer(now_ns)
            waits_ns = [
                due_ns - now_ns for due_ns in [self.due[0][0] if self.due else None, self.listen_at_ns] if due_ns
            ]
            for key, mask in self.select.select(max(0, min(waits_ns, default=10**9)) / 1e9):
                if key.data == "wake":
                    for number in wake.recv(64):
                        if number == signal.SIGTERM:
                            return
                        (self._off if number == signal.SIGUSR1 else self._on)()
                elif key.data == "listen":
                    self._accept()
                elif key.fd in self.links:
                    self._serve(self.links[key.fd], mask)

    # ---- power

    def _off(self) -> None:
        for link in list(self.links.values()):
            self._close(link)
        if self.listener is not None:
            self.select.unregister(self.listener)
            self.listener.close()
            self.listener = None
        self.due, self.listen_at_ns = [], None
        self.faults[self.drive.cuts + 1] = self.drive.fault
        self.drive.cut()
        self._tell()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def _on(self) -> None:
        self._tell()
        if self.wheel:
            menu = [fault for fault in FAULTS if fault not in OF_DRIVE and fault not in WITHOUT_CUT]
            turn, rest = divmod(self.drive.cuts, 2)
            self.drive.fault = "" if rest else menu[turn % len(menu)]
        ready_s = self.drive.power_on()
        self.listen_at_ns = None if ready_s is None else time.monotonic_ns() + round(ready_s * 1e9)

    def _tell(self) -> None:
        drive = self.drive
        state = {
            "cuts": drive.cuts,
            "truth": {cut: sorted(pages) for cut, pages in drive.truth.items()},
            "shown": {cut: sorted(pages) for cut, pages in drive.shown.items()},
            "events": drive.events,
            "faults": self.faults,
        }
        partial = self.truth.with_suffix(".new")
        partial.write_text(json.dumps(state))
        partial.replace(self.truth)

    # ---- links

    def _listen(self) -> None:
        self.listen_at_ns = None
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path + ".new")
        listener.listen(16)
        listener.setblocking(False)
        os.rename(self.path + ".new", self.path)
        self.select.register(listener, selectors.EVENT_READ, "listen")
        self.listener = listener

    def _accept(self) -> None:
        assert self.listener is not None
        sock, _ = self.listener.accept()
        sock.setblocking(False)
        link = self.links[sock.fileno()] = Connection(sock)
        self.select.register(sock, selectors.EVENT_READ, "link")
        self._send(link)

    def _close(self, link: Connection) -> None:
        if self.links.pop(link.sock.fileno(), None):
            self.select.unregister(link.sock)
        link.sock.close()

    def _send(self, link: Connection) -> None:
        with contextlib.suppress(BlockingIOError):
            while link.outbox:
                try:
                    del link.outbox[: link.sock.send(link.outbox)]
                except OSError as error:
                    if isinstance(error, BlockingIOError):
                        raise
                    self._close(link)
                    return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.outbox else 0)
        if link.sock.fileno() in self.links:
            self.select.modify(link.sock, events, "link")

    def _serve(self, link: Connection, mask: int) -> None:
        if mask & selectors.EVENT_READ:
            try:
                data = link.sock.recv(1 << 20)
            except BlockingIOError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                self._close(link)
                return
            link.inbox += data or b""
            while self._step(link):
                pass
        if link.sock.fileno() in self.links:
            self._send(link)

    def _step(self, link: Connection) -> bool:
        """One message of the client, if it is there as a whole."""
        if link.state == "flags" and len(link.inbox) >= 4:
            link.no_zeroes = bool(_taken(link, ">I")[0] & NO_ZEROES)
            link.state = "options"
            return True
        if link.state == "options" and len(link.inbox) >= 16:
            _, option, length = struct.unpack_from(">QII", link.inbox)
            if len(link.inbox) < 16 + length:
                return False
            del link.inbox[: 16 + length]
            self._option(link, option)
            return link.state != "over"
        if link.state == "commands" and len(link.inbox) >= 28:
            _, flags, kind, cookie, offset, length = struct.unpack_from(">IHHQQI", link.inbox)
            size = 28 + (length if kind == WRITE else 0)
            if len(link.inbox) < size:
                return False
            data = bytes(link.inbox[28:size])
            del link.inbox[:size]
            self._command(link, kind, bool(flags & CMD_FUA), cookie, offset, length, data)
            return True
        return False

    def _option(self, link: Connection, option: int) -> None:
        size = self.drive.capacity
        reply = lambda kind, data=b"": struct.pack(">QIII", REPLY_MAGIC, option, kind, len(data)) + data
        if option == OPT_EXPORT:
            link.outbox += struct.pack(">QH", size, OFFERED) + (b"" if link.no_zeroes else bytes(124))
            link.state = "commands"
        elif option in (OPT_GO, OPT_INFO):
            link.outbox += reply(INFO, struct.pack(">HQH", 0, size, OFFERED)) + reply(ACK)
            link.state = "commands" if option == OPT_GO else link.state
        elif option == OPT_ABORT:
            link.outbox += reply(ACK)
            link.state = "over"
        else:
            link.outbox += reply(UNSUP)

    def _command(
        self, link: Connection, kind: int, fua: bool, cookie: int, offset: int, length: int, data: bytes
    ) -> None:
        if kind == CMD_DISC:
            self._close(link)
            return
        if kind not in TOOK_NS or offset + length > self.drive.capacity:
            link.outbox += struct.pack(">IIQ", SIMPLE_REPLY, 22, cookie)
            return
        command = self.drive.begin(kind, offset, length, fua, data if kind == WRITE else None)
        command.queue = link.sock.fileno()
        self.number += 1
        at_ns = time.monotonic_ns() + self.chance.randint(*TOOK_NS[kind])
        heapq.heappush(self.due, (at_ns, self.number, link, cookie, command))

    def _answer(self, now_ns: int) -> None:
        """The answers that are due."""
        while self.due and self.due[0][0] <= now_ns:
            _, _, link, cookie, command = heapq.heappop(self.due)
            if link.sock.fileno() not in self.links:
                continue
            content = self.drive.read(command.offset, command.length) if command.op == READ else b""
            status = self.drive.end(command) or (content if isinstance(content, int) else 0)
            link.outbox += struct.pack(">IIQ", SIMPLE_REPLY, status, cookie)
            link.outbox += content if isinstance(content, bytes) else b""
            self._send(link)


def _taken(link: Connection, form: str) -> tuple:
    fields = struct.unpack_from(form, link.inbox)
    del link.inbox[: struct.calcsize(form)]
    return fields


def main(path: str, truth: str, size: str, seed: str, fault: str, mode: str) -> None:
    wheel = fault == "wheel"
    Server(path, truth, Drive(int(size), int(seed), "" if wheel else fault, mode), wheel).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
