"""A MicroPython whose integers have 31 bits as on the board: Debian's for i386, which an amd64 Linux runs beside its
own. There a larger number is a heap object, and viper's ptr32 and int are what they are on a 32-bit processor."""

import fcntl
import platform
import shlex

from ssdrig.base.errors import ToolMissing
from ssdrig.setup import micropython

FOLDER = micropython.PRIVATE.with_name("micropython-32")


def command() -> str:
    """What SSDRIG_MICROPYTHON must be; unpacked when asked for the first time (4 MB). Raises ToolMissing where there is
    none."""
    if platform.machine() != "x86_64":
        raise ToolMissing("an amd64 machine, which runs i386 programs", platform.machine(), "run this test on one")
    FOLDER.parent.mkdir(exist_ok=True)
    with open(FOLDER.with_name("micropython-32-lock"), "w") as lock:  # two workers
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not micropython.runs(FOLDER):
            micropython.provision(FOLDER, "i386")
    return shlex.join(micropython.loader_line(FOLDER))
