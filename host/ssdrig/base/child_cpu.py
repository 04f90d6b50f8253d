"""CPU time of a child process, and a wait that ends when the child is ready, dead, or no longer uses any.

A busy machine stretches seconds on the wall, not CPU time, so a limit on the wall fails a child that is well. Standard
library only.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

IDLE_S = 45.0  # a child that used no CPU time for this long is stuck
LEAST_SHARE = 0.001  # of the time on the wall: a daemon that only waits for a timer stays below
QUEUED_SHARE = 0.1  # of the time on the wall: a child that waited so much for a CPU has work
POLL_S = 0.1
TICKS = os.sysconf("SC_CLK_TCK")

Ready = TypeVar("Ready")


class NotReady(Exception):
    """A child did not become ready.

    kind: "ended", "idle" or "limit"
    reason: what was seen, for a message
    cpu_s: CPU time that the child used
    """

    def __init__(self, kind: str, reason: str, cpu_s: float):
        super().__init__(reason)
        self.kind, self.reason, self.cpu_s = kind, reason, cpu_s


def cpu_s(pid: int) -> float:
    """CPU seconds of a process, its threads and its descendants, including reaped ones; 0 if the process does not
    exist."""
    total = _own_s(pid)
    return total + sum(cpu_s(child) for child in _children(pid))


def _own_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS  # utime stime cutime cstime


def queued_s(pid: int) -> float:
    """Seconds that the threads of a process and of its descendants were ready to run and had no CPU; 0 where the kernel
    does not count them."""
    total_ns = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            total_ns += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):  # ended meanwhile, or a kernel without this file
        pass
    return total_ns / 1e9 + sum(queued_s(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    children = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            children += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    except OSError:  # ended meanwhile, or a kernel without this file
        pass
    return children


class Work:
    """Follows whether a process works.

    pid: the process
    idle_s: stuck once, within this time, it used less than LEAST_SHARE of a CPU and waited for one for less than
        QUEUED_SHARE of it
    """

    def __init__(self, pid: int, idle_s: float = IDLE_S):
        self.pid, self.idle_s = pid, idle_s
        self.cpu_s = self._marked_s = cpu_s(pid)
        self._queued_s = queued_s(pid)
        self._marked_at = time.monotonic()

    def look(self) -> bool:
        """Whether the process still works. Call it often; `cpu_s` is as of the last call."""
        self.cpu_s, now = cpu_s(self.pid), time.monotonic()
        # less than before: a grandchild ended and was not reaped
        if self.cpu_s - self._marked_s >= LEAST_SHARE * self.idle_s or self.cpu_s < self._marked_s:
            self.works()
        if now - self._marked_at < self.idle_s:
            return True
        queued = queued_s(self.pid) - self._queued_s
        if starved := queued >= QUEUED_SHARE * self.idle_s or queued < 0:  # or a child ended meanwhile
            self.works()
        return starved

    def works(self) -> None:
        """Take another sign of work than CPU time into account, such as a line that it has printed."""
        self._marked_s, self._marked_at, self._queued_s = self.cpu_s, time.monotonic(), queued_s(self.pid)


def wait_while_working(
    process: subprocess.Popen,
    ready: Callable[[], Ready | None],
    *,
    idle_s: float = IDLE_S,
    most_cpu_s: float = float("inf"),
    poll_s: float = POLL_S,
    progress: Callable[[Work], None] = lambda work: None,
) -> Ready:
    """Return what ready() returns once that is not None; wait while the child uses CPU time.

    process: our own child
    ready: called every poll_s, and once more after the child's end
    idle_s: give up after this long without CPU time
    most_cpu_s: give up after this much CPU time
    progress: called after each ready(); an exception ends the wait

    Raises NotReady. The child is left as it is.
    """
    work = Work(process.pid, idle_s)
    while True:
        code = process.poll()
        if (result := ready()) is not None:
            return result
        if code is not None:
            raise NotReady("ended", ended(code), work.cpu_s)
        if not work.look():
            reason = f"no CPU time used for {idle_s:.0f} s, after {work.cpu_s:.0f} s of it; process {process.pid} lives"
            raise NotReady("idle", reason, work.cpu_s)
        if work.cpu_s > most_cpu_s:
            raise NotReady("limit", f"{work.cpu_s:.0f} s of CPU time used; process {process.pid} lives", work.cpu_s)
        progress(work)
        time.sleep(poll_s)


def ended(code: int) -> str:
    """How a process ended, from Popen.returncode."""
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def output(argv: list[str], idle_s: float = IDLE_S, **how: Any) -> subprocess.CompletedProcess:
    """Run a program as subprocess.run(capture_output=True, text=True) does, without a time limit while it uses CPU.

    idle_s: as in wait_while_working()
    how: further arguments of Popen, such as env

    Raises OSError; NotReady for one that is stuck, which is killed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, **how) as process:
            try:
                code = wait_while_working(process, process.poll, idle_s=idle_s, poll_s=0.005)
            except BaseException:
                process.kill()
                raise
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="backslashreplace"))
    return subprocess.CompletedProcess(argv, code, *texts)
