"""Texas Instruments INA228: 20-bit shunt and bus voltage, current, power, energy and charge over I2C.

Registers and formulas are those of the data sheet (SLYS021); values stay the chip's raw integers. The scripts of a lane
(i2c_fifo.py, spi_lane.py) read samples and accumulators; `decode` takes a sample apart and allocates nothing. This
file runs on CPython too; the host links it."""

CONFIG, ADC_CONFIG, SHUNT_CAL = 0x00, 0x01, 0x02
VSHUNT, VBUS, DIETEMP, CURRENT, POWER = 0x04, 0x05, 0x06, 0x07, 0x08
ENERGY, CHARGE, DIAG_ALRT = 0x09, 0x0A, 0x0B
MANUFACTURER_ID, DEVICE_ID = 0x3E, 0x3F

RST = 1 << 15  # CONFIG
CNVRF = 1 << 1  # DIAG_ALRT: a conversion is complete
ONE_DIETEMP = 0x4018  # ADC_CONFIG: the temperature once, in 280 us
RANGE_40mV = 1 << 4  # CONFIG.ADCRANGE
RSTACC = 1 << 14  # CONFIG: clears ENERGY and CHARGE
ALATCH_CNVR = 0xC000  # DIAG_ALRT: ALERT falls at conversion ready, until DIAG_ALRT is read
VBUS_LSB_nV = 195312.5
# of DIAG_ALRT: set by ALATCH_CNVR, so the chip has not been reset since; bit 8 is always 0
SOUND, CARE = 0xC000, 0xC100
CONVERSION_us = (50, 84, 150, 280, 540, 1052, 2074, 4120)


class SensorError(Exception):
    """The chip is another one, has forgotten its configuration, or has stopped converting."""


def adc_config(vbus_us, vshunt_us, temp_us):
    """ADC_CONFIG for continuous conversion, no averaging; temp_us None: of voltage and current only."""
    code = CONVERSION_us.index
    if temp_us is None:
        return 0xB << 12 | code(vbus_us) << 9 | code(vshunt_us) << 6
    return 0xF << 12 | code(vbus_us) << 9 | code(vshunt_us) << 6 | code(temp_us) << 3


def shunt_conversion(adc_config):
    """(us of one conversion of the shunt voltage, how many make a sample) by an ADC_CONFIG."""
    return CONVERSION_us[adc_config >> 6 & 7], (1, 4, 16, 64, 128, 256, 512, 1024)[adc_config & 7]


def shunt_cal(current_lsb_pA, shunt_uOhm, fine):
    """SHUNT_CAL = 13107.2e6 * CURRENT_LSB * R, four times that in the 40.96 mV range; rounded."""
    return (131072 * current_lsb_pA * shunt_uOhm * (4 if fine else 1) + 5 * 10**12) // 10**13


class INA228:
    NAME = "INA228"
    WHO = MANUFACTURER_ID, DEVICE_ID
    IDS = 0x5449, 0x228  # its answer then, without the revision
    SCRATCH = SHUNT_CAL  # a register that can be written and read back before `prepare`
    WAKE_us = 60  # from shutdown to the first conversion
    FLAGS = DIAG_ALRT  # reading it lets go of ALERT
    BITS, READY, CARE = 20, SOUND | CNVRF, CARE | CNVRF
    CNVRF = CNVRF  # a conversion was completed since it was read last
    VBUS_LSB_nV = VBUS_LSB_nV
    # CURRENT first: the next shunt conversion, not the next set, replaces it
    SAMPLE = (CURRENT, 3), (DIAG_ALRT, 2), (VBUS, 3)
    EXTRA = (CHARGE, 5), (ENERGY, 5), (DIETEMP, 2)  # CHARGE first, as it goes with CURRENT
    INSTEAD = (DIAG_ALRT, 2), (CHARGE, 5), (ENERGY, 5)  # where EXTRA does not fit after SAMPLE within one conversion

    def __init__(self, lane, rail):
        """`rail`: a row of board.RAILS."""
        self.lane = lane
        self.config = RANGE_40mV if rail["fine"] else 0
        self.adc = adc_config(rail["vbus_us"], rail["vshunt_us"], rail["temp_us"])
        self.cal = shunt_cal(rail["current_lsb_pA"], rail["shunt_uOhm"], rail["fine"])
        self.conversion_us = rail["vbus_us"] + rail["vshunt_us"] + (rail["temp_us"] or 0)
        self.shunt_us = rail["vshunt_us"]  # comes before the bus voltage in a set
        self.flags = self.vbus = self.current = 0
        self.ends = min(0x7FFFF, 0x7FFFF * 4096 // (self.cal or 1))  # of CURRENT, or of its inputs

    def ids(self):
        """The chip's identity, to be compared with IDS. OSError."""
        return self.lane.read16(self.WHO[0]), self.lane.read16(self.WHO[1]) >> 4

    def identify(self):
        """SensorError unless the chip is the right one (any revision)."""
        seen = self.ids()
        if seen != self.IDS:
            raise SensorError(
                "expected an %s at %s, seen IDs %04x %03x" % (self.NAME, self.lane.where(), seen[0], seen[1])
            )

    def sleep(self):
        """Shutdown: no conversions, registers kept."""
        self.lane.write16(ADC_CONFIG, 0)

    def die_mC(self):
        """The die's temperature by one conversion, then a reset, so that DIETEMP is 0 until it is converted again."""
        self.lane.write16(ADC_CONFIG, ONE_DIETEMP)
        for _ in range(20):  # readings of 80 us or more
            if self.lane.read16(DIAG_ALRT) & CNVRF:
                break
        raw = self.lane.read16(DIETEMP)
        self.lane.write16(CONFIG, RST)
        return (raw - (raw >> 15 << 16)) * 125 // 16

    def prepare(self):
        """Configure, clear the accumulators; asleep."""
        self.sleep()
        self.lane.write16(SHUNT_CAL, self.cal)
        self.lane.write16(DIAG_ALRT, ALATCH_CNVR)
        self.lane.write16(CONFIG, self.config | RSTACC)
        self.lane.read16(DIAG_ALRT)

    def begin(self):
        """The first conversion starts with the end of this write."""
        self.lane.write16(ADC_CONFIG, self.adc)

    def check(self):
        """SensorError if the chip was reset by a brown-out since `prepare`."""
        seen = self.lane.read16(CONFIG), self.lane.read16(ADC_CONFIG), self.lane.read16(SHUNT_CAL)
        if seen != (self.config, self.adc, self.cal):
            raise SensorError("sensor forgot its configuration (brown-out): registers %04x %04x %04x" % seen)

    def state(self):
        """(DIETEMP, DIAG_ALRT)."""
        return self.lane.read16(DIETEMP), self.lane.read16(DIAG_ALRT)

    def decode(self, mem, at):
        """CURRENT (20 bits of two's complement), flags and VBUS from SAMPLE's words mem[at:], three bytes each. False
        if the flags are not those that `prepare` has set, or a bit that is always 0 is not."""
        a, b, c = mem[at], mem[at + 1], mem[at + 2]
        self.flags = b >> 8
        self.current = a >> 4
        self.vbus = (b & 0xFF) << 12 | c >> 12
        return self.flags & CARE == SOUND and not a & 0xF and not c & 0xF00  # a << 8 may need more than 31 bits

    def zero(self):
        """Is a value exactly 0, as it is in a chip that was just reset?"""
        return not self.vbus or not self.current

    def signed(self):
        """CURRENT as 24 bits of two's complement."""
        return self.current | 0xF00000 if self.current & 0x80000 else self.current
