"""A SIMULATED supply rail after its switch: current and voltage at the sensor, whatever the gates do.

While it is on, they are those of its load (feed_reader.py). After the switch comes the capacitance C of the drive.
Opened, it leaves C dV/dt = -P/V - V/R: the drive draws its power of that moment, R is the discharge resistor, while it
is on. Below its under-voltage lock-out the drive is off, which is reported, and a leakage I remains: C dV/dt = -I -
V/R. Through the side-band, while it is joined, the host's pull-ups feed the drive by a resistance S as soon as the rail
is below their voltage U: + (U - V)/S. Closed again, the rail rises evenly, in `rise_ms` from nothing; above the
lock-out the drive is notified that it has power. All of these have solutions in closed form, with G = 1/R + 1/S:
    u = V^2:   u(t) = (u0 + P R) exp(-2 t / R C) - P R,   without R:  u0 - 2 P t / C
    V(t) = W + (V0 - W) exp(-t G / C),  W = (U/S - I) / G,   with G = 0:  V0 - I t / C
"""

from math import exp, log, sqrt

NEVER = (1 << 62) - 1
KEEP_ns = 5_000_000_000  # history is kept this long, for the scope's ring
SLOW_ns = 20_000_000  # a rail without power hardly moves within a conversion from then on
STEP_ns = 100_000
STEADY, ALIVE, DEAD, RISE = 0, 1, 2, 3  # what a rail does


class Phase:
    """What the rail does from t0 (ns) on, beginning at v0 (V). ohms 0: no discharge. fed: by the side-band."""

    def __init__(self, kind, t0, v0, ohms=0.0, watts=0.0, fed=False):
        self.kind, self.t0, self.v0, self.ohms, self.watts, self.fed = kind, t0, v0, ohms, watts, fed


class Load:
    """The drive's side of a switch. side_ohm 0: nothing feeds back; leak_ohm 0: nothing but the drive is across."""

    def __init__(
        self,
        rise_ms,
        bulk_uF=470.0,
        discharge_mOhm=2200.0,
        uvlo_percent=80.0,
        leak_mA=10.0,
        gate_us=10.0,
        side_V=2.7,
        side_ohm=0.0,
        leak_ohm=0.0,
    ):
        self.farads = bulk_uF * 1e-6
        self.discharge = discharge_mOhm * 1e-3
        self.uvlo = uvlo_percent * 0.01
        self.leak = leak_mA * 1e-3
        self.rise_s = rise_ms * 1e-3
        self.gate_ns = int(gate_us * 1000)  # from the gate's pin to the switch
        self.side_V, self.side_ohm, self.leak_ohm = side_V, side_ohm, leak_ohm


