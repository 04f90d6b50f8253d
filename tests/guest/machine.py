"""Boots the guest in QEMU (qemu.py) and runs commands in it.

It has the disks of DISKS, on which everything may be written, this machine's root file system read-only with a writable
layer in memory, and no network but this machine's loopback as 10.0.2.2. TCG, not KVM, for it must run where there is
none."""

import compileall
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from guest import initramfs, qemu
from guest.agent import PATH
from guest.inside import SHELL
from guest.kernel import NoKernel, kernel

BOOT_LIMIT_S = 900
LIMIT_S = 900  # for a command; a guest that gets a tenth of a processor needs minutes for what takes it seconds
PR_SET_PDEATHSIG = 1
CLONE = Path(__file__).resolve().parents[2]
COMMAND = "import sys; from ssdrig.cli import main; sys.exit(main())"
# `drives` gives all drives together 20 s to answer, which a guest that gets a fraction of a processor may not keep
PATIENTLY = "from ssdrig.commands import drives; drives.POLL_TIMEOUT_S = 600; "
SSDRIG = (str(CLONE / ".venv/bin/python"), "-P", "-m", "ssdrig")  # what the launcher ends as: it alone costs 2 s here


class Ended(NamedTuple):
    """A command of the guest that has ended."""

    argv: list[str]
    exit_code: int | None  # None: it was killed because its time was up
    stdout: str
    stderr: str
    seconds: float

    def json(self):
        try:
            return json.loads(self.stdout)
        except ValueError:
            raise AssertionError(f"no JSON: {self}") from None


