"""For tests: MicroPython's qemu port on an emulated Cortex-M3 (ARMv7-M, whose instructions the RP2350's Cortex-M33 has
too), spoken to by the raw REPL."""

import functools
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import emulated

from ssdrig.base import prctl

MACHINE = "mps2-an385"
FIRST_BLOCK = 0x21000000  # of the machine's 16 MB RAM beside that of the program


def image() -> Path:
    """The program for the machine: beside the emulated board's image, where build.sh puts it."""
    named = os.environ.get("SSDRIG_CORTEX")
    return Path(named) if named else (emulated.image() or emulated.IMAGES[0]).with_name("cortex.elf")


def missing() -> str:
    """Why it cannot run here; empty if it can."""
    if shutil.which("qemu-system-arm") is None:
        return "no qemu-system-arm"
    return "" if image().is_file() else f"no MicroPython for the Cortex-M ({image()}): ./ssdrig setup --emulator"


class Cortex:
    """`with Cortex() as board`: the machine at its raw REPL."""

    def __enter__(self):
        words = ["qemu-system-arm", "-machine", MACHINE, "-nographic", "-monitor", "null", "-serial", "stdio"]
        self.process = subprocess.Popen(
            [*words, "-semihosting", "-kernel", str(image())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            preexec_fn=functools.partial(prctl.die_with_parent, os.getpid()),  # also of a pytest that is killed
        )
        self.input = b""
        try:
            self.process.stdin.write(b"\r\x01")
            self.until(b"raw REPL; CTRL-B to exit\r\n>")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def until(self, mark: bytes, limit_s: float = 100) -> bytes:
        """All input up to the mark. TimeoutError, EOFError."""
        end = time.monotonic() + limit_s
        while mark not in self.input:
            if time.monotonic() > end:
                raise TimeoutError(f"{mark!r} did not come, but {self.input[-500:]!r}")
            if select.select([self.process.stdout], [], [], 1)[0]:
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    raise EOFError("qemu has ended")
                self.input += data
        output, self.input = self.input.split(mark, 1)
        return output

    def run(self, code: str) -> str:
        """What the code prints. RuntimeError with the board's traceback."""
        self.process.stdin.write(code.encode() + b"\x04")
        self.until(b"OK")
        output, error = self.until(b"\x04"), self.until(b"\x04>")
        if error:
            raise RuntimeError(error.decode())
        return output.decode().replace("\r\n", "\n")
