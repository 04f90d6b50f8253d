"""What a SIMULATED drive draws, from its power feed (feed.py) or constant: current and voltage at the sensor while the
rail is on.

The drive draws power P. The source with its leads, the shunt and the leads to the drive have the resistance R, so the
drive sees V = V0 - I R and draws I = P / V, which gives I = (V0 - sqrt(V0^2 - 4 R P)) / 2R. VBUS is sensed on the
drive's side of the shunt, before the leads to the drive. Power is constant within a bin of the feed.

The chip sees the feed `delay_ns` of model time late: the drive is another process, and its current work may reach its
bin a little after the bin's time.
"""

from array import array
from math import sqrt

_HEADER = 64


class FeedLost(Exception):
    """The feed is not one, or its ring no longer holds the time asked for."""


class Constant:
    """A load that draws `amps` at `volts`, at the end of leads from the sensor."""

    def __init__(self, amps, volts, lead_mOhm=0):
        self.amps, self.volts, self.lead = amps, volts, lead_mOhm * 1e-3
        self.sensed = volts + amps * self.lead

    def window(self, t0, t1, t2):
        return self.amps, self.sensed

    def steps(self, t0, t1):
        return [(t1, self.amps)]

    def at(self, t):
        return self.amps, self.sensed


class Feed:
    def __init__(self, path, source_mOhm, shunt_uOhm, delay_ns, share=1.0, volts=None, lead_mOhm=0):
        """share: how much of the drive's power this rail carries. volts: of the open supply; None: from the feed."""
        self.file = open(path, "rb", 0)
        head = self.file.read(_HEADER)
        if len(head) != _HEADER or head[:8] != b"SSDRPWR1":
            raise FeedLost("expected a power feed in %s, seen %r" % (path, head[:8]))
        self.bins = int.from_bytes(head[8:12], "little")
        self.bin_ns = int.from_bytes(head[12:16], "little")
        self.t0 = int.from_bytes(head[16:24], "little")
        self.dilation = int.from_bytes(head[24:28], "little")
        self.volts = volts or int.from_bytes(head[28:32], "little") * 1e-3
        self.share = share
        self.before = source_mOhm * 1e-3 + shunt_uOhm * 1e-6  # the sensor's voltage
        self.lead = lead_mOhm * 1e-3
        self.ohms = self.before + self.lead
        self.delay = delay_ns
        self.slots = array("I", [0] * 2)
        self.amps = [0.0]
        self.energy = 0  # of the only bin

    def window(self, t0, t1, t2):
        """(mean current in A over t0..t1, mean voltage in V over t1..t2); CLOCK_MONOTONIC, ns."""
        if self.bins == 1:
            self.file.seek(_HEADER)
            self.file.readinto(self.slots)
            if self.slots[1] != self.energy:
                self.energy = self.slots[1]
                self.amps[0] = self._current(self.energy * self.share / self.bin_ns)
            return self.amps[0], self.volts - self.amps[0] * self.before
        a = (t0 - self.t0) // self.dilation - self.delay
        b = (t1 - self.t0) // self.dilation - self.delay
        c = (t2 - self.t0) // self.dilation - self.delay
        first = a // self.bin_ns
        self._load(first, max(b, c - 1) // self.bin_ns - first + 1)
        current = self._mean(a, b, first)
        return current, self.volts - (self._mean(b, c, first) if c > b else current) * self.before

    def steps(self, t0, t1):
        """[(until when, current in A)], in order, from t0 until t1 or later; CLOCK_MONOTONIC, ns."""
        if self.bins == 1:
            return [(t1, self.window(t0, t1, t1)[0])]
        first = ((t0 - self.t0) // self.dilation - self.delay) // self.bin_ns
        last = ((t1 - self.t0) // self.dilation - self.delay) // self.bin_ns
        self._load(first, last - first + 1)
        ends = lambda k: self.t0 + ((first + k + 1) * self.bin_ns + self.delay) * self.dilation
        return [(ends(k), self.amps[k]) for k in range(last - first + 1)]

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
        else:  # the ring's end is between
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
                amp = self._current(e * self.share / self.bin_ns)
            amps[k] = amp

    def _empty(self, tag, number):
        """Energy of a bin that is not there: 0, unless the ring has gone past it."""
        if number >= 0 and 0 < (tag - number) & 0xFFFFFFFF < 0x80000000:
            raise FeedLost("the board lagged the power feed by more than its ring holds")
        return 0

    def _current(self, watts):
        if self.ohms == 0:
            return watts / self.volts
        d = self.volts * self.volts - 4 * self.ohms * watts
        if d <= 0:  # more than the source can deliver
            return self.volts / (2 * self.ohms)
        return (self.volts - sqrt(d)) / (2 * self.ohms)
