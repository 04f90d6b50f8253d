"""The rig in use by hand, without a run: greeted, perhaps streaming, its frames kept in memory instead of a run
folder."""

import json
import struct
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ssdrig.base.errors import RigError
from ssdrig.base.words import clock
from ssdrig.meter import bridge, messages, ranges, wire
from ssdrig.meter.clock import NOMINAL_PPM
from ssdrig.meter.frames import Decoder
from ssdrig.meter.pico.stream import Rig
from ssdrig.meter.power import Power, assemble, closure
from ssdrig.runs import rigbin, rigrecords

LATE_S = 3.0  # of the board's own time, that a rail may send nothing
SILENT_S = 10.0  # of the host's time, that the board may send nothing at all


class Memory:
    """Holds in memory what Rig otherwise writes to a journal. Safe from any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self.rows: list[tuple[int, bytes, int]] = []

    def record(self, kind: int, payload: bytes, t_ns: int) -> None:
        with self._lock:
            self.rows.append((kind, payload, t_ns))

    def record_all(self, rows) -> None:
        with self._lock:
            self.rows.extend(rows)

    def event(self, kind: str, t_ns: int | None = None, **fields) -> None:
        pass  # hello and loss are read from the rig itself

    def count(self) -> int:
        """Rows so far."""
        with self._lock:
            return len(self.rows)

    def frames(self, since: int = 0) -> list[tuple[int, bytes]]:
        """(kind, body) of the frames, from row `since` on."""
        with self._lock:
            rows = self.rows[since:]
        return [(p[0], p[5:]) for k, p, _ in rows if k == rigbin.FRAME]

    def bodies(self, kind: int, since: int = 0) -> list[bytes]:
        """Bodies of the frames of a kind, from row `since` on."""
        return [body for k, body in self.frames(since) if k == kind]


@dataclass
class Reading:
    """Samples of one rail over some seconds, as the chip gave them, in V and A before any calibration."""

    rail: dict  # the hello's
    t_ns: np.ndarray
    raw_V: np.ndarray
    raw_A: np.ndarray
    power: Power


class Session:
    """show(text) reports progress while the user waits; called with "" at the end."""

    def __init__(self, rig: Rig, memory: Memory, hello: dict, show: Callable[[str], None]):
        self.rig, self.memory, self.hello, self.show = rig, memory, hello, show

    def stream(self) -> None:
        """Let a board stream that was only greeted. Raises RigError: no rail sends anything."""
        self.rig.stream(every_rail=False)

    def clock(self) -> dict:
        """The board's crystal by the pings so far: "rate_ppm" against the host's clock, "error_ppm" of that at most;
        both None where there are too few."""
        power = self.powers([self.hello["rails"][0]["rail"]])[self.hello["rails"][0]["rail"]]
        clock = power.clocks[-1] if power.clocks else None
        if clock is None or clock.strained or clock.rate_error_ppm() == NOMINAL_PPM:
            return {"rate_ppm": None, "error_ppm": None}
        return {"rate_ppm": clock.rate_ppm(), "error_ppm": clock.rate_error_ppm()}

    def rail(self, number: int) -> dict:
        """The hello's entry of a rail. RigError without one."""
        for rail in self.hello["rails"]:
            if rail["rail"] == number:
                return rail
        there = ", ".join(f"{r['rail']} ({r['name']})" for r in self.hello["rails"])
        raise RigError(f"rail {number}", f"rails {there}", "name one of these: --rail N")

    def readings(self, rails: list[int], seconds: float) -> dict[int, Reading]:
        """What the rails measure in the `seconds` from now on, however late it arrives: a busy host or board is waited
        for. RigError if a rail sends nothing for LATE_S while the board's clock goes on, or the board is silent."""
        begin_ns = time.monotonic_ns()
        end_ns = begin_ns + int(seconds * 1e9)
        since = self.memory.count()
        while (left_s := (end_ns - time.monotonic_ns()) * 1e-9) > 0:
            self.show(f"measuring, {clock(left_s)} to go")
            self.rig.live()  # raises what the rig's threads met
            time.sleep(min(0.5, left_s))
        self.show("")
        known, known_at = len(self.memory.frames(since)), time.monotonic()
        while True:
            powers = self.powers(rails)
            late = [n for n in rails if not len(powers[n].t_ns) or powers[n].t_ns[-1] < end_ns]
            if not late:
                return {n: self._cut(n, power, begin_ns, end_ns) for n, power in powers.items()}
            do = "see its wiring; ./ssdrig rig info prints what the board reports"
            for n in late:
                quiet_s = self.quiet_s(n, since)
                if quiet_s > LATE_S:
                    raise RigError(
                        f"samples of rail {n} up to now", f"none for {quiet_s:.1f} s of the board's time", do
                    )
            if len(self.memory.frames(since)) > known:
                known, known_at = len(self.memory.frames(since)), time.monotonic()
            elif time.monotonic() - known_at > SILENT_S:
                raise RigError("a board that answers", f"nothing from it for {SILENT_S:g} s", do)
            self.rig.live()  # raises what the rig's threads met
            time.sleep(0.1)

    def quiet_s(self, rail: int, since: int) -> float:
        """Seconds of the board's own time, from row `since` of the memory on, between the rail's last samples (the
        first pong, without any) and the last pong. What the board has sent is in order, so it does not matter how
        late either of them arrived."""
        heard_us = now_us = 0
        for kind, body in self.memory.frames(since):
            if not messages.is_whole(kind, body):
                continue
            if kind == wire.PONG:
                _, t_us, _ = struct.unpack_from(wire.PONG_BODY, body)
                if not now_us or t_us < now_us:  # the first one, or the board restarted
                    heard_us = t_us
                now_us = t_us
            elif kind == wire.SAMPLES and body[0] == rail:
                heard_us = struct.unpack_from(wire.SAMPLES_HEAD, body)[-1]
        return (now_us - heard_us) * 1e-6

    def powers(self, rails: list[int]) -> dict[int, Power]:
        """All that came so far, decoded and on the host's clock, closure worked out."""
        with self.memory._lock:
            rows = list(self.memory.rows)
        decoder = Decoder()
        decoder.feed(rigrecords.decode(b"".join(rigbin.encode(*row) for row in rows)))
        powers, energies = (
            {n: assemble(decoder.frames(n), decoder.boots, decoder.counts, n) for n in rails},
            decoder.energies(),
        )
        for n, power in powers.items():
            power.closure = closure(power, energies[energies["rail"] == n])
        return powers

    def _cut(self, number: int, power: Power, begin_ns: int, end_ns: int) -> Reading:
        rail = self.rail(number)
        chosen = slice(*np.searchsorted(power.t_ns, (begin_ns, end_ns)).tolist())
        volts = power.vbus[chosen] * (rail["vbus_lsb_nV"] * 1e-9)
        amperes = power.current[chosen] * (rail["current_lsb_pA"] * 1e-12)
        if (of_low := ranges.low(rail)) is not None:
            low = power.in_low[chosen]
            amperes[low] = power.current[chosen][low] * (of_low["current_lsb_pA"] * 1e-12)
        return Reading(rail, power.t_ns[chosen], volts, amperes, power)

    def logs(self) -> list[str]:
        """The board's text messages."""
        return [body.decode(errors="replace") for body in self.memory.bodies(wire.LOG)]

    def store_calibration(self, rail: int, calibration: dict | None, timeout_s: float = 5.0) -> dict:
        """Store a rail's calibration on the board (None: remove it); returns the hello that confirms it. The stream
        must not run. RigError: refused, too long, or not confirmed."""
        body = json.dumps({"rail": rail, "calibration": calibration}, separators=(",", ":")).encode()
        if len(wire.encode(wire.CALIBRATE, 0, body)) > wire.MAX_COMMAND - 2:
            raise RigError(
                f"a calibration below {wire.MAX_COMMAND} bytes", f"{len(body)}", "shorten the instrument's name"
            )
        kind, reply = self.rig.ask(
            wire.CALIBRATE, body, (wire.HELLO, wire.REFUSED), timeout_s, "a board that keeps the calibration"
        )
        if kind == wire.REFUSED:
            raise RigError(
                "the board to keep the calibration", json.loads(reply).get("why", "no"), "correct that and repeat"
            )
        self.hello = json.loads(reply)
        if self.rail(rail).get("calibration") != calibration:
            raise RigError(
                "the board to confirm the calibration",
                "a hello with another one",
                "repeat; see that its firmware is this ssdrig's",
            )
        return self.hello


@contextmanager
def session(port: str, stream: bool = True, timeout_s: float = 10.0, show: Callable[[str], None] = lambda text: None):
    """`with session(port) as s`: a Session on a board that answers (and streams). Raises RigError."""
    memory = Memory()
    rig = bridge.opened(port, memory)
    hello = rig.start(timeout_s, stream, every_rail=False)
    try:
        yield Session(rig, memory, hello, show)
    finally:
        rig.stop()
