"""One rail: each conversion of its sensor becomes a sample, stamped at conversion ready, counted, and framed.

The ALERT edge is stamped by an interrupt; the values are read after it and before the next conversion ends, or not
used at all. What was not used is counted from the time that passed: conversions come at a fixed period, which is
learned from the conversions themselves because the chip's oscillator is off by up to half a percent.
Between `go` and `stop` nothing here allocates.
"""

from time import ticks_diff, ticks_us

import board
import ina228
from micropython import const
import wire
from clock64 import put32
from ina228 import SensorError
from link import HEAD

_FIRST = const(24)  # where the samples begin in an S frame: HEAD and SAMPLES_HEAD after the kind
_SILENT_us = const(50_000)
_LEARN = const(1024)  # conversions after which the period is refined
_BASELINE = const(16384)  # conversions over which it is averaged
_ENERGY_us = const(1_000_000)


class Sampler:
    def __init__(self, rail, bus, link, clock):
        self.rail = rail
        self.link = link
        self.clock = clock
        self.config_id = 0
        self.settings = board.settings(rail)
        self.chip = ina228.INA228(bus, rail["address"])
        self.running = False
        self.next = self.missed = 0
        self.last = ticks_us()
        self.edges = 0
        self.seen = 0
        self.stamp = self.heard = ticks_us()  # of the last edge, and when it was handled
        self.diag = bytearray(2)
        self.raw = bytearray(6)
        self.vbus = memoryview(self.raw)[0:3]
        self.current = memoryview(self.raw)[3:6]
        self.frame = bytearray(_FIRST + wire.MAX_SAMPLES * wire.SAMPLE_BYTES + 4)
        self.n = 0
        self.at = _FIRST
        self.energy_frame = bytearray(HEAD + 28 + 4)
        view = memoryview(self.energy_frame)
        self.registers = view[HEAD + 14 : HEAD + 24]
        self.energy, self.charge = self.registers[0:5], self.registers[5:10]
        self.temp = bytearray(2)
        pin = board.alert_pin(rail["alert"])
        pin.irq(self._alert, pin.IRQ_FALLING, hard=True)

    def describe(self):
        """The rail's entry in H."""
        rail = self.rail
        _, adc, cal, conversion_us = self.settings
        return {
            "rail": rail["rail"],
            "name": rail["name"],
            "chip": "INA228",
            "config": self.config_id,
            "shunt_uOhm": rail["shunt_uOhm"],
            "current_lsb_pA": rail["current_lsb_pA"],
            "vbus_lsb_nV": ina228.VBUS_LSB_nV,
            "adc_config": adc,
            "shunt_cal": cal,
            "conversion_ns": conversion_us * 1000,
        }

    def probe(self):
        """Is the right chip there? It is left asleep. OSError, SensorError."""
        self.chip.identify()
        self.chip.sleep()

    def go(self):
        """Start sampling at index 0 with accumulators at 0. OSError, SensorError."""
        self._close()
        self.next = 0  # conversions since go; index of the next one
        self.missed = 0
        self.period = self.settings[3] << 8  # us / 256
        self.last = ticks_us()
        self._learn_from(self.last, -1)
        self._start()
        self._send_energy()

    def recover(self):
        """Configure a chip that was reset or lost. Indexes go on, the accumulators restart under a new config id."""
        self._close()
        self.chip.identify()
        self.config_id = (self.config_id + 1) & 255
        self._start()
        self.energy_at = self.next  # an E frame after the first conversion: the base of the new accumulators

    def stop(self):
        self.running = False
        self._close()
        self.chip.sleep()

    def turn(self):
        """Handle a conversion if one is ready. True if there was something to do. OSError, SensorError."""
        edges = self.edges
        if edges == self.seen:
            if ticks_diff(ticks_us(), self.heard) > _SILENT_us and self.edges == edges:  # none came just now
                self._ask_why()
            return False
        self.seen = edges
        stamp = self.stamp  # ALERT stays low until DIAG_ALRT is read, so no edge can come between these lines
        chip = self.chip
        chip.read_into(ina228.DIAG_ALRT, self.diag)
        self.heard = ticks_us()
        late = ticks_diff(self.heard, stamp) > self.late_us
        if self.diag[0] & 0xC0 != 0xC0:
            self._ask_why()
        chip.read_into(ina228.VBUS, self.vbus)
        chip.read_into(ina228.CURRENT, self.current)
        if late or self.edges != edges:
            return True  # the values may be the next conversion's; the count is made when that one is stamped
        raw = self.raw
        if not (raw[0] | raw[1] | raw[2]) or not (raw[3] | raw[4] | raw[5]):
            self._check()  # exactly 0 is what a chip reads that has just been reset
        self._keep(stamp)
        if self.next > self.energy_at:
            self._read_energy(edges)
        elif self.next > self.check_at:
            self.check_at = self.energy_at
            chip.read_into(ina228.DIETEMP, self.temp)
            self._check()
        return True

    def _alert(self, pin):
        """Interrupt: conversion ready."""
        self.stamp = ticks_us()
        self.edges = (self.edges + 1) & 0x3FFFFFFF

    def _start(self):
        config, adc, cal, period_us = self.settings
        self.chip.start(config, adc, cal)
        self.seen = self.edges
        self.heard = ticks_us()
        self.late_us = period_us - 60
        self.per_second = _ENERGY_us // period_us
        self.energy_at = self.per_second
        self.check_at = self.next + self.per_second // 2
        self.running = True

    def _learn_from(self, tick, index):
        self.base_tick = tick
        self.base_index = index
        self.learn_at = index + _LEARN

    def _keep(self, stamp):
        """Count the conversion stamped `stamp` and those lost before it; put its sample into the frame."""
        gap = ticks_diff(stamp, self.last)
        steps = ((gap << 8) + (self.period >> 1)) // self.period
        if steps < 1:
            steps = 1
        if steps > 1 or gap > 65535:
            self._close()
            self.missed += steps - 1
        index = self.next + steps - 1
        self.next = index + 1
        self.last = stamp
        if self.n == 0:
            gap = 0
            frame = self.frame
            put32(frame, HEAD + 7, index)
            self.clock.put(frame, HEAD + 11, stamp)
        ina228.pack_sample(self.frame, self.at, gap, self.raw)
        self.at += wire.SAMPLE_BYTES
        self.n += 1
        if self.n == wire.MAX_SAMPLES:
            self._close()
        if index >= self.learn_at:
            self._learn(stamp, index)

    def _learn(self, stamp, index):
        count = index - self.base_index
        elapsed = ticks_diff(stamp, self.base_tick)
        whole = elapsed // count
        self.period = (whole << 8) + ((elapsed - whole * count) << 8) // count
        self.learn_at = index + _LEARN
        if count >= _BASELINE:
            self._learn_from(stamp, index)

    def _close(self):
        """Queue the S frame, or count its samples as lost if the host does not read."""
        if self.n == 0:
            return
        frame = self.frame
        frame[0] = wire.SAMPLES
        frame[HEAD] = self.rail["rail"]
        frame[HEAD + 1] = self.config_id
        frame[HEAD + 2] = self.n
        put32(frame, HEAD + 3, self.missed)
        if not self.link.put(frame, self.at):
            self.missed += self.n
        self.n = 0
        self.at = _FIRST

    def _read_energy(self, edges):
        """Accumulators as they stand after conversion `next` - 1; left for the next conversion if one came between."""
        chip = self.chip
        chip.read_into(ina228.ENERGY, self.energy)
        chip.read_into(ina228.CHARGE, self.charge)
        if self.edges == edges:
            self._put_energy()
            self.energy_at = self.next + self.per_second
            self.check_at = self.next + self.per_second // 2

    def _send_energy(self):
        """The E frame of index 0: the cleared accumulators before the first conversion."""
        chip = self.chip
        chip.read_into(ina228.ENERGY, self.energy)
        chip.read_into(ina228.CHARGE, self.charge)
        chip.read_into(ina228.DIETEMP, self.temp)
        chip.read_into(ina228.DIAG_ALRT, self.diag)
        self._put_energy()

    def _put_energy(self):
        frame = self.energy_frame
        frame[0] = wire.ENERGY
        frame[HEAD] = self.rail["rail"]
        frame[HEAD + 1] = self.config_id
        put32(frame, HEAD + 2, self.next)
        self.clock.put(frame, HEAD + 6, self.last)
        energy, charge = self.energy, self.charge
        for k in range(2):  # registers come most significant byte first, the wire is little endian
            energy[k], energy[4 - k] = energy[4 - k], energy[k]
            charge[k], charge[4 - k] = charge[4 - k], charge[k]
        frame[HEAD + 24], frame[HEAD + 25] = self.temp[1], self.temp[0]
        frame[HEAD + 26], frame[HEAD + 27] = self.diag[1], self.diag[0]
        self.link.put(frame, HEAD + 28)

    def _check(self):
        self.chip.check(self.settings[0], self.settings[1], self.settings[2])

    def _ask_why(self):
        """No conversion, or a flag register that is not ours: raises what is the matter."""
        self._check()
        raise SensorError("sensor keeps its configuration but signals no conversion (ALERT line?)")
