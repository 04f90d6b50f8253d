"""Whether sensors can be read in time: by how much a stamp may be late, how long a reading takes, and what that leaves.
This file runs on CPython too; the host links it."""

BUS_Hz = (1_096_000, 400_000)  # of I2C (board.py)
OWN_us = 25  # that a stamp may be late on its own: 18 were seen
# More for each other rail on its bus. Of three 93 us were seen (tests/emulator/measure.py), which 35 would hold; but
# then three rails at 1031/s give up one sample in 10 000, whose reading begins in the last 30 us that it may. Two
# rare things must meet for a value of the next conversion: such a reading, and a stamp later than this.
BESIDE_us = 20
# By how much a stamp may be off where a state machine counts the age of its edge (alert_age.py): a tick of the timer
# before, and one after it with the cycles between the two readings. 2.9 were seen
AGED_us = 4
# What flash makes of it where none does: the emulated flash of the figures here never waits. With waits 176 were seen
# instead of 85 (tests/whole/test_emulated_stamps.py)
FLASH = 3
IRQ_us = 50  # for each on the other bus: a conversion's interrupt. 112 were seen next to an INA229
# That a rail takes the main loop from a conversion to its sample, and to open the switch. A full S frame takes 1.0 ms,
# the USB stack 0.3, and conversions meanwhile wait for the next round, which takes 1: 2.2 ms were seen at 4273/s
# (emulated RP2040). A hello asked for while the rig streams is not allowed for: 5 ms more, 8 of three rails.
LOOP_us = 3000
MOST_CLAIMED = 950  # of 1000 of a bus' time
I2C_BEGIN_us, SPI_BEGIN_us = 20, 10  # from the stamp to the first of a reading
I2C_SOON_clocks, SPI_SOON_us = 30, 13  # from there until what the next shunt conversion replaces has been taken


def delay_us(rails, others=0):
    """By how much a stamp may be late of a rail on a bus of this many rails, with others on the other bus."""
    return OWN_us + BESIDE_us * (rails - 1) + IRQ_us * others


def cycles(Hz, of_Hz):
    """Processor clocks (at of_Hz) of an I2C clock made by machine.I2C(freq=Hz): the Pico SDK divides the period
    3:2, the block adds SPKLEN + 7 to the high and 1 to the low part (RP2040 data sheet 4.3.14.1)."""
    period = (of_Hz + Hz // 2) // Hz
    return period + max(1, period * 3 // 5 // 16) + 8


def clock(Hz, of_Hz):
    """That clock in us / 256."""
    return (cycles(Hz, of_Hz) << 8) * 1_000_000 // of_Hz


def i2c_us(n, clock):
    """Two times START and address, the pointer, n bytes; STOP and pause."""
    return (31 + 9 * n) * clock >> 8


def spi_us(n):
    """Bytes at 8.9 MHz, chip select, and the code that moves them."""
    return n + 3


def shortest(conversion_us):
    """By a fast oscillator."""
    return conversion_us * 199 // 200


def late_us(period_us, shunt_us, sample_us, taken_us, soon_us, begin_us, delay_us, stamp_us):
    """How late after its stamp a reading may begin, so that its values belong to one conversion; None: it cannot be
    read in time, or losses between two stamps would be miscounted. sample_us: that it takes; taken_us: until its last
    register has been taken; delay_us: by how much its interrupt may be late; stamp_us: its stamp. Times by a fast
    oscillator: `shortest`."""
    # a temperature that is converted before the shunt voltage only gives more time
    if min(period_us - sample_us, shunt_us - soon_us) - delay_us < begin_us or 2 * delay_us > period_us:
        return None
    return min(period_us - taken_us, shunt_us - soon_us) - min(delay_us, stamp_us)


def claimed(sample_us, period_us):
    """Share of the bus time that a rail's samples take, in 1/1000."""
    return 1000 * sample_us // period_us


def trip_us(conversion_us, rails):
    """What a rail's limit needs at least, of this many rails: a conversion until it is seen at all, another until the
    last one is complete, and the main loop, in whose round each rail may send a frame."""
    return 2 * conversion_us + LOOP_us * rails
