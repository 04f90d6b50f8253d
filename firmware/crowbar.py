"""The discharge resistor of a rail: the energy that goes into it, and when its switch must let go.

It is for pulses: 72 mJ at most from a rail that falls. On one that does not, because its series switch is short or
because something else feeds it, it would burn with 18 W for ever. V^2 / R is integrated from the sensor's readings,
of a ramp the share of the time in which its pulses are closed: at the time t of T that share is R C / (T - t)."""

from micropython import const

MOST_mJ = 500  # seven times what 1000 uF hold at 12 V
ALWAYS_mW = 250  # what a resistor of 2 W bears for ever, in heat too: it does not count
STILL = 30  # % of the voltage before: so high is not a rail of 1000 uF that has had ten times R C to fall
SILENT_us = 100_000
_FINE_nV = const(10_000_000)  # voltages are counted in steps of 10 to 20 mV
_LONGEST_us = const(32_767)  # this and the next: their product is below 2**29
_HIGHEST = const(16_383)
_LARGEST = const(500_000_000)
HEAT = "%d mJ had gone into its resistor" % MOST_mJ
HIGH = "the rail did not fall"
SILENT = "no readings came from a rail that was high"
GAVE_UP = "the rail was not low in time, the rig gave up"


class Resistor:
    """The crowbar of one rail. `sample` allocates nothing: heat counts squares of voltage steps, / 256, times us."""

    def __init__(self, mOhm, lsb2_nV, ticks_diff):
        """lsb2_nV: twice the LSB of the readings."""
        self.mOhm, self.ticks_diff = mOhm, ticks_diff
        self.shift = 0
        while lsb2_nV << self.shift < 2 * _FINE_nV:
            self.shift += 1
        step = lsb2_nV << self.shift >> 1
        self.square = 256 * step * step  # nV^2
        self.most = min(MOST_mJ * mOhm * 10**18 // self.square, _LARGEST)
        self.always = ALWAYS_mW * mOhm * 10**12 // self.square
        self.begin(False, 0, 0)

    def begin(self, closes, fall_us, tau_us):
        """A cut is to come. closes: its profile closes the discharge switch, as a ramp does by pulses if it has a
        fall_us, then with the rail's R C in us."""
        self.closes, self.fall_us, self.tau_us = closes, fall_us, tau_us
        self.closed = False
        self.heat = 0
        self.why = ""  # it must let go, or has

    def edge(self, tick, before):
        """The cut has fired; before: the last reading before it, raw."""
        self.closed = self.closes
        self.stamp, self.v = tick, before
        self.high = before * STILL // 100
        self.fallen_us = self.fall_us + 10 * self.mOhm

    def sample(self, stamp, t, v):
        """A reading, t us after the edge. Nothing is allocated."""
        if not self.closed:
            return
        dt = min(self.ticks_diff(stamp, self.stamp), _LONGEST_us)
        u = min((v + self.v) >> self.shift + 1, _HIGHEST)
        u = min(u * u >> 8, _HIGHEST)
        self.stamp, self.v = stamp, v
        left = self.fall_us - t
        if u > self.always and self.heat < self.most and dt > 0:
            self.heat += u * dt // (left // self.tau_us) if left > self.tau_us > 0 else u * dt
        if not self.why:
            if self.heat >= self.most:
                self.why = HEAT
            elif t > self.fallen_us and v > self.high:
                self.why = HIGH

    def must_let_go(self, now):
        """True if it has taken enough energy, or a rail that was high has no readings."""
        if not self.closed:
            return False
        if not self.why and self.ticks_diff(now, self.stamp) > SILENT_us:
            u = min(self.v >> self.shift, _HIGHEST)
            if u * u >> 8 > self.always:
                self.why = SILENT
        return bool(self.why)

    def opens(self):
        """Its switch is open from now on."""
        self.closed = False

    def mJ(self):
        """Energy taken since the cut, None if it was not to close."""
        return self.heat * self.square // (self.mOhm * 10**18) if self.closes else None
