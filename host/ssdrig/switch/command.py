"""Two commands of a shell as a switch: for a power strip, a relay, a server that is killed. Each returns when it is
done."""

import os
import signal
import subprocess
import time

from ssdrig.base.errors import RigError, words_of
from ssdrig.base.terminal import printable
from ssdrig.switch.switch import Edge

COMMAND_S = 300.0  # longest time of a command that switches the supply
LAST_BYTES = 2000  # of its output, quoted when it fails


class Commands:
    """See switch.Switch."""

    def __init__(self, off: str, on: str):
        self._off, self._on = off, on

    def off(self, at_ns: int | None = None) -> Edge:
        return timed(lambda: carry_out(self._off, "--power-off"), at_ns)

    def on(self) -> Edge:
        return timed(lambda: carry_out(self._on, "--power-on"))


def timed(work, at_ns: int | None = None) -> Edge:
    """The edge of something that switches and returns when it is done: it falls meanwhile."""
    if at_ns is not None:
        time.sleep(max(0.0, (at_ns - time.monotonic_ns()) / 1e9))
    t_ns = time.monotonic_ns()
    work()
    return Edge(t_ns, time.monotonic_ns() - t_ns)


def carry_out(command: str, option: str) -> None:
    """Run a command in its own session: Ctrl-C ends ssdrig in order, and no command halfway. What it starts
    may go on, and keep its stdout and stderr: only the shell is waited for. Raises RigError, in words of `option`."""
    with open(os.memfd_create("output"), "w+b") as output:  # also on a full disk
        try:
            shell = subprocess.Popen(
                command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise RigError(f"the command of {option} to start", words_of(error), "try it by hand") from error
        try:
            code = shell.wait(COMMAND_S)
        except BaseException as error:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            seen = f"it still runs after {COMMAND_S:g} s"
            raise RigError(f"the command of {option} to end", seen, "try it by hand") from error
        if code:
            output.seek(max(0, output.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = output.read().decode(errors="replace").strip().splitlines()
            seen = f"exit code {code}" + (f": {printable(lines[-1])}" if lines else "")
            raise RigError(f"the command of {option} to end with 0", seen, "try it by hand")
