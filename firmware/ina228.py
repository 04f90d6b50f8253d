"""Texas Instruments INA228: 20-bit shunt and bus voltage, current, power, energy and charge over I2C.

Registers and formulas are those of the data sheet (SBOSA20); values stay the chip's raw integers.
Reads into a caller's buffer allocate nothing.
"""

import micropython

CONFIG, ADC_CONFIG, SHUNT_CAL = 0x00, 0x01, 0x02
VSHUNT, VBUS, DIETEMP, CURRENT, POWER = 0x04, 0x05, 0x06, 0x07, 0x08
ENERGY, CHARGE, DIAG_ALRT = 0x09, 0x0A, 0x0B
MANUFACTURER_ID, DEVICE_ID = 0x3E, 0x3F

RANGE_40mV = 1 << 4  # CONFIG.ADCRANGE
RSTACC = 1 << 14  # CONFIG: clears ENERGY and CHARGE
ALATCH_CNVR = 0xC000  # DIAG_ALRT: ALERT falls at conversion ready, until DIAG_ALRT is read
VBUS_LSB_nV = 195312.5
CONVERSION_us = (50, 84, 150, 280, 540, 1052, 2074, 4120)


class SensorError(Exception):
    """The chip is another one, has forgotten its configuration, or has stopped converting."""


def adc_config(vbus_us, vshunt_us, temp_us):
    """ADC_CONFIG for continuous conversion of all three, no averaging."""
    code = CONVERSION_us.index
    return 0xF << 12 | code(vbus_us) << 9 | code(vshunt_us) << 6 | code(temp_us) << 3


def shunt_cal(current_lsb_pA, shunt_uOhm, fine):
    """SHUNT_CAL = 13107.2e6 * CURRENT_LSB * R, four times that in the 40.96 mV range; rounded."""
    return (131072 * current_lsb_pA * shunt_uOhm * (4 if fine else 1) + 5 * 10**12) // 10**13


@micropython.viper
def pack_sample(buf: ptr8, at: int, dt_us: int, raw: ptr8):
    """The wire's sample from the register bytes raw = VBUS 3 | CURRENT 3 (big endian, value << 4)."""
    buf[at] = dt_us & 255
    buf[at + 1] = (dt_us >> 8) & 255
    for k in range(2):
        v = (raw[3 * k] << 12) | (raw[3 * k + 1] << 4) | (raw[3 * k + 2] >> 4)
        if v & 0x80000:
            v |= 0xF00000
        buf[at + 2 + 3 * k] = v & 255
        buf[at + 3 + 3 * k] = (v >> 8) & 255
        buf[at + 4 + 3 * k] = (v >> 16) & 255


class INA228:
    def __init__(self, bus, address):
        self.bus = bus
        self.address = address
        self.two = bytearray(2)

    def read_into(self, register, buf):
        """Register bytes, most significant first. OSError if the chip does not answer."""
        self.bus.readfrom_mem_into(self.address, register, buf)

    def read16(self, register):
        self.read_into(register, self.two)
        return self.two[0] << 8 | self.two[1]

    def write16(self, register, value):
        self.two[0] = value >> 8
        self.two[1] = value & 255
        self.bus.writeto_mem(self.address, register, self.two)

    def identify(self):
        """SensorError unless the chip is an INA228 (any revision)."""
        seen = self.read16(MANUFACTURER_ID), self.read16(DEVICE_ID)
        if seen[0] != 0x5449 or seen[1] >> 4 != 0x228:
            raise SensorError("expected an INA228 at 0x%02x, seen IDs %04x %04x" % (self.address, seen[0], seen[1]))

    def sleep(self):
        """Shutdown: no conversions, registers kept."""
        self.write16(ADC_CONFIG, 0)

    def start(self, config, adc, cal):
        """Configure, clear the accumulators and begin to convert. The first conversion starts with the
        ADC_CONFIG write; RSTACC comes after it, long before that conversion's end, so none is counted twice."""
        self.write16(CONFIG, config)
        self.write16(SHUNT_CAL, cal)
        self.write16(DIAG_ALRT, ALATCH_CNVR)
        self.write16(ADC_CONFIG, adc)
        self.write16(CONFIG, config | RSTACC)
        self.read16(DIAG_ALRT)

    def check(self, config, adc, cal):
        """SensorError if the chip was reset by a brown-out since `start`."""
        if self.read16(ADC_CONFIG) != adc or self.read16(SHUNT_CAL) != cal or self.read16(CONFIG) != config:
            seen = self.read16(CONFIG), self.read16(ADC_CONFIG), self.read16(SHUNT_CAL)
            raise SensorError("sensor forgot its configuration (brown-out): registers %04x %04x %04x" % seen)
