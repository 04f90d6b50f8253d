"""For tests: the SIMULATED board with a feed of known power, and the least of a host to talk to it."""

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

from ssdrig import micropython, wire
from ssdrig.errors import ToolMissing
from ssdrig.virtual import cable, feed

ROOT = Path(__file__).resolve().parents[1]
VBUS_V, CURRENT_A = 195.3125e-6, 7.8125e-6
ENERGY_J = 16 * 3.2 * CURRENT_A


def interpreter() -> list[str]:
    """MicroPython's command; skips the test, saying why, where there is none."""
    try:
        return micropython.command()
    except ToolMissing as e:
        pytest.skip(str(e))


def run_script(name: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess:
    """Run tests/micropython/NAME with the firmware and the stand-ins in its path."""
    argv = [*interpreter(), "-X", "heapsize=8M", f"tests/micropython/{name}", "firmware", "host/ssdrig/virtual/board", *arguments]
    return subprocess.run(argv, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=100)


def make_feed(path: Path, watts: float, t0_ns: int | None = None, seconds: float = 16) -> None:
    """A feed of constant power from t0_ns (now) on; 0 W after `seconds`."""
    ring = feed.create(str(path), time.monotonic_ns() if t0_ns is None else t0_ns)
    cable.fill(ring, watts, range(int(seconds * 1e9 / feed.BIN_NS)))


class Board:
    """`with Board(tmp_path, watts, faults) as b`: the cable's process and an open port. frames: [(kind, seq, body)]."""

    def __init__(self, folder: Path, watts: float = 2.5, faults: dict | None = None, feed_path: Path | None = None):
        interpreter()
        self.feed = feed_path or folder / "feed"
        if feed_path is None:
            make_feed(self.feed, watts)
        self.truth_path = folder / "truth.json"
        self.faults = {"noise": 0, "offset_uV": 0, "gain_ppm": 0, "vbus_gain_ppm": 0, **(faults or {})}
        self.frames, self.damaged, self.rest, self.seq = [], [], b"", 0

    def __enter__(self):
        argv = [sys.executable, "-m", "ssdrig.virtual.cable", "--feed", str(self.feed), "--truth", str(self.truth_path)]
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

    def truth(self) -> list[dict]:
        return json.loads(self.truth_path.read_text())

    def logs(self) -> str:
        return "\n".join(body.decode() for body in self.bodies(wire.LOG))

    def samples(self) -> list[tuple[int, int, int, int]]:
        """(index, t_us, vbus, current) of every sample."""
        out = []
        for body in self.bodies(wire.SAMPLES):
            _, _, n, _, index, t, = struct.unpack_from(wire.SAMPLES_HEAD, body)
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

    def firmware_pid(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def reset(self) -> None:
        self.process.send_signal(signal.SIGUSR1)
