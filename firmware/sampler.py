"""One rail: each conversion of its sensor becomes a sample, stamped at conversion ready, counted, and framed.

The interrupt of the ALERT edge stamps it, less the age that a state machine has counted (alert_age.py), and starts the
reading of the values; a lane (lane.py) hands them over. Unused readings are counted from the time that passed:
conversions come at a fixed period, which is learned from the conversions themselves because the chip's oscillator is
off by up to half a percent.
Between `go` and `stop` nothing here allocates.
"""

from array import array
from time import ticks_add, ticks_diff, ticks_us

import board
import fits
from micropython import const
import wire
from clock64 import add, put_counter, put_sample, put_split
from ina228 import SensorError
from lane import ABOVE, DATA, EXTRA, SAMPLE, STAMP
from protect import Guard, look
from switch import IDLE

_SILENT_us = const(50_000)
_LATE_us = const(1000)  # after two conversions: by then one of them was read, or an edge was lost
_LEARN = const(1024)  # conversions after which the period is refined
_BASELINE = const(16384)  # conversions over which it is averaged
_ENERGY_us = const(1_000_000)
_BLOCK = const(1 << 29)  # conversions after which counting begins again: an integer of 2**30 or more is a heap object
_OF_ROW = "rail", "name", "bus", "shunt_uOhm", "shunt_tolerance_ppm", "current_lsb_pA", "nominal_mV", "protect"  # in H
_OWN = "shunt_emf_nV_per_C", "amplifier_nA", "low"  # likewise, if the build has it
_WATCHED = const(8)  # samples per pass during a cut, so that the switch sees its edge before later samples


