"""The ceiling of the load generator: what fio alone reaches on a null target with the shape of a load.

A null target completes each I/O immediately: fio's engine `null`, or /dev/zero, where the job's engine still makes its
system calls (they cost most where blocks are small; the kernel's copy of zeros would cost more where they are large).
The kernel's block layer and driver cost the host more than this, so the ceiling is the most that it can ask for.

All shapes are measured in one run of fio before the first step: between steps the drive would rest longer."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ssdrig.base.errors import LoadError
from ssdrig.load import fiojob
from ssdrig.load.engine import how
from ssdrig.load.fiojob import NULL_FILE, Job

MEASURED_S = 0.15  # of each shape
SLOWEST_S = 5.0  # for each shape on a busy host, with fio's own start
SYSTEM_CALLS_BYTES = 16 << 10  # up to this block size a null target is a file: the calls take most of the time
RANGE_BYTES = 1 << 30  # of each thread
LANE_SHARE = {"2.5": 0.8, "5.0": 0.8, "5": 0.8}  # 8b/10b; from 8 GT/s on 128b/130b (PCI Express Base Specification)
LEAST_POOL_BYTES = 128 << 10  # queue depth x block: a smaller pool repeats so soon that zlib leaves 5 % of it
FILLS_PERCENT = 80.0  # of a ceiling, below which a drive is sure not to wait for the host


class Shape(NamedTuple):
    """What fio's own cost depends on. `word`: "read" or "write"; `blocks`: ((bytes, percent), …); `engine`, `cpus`: as
    the plan names them."""

    word: str
    random: bool
    blocks: tuple[tuple[int, int], ...]
    queue_depth: int
    threads: int
    engine: str = "auto"
    compressible: int = 0
    cpus: str = "any"


class Ceiling(NamedTuple):
    """`pool`: writes take their data from a pool with stamps, instead of new data for each (fiojob.Job.pool)."""

    shape: Shape
    iops: float
    bytes_per_s: float
    pool: bool = False

    def as_json(self) -> dict:
        return self.shape._asdict() | {"iops": self.iops, "bytes_per_s": self.bytes_per_s, "pool": self.pool}


def shapes(do: str, keys: Mapping[str, Any]) -> tuple[Shape, ...]:
    """The shapes of a step of kind `do` with these keys: none without fio, two for a mix of reads and writes, whose
    ceiling is not below the lower of the two."""
    if do not in ("load", "fill"):
        return ()
    blocks = keys["block"] if do == "load" else ((keys["block"], 100),)
    read = keys["read"] if do == "load" else 0
    words = {100: ("read",), 0: ("write",)}.get(read, ("read", "write"))
    random = do == "load" and keys["pattern"] == "random"
    compressible = keys.get("compressible", 0)
    same = (random, tuple((size, percent) for size, percent in blocks), keys["qd"], keys["threads"], keys["engine"])
    cpus = keys.get("cpus", "any")
    return tuple(Shape(word, *same, compressible if word == "write" else 0, cpus) for word in words)


def job(shape: Shape, over_nbd: bool, pool: bool = False) -> Job:
    """fio's job of a shape on a null target. `over_nbd`: which has no null target but fio's."""
    smallest, largest = (pick(size for size, _ in shape.blocks) for pick in (min, max))
    calls = not over_nbd and largest <= SYSTEM_CALLS_BYTES
    own = how(shape._asdict(), shape.threads * shape.queue_depth * largest)
    own |= {"polled": False}  # a null target has nothing to poll
    own |= {} if calls else {"engine": "null", "fixed_buffers": False}
    return Job(
        name="ceiling",
        rw=("rand" if shape.random else "") + shape.word,
        block_bytes=smallest,
        blocks=shape.blocks if len(shape.blocks) > 1 else (),
        queue_depth=shape.queue_depth,
        threads=shape.threads,
        size_bytes=max(RANGE_BYTES, 2 * largest) * shape.threads,
        time_s=MEASURED_S,
        compressible=shape.compressible,
        pool=pool,
        **own,
        target=NULL_FILE if calls else "null",
        detail="none",
    )


def measure(
    wanted: Iterable[Shape], over_nbd: bool, link_bytes_per_s: float | None = None, fio: str = "fio"
) -> list[Ceiling]:
    """The ceiling of each shape on this host, now.

    link_bytes_per_s: of the drive's link, None: not known. Where fio with new data for each write could not fill it,
    the writes are measured with data from a pool too, and have that if it is faster.
    Raises LoadError if fio does not measure them."""
    jobs = [(shape, job(shape, over_nbd)) for shape in dict.fromkeys(wanted)]
    ceilings = [
        Ceiling(shape, speed.iops, speed.bytes_per_s)
        for (shape, _), speed in zip(jobs, speeds([j for _, j in jobs], fio), strict=True)
    ]
    slow = [
        at
        for at, (shape, of) in enumerate(jobs)
        if link_bytes_per_s
        and shape.word == "write"
        and not shape.compressible
        and shape.queue_depth * min(size for size, _ in shape.blocks) >= LEAST_POOL_BYTES
        and _short(ceilings[at], link_bytes_per_s)
    ]
    pooled = speeds([replace(jobs[at][1], pool=True) for at in slow], fio)
    for at, speed in zip(slow, pooled, strict=True):
        if speed.iops > ceilings[at].iops:
            ceilings[at] = Ceiling(ceilings[at].shape, speed.iops, speed.bytes_per_s, pool=True)
    return ceilings


def _short(ceiling: Ceiling, link_bytes_per_s: float) -> bool:
    return ceiling.bytes_per_s * FILLS_PERCENT / 100 < link_bytes_per_s


class Speed(NamedTuple):
    """What fio reached. `cpu_percent`: the mean share of a core that each of its threads took."""

    iops: float
    bytes_per_s: float
    cpu_percent: float


def speeds(jobs: Sequence[Job], fio: str = "fio") -> list[Speed]:
    """The speed of each job; they run one after the other. Raises LoadError."""
    if not jobs:
        return []
    text = "".join(fiojob.job_file(one).replace("\n", "\nstonewall=1\n", 1) for one in jobs)
    with tempfile.TemporaryDirectory(prefix="ssdrig-ceiling-") as folder:
        path = Path(folder) / "ceiling.fio"
        path.write_text(text)
        try:
            done = subprocess.run(
                ["setpriv", "--pdeathsig", "KILL", fio, "--output-format=json", os.fspath(path)],
                cwd=folder,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=SLOWEST_S * (1 + len(jobs)),
                text=True,
                errors="replace",
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _unmeasured(str(error)) from error
    try:
        rows = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
        measured = [_speed(row) for row in rows]
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise _unmeasured(f"exit code {done.returncode}: {done.stderr.strip()[-200:]}") from error
    if len(measured) != len(jobs):
        raise _unmeasured(f"{len(measured)} results of {len(jobs)}")
    return measured


def _speed(row: Mapping) -> Speed:
    both = [row["read"], row["write"]]
    run_s = max(one["runtime"] for one in both) / 1000
    ios, moved = (sum(one[key] for one in both) for key in ("total_ios", "io_bytes"))
    return Speed(ios / run_s, moved / run_s, row["usr_cpu"] + row["sys_cpu"])


def _unmeasured(what: str) -> LoadError:
    return LoadError("fio to measure its own ceiling on a null target", what, "see why fio's engine null does not run")


def of_event(event: Mapping | None) -> dict[Shape, Ceiling]:
    """The ceilings that a journal's event `ceiling` has; rows that it cannot have written are left out."""
    ceilings = {}
    for row in (event or {}).get("rows") or ():
        try:
            shape = Shape(
                str(row["word"]),
                bool(row["random"]),
                tuple((int(size), int(percent)) for size, percent in row["blocks"]),
                int(row["queue_depth"]),
                int(row["threads"]),
                str(row["engine"]),
                int(row["compressible"]),
                str(row["cpus"]),
            )
            values = float(row["iops"]), float(row["bytes_per_s"])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 0 < values[0] < 1e12:
            ceilings[shape] = Ceiling(shape, *values, bool(row.get("pool")))
    return ceilings


def of_step(ceilings: Mapping[Shape, Ceiling], do: str, keys: Mapping[str, Any]) -> Ceiling | None:
    """The lowest of a step's shapes; None: not all of them were measured. Of a load with parallel reads (`read_qd`)
    none: the two threads together were not measured."""
    wanted = () if "read_qd" in keys else shapes(do, keys)
    known = [ceilings[shape] for shape in wanted if shape in ceilings]
    return min(known, key=lambda one: one.iops) if known and len(known) == len(wanted) else None


def pooled(ceilings: Mapping[Shape, Ceiling], do: str, keys: Mapping[str, Any]) -> bool:
    """Whether a step's writes take their data from a pool."""
    wanted = () if "read_qd" in keys else shapes(do, keys)
    return any(ceilings[shape].pool for shape in wanted if shape in ceilings)


def link_bytes_per_s(speed: str, width: str) -> float | None:
    """What a PCIe link carries at most in one direction: "16.0 GT/s PCIe", "4" -> 7.88e9. None: no such link."""
    number = speed.split(" ")[0]
    try:
        return float(number) * LANE_SHARE.get(number, 128 / 130) * 1e9 / 8 * int(width) or None
    except ValueError:
        return None
