"""Run one fio step: write its job file, start it, watch it, end it, report the outcome.

fio over nbd does not always stop when the drive dies or freezes: it can spin, print gigabytes and ignore SIGTERM. So
its output passes through a pipe with a bound, a step that completes no I/O is ended, and fio dies with this process. A
pipe without a reader makes fio give up ("stuck grabbing stat_sem"), so it is a large one: a minute of documents.
"""

import contextlib
import fcntl
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ssdrig.base import child_cpu
from ssdrig.base.errors import DriveError, JournalError, LoadError, ToolMissing, UsageError
from ssdrig.base.words import size
from ssdrig.drive import openers
from ssdrig.load import fiolog, fioseconds, fiotext
from ssdrig.load.fioclock import followed, is_of_the_job
from ssdrig.load.fiojob import BINS_S, SCHEME_FILE, Job, detail, job_file, scheme, stall_s

OLDEST_FIO = (3, 30)  # log_alternate_epoch_clock_id
MARGIN_S = 60.0
GRACE_S = 5.0
POLL_S = 0.1
OUTPUT_BYTES = 4 << 20  # most output of fio in one piece, and
PIPE_BYTES = 1 << 20  # the most that Linux gives without privileges
OUTPUT_BYTES_PER_S = 64 << 10  # for each second it runs; a status document has 12 to 30 kB
SYNC_S = 5.0
DRIVE_GONE = re.compile(
    r"nbd_poll|io_u error|Connection re(set|fused)|Broken pipe|endpoint|Input/output error|No such device|Remote I/O"
    r"|nbd_(connect|aio)"
)


@dataclass(frozen=True)
class Result:
    """How a step ended without error. Times are CLOCK_MONOTONIC; ios and bytes are fio's, completed."""

    t_start_ns: int
    t_end_ns: int
    ios: int
    bytes: int
    runtime_s: float
    stopped: bool  # by should_stop
    seconds: fioseconds.Seconds | None  # None only if it was stopped before anything was completed


@lru_cache
def version(fio: str) -> str:
    """The output of `fio --version`, such as "fio-3.33". Raises ToolMissing if it is absent or older than 3.30."""
    need = f"fio {OLDEST_FIO[0]}.{OLDEST_FIO[1]} or newer"
    try:
        text = child_cpu.output([fio, "--version"]).stdout.strip()
    except child_cpu.NotReady as error:
        raise ToolMissing(need, error.reason, f"see why `{fio} --version` does not end") from error
    except OSError as error:
        raise ToolMissing(need, str(error), "apt-get install fio") from error
    number = re.match(r"fio-(\d+)\.(\d+)", text)
    if not number or tuple(map(int, number.groups())) < OLDEST_FIO:
        raise ToolMissing(need, text or "no version", "install a newer fio")
    if not shutil.which("setpriv"):
        raise ToolMissing("setpriv (util-linux)", "none on PATH", "apt-get install util-linux")
    return text


def run(
    job: Job,
    folder,
    on_second: Callable[[dict], None] = lambda second: None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    stall_after_s: float | None = None,
    margin_s: float = MARGIN_S,
    fio: str = "fio",
) -> Result:
    """Execute `job`; its files go into `folder`, which must be new or empty and keeps them whatever happens.

    on_second gets, about once a second, true differences: {"t_ns", "span_s", "ios", "bytes", "iops", "bw_bytes",
    "lat_mean_ns", "total_ios", "total_bytes", "written_bytes" (of those), "runtime_s"}. should_stop is asked ten times
    a second; when it returns true, fio is ended and a Result with stopped=True returned. A step without completed I/O
    for `stall_after_s` (default: see stall_s), one that is not over `margin_s` after its time, and one that has moved
    more than job.most_bytes, is ended.

    Raises DriveError when the drive went away, hung or refused I/O; LoadError when fio failed, printed without end,
    moved too much, or left logs that do not add up; JournalError when the folder takes no more; ToolMissing; UsageError
    for a wrong job or a used folder; and, after fio has been ended, whatever on_second and should_stop raise."""
    text = job_file(job)
    tool = version(fio)
    folder = Path(folder)
    argv = [fio, "--output-format=json+", "--status-interval=1", "job.fio"]
    t_start_ns = time.monotonic_ns()
    started = {"t_ns": t_start_ns, "utc_ns": time.time_ns(), "fio": tool, "argv": argv}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError("an empty folder for a fio step", f"files in {folder}", "give each step its own folder")
        (folder / "job.fio").write_text(text)
        if job.handles:
            (folder / SCHEME_FILE).write_text(scheme(job))
        (folder / "start.json").write_text(json.dumps(started) + "\n")
    except OSError as error:
        raise JournalError(
            "a folder for the step's files", str(error), "see whether the disk is full or the path is wrong"
        ) from error
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", *argv],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for this process to handle
    )
    watch = _Watch(job, stall_s(job) if stall_after_s is None else stall_after_s, margin_s, on_second)
    try:
        with (
            openers.own(process),
            open(folder / "out.json", "wb", buffering=0) as out,
            open(folder / "stderr.txt", "wb", buffering=0) as err,
        ):
            try:
                ended = _follow(process, _Sink(out), _Sink(err), watch, should_stop)
            finally:
                _kill(process)
    finally:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
    t_end_ns = time.monotonic_ns()
    for path in folder.iterdir():
        with open(path, "rb") as f:
            os.fsync(f.fileno())
    _judge(job, folder, process.returncode, ended, watch)
    seconds = _read_back(job, folder, ended)
    totals = watch.last
    return Result(
        t_start_ns=t_start_ns,
        t_end_ns=t_end_ns,
        ios=totals["ios"],
        bytes=totals["bytes"],
        runtime_s=totals["runtime_ms"] / 1000,
        stopped=ended == "stopped",
        seconds=seconds,
    )


