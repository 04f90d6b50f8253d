"""The one file that knows this board: pins, bus, rails, shunts. Raspberry Pi Pico or Pico 2, one INA228."""

import sys

import ina228
from machine import I2C, Pin

NAME = sys.implementation._machine
SIMULATED = "SIMULATED" in NAME
SDA, SCL, BUS_Hz = 4, 5, 1_000_000

# Full scale 4.096 A: 40.96 mV range across 10 mOhm. Current LSB = 4.096 A / 2**19.
# 540 us of each 740 us see the current; the bus voltage hardly moves and its short conversion is enough.
RAILS = (
    {
        "rail": 0,
        "name": "supply",
        "address": 0x40,
        "alert": 6,
        "shunt_uOhm": 10_000,
        "current_lsb_pA": 7_812_500,
        "fine": True,
        "vbus_us": 150,
        "vshunt_us": 540,
        "temp_us": 50,
    },
)


def bus():
    """The I2C bus. A transaction that gets no answer raises OSError, after 5 ms at the latest."""
    return I2C(0, sda=Pin(SDA), scl=Pin(SCL), freq=BUS_Hz, timeout=5000)


def free_bus():
    """Clock out a chip that was left in the middle of a read and holds SDA low, then give the pins back to the bus."""
    clock = Pin(SCL, Pin.OPEN_DRAIN, value=1)
    for _ in range(9):
        clock.value(0)
        clock.value(1)
    bus()


def alert_pin(gpio):
    return Pin(gpio, Pin.IN, Pin.PULL_UP)


def settings(rail):
    """(CONFIG, ADC_CONFIG, SHUNT_CAL, length of a conversion set in us) of a row of RAILS."""
    return (
        ina228.RANGE_40mV if rail["fine"] else 0,
        ina228.adc_config(rail["vbus_us"], rail["vshunt_us"], rail["temp_us"]),
        ina228.shunt_cal(rail["current_lsb_pA"], rail["shunt_uOhm"], rail["fine"]),
        rail["vbus_us"] + rail["vshunt_us"] + rail["temp_us"],
    )
