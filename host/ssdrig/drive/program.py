"""One call of an external program: limited in time and in output, killed with all its children, its CPU time
counted."""

import contextlib
import os
import select
import selectors
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass

from ssdrig.base.words import digits
from ssdrig.drive import openers

OUTPUT_LIMIT_BYTES = 16 << 20  # a full `smartctl -x --json` is some 100 kB
STDERR_KEPT = 4096  # characters of it that go into a run folder
DEATH_S = 2.0  # after SIGKILL; a process that waits in the kernel for a hung drive does not die


@dataclass(frozen=True)
class Call:
    """The result of one program. exit_code None: it was missing or was killed, see `why`. t_ns is CLOCK_MONOTONIC at
    its start."""

    argv: list[str]
    exit_code: int | None
    stdout: bytes
    stderr: str
    t_ns: int
    wall_ms: float
    cpu_ms: float  # user and system time of it and of the children it waited for
    why: str | None


def is_missing(name: str) -> bool:
    """Whether PATH has no such program that may be executed."""
    return shutil.which(name) is None


def run(argv: list[str], timeout_s: float, limit_bytes: int = OUTPUT_LIMIT_BYTES) -> Call:
    """Run argv (argv[0] is found through PATH) with no input, in the C locale. Never raises for what the program does.

    Past timeout_s, or limit_bytes of output, it is killed with its whole process group; its output until then is
    returned."""
    t_ns = time.monotonic_ns()
    if is_missing(argv[0]):
        return Call(argv, None, b"", "", t_ns, 0.0, 0.0, f"the program {argv[0]} was not found")
    if timeout_s <= 0:
        return Call(argv, None, b"", "", t_ns, 0.0, 0.0, "not started: the time for this poll was used up")
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        return Call(argv, None, b"", "", t_ns, 0.0, 0.0, f"could not be started: {error}")
    with openers.own(process):
        return _carried_out(process, argv, t_ns, timeout_s, limit_bytes)


def _carried_out(process: subprocess.Popen, argv: list[str], t_ns: int, timeout_s: float, limit_bytes: int) -> Call:
    death = os.pidfd_open(process.pid)
    try:
        printed, why = _read(process, death, t_ns + round(timeout_s * 1e9), timeout_s, limit_bytes)
    finally:
        # Kill before reaping: until then its process group id cannot be reused.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        end = select.poll()
        end.register(death, select.POLLIN)
        dead = bool(end.poll(DEATH_S * 1e3))
        os.close(death)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
    exit_code, cpu_ms = None, 0.0
    if dead:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu_ms = (usage.ru_utime + usage.ru_stime) * 1e3
        if why is None and process.returncode < 0:
            why = f"ended by {signal.Signals(-process.returncode).name}"
        elif why is None:
            exit_code = process.returncode
    else:
        why = f"{why}; it does not die, which means that it waits in the kernel for the drive"
    stderr = printed[1].decode(errors="backslashreplace")[:STDERR_KEPT]
    return Call(argv, exit_code, printed[0], stderr, t_ns, (time.monotonic_ns() - t_ns) / 1e6, cpu_ms, why)


def record(call) -> dict:
    """A Call, or an object with its fields, as an element of "tools" in smart/<nnn>.json."""
    return {
        "argv": list(call.argv),
        "exit_code": call.exit_code,
        "why": call.why,
        "t_ns": call.t_ns,
        "wall_ms": round(call.wall_ms, 3),
        "cpu_ms": round(call.cpu_ms, 3),
        "stderr": call.stderr,
    }


def _read(process, death: int, deadline_ns: int, timeout_s: float, limit_bytes: int) -> tuple[list[bytes], str | None]:
    """([stdout, stderr], why it must be killed or None). Returns when the process has ended, not when the pipes are
    closed: a child that it left behind may hold them open for ever."""
    parts: dict[int, list[bytes]] = {process.stdout.fileno(): [], process.stderr.fileno(): []}
    size, why = 0, None

    def take(fd: int) -> int:
        """Bytes read now; 0 at the end of the pipe, -1 when there is nothing yet."""
        nonlocal size
        try:
            piece = os.read(fd, 1 << 16)
        except BlockingIOError:
            return -1
        parts[fd].append(piece)
        size += len(piece)
        return len(piece)

    with selectors.DefaultSelector() as events:
        for fd in parts:
            os.set_blocking(fd, False)
        for fd in (*parts, death):
            events.register(fd, selectors.EVENT_READ)
        ended = False
        while not ended and why is None:
            left_s = (deadline_ns - time.monotonic_ns()) / 1e9
            for key, _ in events.select(max(0.0, left_s)):  # once more after the deadline: we may have been suspended
                if key.fd == death:
                    ended = True
                elif take(key.fd) == 0:
                    events.unregister(key.fd)
            if size > limit_bytes:
                why = f"killed: it printed more than {limit_bytes} bytes"
            elif left_s <= 0 and not ended:
                why = f"killed: it had not ended after {digits(timeout_s, 3)} s"
        for fd in parts:
            while ended and size <= limit_bytes and take(fd) > 0:
                pass
    return [b"".join(pieces)[:limit_bytes] for pieces in parts.values()], why