class Machine:
    """A running guest. Use as a context manager, or call end()."""

    def __init__(self, folder: Path):
        """Boot; disks and sockets lie in folder. Raises NoKernel when that cannot be done here, AssertionError when it
        fails."""
        self.folder, self.console = folder, folder / "console.log"
        if not shutil.which(qemu.QEMU):
            raise NoKernel(f"no {qemu.QEMU} (package qemu-system-x86)")
        self.qemu_version = qemu.version()
        disks = (*qemu.DISKS, qemu.FDP) if self.qemu_version[0] >= qemu.OLDEST_QEMU_WITH_FDP else qemu.DISKS
        self.built = built = kernel()
        for code in (CLONE / "host" / "ssdrig", qemu.AGENT.parent):
            compileall.compile_dir(code, quiet=2)  # the guest would need 10 s for it
        initramfs.build(built, folder / "initrd")
        for disk in disks:
            with open(folder / disk.id, "wb") as file:
                file.truncate(disk.size_bytes)
        start = time.monotonic()
        self.process = subprocess.Popen(
            qemu.argv(folder, built.image, disks),
            stdin=subprocess.DEVNULL,
            stdout=open(folder / "qemu.log", "wb"),
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent,
        )
        try:
            self._agent = self._connect("agent", start + BOOT_LIMIT_S)
            self._qmp = self._connect("qmp", start + BOOT_LIMIT_S)
            self._events: deque[dict] = deque()
            self._line(self._qmp, start + BOOT_LIMIT_S)  # the greeting
            self.qmp("qmp_capabilities")
            ready = self._line(self._agent, start + BOOT_LIMIT_S)
            assert ready["ready"]
            self.kernel = ready["kernel"]
        except BaseException:
            self.end()
            raise
        self.boot_s = time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def run(
        self, *argv: str, timeout_s: float = LIMIT_S, stdin: str = "", cwd: str = str(CLONE), **environment: str
    ) -> Ended:
        """Run argv in the guest and wait for it. A command that outlives timeout_s is killed; its exit code is None."""
        argv = tuple(str(word) for word in argv)
        return self._ended(argv, timeout_s, "", {"argv": argv, "stdin": stdin, "cwd": cwd, "env": environment})

    def python(
        self, source: str, *words: str, timeout_s: float = LIMIT_S, stdin: str = "", **environment: str
    ) -> Ended:
        """Run Python source with sys.argv = words in the guest's agent, forked after it has imported this clone."""
        request = python_request(source, words) | {"stdin": stdin, "env": environment}
        return self._ended(words, timeout_s, "", request)

    def ssdrig(self, *words: str, timeout_s: float = LIMIT_S) -> Ended:
        """Run this clone's ssdrig in the guest, as its launcher starts it but for the start of Python."""
        return self.python(PATIENTLY + COMMAND, "ssdrig", *words, timeout_s=timeout_s)

    def start(self, name: str, *argv: str) -> None:
        """Start argv in the background, without a terminal; ended(name) waits for it."""
        self._agent.send({"name": name, "argv": argv, "cwd": str(CLONE)})

    def start_python(self, name: str, source: str, *words: str, **environment: str) -> None:
        """Start Python source in the background, as python() runs it; ended(name) waits for it."""
        self._agent.send({"name": name, "env": environment} | python_request(source, words))

    def ended(self, name: str, timeout_s: float = LIMIT_S) -> Ended:
        """How the command that was started as `name` ended; one that outlives timeout_s is killed."""
        return self._ended((name,), timeout_s, name, {})

    def _ended(self, argv: tuple[str, ...], timeout_s: float, name: str, request: dict) -> Ended:
        self._agent.send(request | {"wait": name, "timeout_s": timeout_s})
        reply = self._line(self._agent, time.monotonic() + timeout_s + 60)
        return Ended(list(argv), reply["exit_code"], reply["stdout"], reply["stderr"], reply["seconds"])

    def sh(self, script: str, timeout_s: float = LIMIT_S) -> str:
        """Run a script that must succeed; returns its stdout. It stops at the first command that fails. The shell is
        busybox's, whose own commands cost the guest a tenth of those of other programs."""
        done = self.run(*SHELL, "-euc", script, timeout_s=timeout_s)
        if done.exit_code != 0:
            raise AssertionError(f"exit {done.exit_code} in the guest of:\n{script}\n{done.stdout}{done.stderr}")
        return done.stdout

    def do(self, function: str, *arguments, timeout_s: float = LIMIT_S):
        """Call a function of inside.py in the guest; it must not raise. Returns what it returns."""
        request = {"call": function, "arguments": arguments, "path": python_path()}
        done = self._ended((function,), timeout_s, "", request)
        if done.exit_code != 0:
            raise AssertionError(f"in the guest, {function}{arguments}: exit {done.exit_code}\n{done.stderr}")
        return done.json()

    def until(self, script: str, timeout_s: float = 60, show: str = "/dev/null") -> str:
        """Repeat a shell script until it succeeds; returns its stdout then. show: a file whose
        content a failure shows."""
        deadline, pause_s = time.monotonic() + timeout_s, 0.2
        while (done := self.run("sh", "-euc", script)).exit_code != 0:
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {timeout_s} s in the guest:"
                    f" {script}\n{done.stdout}{done.stderr}\n{self.sh(f'cat {show}')}"
                )
            time.sleep(pause_s)
            pause_s = min(1.5, 1.5 * pause_s)  # each look costs the guest more than 0.1 s of its processor
        return done.stdout

    def qmp(self, command: str, **arguments) -> dict:
        """One QMP command; returns what it returns. Raises AssertionError with QEMU's words if it fails."""
        self._qmp.send({"execute": command, "arguments": arguments})
        deadline = time.monotonic() + 300
        while True:
            reply = self._line(self._qmp, deadline)
            if "event" in reply:
                self._events.append(reply)
            elif "error" in reply:
                raise AssertionError(f"QMP {command}: {reply['error']['desc']}")
            else:
                return reply["return"]

    def wait_event(self, name: str, timeout_s: float = 30, **data) -> dict:
        """Wait for QMP's event `name` with these fields in its data."""
        deadline = time.monotonic() + timeout_s
        while True:
            event = self._events.popleft() if self._events else self._line(self._qmp, deadline)
            if event.get("event") == name and data.items() <= event.get("data", {}).items():
                return event

    def unplug(self, disk: qemu.Disk) -> None:
        """Remove the disk while it runs; returns when it is gone."""
        self.qmp("device_del", id=disk.id)
        self.wait_event("DEVICE_DELETED", timeout_s=300, device=disk.id)  # a busy guest gives it free late

    def load_holders(self) -> None:
        """Load the modules of kernel.HOLDERS; the guest sees them in this machine's folder. pstore_blk needs a
        parameter: a test loads it."""
        names = [path.name for path in self.built.holders if path.stem != "pstore_blk"]
        for path in self.built.holders:
            (self.folder / path.name).write_bytes(initramfs.unsigned(path))
        insmod = "/run/guest/busybox insmod $name || echo $name does not load"
        self.sh(f"cd {self.folder}; for name in {' '.join(names)}; do {insmod}; done >&2")
        self.sh("grep -q ' /sys/kernel/config ' /proc/mounts || mount -t configfs configfs /sys/kernel/config")

    def with_programs(self) -> dict[str, str]:
        """The environment in which the programs of kernel.PROGRAMS are found, too."""
        programs = self.built.programs
        folders = [f"{programs}/{part}" for part in ("sbin", "bin", "usr/sbin", "usr/bin", "lib/drbd", "usr/lib/drbd")]
        return {
            "PATH": ":".join([*folders, PATH]),
            "LD_LIBRARY_PATH": f"{programs}/lib/x86_64-linux-gnu:{programs}/usr/lib/x86_64-linux-gnu",
        }

    def plug(self, disk: qemu.Disk) -> None:
        """Put in a disk: its file must be one that the guest was started with."""
        driver, *words = disk.device.format(**disk._asdict()).split(",")
        self.qmp("device_add", driver=driver, **dict(word.split("=") for word in words))

    def unplug_sas(self, disk: qemu.Disk) -> None:
        """unplug() a disk of the SAS adapter, and have the kernel drop it: QEMU's tells it of none that goes."""
        self.unplug(disk)
        for path in self.do("matches", "/sys/class/scsi_device/*/device/vendor"):
            if self.do("texts", path)[0].strip() == "GUEST":
                self.do("put", f"{path.removesuffix('vendor')}delete", "1")

    def plug_sas(self, disk: qemu.Disk) -> None:
        """plug() a disk of the SAS adapter in the place of one that has gone, and wait until the kernel has it."""
        self.plug(disk)
        for path in self.do("matches", "/sys/class/scsi_host/host*/scan"):
            self.do("put", path, "- - -")
        self.do("wait_for", "/sys/class/scsi_device/*/device/vendor", "GUEST")

    def end(self) -> None:
        for connection in (getattr(self, "_agent", None), getattr(self, "_qmp", None)):
            if connection:
                connection.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def console_tail(self, lines: int = 40) -> str:
        """The last words of the guest's kernel and of QEMU."""
        text = ""
        for path in (self.folder / "qemu.log", self.console):
            with contextlib.suppress(OSError):
                text += path.read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def _connect(self, name: str, deadline: float) -> "Lines":
        while True:
            try:
                return Lines(str(self.folder / name))
            except OSError:
                self._check(deadline, f"{qemu.QEMU} does not start")
                time.sleep(0.02)

    def _line(self, connection: "Lines", deadline: float) -> dict:
        while (line := connection.line(min(1.0, max(0.0, deadline - time.monotonic())))) is None:
            self._check(deadline, "no answer from the guest")
        return json.loads(line)

    def _check(self, deadline: float, what: str) -> None:
        if self.process.poll() is not None:
            raise AssertionError(
                f"the guest has ended (QEMU's exit code {self.process.returncode}):\n{self.console_tail()}"
            )
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}:\n{self.console_tail()}")


