"""What the tests of the sender share: lines, a run folder with lines, a sender on a clock of its own, a killed
pusher."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ssdrig.publish.influx import line_protocol as lp
from ssdrig.publish.influx import sender as influx

POWER = lp.read_schema()["power"]
HOST = Path(__file__).resolve().parents[2] / "host"


def lines(n, start=0, run="r"):
    return [
        lp.encode(
            POWER,
            {"drive": "d 1", "rail": "5V", "run": run},
            {"p_mean_W": 0.1 * i, "samples": i},
            1_700_000_000_000_000_000 + i * 10**9,
        ).line
        for i in range(start, start + n)
    ]


def outbox(run, content):
    with (run / "points.lp").open("ab") as f:
        f.write(b"".join(line + b"\n" for line in content))
    return run


class Clock:
    """Time that the test moves."""

    def __init__(self):
        self.t = 1000.0

    def __call__(self):
        return self.t


def sender(run, url, **more):
    lines = []
    s = influx.Sender(run, influx.target(url, {}), now=Clock(), say=lines.append, **more)
    s.lines = lines
    return s


def drain(s, tries=200):
    """Attempt until all is sent, moving time past each wait. Returns the waits in seconds."""
    waits = []
    for _ in range(tries):
        if not s.attempt():
            if s.pending() == 0:
                return waits
            waits.append(s.wait_s())
            s.now.t += s.wait_s()
    raise AssertionError(f"{s.pending()} pending after {tries} tries: {s.lines}")


PUSHER = """
import sys, time
from pathlib import Path
from ssdrig.publish.influx import sender
die = sys.argv[3]
if die == "after-204":
    sender.write_atomically = lambda *_, **__: (print("here", flush=True), time.sleep(60))
if die == "before-rename":
    Path.replace = lambda *_: (print("here", flush=True), time.sleep(60))
s = sender.Sender(Path(sys.argv[1]), sender.target(sys.argv[2]))
if die == "before-post":
    s._send = lambda *_: (print("here", flush=True), time.sleep(60))
while s.pending():
    s.attempt()
    if die == "any":
        print("here", flush=True)
print("here", flush=True)  # all was sent before whoever kills it had its turn
time.sleep(60)
"""


def pusher_killed(run, url, die, after_s=0.0, reached=None):
    """Start a sending process and kill -9 it: where it says it is, or once `reached` is set, plus after_s."""
    process = subprocess.Popen(
        [sys.executable, "-c", PUSHER, str(run), url, die],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(HOST)},
    )
    try:
        if reached:
            assert reached.wait(900)  # Python has to start
        else:
            assert process.stdout.readline() == b"here\n"
        time.sleep(after_s)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert process.returncode == -signal.SIGKILL


BAD = [
    b"power,run=r p_mean_W=1i 1700000000000000000",
    b'power,run=r samples="many" 1700000000000000000',
    b"power,run=r samples=abc 5",
    b"no line at all",
]
