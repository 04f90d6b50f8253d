"""Runs commands in the guest for machine.py: one JSON object a line comes in over a virtio port, one goes back.

{"argv": [...], "stdin": text, "env": {...}, "cwd": path, "timeout_s": n}
-> {"exit_code": n or null when the time was up, "stdout": text, "stderr": text, "seconds": n}
Starts as the child of the guest's init, in the host's root under a writable overlay; standard library only."""

import glob
import json
import os
import subprocess
import time

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/guest"


def answer(request: dict) -> dict:
    start = time.monotonic()
    out = {"exit_code": None}
    environment = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "SSDRIG_NO_INSTALL": "1", **request.get("env", {})}
    with (
        open("/run/guest/out", "w+b") as stdout,
        open("/run/guest/err", "w+b") as stderr,
        open("/run/guest/in", "w+b") as stdin,
    ):
        stdin.write(request.get("stdin", "").encode())
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                request["argv"],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=environment,
                cwd=request.get("cwd", "/"),
                start_new_session=True,
            )
            try:
                out["exit_code"] = process.wait(request["timeout_s"])
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait(10)
        except (OSError, subprocess.TimeoutExpired) as error:
            stderr.write(f"agent: {error}\n".encode())
            out["exit_code"] = 127
        for name, file in (("stdout", stdout), ("stderr", stderr)):
            file.seek(0)
            out[name] = file.read().decode(errors="replace")
    out["seconds"] = round(time.monotonic() - start, 3)
    return out


def main() -> None:
    while not (ports := glob.glob("/dev/vport*")):
        time.sleep(0.05)
    port = os.open(ports[0], os.O_RDWR)  # a virtio port can be open once
    send(port, {"ready": True, "kernel": os.uname().release, "seconds": time.monotonic()})
    pending = b""
    while True:
        chunk = os.read(port, 1 << 16)
        if not chunk:  # nobody is connected
            time.sleep(0.05)
        pending += chunk
        while b"\n" in pending:
            line, _, pending = pending.partition(b"\n")
            send(port, answer(json.loads(line)))


def send(port: int, message: dict) -> None:
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(port, data) :]


if __name__ == "__main__":
    main()
