"""How fio does the I/O of a load on a device: its engine, registered buffers, polling, the CPUs of its threads."""

import os
from collections.abc import Mapping
from typing import Any

from ssdrig.base import uring
from ssdrig.base.errors import UsageError


def engine(word: str) -> str:
    """fio's engine. "auto": io_uring where it is allowed, otherwise libaio, which one thread with new data in every
    buffer keeps up with to about a million I/Os a second; "polled": io_uring."""
    if word == "auto":
        return "io_uring" if uring.allowed() else "libaio"
    return "io_uring" if word == "polled" else word


def how(keys: Mapping[str, Any], flight_bytes: int) -> dict[str, Any]:
    """The fields of fiojob.Job that a step's `engine` and `cpus` decide.

    flight_bytes: most bytes in flight, of all threads; with io_uring their buffers are registered if this process may
    lock them.
    Raises UsageError for more threads than CPUs, each on its own."""
    name = engine(keys["engine"])
    cpus = tuple(sorted(os.sched_getaffinity(0))) if keys.get("cpus") == "own" else ()
    if cpus and keys["threads"] > len(cpus):
        do = 'use fewer threads, or cpus = "any"'
        raise UsageError(f"a CPU for each of {keys['threads']} threads", f"{len(cpus)} CPUs", do)
    fixed = name == "io_uring" and 2 * flight_bytes <= _lockable_bytes()
    return {"engine": name, "fixed_buffers": fixed, "polled": keys["engine"] == "polled", "cpus": cpus}


def _lockable_bytes() -> float:
    """How much memory this process may lock; root any amount."""
    import resource  # Windows has none, and reads runs

    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    return float("inf") if os.geteuid() == 0 or limit == resource.RLIM_INFINITY else limit