class _Watch:
    """State of a running fio from its status documents, and whether it may go on."""

    def __init__(self, job: Job, stall_s: float, margin_s: float, on_second):
        self.job, self.on_second = job, on_second
        self.stall_s = stall_s
        self.begun = self.progress_at = time.monotonic()
        self.deadline = None if job.time_s is None else self.begun + job.time_s + margin_s
        self.rest = self.whole = ""
        self.last = self.reported = fiotext.totals(None)  # of the last document; of the last that on_second was given
        self.pending: list[tuple[dict, int]] = []
        self.next_bins_ns = 0
        self.printed = 0

    def feed(self, chunk: bytes) -> str:
        """Take what fio printed. Returns what out.json keeps of it: status documents as one line each (fiotext.thin).
        Once that is written, take() goes on."""
        documents, self.rest = fiotext.pieces(self.rest + chunk.decode(errors="replace"))
        wanted = []
        for document, text in documents:
            if document is None:
                wanted.append(text.lstrip("\n"))
                continue
            t_ns = time.monotonic_ns()
            with_bins = t_ns >= self.next_bins_ns
            if with_bins:
                self.next_bins_ns = t_ns + int(min(1e18, 1e9 * BINS_S[detail(self.job)]))
            wanted.append(fiotext.thin(document, t_ns, with_bins) + "\n")
            self.whole = text
            self.pending.append((document, t_ns))
        if len(self.rest) > 1 << 20:
            wanted.append(self.rest[: -(1 << 20)])
            self.rest = self.rest[-(1 << 20) :]
        return "".join(wanted)

    def end(self) -> str:
        """The end of out.json: the last document as fio printed it, and what came after it."""
        return self.whole + "\n" * bool(self.whole) + self.rest

    def take(self) -> None:
        """Pass the documents that feed() parsed to on_second."""
        while self.pending:
            self._take(*self.pending.pop(0))

    def _take(self, document: dict, t_ns: int) -> None:
        now = fiotext.totals(document)
        # its run time is not the job's: no difference to it is the time of anything
        if not now["ios"] and not is_of_the_job(document, t_ns / 1e6 - 1e3 * self.begun):
            return
        self.reported = followed(now, self.reported)
        ios, moved = now["ios"] - self.reported["ios"], now["bytes"] - self.reported["bytes"]
        span_s = (now["runtime_ms"] - self.reported["runtime_ms"]) / 1000
        if now["ios"] > self.last["ios"]:
            self.progress_at = time.monotonic()
        self.last = now
        if span_s > 0.5:  # the document at the end may come right after the previous one
            self.on_second(
                {
                    "t_ns": t_ns,
                    "span_s": span_s,
                    "ios": ios,
                    "bytes": moved,
                    "iops": ios / span_s,
                    "bw_bytes": moved / span_s,
                    "lat_mean_ns": (now["lat_sum_ns"] - self.reported["lat_sum_ns"]) / ios if ios else 0.0,
                    "total_ios": now["ios"],
                    "total_bytes": now["bytes"],
                    "written_bytes": fiotext.totals(document, "write")["bytes"],
                    "runtime_s": now["runtime_ms"] / 1000,
                }
            )
            self.reported = now

    def verdict(self, more: bool, looked: float = 0.0) -> str | None:
        """Why fio must end now: "output", "stalled", "late", "budget"; None if it need not. `more`: its output
        may not all be read yet, because this process was suspended, or the disk hung: then its time is not judged.
        looked: when its pipes were looked into the last time; what came since then is not known either."""
        if self.printed > self.allowed():
            return "output"
        if self.job.most_bytes is not None and self.last["bytes"] > self.job.most_bytes:
            return "budget"
        if more:
            return None
        if looked - self.progress_at > self.stall_s:
            return "stalled"
        if self.deadline is not None and looked > self.deadline:
            return "late"
        return None

    def allowed(self) -> int:
        """Bytes that fio may have printed by now."""
        return self.job.threads * (OUTPUT_BYTES + int(OUTPUT_BYTES_PER_S * (time.monotonic() - self.begun)))


