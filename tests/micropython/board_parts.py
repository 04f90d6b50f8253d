"""Runs under MicroPython: the firmware's small parts against expectations computed here by other means.

    micropython board_parts.py FIRMWARE STAND_INS
"""

import usys

usys.path[:] = [usys.argv[1], usys.argv[2], ".frozen"]

import cosim
import clock64
import ina228
import time


def check(name, seen, expected):
    print(name, "ok" if seen == expected else "expected %r seen %r" % (expected, seen))


# 64-bit time across two wraps of ticks_us, and stamps taken before and after the last update
cosim.begin(10**9, (1 << 30) - 5_000_000, 0)
clock = clock64.Clock64()
start = cosim.ticks()
buf = bytearray(12)
for seconds in (0, 1, 4, 6, 300, 400, 400, 400, 1):
    cosim.now += seconds * 10**9
    true = cosim.ticks()
    tick = time.ticks_us()
    clock.put(buf, 2, tick)
    check("late stamp", int.from_bytes(buf[2:10], "little") - true, 3)  # ticks_us itself takes 3 us
    clock.update()
    clock.put(buf, 2, tick)
    check("early stamp", int.from_bytes(buf[2:10], "little") - true, 3)
check("wraps", clock.wraps, 2)
check("untouched", (buf[0], buf[1], buf[10], buf[11]), (0, 0, 0, 0))

# SHUNT_CAL: TI's example (16.2 mOhm, 10 A), ours (10 mOhm, 4.096 A, fine)
check("cal", ina228.shunt_cal(10 * 10**12 // 2**19, 16_200, False), 4050)
check("cal", ina228.shunt_cal(7_812_500, 10_000, True), 4096)
check("adc", ina228.adc_config(150, 540, 50), 0xF500)

# register bytes to the wire's sample
sample = bytearray(10)
for vbus, current in ((0, 0), (25600, 64000), (0x7FFFF, -1), (1, -524288), (0x12345, 524287)):
    raw = (vbus << 4).to_bytes(3, "big") + ((current & 0xFFFFF) << 4).to_bytes(3, "big")
    ina228.pack_sample(sample, 1, 65000, raw)
    check("dt", int.from_bytes(sample[1:3], "little"), 65000)
    check("vbus", int.from_bytes(sample[3:6], "little"), vbus)
    check("current", int.from_bytes(sample[6:9], "little"), current & 0xFFFFFF)
check("untouched", (sample[0], sample[9]), (0, 0))
