"""A meter other than our board, in place of its serial line: its readings come as the frames of wire.py, with a
hello that names the source, its rails, their accuracy and how well it knows the time. Ticks are microseconds of the
host's CLOCK_MONOTONIC."""

import json
import math
import random
import struct
import threading
import time
from collections.abc import Callable

from ssdrig.base.errors import SsdrigError, words_of
from ssdrig.meter import chips, meter, wire
from ssdrig.meter.pico.line import Book, Line
from ssdrig.meter.pico.stream import Rig

CONFIG = 1
RAW = chips.FRAME_MOST
MOST_DT_US = 0xFFFF
STOPS_S = 5.0  # for a reading under way


class Bridge(Line):
    """See Line; `port` is the meter's URL."""

    def __init__(self, port: str, book: Book, lock: threading.Condition, failed: Callable[[SsdrigError], None]):
        super().__init__(port, book, lock, failed)
        self._meter: meter.Meter | None = None
        self._arrived = threading.Condition()
        self._bytes = bytearray()
        self._gone = ""  # why nothing comes any more
        self._thread: threading.Thread | None = None

    @property
    def is_open(self) -> bool:
        return self._meter is not None

    def open(self) -> None:
        """Raises UsageError, RigError, ToolMissing: no such meter."""
        self._meter = meter.opened(self.port)
        self._rails, self._bound_ns = self._meter.rails(), self._meter.clock().bound_ns
        self._steps = [steps(rail) for rail in self._rails]
        self._hello = json.dumps(hello(self.port, self._meter)).encode()
        self.rest, self._gone, self._seq, self._streams = b"", "", 0, False
        self._index = [0] * len(self._rails)
        self._missed = [0] * len(self._rails)
        self._bytes.clear()
        self._note("open")
        self._thread = threading.Thread(target=self._read_meter, args=(self._meter,), name="meter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        now, self._meter = self._meter, None
        if now is None:
            return
        with self._arrived:
            self._arrived.notify_all()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(STOPS_S)
        try:
            now.close()
        except (OSError, SsdrigError):
            pass  # it is gone, as intended
        self._note("closed")

    def send(self, kind: int, body: bytes = b"") -> int | None:
        """Run one command. Returns the time right before."""
        if self._meter is None or self._gone:
            return None
        t_ns = time.monotonic_ns()
        with self._arrived:
            if kind == wire.PING:
                held = struct.pack("<QI", time.monotonic_ns() // 1000, 0)
                self._put(wire.PONG, body + held)
            elif kind == wire.ASK_HELLO:
                self._put(wire.HELLO, self._hello)
            elif kind in (wire.GO, wire.STOP):
                self._streams = kind == wire.GO
                self._index, self._missed = [0] * len(self._rails), [0] * len(self._rails)
            else:
                no = {"command": chr(kind), "why": f"{self.port} measures, and does nothing else"}
                self._put(wire.REFUSED, json.dumps(no).encode())
        return t_ns

    def read(self, timeout_s: float) -> tuple[bytes, int]:
        """What came. Raises OSError when the meter is gone."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._bytes or self._gone or self._meter is None, timeout_s)
            data = bytes(self._bytes)
            self._bytes.clear()
            if not data and (self._gone or self._meter is None):
                raise OSError(self._gone or "closed")
        return data, time.monotonic_ns()

    def _put(self, kind: int, body: bytes) -> None:
        self._bytes += wire.encode(kind, self._seq, body)
        self._seq = (self._seq + 1) & 0xFFFFFFFF
        self._arrived.notify_all()

    def _read_meter(self, source: meter.Meter) -> None:
        why = "it has no more readings"
        try:
            for block in source.blocks():
                if self._meter is not source:
                    return
                with self._arrived:
                    if self._streams:
                        self._take(block)
        except (OSError, ValueError, SsdrigError) as error:
            why = words_of(error)
        with self._arrived:
            self._gone = why
            self._arrived.notify_all()

    def _take(self, block: meter.Block) -> None:
        n, rail = len(block.t_ns), block.rail
        self._missed[rail] += block.missed
        self._index[rail] += block.missed
        if block.bound_ns > self._bound_ns:  # an unknown time is worse than no reading
            self._missed[rail] += n
            self._index[rail] += n
            self.late_at = time.monotonic()
            return
        at = 0
        while at < n:
            end, t_us = at + 1, block.t_ns[at] // 1000
            last_us, words = t_us, bytearray()
            words += self._sample(0, block, at)
            while end < n and end - at < wire.MAX_SAMPLES:
                dt_us = block.t_ns[end] // 1000 - last_us
                if dt_us > MOST_DT_US:
                    break
                words += self._sample(dt_us, block, end)
                last_us, end = block.t_ns[end] // 1000, end + 1
            head = struct.pack(
                wire.SAMPLES_HEAD, rail, CONFIG, end - at, self._missed[rail], self._index[rail] & 0xFFFFFFFF, t_us
            )
            self._put(wire.SAMPLES, head + words)
            self._index[rail] += end - at
            at = end

    def _sample(self, dt_us: int, block: meter.Block, at: int) -> bytes:
        volt, ampere = self._steps[block.rail]
        raw = (
            max(-RAW, min(RAW, round(of * 1e9 / step)))
            for of, step in ((block.volts[at], volt), (block.amperes[at], ampere / 1e3))
        )
        return struct.pack("<H", max(0, dt_us)) + b"".join(count.to_bytes(3, "little", signed=True) for count in raw)


def opened(url: str, book: Book) -> Rig:
    """What measures at this address, our board or another meter; not yet started."""
    scheme, rest = meter.split(url)
    line = getattr(meter.source(scheme), "LINE", Bridge)
    return Rig(url if line is Bridge else rest, book, line)


def steps(rail: meter.Rail) -> tuple[int, int]:
    """In what the readings of a rail are stored: nV and pA of a digit."""
    volt = max(rail.digit_V, rail.most_V / RAW) * 1e9
    ampere = max(rail.digit_A, rail.most_A / RAW) * 1e12
    return math.ceil(volt), math.ceil(ampere)


def hello(url: str, of: meter.Meter) -> dict:
    """The greeting of a meter."""
    return {
        "protocol": wire.PROTOCOL,
        "boot": random.getrandbits(31),
        "board": of.name,
        "firmware": "",
        "serial": of.serial,
        "simulated": False,
        "source": meter.split(url)[0],
        "stamp_ns": of.clock().bound_ns,
        "rails": [row(number, rail) for number, rail in enumerate(of.rails())],
    }


def row(number: int, rail: meter.Rail) -> dict:
    """A rail's entry of the greeting."""
    volt, ampere = steps(rail)
    period_ns = round(rail.period_s * 1e9)
    return {
        "rail": number,
        "name": rail.name,
        "chip": rail.accuracy.chip,
        "config": CONFIG,
        "vbus_lsb_nV": volt,
        "current_lsb_pA": ampere,
        "conversion_ns": period_ns,
        "shunt_ns": max(1, round(period_ns * min(1.0, rail.seen))),
        "nominal_mV": round(rail.nominal_V * 1000) if rail.nominal_V else None,
        "shunt_uOhm": rail.accuracy.shunt_uOhm or None,
        "accuracy": {
            "chip": rail.accuracy.chip,
            **{q: [list(limit) for limit in of] for q, of in zip("VAW", rail.accuracy[:3], strict=True) if of},
            "unknown": rail.accuracy.unknown,
        },
    }