def _follow(process, out, err, watch: _Watch, should_stop) -> str:
    """Pass fio's output on until it has ended or has been ended. Returns "exit", "stopped" or _Watch.verdict()."""
    pipes = selectors.DefaultSelector()
    for stream, sink in ((process.stdout, out), (process.stderr, err)):
        os.set_blocking(stream.fileno(), False)
        with contextlib.suppress(OSError):  # what this user may have in pipes is used up
            fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        pipes.register(stream, selectors.EVENT_READ, sink)
    why, kill_at = None, 0.0
    while pipes.get_map() or process.poll() is None:
        looked = time.monotonic()
        readable = pipes.select(POLL_S) if pipes.get_map() else ()
        for key, _ in readable:
            chunk = os.read(key.fd, 1 << 16)
            if not chunk:
                pipes.unregister(key.fileobj)
                continue
            watch.printed += len(chunk)
            if watch.printed > watch.allowed():
                continue
            key.data.write(watch.feed(chunk).encode() if key.data is out else chunk)
            watch.take()
        if not pipes.get_map():
            time.sleep(0.01)
        if why is None:
            why = "stopped" if should_stop() else watch.verdict(bool(readable), looked)
            if why and why != "output":
                process.send_signal(signal.SIGINT)
                kill_at = time.monotonic() + GRACE_S
        if why and (time.monotonic() > kill_at or watch.verdict(True) == "output"):
            _kill(process)
            break
    out.write(watch.end().encode())
    return why or "exit"


class _Sink:
    """An unbuffered file that reaches the disk every SYNC_S."""

    def __init__(self, file):
        self.file, self.synced_at = file, time.monotonic()

    def write(self, chunk: bytes) -> None:
        """Raises JournalError when the disk takes no more."""
        try:
            while chunk:
                chunk = chunk[self.file.write(chunk) :]
            if time.monotonic() - self.synced_at > SYNC_S:
                self.synced_at = time.monotonic()
                os.fdatasync(self.file.fileno())
        except OSError as error:
            raise JournalError(
                f"room on the disk for {self.file.name}",
                error.strerror or str(error),
                "free disk space; earlier output is kept",
            ) from error


def _kill(process) -> None:
    """Kill fio's whole session, if it still runs, and reap it; one that hangs in the kernel is left
    running."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(GRACE_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def _judge(job: Job, folder: Path, code: int, ended: str, watch: _Watch) -> None:
    """Raise the error that fits how fio ended, if one does."""
    words = _last_words(folder / "stderr.txt")
    if ended == "output" and not words:
        words = _last_words(folder / "out.json")
    words = words or "nothing"
    look = f"look at {folder}; earlier measurements are there"
    gone = DRIVE_GONE.search(words)
    if ended == "stopped":
        return
    if ended == "stalled":
        raise DriveError(
            f"the drive to complete I/O of step {job.name}",
            f"none for {watch.stall_s:g} s after {watch.last['ios']} I/Os; fio printed: {words}",
            f"power-cycle the drive and check its link; {look}",
        )
    if ended == "output" and not gone:
        raise LoadError(
            f"fio to print less than {watch.allowed() >> 20} MiB", f"{watch.printed >> 20} MiB of: {words}", look
        )
    if ended == "budget" and job.most_bytes is not None:
        raise LoadError(
            f"step {job.name} to move at most {size(job.most_bytes)}",
            size(watch.last["bytes"]),
            f"allow more if the drive's endurance does; {look}",
        )
    if ended == "late":
        raise LoadError(f"fio to end on its own after {job.time_s:g} s", f"it still runs; it printed: {words}", look)
    if gone and (code or ended == "output"):
        raise DriveError(
            f"the drive to serve step {job.name} to its end", f"fio: {words}", f"see why the drive went away; {look}"
        )
    if code:
        raise LoadError(f"fio to finish step {job.name}", f"exit code {code}: {words}", look)


def _last_words(path: Path) -> str:
    with open(path, "rb") as f:
        f.seek(max(0, f.seek(0, 2) - 2000))
        lines = f.read().decode(errors="replace").strip().splitlines()
    return " | ".join(dict.fromkeys(lines[-3:]))[-600:]


def _read_back(job: Job, folder: Path, ended: str) -> fioseconds.Seconds | None:
    """The step's seconds as the report will see them; proves that what fio wrote is whole (a full disk tears it)."""
    try:
        seconds = fiolog.load(folder)
    except LoadError:
        if ended == "stopped":
            return None
        raise
    total = seconds.totals
    whole = seconds.source == "logs" or detail(job) != "second" or total["runtime_ms"] < 2 * fioseconds.WINDOW_MS
    adds_up = not set(seconds.notes) - set(seconds.clock_notes) and int(seconds.iops.sum()) == total["ios"]
    if ended == "exit" and (seconds.torn_bytes or not whole or total["error"] or not total["ios"] or not adds_up):
        raise LoadError(
            f"whole logs of step {job.name} without errors",
            f"{total['ios']} I/Os, fio error {total['error']}, {seconds.torn_bytes} bytes torn, from"
            f" {'; '.join([seconds.source, *seconds.notes])}",
            f"see whether the disk is full: df {folder}",
        )
    return seconds
