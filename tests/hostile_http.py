"""Servers on loopback whose answer never comes to its end, one way each."""

import contextlib
import socket
import threading
import time

OK = b"HTTP/1.1 204 No Content\r\n"
BODY = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n"


def _storm(send, text, pause_s=0.0, first=b""):
    send(first)
    while True:
        send(text)
        if pause_s:
            time.sleep(pause_s)


def _dripped(send, text, pause_s):
    while True:
        for byte in text:
            send(bytes([byte]))
            time.sleep(pause_s)


KINDS = {
    "silent": lambda send: time.sleep(1000),
    "endless 100 Continue": lambda send: _storm(send, b"HTTP/1.1 100 Continue\r\n\r\n"),
    "slow 100 Continue": lambda send: _storm(send, b"HTTP/1.1 100 Continue\r\n\r\n", 0.3),
    "endless 103": lambda send: _storm(send, b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
    "100 with endless headers": lambda send: _storm(send, b"X: y\r\n", 0.0, b"HTTP/1.1 100 Continue\r\n"),
    "a header byte by byte": lambda send: _dripped(send, OK + b"X-Long: " + b"y" * 10**6, 0.2),
    "a header line now and then": lambda send: _storm(send, b"X: y\r\n", 0.2, OK),
    "very many headers": lambda send: _storm(send, b"X: y\r\n", 0.0, OK),
    "one endless header": lambda send: _storm(send, b"y" * 4096, 0.0, OK + b"X: "),
    "a status line byte by byte": lambda send: _dripped(send, b"HTTP/1.1 2" + b"0" * 10**6, 0.2),
    "a body byte by byte": lambda send: _storm(send, b"y", 0.2, b"HTTP/1.1 503 Busy\r\nContent-Length: 999999\r\n\r\n"),
    "an endless chunked body": lambda send: _storm(send, b"1000\r\n" + b"y" * 4096 + b"\r\n", 0.0, BODY),
    "endless trailers": lambda send: _storm(send, b"X: y\r\n", 0.2, BODY + b"1\r\ny\r\n0\r\n"),
    "a storm of trailers": lambda send: _storm(send, b"X: y\r\n", 0.0, BODY + b"0\r\n"),
    "a chunk's length byte by byte": lambda send: _storm(send, b"0", 0.2, BODY),
    "a TLS record byte by byte": lambda send: _dripped(send, b"\x16\x03\x03\x40\x00" + b"\x02" * 10**6, 0.2),
}


@contextlib.contextmanager
def served(kind):
    """The port of a server of this kind."""
    listener = socket.create_server(("127.0.0.1", 0))
    held = []

    def one(sock):
        with contextlib.suppress(OSError):
            if kind in ("silent", "a TLS record byte by byte"):
                KINDS[kind](sock.sendall)
            sock.recv(65536)
            KINDS[kind](sock.sendall)

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
