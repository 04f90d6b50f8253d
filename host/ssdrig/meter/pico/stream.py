"""The host side of the rig: greets the board, starts the stream and writes everything that comes into the journal as it
came (line.py), each frame with the host time right after the read that completed it. Pings go out ten times a second
and are journalled too: the clock is fitted from them afterwards (clock.py), the numbers are decoded there (samples.py).

A board that was reset is greeted and started again; a port that went away is tried again each second. Both are events
of the run, not its end.

The board of the first greeting is the board of the run. After each reset, and each time that the port comes back, what
arrives is held until a greeting has shown that it is still this one; nothing but the question and pings is sent until
then. Another board is a RigError: none of its frames is taken, and its port is closed.

What the rig measures just now, for a display: power of each rail and of the drive, from the frames of one second."""

import json
import math
import random
import struct
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ssdrig.base import prctl
from ssdrig.base.errors import RigError, SsdrigError, reason
from ssdrig.meter import messages, nominal, ranges, trip, wire
from ssdrig.meter.pico.board import differs
from ssdrig.meter.pico.line import Book, Frame, Line
from ssdrig.meter.power import clipped_samples, mean_power_W, mean_V
from ssdrig.runs import rigbin


class LastSecond(NamedTuple):
    """bodies: of the S frames, of all rails; hello: the board's latest, None before there was one; switched: power was
    cut by us in this second, or given back."""

    bodies: list[bytes]
    hello: dict | None
    switched: bool = False

    def rails_W(self) -> dict[int, float | None]:
        """Mean power of each rail that the board has; None: nothing came of it."""
        out: dict[int, float | None] = {}
        for rail in (self.hello or {}).get("rails", []):
            mine = (mean_power_W(body, self.hello) for body in self.bodies if body[0] == rail["rail"])
            powers = [p for p in mine if p is not None]
            out[rail["rail"]] = float(np.mean(powers)) if powers else None
        return out

    def power_W(self) -> float | None:
        """Mean power of all rails together; None where a rail sent nothing."""
        powers = list(self.rails_W().values())
        known = [watts for watts in powers if watts is not None]
        return sum(known) if powers and len(known) == len(powers) else None

    def voltages(self) -> list[tuple[dict, float, float]]:
        """Of each rail of which something came: its entry of the hello, the lowest and the highest voltage at the drive
        (V, means of a frame)."""
        out = []
        for rail in (self.hello or {}).get("rails", []):
            mine = (mean_V(body, self.hello) for body in self.bodies if body[0] == rail["rail"])
            volts = [v for v in mine if v is not None]
            if volts:
                out.append((rail, min(volts), max(volts)))
        return out

    def outside(self) -> list[str]:
        """Notes on the rails' voltages (nominal.py), none while a cut of our own lasts."""
        if self.switched:
            return []
        notes = (nominal.outside(*of) for of in self.voltages())
        return [note for note in notes if note]

    def refuse_other(self) -> None:
        """Raises RigError where a rail has another supply than the board states, such as 5 V and 12 V mixed up."""
        for rail, _, highest_V in self.voltages():
            if nominal.is_other(rail, highest_V):
                raise RigError(
                    f"{nominal.nominal_V(rail):g} V on rail {rail['rail']} ({rail['name']})",
                    f"{highest_V:.2f} V at the drive",
                    nominal.OTHER_DO,
                )

    def clipped(self) -> int:
        """Samples, of all rails, that stand at the end of their sensor's range."""
        return sum(clipped_samples(body, self.hello) for body in self.bodies)


RECENT_S = 1.0
PING_S = 0.1
ASK_AGAIN_S = 0.5
SILENT_S = 3.0
REOPEN_S = 1.0
STOPPING_S = 3.0  # longest wait for frames still under way
FIRST_SAMPLE_S = 5.0
SWITCHED_S = 2.0  # after power has returned; last_second() reaches 1.5 s back
ANSWERS = wire.HELLO, wire.ARMED, wire.CUT_REPORT, wire.WAVEFORM, wire.REFUSED
MOST_BEHIND_S = 20.0
SLOWEST = 10  # longest wait in units of the promised one: a board's clock may be slower than the host's


