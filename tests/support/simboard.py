"""For tests: the SIMULATED board with a feed of known power, and the least of a host to talk to it."""

import argparse
import contextlib
import functools
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from zygote import CABLE, Forked

from ssdrig.base.errors import ToolMissing
from ssdrig.commands import rig as rig_command
from ssdrig.meter import wire
from ssdrig.setup import micropython
from ssdrig.virtual import cable
from ssdrig.virtual.flash import feed

ROOT = Path(__file__).resolve().parents[2]
VBUS_V, CURRENT_A = 195.3125e-6, 9.765625e-6
SENSED_OHM = 0.015 + 0.008  # source with leads, shunt: what the sensor's voltage falls by
SUPPLY_OHM = SENSED_OHM + 0.024  # and the leads to the drive
SET_us = 50 + 1052  # conversions of board.py, by the chip's clock
ENERGY_J = 16 * 3.2 * CURRENT_A


def interpreter() -> list[str]:
    """MicroPython's command; skips the test, saying why, where there is none."""
    try:
        return [*_interpreter(os.environ.get("SSDRIG_MICROPYTHON"))]
    except ToolMissing as e:
        pytest.skip(str(e))


@functools.cache
def _interpreter(named: str | None) -> list[str]:
    """For each board the program would be started once more, to be asked for its version."""
    return micropython.command()


