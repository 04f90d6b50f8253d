"""One fio step as data, and fio's job file of it. Pure."""

import math
import re
from dataclasses import dataclass

from ssdrig.base.errors import UsageError

STALL_S = 30.0  # the kernel's own limit for an NVMe command, after which it resets the controller
RECOVERY_S = 35.0  # and a drive that comes back has until then
LOG_BYTES_PER_S = (
    23_500  # fio 3.33 grows by this much for each second, thread and direction (./ssdrig selfcheck detail)
)
LOG_BYTES = 170 << 20  # how much of that it may hold
SLOWEST_BPS = 200e6  # a step that is bounded by size is taken to be this fast
ALIGNED_BYTES = 4096
FINE_MS = 100
FINE_IOS = 3_000_000  # in a log: of FINE_ROW_BYTES each, and 40 bytes of fio's memory
FINE_ROW_BYTES = 35
# detail -> time between status lines with histograms
BINS_S = {"second": 0.0, "minute": 60.0, "none": float("inf"), "fine": 60.0}


@dataclass(frozen=True)
class Job:
    """One fio step. `target`: a URI such as nbd+unix:///?socket=PATH, or a path that opens what the caller has made
    sure may be written: of a drive guard.Held.path, or of a file, which must exist. Ends after `time_s` or `io_size`
    bytes, whichever comes first; where neither is given, after one pass.

    `threads` each keep `queue_depth` I/Os in flight; sequential ones share `size_bytes`, random ones each go over all
    of it. With `pause_s` every thread does I/O for `burst_s`, then none for `pause_s`, in turn; fio's first burst takes
    both times. `detail`: "second" keeps fio's histogram log, "minute" a latency histogram a minute, "none" one of the
    whole step (counts are kept each second in all of them), "fine" as "minute", with a log of each I/O, or of each
    FINE_MS where these may be more than FINE_IOS; None: "second" if that fits into fio's memory, otherwise "minute".
    `most_bytes`: fio is ended when it has moved more.

    With `every_s` each I/O is followed by a pause of this long. `read_qd`: during a job that writes, another thread
    reads at random at this queue depth in the same range, in blocks of block_bytes; fio reports the two together, the
    reads of the one and the writes of the other.

    `read_percent` is the share of reads where rw is "rw" or "randrw". `blocks`: a mix of block sizes, ((bytes,
    percent), …), with block_bytes the smallest. `zones`: ((percent of the I/Os, percent of the range), …) from
    the beginning of the range. `rate_iops`: I/Os that all threads together begin in a second, evenly or, with
    `poisson`, at random. `sync`: "each" write is on the medium before it completes; "flush": a flush follows each
    write. `compressible`: percent of the data that a compressing drive can leave out, 0: none, 100: zeros. `pool`:
    writes take incompressible data from a pool of queue_depth blocks, each stamped with its place and time, instead of
    new data each time: 25 times as fast, no two sectors are the same, and zlib makes them 2 to 10 % smaller. `engine`:
    fio's, for a device; "null" does nothing; of io_uring `fixed_buffers`, with the file, are registered with the kernel
    once instead of mapped for each I/O, and completions are `polled`, without interrupts. `cpus`: each thread stays on
    another one of these. `open_zones`: number of zones of a zoned target that are written at a
    time, at their write pointers; fio resets a full zone before it writes it again. `handles`: the placement handle of
    all writes, or of those of each of `zones`; the target is then the generic character device of an NVMe namespace."""

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
    read_percent: int = 0
    blocks: tuple[tuple[int, int], ...] = ()
    zones: tuple[tuple[int, int], ...] = ()
    rate_iops: float | None = None
    poisson: bool = False
    sync: str = "none"
    compressible: int = 0
    pool: bool = False
    engine: str = "libaio"
    fixed_buffers: bool = False
    polled: bool = False
    cpus: tuple[int, ...] = ()
    every_s: float = 0.0
    read_qd: int | None = None
    open_zones: int | None = None
    handles: tuple[int, ...] = ()


Options = list[tuple[str, object]]
SYNC: dict[str, Options] = {"none": [], "each": [("sync", 1)], "flush": [("fsync", 1)]}
ENGINES = ("libaio", "io_uring", "null")
NULL_FILE = "/dev/zero"  # completes writes and reads immediately
SCHEME_FILE = "placement.csv"  # next to the job file


