"""The set-up's steps: what each program prints goes to a log, and the terminal has one line with a bar and the time.

Runs before the environment exists: standard library only.
"""

import contextlib
import errno
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping

from ssdrig.base.errors import ToolMissing
from ssdrig.base.progress import Progress
from ssdrig.setup.needs import ROOT

LOG = ROOT / ".setup/log"  # of the latest set-up
WIDTH = 16  # characters of the bar
POLL_S = 0.1
FIRST_WAIT_S = 30.0  # without a terminal, a set-up that goes on is reported then, at twice that time, and so on,
LONGEST_WAIT_S = 300.0  # at least this often: a CI takes a silent job for a dead one
PATIENCE_S = 60.0  # an interrupted apt finishes the package that it unpacks
LAST_LINES = 8  # of a program that failed, shown with the error


class Steps:
    """How far a set-up is. Its methods may be called from several threads."""

    def __init__(self) -> None:
        self.progress = Progress()
        self.done = self.total = 0
        self.logged = False
        self._begun = time.monotonic()
        self._now: list[str] = []
        self._next_report_s = FIRST_WAIT_S
        self._lock = threading.Lock()

    def expect(self, steps: int) -> None:
        """Announce more steps."""
        self.total += steps

    def say(self, text: str) -> None:
        """One line that stays."""
        with self._lock:
            self.progress.say(f"ssdrig: {text}")

    @contextlib.contextmanager
    def step(self, words: str) -> Iterator[None]:
        """Show these words until the block ends, which counts as a step even where it fails."""
        self.total = max(self.total, self.done + 1)
        self._now.append(words)
        if not self.progress.live:
            self.say(words)
        try:
            yield
        finally:
            self._now.remove(words)
            self.done += 1
            if self.progress.live:
                with self._lock:
                    self.progress.show("")

    def show(self) -> None:
        """Refresh the line: the bar, the step and the time since the start; without a terminal a few lines in all."""
        elapsed_s = time.monotonic() - self._begun
        if not self.progress.live:
            if elapsed_s < self._next_report_s:
                return
            self._next_report_s = elapsed_s + min(elapsed_s, LONGEST_WAIT_S)
        full = WIDTH * self.done // max(1, self.total)
        minutes, seconds = divmod(int(elapsed_s), 60)
        words = ", ".join(self._now)
        with self._lock:
            bar = f"{'█' * full}{'·' * (WIDTH - full)}" if self.progress.live else "setting up:"
            self.progress.show(f"{bar} {self.done} of {self.total}  {minutes}:{seconds:02d}  {words}")


STEPS = Steps()


def begin() -> None:
    """Start a new log, once for each process; the caller holds the set-up's lock."""
    with _log(0 if STEPS.logged else os.O_TRUNC):
        STEPS.logged = True


def _log(more: int = 0):
    """The log, opened for appending. Follows no link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | more
    return os.fdopen(os.open(LOG, flags, 0o644), "ab", buffering=0)


def run(
    argv: list[str], words: str, lock: int | None = None, check: bool = True, more: Mapping[str, str] | None = None
) -> bool:
    """Run a program as one step of the set-up and return whether it succeeded.

    words: the text shown meanwhile
    lock: the set-up's lock, which the program holds even if we are killed
    check: raise ToolMissing when it fails
    more: variables added to its environment
    """
    held = () if lock is None else (lock,)
    with STEPS.step(words), _log() as log:
        log.write(f"\n$ {shlex.join(argv)}\n".encode())
        at = os.fstat(log.fileno()).st_size
        process = subprocess.Popen(argv, stdout=log, stderr=log, pass_fds=held, env=os.environ | dict(more or {}))
        try:
            while process.poll() is None:
                STEPS.show()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
        except KeyboardInterrupt:
            _end(process)
            raise
    if process.returncode and check:
        printed = LOG.read_bytes()[at:].decode(errors="replace").strip()
        for line in printed.splitlines()[-LAST_LINES:]:
            STEPS.say(f"  {line}")
        full = os.strerror(errno.ENOSPC) in printed
        seen = os.strerror(errno.ENOSPC) if full else f"exit code {process.returncode}"
        do = "make room, then start again; " if full else ""
        raise ToolMissing(f"{shlex.join(argv)} to succeed", seen, f"{do}all that it printed is in {LOG}")
    return not process.returncode


def _end(process: subprocess.Popen) -> None:
    """Interrupt a program and wait for its end, for apt finishes the package that it unpacks; then ask more firmly."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(subprocess.TimeoutExpired, PermissionError):  # sudo's child is root's
            process.send_signal(number)
            process.wait(PATIENCE_S)
            return
