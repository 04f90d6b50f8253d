"""The fast current channel: an amplifier across a rail's shunt, read every 4 us by the ADC (adc_ring.py), or by a
separate converter, next to one of the rail's voltage (sar_ring.py, a row with "volts").

That is too much for USB, so it is reduced here: for each INTERVAL samples their sum, and the highest sum of any WIDTH
samples in a row (100 us), which ends in it, with its place and the sum of the voltage's samples of the same moments.
Each goes out as one F frame. Samples that were not read before the ring wrapped are counted; so are those of a frame
without room. While the scope has the converters nothing is sent. Nothing here allocates except the first `turn` after
it.
"""

from array import array
from time import ticks_add

import adc_ring
import micropython
import wire
from clock64 import add, put32, put_counter
from micropython import const

RATE = 250_000  # samples/s: one each 4 us
_STEP_us = const(4)
_WIDTH = const(25)
_INTERVAL = const(25_000)  # samples, 100 ms
LIMIT = const(3847)  # counts of 3.1 V: the amplifier's output is good up to 0.2 V below its supply
_PIECE = const(1000)  # samples looked at in a turn, at most, and
_WORTH = const(500)  # at least
_SIZE = const(8192)  # adc_ring.SIZE
_MASK = const(8191)
_ROOM = const(7000)  # samples that may wait: what the ADC writes during a look must not reach them
_LONGEST = const(67_108_864)  # samples that are counted on: four and a half minutes, which ticks can date
_LAST = const(268_000_000)  # samples after which the ring starts over, before the DMA has counted to its end: 18 min
# Words of the state:
_AT = const(0)  # the next sample
_RUN = const(1)  # sum of the latest WIDTH
_FIRST = const(2)  # sample of the interval
_TOTAL = const(3)  # of the interval
_BEST = const(4)  # the highest sum of WIDTH that ends in it, and
_WHERE = const(5)  # the sample with which that ends


@micropython.viper
def scan(p: ptr16, run: int, best: int, ring: ptr16, n: int, state: ptr32):
    """Look at the next n samples, a multiple of WIDTH. p: the ring, too; run, best: of the state. They are the first
    arguments because the compiler keeps these in registers; with that, and five per pass, a sample takes 0.26 us of an
    RP2040, not 0.8."""
    at = int(state[_AT])
    total = int(state[_TOTAL])
    where = int(state[_WHERE])
    end = at + n
    while at < end:
        behind = (at - _WIDTH) & _MASK
        block = at + _WIDTH
        if behind > _SIZE - 2 * _WIDTH:  # the ring's end is between
            while at < block:
                run += int(ring[at & _MASK]) - int(ring[(at - _WIDTH) & _MASK])
                if run > best:
                    best = run
                    where = at
                at += 1
        else:
            p = ptr16(int(ring) + 2 * behind)
            while at < block:
                run += p[25] - p[0]
                if run > best:
                    best = run
                    where = at + 0
                run += p[26] - p[1]
                if run > best:
                    best = run
                    where = at + 1
                run += p[27] - p[2]
                if run > best:
                    best = run
                    where = at + 2
                run += p[28] - p[3]
                if run > best:
                    best = run
                    where = at + 3
                run += p[29] - p[4]
                if run > best:
                    best = run
                    where = at + 4
                at += 5
                p = ptr16(int(p) + 10)
        total += run
    state[_AT] = at
    state[_RUN] = run
    state[_TOTAL] = total
    state[_BEST] = best
    state[_WHERE] = where


@micropython.viper
def window(ring: ptr16, end: int) -> int:
    """Sum of the WIDTH samples before `end`."""
    total = 0
    for k in range(end - _WIDTH, end):
        total += int(ring[k & _MASK])
    return total


@micropython.viper
def limited(ring: ptr16, end: int) -> int:
    """How many of the WIDTH samples before `end` are at the amplifier's limit."""
    n = 0
    for k in range(end - _WIDTH, end):
        if int(ring[k & _MASK]) >= LIMIT:
            n += 1
    return n


