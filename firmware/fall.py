"""How a rail falls and comes back, from its sensor's readings."""

from time import ticks_diff

from crowbar import Resistor


class Watch:
    """The voltage of one rail around a cut, from its sensor's VBUS readings. `sample` allocates nothing."""

    def __init__(self, sampler, discharge_mOhm):
        self.sampler = sampler
        self.rail = sampler.rail["rail"]
        about = sampler.describe()
        self.conversion_us = about["conversion_ns"] // 1000
        self.lsb2 = int(2 * about["vbus_lsb_nV"])  # twice, because the INA228's is n + 1/2 nV
        self.crowbar = Resistor(discharge_mOhm, self.lsb2, ticks_diff)
        self.v = 0  # latest reading, raw
        self.begin(0, 0)

    def raw(self, mV):
        return mV * 2_000_000 // self.lsb2

    def mV(self, raw):
        return raw * self.lsb2 // 2_000_000

    def begin(self, residual_raw, residual_us):
        self.residual_raw = residual_raw
        self.residual_us = residual_us
        self.fired = self.after = False
        self.before = self.n = 0
        self.kept_v = -1  # as it was right before power came back
        self.lowest = 0xFFFFF
        self.highest = 0
        self.readings = 0
        self.t90 = self.t10 = self.low = -1  # us after the edge
        self.safe = False
        self.is_low = False
        self.low_since = 0
        self.back = False

    def edge(self, tick):
        self.tick = tick
        self.v90 = self.before * 9 // 10
        self.v10 = self.before // 10
        self.last_t = 0
        self.last_v = self.before
        self.fired = True
        self.crowbar.edge(tick, self.before)

    def silent(self):
        """No readings for a while: the known state of the rail is no longer valid."""
        self.safe = self.is_low = False

    def _crossing(self, t, v, level):
        if t - self.last_t > 30_000 or v >= self.last_v:
            return t
        return self.last_t + (t - self.last_t) * (self.last_v - level) // (self.last_v - v)

    def sample(self, stamp, v):
        self.v = v
        self.readings += 1
        if v > self.highest:
            self.highest = v
        if not self.fired:
            self.before = v
            return
        t = ticks_diff(stamp, self.tick)
        if t > 0 or self.after:
            self.crowbar.sample(stamp, t, v)
        else:
            self.before = v
            self.v90 = v * 9 // 10
            self.v10 = v // 10
            self.last_v = v
            return
        self.after = True
        if self.low < 0:
            self.n += 1
        if v < self.lowest:
            self.lowest = v
        if self.t90 < 0 and v < self.v90:
            self.t90 = self._crossing(t, v, self.v90)
        if self.t10 < 0 and v < self.v10:
            self.t10 = self._crossing(t, v, self.v10)
        self.last_t = t
        self.last_v = v
        self.back = v >= self.v90
        if v >= self.residual_raw:
            self.safe = self.is_low = False
        elif not self.is_low:
            self.is_low = True
            self.low_since = stamp
            if self.low < 0:
                self.low = t
        elif not self.safe and ticks_diff(stamp, self.low_since) >= self.residual_us:
            self.safe = True

    def keep(self):
        """Power comes back now."""
        self.kept_v, self.kept_safe = self.v, self.safe
        self.back = False

    def report(self, by_itself):
        """The rail's entry in C. by_itself: the PIO gave power back, whatever the rail did."""
        stored = self.kept_v >= 0
        residual = (self.lowest if self.n else self.v) if by_itself else self.kept_v if stored else self.v
        fell = self.t10 >= 0 and self.t90 >= 0
        held = self.crowbar.closes and not self.crowbar.why and not by_itself
        return {
            "rail": self.rail,
            "before_mV": self.mV(self.before),
            "t90_10_us": self.t10 - self.t90 if fell else None,
            "residual_mV": self.mV(residual),
            "low_us": self.low if self.low >= 0 else None,
            "samples": self.n,
            "safe": self.kept_safe if stored else self.safe,
            "crowbar_mJ": self.crowbar.mJ(),
            "released": self.crowbar.why or None,
            "fed_mA": self.mV(residual) * 1000 // self.crowbar.mOhm if held else None,
        }
