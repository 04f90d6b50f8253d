"""Who takes the drive's power and gives it back: the rig, or another switch. Each cut
comes back with its times on the host's clock and with what proves that it was one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import RigError
from ssdrig.meter.frames import Decoder
from ssdrig.meter.pico.stream import Rig
from ssdrig.powerloss import waiting
from ssdrig.powerloss.boardclock import BoardClock
from ssdrig.powerloss.waiting import Waited
from ssdrig.runs import journal
from ssdrig.switch import pico, profiles
from ssdrig.switch.switch import Switch

RAIL = 0  # that is cut
UVLO_SHARE = 0.75  # of what the rail had: below it a drive has lost its supply
BACK_BY_ITSELF = tuple(name for name, profile in profiles.PROFILES.items() if profile.back_by_itself)
REPORT_S = 20.0  # for the report after the return of power; the rig's own patience with a residual is 10 s
BEHIND_S = 30.0  # how late samples of a lagging board may come
LEAST_LEAD_NS = 20_000_000  # of the order of a cut: the scope is started and the rig armed meanwhile
SCOPE_HZ, SCOPE_BEFORE, SCOPE_AFTER = 500_000, 1000, 6500  # the picture of a fall: 2 ms before the edge, 13 ms after


class Outcome(NamedTuple):
    """One cut. Times: ns of CLOCK_MONOTONIC. `fired_ns`: the edge, known to `bound_ns`; `on_ns`: before this power had
    not returned, the bound is taken off; `why_not`: why it is not a cut, "" for one. `report`: the rig's, `waveform`:
    as switch.scope_now() returns it, with "t0_ns"; `on_late_s`: power returned at most this much later than `on_ns`;
    `waited`: what the host had held up when power returned, or later."""

    fired_ns: int
    bound_ns: int
    on_ns: int
    off_s: float
    why_not: str = ""
    report: dict | None = None
    waveform: dict | None = None
    waited: Waited | None = None
    on_late_s: float = 0.0


class RigSupply:
    """The rig's switch. Its clock is read from the run folder that its frames are written to. `server`: the process of
    this machine that simulates the drive."""

    server: int | None = None

    def __init__(self, rig: Rig, run: Path, rails: tuple[int, ...] = (RAIL,)):
        self._rig, self._rails, self._run, self._clock = rig, rails, run, BoardClock(run)
        hello = rig.hello() or {}
        self._gpio = next((row["gpio"] for row in hello.get("scope") or () if row["rail"] == rails[0]), None)
        switched = hello.get("switch") or {}
        rows, self.sideband = switched.get("rails") or (), bool(switched.get("sideband"))  # PERST# goes with the power
        discharge = next((row.get("discharge_mOhm") for row in rows if row["rail"] == rails[0]), None)
        self.discharge_ohm = discharge / 1000 if discharge else None
        lsb_pA = next((row["current_lsb_pA"] for row in hello.get("rails") or () if row["rail"] == rails[0]), 0)
        self.lsb_A, self.rail = lsb_pA * 1e-12, rails[0]

    def board_us(self, t_ns: int) -> int:
        """The board's time at a host time not far ahead."""
        now = self._clock.now()
        t_us = now.base_us + (t_ns - now.base_ns) // 1000
        return t_us - (int(now.t_ns(t_us)) - t_ns) // 1000

    def currents(self, seconds: float) -> np.ndarray:
        """float64[n]: what the rail draws in the next `seconds`, A, before any calibration. By the time at which
        it was measured: a lagging board sends samples of an earlier time. Raises RigError where it does
        not come."""
        offset = journal.records(self._run, self._clock.offset).next_offset
        begin_ns = time.monotonic_ns()
        end_ns = begin_ns + int(seconds * 1e9)
        time.sleep(seconds)
        decoder, deadline = Decoder(), time.monotonic() + BEHIND_S
        while True:
            records = journal.records(self._run, offset)
            decoder.feed(records)
            offset = records.next_offset
            frames = decoder.frames(self.rail)
            frames = frames.only(frames.boot == len(decoder.boots) - 1)  # the clock is that of the present boot
            t_ns = self._clock.now().t_ns(frames.t_us)
            if len(t_ns) and t_ns[-1] >= end_ns:
                amps = frames.current[(t_ns >= begin_ns) & (t_ns < end_ns)] * self.lsb_A
                if len(amps) < 2:  # all of it fell into a gap
                    raise RigError(f"the samples of {seconds:g} s", f"{len(amps)}", "see why: ./ssdrig rig info")
                return amps
            if time.monotonic() > deadline:
                seen = f"{len(t_ns)} samples, not up to now"
                raise RigError(f"the samples of {seconds:g} s", seen, "look at its cable: ./ssdrig rig info")
            time.sleep(0.1)

    @property
    def boot(self) -> int | None:
        """The number of the board's present life."""
        return (self._rig.hello() or {}).get("boot")

    def restore(self) -> None:
        """After a cut that failed: see that power is back and the board streams again. Raises RigError."""
        pico.restore(self._rig)
        deadline = time.monotonic() + BEHIND_S
        while self._rig.live()["state"] != "streaming":
            if time.monotonic() > deadline:
                raise RigError("a board that streams again", "it does not", "look at its cable: ./ssdrig rig info")
            time.sleep(0.1)

    def off(self) -> dict:
        """Take the power and leave it off: the rig's report. A board that was reset is asked once more. Raises
        RigError."""
        try:
            return pico.off(self._rig)
        except RigError:
            self.restore()
            return pico.off(self._rig)

    def cut(self, shape: str, at_ns: int | None, off_s: float, when: dict | None = None, **own) -> Outcome:
        """Cut at a host time, or as `when` sets (wire.py), stay off for off_s, and see power return. Where a busy host
        comes too late for that time, the cut comes immediately. `own`: fields of the shape. Raises RigError: refused,
        an unsafe residual, no answer."""
        if when is None:
            late = at_ns is None or at_ns - time.monotonic_ns() < LEAST_LEAD_NS
            when = {"now": True} if at_ns is None or late else {"t_us": self.board_us(at_ns)}
        scope = None
        if self._gpio is not None:
            scope = {"gpio": self._gpio, "rate": SCOPE_HZ, "before": SCOPE_BEFORE, "after": SCOPE_AFTER}
        lasts_ms = -(-profiles.PROFILES[shape].lasts_us(own) // 1000)
        off_ms = None if shape in BACK_BY_ITSELF else max(round(off_s * 1000), lasts_ms)
        ahead_s = max(0.0, (at_ns - time.monotonic_ns()) / 1e9) if at_ns else 0.0
        how: dict = {"profile": shape, "when": when, "off_ms": off_ms, "scope": scope}
        how |= {"timeout_s": ahead_s + off_s + REPORT_S, **own}  # a board that was reset reports nothing
        try:
            report = pico.arm_and_cut(self._rig, rails=self._rails, **how)
        except RigError as error:
            if "us ahead" not in error.seen:
                raise
            report = pico.arm_and_cut(self._rig, rails=self._rails, **{**how, "when": {"now": True}})
        waveform = report.pop("waveform", None)
        clock = self._clock.now()
        fired_ns, on_ns = (int(clock.t_ns(report[key])) for key in ("fired_us", "on_us"))
        bound_ns, on_bound_ns = (int(clock.bound_ns(report[key])) + 1000 for key in ("fired_us", "on_us"))
        if waveform:
            waveform = {**waveform, "t0_ns": int(clock.t_ns(waveform["t0_us"]))}
        off = (report["on_us"] - report["fired_us"]) / 1e6
        last = no_cut(report), report, waveform, waiting.now(self.server), 2 * on_bound_ns / 1e9
        return Outcome(fired_ns, bound_ns, on_ns - on_bound_ns, off, *last)


def no_cut(report: dict) -> str:
    """Why the rig's report is not a cut: a rail that was not seen below the drive's lock-out, or that a signal of the
    host fed meanwhile. "" for a cut."""
    for rail in report["rails"]:
        limit_mV = UVLO_SHARE * rail["before_mV"]
        if rail["residual_mV"] is None or rail["residual_mV"] >= limit_mV:
            return f"rail {rail['rail']} was not seen below {limit_mV:.0f} mV, but at {rail['residual_mV']} mV"
        if pico.is_fed(rail):
            return f"rail {rail['rail']} was fed with {rail['fed_mA']} mA while it was off: look at PERST#"
    return ""


class SwitchSupply:
    """A switch other than the rig: a power strip, a hub, a bench supply, two user commands. `answers` returns whether
    the drive is there: if it is after the power was taken, the cut failed; if it is not, `without` is called.
    `server`: the process of this machine that serves the drive."""

    server: int | None = None

    def __init__(self, power: Switch, answers: Callable[[], bool], without: Callable[[], object] = lambda: None):
        self._switch, self._answers, self._without = power, answers, without
        self._is_off = False

    def cut(self, shape: str, at_ns: int | None, off_s: float, when: dict | None = None, **own) -> Outcome:
        """Take the power at a host time, wait for off_s, give it back. Power may have returned when that begins. Raises
        RigError for a switch that fails."""
        self._is_off = True
        fell = self._switch.off(at_ns)
        there = self._answers()
        if not there:
            self._without()
        time.sleep(off_s)
        on_ns = time.monotonic_ns()
        self.give()
        late_s, waited = (time.monotonic_ns() - on_ns) / 1e9, waiting.now(self.server)
        why = "the drive still answered when the command that takes its power had ended" if there else ""
        if fell.seen_low is False:
            why = why or "the switch did not see the supply low"
        off = (on_ns - fell.t_ns - fell.bound_ns) / 1e9
        return Outcome(fell.t_ns, fell.bound_ns, on_ns, off, why, None, None, waited, late_s)

    def give(self) -> None:
        """Give the power back."""
        self._switch.on()
        self._is_off = False

    def restore(self) -> None:
        """Give power back where a cut did not finish."""
        if self._is_off:
            self.give()
