"""Runs under MicroPython: the firmware streams for any time in device time alone, with faults of the bus at
set times, SIMULATED. selfcheck soak (selfcheck/soak.py) reads what comes of it.

    micropython soak.py FIRMWARE < SETTINGS

SETTINGS: JSON, {"rails": rows that differ from the first of board.RAILS, "ticks": the board's microseconds at its
start, "s": how long, "faults": [[s, kind, value]], "look_s": between two looks at the memory}. Faults: "nack" (ms),
"stuck" (SDA, until it is clocked out), "wrong" ([register, bits]: the next read of it has them turned over), "reset"
(number of the rail: its sensor forgets everything).

On standard output: the rig's frames; on standard error a JSON object for each look. What flows is 0.5 A and 10 mA more
each second, for 61 seconds, then again (`amps`)."""

import usys

usys.path[:] = [usys.argv[1], ".", ".frozen"]

import adc_ring_model
import alert_age_model
import cosim
import gc
import i2c_block
import json
import machine
import registers_model
import select
import wire
import wiring

how = json.loads(usys.stdin.read())


class Stream:
    def ready(self):
        return (select.POLLIN if cosim.input_ready() else 0) | select.POLLOUT

    def readinto(self, buf):
        cosim.spend(8000)
        buf[0] = cosim.input_byte()
        return 1

    def write(self, buf, start, n):
        cosim.spend(8000 + 100 * n)
        return usys.stdout.buffer.write(memoryview(buf)[start : start + n])


class Implementation:
    _machine = "SIMULATED"


class Sys:
    implementation = Implementation
    print_exception = usys.print_exception


def idle():
    """Until the next interrupt: a board looks each millisecond whether there is anything to do."""
    cosim.spend(10_000)
    cosim.idle(20_000_000)


def amps(t0, t1, t2):
    """Status at the window's first moment."""
    return 0.5 + (t0 // 1_000_000_000 % 61) * 0.01, 5.0


def fault():
    """Execute the next one, and set the alarm for the one after it."""
    _, kind, value = how["faults"].pop(0)
    if kind == "nack":
        machine.nack_until = cosim.now + value * 1_000_000
    elif kind == "stuck":
        machine.sda_stuck = True
    elif kind == "wrong":
        machine.wrong[value[0]] = value[1]
    else:
        chips[value].advance(cosim.now)
        chips[value].power_on(cosim.now)
        machine._arm(chips[value])
    next_fault()


def next_fault():
    if how["faults"]:
        cosim.set_alarm(alarm, cosim.boot + int(how["faults"][0][0] * 1e9))


def look():
    gc.collect()
    status = {"s": (cosim.now - cosim.boot) // 1_000_000_000, "t_us": cosim.ticks(), "used": gc.mem_alloc()}
    usys.stderr.write(json.dumps(status) + "\n")


Sys.stdin = Sys.stdout = Stream()
Sys.stdin.buffer = Sys.stdin
cosim._look = cosim._take = lambda: None
machine.idle = idle
usys.modules["sys"] = Sys
usys.modules["registers"] = registers_model
usys.modules["adc_ring"] = adc_ring_model
usys.modules["alert_age"] = alert_age_model
i2c_block.install(usys.argv[1] + "/i2c_fifo.py")
cosim.begin(0, how["ticks"], 0, 1.0)  # with a pace, and nothing looks at it: no time but the board's

import board

board.RAILS = tuple([dict(board.RAILS[0], **row) for row in how["rails"]])
chips = wiring.sensors(board.RAILS, amps, cosim.boot, (0, 0, 0, 0, 0))
for chip in chips:
    chip.supply = amps
alarm = cosim.add_alarm(fault)
next_fault()

import rig

board = rig.Rig()
for kind in (wire.ASK_HELLO, wire.GO):
    cosim._input.append([cosim.now, wire.encode(kind, 0), 0])
end = cosim.boot + int(how["s"] * 1e9)
seen = 0
while cosim.now < end:
    if cosim.now >= seen:
        look()
        seen = cosim.now + int(how["look_s"] * 1e9)
    if not board.turn():
        machine.idle()
board.stop()
while board.link.send():
    pass
look()
