"""The serial line to the board: the port, opened, closed and noted in the run; commands out, frames in.

Bytes outside a frame are stored as damage and never raise."""

import errno
import json
import os
import select
import struct
import threading
import time
from collections.abc import Callable
from typing import Protocol

import serial
from serial.tools import list_ports

from ssdrig.base.errors import RigError, SsdrigError
from ssdrig.meter import wire
from ssdrig.meter.pico import ports
from ssdrig.meter.pico.unframe import payloads
from ssdrig.runs import rigbin

DAMAGE_KEPT = 256  # bytes
IN_USE = "another program has it: wait until that is done, or end it"
DO: dict[int | None, str] = {
    errno.EAGAIN: IN_USE,
    errno.EBUSY: IN_USE,
    errno.EACCES: "get the rights: group dialout (`sudo usermod -aG dialout $USER`, log in again), or sudo",
}
_HEAD = struct.Struct(wire.HEAD)  # kind, seq
Frame = tuple[int, int, bytes]  # kind, seq, body


class Book(Protocol):
    """Where a rig keeps what it hears: a run's journal, or memory (rig_session.Memory)."""

    def record(self, kind: int, payload: bytes, t_ns: int) -> None: ...
    def record_all(self, rows: list[tuple[int, bytes, int]]) -> None: ...
    def event(self, kind: str, t_ns: int | None = None, **fields) -> object: ...


class Line:
    """One port. `lock`: held around each command, so that its holder may send several with nothing between them.
    `failed` gets the error of an open or close that the book could not take."""

    def __init__(self, port: str, book: Book, lock: threading.Condition, failed: Callable[[SsdrigError], None]):
        self.port, self._book, self._lock, self._failed = port, book, lock, failed
        self.rest = b""  # the beginning of a frame that has not come whole
        self._serial: serial.SerialBase | None = None
        self._has_fd = True  # not so by RFC 2217: pyserial reads and writes
        self._tail_torn = False  # half a command was sent: the next one starts with a delimiter
        self._out_seq = 0

    @property
    def is_open(self) -> bool:
        return self._serial is not None

    def open(self) -> None:
        """Raises RigError: no such port, or in use."""
        try:
            opened = ports.opened(self.port)
        except (OSError, ValueError) as error:
            there = ", ".join(p.device for p in list_ports.comports()) or "none"
            do = DO.get(getattr(error, "errno", None), "name the rig's port")
            expected, seen = f"a serial port {self.port} that can be opened", f"{error} (ports here: {there})"
            raise RigError(expected, seen, do) from error
        try:
            self._has_fd = opened.fileno() >= 0
        except OSError:  # io.UnsupportedOperation
            self._has_fd = False
        self._serial = opened
        self.rest, self._tail_torn = b"", True
        self._note("open")

    def close(self) -> None:
        """Safe at any time; does not raise."""
        port, self._serial = self._serial, None
        if port is not None:
            try:
                port.close()
            except OSError:
                pass  # it is gone, which is what was wanted
            self._note("closed")

    def _note(self, state: str) -> None:
        try:
            self._book.record(
                rigbin.PORT, json.dumps({"port": self.port, "state": state}).encode(), time.monotonic_ns()
            )
        except SsdrigError as error:
            self._failed(error)

    def send(self, kind: int, body: bytes = b"") -> int | None:
        """Write one command. Returns the time right before the write, or None if the port did not take it."""
        with self._lock:
            port = self._serial
            if port is None:
                return None
            frame = (b"\x00" if self._tail_torn else b"") + wire.encode(kind, self._out_seq, body)
            self._out_seq = (self._out_seq + 1) & 0xFFFFFFFF
            try:
                t_ns = time.monotonic_ns()
                sent = os.write(port.fileno(), frame) if self._has_fd else port.write(frame)
                self._tail_torn = sent < len(frame)
            except (BlockingIOError, serial.SerialException):
                return None  # the board does not read: its silence is noticed by the ticker
            except OSError:
                return None  # the reader meets the same error and says so
            return None if self._tail_torn else t_ns

    def read(self, timeout_s: float) -> tuple[bytes, int]:
        """What came, empty if nothing did in time, and the time right after. Raises OSError when the port is gone."""
        port = self._serial
        if port is None:
            raise OSError("closed")
        try:
            if not self._has_fd:
                data = port.read(1)  # waits up to ports.WAIT_S
                data += port.read(port.in_waiting) if data else b""
                return data, time.monotonic_ns()
            if not select.select([port.fileno()], [], [], timeout_s)[0]:
                return b"", time.monotonic_ns()
            data = os.read(port.fileno(), 65536)
        except (ValueError, serial.SerialException) as error:
            raise OSError(str(error)) from error
        if not data:
            raise OSError("hung up")
        return data, time.monotonic_ns()

    def split(self, data: bytes, t_ns: int) -> list[tuple[tuple[int, bytes, int], Frame | None]]:
        """Split at delimiters. Returns, in order, the record of each stretch of bytes (kind, payload, host time) and
        its frame; None: it is not a frame, and its record is one of damage."""
        parts = (self.rest + data).split(b"\x00")
        self.rest = parts.pop()
        if len(self.rest) > wire.MAX_FRAME:
            parts.append(self.rest)
            self.rest = b""
        parts = [part for part in parts if part]
        found: list[tuple[tuple[int, bytes, int], Frame | None]] = []
        for part, payload in zip(parts, payloads(parts)):
            if payload is None:
                found.append(((rigbin.DAMAGE, part[:DAMAGE_KEPT], t_ns), None))
            else:
                frame = (*_HEAD.unpack_from(payload), payload[wire.BODY :])
                found.append(((rigbin.FRAME, payload, t_ns), frame))
        return found
