"""The serial line to the board: the port, opened, closed and noted in the run; commands out, frames in.

Bytes outside a frame are stored as damage and never raise.

Many frames of the wire taken apart at once, as wire.decode does it one by one: what has waited at a port, or came
fast. The COBS codes of a frame are a chain, each holds the place of the next one; here the chains of all frames are
followed in step. Pure.
"""

import errno
import json
import os
import select
import struct
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Protocol
from zlib import crc32

import numpy as np
import serial
from serial.tools import list_ports

from ssdrig.base.errors import RigError, SsdrigError
from ssdrig.meter import wire
from ssdrig.meter.pico import ports
from ssdrig.runs import rigbin

MANY = 1024  # frames at once take 6 MB at most, 64 KiB of delimiters and single bytes would take 270
FEW = 8  # frames, below which one by one is faster
STEPS = 16  # codes that are followed before it is seen whether all chains have ended
MOST_CODES = 512  # of a frame with more of them the chain is followed alone; 50 samples have some 150
_CRC_BYTES = 4


def payloads(parts: list[bytes]) -> list[bytes | None]:
    """What each of these stretches of bytes between delimiters (none empty, no 0x00 inside) carries: kind, seq and
    body of a frame, its CRC checked and left out. None: it is no frame."""
    if len(parts) < FEW:
        return [_alone(part) for part in parts]
    if len(parts) > MANY:
        return [payload for i in range(0, len(parts), MANY) for payload in payloads(parts[i : i + MANY])]
    line = b"\x00".join(parts) + bytes(256)  # a code that points past the last delimiter ends there
    octets = np.frombuffer(line, np.uint8)
    steps = octets.astype(np.int64)
    ends = np.cumsum([len(part) + 1 for part in parts]) - 1
    begins = np.concatenate([[0], ends[:-1] + 1])
    codes = np.empty(
        (MOST_CODES + 1, len(parts)), np.int64
    )  # where the codes of each frame lie; at last: its delimiter
    codes[0], last = begins, 0
    while last < MOST_CODES:
        for now, following in pairwise(codes[last : last + STEPS + 1]):
            steps.take(now, out=following, mode="clip")
            np.add(now, following, out=following)
        last += STEPS
        if not octets[codes[last]].any():  # a chain that has come to a delimiter stays there
            break
    # of a block of 254 the code marks no zero, and a chain that leaves its frame is invalid
    plain = (codes[last] == ends) & ~(np.diff(codes[: last + 1], axis=0) == 255).any(axis=0)
    zeroed = octets.copy()
    zeroed[codes[:last] if plain.all() else codes[:last, plain]] = 0
    sums = np.zeros(len(parts), np.int64)
    for i in range(_CRC_BYTES):
        sums |= zeroed[ends - _CRC_BYTES + i].astype(np.int64) << (8 * i)
    text = zeroed.tobytes()
    return [
        (text[a + 1 : z] if z - a > wire.BODY and crc32(text[a + 1 : z]) == crc else None) if fine else _alone(part)
        for part, a, z, crc, fine in zip(
            parts, begins.tolist(), (ends - _CRC_BYTES).tolist(), sums.tolist(), plain.tolist()
        )
    ]


def _alone(part: bytes) -> bytes | None:
    try:
        whole = wire.cobs_decode(part)
    except wire.WireError:
        return None
    payload, crc = whole[:-_CRC_BYTES], whole[-_CRC_BYTES:]
    return payload if len(payload) >= wire.BODY and crc32(payload) == int.from_bytes(crc, "little") else None


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
    """The store of a rig's frames: a run's journal, or memory (rig_session.Memory)."""

    def record(self, kind: int, payload: bytes, t_ns: int) -> None: ...
    def record_all(self, rows: list[tuple[int, bytes, int]]) -> None: ...
    def event(self, kind: str, t_ns: int | None = None, **fields) -> object: ...


class Line:
    """One port. `lock`: held around each command, so that its holder may send several with nothing between them.
    `failed` is called for an open or close that the book could not record."""

    def __init__(self, port: str, book: Book, lock: threading.Condition, failed: Callable[[SsdrigError], None]):
        self.port, self._book, self._lock, self._failed = port, book, lock, failed
        self.rest = b""  # the beginning of a frame that has not come whole
        self.late_at = 0.0  # time.monotonic() of the last reading that was left out as too late
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
                pass  # it is gone, as intended
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
                return None  # the reader meets the same error and reports it
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
        pieces: list[tuple[tuple[int, bytes, int], Frame | None]] = []
        for part, payload in zip(parts, payloads(parts)):
            if payload is None:
                pieces.append(((rigbin.DAMAGE, part[:DAMAGE_KEPT], t_ns), None))
            else:
                frame = (*_HEAD.unpack_from(payload), payload[wire.BODY :])
                pieces.append(((rigbin.FRAME, payload, t_ns), frame))
        return pieces
