"""What the SIMULATED board costs and whether it keeps up: share of a core, samples lost, speed when it is behind."""

import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import tty
from pathlib import Path

from selfcheck import Figure, at_its_rate, at_least, at_most, exactly
from ssdrig.meter import wire
from ssdrig.virtual import cable
from ssdrig.virtual.flash import feed

STREAM_s = 15
STOP_s = 2.0


class _Stream:
    """Reads frames from the port and keeps what the figures need."""

    def __init__(self, port: str):
        self.fd = os.open(port, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.fd)
        self.rest = b""
        self.hello: dict = {}
        self.heads: list = []
        self.energies: list = []

    def read_until(self, done) -> None:
        while not done():
            if select.select([self.fd], [], [], 0.01)[0]:
                *frames, self.rest = (self.rest + os.read(self.fd, 65536)).split(b"\x00")
                for kind, _, body in (wire.decode(f) for f in frames if f):
                    if kind == wire.HELLO:
                        self.hello = json.loads(body)
                    elif kind == wire.SAMPLES:
                        self.heads.append(struct.unpack_from(wire.SAMPLES_HEAD, body))
                    elif kind == wire.ENERGY and struct.unpack_from("<BBI", body)[2]:
                        self.energies.append(body[0])


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def board() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        path, truth_path = f"{folder}/feed", f"{folder}/truth"
        cable.fill(feed.create(path, time.monotonic_ns()), 2.5)
        argv = [
            sys.executable,
            "-P",
            "-m",
            "ssdrig.virtual.cable",
            "--feed",
            path,
            "--truth",
            truth_path,
            "--die-with-parent",
        ]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert process.stdout
        try:
            stream = _Stream(json.loads(process.stdout.readline())["port"])
            os.write(stream.fd, wire.encode(wire.ASK_HELLO, 0) + wire.encode(wire.GO, 1))
            stream.read_until(lambda: stream.heads and stream.hello)
            firmware = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
            began, cpu, cable_cpu = time.monotonic(), _cpu_s(firmware), _cpu_s(process.pid)
            stream.read_until(lambda: time.monotonic() > began + STREAM_s)
            elapsed = time.monotonic() - began
            cpu, cable_cpu = _cpu_s(firmware) - cpu, _cpu_s(process.pid) - cable_cpu
            first, last = stream.heads[0], stream.heads[-1]
            rate = (last[4] - first[4]) / (last[5] - first[5]) * 1e6
            lost = last[4] + last[2] - sum(h[2] for h in stream.heads)
            truth = json.loads(Path(truth_path).read_text())[-1]

            os.kill(firmware, signal.SIGSTOP)
            time.sleep(STOP_s)
            os.kill(firmware, signal.SIGCONT)
            resumed = time.monotonic_ns()

            def behind_ns():
                t_us = stream.heads[-1][5] - truth["tick0"]
                return time.monotonic_ns() - truth["t_boot_ns"] - t_us * 1000 / (1 + truth["ppm"] * 1e-6)

            behind_then = behind_ns()
            stream.read_until(lambda: behind_ns() < 100e6)
            took = time.monotonic_ns() - resumed
            os.close(stream.fd)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
    return [
        at_its_rate("samples per second, V and I each", rate, stream.hello["rails"][0]),
        exactly("samples lost", lost, "", 0),
        at_most("firmware and stand-ins, share of one core", 100 * cpu / elapsed, "%", 30),
        at_most("cable, share of one core", 100 * cable_cpu / elapsed, "%", 10),
        at_least("speed when catching up, times real time", (behind_then + took - 100e6) / took, "", 3),
    ]


_SLOW = {"vbus_us": 150, "vshunt_us": 540, "temp_us": 280}
_FAST = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}
_SPI = {"chip": "INA229", "bus": "SPI0", "cs": 1, "vbus_us": 50, "vshunt_us": 50, "temp_us": None}
RATE_s = 5  # of board time