def byte(mem, at, n):
    """Byte n of what a script has read into mem[at:], three to a word."""
    return mem[at + n // 3] >> (16 - 8 * (n % 3)) & 255


class Sampler:
    """A rail's stream: its conversions counted from `go` on, its samples on their way into a frame.

    The index of the next conversion is blocks * _BLOCK + next; all other indexes are relative to the same block."""

    def __init__(self, rail, chip, link, clock):
        """`rail`: a row of board.RAILS, `chip`: its driver."""
        self.rail, self.chip, self.lane = rail, chip, chip.lane
        self.link, self.clock = link, clock
        self.config_id = 0
        self.running = False
        self.next = self.blocks = 0
        self.missed = array("I", [0])
        # stamp of the last conversion, and when something was last heard of the chip
        self.last = self.heard = ticks_us()
        self.frame = bytearray(wire.S_FIRST + wire.MAX_SAMPLES * wire.SAMPLE_BYTES + 4)
        self.n, self.at = 0, wire.S_FIRST
        self.watch = None  # the switch, which looks at each sample
        self.guard = Guard(rail, chip, len(board.RAILS)) if rail.get("protect") else None
        if self.guard:
            self.lane.limit(self.guard.raw_A, self.guard.raw_V)
        self.zero, self.temp = False, 0
        self.energy_frame = bytearray(wire.E_END + 4)
        self.five = bytearray(5)
        self.die_mC = None  # when the board started
        self.plan()
        self.alert = board.alert_pin(rail["alert"])
        self.alert.irq(self.lane.interrupt, self.alert.IRQ_FALLING, hard=True)

    def plan(self):
        """The reading order. The accumulators are read after a sample, if that fits between two conversions, otherwise
        instead of one, which is counted as missed."""
        chip, lane = self.chip, self.lane
        lane.plain(chip.BITS, chip.CARE, chip.READY)
        period_us = fits.shortest(chip.conversion_us)
        sample_us = lane.script(SAMPLE, chip.SAMPLE)
        shunt_us = fits.shortest(chip.shunt_us)
        late = lane.BEGIN_us, lane.delay_us, lane.stamp_us()
        self.late_us = fits.late_us(period_us, shunt_us, sample_us, lane.taken_us, lane.SOON_us, *late)
        if self.late_us is None:
            raise ValueError("rail %d: conversions of %d us are too short" % (self.rail["rail"], chip.conversion_us))
        lane.claim(sample_us, period_us)
        self.accumulates, self.beside = bool(chip.EXTRA), True
        if chip.EXTRA:
            self.beside = lane.beside(sample_us, lane.script(EXTRA, chip.EXTRA), shunt_us, period_us)
            if not self.beside:
                lane.script_instead(chip.INSTEAD)
        self.per_second = _ENERGY_us // chip.conversion_us
        self.quiet_us = 2 * chip.conversion_us + _LATE_us

    def describe(self):
        """The rail's entry in H."""
        rail, chip = self.rail, self.chip
        entry = {name: rail.get(name) for name in _OF_ROW}
        entry.update([(name, rail[name]) for name in _OWN if name in rail])
        entry.update(chip=chip.NAME, config=self.config_id, vbus_lsb_nV=chip.VBUS_LSB_nV, adc_config=chip.adc)
        entry.update(shunt_cal=chip.cal, conversion_ns=chip.conversion_us * 1000, shunt_ns=chip.shunt_us * 1000)
        entry.update(lead_mOhm=rail.get("lead_mOhm", 0), die_mC=self.die_mC)
        return entry

    def probe(self):
        """Is the right chip there? It is left asleep. OSError, SensorError."""
        self.chip.identify()
        self.die_mC = self.chip.die_mC()
        self.chip.sleep()

    def prepare(self):
        """Make ready to sample from index 0 with accumulators at 0. OSError, SensorError."""
        self._close()
        self.next = self.blocks = 0
        self.missed[0] = 0
        self._set_period(self.chip.conversion_us << 8)
        self.energy_at = self.per_second
        self.last = ticks_us()
        self._learn_from(self.last, -1)
        if self.guard is not None:
            self.guard.arm()  # of a rail that the rig could not open, again with each stream
        self.chip.identify()  # another chip's registers are not ours to write
        self.chip.prepare()
        if self.accumulates:
            self._send_energy()
        self.lane.restart(self.late_us)

    def go(self):
        """Start, on its own, because other rails that are being prepared hold the bus for too long. OSError,
        SensorError."""
        self._begin(-1)

    def recover(self):
        """Configure a chip that was reset or lost. Indexes go on, the accumulators restart under a new config id."""
        self._close()
        self.chip.identify()
        self.config_id = (self.config_id + 1) & 255
        self.chip.prepare()
        self.lane.restart(self.late_us)
        self.dark()
        self._begin(self.next - 1)
        self.energy_at = self.next  # an E frame after the first conversion: the base of the new accumulators

    def dark(self):
        """Count what a lost sensor would have converted until now. Call at least every 4 s: ticks that are further
        apart need a heap object, and from 9 minutes on they are ambiguous."""
        steps = (ticks_diff(ticks_us(), self.last) << 8) // self.period
        if steps > 0:
            self._close()
            if self.guard is not None:
                self.guard.forget()
            add(self.missed, steps)
            self.last = ticks_add(self.last, steps * self.period >> 8)
            self._learn_from(self.last, self.next + steps - 1)  # before the count, which may begin another block
            self._count(steps)

    def stop(self):
        self.running = False
        self._close()
        self.chip.sleep()

    def turn(self):
        """Handle a conversion if one has been read. True if there was something to do. OSError, SensorError."""
        lane = self.lane
        kind = lane.take()
        if not kind:
            # take again before asking: one may have arrived meanwhile
            quiet_us = ticks_diff(ticks_us(), self.heard)
            if quiet_us > self.quiet_us and not lane.waits() and not lane.take():
                self._quiet(quiet_us)
            # True also while a read waits for the bus: no interrupt will announce that
            return lane.pending() or self._watched() and lane.waits()
        self.heard = ticks_us()
        if kind == SAMPLE and self._drain():
            return True
        mem, at = lane.mem, lane.slot
        if kind == SAMPLE:
            self._sample(mem, at)
        elif kind == EXTRA:
            self.asked = False
            if not self.beside or self.next > self.energy_at and mem[at + STAMP] == self.last:
                self._energy(mem, at)  # else it goes with a torn sample, or was asked for twice
        else:  # torn: the count is made when the next conversion is stamped
            self.asked = False
        lane.done()
        if self.n == 1:  # a frame has begun: what follows goes with it, without another round's cost
            self._drain()
        return True

    def _begin(self, index):
        """The chip converts; index: of the conversion before the first."""
        self.chip.begin()
        self.heard = ticks_us()
        self.asked = False  # for the accumulators
        self.running = True
        self.last = ticks_add(self.heard, self.chip.WAKE_us)
        self._learn_from(self.last, index)

    def _quiet(self, quiet_us):
        """No conversion has been read for this long."""
        if quiet_us > _SILENT_us:
            self._ask_why()
        if not self.alert.value():
            self.lane.let_go(self.chip.FLAGS, self.heard)

    def _watched(self):
        """Does the switch want to see each sample, and soon?"""
        return self.watch is not None and self.watch.state is not IDLE

    def _look(self, at, n, stamp):
        """Let the guard see n samples of the frame."""
        trip = look(self.guard.state, self.frame, at, n, stamp)
        if trip:
            self.watch.trip(self, trip)

    def _drain(self):
        """Put plain samples into the frame, many per call, just as `_sample` does it with one by one; a frame that is
        empty begins with the slot that `take` has found. True if there were any."""
        n = self.n
        most = min(wire.MAX_SAMPLES - n, self.learn_at - self.next)
        if self.accumulates and not self.asked:
            most = min(most, self.energy_at - self.next)
        watched = self._watched()
        if watched:
            most = min(most, _WATCHED)
        lane = self.lane
        at, stamp = self.at, self.last
        first = lane.mem[lane.slot + STAMP]  # now: moved slots may be overwritten
        moved = lane.drain(self.frame, at, stamp, self.widest, most, self.zero)
        if not moved:
            return False
        if n == 0:
            stamp = first
            frame = self.frame
            frame[at] = frame[at + 1] = 0
            put_split(frame, wire.S_INDEX, self.blocks, self.next)
            self.clock.put(frame, wire.S_T0, stamp)
        if self.guard is not None and lane.mem[lane.base + ABOVE]:
            self._look(at, moved, stamp)
            if not self.guard.wary():
                lane.below()
        if watched:
            frame = self.frame
            for _ in range(moved):
                stamp = ticks_add(stamp, frame[at] | frame[at + 1] << 8)
                self.watch.sample(self.rail["rail"], stamp, frame, at)
                at += wire.SAMPLE_BYTES
        self.chip.flags = lane.flags
        self.last = lane.stamp
        self._count(moved)
        self.at += wire.SAMPLE_BYTES * moved
        self.n = n = n + moved
        if n == wire.MAX_SAMPLES:
            self._close()
        return True

    def _sample(self, mem, at):
        chip = self.chip
        if not chip.decode(mem, at + DATA):
            self._ask_why("a sample was damaged on its way: flags %04x" % chip.flags)
        if not chip.flags & chip.CNVRF:
            return self._no_conversion()
        zero = chip.zero()
        if zero and not self.zero:
            chip.check()  # exactly 0 is what a chip reads that has just been reset, or a rail that was cut
        self.zero = zero
        self._keep(mem[at + STAMP])
        if self.accumulates and self.next > self.energy_at and not self.asked:
            self.asked = True  # samples read before the edge that serves it are still to come
            if self.beside:
                self.lane.ask()
            else:
                self.lane.ask_instead()

    def _energy(self, mem, at):
        """Accumulators as they stand after conversion `next` - 1, from EXTRA's words."""
        at += DATA
        first = 0
        if self.beside:
            self.temp = byte(mem, at, 10) << 8 | byte(mem, at, 11)
        else:
            first = 2
            self.chip.flags = mem[at] >> 8
            if not self.chip.flags & self.chip.CNVRF:
                return self._no_conversion()
            self._skip(mem[at - DATA + STAMP])
        frame = self.energy_frame
        for k in range(5):
            frame[wire.E_CHARGE + 4 - k] = byte(mem, at, first + k)  # the chip sends the most significant byte first
            frame[wire.E_ENERGY + 4 - k] = byte(mem, at, first + 5 + k)
        self._put_energy()
        self.energy_at = self.next + self.per_second

    def _no_conversion(self):
        """ALERT was low, without a complete conversion: the reading is the last one again."""
        self.lane.dropped += 1
        if ticks_diff(ticks_us(), self.last) > _SILENT_us:
            self._ask_why("ALERT falls, but no conversion is complete")

    def _skip(self, stamp):
        """Count a conversion whose values were not read, and those lost before it."""
        steps = self._steps(stamp)
        self._close()
        add(self.missed, steps)
        self._count(steps)
        self.last = stamp

    def _count(self, steps):
        """Count finished conversions."""
        self.next += steps
        if self.next >= _BLOCK:
            self.blocks += 1
            self.next -= _BLOCK
            self.base_index -= _BLOCK
            self.learn_at -= _BLOCK
            if self.accumulates:
                self.energy_at -= _BLOCK

    def _learn_from(self, tick, index):
        self.base_tick = tick
        self.base_index = index
        self.learn_at = index + _LEARN

    def _set_period(self, period):
        """us / 256."""
        self.period = period
        # gap between two stamps up to which none is lost
        self.widest = min((2 * period - (period >> 1) - 1) >> 8, 65535)

    def _steps(self, stamp):
        """Conversions from the last one to that of `stamp`."""
        return max(1, ((ticks_diff(stamp, self.last) << 8) + (self.period >> 1)) // self.period)

    def _keep(self, stamp):
        """Count the conversion stamped `stamp` and those lost before it; put its sample into the frame."""
        gap = ticks_diff(stamp, self.last)
        steps = self._steps(stamp)
        if steps > 1 or gap > 65535:
            self._close()
            add(self.missed, steps - 1)
        index = self.next + steps - 1
        self.last = stamp
        if self.n == 0:
            gap = 0
            frame = self.frame
            put_split(frame, wire.S_INDEX, self.blocks, index)
            self.clock.put(frame, wire.S_T0, stamp)
        put_sample(self.frame, self.at, gap, self.chip.vbus, self.chip.signed())
        if self.guard is not None:
            self._look(self.at, 1, ticks_add(stamp, -gap))
        if self.watch is not None:
            self.watch.sample(self.rail["rail"], stamp, self.frame, self.at)
        self.at += wire.SAMPLE_BYTES
        self.n += 1
        if self.n == wire.MAX_SAMPLES:
            self._close()
        if index >= self.learn_at:
            self._learn(stamp, index)
        self._count(steps)

    def _learn(self, stamp, index):
        count = index - self.base_index
        elapsed = ticks_diff(stamp, self.base_tick)
        whole = elapsed // count
        self._set_period((whole << 8) + ((elapsed - whole * count) << 8) // count)
        self.learn_at = index + _LEARN
        if count >= _BASELINE:
            self._learn_from(stamp, index)

    def _close(self):
        """Queue the S frame, or count its samples as lost if the host does not read."""
        if self.n == 0:
            return
        frame = self.frame
        frame[0] = wire.SAMPLES
        frame[wire.S_RAIL] = self.rail["rail"]
        frame[wire.S_CONFIG] = self.config_id
        frame[wire.S_N] = self.n
        put_counter(frame, wire.S_MISSED, self.missed)
        if not self.link.put(frame, self.at):
            add(self.missed, self.n)
        self.n = 0
        self.at = wire.S_FIRST

    def _send_energy(self):
        """The E frame of index 0: the cleared accumulators before the first conversion."""
        chip, frame, five = self.chip, self.energy_frame, self.five
        self.temp, chip.flags = chip.state()
        for at, register in ((wire.E_CHARGE, chip.EXTRA[0][0]), (wire.E_ENERGY, chip.EXTRA[1][0])):
            self.lane.read_into(register, five)
            for k in range(5):  # registers come most significant byte first, the wire is little endian
                frame[at + 4 - k] = five[k]
        self._put_energy()

    def _put_energy(self):
        frame = self.energy_frame
        frame[0] = wire.ENERGY
        frame[wire.E_RAIL] = self.rail["rail"]
        frame[wire.E_CONFIG] = self.config_id
        put_split(frame, wire.E_INDEX, self.blocks, self.next)
        self.clock.put(frame, wire.E_T, self.last)
        frame[wire.E_TEMP], frame[wire.E_TEMP + 1] = self.temp & 255, self.temp >> 8
        frame[wire.E_DIAG], frame[wire.E_DIAG + 1] = self.chip.flags & 255, self.chip.flags >> 8
        self.link.put(frame, wire.E_END)

    def _ask_why(self, otherwise="sensor keeps its configuration but signals no conversion (ALERT line?)"):
        """No conversion, or a damaged one: raises the chip's error, otherwise this."""
        self.chip.check()
        raise SensorError(otherwise)