def job_file(job: Job) -> str:
    """The text of fio's job file. Raises UsageError for a job that fio would misread or refuse.

    norandommap: uniform with replacement, as the reviewers'
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
    _check_load(job)
    if "://" in job.target:
        engine: Options = [("ioengine", "nbd"), ("uri", job.target)]
    elif job.engine == "null":
        engine = [("ioengine", "null")]
    elif job.target == NULL_FILE:
        engine = [("ioengine", job.engine), *_registered(job), ("filename", NULL_FILE)]
    elif job.handles:  # its device is opened without O_DIRECT, which it does not know
        engine = [("ioengine", "io_uring_cmd"), ("cmd_type", "nvme"), ("filename", job.target.replace(":", "\\:"))]
        engine += [("allow_file_create", 0), ("dataplacement", "fdp"), ("plid_select", "scheme")]
        engine.append(("dp_scheme", SCHEME_FILE))
    else:
        engine = [("ioengine", job.engine), *_registered(job), *([("hipri", 1)] if job.polled else [])]
        engine += [("direct", 1), ("filename", job.target.replace(":", "\\:"))]
        engine.append(("allow_file_create", 0))  # else fio makes a file of the name of a device that is gone
        if job.open_zones:
            engine += [("zonemode", "zbd"), ("max_open_zones", job.open_zones)]
    size_bytes = job.size_bytes
    ends: list[tuple[str, object]] = []
    spread: list[tuple[str, object]] = []
    if job.time_s is not None:
        ends = [("runtime", f"{round(job.time_s * 1000)}ms")]
    if job.time_s is not None and job.io_size is None:
        ends.insert(0, ("time_based", 1))
    elif job.io_size is not None:
        if job.io_size // job.threads < max((size for size, _ in job.blocks), default=job.block_bytes):
            raise UsageError("an amount of a block for each thread", str(job), "use fewer threads or a larger io_size")
        ends.append(("io_size", job.io_size // job.threads))
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
    if job.every_s:
        ends += [("thinktime", f"{round(job.every_s * 1e6)}us"), ("thinktime_blocks", 1)]
    options = [
        *engine,
        ("thread", 1),
        ("rw", job.rw),
        ("bs", job.block_bytes),
        ("iodepth", job.queue_depth),
        ("offset", job.offset),
        ("size", size_bytes),
        *spread,
        *_pinned(job),
        *ends,
        *_mix(job),
        *_data(job),
        ("norandommap", 1),
        ("random_generator", "tausworthe64"),
        ("randseed", job.seed),
        ("lat_percentiles", 1),
        ("percentile_list", "50:90:95:99:99.9:99.99:99.999"),
        *SYNC[job.sync],
    ]
    monotonic: Options = [("log_alternate_epoch", 1), ("log_alternate_epoch_clock_id", 1)]
    if detail(job) == "second":
        kinds = ("iops", "bw", "lat", "hist")
        options += [("log_avg_msec", 1000), ("log_hist_msec", 1000), *monotonic]
        options += [(f"write_{kind}_log", job.name) for kind in kinds]
    elif detail(job) == "fine":
        amount = job.io_size or (job.size_bytes if job.time_s is None else math.inf)
        averaged: Options = [("log_avg_msec", FINE_MS)] if amount > FINE_IOS * job.block_bytes else []
        options += [*averaged, *monotonic, ("write_bw_log", job.name)]
    if job.read_qd is None:
        return _section(job.name, options)
    beside = {"rw": "randread", "iodepth": job.read_qd, "randseed": job.seed + 1}
    not_its = ("rate_iops", "rate_process", "fsync", "sync", "random_distribution")
    reads = [(key, beside.get(key, value)) for key, value in options if key not in not_its]
    both: Options = [("group_reporting", 1)]
    return _section(job.name, options + both) + _section(f"{job.name}-reads", reads + both)


def scheme(job: Job) -> str:
    """The text of SCHEME_FILE: from byte, to byte, placement identifier, a line for each handle of the job. In the
    first reclaim group, identifier and handle are one number."""
    shares = [size for _, size in job.zones] if len(job.handles) > 1 else [100]
    ends = [job.offset + sum(shares[: n + 1]) * job.size_bytes // 100 for n in range(len(shares))]
    begins = [job.offset, *ends[:-1]]
    return "".join(f"{begin},{end},{handle}\n" for begin, end, handle in zip(begins, ends, job.handles, strict=True))


def _section(name: str, options: Options) -> str:
    return f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in options)


def _check_load(job: Job) -> None:
    words = "correct the step"
    if not 0 <= job.read_percent <= 100:
        raise UsageError("read_percent from 0 to 100", str(job.read_percent), words)
    if job.blocks and (sum(p for _, p in job.blocks) != 100 or min(b for b, _ in job.blocks) != job.block_bytes):
        raise UsageError("blocks of 100 % whose smallest is block_bytes", str(job.blocks), words)
    if job.zones and not (job.rw.startswith("rand") and all(sum(z[k] for z in job.zones) == 100 for k in (0, 1))):
        raise UsageError("zones of 100 % of random I/O", str(job.zones), words)
    if (job.rate_iops is not None and job.rate_iops < job.threads) or (job.poisson and job.rate_iops is None):
        raise UsageError("a rate of at least one I/O a second for each thread", str(job.rate_iops), words)
    if job.every_s and (job.queue_depth, job.threads, job.pause_s) != (1, 1, 0):
        raise UsageError("one I/O at a time before each pause", str(job), "use one thread and a queue depth of 1")
    if job.read_qd is not None:
        fits = job.rw == "randwrite" and job.threads == 1 and job.time_s and not (job.blocks or job.every_s)
        if not fits or job.read_qd < 1 or detail(job) not in ("minute", "none"):
            expected = "reads during random writes of one size, by one thread, for a time, without a log by the second"
            raise UsageError(expected, str(job), words)
    alone = not (job.sync != "none" or job.read_qd or job.open_zones or "://" in job.target)
    if job.handles and (not alone or len(job.handles) not in (1, len(job.zones))):
        raise UsageError("one placement handle, or one for each of zones, of a device", str(job), words)
    if (job.fixed_buffers or job.polled) and job.engine != "io_uring":
        raise UsageError("io_uring for registered buffers and polled completions", job.engine, words)
    if job.sync not in SYNC or job.engine not in ENGINES:
        raise UsageError("known words for sync and engine", f"{job.sync} {job.engine}", words)
    if not 0 <= job.compressible <= 100 or (job.pool and job.compressible):
        raise UsageError("compressible from 0 to 100, and 0 of a pool", str(job.compressible), words)


def _data(job: Job) -> Options:
    """Options of the written data. refill_buffers: new data each time, 5 GB/s per core, which zlib and lzma do not make
    smaller. fio compresses in pieces of 512 bytes, so a drive sees the share whatever its unit is."""
    if job.compressible == 100:
        return [("zero_buffers", 1)]
    if job.compressible:
        return [("refill_buffers", 1), ("buffer_compress_percentage", job.compressible)]
    return [("scramble_buffers", 1)] if job.pool else [("refill_buffers", 1)]


def _registered(job: Job) -> Options:
    return [("fixedbufs", 1), ("registerfiles", 1)] if job.fixed_buffers else []


def _pinned(job: Job) -> Options:
    return [("cpus_allowed", ",".join(map(str, job.cpus))), ("cpus_allowed_policy", "split")] if job.cpus else []


def _mix(job: Job) -> Options:
    """What makes the load other than I/Os of one size, of one direction, everywhere, as fast as they go."""
    options: Options = []
    if job.rw in ("rw", "randrw"):
        options.append(("rwmixread", job.read_percent))
    if job.blocks:
        split = ":".join(f"{size}/{percent}" for size, percent in job.blocks)
        options += [("bssplit", split), ("blockalign", _alignment(job))]
    if job.zones:
        options.append(("random_distribution", "zoned:" + ":".join(f"{ios}/{size}" for ios, size in job.zones)))
    if job.rate_iops is not None:
        reads = {"read": 1.0, "randread": 1.0, "write": 0.0, "randwrite": 0.0}.get(job.rw, job.read_percent / 100)
        rates = [job.rate_iops / job.threads * share for share in (reads, 1 - reads)]
        options.append(("rate_iops", ",".join(str(max(1, round(rate))) if rate else "" for rate in rates)))
        if job.pause_s:
            options.append(("rate_ignore_thinktime", 1))  # else a burst makes up for the pause, far above the rate
        if job.poisson:
            options.append(("rate_process", "poisson"))
    return options


def _alignment(job: Job) -> int:
    """Where the I/Os of a mix begin: at multiples of its smallest block; with smaller and larger ones than 4 KiB at
    multiples of 4 KiB, as JESD219 has it (fio's examples/jesd219.fio), or most of the larger ones would lie across two
    pages of the flash."""
    smaller = job.block_bytes < ALIGNED_BYTES <= max(size for size, _ in job.blocks)
    return ALIGNED_BYTES if smaller else job.block_bytes


def detail(job: Job) -> str:
    """The log detail of a step: the job's own, otherwise "second" if fio can hold its log (two hours of one
    thread that writes), else "minute"."""
    if job.detail is not None:
        return job.detail
    seconds = job.time_s if job.time_s is not None else (job.io_size or job.size_bytes) / SLOWEST_BPS
    directions = 2 if job.rw in ("rw", "randrw") else 1
    return "second" if seconds * job.threads * directions * LOG_BYTES_PER_S <= LOG_BYTES else "minute"


def first_burst_s(burst_s: float, pause_s: float) -> float:
    """How long the first burst of a load with pauses is; 0 without pauses. fio counts the pause that is before each
    burst, also before the first, without a pause (backend.c, handle_thinktime; seen with 3.33)."""
    return burst_s + pause_s if pause_s else 0.0


def stall_s(job: Job) -> float:
    """How long a step may go without completed I/O before it is ended."""
    return max(STALL_S, job.pause_s, job.every_s) + RECOVERY_S
