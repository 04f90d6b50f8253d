"""Runs commands in the guest for machine.py: one JSON object a line comes in over a virtio port, one goes back.

Each command starts with one of
{"argv": [...], "name", "stdin": text, "env": {...}, "cwd": path}
{"python": source, "words": [sys.argv], "path": [sys.path], and the same}: in a fork of this process, which has imported
    MODULES, because each start of Python with all its imports costs the guest seconds
{"call": function, "arguments": [...], "path": [sys.path]}: a function of inside.py, in this process, because a fork
    costs the guest 0.1 s; it may only be waited for at once, and stdout is its result as JSON
and has no answer if it has a name. {"wait": name, "timeout_s": n}, which without a name follows at once in the same
object, ends it:
-> {"exit_code": n or null when the time was up, "stdout": text, "stderr": text, "seconds": n}
Starts as the child of the guest's init, in the host's root under a writable overlay; standard library only."""

import gc
import glob
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/guest"
ENVIRONMENT = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "SSDRIG_NO_INSTALL": "1"}
FOLDER = "/run/guest/jobs"
MODULES = (
    *("guest.inside", "guest.hold_each", "ssdrig.cli", "ssdrig.commands.drives", "ssdrig.commands.wear"),
    *("ssdrig.commands.watch", "ssdrig.commands.purge", "ssdrig.run.run"),
)


def import_modules(path: list[str]) -> None:
    """Import MODULES, found in path. A collection of garbage would look at all that they made, and in each fork of this
    process copy it."""
    if gc.get_freeze_count():
        return
    sys.path[:0] = path
    gc.disable()
    for module in MODULES:
        importlib.import_module(module)
    warranty = sys.modules["ssdrig.drive.wear.warranty"]
    warranty._rows(warranty.SHIPPED)  # a table that almost each command needs: it keeps what it has read
    gc.freeze()
    gc.enable()


class Forked:
    """A child of this process that runs Python source; has what is used here of subprocess.Popen."""

    def __init__(self, request: dict, files: list, environment: dict):
        import_modules(request["path"])
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.setsid()
                for number, file in enumerate(files):
                    os.dup2(file.fileno(), number)
                os.closerange(3, 256)
                os.chdir(request.get("cwd", "/"))
                os.environ.clear()
                os.environ.update(environment)
                sys.argv[:] = request["words"]
                code = self._exit_code(request["python"])
            finally:
                os._exit(code)

    def _exit_code(self, source: str) -> int:
        try:
            exec(compile(source, "<python>", "exec"), {"__name__": "__main__"})
            return 0
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else bool(end.code)
        except BaseException:
            traceback.print_exc()
            return 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Job:
    """A command that has been started; its stdout and stderr lie in files named after it."""

    def __init__(self, request: dict):
        self.begun, self.process, name = time.monotonic(), None, request.get("name", "run")
        os.makedirs(FOLDER, exist_ok=True)
        self.files = [open(f"{FOLDER}/{name}.{end}", "w+b") for end in ("in", "out", "err")]
        self.files[0].write(request.get("stdin", "").encode())
        self.files[0].seek(0)
        environment = ENVIRONMENT | request.get("env", {})
        try:
            if "python" in request:
                self.process = Forked(request, self.files, environment)
            else:
                self.process = subprocess.Popen(
                    request["argv"],
                    **dict(zip(("stdin", "stdout", "stderr"), self.files)),
                    env=environment,
                    cwd=request.get("cwd", "/"),
                    start_new_session=True,
                )
        except (OSError, ImportError) as error:
            self.files[2].write(f"agent: {error}\n".encode())

    def end(self, timeout_s: float) -> dict:
        out = {"exit_code": None if self.process else 127}
        if self.process:
            ended = os.pidfd_open(self.process.pid)
            if select.select([ended], [], [], timeout_s)[0]:
                out["exit_code"] = self.process.wait()
            else:
                os.killpg(self.process.pid, 9)
                self.process.wait()
            os.close(ended)
        for name, file in zip(("stdout", "stderr"), self.files[1:]):
            file.seek(0)
            out[name] = file.read().decode(errors="replace")
        for file in self.files:
            file.close()
        return out | {"seconds": round(time.monotonic() - self.begun, 3)}


def called(request: dict) -> dict:
    """Call a function of inside.py; TimeIsUp in it when it is. An answer like Job.end's."""
    begun, out = time.monotonic(), {"exit_code": 0, "stdout": "", "stderr": ""}
    try:
        import_modules(request["path"])
        function = getattr(importlib.import_module("guest.inside"), request["call"])
        signal.setitimer(signal.ITIMER_REAL, request["timeout_s"])
        out["stdout"] = json.dumps(function(*request["arguments"]))
    except (Exception, TimeIsUp):
        out |= {"exit_code": 1, "stderr": traceback.format_exc()}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return out | {"seconds": round(time.monotonic() - begun, 3)}


class TimeIsUp(BaseException):
    """No Exception: what is called may take one for an answer of the kernel."""


def time_is_up(*_) -> None:
    raise TimeIsUp


def main() -> None:
    os.environ.update(ENVIRONMENT)
    signal.signal(signal.SIGALRM, time_is_up)
    while not (ports := glob.glob("/dev/vport*")):
        time.sleep(0.05)
    port = os.open(ports[0], os.O_RDWR)  # a virtio port can be open once
    send(port, {"ready": True, "kernel": os.uname().release, "seconds": time.monotonic()})
    jobs, pending = {}, b""
    while True:
        chunk = os.read(port, 1 << 16)
        if not chunk:  # nobody is connected
            time.sleep(0.05)
        pending += chunk
        while b"\n" in pending:
            line, _, pending = pending.partition(b"\n")
            request = json.loads(line)
            if "call" in request:
                send(port, called(request))
            elif "wait" not in request:
                jobs[request["name"]] = Job(request)
            else:
                job = jobs.pop(request["wait"]) if request["wait"] else Job(request)
                send(port, job.end(request["timeout_s"]))


def send(port: int, message: dict) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(port, data) :]


if __name__ == "__main__":
    main()
