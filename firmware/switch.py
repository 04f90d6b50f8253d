"""Takes power from the drive, measures how it goes, and gives it back when it is safe. wire.py has the commands.

    idle --cut--> waiting --trigger--> fired --rails low--> off --on--> rising --rails high--> (held, PERST# still low)
    --> idle
    idle --lock-outs--> emptying --rails low--> testing --20 ms--> returning --> idle (lock_outs.py)
    any --trip--> tripped --on--> idle (with a side-band: returning, PERST# still low, then idle)
A rail that passes its limits (protect.py) is opened immediately and stays open until `on`, over a reset of the board
too. With it the side-band is sealed, because the host must not feed a drive without power, and then the crowbar closes.

The rails are on unless a state machine (pulse.py) drives their gates. From its start on the watchdog runs: firmware
that hangs is reset, which switches them on. cut.py reads a cut's options.

The side-band, where board.py names it, goes with the rails: isolated and PERST# low in the cycle of the cut, joined
when the rails are back, PERST# released PERST_us later. A cut that ends on its own leaves it alone.
"""

import json
import os
from time import sleep_us, ticks_add, ticks_diff, ticks_us

import machine
import registers
import wire
from clock64 import put32
from crowbar import GAVE_UP
from cut import DEAD_us, PROFILES, Cut, Refused, rails_of
from fall import Watch
from machine import Pin
from pulse import LEAD, ON, OPEN, RELEASED, RESET, SHORTEST, Pulse, word

IDLE, WAITING, STARTED, FIRED, OFF, RISING, HELD = "idle", "waiting", "started", "fired", "off", "rising", "held"
TRIPPED, RETURNING = "tripped", "returning"
VALID_us = 10_000_000  # of a token
SOON_us = 500_000  # a cut at a time is handed to the PIO this long before it
GIVE_UP_us = 10_000_000  # after off_ms, for the residual to fall
RISE_us = 500_000
# from 90 % of the rails on: PCIe wants PERST# low for 100 ms after power is stable (CEM specification, T_PVPERL)
PERST_us = 120_000
RISING_us = 20_000  # a soft start, four times: hardware/spice/README.md
WATCHDOG_ms = 8000
# the report C after something other than a cut
_OF_NO_CUT = {"token": 0, "fired_us": None, "off_us": None, "on_us": None, "perst_us": None, "rails": []}
NEVER = -(1 << 29)  # samples in a row, which no count from here on reaches


