"""Run one fio step: write its job file, start it, watch it, end it, say what became of it.

fio over nbd does not always stop when the drive dies or freezes: it can spin, print gigabytes and ignore SIGTERM. So
its output passes through a pipe with a bound, a step that completes no I/O is ended, and fio dies with this process.
"""

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

from ssdrig import fiolog, fiotext
from ssdrig.errors import DriveError, LoadError, ToolMissing, UsageError

OLDEST_FIO = (3, 30)  # log_alternate_epoch_clock_id
STALL_S = 30.0  # the kernel's own limit for an NVMe command, after which it resets the controller
RECOVERY_S = 35.0  # and a drive that comes back has until then
MARGIN_S = 60.0
GRACE_S = 5.0
POLL_S = 0.1
OUTPUT_BYTES = 4 << 20  # what fio may print at once, and
OUTPUT_BYTES_PER_S = 64 << 10  # for each second it runs; a status document has 12 to 30 kB
SYNC_S = 5.0
LOG_BYTES_PER_S = 23_500  # fio 3.33 grows by so much for each second, thread and direction (./ssdrig bench detail)
LOG_BYTES = 170 << 20  # how much of that it may hold
SLOWEST_BPS = 200e6  # a step that is bounded by size is taken to be this fast
BINS_S = {"second": 0.0, "minute": 60.0, "none": float("inf")}  # detail -> time between status lines with histograms
DRIVE_GONE = re.compile(
    r"nbd_poll|io_u error|Connection re(set|fused)|Broken pipe|endpoint|Input/output error|No such device|Remote I/O"
    r"|nbd_(connect|aio)"
)


@dataclass(frozen=True)
class Job:
    """One fio step. `target`: a URI such as nbd+unix:///?socket=PATH, or the path of a block device or file, which the
    caller has made sure may be written. Ends after `time_s` if given, else after `io_size` bytes, else after one
    pass.

    `threads` each keep `queue_depth` I/Os in flight; sequential ones share `size_bytes`, random ones each go over all of
    it. With `pause_s` every thread does I/O for `burst_s`, then none for `pause_s`, in turn. `detail`: "second" keeps
    fio's histogram log, "minute" a latency histogram a minute, "none" one of the whole step (counts are kept each second
    in all of them); None: "second" if that fits into fio's memory, else "minute". `most_bytes`: fio is ended when it has
    moved more."""

    name: str
    rw: str
    block_bytes: int
    queue_depth: int
    size_bytes: int
    target: str
    offset: int = 0
    time_s: float | None = None
    io_size: int | None = None
    seed: int = 4242
    threads: int = 1
    burst_s: float = 0.0
    pause_s: float = 0.0
    detail: str | None = None
    most_bytes: int | None = None


@dataclass(frozen=True)
class Result:
    """How a step ended without error. Times are CLOCK_MONOTONIC; ios and bytes are fio's, completed."""

    t_start_ns: int
    t_end_ns: int
    ios: int
    bytes: int
    runtime_s: float
    stopped: bool  # by should_stop
    seconds: fiolog.Seconds | None  # None only if it was stopped before anything was completed


