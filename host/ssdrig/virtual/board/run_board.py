"""Powers on the SIMULATED board. Started by cable.py, which documents the settings; they come first on standard input
(length u32, JSON), because the interpreter takes no argument above 255 bytes.

Puts the stand-ins before MicroPython's own modules, wires a sensor to the drive's supply, and runs the firmware's
own main.py, which imports nothing but what it finds on a real board.
"""

import json

import usys

config = json.loads(usys.stdin.buffer.read(int.from_bytes(usys.stdin.buffer.read(4), "little")))
usys.path[:] = [config["firmware"], config["stand_ins"], ".frozen"]

import adc_ring_model
import cosim
import i2c_block
import machine
import os
import registers_model
import repl
import select
import wiring
from supply import Load, Supply
from switch_model import Gates

SHUNT_uOhm = 10_000


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
        self.platform = "rp2"
        self.implementation = _Implementation()
        self.print_exception = usys.print_exception


class _Implementation:
    name = "micropython"
    version = tuple(config["micropython"]) + ("",)
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


once_alarms = []


def once(t, function):
    """Call function at t."""
    for alarm in once_alarms:
        if alarm[0] == cosim.NEVER:
            break
    else:
        alarm = cosim.add_alarm(None)
        once_alarms.append(alarm)
    alarm[1] = function
    cosim.set_alarm(alarm, t)


def tell_drive(powered):
    """The drive's supply has crossed its lock-out: the cable tells the drive."""
    if config["power_fd"] >= 0:
        cosim._write(config["power_fd"], bytes([powered]) + cosim.now.to_bytes(8, "little"), 9)


cosim.begin(config["t_boot_ns"], config["tick0"], config["ppm"])
load = Load(*[config[name] for name in ("bulk_uF", "discharge_mOhm", "uvlo_percent", "leak_mA", "rise_ms", "gate_us")])
rail = Supply(config["feed"], config["source_mOhm"], SHUNT_uOhm, int(config["feed_delay_us"] * 1000), load, tell_drive, once)
machine.gates = Gates({10: rail}, config["edges"], lambda s: cosim.boot + int(s * 1e9))
usys.modules["registers"] = registers_model
usys.modules["adc_ring"] = adc_ring_model
adc_ring_model.inputs[26] = rail, 2
os.first = config["boot"].to_bytes(4, "little")
usys.modules["sys"] = _Sys()
if "board.py" in os.listdir(config["firmware"]):  # a flash without firmware has nothing that says what is wired where
    i2c_block.install(config["firmware"] + "/i2c_fifo.py")
    import board

    board.RAILS = tuple([dict(board.RAILS[0], **config["rail"])] + config["rails"])  # as one who builds another board edits its file
    errors = [config[name] for name in ("osc_ppm", "offset_uV", "gain_ppm", "vbus_gain_ppm", "noise")]
    chip = wiring.sensors(board.RAILS, rail.window, cosim.boot, errors)[0]
    fault_alarms()

os.chdir(config["flash"])
repl.start("main")  # runs until the host says quit, and then is what a tool for MicroPython finds
