"""The load generator against fio alone and against memory copies, in one run; and whether host-limited is right."""

import json
import subprocess
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from selfcheck import Figure, at_least, at_most
from ssdrig.load import ceiling, engine
from ssdrig.plan.rules import limits
from ssdrig.reading import witness

STREAM = ceiling.Shape("write", False, ((128 << 10, 100),), 32, 2)
SMALL = ceiling.Shape("write", True, ((4096, 100),), 32, 2)
FASTEST_LINK = 1e15  # bytes a second: no host fills it, so writes take their data from the pool
STREAM_GBPS, SMALL_IOPS, OF_COPIES = 14.0, 1e6, 0.95
COPIED_BYTES = 64 << 20  # in each thread: past the second level of cache
COPY_S = 0.5
TRIES = 3  # of which the best counts: what else runs on the machine only slows them
CASES = 10
FREE_SHARE = 0.5  # of its ceiling, for a load that the host does not limit


def speed() -> list[Figure]:
    """Each with two threads, as are the copies: sequential writes of 128 KiB against fio's engine null, random ones of
    4 KiB against /dev/zero with the engine that a plan uses."""
    ours = [ceiling.measure([STREAM, SMALL], False, FASTEST_LINK) for _ in range(TRIES)]
    fresh = [ceiling.measure([STREAM, SMALL], False) for _ in range(TRIES)]
    stream, small = (max(values) for values in zip(*((a.bytes_per_s / 1e9, b.iops) for a, b in ours), strict=True))
    fresh_GBps = max(a.bytes_per_s / 1e9 for a, _ in fresh)
    alone = max(_alone(["--ioengine=null", "--rw=write", "--bs=128k"])["bw_bytes"] for _ in range(TRIES)) / 1e9
    calls = [f"--ioengine={engine.engine('auto')}", "--filename=/dev/zero", "--rw=randwrite", "--bs=4k"]
    iops = max(_alone(calls)["iops"] for _ in range(TRIES))
    copied = max(_copies() for _ in range(TRIES)) / 1e9
    compared = "for comparison"
    return [
        at_least("128 KiB sequential writes, data from the pool", stream, "GB/s", min(STREAM_GBPS, OF_COPIES * copied)),
        Figure("the same by fio alone, its own defaults", alone, "GB/s", compared, True),
        Figure("the same with new data for each write", fresh_GBps, "GB/s", compared, True),
        Figure("memory copies by two threads", copied, "GB/s", compared, True),
        at_least(
            "4 KiB random writes, data from the pool", small, "I/O/s", min(SMALL_IOPS, OF_COPIES * copied * 1e9 / 4096)
        ),
        Figure("the same by fio alone, its own defaults", iops, "I/O/s", compared, True),
        Figure("the same with new data for each write", max(b.iops for _, b in fresh), "I/O/s", compared, True),
    ]


def limited() -> list[Figure]:
    """Loads as fast as fio goes are limited by it; those of half its ceiling are not. The ceiling is measured once, as
    in a run. A load that the hypervisor slowed does not reach it, and its threads still have no time left."""
    missed, wrong, below = 0, 0, 0
    for _ in range(CASES):
        for shape in (STREAM, SMALL):
            own = ceiling.measure([shape], False, FASTEST_LINK)[0]
            job = replace(ceiling.job(shape, False, own.pool), name="load", time_s=0.5)
            fast, slow = ceiling.speeds([job, replace(job, rate_iops=FREE_SHARE * own.iops)])
            below += not limits.of_ceiling(fast.iops, own.iops).beyond
            missed += not _called(fast, own)
            wrong += _called(slow, own, FREE_SHARE * own.iops)
    return [
        at_most(f"of {2 * CASES} loads at their ceiling, not called host-limited", missed, "loads", 0),
        Figure("of these, not called by the ceiling alone", below, "loads", "for comparison", True),
        at_most(f"of {2 * CASES} loads at half of it, called host-limited", wrong, "loads", 0),
    ]


def _called(speed: ceiling.Speed, own: ceiling.Ceiling, rate_iops: float = 0.0) -> bool:
    """By what a run looks at (reading/witness.py)."""
    threads = own.shape.threads
    asked = {"threads": threads, "paced": bool(rate_iops), "rate": rate_iops or None}
    totals = {"ios": speed.iops, "lat_sum_ns": None, "runtime_ms": 1000, "cpu_percent": speed.cpu_percent * threads}
    data: Any = SimpleNamespace(totals=totals, load_s=1.0, k=1, asked=asked.get)
    return any(load.beyond for load in witness.host(data, None, ceiling_iops=own.iops))


def _alone(options: list[str]) -> dict:
    """fio's own figures of two threads at queue depth 32, with its defaults for everything else."""
    shape = ["--name=alone", "--thread", "--numjobs=2", "--iodepth=32", "--size=1g", "--time_based", "--runtime=500ms"]
    argv = ["fio", *shape, "--group_reporting", "--norandommap", "--output-format=json", *options]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    return json.loads(text[text.index("{") :])["jobs"][0]["write"]


def _copies() -> float:
    """Bytes a second that two threads copy."""
    buffers = [(np.ones(COPIED_BYTES, np.uint8), np.ones(COPIED_BYTES, np.uint8)) for _ in range(2)]
    moved, until = [0, 0], time.monotonic() + COPY_S

    def copy(thread: int) -> None:
        target, source = buffers[thread]
        while time.monotonic() < until:
            np.copyto(target, source)
            moved[thread] += COPIED_BYTES

    threads = [threading.Thread(target=copy, args=(one,)) for one in range(2)]
    begun = time.monotonic()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return sum(moved) / (time.monotonic() - begun)


BENCHES = {
    "generator": ("the load generator against fio alone and memory copies on this host", speed),
    "generator-limited": ("loads at their ceiling are called host-limited, others are not", limited),
}
