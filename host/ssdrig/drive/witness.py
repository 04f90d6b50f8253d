"""What the kernel counts while a load goes on: the drive's I/O, the time of the host's CPUs, and how long processes
wanted a CPU or memory in vain. It knows nothing of fio, so the two can be held against each other
(reading/witness.py).

Sources: Documentation/block/stat.rst of the Linux kernel (a sector is 512 bytes whatever the drive's are; ticks are
the milliseconds that requests waited, summed over the requests; all count when a request completes), block/genhd.c
(part_stat_show prints them as 32 bits), sysfs-block (diskseq: each disk that comes has the next), proc_stat(5),
Documentation/accounting/psi.rst ("some": at least one task waits; total in us), Documentation/scheduler/sched-stats.rst
(/proc/PID/task/TID/schedstat), proc_pid_stat(5) (field 22: when the process began)."""

import itertools
import mmap
import os
import re
import time
from typing import Any

from ssdrig.base.system import MS_WRAP
from ssdrig.drive import sysfs

SECTOR_BYTES = 512
FEWEST_FIELDS = 11  # of stat; later kernels append discards and flushes
NO_DEVICE = "the drive is served in user space: not a kernel block device, so the kernel has no counters for it"
PASSED_BY = "writes by placement handle do not pass the kernel's block layer, which has the counters"
NO_STAT = "the kernel has no counts of {name}"
WENT_BACK = "the kernel's counters restarted: the device disappeared and came back"
NOW = 1 << 62  # of bench.Bench.witness: of no second but the present one
NUMBER = re.compile(r"\d{1,20}", re.ASCII)
CPU_TIMES = 8  # of a line of /proc/stat: user to steal; the guests' after them are part of user
IDLE, IOWAIT, STEAL = 3, 4, 7
SCHEDSTAT = 3  # numbers of a thread's schedstat: ns on a CPU, ns waiting for one, time slices
BEGAN = 19  # of the fields of /proc/PID/stat after the name, which may hold anything
PRESSURES = ("cpu", "memory")  # of /proc/pressure
PAGE_BYTES = mmap.PAGESIZE  # the least that a segment of a request holds


def read(name: str | None, root: str | os.PathLike = "/") -> dict:
    """The counts of now: "name"; "seq", the kernel's serial number of the disk's appearance, None before Linux
    5.15; "stat", the numbers of /sys/block/NAME/stat, or None; "split_bytes", largest I/O that is one request wherever
    its pages are in memory; "cpus", {"cpu0": (busy, all) in ticks}; "stolen", ticks of all CPUs that a
    hypervisor gave to others; "waited_s", {"cpu", "memory": see waited_s()}; "t_ns". `name` None: a drive that is not a
    block device."""
    folder = sysfs.within(root, "/sys/block", name or "-")
    words = sysfs.text(folder, "stat").split()
    whole = len(words) >= FEWEST_FIELDS and all(map(NUMBER.fullmatch, words))
    sectors_kb, segments = (sysfs.number(folder, "queue", key) for key in ("max_sectors_kb", "max_segments"))
    bounds = [(sectors_kb or 0) * 1024, (segments or 0) * PAGE_BYTES]
    cpus = _cpus(sysfs.lines(sysfs.within(root, "/proc/stat")))
    return {
        "name": name,
        "seq": sysfs.number(folder, "diskseq"),
        "stat": [int(word) for word in words] if whole else None,
        "split_bytes": min(filter(None, bounds), default=None),
        "cpus": {name: times[:2] for name, times in cpus.items()},
        "stolen": sum(stolen for *_, stolen in cpus.values()),
        "waited_s": {of: waited_s(root, of) for of in PRESSURES},
        "t_ns": time.monotonic_ns(),
    }


def waited_s(root: str | os.PathLike = "/", of: str = "cpu") -> float | None:
    """For how long, since the host's start, a process that could run had to wait for a CPU, or for `memory`; None: not
    known."""
    for line in sysfs.lines(sysfs.within(root, f"/proc/pressure/{of}")):
        share, _, total = line.partition(" total=")
        if share.startswith("some ") and NUMBER.fullmatch(total):
            return int(total) / 1e6
    return None


def process_waited_s(pid: int | str = "self", root: str | os.PathLike = "/") -> float | None:
    """The time for which the threads of a process could run and had no CPU, summed over those that there are, since
    each began; None: not known. What one of them holds, another may wait for, so the sum is the longest that all this
    can delay the process."""
    folder, total_ns = sysfs.within(root, f"/proc/{pid}/task"), 0
    threads = [words for tid in sysfs.listing(folder) if (words := sysfs.text(folder, tid, "schedstat").split())]
    for words in threads:
        if len(words) != SCHEDSTAT or not all(map(NUMBER.fullmatch, words)):
            return None
        total_ns += int(words[1])
    return total_ns / 1e9 if threads else None


