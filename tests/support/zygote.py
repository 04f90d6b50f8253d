"""A process that has loaded a program and forks a copy whenever a test wants one: the start of a virtual drive, its
machine code loaded, takes 0.1 s of CPU instead of 1, that of the simulated board's cable a few ms instead of 70.
`Forked` is the test's side. Real starts are tested by whole runs, by serving.run() and by test_cable.py."""

import contextlib
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback

from ssdrig.base import prctl

DRIVE, CABLE = "ssdrig.virtual.serve", "ssdrig.virtual.cable"


class Forked:
    """A program (its module) started with these words: the part of subprocess.Popen that tests use. Its stderr goes to
    `err`."""

    def __init__(self, words: list[str], err, program: str = DRIVE):
        os.umask(mask := os.umask(0o22))
        wanted = json.dumps([words, dict(os.environ), os.getcwd(), mask]).encode()
        read, write = os.pipe()
        status, tell = os.pipe()
        self.stdout, self._status, self.returncode = os.fdopen(read, "rb"), os.fdopen(status, "rb", 0), None
        try:
            socket.send_fds(_zygote(program), [wanted], [write, err.fileno(), tell])
            os.close(write)
            os.close(tell)
            write = tell = -1
            if not (pid := self._status.readline()):
                raise RuntimeError(f"the process that forks {program} has ended; its stderr says why")
            self.pid = int(pid)
        except BaseException:
            for fd in {write, tell} - {-1}:
                os.close(fd)
            self.stdout.close()
            self._status.close()
            raise
        _forked[:] = [child for child in _forked if child[1].poll() is None]
        _forked.append((os.environ.get("PYTEST_CURRENT_TEST", ""), self))

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout_s: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout_s)
            self.returncode = int(
                self._status.readline() or -signal.SIGKILL
            )  # its watcher was killed, and it with that
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its watcher has not said so yet
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


_running: dict[str, tuple[subprocess.Popen, socket.socket]] = {}  # program: what forks it, our end of its socket

_forked: list[tuple[str, Forked]] = []  # and the test that wanted it: /proc shows it with its zygote's environment


def end_those_of(test: str) -> None:
    """End what this test, in its call, has started."""
    for by, process in _forked:
        if by == f"{test} (call)":
            process.kill()


def shared() -> list[int]:
    """The processes that the session's tests share."""
    return [process.pid for process, _ in _running.values()]


def _zygote(program: str) -> socket.socket:
    if program in _running and _running[program][0].poll() is not None:
        # someone has ended it: that is no defect of the next test
        process, ours = _running.pop(program)
        print(f"the process that forks {program} has ended: {process.returncode}", file=sys.stderr)
        ours.close()
    if program not in _running:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, __file__, str(os.getpid()), program]
        with theirs:
            _running[program] = subprocess.Popen(argv, stdin=theirs), ours
    return _running[program][1]


def end() -> None:
    """What the session's tests shared is over."""
    for process, ours in _running.values():
        ours.close()
        process.wait(200)
    _running.clear()


# ---- the process


def main(parent: int, program: str) -> None:
    prctl.die_with_parent(parent)
    load(program)
    with socket.socket(fileno=os.dup(0)) as asked:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the watchers
        while True:
            words, fds, _, _ = socket.recv_fds(asked, 1 << 18, 3)
            if not words:
                return
            if os.fork() == 0:
                with contextlib.suppress(BaseException):
                    asked.close()
                    watch(program, json.loads(words), *fds)
                os._exit(1)
            for fd in fds:
                os.close(fd)


def load(program: str) -> None:
    importlib.import_module(program)
    if program == DRIVE:
        from ssdrig.virtual.device import pdu
        from ssdrig.virtual.device.device import warm_up
        from ssdrig.virtual.flash.presets import PRESETS

        warm_up(PRESETS["sata-tlc"])
        pdu.warm_up()


def watch(program: str, wanted: list, out: int, err: int, tell: int) -> None:
    """Fork the program; tell its process id, and its exit code when it has ended."""
    prctl.die_with_parent(os.getppid())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    watcher = os.getpid()
    pid = os.fork()
    if pid == 0:
        prctl.die_with_parent(watcher)
        os.setsid()
        os.close(tell)
        for fd, place in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(fd, place)
            os.close(fd)
        os._exit(run(program, *wanted))
    os.close(out)
    os.close(err)
    os.write(tell, b"%d\n" % pid)
    os.write(tell, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def run(program: str, words: list[str], environment: dict[str, str], folder: str, mask: int) -> int:
    os.environ.clear()
    os.environ.update(environment)
    os.umask(mask)
    try:
        os.chdir(folder)
        return sys.modules[program].main(words)
    except SystemExit as left:
        return left.code
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
