"""Powers on the SIMULATED board. Started by cable.py, which documents the settings; they come first on standard input
(length u32, JSON), because the interpreter takes no argument above 255 bytes.

Puts the stand-ins before MicroPython's own modules, wires one INA228 to the drive's supply, and runs the firmware's
own main.py, which imports nothing but what it finds on a real board.
"""

import json

import usys

config = json.loads(usys.stdin.buffer.read(int.from_bytes(usys.stdin.buffer.read(4), "little")))
usys.path[:] = [config["firmware"], config["stand_ins"], ".frozen"]

import cosim
import machine
import os
import select
from ina228_model import INA228
from supply import Supply

ADDRESS, ALERT_GPIO, SHUNT_uOhm = 0x40, 6, 10_000


class _Stdin:
    def __init__(self):
        self.buffer = self

    def ready(self):
        return select.POLLIN if cosim.input_ready() else 0

    def readinto(self, buf):
        cosim.spend(8000)
        for k in range(len(buf)):
            buf[k] = cosim.input_byte()
        return len(buf)


class _Stdout:
    def __init__(self):
        self.buffer = self

    def ready(self):
        return select.POLLOUT if cosim.output_ready() else 0

    def write(self, buf, start=0, n=None):
        cosim.spend(8000)
        return cosim.output(buf, start, len(buf) if n is None else n)


class _Sys:
    def __init__(self):
        self.stdin = _Stdin()
        self.stdout = _Stdout()
        self.stderr = usys.stderr
        self.implementation = _Implementation()
        self.print_exception = usys.print_exception


class _Implementation:
    name = "micropython"
    version = usys.implementation.version
    _machine = "SIMULATED Raspberry Pi Pico with RP2040"


def fault_alarms():
    """Faults of the board itself, at set times: [seconds since boot, ...]."""
    for at, ms in config["stalls"]:
        _at(at, lambda ms=ms: cosim.spend(int(ms * 1e6)))
    for at in config["brownouts"]:
        _at(at, brown_out)
    for at, ms in config["nacks"]:
        _at(at, lambda ms=ms: setattr(machine, "nack_until", cosim.now + int(ms * 1e6)))
    for at in config["stuck_sda"]:
        _at(at, lambda: setattr(machine, "sda_stuck", True))


def _at(seconds, function):
    cosim.set_alarm(cosim.add_alarm(function), cosim.boot + int(seconds * 1e9))


def brown_out():
    chip.advance(cosim.now)
    chip.power_on(cosim.now)
    machine._arm(chip)


cosim.begin(config["t_boot_ns"], config["tick0"], config["ppm"])
rail = Supply(config["feed"], config["source_mOhm"], SHUNT_uOhm, int(config["feed_delay_us"] * 1000))
chip = INA228(
    rail.window,
    cosim.boot,
    SHUNT_uOhm,
    config["osc_ppm"],
    config["offset_uV"],
    config["gain_ppm"],
    config["vbus_gain_ppm"],
    config["noise"],
)
chip.alarm = None
machine.chips[ADDRESS] = chip
machine.wires[ALERT_GPIO] = chip
os.first = config["boot"].to_bytes(4, "little")
usys.modules["sys"] = _Sys()
fault_alarms()

__import__("main")  # runs until the host says quit

# The firmware has ended. On a board that is the REPL; here is none, but Ctrl-D restarts the board all the same.
while cosim.input_byte() != 4:
    pass