def promised_s(hello: Mapping | None) -> tuple[float, float]:
    """(seconds between two readings of the slowest rail, by how much their times may be off and so how late they come)
    as a source's greeting states them."""
    period_s = max((rail["conversion_ns"] / 1e9 for rail in (hello or {}).get("rails", [])), default=0.0)
    return period_s, ((hello or {}).get("stamp_ns") or 0) / 1e9


def patience_s(hello: Mapping | None, least_s: float) -> float:
    """How long a source may send no sample: `least_s`, or longer for one that promises fewer or later readings."""
    return max(least_s, SLOWEST * sum(promised_s(hello)))


def recent_s(hello: Mapping | None) -> float:
    """For how long a reading counts as one of the last second: longer for a source of fewer or later readings, so that
    there is always one."""
    period_s, late_s = promised_s(hello)
    return max(RECENT_S, 2 * period_s + late_s)


class Rig:
    """One board on a serial port, or what `line` puts in its place (bridge.py). start() and stop() are called from one
    thread, live() from any."""

    def __init__(self, port: str, book: Book, line: type[Line] = Line):
        self.port, self._book = port, book
        self._board: dict | None = None  # the greeting by which the board of the run is known
        self._held: list[tuple[tuple[int, bytes, int], Frame | None]] = []  # until the board is known again
        self._in_doubt = False  # whether it is still that board
        self._exchanged: RigError | None = None
        self.unpaired = ""  # why it may feed another drive than the run's: it cuts nothing then
        self._threads: list[threading.Thread] = []
        self._priority: dict[str, str] = {}  # thread -> what the system allowed it, in words
        self._closing = threading.Event()
        self._news = threading.Condition()  # guards all below; notified at each arrival
        self._line = line(port, book, self._news, self._failed)
        self._token = random.getrandbits(32)
        self.failure: SsdrigError | None = None  # the first fatal one
        self._hello: dict | None = None
        self._configs: set[tuple[int, int]] = set()  # (rail, config) that the hello explains
        self._started_at = self._hello_at = self._samples_at = self._go_at = self._asked_at = self._reopen_at = 0.0
        self._in_seq = -1
        self._wanted = False  # the stream should run
        self._go_due, self._ask_due = False, True
        self._lost_why: str | None = None
        self._board_us = 0  # time in the latest pong, and
        self._pong_at = 0.0  # when that came
        self._next_index: dict[int, int] = {}
        self._heard_at: dict[int, float] = {}  # rail -> when its last samples came
        self._answers: deque[tuple[int, bytes]] = deque(maxlen=1000)  # (kind, body) of what ask() may wait for
        self._awaited: int | None = None  # token of await_us()'s ping, until a pong answers it or a later one
        self._fence: int | None = None  # token of the ping right before ask()'s command, until its pong comes
        self._passed_at = 0.0  # when that pong came
        self._ponged = 0  # token of the latest pong
        self._behind_s = 0.0  # about how old the ping was that it answered
        self._recent: deque[tuple[float, bytes]] = deque()
        self._recent_s = RECENT_S
        self._switched_until = 0.0  # until then the last second holds a cut of our own, or power that comes back
        self._last_log = self._odd = ""  # the latest of the board's own words; the defect of a whole frame
        self._counts = {"samples": 0, "lost": 0, "damaged": 0, "pongs": 0, "boots": 0}

    # ---- what a run calls

    def expect(self, hello: dict) -> None:
        """Before start(): the board must be the one of this greeting. Another one is a RigError of start()."""
        self._board, self._in_doubt = hello, True

    def start(self, timeout_s: float = 10.0, stream: bool = True, every_rail: bool = True) -> dict:
        """Open, greet, start the stream; returns the board's hello once samples have come of every rail (every_rail
        False: of one; stream False: at once). Raises RigError: no such port, port in use, no answer, another protocol
        version, no samples."""
        self._line.open()
        for name, loop in (("rig-read", self._read_loop), ("rig-tick", self._tick_loop)):
            thread = threading.Thread(target=self._guarded, args=(loop,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)
        try:
            if self._board is None:
                self._line.send(wire.STOP)  # a stream that an earlier host left running
            self._until(lambda: self._hello, timeout_s, "an ssdrig board that answers")
            self._line.send(wire.STOP)
            self._until(lambda: self._counts["pongs"] >= 5, timeout_s, "a board that answers pings")
            hello = self._hello
            assert hello is not None  # waited for; no later frame takes it back
            if stream:
                self.stream(every_rail)
        except BaseException:
            self.stop()
            raise
        return self._hello or hello

    def stream(self, every_rail: bool = True) -> None:
        """The stream of a board that was greeted, waited for as in start(). Raises RigError."""
        with self._news:
            self._wanted = self._go_due = True
            self._started_at = self._samples_at = time.monotonic()
            before = self._counts["samples"]
            self._heard_at.clear()
        first_s = patience_s(self._hello, FIRST_SAMPLE_S)
        self._until(lambda: self._counts["samples"] > before, first_s, "a board that sends samples")
        if every_rail:
            every = lambda: not self.silent_rails(first_s)
            self._until(every, first_s, "samples of every rail (rig info says more)")

    def stop(self) -> None:
        """End the stream, read the frames still under way, close the port. Safe at any time and twice; does not
        raise."""
        self._wanted = False
        if self._line.is_open and self._threads:
            self._line.send(wire.STOP)
            quiet_from = time.monotonic()
            while (
                time.monotonic() - quiet_from < STOPPING_S
                and time.monotonic() - max(self._samples_at, quiet_from) < 0.25
            ):
                time.sleep(0.02)
        self._closing.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._line.close()

    def live(self) -> dict:
        """Numbers for a display: samples, lost, damaged (stretches of no frame), pongs, boots, `state` ("streaming",
        "lost", "stopped"). Raises fatal errors: JournalError (full disk), RigError, RailTripped."""
        if self.failure:
            raise self.failure
        state = "stopped" if not self._wanted else "lost" if self._lost_why else "streaming"
        return {**self._counts, "state": state}

    def lost(self) -> int:
        """Conversions lost since start(), known so far (samples.py counts them exactly afterwards)."""
        return self._counts["lost"]

    def silent_s(self) -> float:
        """Seconds since the last samples arrived of the rail that is silent for longest, 0 before start(). Raises as
        live() does."""
        if self.failure:
            raise self.failure
        rails = (self._hello or {}).get("rails", [])
        last = min((self._heard_at.get(rail["rail"], 0.0) for rail in rails), default=0.0)
        return time.monotonic() - max(last, self._started_at, self._line.late_at) if self._wanted else 0.0

    def silent_rails(self, within_s: float = FIRST_SAMPLE_S) -> list[dict]:
        """Rails of the hello that sent nothing in the last `within_s`."""
        since = time.monotonic() - within_s
        return [rail for rail in (self._hello or {}).get("rails", []) if self._heard_at.get(rail["rail"], 0.0) < since]

    def last_second(self) -> LastSecond:
        """What came in the last second; see recent_s()."""
        horizon = time.monotonic() - self._recent_s - 0.5
        with self._news:
            bodies = [body for at, body in self._recent if at > horizon]
            return LastSecond(bodies, self._hello, time.monotonic() < self._switched_until)

    def ask(
        self, kind: int, body: bytes, answers: tuple[int, ...], timeout_s: float, expected: str
    ) -> tuple[int, bytes]:
        """Send a command and wait for a frame of one of the kinds `answers`: (kind, body). One caller at a time.

        A ping goes ahead of the command. The board answers in order, so a frame that comes before that ping's pong
        answers an earlier command, and is passed over. Raises RigError when no answer comes in time, or the command
        could not be sent; what the rig's threads met."""
        if kind not in (wire.CUT, wire.ON):
            return self._asked(kind, body, answers, timeout_s, expected)
        self._switched_until = math.inf
        try:
            return self._asked(kind, body, answers, timeout_s, expected)
        finally:
            if kind == wire.ON or json.loads(body).get("off_ms") is not None:
                self._switched_until = time.monotonic() + SWITCHED_S

    def _asked(
        self, kind: int, body: bytes, answers: tuple[int, ...], timeout_s: float, expected: str
    ) -> tuple[int, bytes]:
        boot = (self._hello or {}).get("boot")
        if self._hello:
            self._until(lambda: not self._in_doubt, timeout_s, "the board of this run")
        with self._news:  # nothing comes between the two
            if self._exchanged:
                raise self._exchanged
            self._answers.clear()
            self._fence = self._next_token()
            sent = self._ping(self._fence) and self._line.send(kind, body) is not None
        if not sent:
            raise RigError(expected, f"port {self.port} that takes nothing", "is the board there? ./ssdrig rig info")
        of_boot = lambda: boot in (None, (self._hello or {}).get("boot"))
        self._until(lambda: any(k in answers for k, _ in self._answers) or not of_boot(), timeout_s, expected)
        with self._news:
            matching = [answer for answer in self._answers if answer[0] in answers]
        if not matching:
            raise RigError(expected, "a board that was reset meanwhile", "repeat")
        return matching[0]

    def await_us(self, t_us: int, timeout_s: float = 10.0) -> int:
        """Wait until the board's time is t_us or later; its time then, us. A busy machine, or a crystal, may let the
        board's time pass slower than the host's. RigError when the board does not answer pings."""
        token = self._next_token()
        with self._news:
            self._awaited = token
        self._ping(token)
        self._until(lambda: self._awaited is None and self._board_us >= t_us, timeout_s, "a board whose time passes")
        return self._board_us

    def board_us(self) -> int:
        """The board's time in the latest pong, 0 before there was one."""
        return self._board_us

    def heard(self, kind: int) -> list[bytes]:
        """Bodies of the frames of a kind (A, C, W, N, H) since the last ask()."""
        with self._news:
            return [b for k, b in self._answers if k == kind]

    def hello(self) -> dict | None:
        """The board's latest hello, None before there was one."""
        return self._hello

    def greet(self, timeout_s: float = 5.0) -> dict:
        """The board's hello of now. RigError when none comes."""
        return json.loads(self.ask(wire.ASK_HELLO, b"", (wire.HELLO,), timeout_s, "a greeting")[1])

    # ---- reading

    def _read_loop(self) -> None:
        while not self._closing.is_set():
            if not self._line.is_open:
                self._closing.wait(0.05)
                continue
            try:
                data, t_ns = self._line.read(0.1)
            except OSError as error:
                if not self._closing.is_set():
                    with self._news:
                        self._line.close()
                        self._doubt()
                        self._reopen_at = time.monotonic() + REOPEN_S
                        self._say_lost(f"port {self.port} gone: {error}")
                continue
            if data:
                self._arrived(data, t_ns)

    def _arrived(self, data: bytes, t_ns: int) -> None:
        """Journal what came, then account for it. What comes in doubt is held until the board is known."""
        pieces = self._line.split(data, t_ns)
        with self._news:
            taken = self._proven(pieces)
            if taken:
                self._book.record_all([row for row, _ in taken])
            for _, frame in taken:
                if frame is None:
                    self._counts["damaged"] += 1
                    continue
                try:
                    self._account(*frame)
                except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
                    self._counts["damaged"] += 1  # a whole frame with a body that the protocol does not have
                    self._odd = f"a frame that wire.py does not have: {reason(error)}"
            self._news.notify_all()

    def _proven(
        self, pieces: list[tuple[tuple[int, bytes, int], Frame | None]]
    ) -> list[tuple[tuple[int, bytes, int], Frame | None]]:
        """What of `pieces`, and of what was held before, is of the board of the run. The rest is held; of another board
        nothing is."""
        proven = []
        for piece in pieces:
            if frame := piece[1]:
                kind, seq, body = frame
                if seq < self._in_seq and self._board:
                    self._doubt()  # a reset, or a repeated frame
                self._in_seq = seq
                if kind == wire.HELLO and self._exchanged is None:
                    self._identify(body)
            self._held.append(piece)
            if self._exchanged:
                self._held.clear()
            elif not self._in_doubt:
                proven += self._held
                self._held.clear()
        return proven

    def _doubt(self) -> None:
        """Ask who is there before anything else is sent or taken."""
        self._in_doubt = self._ask_due = True
        self._asked_at = 0.0

    def _identify(self, body: bytes) -> None:
        """Whether a greeting comes from the board of the run; the first one does."""
        try:
            hello = messages.answer(wire.HELLO, body)
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        if hello.get("protocol") != wire.PROTOCOL:
            if self._board is None:
                return  # refused where it is accounted for
            why = f"protocol {hello.get('protocol')} instead of {wire.PROTOCOL}"
        else:
            why = differs(self._board, hello) if self._board else ""
        if why:
            self._exchanged = RigError(
                f"the board of this run on {self.port}", why, "connect the rig that powers this drive, and begin again"
            )
            self.failure = self.failure or self._exchanged
            self._line.close()
            return
        self._board, self._in_doubt = self._board or hello, False

    def _account(self, kind: int, seq: int, body: bytes) -> None:
        now, answer = time.monotonic(), messages.answer(kind, body)
        if kind == wire.SAMPLES:
            rail, config, n, _, index, _ = struct.unpack_from(wire.SAMPLES_HEAD, body)
            self._heard_at[rail] = now
            if self._hello and (rail, config) not in self._configs:
                self._ask_due = True  # the hello that explains this configuration was lost
            if self._go_at and not self._go_due:
                jump = index - self._next_index.get(rail, index)
                self._counts["lost"] += jump if jump > 0 else 0
                self._next_index[rail] = index + n
                self._counts["samples"] += n
                self._samples_at = now
                if self._lost_why:
                    self._lost_why = None
                    self._book.event("rig.hello", hello=self._hello)
            else:
                self._samples_at = now
            self._recent.append((now, body))
            while self._recent and self._recent[0][0] < now - self._recent_s:
                self._recent.popleft()
        elif kind == wire.ENERGY:
            rail, _, index = struct.unpack_from("<BBI", body)
            if index == self._next_index.get(rail, -1) + 1:
                self._next_index[rail] = index  # a fast rail: its accumulators were read instead of that conversion
        elif kind == wire.PONG:
            self._counts["pongs"] += 1
            self._ponged, self._board_us, _ = struct.unpack_from(wire.PONG_BODY, body)
            token, self._pong_at = self._ponged, now
            self._behind_s = min((self._token - token & 0xFFFFFFFF) * PING_S, MOST_BEHIND_S)
            if token == self._fence:
                self._fence, self._passed_at = None, now
            if self._awaited is not None and (token - self._awaited) & 0xFFFFFFFF < 1 << 31:
                self._awaited = None
        elif kind == wire.HELLO:
            self._greeted(answer, now)
        elif kind == wire.LOG:
            self._last_log = body.decode(errors="replace")
        elif kind == wire.TRIP:
            self._book.event("rig.trip", **(seen := trip.read(body)))
            self.failure = self.failure or trip.error(seen)
        if self._fence is None and kind in ANSWERS:
            self._answers.append((kind, body))

    def _greeted(self, hello: dict, now: float) -> None:
        protocol, boot = hello["protocol"], hello.get("boot")
        self._ask_due = False
        self._hello_at = now
        if protocol != wire.PROTOCOL:
            self.failure = RigError(
                f"a board that speaks protocol {wire.PROTOCOL}",
                f"protocol {protocol} (firmware {hello.get('firmware')}, board {hello.get('board')}) on {self.port}",
                "put the firmware of this ssdrig on the board, or use the ssdrig that fits it",
            )
            return
        fresh = self._hello is None or boot != self._hello["boot"]
        self._hello, self._recent_s = hello, recent_s(hello)
        self._configs = set(ranges.by_config(hello["rails"]))
        if fresh:
            self._fence = None  # a board that was reset owes no answers
            self._counts["boots"] += 1
            self._next_index.clear()
            self._book.event("rig.hello", hello=hello, priority=dict(self._priority))
            self._go_due = self._wanted
            self._lost_why = None

    # ---- pings, and what to do when nothing comes

    def _tick_loop(self) -> None:
        # jitter: no beating with the board's own rhythm
        while not self._closing.wait(PING_S * random.uniform(0.8, 1.2)):
            now = time.monotonic()
            if self._exchanged:
                continue
            if not self._line.is_open:
                if now >= self._reopen_at:
                    self._reopen_at = now + REOPEN_S
                    self._reopen()
                continue
            self._ping(self._next_token())
            with self._news:
                heard_at = max(self._samples_at, self._go_at, self._line.late_at)
                silent = self._wanted and not self._go_due and now - heard_at > SILENT_S
                if silent:
                    self._say_lost(f"no samples for {SILENT_S:g} s")
                ask = (self._ask_due or self._lost_why) and now - self._asked_at > ASK_AGAIN_S
                if self._lost_why and self._hello_at > max(self._samples_at, self._go_at) + 1.0:
                    self._go_due = self._wanted  # it answers but does not stream
                go = self._go_due and not self._in_doubt
            if ask:
                self._asked_at = now
                self._line.send(wire.ASK_HELLO)
            if go:
                with self._news:
                    if self._in_doubt:
                        continue
                    self._go_due, self._go_at = False, time.monotonic()
                    self._next_index.clear()
                    if self._line.send(wire.GO) is None:
                        self._go_due = True

    def _next_token(self) -> int:
        with self._news:
            self._token = (self._token + 1) & 0xFFFFFFFF
            return self._token

    def _ping(self, token: int) -> bool:
        """False if the port did not take it."""
        body = struct.pack("<I", token)
        t_ns = self._line.send(wire.PING, body)
        if t_ns is not None:
            self._book.record(rigbin.PING, body, t_ns)
        return t_ns is not None

    def _reopen(self) -> None:
        try:
            self._line.open()
        except RigError:
            return  # the loss is already reported; the tick loop retries

    def _say_lost(self, why: str) -> None:
        if self._lost_why is None and self._wanted:
            self._book.event("rig.lost", why=why)
        self._lost_why = self._lost_why or why

    # ---- waiting and failing

    def _guarded(self, loop) -> None:
        # what sends and answers pings: a late thread is an error of the clock
        self._priority[threading.current_thread().name] = prctl.urgent()
        try:
            loop()
        except SsdrigError as error:
            self._failed(error)

    def _failed(self, error: SsdrigError) -> None:
        """Remember the first failure and wake the waiters; they raise it."""
        with self._news:
            self.failure = self.failure or error
            self._news.notify_all()

    def _over(self, begun: float, board_begun_us: int, timeout_s: float) -> bool:
        now = time.monotonic()
        if now - max(begun, self._passed_at) <= timeout_s:
            return False
        board_s = (self._board_us - board_begun_us) * 1e-6
        # it answers in order: what came before the question is still on the line
        queued = self._fence is not None and 0 < (self._fence - self._ponged) & 0xFFFFFFFF < 1 << 31
        lags = queued or 0 <= board_s <= timeout_s  # below 0: the board was reset
        lags = lags and now - self._pong_at <= timeout_s + self._behind_s
        return not (board_begun_us and lags and now - begun <= SLOWEST * timeout_s)

    def _until(self, reached, timeout_s: float, expected: str) -> None:
        """Wait for reached(), `timeout_s` of the host's time and, as long as pongs come (of a board that is behind: so
        much later), of the board's too, from the pong ahead of a question on. Raises RigError, which says what came."""
        begun, board_begun_us = time.monotonic(), self._board_us
        with self._news:
            while not reached():
                if self.failure:
                    raise self.failure
                self._news.wait(0.2)
                if self._over(begun, board_begun_us, timeout_s):
                    none = f"bytes that are no frames, such as {self._line.rest[-40:]!r}"
                    seen = self._odd or (none if self._counts["damaged"] or self._line.rest else "nothing")
                    seen += f', and the board says "{self._last_log}"' if self._last_log else ""
                    if self._hello:
                        counts = f"{self._counts['pongs']} pongs, {self._counts['samples']} samples"
                        seen = f"a greeting of boot {self._hello['boot']}, {counts}"
                        seen += f"; {self._lost_why}" if self._lost_why else ""
                    raise RigError(
                        f"{expected} within {timeout_s:g} s on {self.port}", seen, "check port, cable and firmware"
                    )
        if self.failure:
            raise self.failure
