"""Register-level model of TI's INA226 (SBOS547), SIMULATED. Runs on MicroPython and on CPython.

Modelled, besides ina_model.py: registers with their reset values, IDs, pointer, RST, saturation,
CURRENT = SHUNT * CAL / 2048, POWER = CURRENT * BUS / 20000, OVF, CVRF, the five limit functions (compared in every
cycle, also when averaging), ALERT, loss of everything at a brown-out.

Stricter than the chip: reserved bits and read-only registers must not be written, registers that do not exist not be
read, no more than one limit function be set, and an interrupt by a limit asks for the latched mode. Assumed: averages
are cut off."""

from ina_model import AVERAGES, BUS, NEVER, SHUNT, Sensor

CT_us = (140, 204, 332, 588, 1100, 2116, 4156, 8244)
CONFIG, CALIBRATION, MASK_ENABLE, ALERT_LIMIT = 0x0, 0x5, 0x6, 0x7
SOL, SUL, BOL, BUL, POL, CNVR = 1 << 15, 1 << 14, 1 << 13, 1 << 12, 1 << 11, 1 << 10
AFF, CVRF, OVF, APOL, LEN = 1 << 4, 1 << 3, 1 << 2, 1 << 1, 1
FUNCTIONS = (0, SOL, SUL, BOL, BUL, POL)
LIMITED = SOL | SUL | BOL | BUL | POL
SHUNT_LSB_V, BUS_LSB_V = 2.5e-6, 1.25e-3
SHUNT_NOISE_V, BUS_NOISE_V = 2.5e-6, 0.6e-3  # rms at 140 us: assumed, about the LSB


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


class INA226(Sensor):
    NAME = "INA226"
    RESET = {CONFIG: 0x4127, CALIBRATION: 0, MASK_ENABLE: 0, ALERT_LIMIT: 0}
    IDS = {0xFE: 0x5449, 0xFF: 0x2260}
    STARTUP_ns = 300_000
    WAKE_ns = 40_000  # "full recovery from power-down requires 40 us"
    HEATING_C = 0

    def _clear(self):
        self.shunt = self.bus = self.current = self.power = self.cycle_current = 0
        self.watched = False

    def _configure(self, t):
        """A new CONFIG: the conversion under way is dropped, the first of the new kind starts now."""
        config = self.reg[CONFIG]
        bus_us, shunt_us = CT_us[config >> 6 & 7], CT_us[config >> 3 & 7]
        self.shunt_noise = self.noise * SHUNT_NOISE_V * (140 / shunt_us) ** 0.5
        self.bus_noise = self.noise * BUS_NOISE_V * (140 / bus_us) ** 0.5
        self.sums = [0] * 4  # of a set: SHUNT, CURRENT, BUS, POWER
        if config & 3:  # power-down leaves it
            self.reg[MASK_ENABLE] &= ~CVRF
        averages = AVERAGES[config >> 9 & 7]
        self._schedule(t, shunt_us if config & 1 else 0, bus_us if config & 2 else 0, 0, averages, bool(config & 4))

    def ready_at(self):
        """When ALERT next becomes active, or may become it by a limit, if nothing is written or read before."""
        mask = self.reg[MASK_ENABLE]
        if mask & AFF or mask & CNVR and mask & CVRF:
            return NEVER
        if self.watched:
            if not mask & LEN:
                raise ValueError("SIMULATED INA226: an interrupt by a limit wants LEN")
            return min(self.early, self.end)
        return self.set_end() if mask & CNVR else NEVER

    def alert(self):
        """Level of the ALERT line (open drain, pulled up)."""
        mask = self.reg[MASK_ENABLE]
        active = mask & CNVR and mask & CVRF or mask & AFF
        return 1 if bool(active) == bool(mask & APOL) else 0

    def _shunt(self, volts):
        v = max(-32768, min(32767, round(volts / SHUNT_LSB_V)))
        current, over = current_register(v, self.reg[CALIBRATION])
        self.cycle_current = current
        if over:
            self.reg[MASK_ENABLE] |= OVF
        else:
            self.reg[MASK_ENABLE] &= ~OVF
        if self.averages == 1:
            self.shunt, self.current = v, current
        else:
            self.sums[0] += v
            self.sums[1] += current
        if self.watched:
            self._limit(SOL, v - self._signed_limit())
            self._limit(SUL, self._signed_limit() - v)

    def _bus(self, volts):
        v = max(0, min(0x7FFF, round(volts / BUS_LSB_V)))
        power, over = power_register(self.cycle_current, v)
        if over:
            self.reg[MASK_ENABLE] |= OVF
        if self.averages == 1:
            self.bus, self.power = v, power
        else:
            self.sums[2] += v
            self.sums[3] += power
        if self.watched:
            self._limit(BOL, v - self.reg[ALERT_LIMIT])
            self._limit(BUL, self.reg[ALERT_LIMIT] - v)
            self._limit(POL, power - self.reg[ALERT_LIMIT])

    def _ready(self):
        if self.averages > 1:
            shunt, current, bus, power = [s // self.averages for s in self.sums]
            self.sums = [0] * 4
            if self.channels & SHUNT:
                self.shunt, self.current = shunt, current
            if self.channels & BUS:
                self.bus, self.power = bus, power
        self.reg[MASK_ENABLE] |= CVRF

    def _signed_limit(self):
        limit = self.reg[ALERT_LIMIT]
        return limit - 0x10000 if limit & 0x8000 else limit

    def _limit(self, function, beyond):
        """If the function is the selected one: is its result beyond the limit, by more than 0?"""
        mask = self.reg[MASK_ENABLE]
        if mask & function:
            if beyond > 0:
                self.reg[MASK_ENABLE] = mask | AFF
            elif not mask & LEN:
                self.reg[MASK_ENABLE] = mask & ~AFF

    def value(self, register, t):
        """(value, bytes) as a read at t gives it, with the read's effects. ValueError: no such register."""
        self.advance(t)
        if register == MASK_ENABLE:
            v = self.reg[MASK_ENABLE]
            self.reg[MASK_ENABLE] = v & ~(CVRF | AFF) if v & LEN else v & ~CVRF
            return v, 2
        if register == 0x4:
            return self.current & 0xFFFF, 2
        if register == 0x2:
            return self.bus, 2
        if register == 0x1:
            return self.shunt & 0xFFFF, 2
        if register == 0x3:
            return self.power, 2
        return self.stored(register), 2

    def write(self, register, value, t):
        """A 16-bit write that ends at t. ValueError: of what must not be written."""
        self.advance(t)
        if register == CONFIG:
            if value & 0x8000:
                self.power_on(t)
                return
            self.keep(CONFIG, value, 0x4FFF)
            self.reg[CONFIG] |= 0x4000
            self._configure(t)
        elif register == MASK_ENABLE:
            if value & LIMITED not in FUNCTIONS:
                raise ValueError(
                    "SIMULATED INA226: MASK/ENABLE is written %04x, with more than one limit function" % value
                )
            self.reg[MASK_ENABLE] = value & 0xFC03 | self.reg[MASK_ENABLE] & 0x1C
            self.watched = bool(value & LIMITED)
            self.early = self._early()
        elif register == CALIBRATION:
            self.keep(CALIBRATION, value, 0x7FFF)
        elif register == ALERT_LIMIT:
            self.reg[ALERT_LIMIT] = value
        else:
            self.keep(register, value, 0)