def job_file(job: Job) -> str:
    """The text of fio's job file. Raises UsageError for a job that fio would misread or refuse.

    refill_buffers: without it fio's data compresses to 3 %. norandommap: uniform with replacement, as the reviewers'
    test is. tausworthe64: the default generator reaches 2^32 blocks only."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", job.name):
        raise UsageError("a step name of letters, digits, - and _", repr(job.name), "rename the step")
    if job.rw not in ("read", "write", "randread", "randwrite", "trim", "randtrim", "rw", "randrw"):
        raise UsageError(
            "one of fio's rw words", repr(job.rw), "use read, write, randread, randwrite, trim, randtrim, rw or randrw"
        )
    if "\n" in job.target or not job.target:
        raise UsageError("a target in one line", repr(job.target), "give an NBD URI or a device path")
    if min(job.block_bytes, job.queue_depth) < 1 or job.size_bytes < job.block_bytes or job.offset < 0:
        raise UsageError(
            "positive sizes and at least one block", str(job), "correct block_bytes, queue_depth, size_bytes, offset"
        )
    if job.threads < 1 or min(job.burst_s, job.pause_s) < 0 or (job.pause_s > 0) != (job.burst_s > 0):
        raise UsageError("at least one thread, and burst_s with pause_s", str(job), "correct threads, burst_s, pause_s")
    if job.detail not in (None, *BINS_S):
        raise UsageError(f"a log detail of {', '.join(BINS_S)}", repr(job.detail), "correct detail")
    if "://" in job.target:
        engine = [("ioengine", "nbd"), ("uri", job.target)]
    else:
        engine = [("ioengine", "libaio"), ("direct", 1), ("filename", job.target.replace(":", "\\:"))]
    ends, size_bytes, spread = [], job.size_bytes, []
    if job.time_s is not None:
        ends = [("time_based", 1), ("runtime", f"{round(job.time_s * 1000)}ms")]
    elif job.io_size is not None:
        ends = [("io_size", job.io_size // job.threads)]
    if job.threads > 1:
        spread = [("numjobs", job.threads), ("group_reporting", 1)]
        share = job.size_bytes // job.threads // job.block_bytes * job.block_bytes
        if not job.rw.startswith("rand"):
            size_bytes = share
            spread.append(("offset_increment", share))
        elif not ends:
            ends = [("io_size", share)]  # one pass of them all together
        if share < job.block_bytes:
            raise UsageError("a block for each thread", str(job), "use fewer threads or a larger size_bytes")
    if job.pause_s:
        ends += [("thinktime", f"{round(job.pause_s * 1e6)}us"), ("thinktime_iotime", f"{round(job.burst_s * 1e6)}us")]
    options = [
        *engine,
        ("thread", 1),
        ("rw", job.rw),
        ("bs", job.block_bytes),
        ("iodepth", job.queue_depth),
        ("offset", job.offset),
        ("size", size_bytes),
        *spread,
        *ends,
        ("refill_buffers", 1),
        ("norandommap", 1),
        ("random_generator", "tausworthe64"),
        ("randseed", job.seed),
        ("lat_percentiles", 1),
        ("percentile_list", "50:90:95:99:99.9:99.99:99.999"),
    ]
    if detail(job) == "second":
        options += [
            ("log_avg_msec", 1000),
            ("log_hist_msec", 1000),
            ("log_alternate_epoch", 1),
            ("log_alternate_epoch_clock_id", 1),
            *((f"write_{kind}_log", job.name) for kind in ("iops", "bw", "lat", "hist")),
        ]
    return f"[{job.name}]\n" + "".join(f"{key}={value}\n" for key, value in options)


def detail(job: Job) -> str:
    """The log detail of a step: what the job says, else "second" as long as fio can hold its log (two hours of one thread
    that writes), else "minute"."""
    if job.detail is not None:
        return job.detail
    seconds = job.time_s if job.time_s is not None else (job.io_size or job.size_bytes) / SLOWEST_BPS
    directions = 2 if job.rw in ("rw", "randrw") else 1
    return "second" if seconds * job.threads * directions * LOG_BYTES_PER_S <= LOG_BYTES else "minute"


def stall_s(job: Job) -> float:
    """How long a step may go without completed I/O before it is ended."""
    return max(STALL_S, job.pause_s) + RECOVERY_S


@lru_cache
def version(fio: str = "fio") -> str:
    """What `fio --version` says, such as "fio-3.33". Raises ToolMissing if it is absent or older than 3.30."""
    need = f"fio {OLDEST_FIO[0]}.{OLDEST_FIO[1]} or newer"
    try:
        text = subprocess.run(
            [fio, "--version"], check=False, capture_output=True, text=True, timeout=20
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
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
    """Carry out `job`; its files go into `folder`, which must be new or empty and keeps them whatever happens.

    on_second gets, about once a second, true differences: {"t_ns", "span_s", "ios", "bytes", "iops", "bw_bytes",
    "lat_mean_ns", "total_ios", "total_bytes", "runtime_s"}. should_stop is asked ten times a second; when it says yes
    fio is ended and a Result with stopped=True returned. A step without completed I/O for `stall_after_s` (default: see
    stall_s), one that is not over `margin_s` after its time, and one that has moved more than job.most_bytes, is ended.

    Raises DriveError when the drive went away, hung or refused I/O; LoadError when fio failed, printed without end,
    moved too much, or left logs that do not add up, or the disk is full; ToolMissing; UsageError for a wrong job or a
    used folder; and, after fio has been ended, whatever on_second and should_stop raise."""
    text = job_file(job)
    tool = version(fio)
    folder = Path(folder)
    argv = [fio, "--output-format=json+", "--status-interval=1", "job.fio"]
    started = {"t_ns": time.monotonic_ns(), "utc_ns": time.time_ns(), "fio": tool, "argv": argv}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(
                "an empty folder for a fio step", f"files in {folder}", "give each step a folder of its own"
            )
        (folder / "job.fio").write_text(text)
        (folder / "start.json").write_text(json.dumps(started) + "\n")
    except OSError as error:
        raise LoadError(
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
        with open(folder / "out.json", "wb", buffering=0) as out, open(folder / "stderr.txt", "wb", buffering=0) as err:
            ended = _follow(process, _Sink(out), _Sink(err), watch, should_stop)
    finally:
        _kill(process)
        process.stdout.close()
        process.stderr.close()
    t_end_ns = time.monotonic_ns()
    for path in folder.iterdir():
        with open(path, "rb") as f:
            os.fsync(f.fileno())
    _judge(job, folder, process.returncode, ended, watch)
    seconds = _read_back(job, folder, ended)
    totals = watch.last
    return Result(
        t_start_ns=started["t_ns"],
        t_end_ns=t_end_ns,
        ios=totals["ios"],
        bytes=totals["bytes"],
        runtime_s=totals["runtime_ms"] / 1000,
        stopped=ended == "stopped",
        seconds=seconds,
    )


class _Watch:
    """What is known of a running fio from its status documents, and whether it may go on."""

    def __init__(self, job: Job, stall_s: float, margin_s: float, on_second):
        self.job, self.on_second = job, on_second
        self.stall_s = stall_s
        self.begun = self.progress_at = time.monotonic()
        self.deadline = None if job.time_s is None else self.begun + job.time_s + margin_s
        self.rest = self.whole = ""
        self.last = self.told = fiotext.totals(None)  # of the last document; of the last that on_second was given
        self.next_bins_ns = 0
        self.printed = 0

    def feed(self, chunk: bytes) -> str:
        """Take what fio printed. Returns what out.json keeps of it: status documents as one line each (fiotext.thin)."""
        found, self.rest = fiotext.pieces(self.rest + chunk.decode(errors="replace"))
        kept = []
        for document, text in found:
            if document is None:
                kept.append(text.lstrip("\n"))
                continue
            t_ns = time.monotonic_ns()
            with_bins = t_ns >= self.next_bins_ns
            if with_bins:
                self.next_bins_ns = t_ns + int(min(1e18, 1e9 * BINS_S[detail(self.job)]))
            kept.append(fiotext.thin(document, t_ns, with_bins) + "\n")
            self.whole = text
            self._take(document, t_ns)
        if len(self.rest) > 1 << 20:
            kept.append(self.rest[: -(1 << 20)])
            self.rest = self.rest[-(1 << 20) :]
        return "".join(kept)

    def end(self) -> str:
        """The end of out.json: the last document as fio printed it, and what came after it."""
        return self.whole + "\n" * bool(self.whole) + self.rest

    def _take(self, document: dict, t_ns: int) -> None:
        now = fiotext.totals(document)
        ios, size = now["ios"] - self.told["ios"], now["bytes"] - self.told["bytes"]
        span_s = (now["runtime_ms"] - self.told["runtime_ms"]) / 1000
        if now["ios"] > self.last["ios"]:
            self.progress_at = time.monotonic()
        self.last = now
        if span_s > 0.5:  # the document at the end may follow at once on the one before
            self.on_second(
                {
                    "t_ns": t_ns,
                    "span_s": span_s,
                    "ios": ios,
                    "bytes": size,
                    "iops": ios / span_s,
                    "bw_bytes": size / span_s,
                    "lat_mean_ns": (now["lat_sum_ns"] - self.told["lat_sum_ns"]) / ios if ios else 0.0,
                    "total_ios": now["ios"],
                    "total_bytes": now["bytes"],
                    "runtime_s": now["runtime_ms"] / 1000,
                }
            )
            self.told = now

    def verdict(self) -> str | None:
        """Why fio must end now: "output", "stalled", "late", "budget"; None if it need not."""
        now = time.monotonic()
        if self.printed > self.allowed():
            return "output"
        if now - self.progress_at > self.stall_s:
            return "stalled"
        if self.deadline is not None and now > self.deadline:
            return "late"
        if self.job.most_bytes is not None and self.last["bytes"] > self.job.most_bytes:
            return "budget"
        return None

    def allowed(self) -> int:
        """Bytes that fio may have printed by now."""
        return self.job.threads * (OUTPUT_BYTES + int(OUTPUT_BYTES_PER_S * (time.monotonic() - self.begun)))


def _follow(process, out, err, watch: _Watch, should_stop) -> str:
    """Pass fio's output on until it has ended or has been ended. Returns "exit", "stopped" or _Watch.verdict()."""
    pipes = selectors.DefaultSelector()
    for stream, sink in ((process.stdout, out), (process.stderr, err)):
        os.set_blocking(stream.fileno(), False)
        pipes.register(stream, selectors.EVENT_READ, sink)
    why, kill_at = None, 0.0
    while pipes.get_map() or process.poll() is None:
        for key, _ in pipes.select(POLL_S) if pipes.get_map() else ():
            chunk = os.read(key.fd, 1 << 16)
            if not chunk:
                pipes.unregister(key.fileobj)
                continue
            watch.printed += len(chunk)
            if watch.printed > watch.allowed():
                continue
            key.data.write(watch.feed(chunk).encode() if key.data is out else chunk)
        if not pipes.get_map():
            time.sleep(0.01)
        if why is None:
            why = "stopped" if should_stop() else watch.verdict()
            if why and why != "output":
                process.send_signal(signal.SIGINT)
                kill_at = time.monotonic() + GRACE_S
        if why and (time.monotonic() > kill_at or watch.verdict() == "output"):
            _kill(process)
            break
    out.write(watch.end().encode())
    return why or "exit"


