"""The SIMULATED drive's supply rail: current and voltage at the sensor, from the drive's power feed (feed.py).

The drive draws power P. The source with its leads and the shunt have the resistance R, so the drive sees
V = V0 - I R and draws I = P / V, which gives I = (V0 - sqrt(V0^2 - 4 R P)) / 2R. VBUS is sensed on the drive's side of
the shunt. Power is constant within a bin of the feed.

The chip sees the feed `delay_ns` of model time late: the drive is another process, and what it does now may reach its
bin a little after the bin's time.

The switch. Behind it lies the capacitance C of the drive. Opened, it leaves C dV/dt = -P/V - V/R: the drive draws its power of
that moment, R is the discharge resistor, if it is on. Below its under-voltage lock-out the drive is off, which is told, and a
leakage I remains: C dV/dt = -I - V/R. Closed again, the rail rises evenly, in `rise_ms` from nothing; above the lock-out the
drive is told that it has power. All of these have solutions in closed form:
    u = V^2:   u(t) = (u0 + P R) exp(-2 t / R C) - P R,   without R:  u0 - 2 P t / C
    V(t) = (V0 + I R) exp(-t / R C) - I R,                without R:  V0 - I t / C
"""

from array import array
from math import exp, log, sqrt

_HEADER = 64


class FeedLost(Exception):
    """The feed is not one, or its ring no longer holds the time asked for."""


NEVER = 1 << 62
KEEP_ns = 200_000_000  # what has been is kept so long, for the scope's ring
STEADY, ALIVE, DEAD, RISE = 0, 1, 2, 3  # what a rail does


class Phase:
    """What the rail does from t0 (ns) on, beginning at v0 (V). ohms 0: no discharge."""

    def __init__(self, kind, t0, v0, ohms=0.0, watts=0.0):
        self.kind, self.t0, self.v0, self.ohms, self.watts = kind, t0, v0, ohms, watts


class Load:
    """The drive's side of a switch."""

    def __init__(self, bulk_uF=470.0, discharge_mOhm=2200.0, uvlo_percent=80.0, leak_mA=10.0, rise_ms=3.0, gate_us=10.0):
        self.farads = bulk_uF * 1e-6
        self.discharge = discharge_mOhm * 1e-3
        self.uvlo = uvlo_percent * 0.01
        self.leak = leak_mA * 1e-3
        self.rise_s = rise_ms * 1e-3
        self.gate_ns = int(gate_us * 1000)  # from the gate's pin to the switch