def run_script(name: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
    """Run tests/micropython/NAME with the firmware and the stand-ins in its path."""
    argv = [
        *interpreter(),
        "-X",
        "heapsize=8M",
        f"tests/micropython/{name}",
        "firmware",
        "host/ssdrig/virtual/board",
        *arguments,
    ]
    return subprocess.run(argv, cwd=ROOT, input=stdin, capture_output=True, text=True)


def make_feed(path: Path, watts: float):
    """A feed of constant power, as long as it is wanted. Returns its ring: `cable.fill(ring, watts)` changes the power
    at once."""
    ring = feed.create(str(path), 0, bins=1)
    cable.fill(ring, watts)
    return ring


def make_steps(path: Path, steps: list[tuple[float, float]]) -> int:
    """A feed of (watts, seconds), one step after the other, from now (ns) on, which is returned; then 0 W."""
    t0_ns = time.monotonic_ns()
    ring, at = feed.create(str(path), t0_ns), 0
    for watts, seconds in steps:
        bins = int(seconds * 1e9 / feed.BIN_NS)
        cable.fill(ring, watts, range(at, at + bins))
        at += bins
    return t0_ns


@contextlib.contextmanager
def lent_port(board: "Board"):
    """The board's port, for someone else to open as long as this lasts."""
    port = os.ttyname(board.fd)
    os.close(board.fd)
    try:
        yield port
    finally:
        board.fd = os.open(os.devnull, os.O_RDONLY)


def run_rig(*words: str) -> int:
    """The command `rig`; its exit code or the error it raises."""
    parser = argparse.ArgumentParser()
    rig_command.add_arguments(parser)
    return rig_command.command(parser.parse_args(words))


PATIENCE_S = 900  # of the host's time, for what comes in seconds on one that has nothing else to do


def until(reached, limit_s=PATIENCE_S):
    """Wait for something to become true; a test that waits in vain fails."""
    deadline = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@functools.cache
def samples_in(body: bytes) -> list[tuple[int, int, int, int]]:
    """(index, t_us, vbus, current) of the samples of a frame."""
    _, _, n, _, index, t = struct.unpack_from(wire.SAMPLES_HEAD, body)
    out = []
    for k in range(n):
        at = struct.calcsize(wire.SAMPLES_HEAD) + wire.SAMPLE_BYTES * k
        t += int.from_bytes(body[at : at + 2], "little")
        vbus, current = (int.from_bytes(body[at + j : at + j + 3], "little", signed=True) for j in (2, 5))
        out.append((index + k, t, vbus, current))
    return out


class Line:
    """The least of a host on an open port. frames: [(kind, seq, body)]."""

    def __init__(self, fd: int):
        self.fd = fd
        self.frames, self.damaged, self.rest, self.seq = [], [], b"", 0

    def send(self, kind: int, body: bytes = b"") -> None:
        self.write(wire.encode(kind, self.seq, body))
        self.seq += 1

    def write(self, data: bytes, seconds: float = PATIENCE_S) -> None:
        """All of it, as the other end takes it; pytest.fail after the time: nobody reads there any more."""
        os.set_blocking(self.fd, False)
        end = time.monotonic() + seconds
        while data:
            if not select.select([], [self.fd], [], max(0.0, end - time.monotonic()))[1]:
                pytest.fail(f"{len(data)} bytes were not taken within {seconds} s")
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self.fd, data) :]

    def read(self, seconds: float) -> None:
        """Take what comes within the time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                self._take(os.read(self.fd, 65536))

    def until(self, done, seconds: float = PATIENCE_S):
        """Read until done() is true, and return what it said; pytest.fail after the time."""
        end = time.monotonic() + seconds
        while not (result := done()):
            if time.monotonic() > end:
                pytest.fail(f"not seen within {seconds} s; frames: {[(chr(k), s) for k, s, _ in self.frames[-20:]]}")
            self.read_some()
        return result

    def read_some(self) -> None:
        """Wait a moment for something to come, and take it."""
        if select.select([self.fd], [], [], 0.1)[0]:
            if not (data := os.read(self.fd, 65536)):
                pytest.fail("the other end has closed the port")
            self._take(data)

    def _take(self, data: bytes) -> None:
        *frames, self.rest = (self.rest + data).split(b"\x00")
        for frame in frames:
            if not frame:
                continue
            try:
                self.frames.append(wire.decode(frame))
            except wire.WireError:
                self.damaged.append(frame)

    def bodies(self, kind: int) -> list[bytes]:
        return [body for k, _, body in self.frames if k == kind]

    def hello(self) -> dict:
        """Say hello (and again, should it be lost) and return the answer to it."""
        known = len(self.bodies(wire.HELLO))
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self.send(wire.ASK_HELLO)
            again = time.monotonic() + 2
            while time.monotonic() < again:
                self.read_some()
                if len(self.bodies(wire.HELLO)) > known:
                    return json.loads(self.bodies(wire.HELLO)[-1])
        pytest.fail("no hello")

    def go(self) -> None:
        self.hello()
        self.send(wire.GO)

    def logs(self) -> str:
        return "\n".join(body.decode() for body in self.bodies(wire.LOG))

    def samples(self) -> list[tuple[int, int, int, int]]:
        """(index, t_us, vbus, current) of every sample."""
        return [sample for body in self.bodies(wire.SAMPLES) for sample in samples_in(body)]

    def missed(self) -> int:
        return struct.unpack_from(wire.SAMPLES_HEAD, self.bodies(wire.SAMPLES)[-1])[3]

    def energies(self) -> list[dict]:
        out = []
        for body in self.bodies(wire.ENERGY):
            _, config, index, t_us, energy, charge, temp, diag = struct.unpack(wire.ENERGY_BODY, body)
            energy, charge = int.from_bytes(energy, "little"), int.from_bytes(charge, "little", signed=True)
            out.append(dict(config=config, index=index, t_us=t_us, energy=energy, charge=charge, temp=temp, diag=diag))
        return out


# Beside Board's faults. A Board's time is its own (virtual/board/cosim.py): it passes with the host's while the machine
# has time for the board, and else stands still. Tests that only listen, or wait for long, let it pass faster; where
# the host must have said something before something happens on the board it has a second of its own time for that.
# Tests that compare the board with the host's clock need the host's time, and a machine that is not too busy.
FAST, TWICE = {"pace": 4.0}, {"pace": 2.0}
REAL_TIME = {"pace": 0.0}
SLOW = {
    "vbus_us": 540,
    "vshunt_us": 1052,
    "temp_us": 540,
}  # of a rail: 470 samples a second, for a third of the CPU time


def changed_firmware(folder: Path, file: str, **constants: int) -> dict:
    """Settings of a board that runs a copy of the firmware in which these constants of a file have other values."""
    flash = folder / "flash"
    shutil.copytree(ROOT / "firmware", flash)
    text = (flash / file).read_text()
    for name, value in constants.items():
        text, count = re.subn(rf"(?m)^{name} = \S+", f"{name} = {value}", text)
        assert count == 1, name
    (flash / file).write_text(text)
    return {"flash": str(flash)}


class Board(Line):
    """`with Board(tmp_path, watts, faults) as b`: the cable's process and an open port. frames: [(kind, seq, body)]."""

    def __init__(self, folder: Path, watts: float = 2.5, faults: dict | None = None, feed_path: Path | None = None):
        interpreter()
        self.feed = feed_path or folder / "feed"
        if feed_path is None:
            make_feed(self.feed, watts)
        self.truth_path = folder / "truth.json"
        faults = {"pace": 1.0, "noise": 0, "offset_uV": 0, "gain_ppm": 0, "vbus_gain_ppm": 0, **(faults or {})}
        self.pace, self.faults = faults.pop("pace"), faults
        super().__init__(-1)

    def __enter__(self):
        words = ["--feed", str(self.feed), "--truth", str(self.truth_path), "--faults", json.dumps(self.faults)]
        words += ["--pace", str(self.pace), "--die-with-parent"]
        self.err = tempfile.TemporaryFile()
        self.process = Forked(words, self.err, CABLE)
        try:
            self._open()
        except BaseException:
            self._end()
            raise
        return self

    def _open(self) -> None:
        """The port, as soon as the cable says which. RuntimeError: it does not."""
        out = self.process.stdout
        line = out.readline() if select.select([out], [], [], PATIENCE_S)[0] else b""
        if not line:
            self.process.kill()
            self.process.wait()
            self.err.seek(0)
            raise RuntimeError(self.err.read().decode() or "no word of a port")
        # raw already, by the cable: setting it once more would discard what the board has said by now
        self.fd = os.open(json.loads(line)["port"], os.O_RDWR | os.O_NOCTTY)

    def __exit__(self, *_):
        self._end()

    def _end(self) -> None:
        """Cable and board, which dies with it, have ended then, whatever the test's time limit interrupts here."""
        try:
            if self.fd >= 0:
                os.close(self.fd)
            self.process.terminate()
            self.process.wait(100)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.err.close()

    def truth(self) -> list[dict]:
        return json.loads(self.truth_path.read_text())

    def firmware_pid(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def reset(self) -> None:
        self.process.send_signal(signal.SIGUSR1)