def _rates(settings: dict, rails: int) -> list[tuple[float, int, int]]:
    """(samples per second of board time, samples not there, E frames) of each rail, chips 0.5 % slow unless said
    otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/feed"
        cable.fill(feed.create(path, time.monotonic_ns()), 2.5)
        argv = [
            sys.executable,
            "-P",
            "-m",
            "ssdrig.virtual.cable",
            "--feed",
            path,
            "--truth",
            f"{folder}/truth",
            "--die-with-parent",
        ]
        argv += ["--faults", json.dumps({"osc_ppm": -5000.0, **settings})]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
        assert process.stdout
        try:
            stream = _Stream(json.loads(process.stdout.readline())["port"])
            os.write(stream.fd, wire.encode(wire.GO, 0))
            stream.read_until(lambda: stream.heads and stream.heads[-1][5] - stream.heads[0][5] > RATE_s * 1e6)
            os.close(stream.fd)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
    out = []
    for rail in range(rails):
        heads = [h for h in stream.heads if h[0] == rail]
        first, last = heads[0], heads[-1]
        rate = (last[4] - first[4]) / (last[5] - first[5]) * 1e6
        out.append((rate, last[4] + last[2] - sum(h[2] for h in heads), stream.energies.count(rail)))
    return out


def rates() -> list[Figure]:
    """The highest rates, in device time: I2C at the 1008 ns a clock that the RP2040 makes of BUS_Hz (i2c_block.scl_ns),
    SPI at the
    8.93 MHz that it makes of 10 (spi_block.sck_Hz), 20 us to the interrupt's first line, 22 us for a call of
      machine.I2C (measured on an emulated RP2040), 8 us for a call of viper code, 160 ns for a register access, 2 us
      for a sample that lane.drain moves (assumed). The interpreter's own time per bytecode is not modelled.

    Why an INA229 comes through: of the 100 us between two conversions its interrupt takes 20 us to begin, 8 for the
    call and some 12 for three frames (88 bits and their registers); CURRENT has been taken 34 us after the conversion,
    before the next shunt conversion replaces it at 50. In the RP2 port on an emulated RP2040, bytecode and all
    (tests/whole/test_emulated.py), it is 44 us in all and CURRENT after 25. That leaves half of the time to the main
    loop, which moves all samples that have come since its last round in one call, and sends 50 of them in 448 bytes of
    the 585 KiB/s of USB each 5 ms. The ring holds 25 ms."""
    ((fast, fast_lost, fast_energies),) = _rates({"rail": _FAST}, 1)
    rows = [
        {
            **_SLOW,
            "rail": n,
            "name": f"rail {n}",
            "address": 0x40 + n,
            "alert": 6 + n,
            "simulated": {"A": 0.3, "V": 12.0},
        }
        for n in (1, 2)
    ]
    ((spi, spi_lost, _),) = _rates({"rail": _SPI, "osc_ppm": 0.0, "ppm": 0.0}, 1)
    ((slow_spi, slow_spi_lost, _),) = _rates({"rail": _SPI}, 1)
    three = _rates({"rail": _SLOW, "rails": rows}, 3)
    return [
        at_least("one rail, V and I each, chip 0.5 % slow", fast, "1/s", 4000),
        exactly(
            "samples lost, but for one that each reading of the accumulators takes", fast_lost - fast_energies, "", 0
        ),
        at_least("INA229 over SPI, V and I each, chip and board exact", round(spi), "1/s", 10_000),
        at_least("INA229 over SPI, V and I each, chip 0.5 % slow", slow_spi, "1/s", 9_949),
        exactly("samples lost of both", spi_lost + slow_spi_lost, "", 0),
        at_least("three rails on one bus, the slowest of them", min(r for r, _, _ in three), "1/s", 1000),
        exactly("samples lost of three rails", sum(n for _, n, _ in three), "", 0),
    ]


BENCHES = {
    "board": ("what the SIMULATED board costs, and that it loses nothing", board),
    "rates": ("the highest rates of the firmware on the SIMULATED board, in device time", rates),
}