class Supply:
    """window(t0, t1, t2) -> (mean current in A over t0..t1, mean voltage in V over t1..t2); CLOCK_MONOTONIC, ns."""

    def __init__(self, path, source_mOhm, shunt_uOhm, delay_ns, load=None, tell=None, alarm=None):
        """tell(powered): the drive's supply has crossed its lock-out. alarm(t_ns, function): call it at that time."""
        self.load = load or Load()
        self.tell = tell
        self.alarm = alarm
        self.phases = []  # none: steady
        self.pins = 0
        self.powered = True
        self.file = open(path, "rb", 0)
        head = self.file.read(_HEADER)
        if len(head) != _HEADER or head[:8] != b"SSDRPWR1":
            raise FeedLost("expected a power feed in %s, seen %r" % (path, head[:8]))
        self.bins = int.from_bytes(head[8:12], "little")
        self.bin_ns = int.from_bytes(head[12:16], "little")
        self.t0 = int.from_bytes(head[16:24], "little")
        self.dilation = int.from_bytes(head[24:28], "little")
        self.volts = int.from_bytes(head[28:32], "little") * 1e-3
        self.ohms = source_mOhm * 1e-3 + shunt_uOhm * 1e-6
        self.delay = delay_ns
        self.slots = array("I", [0] * 2)
        self.amps = [0.0]

    def window(self, t0, t1, t2):
        phases = self.phases
        if phases and phases[-1].kind == STEADY and t0 >= phases[-1].t0:
            if t0 >= phases[-1].t0 + KEEP_ns:
                del phases[:]
            return self._steady(t0, t1, t2)
        if phases and t2 > phases[0].t0:
            return self._sampled(t0, t1, t2)
        return self._steady(t0, t1, t2)

    def _sampled(self, t0, t1, t2):
        """The same around a cut, by 8 points each; a kink between two of them is seen up to an eighth late."""
        amps = volts = 0.0
        for k in range(8):
            amps += self.at(t0 + (2 * k + 1) * (t1 - t0) // 16)[0]
            volts += self.at(t1 + (2 * k + 1) * (t2 - t1) // 16)[1]
        return amps / 8, volts / 8

    def at(self, t):
        """(current through the shunt, voltage at the drive) at one moment."""
        now = None
        for phase in self.phases:
            if phase.t0 <= t:
                now = phase
        if now is None or now.kind == STEADY:
            return self._steady(t, t + 1, t + 1)
        v = self.voltage(now, t)
        if now.kind != RISE:
            return 0.0, v
        amps = self.load.farads * self.volts / self.load.rise_s
        return amps + (self._steady(t, t + 1, t + 1)[0] if self.powered else self.load.leak), v

    def voltage(self, phase, t):
        """Of a phase that is not steady."""
        s = (t - phase.t0) * 1e-9
        load, ohms = self.load, phase.ohms
        if phase.kind == RISE:
            return phase.v0 + self.volts * s / load.rise_s
        if phase.kind == ALIVE:
            u = phase.v0 * phase.v0
            if ohms:
                u = (u + phase.watts * ohms) * exp(-2 * s / (ohms * load.farads)) - phase.watts * ohms
            else:
                u -= 2 * phase.watts * s / load.farads
            return sqrt(max(0.0, u))
        if ohms:
            return max(0.0, (phase.v0 + load.leak * ohms) * exp(-s / (ohms * load.farads)) - load.leak * ohms)
        return max(0.0, phase.v0 - load.leak * s / load.farads)

    def crossing(self, phase, level):
        """When a phase crosses a level (V), NEVER if it does not. ns."""
        load, ohms = self.load, phase.ohms
        if phase.kind == RISE:
            s = max(0.0, (level - phase.v0) * load.rise_s / self.volts)
        elif phase.kind == ALIVE:
            u0, u1, p = phase.v0 * phase.v0, level * level, phase.watts
            if u0 <= u1:
                s = 0.0
            elif ohms:
                s = ohms * load.farads / 2 * log((u0 + p * ohms) / (u1 + p * ohms))
            elif p > 0:
                s = (u0 - u1) * load.farads / (2 * p)
            else:
                return NEVER
        else:
            return NEVER
        return phase.t0 + int(s * 1e9)

    def gate(self, t, pins):
        """The gates from t on: bit 0 opens the series switch, bit 1 closes the discharge switch."""
        if pins == self.pins:
            return
        t += self.load.gate_ns
        amps, v = self.at(t)
        self.pins = pins
        ohms = self.load.discharge if pins & 2 else 0.0
        if not pins & 1:
            kind, watts = RISE, 0.0
        elif self.powered:
            kind, watts = ALIVE, amps * v
            for phase in self.phases:
                if phase.kind == ALIVE:
                    watts = phase.watts  # the current through the switch is gone already
        else:
            kind, watts = DEAD, 0.0
        self._begin(Phase(kind, t, v, ohms, watts))

    def _begin(self, phase):
        """phase is the latest; the next one by itself is planned."""
        self.phases.append(phase)
        if phase.kind == ALIVE:
            self._plan(phase, self.crossing(phase, self.load.uvlo * self.volts), self._dies)
        elif phase.kind == RISE:
            if not self.powered:
                self._plan(phase, self.crossing(phase, self.load.uvlo * self.volts), self._lives)
            self._plan(phase, self.crossing(phase, self._steady(phase.t0, phase.t0 + 1, phase.t0 + 1)[1]), self._settles)

    def _plan(self, phase, t, function):
        if t < NEVER and self.alarm:
            self.alarm(t, lambda: function(phase, t) if self.phases and self.phases[-1] is phase else None)

    def _dies(self, phase, t):
        self.powered = False
        if self.tell:
            self.tell(False)
        self._begin(Phase(DEAD, t, self.voltage(phase, t), phase.ohms))

    def _lives(self, phase, t):
        self.powered = True
        if self.tell:
            self.tell(True)

    def _settles(self, phase, t):
        self._begin(Phase(STEADY, t, 0.0))

    def _steady(self, t0, t1, t2):
        a = (t0 - self.t0) // self.dilation - self.delay
        b = (t1 - self.t0) // self.dilation - self.delay
        c = (t2 - self.t0) // self.dilation - self.delay
        first = a // self.bin_ns
        self._load(first, max(b, c - 1) // self.bin_ns - first + 1)
        current = self._mean(a, b, first)
        return current, self.volts - (self._mean(b, c, first) if c > b else current) * self.ohms

    def _mean(self, a, b, first):
        """Mean current over a..b of the bins loaded."""
        amps = self.amps
        size = self.bin_ns
        if b <= a:
            return amps[0]
        k = a // size - first
        end = (first + k + 1) * size
        if b <= end:
            return amps[k]
        total = (end - a) * amps[k]
        while True:
            k += 1
            if end + size >= b:
                return (total + (b - end) * amps[k]) / (b - a)
            total += size * amps[k]
            end += size

    def _load(self, first, n):
        """Currents of n bins from bin number `first` on, into self.amps."""
        if len(self.slots) != 2 * n:
            self.slots = array("I", [0] * (2 * n))
            self.amps = [0.0] * n
        slots, amps = self.slots, self.amps
        slot = first % self.bins
        run = min(n, self.bins - slot)
        self.file.seek(_HEADER + 8 * slot)
        if run == n:
            self.file.readinto(slots)
        else:  # the ring's end lies between
            split = array("I", self.file.read(8 * run))
            self.file.seek(_HEADER)
            split.extend(array("I", self.file.read(8 * (n - run))))
            self.slots = slots = split
        energy = -1
        amp = 0.0
        for k in range(n):
            tag = slots[2 * k]
            e = slots[2 * k + 1] if tag == (first + k) & 0xFFFFFFFF else self._empty(tag, first + k)
            if e != energy:
                energy = e
                amp = self._current(e / self.bin_ns)
            amps[k] = amp

    def _empty(self, tag, number):
        """Energy of a bin that is not there: 0, unless the ring has gone past it."""
        if number >= 0 and 0 < (tag - number) & 0xFFFFFFFF < 0x80000000:
            raise FeedLost("the board fell behind the power feed by more than its ring holds")
        return 0

    def _current(self, watts):
        if self.ohms == 0:
            return watts / self.volts
        d = self.volts * self.volts - 4 * self.ohms * watts
        if d <= 0:  # more than the source can deliver
            return self.volts / (2 * self.ohms)
        return (self.volts - sqrt(d)) / (2 * self.ohms)
