"""Texas Instruments INA226: 16-bit shunt and bus voltage, current and power over I2C. The cheap alternative to the
INA228 with the same interface, without accumulators; its offset of up to 10 uV hides an idle drive (1 mA at 10 mOhm).

Registers and formulas are those of the data sheet (SBOS547); values stay the chip's raw integers.
"""

from ina228 import INA228, SensorError

CONFIG, SHUNT, BUS, POWER, CURRENT, CALIBRATION, MASK_ENABLE = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
MANUFACTURER_ID, DIE_ID = 0xFE, 0xFF
CNVR = 1 << 10  # MASK_ENABLE: ALERT falls at conversion ready, until MASK_ENABLE is read
CVRF = 1 << 3  # a conversion was completed since MASK_ENABLE was read last
CONVERSION_us = (140, 204, 332, 588, 1100, 2116, 4156, 8244)


def config(vbus_us, vshunt_us):
    """CONFIG for continuous conversion of both, no averaging."""
    code = CONVERSION_us.index
    return 0x4000 | code(vbus_us) << 6 | code(vshunt_us) << 3 | 7


def calibration(current_lsb_pA, shunt_uOhm):
    """CALIBRATION = 0.00512 / (CURRENT_LSB * R), cut off."""
    return 5_120_000_000_000_000 // (current_lsb_pA * shunt_uOhm)


class INA226:
    NAME = "INA226"
    WHO = MANUFACTURER_ID, DIE_ID
    IDS = 0x5449, 0x226
    ids, identify = INA228.ids, INA228.identify
    SCRATCH = CALIBRATION  # a register that can be written and read back before `prepare`
    WAKE_us = 40  # from power-down to the first conversion
    VBUS_LSB_nV = 1_250_000
    FLAGS = MASK_ENABLE  # reading it lets go of ALERT
    BITS, READY, CARE = 16, CNVR | CVRF, CNVR | CVRF
    CNVRF = CVRF
    SAMPLE = (MASK_ENABLE, 2), (CURRENT, 2), (BUS, 2)  # CURRENT first, as with the INA228
    EXTRA = INSTEAD = ()

    def __init__(self, lane, rail):
        """`rail`: a row of board.RAILS."""
        self.lane = lane
        self.adc = config(rail["vbus_us"], rail["vshunt_us"])
        self.cal = calibration(rail["current_lsb_pA"], rail["shunt_uOhm"])
        self.conversion_us = rail["vbus_us"] + rail["vshunt_us"]
        self.shunt_us = rail["vshunt_us"]  # comes before the bus voltage in a set
        self.flags = self.vbus = self.current = 0
        self.ends = min(0x7FFF, 0x7FFF * self.cal >> 11)  # of CURRENT, or of its inputs

    def sleep(self):
        """Power-down: no conversions, registers kept."""
        self.lane.write16(CONFIG, self.adc & ~7)

    def die_mC(self):
        """It measures no temperature."""

    def prepare(self):
        """Configure; asleep."""
        self.sleep()
        self.lane.write16(CALIBRATION, self.cal)
        self.lane.write16(MASK_ENABLE, CNVR)
        self.lane.read16(MASK_ENABLE)

    def begin(self):
        """The first conversion starts with the end of this write."""
        self.lane.write16(CONFIG, self.adc)

    def check(self):
        """SensorError if the chip was reset by a brown-out since `prepare`: CALIBRATION 0 is what Linux' ina2xx looks
        for."""
        seen = self.lane.read16(CONFIG), self.lane.read16(CALIBRATION)
        if seen != (self.adc, self.cal):
            raise SensorError("sensor forgot its configuration (brown-out): registers %04x %04x" % seen)

    def decode(self, mem, at):
        """Flags, CURRENT (16 bits of two's complement) and BUS from SAMPLE's words mem[at:], three bytes each. False if
        the flags are not those that `prepare` has set."""
        a, b = mem[at], mem[at + 1]
        self.flags = a >> 8
        self.current = (a & 0xFF) << 8 | b >> 16
        self.vbus = b & 0xFFFF
        return self.flags & CNVR

    def zero(self):
        """Is a value exactly 0, as it is in a chip that was just reset?"""
        return not self.vbus or not self.current

    def signed(self):
        """CURRENT as 24 bits of two's complement."""
        return self.current | 0xFF0000 if self.current & 0x8000 else self.current