def began_ticks(pid: int, root: str | os.PathLike = "/") -> int | None:
    """When a process began, in clock ticks since the host's start, so that another one with its number is told from
    it; None: there is none."""
    words = sysfs.text(sysfs.within(root, f"/proc/{pid}"), "stat").rpartition(")")[2].split()
    return int(words[BEGAN]) if len(words) > BEGAN and NUMBER.fullmatch(words[BEGAN]) else None


def between(before: dict, after: dict) -> dict:
    """The counts between two readings: {"drive": {"reads", "writes", "read_merges", "write_merges",
    "read_bytes", "written_bytes", "wait_ms", "split_bytes"} or None, "why" it is None, "cpus_busy_percent": of each
    CPU, in the order of /proc/stat, "steal_percent": of all CPU time, "waited_percent": {"cpu", "memory": of the time
    between, in which a process waited for it}, None where it is not known}."""
    counts: dict[str, Any] = {"drive": None, "why": None} | host(before, after)
    if after["name"] is None:
        return counts | {"why": NO_DEVICE}
    if before["stat"] is None or after["stat"] is None:
        return counts | {"why": NO_STAT.format(name=after["name"])}
    more = [b - a for a, b in zip(before["stat"], after["stat"], strict=False)]
    reads, read_merges, read_sectors, read_ms, writes, write_merges, write_sectors, write_ms = more[:8]
    came_again = None not in (before["seq"], after["seq"]) and before["seq"] != after["seq"]
    if came_again or min(reads, read_merges, read_sectors, writes, write_merges, write_sectors) < 0:
        return counts | {"why": WENT_BACK}
    drive = {
        "reads": reads,
        "writes": writes,
        "read_merges": read_merges,
        "write_merges": write_merges,
        "read_bytes": read_sectors * SECTOR_BYTES,
        "written_bytes": write_sectors * SECTOR_BYTES,
        "wait_ms": read_ms % MS_WRAP + write_ms % MS_WRAP,
        "split_bytes": after["split_bytes"],
    }
    return counts | {"drive": drive}


def host(before: dict, after: dict) -> dict[str, Any]:
    """The host's part: "cpus_busy_percent", "steal_percent" and "waited_percent" of between(), and of a SIMULATED
    drive "answers": {"answers", "late_us" and "service_us" of each in the mean, "seconds": the same three of each
    second, of more than one}."""
    busy_percent, ticks = [], 0
    for cpu, (busy, until) in after["cpus"].items():
        busy_before, since = before["cpus"].get(cpu, (busy, until))
        if until > since:
            busy_percent.append(round(100 * (busy - busy_before) / (until - since), 1))
            ticks += until - since
    lasted_s, waited = (after["t_ns"] - before["t_ns"]) / 1e9, {}
    for of, until_s in after["waited_s"].items():
        since_s = before["waited_s"][of]
        known = since_s is not None and until_s is not None and lasted_s > 0
        waited[of] = round(100 * min(1.0, max(0.0, (until_s - since_s) / lasted_s)), 1) if known else None
    stolen = max(0, after["stolen"] - before["stolen"])
    shares = {
        "cpus_busy_percent": busy_percent,
        "steal_percent": round(100 * stolen / ticks, 1) if ticks else None,
        "waited_percent": waited,
    }
    return shares | ({"answers": _answers(before, after)} if "pace" in after else {})


def _answers(before: dict, after: dict) -> dict | None:
    """The counts of virtual/device/device.py between two readings; None if the drive has none."""
    first, last = before.get("pace"), after["pace"]
    if not first or not last:
        return None
    rows = [first["rows"][-1], *last["rows"]]
    answers = dict(zip(("answers", "late_us", "service_us"), _late(rows[0], rows[-1]), strict=True))
    by_second = [_late(*pair) for pair in itertools.pairwise(rows)]
    return answers | ({"seconds": by_second} if len(by_second) > 1 else {})


def _late(before: list[int], after: list[int]) -> list:
    answers = after[1] - before[1]
    return [answers, *(round((after[at] - before[at]) / 1000 / max(1, answers), 1) for at in (2, 3))]


def _cpus(lines: list[str]) -> dict[str, tuple[int, int, int]]:
    """(busy, all, stolen) of each CPU."""
    rows_of_seconds = {}
    for line in lines:
        name, *words = line.split() or [""]
        if name.startswith("cpu") and name != "cpu" and len(words) > IOWAIT and all(map(NUMBER.fullmatch, words)):
            times = [int(word) for word in words[:CPU_TIMES]]
            stolen = times[STEAL] if len(times) > STEAL else 0
            rows_of_seconds[name] = (sum(times) - times[IDLE] - times[IOWAIT], sum(times), stolen)
    return rows_of_seconds
