"""Register-level model of TI's INA228 (SLYS021), SIMULATED. Runs on MicroPython and on CPython.

Modelled, besides ina_model.py: registers with their reset values, IDs, pointer, RST and RSTACC, both shunt
ranges, saturation, CURRENT, POWER, MATHOF, temperature compensation of the shunt, ENERGY and CHARGE with their
fractions kept, by the chip's own idea of time and of every cycle, the six limits with their flags, ALERT, loss of
everything at a brown-out.

A limit is compared with the upper 16 bits of its result (TEMP_LIMIT with all of DIETEMP), as their units imply, each
time this result is there: in every cycle, or with SLOWALERT once a set, with the average. The limits of the reset state
are never passed. Latched (ALATCH), a flag stays until DIAG_ALRT is read; transparent, it follows its comparison. ALERT
is by the flags, including CNVRF if CNVR is set.

Stricter than the chip, because the data sheet leaves it open or the firmware has no business with it: reserved bits and
read-only registers must not be written, registers that do not exist not be read, and conversion ready on ALERT, or an
interrupt by a limit, asks for the latched mode (transparent it is a pulse of a length that is not given). Assumed:
averages and the compensated current are cut off. Not modelled: MEMSTAT is always 1; the SMBus alert response address is
not answered."""

from ina_model import AVERAGES, BUS, DIE, NEVER, SHUNT, Sensor

CT_us = (50, 84, 150, 280, 540, 1052, 2074, 4120)
CONFIG, ADC_CONFIG, SHUNT_CAL, SHUNT_TEMPCO, DIAG_ALRT = 0x0, 0x1, 0x2, 0x3, 0xB
SOVL, SUVL, BOVL, BUVL, TEMP_LIMIT, PWR_LIMIT = 0xC, 0xD, 0xE, 0xF, 0x10, 0x11
LIMITS = {
    SOVL: 0x7FFF,
    SUVL: 0x8000,
    BOVL: 0x7FFF,
    BUVL: 0,
    TEMP_LIMIT: 0x7FFF,
    PWR_LIMIT: 0xFFFF,
}  # as reset: never passed
RESET = {CONFIG: 0, ADC_CONFIG: 0xFB68, SHUNT_CAL: 0x1000, SHUNT_TEMPCO: 0, DIAG_ALRT: 1}
RESET.update(LIMITS)
WRITABLE = {
    SHUNT_CAL: 0x7FFF,
    SHUNT_TEMPCO: 0x3FFF,
    SOVL: 0xFFFF,
    SUVL: 0xFFFF,
    BOVL: 0x7FFF,
    BUVL: 0x7FFF,
    TEMP_LIMIT: 0xFFFF,
    PWR_LIMIT: 0xFFFF,
}
ALATCH, CNVR, SLOWALERT, APOL = 1 << 15, 1 << 14, 1 << 13, 1 << 12
ENERGYOF, CHARGEOF, MATHOF = 1 << 11, 1 << 10, 1 << 9
TMPOL, SHNTOL, SHNTUL, BUSOL, BUSUL, POL, CNVRF = 1 << 7, 1 << 6, 1 << 5, 1 << 4, 1 << 3, 1 << 2, 1 << 1
OUT_OF_RANGE = TMPOL | SHNTOL | SHNTUL | BUSOL | BUSUL | POL
TEMPCOMP, ADCRANGE = 1 << 5, 1 << 4  # of CONFIG
VBUS_LSB_V = 195.3125e-6
SHUNT_LSB_V = (312.5e-9, 78.125e-9)  # by ADCRANGE
TEMP_LSB_C = 7.8125e-3
SHUNT_NOISE_V = 8.6e-6  # rms at 50 us: 12.5 noise-free bits of 327.68 mV, peak to peak = 6.6 rms
VBUS_NOISE_V = 1.9e-3
NOMINAL = 128_000_000  # ppm in 1, times counts of DIETEMP in 1 C


def current_register(vshunt, shunt_cal, resistance=NOMINAL):
    """CURRENT = VSHUNT * 4096 / SHUNT_CAL, cut towards zero; (value, out of range). 0 when SHUNT_CAL is 0.
    resistance: the shunt's, as `compensated` has it."""
    if shunt_cal == 0:
        return 0, False
    if resistance == NOMINAL:
        value = abs(vshunt) * 4096 // shunt_cal
    else:
        value = abs(vshunt) * 4096 * NOMINAL // (shunt_cal * resistance)
    over = value > 524287
    value = 524287 if over else value
    return (-value if vshunt < 0 else value), over


def compensated(temp, tempco):
    """NOMINAL * R_ADJ / R_NOM of R_ADJ = R_NOM + R_NOM * (DIETEMP - 25 C) * SHUNT_TEMPCO * 1e-6 (SLYS021 7.3.5,
    equation 1)."""
    return NOMINAL + (temp - 3200) * tempco