class Lines:
    """A unix socket that carries one JSON object a line."""

    def __init__(self, path: str):
        self.socket = socket.socket(socket.AF_UNIX)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.pending = bytearray()

    def send(self, message: dict) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def line(self, timeout_s: float) -> bytes | None:
        """The next line; None when it does not come within timeout_s."""
        deadline = time.monotonic() + timeout_s
        while (end := self.pending.find(b"\n")) < 0:
            readable, _, _ = select.select([self.socket], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                return None
            chunk = self.socket.recv(1 << 16)
            if not chunk:
                time.sleep(0.05)
                return None
            self.pending += chunk
        line = bytes(self.pending[:end])
        del self.pending[: end + 1]
        return line

    def close(self) -> None:
        self.socket.close()


def python_path() -> list[str]:
    """Where the agent finds this clone and its environment's packages."""
    packages = sorted(str(path) for path in CLONE.glob(".venv/lib/python*/site-packages"))
    return [str(CLONE / "host"), str(CLONE / "tests"), str(CLONE / "tests/support"), *packages]


def python_request(source: str, words: tuple[str, ...]) -> dict:
    """What asks the agent to run Python source."""
    return {"python": source, "words": words, "path": python_path(), "cwd": str(CLONE)}


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgrp()  # Ctrl-C is for the tests; they end the guest
