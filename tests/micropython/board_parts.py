"""Runs under MicroPython: the firmware's small parts against expectations computed here by other means.

micropython board_parts.py FIRMWARE STAND_INS
"""

import usys

usys.path[:] = [usys.argv[1], usys.argv[2], ".frozen"]

import alert_age_model
import cosim
import clock64
import i2c_block
import ina226
import ina228
import time

usys.modules["alert_age"] = alert_age_model
i2c_block.install(usys.argv[1] + "/i2c_fifo.py")
import sampler


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

# a script's words to values, and values to the wire's sample
rail = {
    "fine": True,
    "vbus_us": 150,
    "vshunt_us": 540,
    "temp_us": 50,
    "current_lsb_pA": 7_812_500,
    "shunt_uOhm": 10_000,
}
chip = ina228.INA228(None, rail)
sample = bytearray(10)
for vbus, current in ((0, 0), (25600, 64000), (0x7FFFF, -1), (1, -524288), (0x12345, 524287)):
    raw = ((current & 0xFFFFF) << 4).to_bytes(3, "big") + b"\xc0\x03" + (vbus << 4).to_bytes(3, "big") + b"\0"
    check("flags", chip.decode([0] + [int.from_bytes(raw[k : k + 3], "big") for k in (0, 3, 6)], 1), True)
    check("zero", chip.zero(), vbus == 0 or current == 0)
    sampler.put_sample(sample, 1, 65000, chip.vbus, chip.signed())
    check("dt", int.from_bytes(sample[1:3], "little"), 65000)
    check("vbus", int.from_bytes(sample[3:6], "little"), vbus)
    check("current", int.from_bytes(sample[6:9], "little"), current & 0xFFFFFF)
check("untouched", (sample[0], sample[9]), (0, 0))
check("reset", chip.decode([0, 0x0001_00, 0], 0), False)
small = ina226.INA226(None, {"vbus_us": 140, "vshunt_us": 204, "current_lsb_pA": 1_000_000_000, "shunt_uOhm": 2_000})
check("cal", small.cal, 2560)  # TI's example: 1 mA, 2 mOhm
check("config", small.adc, 0x400F)
for vbus, current in ((9584, 10000), (0x7FFF, -1), (1, -32768)):  # TI's example: 11.98 V, 10 A
    raw = b"\x04\x08" + (current & 0xFFFF).to_bytes(2, "big") + vbus.to_bytes(2, "big")
    check("flags", bool(small.decode([int.from_bytes(raw[k : k + 3], "big") for k in (0, 3)], 0)), True)
    check("226", (small.vbus, small.signed()), (vbus, current & 0xFFFFFF))
