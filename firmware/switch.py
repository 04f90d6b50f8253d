"""Takes power from the drive, measures how it goes, and gives it back when it is safe. wire.py has the commands.

    idle --cut--> waiting --trigger--> fired --rails low--> off --on--> rising --rails high--> idle
The rails are on unless a state machine (pulse.py) drives their gates. While they are off the watchdog runs: firmware that
hangs is reset, which switches them on.
"""

import json
import os
from time import ticks_add, ticks_diff, ticks_us

import machine
import registers
import wire
from clock64 import put32
from fall import Watch
from link import HEAD
from pulse import DISCHARGE, ON, OPEN, SHORTEST, Pulse, word

IDLE, WAITING, STARTED, FIRED, OFF, RISING = "idle", "waiting", "started", "fired", "off", "rising"
PROFILES = ("float", "crowbar", "glitch")
DEAD_us = 50  # series switch off -> discharge switch on, and back; a load switch needs some 10 us to let go
VALID_us = 10_000_000  # of a token
SOON_us = 500_000  # a cut at a time is handed to the PIO so long before it
LATEST_us = 500_000_000
GIVE_UP_us = 10_000_000  # after off_ms, for the residual to fall
RISE_us = 500_000
WATCHDOG_ms = 8000
_KEYS = {"token", "rails", "profile", "when", "off_ms", "glitch_us", "residual_mV", "residual_ms"}


class Refused(Exception):
    """A command that is not carried out; the words say why."""


