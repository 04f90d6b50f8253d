"""The one file that knows this board: pins, bus, rails, shunts. Raspberry Pi Pico or Pico 2, one sensor a rail (INA228, INA226), up to four."""

import sys
from binascii import hexlify

import i2c_fifo
from ina226 import INA226
from ina228 import INA228
from machine import I2C, Pin, unique_id

NAME = sys.implementation._machine
SERIAL = hexlify(unique_id()).decode()  # also the board's serial number on USB
SIMULATED = "SIMULATED" in NAME
SDA, SCL = 4, 5
BUS_Hz = 1_096_000  # asked for: the RP2 port's SCL is then 0.99 MHz on the RP2040, 1.0 on the RP2350 (the block adds cycles)

# Full scale 4.096 A: 40.96 mV range across 10 mOhm. Current LSB = 4.096 A / 2**19.
# 540 us of each 740 us see the current; the bus voltage hardly moves and its short conversion is enough.
RAILS = (
    {
        "rail": 0,
        "name": "supply",
        "chip": "INA228",
        "bus": "I2C0",
        "address": 0x40,
        "alert": 6,
        "shunt_uOhm": 10_000,
        "shunt_tolerance_ppm": 10_000,
        "current_lsb_pA": 7_812_500,
        "fine": True,
        "vbus_us": 150,
        "vshunt_us": 540,
        "temp_us": 50,
    },
)

# Gates of the rails that the rig can cut: `gate` high opens the series switch, `gate` + 1 high closes the discharge switch.
# Both are pulled down on the board, so that a pin that nobody drives (reset, REPL) leaves the rail on.
SWITCH = ({"rail": 0, "gate": 10},)
# ADC inputs of the scope: the rail's voltage through a divider by 2 (10 kOhm + 10 kOhm); a count is 3.3 V / 4096 of the input.
SCOPE = ({"rail": 0, "gpio": 26, "nV_per_count": 1_611_328},)


def bus():
    """The I2C bus. A transaction that gets no answer raises OSError, after 5 ms at the latest."""
    return I2C(0, sda=Pin(SDA), scl=Pin(SCL), freq=BUS_Hz, timeout=5000)


def clock_out():
    """Free a chip that was left in the middle of a read and holds SDA low. The pins are the bus's again after bus()."""
    clock = Pin(SCL, Pin.OPEN_DRAIN, value=1)
    for _ in range(9):
        clock.value(0)
        clock.value(1)


def alert_pin(gpio):
    return Pin(gpio, Pin.IN, Pin.PULL_UP)


def chips():
    """The driver of each row of RAILS, in order."""
    wired = [rail for rail in RAILS if rail["bus"] == "I2C0"]
    lanes = i2c_fifo.Bus(bus, clock_out, i2c_fifo.PAGE[0], [rail["address"] for rail in wired]).lanes
    lane_of = {rail["rail"]: lane for rail, lane in zip(wired, lanes)}
    return [{"INA226": INA226, "INA228": INA228}[rail["chip"]](lane_of[rail["rail"]], rail) for rail in RAILS]
