"""record: read the kernel's counts of the drive once a second, while a command runs or others use it."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ssdrig.base.errors import DriveError, LoadError, SsdrigError, UsageError
from ssdrig.base.terminal import printable
from ssdrig.drive import host_energy, witness
from ssdrig.load import application_log, recorded
from ssdrig.load.followed_log import FollowedLog
from ssdrig.run.pace import Pace

TARGET = "SSDRIG_TARGET"  # in the command's environment: the URI of a SIMULATED drive
OURS = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS")  # set by our launcher
PATIENCE_S = 10.0  # that a command has to end once it was asked to
LOOK_S = 0.1
SECOND_NS = 1_000_000_000
NO_COUNTS = "the kernel shows no counts of it in /sys/block"


class Recorder(threading.Thread):
    """Reads the counts each second into a file, in its own thread: nothing that the run does delays a reading.

    `first`, `last`: readings of Bench.witness; `rows`: (t_ns, stat) of each so far; `failure`: why it ended early."""

    def __init__(self, witness_now: Callable[[], dict], path: Path):
        super().__init__(name="recorder", daemon=True)
        self._witness, self._ended = witness_now, threading.Event()
        self._zones = host_energy.zones()
        self.rows: list[tuple[int, list[int]]] = []
        self.failure: Exception | None = None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, "x", encoding="ascii")
        self._file.write(recorded.head([(zone.name, zone.range_uJ) for zone in self._zones]))
        self.first = self.last = self._reading()

    def run(self) -> None:
        next_ns = self.rows[0][0]
        try:
            while True:
                next_ns = max(next_ns + SECOND_NS, time.monotonic_ns())
                ended = self._ended.wait(max(0, next_ns - time.monotonic_ns()) / SECOND_NS)
                self.last = self._reading()
                if ended:
                    break
        except (SsdrigError, OSError, ValueError) as error:
            self.failure = error

    def end(self) -> None:
        """Take the last reading and close the file. Raises what ended it early."""
        self._ended.set()
        self.join()
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()
        if self.failure:
            raise self.failure

    def _reading(self) -> dict:
        t_ns = time.monotonic_ns()
        witness = self._witness()
        energies = [host_energy.energy_uJ(zone.folder) for zone in self._zones]
        stat = witness.get("stat") or (witness.get("pace") or {}).get("stat")
        before = self.rows[-1] if self.rows else None
        if not stat:
            raise DriveError(
                "counts of the drive", NO_COUNTS if before is None else "the drive is gone", "record again"
            )
        if before and self.first["seq"] != witness["seq"]:
            raise DriveError("the drive as it was", "it was removed and came again", "record again")
        took_ns = time.monotonic_ns() - t_ns
        self._file.write(recorded.line(t_ns, took_ns, stat, energies))
        self._file.flush()
        self.rows.append((t_ns, stat))
        return witness


def check(words: Sequence[str]) -> None:
    """Raises UsageError for a command that this machine does not have."""
    import shutil

    if words and not shutil.which(words[0]):
        raise UsageError(
            "a command that can be run", printable(words[0])[:80] or "an empty word", "name it by its path"
        )


def carry_out(act, stage, number: int) -> dict:
    """Record until the command has ended, the time is over, or someone asks for the end, which is not a failure."""
    stage.bench.check()
    every_s = act.keys["smart"] if isinstance(act.keys["smart"], float) else None
    with stage.stop.second_raises():
        stage.live.poll_smart("before")
    time_s = act.keys["time"] or None
    stage.live.begin(Pace(act.path, None, time_s, every_s is not None, (), every_s))
    path = stage.book.path / "recorded" / act.folder(stage.round, number) / recorded.COUNTERS
    log, began_s = FollowedLog(stage.log) if stage.log else None, time.time()
    recorder = Recorder(lambda: stage.bench.witness(witness.NOW), path)
    process, why, code = None, None, None
    try:
        recorder.start()
        stage.book.event("load.first_io", t_ns=recorder.rows[0][0], step=act.path)
        if stage.words:
            from_ns = time.monotonic_ns()
            process = _started(stage)
            argv = list(stage.words)
            stage.book.event("command.start", step=act.path, argv=argv, pid=process.pid, from_ns=from_ns)
        why = _until_the_end(stage, recorder, process, time_s, log)
    finally:
        if process:
            code = _ended(process)
            stage.book.event("command.end", step=act.path, exit_code=code, why="the run failed" if why is None else why)
        recorder.end()
    if log:
        with log:
            _lay_beside(stage, act.path, path.parent, log, began_s)
    counted = witness.between(recorder.first, recorder.last)
    stage.book.event("witness", step=act.path, label=act.label, **counted)
    if stage.words and why == "" and code:
        stage.outcome = LoadError(
            "the command to end with exit code 0", f"{code}", "the recording is whole; see what the command printed"
        )
    return {"why": why or "the command ended", "bytes": 0}


def _lay_beside(stage, step: str, folder: Path, log: FollowedLog, began_s: float) -> None:
    """Copy the application's log into the run. One that cannot be had is an event, and the recording stays."""
    why, sizes = None, {"bytes": 0}
    try:
        sizes = log.copied(folder / application_log.NAME)
    except OSError as error:
        why = f"{stage.log.name}: {error.strerror or error}"
        stage.progress.warn(printable(f"record: no log, {why}"))
    changed = application_log.stamp(stage.log) != log.before.stamp
    offsets = application_log.utc_offsets_s((began_s, time.time()))
    facts = {"file": stage.log.name, **sizes, "changed": changed, "utc_offsets_s": offsets, "why": why}
    stage.book.event(application_log.EVENT, step=step, **facts)


def _until_the_end(
    stage, recorder: Recorder, process: subprocess.Popen | None, time_s: float | None, log: FollowedLog | None
) -> str:
    """Report each second. Returns why it ended; "": the command ended."""
    began_ns, shown = recorder.rows[0][0], 1
    while True:
        if log:
            log.look()
        if stage.asked():  # a terminal's Ctrl-C ends the command, too
            return f"stopped by {stage.stop.name or 'a signal'}"
        if process and process.poll() is not None:
            return ""
        if time_s and time.monotonic_ns() - began_ns >= time_s * stage.dilation * SECOND_NS:
            return "its time was over"
        if recorder.failure:
            raise recorder.failure
        if len(recorder.rows) <= shown:
            time.sleep(LOOK_S)
            continue
        (since_ns, before), (t_ns, after) = recorder.rows[shown - 1 : shown + 1]
        shown += 1
        ios, sectors = (sum(after[at] - before[at] for at in pair) for pair in ((0, 4), (2, 6)))
        lasted_s = (t_ns - since_ns) / SECOND_NS
        now = {"iops": ios / lasted_s, "bw_bytes": sectors * recorded.SECTOR_BYTES / lasted_s, "total_bytes": 0}
        stage.second(now | {"t_ns": t_ns, "runtime_s": (t_ns - began_ns) / SECOND_NS})


def _started(stage) -> subprocess.Popen:
    """Run the command with its stdout on stderr: stdout has the result. Raises LoadError."""
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    if stage.bench.simulated:
        environment[TARGET] = stage.bench.fio_target
    try:
        return subprocess.Popen(stage.words, stdout=2, env=environment)
    except OSError as error:
        raise LoadError(f"to run {printable(stage.words[0])}", error.strerror or str(error), "correct it") from error


def _ended(process: subprocess.Popen) -> int:
    """Its exit code, below 0 a signal; a command that still runs is asked to end, then killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()
