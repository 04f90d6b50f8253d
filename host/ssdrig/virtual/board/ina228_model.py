"""Register-level model of TI's INA228 (SBOSA20), SIMULATED. Runs on MicroPython and on CPython.

Modelled: registers with their reset values, IDs, pointer, RST and RSTACC, both shunt ranges, the schedule of
conversions by the chip's own oscillator (shunt, bus and temperature one after the other, each seeing only its own
window), noise that falls with the root of the conversion time, offset, gain error, saturation, CURRENT, POWER, MATHOF,
ENERGY and CHARGE with their fractions kept and by the chip's own idea of time, CNVRF and ALERT at conversion ready,
latched or transparent, loss of everything at a brown-out.
Not modelled: the limit comparators (their registers keep what is written), TEMPCOMP (the die is at 25 C: no effect).
All results of a set appear together at its end. Times are ns of real (not of the chip's) time.
"""

from random import getrandbits

NEVER = 1 << 62
CT_us = (50, 84, 150, 280, 540, 1052, 2074, 4120)
AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
RESET = {0x0: 0, 0x1: 0xFB68, 0x2: 0x1000, 0x3: 0, 0xB: 1, 0xC: 0x7FFF, 0xD: 0x8000, 0xE: 0x7FFF, 0xF: 0, 0x10: 0x7FFF}
RESET[0x11] = 0xFFFF
WIDTH = {0x4: 3, 0x5: 3, 0x7: 3, 0x8: 3, 0x9: 5, 0xA: 5}  # bytes; the others have 2
WRITABLE = {0x2: 0x7FFF, 0x3: 0x3FFF, 0xC: 0xFFFF, 0xD: 0xFFFF, 0xE: 0x7FFF, 0xF: 0x7FFF, 0x10: 0xFFFF, 0x11: 0xFFFF}
IDS = {0x3E: 0x5449, 0x3F: 0x2281}
CNVR, APOL, ENERGYOF, CHARGEOF, MATHOF, CNVRF = 1 << 14, 1 << 12, 1 << 11, 1 << 10, 1 << 9, 1 << 1
VBUS_LSB_V = 195.3125e-6
SHUNT_LSB_V = (312.5e-9, 78.125e-9)  # by ADCRANGE
SHUNT_NOISE_V = 8.6e-6  # rms at 50 us: 12.5 noise-free bits of 327.68 mV, peak to peak = 6.6 rms
VBUS_NOISE_V = 1.9e-3
STARTUP_ns = 300_000  # from reset to the first conversion


def current_register(vshunt, shunt_cal):
    """CURRENT = VSHUNT * 4096 / SHUNT_CAL, cut towards zero; (value, out of range). 0 when SHUNT_CAL is 0."""
    if shunt_cal == 0:
        return 0, False
    value = abs(vshunt) * 4096 // shunt_cal
    over = value > 524287
    value = 524287 if over else value
    return (-value if vshunt < 0 else value), over


def power_register(vbus, current):
    """POWER = VBUS * |CURRENT| >> 14, at most 24 bits; (value, out of range)."""
    value = vbus * abs(current) >> 14
    return (0xFFFFFF, True) if value > 0xFFFFFF else (value, False)


def _normal():
    """A number with mean 0 and standard deviation 1: four dice of 256 sides."""
    r = getrandbits(32)
    return ((r & 255) + (r >> 8 & 255) + (r >> 16 & 255) + (r >> 24) - 510) * 0.006765


