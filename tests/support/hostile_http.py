"""Servers whose answer never comes to its end, one way each: on loopback, or in model time."""

import contextlib
import io
import socket
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

OK = b"HTTP/1.1 204 No Content\r\n"
BODY = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n"


class Kind(NamedTuple):
    """`first` is sent, then `text` for ever, each after a pause; dripped: each byte of it after a pause."""

    first: bytes
    text: bytes
    pause_s: float = 0.0
    dripped: bool = False

    def pieces(self) -> Iterator[bytes]:
        yield from [self.first] if self.first else []
        while self.text:
            yield from (bytes([byte]) for byte in self.text) if self.dripped else [self.text]


KINDS = {
    "silent": Kind(b"", b""),
    "endless 100 Continue": Kind(b"", CONTINUE + b"\r\n"),
    "slow 100 Continue": Kind(b"", CONTINUE + b"\r\n", 0.3),
    "endless 103": Kind(b"", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
    "100 with endless headers": Kind(CONTINUE, b"X: y\r\n"),
    "a header byte by byte": Kind(OK + b"X-Long: ", b"y", 0.2),
    "a header line now and then": Kind(OK, b"X: y\r\n", 0.2),
    "very many headers": Kind(OK, b"X: y\r\n"),
    "one endless header": Kind(OK + b"X: ", b"y" * 4096),
    "a status line byte by byte": Kind(b"", b"HTTP/1.1 2" + b"0" * 10**6, 0.2, dripped=True),
    "a body byte by byte": Kind(b"HTTP/1.1 503 Busy\r\nContent-Length: 999999\r\n\r\n", b"y", 0.2),
    "an endless chunked body": Kind(BODY, b"1000\r\n" + b"y" * 4096 + b"\r\n"),
    "endless trailers": Kind(BODY + b"1\r\ny\r\n0\r\n", b"X: y\r\n", 0.2),
    "a storm of trailers": Kind(BODY + b"0\r\n", b"X: y\r\n"),
    "a chunk's length byte by byte": Kind(BODY, b"0", 0.2),
    "a TLS record byte by byte": Kind(b"", b"\x16\x03\x03\x40\x00" + b"\x02" * 10**6, 0.2, dripped=True),
}


@contextlib.contextmanager
def served(kind):
    """The port of a server of this kind."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def one(sock):
        with contextlib.suppress(OSError):
            if "TLS" not in kind:
                sock.recv(65536)
            for piece in KINDS[kind].pieces():
                sock.sendall(piece)
                time.sleep(KINDS[kind].pause_s)
            time.sleep(1000)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                held.append(listener.accept()[0])
                threading.Thread(target=one, args=(held[-1],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        for sock in held:
            sock.close()


class Clock:
    """In place of the module `time`: it goes on where somebody waits."""

    LEAST_S = 0.001  # of a piece that comes without a pause

    def __init__(self):
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, s: float) -> None:
        self.now_s += s

    time = staticmethod(time.time)


class Peer:
    """A socket that is connected to a server of this kind, in the time of `clock`; a base beside bounded.Bounded."""

    def __init__(self, kind: Kind, clock: Clock):
        self._pieces, self._pause_s, self._clock = kind.pieces(), max(kind.pause_s, clock.LEAST_S), clock
        self._timeout_s: float | None = None
        self._left = b""

    def settimeout(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s

    def send(self, data, flags=0) -> int:
        return len(data)

    def recv_into(self, buffer, *_) -> int:
        if not self._left:
            self._left = next(self._pieces, b"")
            wait_s = self._pause_s if self._left else float("inf")
            assert self._timeout_s is not None, "waits for ever"
            self._clock.sleep(min(wait_s, self._timeout_s))
            if wait_s > self._timeout_s:
                raise TimeoutError("timed out")
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n

    def makefile(self, *_, **__) -> io.BufferedReader:
        peer = self

        class Raw(io.RawIOBase):
            def readable(self) -> bool:
                return True

            def readinto(self, buffer) -> int:
                return peer.recv_into(buffer)

        return io.BufferedReader(Raw())

    def close(self) -> None:
        pass
