"""A trace played by its own process, as fio is one: nothing else that the run does delays an I/O, and a run that
is killed takes it along."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from ssdrig.base import errors
from ssdrig.base.errors import DriveError, LoadError, SsdrigError
from ssdrig.drive import openers
from ssdrig.load import traceform
from ssdrig.load.playedlog import LINES, RECORDS, START
from ssdrig.load.trace_player import STALL_NS, How

GRACE_S = 10.0
SILENT_S = 2 * STALL_NS / 1e9  # the player itself gives up on a drive sooner
LOOK_S = 0.1


class Ended(NamedTuple):
    """`stopped`: ended on request; `summary`: its last line."""

    stopped: bool
    summary: dict


def run(
    target: str,
    trace: Path,
    how: How,
    folder: Path,
    on_second: Callable[[dict], None] = lambda second: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Ended:
    """Play the trace file on `target` (see targets.named) in `folder`, which must be new: START, RECORDS and LINES are
    kept there. on_second gets about once a second what playing.Lines prints. Raises what the player raises, LoadError
    where it ends otherwise, and, after it has been ended, what on_second raises."""
    header, _ = traceform.read(trace)
    folder.mkdir(parents=True)
    start = {"t_ns": time.monotonic_ns(), "utc_ns": time.time_ns(), "target": target, "how": asdict(how)}
    start |= {"trace": os.path.relpath(trace, folder), "header": header}
    (folder / START).write_text(json.dumps(start, ensure_ascii=False) + "\n", errors="replace")
    with open(folder / "stderr.txt", "wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ssdrig.load.trace_playing", str(folder), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            start_new_session=True,  # Ctrl-C is for this process to handle
        )
    try:
        with openers.own(process), open(folder / LINES, "wb", buffering=0) as out:
            try:
                last, stopped = _follow(process, out, on_second, should_stop)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait(GRACE_S)
    finally:
        assert process.stdout is not None
        process.stdout.close()
        for name in (RECORDS, LINES):
            if (folder / name).exists():
                with open(folder / name, "rb") as f:
                    os.fsync(f.fileno())
    if error := last.get("error"):
        kind = getattr(errors, str(error[0]), LoadError)
        raise (kind if issubclass(kind, SsdrigError) else LoadError)(*error[1:])
    if not stopped and not last.get("ended"):
        words = (folder / "stderr.txt").read_text(errors="replace").strip()[-400:]
        raise LoadError("the player to end", words or f"exit code {process.returncode}", f"see {folder}")
    return Ended(stopped, last)


def _follow(process: subprocess.Popen, out, on_second, should_stop) -> tuple[dict, bool]:
    """Its lines, until it has ended. Returns (the last one, whether it was asked to end)."""
    assert process.stdout is not None
    last: dict = {}
    rest, stopped, heard = b"", False, time.monotonic()
    while True:
        looked = time.monotonic()  # its output since then is unread, however long we were suspended
        if select.select([process.stdout], [], [], LOOK_S)[0]:
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                return last, stopped
            out.write(more)
            *lines, rest = (rest + more).split(b"\n")
            heard = time.monotonic()
            for line in lines:
                last = json.loads(line)
                if "span_s" in last:
                    on_second(last)
        if not stopped and should_stop():
            stopped = True
            process.send_signal(signal.SIGTERM)
            heard = time.monotonic()
        silent_s = looked - heard
        if silent_s > (GRACE_S if stopped else SILENT_S):
            if stopped:
                return last, True
            raise DriveError("a progress line from the player", f"nothing for {silent_s:.0f} s", "see dmesg")