def power_register(vbus, current):
    """POWER = VBUS * |CURRENT| >> 14, at most 24 bits; (value, out of range)."""
    value = vbus * abs(current) >> 14
    return (0xFFFFFF, True) if value > 0xFFFFFF else (value, False)


def signed16(value):
    return value - 0x10000 if value & 0x8000 else value


class INA228(Sensor):
    NAME = "INA228"
    RESET = RESET
    IDS = {0x3E: 0x5449, 0x3F: 0x2281}
    STARTUP_ns = 300_000  # from reset to the first conversion
    WAKE_ns = 60_000  # and from shutdown
    HEATING_C = 640e-6 * 3.3 * 177.6  # quiescent current at 3.3 V, junction to ambient of the VSSOP: 0.4 C

    def _clear(self):
        self.vshunt = self.vbus = self.current = self.power = self.temp = 0
        self.cycle_current = 0
        self.watched = False  # a limit can be passed
        self._clear_accumulators()

    def _clear_accumulators(self):
        self.energy = self.energy_part = self.charge = self.charge_part = 0

    def _configure(self, t):
        """A new ADC_CONFIG: the conversion under way is dropped, the first of the new kind starts now."""
        adc = self.reg[ADC_CONFIG]
        mode = adc >> 12
        bus_us, shunt_us, die_us = CT_us[adc >> 9 & 7], CT_us[adc >> 6 & 7], CT_us[adc >> 3 & 7]
        self.shunt_noise = self.noise * SHUNT_NOISE_V * (50 / shunt_us) ** 0.5
        self.bus_noise = self.noise * VBUS_NOISE_V * (50 / bus_us) ** 0.5
        self.shunt_lsb = SHUNT_LSB_V[self.reg[CONFIG] >> 4 & 1]
        self.sums = [0] * 5  # of a set: VSHUNT, CURRENT, VBUS, POWER, DIETEMP
        if mode & 7:
            self.reg[DIAG_ALRT] &= ~CNVRF
            t += (self.reg[CONFIG] >> 6 & 0xFF) * 2_000_000
        averages = AVERAGES[adc & 7]
        self.slow = averages > 1 and bool(self.reg[DIAG_ALRT] & SLOWALERT)  # limits are for the average
        self._schedule(
            t, shunt_us if mode & 2 else 0, bus_us if mode & 1 else 0, die_us if mode & 4 else 0, averages, mode > 8
        )

    def ready_at(self):
        """When ALERT next becomes active, or may become it by a limit, if nothing is written or read before."""
        flags = self.reg[DIAG_ALRT]
        if flags & OUT_OF_RANGE or flags & CNVR and flags & CNVRF:
            return NEVER
        if self.watched:
            if not flags & ALATCH:
                raise ValueError("SIMULATED %s: an interrupt by a limit wants ALATCH" % self.NAME)
            return min(self.early, self.end)
        return self.set_end() if flags & CNVR else NEVER

    def alert(self):
        """Level of the ALERT line (open drain, pulled up)."""
        flags = self.reg[DIAG_ALRT]
        active = flags & OUT_OF_RANGE or flags & CNVR and flags & CNVRF
        return 1 if bool(active) == bool(flags & APOL) else 0

    def _shunt(self, volts):
        v = round(volts / self.shunt_lsb)
        if v > 524287:
            v = 524287
        elif v < -524288:
            v = -524288
        resistance = NOMINAL
        if self.reg[CONFIG] & TEMPCOMP:
            if not self.channels & DIE:
                raise ValueError("SIMULATED %s: TEMPCOMP wants a mode that measures the temperature" % self.NAME)
            resistance = compensated(self.temp, self.reg[SHUNT_TEMPCO])
        current, over = current_register(v, self.reg[SHUNT_CAL], resistance)
        self.cycle_current = current
        if over:
            self.reg[DIAG_ALRT] |= MATHOF
        else:
            self.reg[DIAG_ALRT] &= ~MATHOF
        if self.continuous:
            part = self.charge_part + current * self.cycle_ns  # LSB = CURRENT's LSB * 1 s
            self.charge += part // 1_000_000_000
            self.charge_part = part % 1_000_000_000
            if not -(1 << 39) <= self.charge < 1 << 39:
                self.charge = (self.charge + (1 << 39)) % (1 << 40) - (1 << 39)
                self.reg[DIAG_ALRT] |= CHARGEOF
        if self.averages == 1:
            self.vshunt, self.current = v, current
        else:
            self.sums[0] += v
            self.sums[1] += current
        if self.watched and not self.slow:
            self._limit_shunt(v)

    def _bus(self, volts):
        v = round(volts / VBUS_LSB_V)
        if v > 524287:
            v = 524287
        elif v < 0:
            v = 0
        power, over = power_register(v, self.cycle_current)
        if over:
            self.reg[DIAG_ALRT] |= MATHOF
        if self.continuous:
            part = self.energy_part + power * self.cycle_ns  # LSB = 16 * POWER's LSB * 1 s
            self.energy += part // 16_000_000_000
            self.energy_part = part % 16_000_000_000
            if self.energy >> 40:
                self.energy &= 0xFFFFFFFFFF
                self.reg[DIAG_ALRT] |= ENERGYOF
        if self.averages == 1:
            self.vbus, self.power = v, power
        else:
            self.sums[2] += v
            self.sums[3] += power
        if self.watched and not self.slow:
            self._limit_bus(v, power)

    def _die(self, celsius):
        v = round(celsius / TEMP_LSB_C)
        if self.averages == 1:
            self.temp = v
        else:
            self.sums[4] += v
        if self.watched and not self.slow:
            self._limit(TMPOL, v > signed16(self.reg[TEMP_LIMIT]))

    def _ready(self):
        if self.averages > 1:
            vshunt, current, vbus, power, temp = [s // self.averages for s in self.sums]
            self.sums = [0] * 5
            if self.channels & SHUNT:
                self.vshunt, self.current = vshunt, current
            if self.channels & BUS:
                self.vbus, self.power = vbus, power
            if self.channels & DIE:
                self.temp = temp
            if self.watched and self.slow:
                self._limit_shunt(self.vshunt)
                self._limit_bus(self.vbus, self.power)
                self._limit(TMPOL, self.temp > signed16(self.reg[TEMP_LIMIT]))
        self.reg[DIAG_ALRT] |= CNVRF

    def _limit_shunt(self, vshunt):
        self._limit(SHNTOL, vshunt >> 4 > signed16(self.reg[SOVL]))
        self._limit(SHNTUL, vshunt >> 4 < signed16(self.reg[SUVL]))

    def _limit_bus(self, vbus, power):
        self._limit(BUSOL, vbus >> 4 > self.reg[BOVL])
        self._limit(BUSUL, vbus >> 4 < self.reg[BUVL])
        self._limit(POL, power >> 8 > self.reg[PWR_LIMIT])

    def _limit(self, flag, beyond):
        flags = self.reg[DIAG_ALRT]
        if beyond:
            self.reg[DIAG_ALRT] = flags | flag
        elif not flags & ALATCH:
            self.reg[DIAG_ALRT] = flags & ~flag

    def value(self, register, t):
        """(value, bytes) as a read at t gives it, with the read's effects. ValueError: no such register."""
        self.advance(t)
        if register == DIAG_ALRT:
            v = self.reg[DIAG_ALRT]
            if v & ALATCH:
                self.reg[DIAG_ALRT] = v & ~(CNVRF | OUT_OF_RANGE)
            return v, 2
        if register == 0x7:
            return self.current << 4 & 0xFFFFFF, 3
        if register == 0x5:
            return self.vbus << 4, 3
        if register == 0x4:
            return self.vshunt << 4 & 0xFFFFFF, 3
        if register == 0x6:
            return self.temp & 0xFFFF, 2
        if register == 0x8:
            return self.power, 3
        if register == 0x9:
            self.reg[DIAG_ALRT] &= ~ENERGYOF
            return self.energy, 5
        if register == 0xA:
            self.reg[DIAG_ALRT] &= ~CHARGEOF
            return self.charge & 0xFFFFFFFFFF, 5
        return self.stored(register), 2

    def write(self, register, value, t):
        """A 16-bit write that ends at t. ValueError: of what must not be written."""
        self.advance(t)
        if register == CONFIG:
            if value & 0x8000:
                self.power_on(t)
                return
            if value & 0x4000:
                self._clear_accumulators()
                self.reg[DIAG_ALRT] &= ~MATHOF
            self.keep(CONFIG, value & 0x3FFF, 0x3FF0)
            self.shunt_lsb = SHUNT_LSB_V[value >> 4 & 1]
        elif register == ADC_CONFIG:
            self.reg[ADC_CONFIG] = value
            self._configure(t)
        elif register == DIAG_ALRT:
            if value & (CNVR | ALATCH) == CNVR:
                raise ValueError("SIMULATED %s: CNVR wants ALATCH" % self.NAME)
            self.reg[DIAG_ALRT] = value & 0xF000 | self.reg[DIAG_ALRT] & 0x0FFF
            self.slow = self.averages > 1 and bool(value & SLOWALERT)
        else:
            self.keep(register, value, WRITABLE.get(register, 0))
            self.watched = any([self.reg[r] != off for r, off in LIMITS.items()])
            self.early = self._early()
