"""Runs under MicroPython: the chip model through a fixed script of register accesses; prints each value read.

micropython model.py FIRMWARE STAND_INS        tests/virtual/test_ina228_model.py runs the same on CPython and compares
"""

import sys

if sys.implementation.name == "micropython":
    sys.path.insert(0, sys.argv[2])

from ina228_model import INA228, current_register, power_register


def supply(t0, t1, t2):
    """A ramp: 1 A per 100 ms; 5 V falling 10 mV per ms. Exact means of both."""
    return (t0 + t1) / 2 * 1e-8, 5 - (t1 + t2) / 2 * 1e-8


def script(say):
    chip = INA228(supply, 0, 10000, 5000, 0.5, 200, -100, 0)
    for reg in range(0x12):
        say(chip.value(reg, 0))
    chip.write(0x0, 0x10, 1000)
    chip.write(0xB, 0xC000, 2000)
    chip.write(0x1, 0xF500, 3000)
    chip.write(0x0, 0x4010, 4000)
    t = 4000
    for k in range(40):
        t += 300_000
        for reg in (0xB, 0x4, 0x5, 0x7, 0x8, 0x9, 0xA, 0x6):
            say(chip.value(reg, t))
        say((chip.alert(), chip.ready_at()))
    chip.power_on(t)
    say(chip.value(0x2, t))
    for vshunt in (-524288, -311040, -1, 0, 1, 311040, 524287):
        for cal in (0, 1, 4050, 4096, 0x7FFF):
            current, over = current_register(vshunt, cal)
            say((current, over, power_register(25600, current), power_register(524287, current)))


if __name__ == "__main__":
    script(print)