class Supply:
    """window(t0, t1, t2) -> (mean current in A over t0..t1, mean voltage in V over t1..t2); CLOCK_MONOTONIC, ns."""

    def __init__(self, source, load, tell=None, alarm=None):
        """source: the load while the rail is on (feed_reader.py). tell(powered): the drive's supply has crossed its
        lock-out. alarm(t_ns): call due() at that time; the latest counts."""
        self.source, self.volts = source, source.volts
        self.load = load
        self.tell = tell
        self.alarm = alarm
        self.phases = []  # none: steady
        self.plan = []  # [time, function]: what will happen on its own
        self.pins = self.asked = 0
        self.locked = False
        self.watts = 0.0  # of the drive when it was cut
        self.powered = True
        self.joined = True

    def window(self, t0, t1, t2):
        phases = self.phases
        if phases and phases[-1].kind == STEADY and t0 >= phases[-1].t0:
            if t0 >= phases[-1].t0 + KEEP_ns:
                del phases[:]
            return self.source.window(t0, t1, t2)
        if phases and t2 > phases[0].t0:
            return self._sampled(t0, t1, t2)
        return self.source.window(t0, t1, t2)

    def _sampled(self, t0, t1, t2):
        """The same around a cut, by 8 points each; a kink between two of them is seen up to an eighth late."""
        last = self.phases[-1]
        if last.kind == DEAD and t0 >= last.t0 + SLOW_ns:
            return 0.0, self.voltage(last, (t1 + t2) // 2)
        amps = volts = 0.0
        for k in range(8):
            amps += self.at(t0 + (2 * k + 1) * (t1 - t0) // 16)[0]
            volts += self.at(t1 + (2 * k + 1) * (t2 - t1) // 16)[1]
        return amps / 8, volts / 8

    def steps(self, t0, t1):
        """[(until when, current through the shunt)], in order, from t0 until t1 or later; around a cut in pieces of
        STEP_ns."""
        phases = self.phases
        if not phases or t1 <= phases[0].t0 or phases[-1].kind == STEADY and t0 >= phases[-1].t0:
            return self.source.steps(t0, t1)
        return [(t + STEP_ns, self.at(t + STEP_ns // 2)[0]) for t in range(t0, t1, STEP_ns)]

    def at(self, t):
        """(current through the shunt, voltage at the drive) at one moment."""
        phases = self.phases
        first, end = 0, len(phases)
        while first < end:  # the last phase that has begun is phases[first - 1]
            middle = (first + end) // 2
            if phases[middle].t0 <= t:
                first = middle + 1
            else:
                end = middle
        now = phases[first - 1] if first else None
        if now is None or now.kind == STEADY:
            return self.source.window(t, t + 1, t + 1)
        v = self.voltage(now, t)
        if now.kind != RISE:
            return 0.0, v
        amps = self.load.farads * self.volts / self.load.rise_s
        return amps + (self.source.window(t, t + 1, t + 1)[0] if self.powered else self.load.leak), v

    def voltage(self, phase, t):
        """Solution of a phase that is not steady."""
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
        g = (1 / ohms if ohms else 0.0) + (1 / load.side_ohm if phase.fed else 0.0)
        if not g:
            return max(0.0, phase.v0 - load.leak * s / load.farads)
        w = ((load.side_V / load.side_ohm if phase.fed else 0.0) - load.leak) / g
        return max(0.0, w + (phase.v0 - w) * exp(-s * g / load.farads))

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
        elif phase.v0 <= level:
            s = 0.0
        elif ohms:
            s = ohms * load.farads * log((phase.v0 + load.leak * ohms) / (level + load.leak * ohms))
        elif load.leak > 0:
            s = (phase.v0 - level) * load.farads / load.leak
        else:
            return NEVER
        return phase.t0 + int(s * 1e9)

    def gate(self, t, pins):
        """The gates from t on: bit 0 opens the series switch, bit 1 closes the discharge switch."""
        self.asked = pins
        if self.locked:
            pins |= 1
        if pins == self.pins:
            return
        t += self.load.gate_ns
        amps, v = self.at(t)
        opened, self.pins = pins & ~self.pins & 1, pins
        if opened:
            v -= amps * getattr(self.source, "lead", 0.0)  # of the drive; at() is the sensor's
            self.watts = amps * v
        if not pins & 1:
            self._begin(Phase(RISE, t, v))
        elif self.powered:
            self._begin(Phase(ALIVE, t, v, self._ohms(), self.watts))
        else:
            self._dead(t, v)

    def lock_out(self, t, tripped):
        """The lock-out empties the gates from t on, or leaves them alone."""
        self.locked = tripped
        self.gate(t, self.asked)

    def side_band(self, t, joined):
        """The side-band is joined or isolated from t on."""
        if joined == self.joined:
            return
        self.joined = joined
        if self.phases and self.phases[-1].kind == DEAD:
            self._dead(t, self.at(t)[1])

    def _ohms(self):
        """Conductance across the rail: the discharge resistor, while it is on, and the leak; 0.0: none."""
        load = self.load
        if not self.pins & 2:
            return load.leak_ohm
        return load.discharge * load.leak_ohm / (load.discharge + load.leak_ohm) if load.leak_ohm else load.discharge

    def _dead(self, t, v):
        self._begin(
            Phase(DEAD, t, v, self._ohms(), 0.0, bool(self.joined and self.load.side_ohm and v <= self.load.side_V))
        )

    def _begin(self, phase):
        """phase is the latest; what comes next on its own is planned."""
        phases = self.phases
        phases.append(phase)
        while len(phases) > 2 and phases[1].t0 < phase.t0 - KEEP_ns:
            phases.pop(0)
        lockout = self.load.uvlo * self.volts
        del self.plan[:]
        if phase.kind == ALIVE:
            self.plan.append((self.crossing(phase, lockout), self._dies))
        elif phase.kind == DEAD and self.joined and self.load.side_ohm and not phase.fed:
            self.plan.append((self.crossing(phase, self.load.side_V), self._feeds))
        elif phase.kind == RISE:
            if not self.powered:
                self.plan.append((self.crossing(phase, lockout), self._lives))
            self.plan.append(
                (self.crossing(phase, self.source.window(phase.t0, phase.t0 + 1, phase.t0 + 1)[1]), self._settles)
            )
        self._arm()

    def _arm(self):
        if self.alarm:
            self.alarm(self.plan[0][0] if self.plan else NEVER)

    def due(self):
        """The next thing of the plan happens now."""
        t, function = self.plan.pop(0)
        self._arm()
        function(self.phases[-1], t)

    def _dies(self, phase, t):
        self.powered = False
        if self.tell:
            self.tell(False)
        self._dead(t, self.voltage(phase, t))

    def _feeds(self, phase, t):
        self._begin(Phase(DEAD, t, min(self.load.side_V, self.voltage(phase, t)), phase.ohms, 0.0, True))

    def _lives(self, phase, t):
        self.powered = True
        if self.tell:
            self.tell(True)

    def _settles(self, phase, t):
        self._begin(Phase(STEADY, t, 0.0))
