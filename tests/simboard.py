"""For tests: the SIMULATED board with a feed of known power, and the least of a host to talk to it."""

import argparse
import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
import tty
from pathlib import Path

import pytest

from ssdrig import wire
from ssdrig.errors import ToolMissing
from ssdrig.rig import command as rig_command
from ssdrig.setup import micropython
from ssdrig.virtual import feed
from ssdrig.virtual.rig import cable

ROOT = Path(__file__).resolve().parents[1]
VBUS_V, CURRENT_A = 195.3125e-6, 9.765625e-6
SUPPLY_OHM = 0.015 + 0.008  # source with leads, shunt
ENERGY_J = 16 * 3.2 * CURRENT_A


def interpreter() -> list[str]:
    """MicroPython's command; skips the test, saying why, where there is none."""
    try:
        return micropython.command()
    except ToolMissing as e:
        pytest.skip(str(e))


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
    return subprocess.run(argv, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=100)


def make_feed(path: Path, watts: float, t0_ns: int | None = None, seconds: float = 16) -> None:
    """A feed of constant power from t0_ns (now) on; 0 W after `seconds`."""
    make_steps(path, [(watts, seconds)], t0_ns)


def make_steps(path: Path, steps: list[tuple[float, float]], t0_ns: int | None = None) -> int:
    """A feed of (watts, seconds), one step after the other, from t0_ns (now) on, which is returned; then 0 W."""
    t0_ns = time.monotonic_ns() if t0_ns is None else t0_ns
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


def until(reached, limit_s=60):
    """Wait for something to become true; a test that waits in vain fails."""
    deadline = time.monotonic() + limit_s
    while not reached():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


class Line:
    """The least of a host on an open port. frames: [(kind, seq, body)]."""

    def __init__(self, fd: int):
        self.fd = fd
        self.frames, self.damaged, self.rest, self.seq = [], [], b"", 0

    def send(self, kind: int, body: bytes = b"") -> None:
        os.write(self.fd, wire.encode(kind, self.seq, body))
        self.seq += 1

    def read(self, seconds: float) -> None:
        """Take what comes within the time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                self._take(os.read(self.fd, 65536))

    def until(self, done, seconds: float = 30):
        """Read until done() is true, and return what it said; pytest.fail after the time."""
        end = time.monotonic() + seconds
        while not (said := done()):
            if time.monotonic() > end:
                pytest.fail(f"not seen within {seconds} s; frames: {[(chr(k), s) for k, s, _ in self.frames[-20:]]}")
            self.read(0.02)
        return said

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
        for _ in range(20):
            self.send(wire.ASK_HELLO)
            end = time.monotonic() + 1
            while time.monotonic() < end:
                self.read(0.02)
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
        out = []
        for body in self.bodies(wire.SAMPLES):
            _, _, n, _, index, t = struct.unpack_from(wire.SAMPLES_HEAD, body)
            for k in range(n):
                at = struct.calcsize(wire.SAMPLES_HEAD) + wire.SAMPLE_BYTES * k
                t += int.from_bytes(body[at : at + 2], "little")
                vbus = int.from_bytes(body[at + 2 : at + 5], "little", signed=True)
                out.append((index + k, t, vbus, int.from_bytes(body[at + 5 : at + 8], "little", signed=True)))
        return out

    def missed(self) -> int:
        return struct.unpack_from(wire.SAMPLES_HEAD, self.bodies(wire.SAMPLES)[-1])[3]

    def energies(self) -> list[dict]:
        out = []
        for body in self.bodies(wire.ENERGY):
            _, config, index, t_us, energy, charge, temp, diag = struct.unpack(wire.ENERGY_BODY, body)
            energy, charge = int.from_bytes(energy, "little"), int.from_bytes(charge, "little", signed=True)
            out.append(dict(config=config, index=index, t_us=t_us, energy=energy, charge=charge, temp=temp, diag=diag))
        return out


class Board(Line):
    """`with Board(tmp_path, watts, faults) as b`: the cable's process and an open port. frames: [(kind, seq, body)]."""

    def __init__(self, folder: Path, watts: float = 2.5, faults: dict | None = None, feed_path: Path | None = None):
        interpreter()
        self.feed = feed_path or folder / "feed"
        if feed_path is None:
            make_feed(self.feed, watts)
        self.truth_path = folder / "truth.json"
        self.faults = {"noise": 0, "offset_uV": 0, "gain_ppm": 0, "vbus_gain_ppm": 0, **(faults or {})}
        super().__init__(-1)

    def __enter__(self):
        argv = [
            sys.executable,
            "-m",
            "ssdrig.virtual.rig.cable",
            "--feed",
            str(self.feed),
            "--truth",
            str(self.truth_path),
        ]
        argv += ["--faults", json.dumps(self.faults), "--die-with-parent"]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "host")}
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.stderr.read().decode())
        self.fd = os.open(json.loads(line)["port"], os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.fd)
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        self.process.terminate()
        try:
            self.process.wait(10)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()

    def truth(self) -> list[dict]:
        return json.loads(self.truth_path.read_text())

    def firmware_pid(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def reset(self) -> None:
        self.process.send_signal(signal.SIGUSR1)
