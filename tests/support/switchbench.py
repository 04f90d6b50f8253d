"""For tests: firmware/switch.py, its very source on CPython, with gates, ticks and readings that the test sets."""

import json
import types

import vipersource

from ssdrig.meter import wire

WRAP = 1 << 30
NOW_us = WRAP - 3_000_000  # ticks_us() wraps within most tests
MHz = 125


class Time:
    def __init__(self):
        self.us, self.step_us = NOW_us, 0

    def sleep_us(self, us):
        self.us += us

    def ticks_us(self):
        self.us += self.step_us
        return self.us % WRAP

    def ticks_add(self, a, b):
        return (a + b) % WRAP

    def ticks_diff(self, a, b):
        return (a - b + WRAP // 2) % WRAP - WRAP // 2


class Pulse:
    """Gates that only note what they are given."""

    per_us = MHz

    def __init__(self, board, gates, sync):
        self.board, self.gates, self.sync = board, gates, sync
        board.did.append(("gates", tuple(gates), sync))
        self.late, self.has_fired, self.after_ns, self.more = 0, False, 56, False

    def load(self, edge, gpio, count, steps):
        self.board.did.append(("load", edge, gpio, count, steps))

    def start(self, at=-1):
        if self.late:
            self.late -= 1
            return -1
        self.board.did.append(("start", at))
        return self.board.time.us % WRAP if at < 0 else at

    def fired(self):
        return self.has_fired

    def after_start_ns(self):
        return self.after_ns

    def stepping(self):
        return self.more

    def step(self, gate, *words):
        self.board.did.append(("step", gate, *words))

    def let_go(self, gate):
        self.board.did.append(("let go", gate))

    def stop(self, open_rails=()):
        self.board.did.append(("stop", *open_rails))


class Sampler:
    def __init__(self, number):
        self.rail, self.running, self.watch = {"rail": number, "nominal_mV": 5000}, True, None
        self.guard = Guard()

    def describe(self):
        return {"vbus_lsb_nV": 1_000_000, "conversion_ns": 3_000_000}  # 1 mV


class Guard:
    """A guard that only counts what is asked of it."""

    def __init__(self):
        self.armed = True

    def arm(self):
        self.armed = True

    def disarm(self):
        self.armed = False

    def finding(self, what):
        return NOW_us, {"quantity": what}


class Link:
    def __init__(self, did, logged):
        self.did, self.logged = did, logged

    def say(self, kind, text):
        if kind == wire.LOG:
            self.logged.append(text)
            return
        assert kind in (wire.CUT_REPORT, wire.TRIP)
        self.did.append(("report" if kind == wire.CUT_REPORT else "trip", json.loads(text)))

    def answer(self, buf, n):
        self.did.append(("frame", bytes(buf[:n])))
        assert len(buf) == n + 4
        return True


class Board:
    """A switch with its surroundings; `did` has all that it did, in order."""

    def __init__(self, rails=(0, 1), sideband=None, measured=(0, 1), mOhm=2200, LEAST_us=100, scratch=0):
        self.did, self.logged, self.time = [], [], Time()
        self.fed, self.watchdogs = 0, []
        time = self.time
        board = self

        class WDT:
            def __init__(self, timeout):
                board.did.append(("watchdog", timeout))

            def feed(self):
                board.fed += 1

        word = lambda pins, cycles: pins | (cycles - 4) << 2
        pulse = types.SimpleNamespace(ON=0, OPEN=1, DISCHARGE=3, RELEASED=0, RESET=1, SEALED=3)
        pulse.MACHINES, pulse.SHORTEST, pulse.LEAD = 4, 4, 7
        pulse.Pulse, pulse.word = lambda gates, sync: Pulse(self, gates, sync), word
        pin = lambda gpio, mode, value=None: self.did.append(
            ("pin", gpio, mode) if value is None else ("pin", gpio, value)
        )
        pin.IN, pin.OUT = "in", "out"
        machine = types.SimpleNamespace(freq=lambda: MHz * 10**6, WDT=WDT, Pin=pin)
        self.scratch = scratch
        registers = types.SimpleNamespace(watchdog_off=lambda: self.did.append(("watchdog off",)))
        registers.remembered = lambda: self.scratch
        registers.remember = lambda rails: setattr(self, "scratch", rails)
        ramp = types.SimpleNamespace(FASTEST=3, SLOWEST=1000, LEAST_us=LEAST_us, words=lambda *a: ("ramp", *a))
        fakes = {"time": time, "machine": machine, "registers": registers, "pulse": pulse, "ramp": ramp, "wire": wire}
        for name in ("clock64", "crowbar", "fall", "cut"):
            fakes[name] = vipersource.load(name, {}, fakes)
        self.module_of = fakes
        self.Refused = fakes["cut"].Refused
        self.clock = fakes["clock64"].Clock64()
        self.module = vipersource.load("switch", {}, fakes)
        self.lock_outs = vipersource.load("lock_outs", {}, fakes)
        self.samplers = [Sampler(number) for number in measured]
        rows = [{"rail": rail, "gate": 10 + 2 * rail, "discharge_mOhm": mOhm} for rail in rails]
        self.switch = self.module.Switch(rows, sideband, 22, self.samplers, Link(self.did, self.logged), self.clock)
        self.taken()

    def taken(self):
        """What was done since the last call."""
        did, self.did[:] = list(self.did), []
        return did

    def pass_us(self, us):
        self.time.us += us
        self.clock.update()

    def sample(self, rail, mV, raw=0):
        frame = bytearray(3) + bytes([100, 0]) + mV.to_bytes(3, "little") + (raw & 0xFFFFFF).to_bytes(3, "little")
        self.switch.sample(rail, self.time.us % WRAP, frame, 3)

    def cut(self, **how):
        self.switch.arm()
        self.taken()
        how = {"token": self.switch.token, "rails": [0], "profile": "float", "when": {"now": True}} | how
        self.switch.cut(how)
        return self.switch

    def fire(self, mV=5000, **how):
        """A cut at once that has fired; its rails stood at mV."""
        switch = self.cut(**how)
        for w in switch.cutting:
            self.sample(w.rail, mV)
        switch.turn()
        self.fired_at = self.time.us
        switch.pulse.has_fired = True
        switch.turn()
        return switch

    def off(self, **how):
        """A cut whose rails were low for long enough."""
        switch = self.fire(**how)
        for _ in range(2):
            self.pass_us(600_000)
            for w in switch.cutting:
                self.sample(w.rail, 100)
        switch.turn()
        return switch

    def report(self):
        """The only report since the last call."""
        (about,) = [what[1] for what in self.taken() if what[0] == "report"]
        return about