def number(value, low, high, name):
    """value, if it is an integer between low and high."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Refused("%s must be an integer from %d to %d" % (name, low, high))
    return value


def steps_of(profile, glitch_us, per_us):
    """The words of a profile for pulse.py."""
    if profile == "glitch":
        return word(OPEN, glitch_us * per_us), word(ON, SHORTEST)
    if profile == "crowbar":
        return word(OPEN, DEAD_us * per_us), word(DISCHARGE, SHORTEST)
    return (word(OPEN, SHORTEST),)


def draw(low, high, seed):
    """A number from low to high, uniform; the same for the same seed. (One step of a 31-bit congruential generator each
    for stirring and for the result.)"""
    for _ in range(3):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    return low + (seed * (high - low + 1) >> 31)


class Switch:
    def __init__(self, rows, samplers, link, clock):
        """rows: board.SWITCH."""
        measured = [s.rail["rail"] for s in samplers]
        self.gates = {row["rail"]: row["gate"] for row in rows if row["rail"] in measured}
        self.link, self.clock = link, clock
        self.watches = {s.rail["rail"]: Watch(s) for s in samplers if s.rail["rail"] in self.gates}
        for s in samplers:
            s.watch = self
        self.state = IDLE
        self.token = 0
        self.armed = False
        self.armed_at = 0
        self.cutting = []  # the watches of the cut
        self.count_rail = self.count = 0
        self.wdt = None
        self.pulse = None
        self.scope = None  # it is told when a cut has fired
        Pulse(list(self.gates.values())).stop()

    def describe(self):
        """For H."""
        if not self.gates:
            return None
        return {
            "rails": [{"rail": rail, "profiles": PROFILES} for rail in self.gates],
            "resolution_ns": 1000_000_000 // machine.freq(),
            "dead_us": DEAD_us,
            "state": self.state,
            "off": [w.rail for w in self.cutting] if self.state in (FIRED, OFF) else [],
        }

    # ---- commands

    def arm(self):
        if not self.gates:
            raise Refused("this board has no switch")
        self.token = int.from_bytes(os.urandom(4), "little")
        self.armed = True
        self.armed_at = ticks_us()
        buf = bytearray(HEAD + 8 + 4)
        buf[0] = wire.ARMED
        put32(buf, HEAD, self.token)
        put32(buf, HEAD + 4, VALID_us // 1000)
        self.link.put(buf, HEAD + 8)

    def cut(self, how):
        """how: the object of `c`. Refused, and nothing is touched, if anything of it is not as wire.py says."""
        self._check_token(how)
        unknown = set(how) - _KEYS
        if unknown:
            raise Refused("unknown: %s" % ", ".join(sorted(unknown)))
        if self.state != IDLE:
            raise Refused("a cut is %s" % self.state)
        rails = self._rails(how.get("rails"))
        watches = [self.watches[rail] for rail in rails]
        for w in watches:
            if not w.sampler.running:
                raise Refused("rail %d is not being measured; the stream must run" % w.rail)
        profile = how.get("profile")
        if profile not in PROFILES:
            raise Refused("profile must be one of %s" % ", ".join(PROFILES))
        off_ms, glitch_us = how.get("off_ms"), how.get("glitch_us")
        if off_ms is not None:
            number(off_ms, 1, 500_000, "off_ms")
        if profile == "glitch":
            number(glitch_us, 1, 1_000_000, "glitch_us")
        if (profile == "glitch") == (glitch_us is None) or (profile == "glitch" and off_ms is not None):
            raise Refused("glitch_us belongs to glitch, off_ms to the others")
        residual_mV = number(how.get("residual_mV", 300), 1, 2000, "residual_mV")
        residual_us = number(how.get("residual_ms", 500), 1, 60_000, "residual_ms") * 1000
        trigger = self._trigger(how.get("when"))
        # nothing below can be refused
        self.cut_token = how["token"]
        self.profile, self.off_us = profile, None if off_ms is None else off_ms * 1000
        self.glitch_us = glitch_us or 0
        self.cutting = watches
        self.fired_us = self.on_us = None
        for w in watches:
            w.begin(w.raw(residual_mV), residual_us)
        self.pulse = Pulse([self.gates[rail] for rail in rails])
        self.steps = steps_of(profile, self.glitch_us, self.pulse.per_us)
        self._await(*trigger)

    def _rails(self, rails):
        """rails, if it is a list of different rails that have a switch."""
        for rail in rails if isinstance(rails, list) and rails else (None,):
            if not isinstance(rail, int) or rail not in self.gates or rails.count(rail) > 1:
                raise Refused("rails must be some of %s" % list(self.gates))
        return rails

    def _check_token(self, how):
        armed, self.armed = self.armed, False
        if not isinstance(how, dict):
            raise Refused("a JSON object was expected")
        if not armed or how.get("token") != self.token:
            raise Refused("not armed with this token, or it is too old")

    def _trigger(self, when):
        """-> (edge, gpio, count, ticks of the cut or None, samples, above, rail)."""
        keys = set(when) if isinstance(when, dict) else set()
        if keys == {"now"}:
            return "", 0, 0, None, 0, 0, 0
        if keys == {"t_us"}:
            self.clock.update()
            ahead = number(when["t_us"], 0, 1 << 52, "t_us") - ((self.clock.wraps << 30) + self.clock.ticks)
            if not 2000 <= ahead <= LATEST_us:
                raise Refused("t_us is %d us ahead; possible are 2000 to %d" % (ahead, LATEST_us))
            return "", 0, 0, ticks_add(self.clock.ticks, ahead), 0, 0, 0
        if keys == {"random_us", "seed"}:
            span = when["random_us"]
            if not isinstance(span, list) or len(span) != 2:
                raise Refused("random_us must be [a, b]")
            low = number(span[0], 2000, LATEST_us, "random_us")
            ahead = draw(low, number(span[1], low, LATEST_us, "random_us"), number(when["seed"], 0, 0x7FFFFFFF, "seed"))
            return "", 0, 0, ticks_add(ticks_us(), ahead), 0, 0, 0
        if keys == {"samples", "above_raw", "rail"}:
            if number(when["rail"], 0, 255, "rail") not in self.watches:
                raise Refused("no rail %s is measured here" % when["rail"])
            n = number(when["samples"], 1, 1_000_000, "samples")
            return "", 0, 0, None, n, number(when["above_raw"], -(1 << 19), 1 << 19, "above_raw"), when["rail"]
        if keys == {"edge", "gpio", "timeout_ms"}:
            if when["edge"] not in ("rising", "falling"):
                raise Refused("edge must be rising or falling")
            gpio = number(when["gpio"], 0, 29, "gpio")
            if gpio in self.gates.values() or gpio - 1 in self.gates.values():
                raise Refused("GPIO %d is a gate" % gpio)
            turns = number(when["timeout_ms"], 1, 60_000, "timeout_ms") * (machine.freq() // 1000) // 3
            return when["edge"], gpio, turns, None, 0, 0, 0
        raise Refused("when must be now, t_us, random_us, samples or edge, with what belongs to it")

    def _await(self, edge, gpio, count, at, samples, above, rail):
        self.at, self.count, self.above, self.count_rail, self.need = at, 0, above, rail, samples
        self.edge = edge
        if at is not None:
            self.state = WAITING
            return
        self.pulse.load(edge, gpio, count, self.steps)
        self.patience_us = 3 * count // self.pulse.per_us + 1000 if edge else 1000
        self.state = WAITING

    def _go(self):
        """Start what is loaded, now. Nothing is allocated."""
        self.started = self.pulse.start()
        self.state = STARTED

    def _go_at(self):
        """The PIO counts from a moment that is set just ahead to the time of the cut."""
        for k in range(4):
            begin = ticks_add(ticks_us(), 400 << k)  # loading takes some 200 us; more, if something came between
            ahead = ticks_diff(self.at, begin)
            if ahead < 50:
                break
            self.pulse.load("", 0, ahead * self.pulse.per_us - 7, self.steps)
            while ticks_diff(begin, ticks_us()) > 100:
                pass
            self.started = self.pulse.start(begin)
            if self.started >= 0:
                self.patience_us = ahead + 1000
                self.state = STARTED
                return
        self._end(False, "the board was too busy to start the cut at its time")

    def on(self, how):
        """Power for the rails that are off."""
        if how == {"call_off": True}:
            if not self._pending():
                raise Refused("no cut is waiting")
            self._end(False, "called off")
            return
        if not isinstance(how, dict) or set(how) - {"rails", "unsafe"}:
            raise Refused("a JSON object with rails, unsafe was expected")
        if self.state not in (FIRED, OFF) or self.profile == "glitch":
            raise Refused("nothing is off")
        rails = self._rails(how["rails"]) if how.get("rails") else [w.rail for w in self.cutting]
        if set(rails) != {w.rail for w in self.cutting}:
            raise Refused("rails cut together come back together: %s" % [w.rail for w in self.cutting])
        if how.get("unsafe") is not True:
            for w in self.cutting:
                if not w.safe:
                    raise Refused("rail %d stands at %d mV: not known to be low for long enough" % (w.rail, w.mV(w.v)))
        self._power_on()

    def stop(self):
        """The stream ends: nothing more is known of the rails. What has not fired is called off."""
        for w in self.cutting:
            w.silent()
        if self._pending():
            self._end(False, "called off: the stream was stopped")

    def release(self):
        """All rails on, whatever there is."""
        if self.pulse:
            self.pulse.stop()
        self._watchdog(False)
        self.state = IDLE

    # ---- what happens by itself

    def sample(self, rail, stamp, frame, at):
        """A sample of a rail, as the wire has it, at frame[at]: called by its sampler. Nothing is allocated."""
        if self.state is IDLE:
            return
        for w in self.cutting:
            if w.rail == rail:
                w.sample(stamp, frame[at + 2] | frame[at + 3] << 8 | frame[at + 4] << 16)
        if self.state is WAITING and self.need and rail == self.count_rail:
            i = frame[at + 5] | frame[at + 6] << 8 | frame[at + 7] << 16
            if i & 0x800000:
                i -= 0x1000000
            self.count = self.count + 1 if i > self.above else 0
            if self.count >= self.need:
                self._go()

    def turn(self):
        """To be called all the time."""
        if self.armed and ticks_diff(ticks_us(), self.armed_at) > VALID_us:
            self.armed = False
        state = self.state
        if state is IDLE:
            return
        if self.wdt:
            self.wdt.feed()
        if state is WAITING:
            if self.at is not None:
                if ticks_diff(self.at, ticks_us()) < SOON_us:
                    self._go_at()
            elif not self.need and self._all_seen():
                self._go()
        elif state is STARTED:
            if self.pulse.fired():
                self._fired()
            elif ticks_diff(ticks_us(), self.started) > self.patience_us:
                self._end(False, "no edge came" if self.edge else "the pulse did not start")
        elif state is FIRED:
            self._watch_fall()
        elif state is RISING:
            self._watch_rise()

    def _fired(self):
        after_ns = self.pulse.after_start_ns()
        tick = ticks_add(self.started, after_ns // 1000)
        self.clock.update()
        self.fired_us = (self.clock.wraps << 30) + self.clock.ticks + ticks_diff(tick, self.clock.ticks)
        self.fired_at = tick
        for w in self.cutting:
            w.edge(tick)
        if self.scope:
            self.scope.event(self.fired_us)
        if self.profile == "glitch":
            self.on_us = self.fired_us + self.glitch_us
            self.rising_since = ticks_add(tick, self.glitch_us)
            self.state = RISING
        else:
            self._watchdog(True)
            self.state = FIRED

    def _pending(self):
        """Is there a cut that has not fired?"""
        return self.state is WAITING or self.state is STARTED and not self.pulse.fired()

    def _all_seen(self):
        """Is there a reading of each rail, to tell the fall from?"""
        for w in self.cutting:
            if not w.before:
                return False
        return True

    def _all_safe(self):
        for w in self.cutting:
            if not w.safe:
                return False
        return True

    def _watch_fall(self):
        since = ticks_diff(ticks_us(), self.fired_at)
        if self._all_safe() and (self.off_us is None or since >= self.off_us):
            self.state = OFF
            if self.off_us is None:
                self._report(True, "")
            else:
                self._power_on()
        elif since > (self.off_us or 0) + GIVE_UP_us:
            self.state = OFF
            w = [w for w in self.cutting if not w.safe][0]
            self._report(False, "unsafe: rail %d stands at %d mV; power stays off" % (w.rail, w.mV(w.v)))

    def _power_on(self):
        off = word(OPEN, DEAD_us * self.pulse.per_us)
        now = ticks_us()
        self.pulse.step(off, word(ON, SHORTEST))
        now = ticks_add(now, DEAD_us)
        self.clock.update()
        self.on_us = (self.clock.wraps << 30) + self.clock.ticks + ticks_diff(now, self.clock.ticks)
        self.rising_since = now
        for w in self.cutting:
            w.keep()
        self.state = RISING

    def _watch_rise(self):
        since = ticks_diff(ticks_us(), self.rising_since)
        high = since > 2000
        for w in self.cutting:
            high = high and w.back
        if high or since > RISE_us:
            self._end(high, "" if high else "a rail did not come back to 90 % of what it was")

    def _end(self, ok, why):
        """The cut is over: let the gates go, which leaves the rails on, and tell."""
        self.pulse.stop()
        self._watchdog(False)
        self.state = IDLE
        self._report(ok, why)

    def _report(self, ok, why):
        rails = [w.report(self.profile == "glitch") for w in self.cutting] if self.fired_us is not None else []
        about = {
            "token": self.cut_token,
            "fired_us": self.fired_us,
            "off_us": self.on_us - self.fired_us if self.on_us is not None and self.fired_us is not None else None,
            "on_us": self.on_us,
            "ok": ok,
            "why": why,
            "rails": rails,
        }
        self.link.say(wire.CUT_REPORT, json.dumps(about))

    def _watchdog(self, on):
        if on and not self.wdt:
            self.wdt = machine.WDT(timeout=WATCHDOG_ms)
        elif not on and self.wdt:
            registers.watchdog_off()
            self.wdt = None