class INA228:
    def __init__(self, supply, t, shunt_uOhm=10000, osc_ppm=0, offset_uV=0, gain_ppm=0, vbus_gain_ppm=0, noise=1.0):
        """`supply(t0, t1, t2)` -> (mean current in A over t0..t1, mean voltage in V over t1..t2).
        osc_ppm > 0: the chip's oscillator is fast. noise scales the noise; 0 is none."""
        self.supply = supply
        self.ohms = shunt_uOhm * 1e-6
        self.speed = 1 + osc_ppm * 1e-6
        self.offset = offset_uV * 1e-6
        self.gain = 1 + gain_ppm * 1e-6
        self.vbus_gain = 1 + vbus_gain_ppm * 1e-6
        self.noise = noise
        self.power_on(t)

    def power_on(self, t):
        """Power-on reset, also what a brown-out leaves."""
        self.reg = dict(RESET)
        self.pointer = 0
        self.vshunt = self.vbus = self.current = self.power = 0
        self.temp = 0
        self._clear_accumulators()
        self._begin(t + STARTUP_ns)

    def _clear_accumulators(self):
        self.energy = self.energy_part = self.charge = self.charge_part = 0

    def _begin(self, t):
        """A new ADC_CONFIG: the conversion under way is dropped, the first of the new kind starts now."""
        adc = self.reg[0x1]
        mode = adc >> 12
        self.channels = mode & 7
        self.continuous = mode > 8
        self.averages = AVERAGES[adc & 7]
        vbus, vshunt, temp = CT_us[adc >> 9 & 7], CT_us[adc >> 6 & 7], CT_us[adc >> 3 & 7]
        shunt_us = vshunt if mode & 2 else 0
        bus_us = vbus if mode & 1 else 0
        temp_us = temp if mode & 4 else 0
        self.set_ns = (shunt_us + bus_us + temp_us) * 1000 * self.averages  # by the chip's own clock
        self.shunt_ns = round(shunt_us * 1000 / self.speed)
        self.bus_ns = round(bus_us * 1000 / self.speed)
        self.one_ns = self.set_ns / self.averages / self.speed
        self.shunt_lsb = SHUNT_LSB_V[self.reg[0x0] >> 4 & 1]
        self.shunt_noise = self.noise * SHUNT_NOISE_V * (50 / vshunt) ** 0.5
        self.vbus_noise = self.noise * VBUS_NOISE_V * (50 / vbus) ** 0.5
        self.reg[0xB] &= ~CNVRF
        whole = self.set_ns / self.speed
        self.period = int(whole)
        self.period_part = whole - self.period
        self.part = 0.0
        delay = (self.reg[0x0] >> 6 & 0xFF) * 2_000_000
        self.start = t + delay
        self.end = self.start + self.period if self.set_ns else NEVER

    def ready_at(self):
        """When ALERT falls next, if nothing is written or read before."""
        flags = self.reg[0xB]
        return self.end if flags & CNVR and not flags & CNVRF else NEVER

    def alert(self):
        """Level of the ALERT line (open drain, pulled up)."""
        asserted = self.reg[0xB] & CNVR and self.reg[0xB] & CNVRF
        return 1 if bool(asserted) == bool(self.reg[0xB] & APOL) else 0

    def advance(self, t):
        """Carry out all conversions that end until t."""
        while self.end <= t:
            self._convert()
            if not self.continuous:
                self.end = NEVER
                return
            self.start = self.end
            self.part += self.period_part
            self.end += self.period
            if self.part >= 1:
                self.part -= 1
                self.end += 1

    def _convert(self):
        n = self.averages
        if n == 1:
            t1 = self.start + self.shunt_ns
            amps, volts = self.supply(self.start, t1, t1 + self.bus_ns)
        else:
            amps = volts = 0.0
            for k in range(n):
                t = self.start + int(k * self.one_ns)
                a, v = self.supply(t, t + self.shunt_ns, t + self.shunt_ns + self.bus_ns)
                amps += a / n
                volts += v / n
        rms = n**-0.5 if self.noise else 0
        if self.channels & 2:
            v = amps * self.ohms * self.gain + self.offset
            if rms:
                v += self.shunt_noise * rms * _normal()
            self.vshunt = max(-524288, min(524287, round(v / self.shunt_lsb)))
        if self.channels & 1:
            v = volts * self.vbus_gain
            if rms:
                v += self.vbus_noise * rms * _normal()
            self.vbus = max(0, min(524287, round(v / VBUS_LSB_V)))
        if self.channels & 4:
            self.temp = 3200  # 25 C
        self.current, over = current_register(self.vshunt, self.reg[0x2])
        self.power, over2 = power_register(self.vbus, self.current)
        flags = self.reg[0xB] & ~MATHOF | CNVRF
        if over or over2:
            flags |= MATHOF
        if self.continuous:
            part = self.energy_part + self.power * self.set_ns  # LSB = 16 * POWER's LSB * 1 s
            self.energy += part // 16_000_000_000
            self.energy_part = part % 16_000_000_000
            if self.energy >> 40:
                self.energy &= 0xFFFFFFFFFF
                flags |= ENERGYOF
            part = self.charge_part + self.current * self.set_ns  # LSB = CURRENT's LSB * 1 s
            self.charge += part // 1_000_000_000
            self.charge_part = part % 1_000_000_000
            if not -(1 << 39) <= self.charge < 1 << 39:
                self.charge = (self.charge + (1 << 39)) % (1 << 40) - (1 << 39)
                flags |= CHARGEOF
        self.reg[0xB] = flags

    def value(self, register, t):
        """(value, bytes) as a read at t gives it, with the read's effects."""
        self.advance(t)
        width = WIDTH.get(register, 2)
        if register == 0x4:
            v = self.vshunt << 4
        elif register == 0x5:
            v = self.vbus << 4
        elif register == 0x6:
            v = self.temp
        elif register == 0x7:
            v = self.current << 4
        elif register == 0x8:
            v = self.power
        elif register == 0x9:
            v = self.energy
            self.reg[0xB] &= ~ENERGYOF
        elif register == 0xA:
            v = self.charge
            self.reg[0xB] &= ~CHARGEOF
        elif register == 0xB:
            v = self.reg[0xB]
            if v & 0x8000:
                self.reg[0xB] = v & ~CNVRF
        else:
            v = self.reg.get(register, IDS.get(register, 0))
        return v & ((1 << 8 * width) - 1), width

    def write(self, register, value, t):
        """A 16-bit write that ends at t. Writes to read-only registers do nothing."""
        self.advance(t)
        if register == 0x0:
            if value & 0x8000:
                self.power_on(t)
                return
            if value & 0x4000:
                self._clear_accumulators()
                self.reg[0xB] &= ~MATHOF
            self.reg[0x0] = value & 0x3FF0
            self.shunt_lsb = SHUNT_LSB_V[value >> 4 & 1]
        elif register == 0x1:
            self.reg[0x1] = value
            self._begin(t)
        elif register == 0xB:
            self.reg[0xB] = value & 0xF000 | self.reg[0xB] & 0x0FFF
        elif register in WRITABLE:
            self.reg[register] = value & WRITABLE[register]