class Switch:
    """The rails' switches: one cut at a time, in the states named above. After a reset or a defect all rails are on."""

    def __init__(self, rows, sideband, sync, samplers, link, clock):
        """rows, sideband, sync: board.SWITCH, SIDEBAND, SYNC."""
        measured = [s.rail["rail"] for s in samplers]
        self.rows = {row["rail"]: row for row in rows if row["rail"] in measured}
        self.sideband, self.sync = sideband, sync
        self.link, self.clock = link, clock
        mOhm = {rail: row["discharge_mOhm"] for rail, row in self.rows.items()}
        self.watches = {s.rail["rail"]: Watch(s, mOhm[s.rail["rail"]]) for s in samplers if s.rail["rail"] in mOhm}
        for s in samplers:
            s.watch = self
        self.state = IDLE
        self.token = 0
        self.armed = False
        self.armed_at = 0
        self.now = None  # the Cut of this state
        self.cutting = []  # its watches
        self.need = self.count_rail = self.count = self.left = 0
        self.below = False
        self.wdt = None
        self.pulse = None
        self.lock_outs = None  # those of lock_outs.py, if the board can trip them
        self.testing = None  # the same, while their test runs
        self.outcome = True, ""
        self.tested = None  # of C, after their test
        self.scope = None  # notified when a cut has fired
        self.tripped = {}  # rails that were opened for their limits: the sampler of each
        gates = [row["gate"] for row in self.rows.values()]
        Pulse(gates + [sideband] if sideband else gates, sync).stop()
        before = registers.remembered()
        for s in samplers:
            rail = s.rail["rail"]
            if before >> rail & 1 and rail in self.rows:
                self._open(s, ticks_us())

    def describe(self):
        """For H."""
        if not self.rows:
            return None
        return {
            "rails": [
                dict(rail=rail, profiles=[profile.name for profile in PROFILES], discharge_mOhm=row["discharge_mOhm"])
                for rail, row in self.rows.items()
            ],
            "sideband": bool(self.sideband),
            "lock_outs": self.lock_outs is not None,
            "resolution_ns": 1000_000_000 // machine.freq(),
            "dead_us": DEAD_us,
            "state": self.state,
            "off": list(self.tripped)
            or ([w.rail for w in self.cutting] if self.testing or self.state in (FIRED, OFF) else []),
            "tripped": list(self.tripped),
        }

    # ---- commands

    def arm(self):
        if not self.rows:
            raise Refused("this board has no switch")
        self.token = int.from_bytes(os.urandom(4), "little")
        self.armed = True
        self.armed_at = ticks_us()
        buf = bytearray(wire.A_END + 4)
        buf[0] = wire.ARMED
        put32(buf, wire.A_TOKEN, self.token)
        put32(buf, wire.A_VALID, VALID_us // 1000)
        self.link.answer(buf, wire.A_END)

    def cut(self, how):
        """how: the object of `c`. Refused, and nothing is touched, if anything in it differs from wire.py."""
        self._check_token(how)
        if self.state != IDLE:
            raise Refused("a cut is %s" % self.state)
        now = Cut(how, self.rows, self.watches, self.clock, bool(self.sideband))
        gates = [self.rows[rail]["gate"] for rail in now.rails]
        pulse = Pulse(gates + [self.sideband] if now.sideband else gates, self.sync)
        steps = now.steps(pulse.per_us)
        # nothing below can be refused
        self.now, self.pulse, self.steps, self.cutting = now, pulse, steps, now.watches
        self.fired_us = self.on_us = self.perst_us = None
        for k, w in enumerate(self.cutting):
            w.begin(w.raw(now.residual_mV), now.residual_us)
            w.crowbar.begin(now.profile.discharges, now.profile.fall_us, now.profile.tau_us(k))
        self.count, self.need, self.level, self.below = NEVER if now.crosses else 0, now.need, now.level, now.below
        self.count_rail, self.left = now.count_rail, now.nth
        if now.at is None:
            delay = max(0, now.delay_us * pulse.per_us - LEAD)
            self.pulse.load(now.edge, now.gpio, now.turns if now.edge else delay, steps)
            self.patience_us = (3 * now.turns // pulse.per_us if now.edge else now.delay_us) + 1000
        self.state = WAITING

    def _check_token(self, how):
        armed, self.armed = self.armed, False
        if not isinstance(how, dict):
            raise Refused("a JSON object was expected")
        if not armed or how.get("token") != self.token:
            raise Refused("not armed with this token, or it is too old")

    def _go(self):
        """Start the loaded cut now. Nothing is allocated."""
        self._watchdog(True)  # from here on the rails may go off without the firmware
        self.started = self.pulse.start()
        self.state = STARTED

    def _go_at(self):
        """The PIO counts from a moment that is set just ahead to the time of the cut."""
        for k in range(4):
            # loading takes 200 us, 900 with three gates and DMA; more, if something came between
            begin = ticks_add(ticks_us(), 400 << k)
            ahead = ticks_diff(self.now.at, begin)
            if ahead < 50:
                break
            self.pulse.load("", 0, ahead * self.pulse.per_us - LEAD, self.steps)
            while ticks_diff(begin, ticks_us()) > 100:
                pass
            self._watchdog(True)
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
        if self.state is TRIPPED:
            self._close_again(how.get("rails"))
            return
        if self.state is RETURNING:  # power is back already; C follows
            self.tested, self.outcome = None, (True, "")
            return
        if not self.testing and self.state not in (FIRED, OFF):
            raise Refused("nothing is off")
        rails = rails_of(how["rails"], self.rows) if how.get("rails") else [w.rail for w in self.cutting]
        if set(rails) != {w.rail for w in self.cutting}:
            raise Refused("rails cut together come back together: %s" % [w.rail for w in self.cutting])
        if self.testing:
            self.end_test(True, "")
            return
        if self.pulse.stepping():
            raise Refused("the ramp has not ended")
        if how.get("unsafe") is not True:
            for w in self.cutting:
                if not w.safe:
                    raise Refused("rail %d is at %d mV: not known to be low for long enough" % (w.rail, w.mV(w.v)))
        self._power_on()

    def begin_test(self, how):
        """Open every rail for the test of the lock-outs."""
        self._check_token(how)
        if set(how) != {"token"}:
            raise Refused("a token alone was expected")
        if self.state is not IDLE:
            raise Refused("a cut is %s" % self.state)
        self._watchdog(True)
        if self.sideband:
            self._seal()
        self._open_gates()
        self.testing, self.tested = self.lock_outs, None
        self.cutting = list(self.watches.values())

    def _open_gates(self):
        for row in self.rows.values():
            Pin(row["gate"], Pin.OUT, value=1)

    def release_gates(self):
        """Release the gates of all rails except those that have tripped."""
        for rail, row in self.rows.items():
            if rail not in self.tripped:
                Pin(row["gate"], Pin.IN)

    def _test_over(self):
        """Lock-outs and gates as they were, whatever came of the test; the gates empty in between. A tripped rail
        stays open."""
        self._open_gates()
        self.testing.over()
        self.testing = None
        sleep_us(DEAD_us)
        self.release_gates()
        self._watchdog(False)

    def end_test(self, ok, why):
        """Power for every rail; C follows when PERST# is released."""
        self._test_over()
        self.outcome = ok, why
        self._give_back()

    def stop(self):
        """The stream ends: the rails are unknown from now on. A cut that has not fired is cancelled."""
        for w in self.cutting:
            w.silent()
        if self.testing:
            self.end_test(False, "the stream was stopped")
        if self._pending():
            self._end(False, "called off: the stream was stopped")

    def release(self):
        """All rails on but those that have tripped, whatever there is. Nothing looks at their crowbars any more."""
        if self.pulse:
            self.pulse.stop(self._held())
        for rail in self.tripped:
            Pin(self.rows[rail]["gate"] + 1, Pin.IN)
            self.watches[rail].crowbar.opens()
        if self.testing:
            self._test_over()
            self.state = RETURNING
        if not self.tripped and self.state is RETURNING:
            self._unseal()
        self._watchdog(False)
        self.state = TRIPPED if self.tripped else IDLE

    def _held(self):
        """The pins that hold tripped rails off and their side-band sealed."""
        held = [self.rows[rail]["gate"] for rail in self.tripped]
        return held + [self.sideband, self.sideband + 1] if held and self.sideband else held

    def trip(self, sampler, trip):
        """A rail's guard has found too much of something: it is opened, and this is stated (T). A cut that is under way
        ends, because its gates are released."""
        rail = sampler.rail["rail"]
        row = self.rows.get(rail)
        sampler.guard.disarm()
        why = "rail %d passed its limits" % rail
        testing = self.testing
        cutting = row and not testing and self.state not in (IDLE, TRIPPED, RETURNING)
        if row:
            # before a cut's machines let go: at no moment has the drive PERST# high and no power
            self.tripped[rail] = sampler
            Pin(row["gate"], Pin.OUT, value=1)
            if self.sideband:
                self._seal()
        if cutting:
            self.pulse.stop(self._held())
            self._watchdog(False)
        opened = ticks_us()
        if testing and row:
            self._test_over()
        elif testing:
            self.end_test(False, why)
        if row:
            self._open(sampler, opened)
        if cutting:
            self._report(False, why)
        elif testing and row:
            self.link.say(wire.CUT_REPORT, json.dumps(dict(_OF_NO_CUT, ok=False, why=why)))
        stamp, about = sampler.guard.finding(trip)
        about["rail"], about["t_us"] = rail, self._at(stamp)
        about["opened_us"] = self._at(opened) if row else None
        self.link.say(wire.TRIP, json.dumps(about))

    def _seal(self):
        """PERST# low, the rest of the side-band isolated."""
        Pin(self.sideband, Pin.OUT, value=1)
        Pin(self.sideband + 1, Pin.OUT, value=1)

    def _unseal(self):
        if self.sideband:
            Pin(self.sideband + 1, Pin.IN)
            Pin(self.sideband, Pin.IN)

    def _open(self, sampler, opened):
        """A rail that has tripped: off, the side-band sealed, then the crowbar; kept over a reset."""
        rail = sampler.rail["rail"]
        row, w = self.rows[rail], self.watches[rail]
        Pin(row["gate"], Pin.OUT, value=1)
        if self.sideband:
            self._seal()
        self.tripped[rail] = sampler
        self.tested, self.outcome = None, (True, "")  # of a test that this has ended
        self.state = TRIPPED
        registers.remember(sum([1 << tripped for tripped in self.tripped]))
        sleep_us(DEAD_us)
        # nothing was watched before: from its nominal voltage, so that heat is counted too high at first
        w.begin(0, 0)
        w.before = w.raw(sampler.rail.get("nominal_mV") or 12000)
        w.crowbar.begin(True, 0, 0)
        w.edge(opened)
        Pin(row["gate"] + 1, Pin.OUT, value=1)

    def _close(self):
        """Every rail that has tripped is on again, its crowbar open first. The side-band stays as it is."""
        for rail in self.tripped:
            Pin(self.rows[rail]["gate"] + 1, Pin.IN)
            self.watches[rail].crowbar.opens()
        if self.tripped:
            sleep_us(DEAD_us)
            for rail in self.tripped:
                Pin(self.rows[rail]["gate"], Pin.IN)
            registers.remember(0)
        self.tripped = {}

    def _close_again(self, rails):
        """Power for the rails that tripped: the user has looked."""
        if rails and set(rails_of(rails, self.rows)) != set(self.tripped):
            raise Refused("rails that are open come back together: %s" % list(self.tripped))
        for sampler in self.tripped.values():
            if sampler.guard is not None:
                sampler.guard.arm()
        self._close()
        self._give_back()
        if not self.sideband:
            self._returned()

    def _give_back(self):
        """The rails have power again; C follows when PERST# is released."""
        self.high_at = ticks_us()
        self.on_us, self.perst_us = self._at(self.high_at), None
        if self.sideband:
            Pin(self.sideband + 1, Pin.IN)
        self.state = RETURNING

    def _returned(self):
        self.state = IDLE
        ok, why = self.outcome
        about = dict(_OF_NO_CUT, on_us=self.on_us, perst_us=self.perst_us, ok=ok, why=why)
        if self.tested:
            about["lock_outs"] = self.tested
        self.tested, self.outcome = None, (True, "")
        self.link.say(wire.CUT_REPORT, json.dumps(about))

    def _watch_tripped(self):
        """The crowbars of the rails that have tripped open when they have had enough."""
        now = ticks_us()
        for rail in self.tripped:
            w = self.watches[rail]
            if w.crowbar.must_let_go(now):
                Pin(self.rows[rail]["gate"] + 1, Pin.IN)
                w.crowbar.opens()
                self.link.say(wire.LOG, "rail %d: the crowbar let go: %s" % (rail, w.crowbar.why))

    # ---- what happens on its own

    def sample(self, rail, stamp, frame, at):
        """A sample of a rail, as the wire has it, at frame[at]: called by its sampler. Nothing is allocated."""
        if self.state is IDLE or self.state is RETURNING:
            return
        if self.state is TRIPPED:
            if rail in self.tripped:
                self.watches[rail].sample(stamp, frame[at + 2] | frame[at + 3] << 8 | frame[at + 4] << 16)
            return
        if self.testing and not self.testing.counts(stamp):
            return
        for w in self.cutting:
            if w.rail == rail:
                w.sample(stamp, frame[at + 2] | frame[at + 3] << 8 | frame[at + 4] << 16)
        if self.state is WAITING and self.need and rail == self.count_rail:
            i = frame[at + 5] | frame[at + 6] << 8 | frame[at + 7] << 16
            if i & 0x800000:
                i -= 0x1000000
            self.count = self.count + 1 if (i < self.level if self.below else i > self.level) else 0
            if self.count >= self.need:
                self.left -= 1
                if self.left == 0:
                    self._go()

    def turn(self):
        """Call on every pass of the main loop."""
        if self.armed and ticks_diff(ticks_us(), self.armed_at) > VALID_us:
            self.armed = False
        state = self.state
        if state is IDLE:
            return
        if state is TRIPPED:
            self._watch_tripped()
            return
        if state is RETURNING:
            if ticks_diff(ticks_us(), self.high_at) >= RISING_us + PERST_us:
                if self.sideband:
                    self.perst_us = self._at(ticks_us())
                    self._unseal()
                self._returned()
            return
        if self.wdt:
            self.wdt.feed()
        if self.testing:
            self.testing.turn()
            return
        if state is FIRED or state is OFF:
            now = ticks_us()
            for w in self.cutting:
                if w.crowbar.must_let_go(now):
                    self._let_go(w)
        if state is WAITING:
            if self.now.at is not None:
                if ticks_diff(self.now.at, ticks_us()) < SOON_us:
                    self._go_at()
            elif not self.need and self._all_seen():
                self._go()
        elif state is STARTED:
            if self.pulse.fired():
                self._fired()
            elif ticks_diff(ticks_us(), self.started) > self.patience_us:
                self._end(False, "no edge came" if self.now.edge else "the pulse did not start")
        elif state is FIRED:
            self._watch_fall()
        elif state is RISING:
            self._watch_rise()
        elif state is HELD and ticks_diff(ticks_us(), self.high_at) >= PERST_us:
            self.perst_us = self._at(ticks_us())
            self.pulse.step(self.sideband, word(RELEASED, SHORTEST))
            self._end(True, "")

    def _fired(self):
        after_ns = self.pulse.after_start_ns()
        tick = ticks_add(self.started, after_ns // 1000)
        self.fired_us = self._at(tick)
        self.fired_at = tick
        for w in self.cutting:
            w.edge(tick)
        if self.scope:
            self.scope.event(self.fired_us)
        back_us = self.now.profile.back_us
        if back_us:
            self.on_us = self.fired_us + back_us
            self.rising_since = ticks_add(tick, back_us)
            self.state = RISING
        else:
            self.state = FIRED

    def _let_go(self, w):
        """A rail's crowbar has had enough: it opens, whatever comes of the cut."""
        self.pulse.let_go(self.rows[w.rail]["gate"])
        w.crowbar.opens()
        self.link.say(wire.LOG, "rail %d: the crowbar let go: %s" % (w.rail, w.crowbar.why))

    def _at(self, tick):
        """ticks_us() of about now -> board time."""
        self.clock.update()
        return (self.clock.wraps << 30) + self.clock.ticks + ticks_diff(tick, self.clock.ticks)

    def _pending(self):
        """Is there a cut that has not fired?"""
        return self.state is WAITING or self.state is STARTED and not self.pulse.fired()

    def _all_seen(self):
        """Does each rail have a reading to detect the fall from?"""
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
        off_us = self.now.off_us
        if self._all_safe() and (off_us is None or since >= off_us) and not self.pulse.stepping():
            self.state = OFF
            if off_us is None:
                self._report(True, "")
            else:
                self._power_on()
        elif since > (off_us or self.now.profile.fall_us) + GIVE_UP_us:
            self.state = OFF
            for w in self.cutting:
                if w.crowbar.closed:
                    w.crowbar.why = GAVE_UP
                    self._let_go(w)
            high = ["rail %d is at %d mV" % (w.rail, w.mV(w.v)) for w in self.cutting if not w.safe]
            self._report(False, "unsafe: %s; power stays off" % ", ".join(high))

    def _power_on(self):
        off = word(OPEN, DEAD_us * self.pulse.per_us)
        now = ticks_us()
        for rail in self.now.rails:
            self.pulse.step(self.rows[rail]["gate"], off, word(ON, SHORTEST))
        now = ticks_add(now, DEAD_us)
        self.on_us = self._at(now)
        self.rising_since = now
        for w in self.cutting:
            w.keep()
            w.crowbar.opens()
        self.state = RISING

    def _watch_rise(self):
        now = ticks_us()
        since = ticks_diff(now, self.rising_since)
        high = since > 2000
        for w in self.cutting:
            high = high and w.back
        if high and self.now.sideband:
            self.pulse.step(self.sideband, word(RESET, SHORTEST))
            self.high_at = now
            self.state = HELD
        elif high or since > RISE_us:
            self._end(high, "" if high else "a rail did not return to 90 % of its earlier voltage")

    def _end(self, ok, why):
        """The cut is over: release the gates, which leaves the rails on, and report."""
        self.pulse.stop()
        self._watchdog(False)
        self.state = IDLE
        self._report(ok, why)

    def _report(self, ok, why):
        rails = [w.report(self.now.profile.back_us > 0) for w in self.cutting] if self.fired_us is not None else []
        about = {
            "token": self.now.token,
            "fired_us": self.fired_us,
            "off_us": self.on_us - self.fired_us if self.on_us is not None and self.fired_us is not None else None,
            "on_us": self.on_us,
            "perst_us": self.perst_us,
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
