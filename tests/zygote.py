"""A process that has loaded the virtual drive and its machine code, and forks for each server that a test wants: a
start takes 0.1 s of CPU instead of 1. `Forked` is the test's side. Real starts are tested by whole runs and by
serving.run()."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback

from ssdrig import prctl


class Forked:
    """A server started with these words: the part of subprocess.Popen that tests use. Its stderr goes to `err`."""

    def __init__(self, words: list[str], err):
        read, write = os.pipe()
        told, tell = os.pipe()
        socket.send_fds(_zygote(), [json.dumps(words).encode()], [write, err.fileno(), tell])
        os.close(write)
        os.close(tell)
        self.stdout, self._told, self.returncode = os.fdopen(read, "rb"), os.fdopen(told, "rb", 0), None
        self.pid = int(self._told.readline())

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout_s: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout_s)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout_s)
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


_running: list = []  # the process and our end of its socket


def _zygote() -> socket.socket:
    if _running and _running[0].poll() is not None:  # someone has ended it: that is no defect of the next test
        print(f"the process that forks servers has ended: {_running[0].returncode}", file=sys.stderr)
        _running.pop().close()
        _running.clear()
    if not _running:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            _running[:] = [subprocess.Popen([sys.executable, __file__, str(os.getpid())], stdin=theirs), ours]
    return _running[1]


def end() -> None:
    """What the session's tests shared is over."""
    if _running:
        _running[1].close()
        _running[0].wait(20)
        _running.clear()


# ---- the process


def main(parent: int) -> None:
    prctl.die_with_parent(parent)
    from ssdrig.virtual.device.device import warm_up
    from ssdrig.virtual.flash.presets import PRESETS
    from ssdrig.virtual.nvme import pdu

    warm_up(PRESETS["sata-tlc"])
    pdu.warm_up()
    with socket.socket(fileno=os.dup(0)) as asked:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the watchers
        while True:
            words, fds, _, _ = socket.recv_fds(asked, 1 << 16, 3)
            if not words:
                return
            if os.fork() == 0:
                with contextlib.suppress(BaseException):
                    asked.close()
                    watch(json.loads(words), *fds)
                os._exit(1)
            for fd in fds:
                os.close(fd)


def watch(words: list[str], out: int, err: int, tell: int) -> None:
    """Fork the server; tell its process id, and its exit code when it has ended."""
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
        os._exit(serve(words))
    os.close(out)
    os.close(err)
    os.write(tell, b"%d\n" % pid)
    os.write(tell, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def serve(words: list[str]) -> int:
    from ssdrig.virtual.serve import main

    try:
        return main(words)
    except SystemExit as left:
        return left.code
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