class Fast:
    """The channel of one rail."""

    def __init__(self, row, link, clock):
        """row: board.FAST, {"rail", "gpio", "nA_per_count"}."""
        self.row, self.link, self.clock = row, link, clock
        self.gpios = [row["gpio"]]
        self.state = array("i", [0] * 6)
        self.lost = array("I", [0])
        self.frame = bytearray(wire.F_END + 4)
        self.frame[0] = wire.FAST
        self.frame[wire.F_RAIL], self.frame[wire.F_CHANNEL] = row["rail"], row["gpio"]
        self.running, self.limited, self.beside = False, 0, 0
        self.source, self.how = adc_ring, (self.gpios, RATE)
        if row.get("volts") is not None:
            import sar_ring  # 64 KiB

            self.source, self.how = sar_ring, (row,)
        self.go()

    def describe(self):
        """For H."""
        about = {"step_ns": _STEP_us * 1000, "width": _WIDTH, "interval": _INTERVAL, "limit": LIMIT}
        return dict(self.row, **about)

    def go(self):
        """Count from 0."""
        self.lost[0] = self.number = 0

    def stop(self):
        if self.running:
            self.source.stop()
            self.running = False

    def turn(self):
        """Call on every pass of the main loop while the converters are free."""
        source = self.source
        if not self.running:
            self.tick = source.start(*self.how)
            self.running = True
            self.base = 0  # samples before the one that is counted as 0
            self._resume(0)
            return
        state = self.state
        at = state[_AT]
        n = source.count() - self.base - at
        if not at:
            if n >= _WIDTH:
                self._resume(_WIDTH)
        elif n > _ROOM:
            if n < _LONGEST:
                self._close()
            else:  # its ticks are too old to date it
                add(self.lost, at - state[_FIRST])
            n -= _WIDTH
            add(self.lost, n)
            if n >= _LONGEST or self.base + at + n > _LAST:
                self._anew(at + n)
            else:
                self._resume(at + n)
                self._rebase()
        elif n >= _WORTH:
            first = state[_FIRST]
            n = min(n // _WIDTH * _WIDTH, _PIECE, first + _INTERVAL - at)
            ring = source.ring
            scan(ring, state[_RUN], state[_BEST], ring, n, state)
            if state[_WHERE] >= at:
                self.limited = limited(ring, state[_WHERE] + 1)
                if source.volts is not None:
                    self.beside = window(source.volts, state[_WHERE] + 1)
            if at + n == first + _INTERVAL:
                self._close()
                if self.base + at > _LAST:
                    self._anew(state[_AT])
                else:
                    self._rebase()

    def _anew(self, at):
        """Restart the ring: samples from `at` on are lost."""
        add(self.lost, self.source.count() - self.base - at)
        self.tick, self.base = self.source.again(), 0
        self._resume(0)

    def _rebase(self):
        """Count on from a later sample 0 when the interval begins far from it; the ring's places stay."""
        state = self.state
        at = state[_AT]
        if at <= _LONGEST:
            return
        at -= at & _MASK
        self.base += at
        self.tick = ticks_add(self.tick, _STEP_us * at)
        state[_AT] -= at
        state[_FIRST] -= at

    def _resume(self, at):
        """Go on with sample `at`, before which WIDTH others lie, if it is not the first."""
        state = self.state
        state[_AT] = state[_FIRST] = at
        state[_RUN] = window(self.source.ring, at) if at else 0
        state[_TOTAL] = 0
        state[_BEST] = -1

    def _close(self):
        """Send the interval, if it has any sample, and begin the next one."""
        state, frame = self.state, self.frame
        first, n = state[_FIRST], state[_AT] - state[_FIRST]
        if not n:
            return
        put32(frame, wire.F_NUMBER, self.number)
        self.clock.put(frame, wire.F_T0, ticks_add(self.tick, _STEP_us * (first + self.source.FIRST)))
        put32(frame, wire.F_N, n)
        put32(frame, wire.F_SUM, state[_TOTAL])
        put32(frame, wire.F_PEAK, state[_BEST])
        put32(frame, wire.F_AT, state[_WHERE] - first)
        frame[wire.F_LIMITED] = self.limited
        put_counter(frame, wire.F_LOST, self.lost)
        put32(frame, wire.F_VOLTS, self.beside)
        if not self.link.put(frame, wire.F_END):
            add(self.lost, n)
        self.number += 1
        state[_FIRST] = state[_AT]
        state[_TOTAL] = 0
        state[_BEST] = -1
