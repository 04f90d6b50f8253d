"""Register-level model of TI's INA226 (SBOS547), SIMULATED. Runs on MicroPython and on CPython.

Modelled: registers with their reset values, IDs, pointer, RST, the schedule of conversions by the chip's own oscillator (shunt
and bus one after the other, each seeing only its own window), averaging, noise, offset, gain error, saturation,
CURRENT = SHUNT * CAL / 2048, POWER = CURRENT * BUS / 20000, OVF, CVRF and ALERT at conversion ready, the five limit functions,
loss of everything at a brown-out. Results appear together at the end of a set. Times are ns of real (not of the chip's) time.
"""

from ina228_model import NEVER, _normal

CT_us = (140, 204, 332, 588, 1100, 2116, 4156, 8244)
AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
RESET = {0x0: 0x4127, 0x5: 0, 0x6: 0, 0x7: 0}
IDS = {0xFE: 0x5449, 0xFF: 0x2260}
SOL, SUL, BOL, BUL, POL, CNVR = 1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11, 1 << 10
AFF, CVRF, OVF, APOL, LEN = 1 << 4, 1 << 3, 1 << 2, 1 << 1, 1
SHUNT_LSB_V, BUS_LSB_V = 2.5e-6, 1.25e-3
SHUNT_NOISE_V, BUS_NOISE_V = 2.5e-6, 0.6e-3  # rms at 140 us: assumed, about the LSB
STARTUP_ns = 300_000


def current_register(shunt, cal):
    """CURRENT = SHUNT * CAL / 2048, cut towards zero; (value, out of range)."""
    value = abs(shunt) * cal // 2048
    over = value > 32767
    value = 32767 if over else value
    return (-value if shunt < 0 else value), over


def power_register(current, bus):
    """POWER = |CURRENT| * BUS / 20000, cut off; (value, out of range)."""
    value = abs(current) * bus // 20000
    return (0xFFFF, True) if value > 0xFFFF else (value, False)


class INA226:
    def __init__(self, supply, t, shunt_uOhm=10000, osc_ppm=0, offset_uV=0, gain_ppm=0, vbus_gain_ppm=0, noise=1.0):
        """As ina228_model.INA228."""
        self.supply = supply
        self.ohms = shunt_uOhm * 1e-6
        self.speed = 1 + osc_ppm * 1e-6
        self.offset = offset_uV * 1e-6
        self.gain = 1 + gain_ppm * 1e-6
        self.bus_gain = 1 + vbus_gain_ppm * 1e-6
        self.noise = noise
        self.power_on(t)

    def power_on(self, t):
        """Power-on reset, also what a brown-out leaves."""
        self.reg = dict(RESET)
        self.pointer = 0
        self.shunt = self.bus = self.current = self.power = 0
        self._begin(t + STARTUP_ns)

    def _begin(self, t):
        """A new CONFIG: the conversion under way is dropped, the first of the new kind starts now."""
        config = self.reg[0x0]
        self.mode = config & 7
        self.averages = AVERAGES[config >> 9 & 7]
        bus, shunt = CT_us[config >> 6 & 7], CT_us[config >> 3 & 7]
        self.shunt_ns = round((shunt if self.mode & 1 else 0) * 1000 / self.speed)
        self.bus_ns = round((bus if self.mode & 2 else 0) * 1000 / self.speed)
        self.shunt_noise = self.noise * SHUNT_NOISE_V * (140 / shunt) ** 0.5
        self.bus_noise = self.noise * BUS_NOISE_V * (140 / bus) ** 0.5
        whole = ((shunt if self.mode & 1 else 0) + (bus if self.mode & 2 else 0)) * 1000 * self.averages / self.speed
        self.period = int(whole)
        self.period_part = whole - self.period
        self.part = 0.0
        self.start = t
        self.end = t + self.period if self.period else NEVER
        if self.mode & 3:  # power-down leaves it
            self.reg[0x6] &= ~CVRF

    def ready_at(self):
        """When ALERT falls next, if nothing is written or read before."""
        mask = self.reg[0x6]
        return self.end if mask & CNVR and not mask & CVRF else NEVER

    def alert(self):
        """Level of the ALERT line (open drain, pulled up)."""
        mask = self.reg[0x6]
        asserted = mask & CNVR and mask & CVRF or mask & AFF
        return 1 if bool(asserted) == bool(mask & APOL) else 0

    def advance(self, t):
        """Carry out all conversions that end until t."""
        while self.end <= t:
            self._convert()
            if self.mode < 4:
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
        amps = volts = 0.0
        for k in range(n):
            t = self.start + k * self.period // n
            a, v = self.supply(t, t + self.shunt_ns, t + self.shunt_ns + self.bus_ns)
            amps += a / n
            volts += v / n
        rms = n**-0.5 if self.noise else 0
        if self.mode & 1:
            v = amps * self.ohms * self.gain + self.offset
            if rms:
                v += self.shunt_noise * rms * _normal()
            self.shunt = max(-32768, min(32767, round(v / SHUNT_LSB_V)))
        if self.mode & 2:
            v = volts * self.bus_gain
            if rms:
                v += self.bus_noise * rms * _normal()
            self.bus = max(0, min(0x7FFF, round(v / BUS_LSB_V)))
        self.current, over = current_register(self.shunt, self.reg[0x5])
        self.power, over2 = power_register(self.current, self.bus)
        mask = self.reg[0x6] & ~OVF | CVRF
        if over or over2:
            mask |= OVF
        if self._beyond(mask):
            mask |= AFF
        elif not mask & LEN:
            mask &= ~AFF
        self.reg[0x6] = mask

    def _beyond(self, mask):
        """Is the selected function (the highest bit, if several are set) beyond the limit?"""
        limit = self.reg[0x7]
        signed = limit - 0x10000 if limit & 0x8000 else limit
        if mask & SOL:
            return self.shunt > signed
        if mask & SUL:
            return self.shunt < signed
        if mask & BOL:
            return self.bus > limit
        if mask & BUL:
            return self.bus < limit
        return bool(mask & POL) and self.power > limit

    def value(self, register, t):
        """(value, bytes) as a read at t gives it, with the read's effects."""
        self.advance(t)
        if register == 0x1:
            v = self.shunt
        elif register == 0x2:
            v = self.bus
        elif register == 0x3:
            v = self.power
        elif register == 0x4:
            v = self.current
        elif register == 0x6:
            v = self.reg[0x6]
            self.reg[0x6] = v & ~(CVRF | AFF) if v & LEN else v & ~CVRF
        else:
            v = self.reg.get(register, IDS.get(register, 0))
        return v & 0xFFFF, 2

    def write(self, register, value, t):
        """A 16-bit write that ends at t. Writes to read-only registers do nothing."""
        self.advance(t)
        if register == 0x0:
            if value & 0x8000:
                self.power_on(t)
                return
            self.reg[0x0] = value & 0x0FFF | 0x4000
            self._begin(t)
        elif register == 0x5:
            self.reg[0x5] = value & 0x7FFF
        elif register == 0x6:
            self.reg[0x6] = value & 0xFC03 | self.reg[0x6] & 0x1C
        elif register == 0x7:
            self.reg[0x7] = value