class _Sink:
    """An unbuffered file that reaches the disk every SYNC_S."""

    def __init__(self, file):
        self.file, self.synced_at = file, time.monotonic()

    def write(self, chunk: bytes) -> None:
        """Raises LoadError when the disk takes no more."""
        try:
            while chunk:
                chunk = chunk[self.file.write(chunk) :]
            if time.monotonic() - self.synced_at > SYNC_S:
                self.synced_at = time.monotonic()
                os.fdatasync(self.file.fileno())
        except OSError as error:
            raise LoadError(
                "room for what fio prints", str(error), f"see whether the disk is full: df {self.file.name}"
            ) from error


def _kill(process) -> None:
    """End fio's whole session at once, if it still runs, and collect it; one that hangs in the kernel is left
    behind."""
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
    look = f"look at {folder}; what was measured until then is kept there"
    gone = DRIVE_GONE.search(words)
    if ended == "stopped":
        return
    if ended == "stalled":
        raise DriveError(
            f"the drive to complete I/O of step {job.name}",
            f"none for {watch.stall_s:g} s after {watch.last['ios']} I/Os; fio said: {words}",
            f"power-cycle the drive and check its link; {look}",
        )
    if ended == "output" and not gone:
        raise LoadError(
            f"fio to print less than {watch.allowed() >> 20} MiB", f"{watch.printed >> 20} MiB of: {words}", look
        )
    if ended == "budget":
        raise LoadError(
            f"step {job.name} to move at most {job.most_bytes / 1e9:.2f} GB",
            f"{watch.last['bytes'] / 1e9:.2f} GB",
            f"allow more if the drive's endurance does; {look}",
        )
    if ended == "late":
        raise LoadError(f"fio to end by itself after {job.time_s:g} s", f"it still runs; it said: {words}", look)
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


def _read_back(job: Job, folder: Path, ended: str) -> fiolog.Seconds | None:
    """The step's seconds as the report will see them; proves that what fio wrote is whole (a full disk tears it)."""
    try:
        seconds = fiolog.load(folder)
    except LoadError:
        if ended == "stopped":
            return None
        raise
    total = seconds.totals
    whole = seconds.source == "logs" or detail(job) != "second" or total["runtime_ms"] < 2 * fiolog.WINDOW_MS
    adds_up = not seconds.notes and int(seconds.iops.sum()) == total["ios"]
    if ended == "exit" and (seconds.torn_bytes or not whole or total["error"] or not total["ios"] or not adds_up):
        raise LoadError(
            f"whole logs of step {job.name} without errors",
            f"{total['ios']} I/Os, fio error {total['error']}, {seconds.torn_bytes} bytes torn, from"
            f" {'; '.join([seconds.source, *seconds.notes])}",
            f"see whether the disk is full: df {folder}",
        )
    return seconds
