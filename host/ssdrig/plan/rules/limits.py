"""Limits of a load other than the drive: a host too busy to issue more, or a drive that throttled because it was hot.
Pure; neither changes a figure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

FIO_PERCENT = 85.0  # of a core, taken by each thread of fio: it has no time left to ask for more
CPUS_PERCENT = 95.0  # of a core, or of all of them: busy
LEFT_PERCENT = 10.0  # of a core, left by threads that spin: less is not known
CEILING_PERCENT = 80.0  # of what fio reaches on a null target with the same shape of load
REACHED = 0.9  # of the I/Os that should be in flight
STEAL_PERCENT = 5.0  # of CPU time, which a hypervisor gave to others
MEMORY_PERCENT = 5.0  # of the time, in which a process waited for memory
WAITED_PERCENT = 50.0  # of the time, in which a process waited for a CPU, where the drive is SIMULATED: alone, 10 to 20
# by which a SIMULATED drive answered late in the mean, whichever is more: of the model's service time, and in µs. Alone
# on two cores it is 0.4 to 0.8 % of deep queues and at most 8 µs; with sixteen busy loops, 40 to 250 %
LATE_PERCENT, LATE_US = 5.0, 10.0
# what a drive counts when it is too hot, in words (NVM Express Base Specification, log 02h; OCP log C0h; Intel EAh, of
# NVMe and SATA drives; Phison attribute 207; ACS-4 device statistics, page 5). SCSI log pages count nothing of it.
HOT = {
    "warning_temp_min": "minutes above its warning or highest specified temperature",
    "critical_temp_min": "minutes above its critical temperature",
    "throttle_1_count": "light throttling",
    "throttle_2_count": "heavy throttling",
    "throttle_1_s": "seconds of light throttling",
    "throttle_2_s": "seconds of heavy throttling",
    "throttle_count": "throttling events",
}


class Load(NamedTuple):
    """How near the host was to one of its limits, in percent; `words` describes an exceeded one."""

    value: float
    limit: float
    words: str
    beyond: bool


def loads(
    fio_percent: float | None,
    threads: int,
    in_flight: float | None,
    asked: float | None,
    counted: Mapping,
    spins: bool = False,
) -> list[Load]:
    """The host's utilisation during a load. `fio_percent`: CPU of all threads of fio, 100 for each core;
    `in_flight`: I/Os by Little's law, `asked`: the queue depth of a closed loop; `counted`: the journal's event
    `witness`, {} without one; `spins`: fio takes a CPU for each thread while it waits."""
    out = []
    if fio_percent is not None and not spins:
        percent = fio_percent / max(1, threads)
        of = "fio" if threads == 1 else f"each of the {threads} threads of fio"
        out.append(Load(percent, FIO_PERCENT, f"{of} took {percent:.0f} % of a core", percent >= FIO_PERCENT))
    cpus = [cpu for percent in _list(counted.get("cpus_busy_percent")) if (cpu := number(percent)) is not None]
    if cpus:
        mean, most = sum(cpus) / len(cpus), max(cpus)
        words = f"all CPUs of the host were {mean:.0f} % busy"
        if spins:
            spun = min(fio_percent or 0.0, 100.0 * len(cpus))
            left = 100.0 * len(cpus) - spun
            mean = 100 * max(0.0, sum(cpus) - spun) / left if left >= LEFT_PERCENT else 0.0
            words = f"what fio left of the host's CPUs was {mean:.0f} % busy"
        out.append(Load(mean, CPUS_PERCENT, words, mean >= CPUS_PERCENT))
        if asked and in_flight is not None and in_flight < REACHED * asked and most >= CPUS_PERCENT:
            words = f"{in_flight:.1f} of {asked:g} I/Os were in flight, and a CPU of the host was {most:.0f} % busy"
            out.append(Load(most, CPUS_PERCENT, words, True))
    if (stolen := number(counted.get("steal_percent"))) is not None:
        words = f"the hypervisor gave {stolen:.0f} % of the CPU time to others"
        out.append(Load(stolen, STEAL_PERCENT, words, stolen > STEAL_PERCENT))
    waited = counted.get("waited_percent")
    answers = counted.get("answers")
    if isinstance(answers, Mapping):
        out += _simulated(answers, waited.get("cpu") if isinstance(waited, Mapping) else None)
    if isinstance(waited, Mapping) and (memory := number(waited.get("memory"))) is not None:
        words = f"processes waited for memory in {memory:.0f} % of the time"
        out.append(Load(memory, MEMORY_PERCENT, words, memory > MEMORY_PERCENT))
    return out


def _simulated(answers: Mapping, waited) -> list[Load]:
    """The limits with a SIMULATED drive, which runs on the host's CPUs as its sensor does: the delay of its answers,
    and whether processes got a CPU."""
    out = []
    late_us, service_us = number(answers.get("late_us")), number(answers.get("service_us"))
    if late_us is not None and service_us:
        percent, limit = 100 * late_us / service_us, max(LATE_PERCENT, 100 * LATE_US / service_us)
        words = f"the SIMULATED drive answered {late_us:.0f} µs late in the mean, {percent:.0f} % of its service time"
        out.append(Load(percent, limit, words, percent > limit))
    if (percent := number(waited)) is not None:
        words = f"processes waited for a CPU in {percent:.0f} % of the time, the SIMULATED drive among them"
        out.append(Load(percent, WAITED_PERCENT, words, percent > WAITED_PERCENT))
    return out


def of_ceiling(iops: float, ceiling_iops: float) -> Load:
    """How near a load was to what the load generator reaches on a null target. Both in I/Os per second of the host."""
    percent = 100 * iops / ceiling_iops
    words = f"the load ran at {percent:.0f} % of the {ceiling_iops:.0f} IOPS that fio reaches on a null target"
    return Load(percent, CEILING_PERCENT, words, percent > CEILING_PERCENT)


def host(*arguments) -> str | None:
    """Why a load was limited by the host, or None. Arguments as of loads()."""
    return next((load.words for load in loads(*arguments) if load.beyond), None)


def _list(value) -> list:
    return value if isinstance(value, list) else []


def number(value) -> float | None:
    """A number of the journal, which may hold anything."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if good else None


def throttled(before: Mapping, after: Mapping) -> str | None:
    """The drive's thermal counts between two readings (counters.snapshot); None: none, or not reported."""
    moved = []
    for key, words in HOT.items():
        first, last = before.get(key), after.get(key)
        if first is not None and last is not None and last > first:
            moved.append(f"{words} +{last - first:g}")
    return ", ".join(moved) or None


def cold_s(readings: Sequence[tuple[float, Mapping]]) -> float | None:
    """Until when a drive is known not to have slowed down because of heat, by the first of its readings that counts
    that. None: none does. `readings`: (s since the load began, counters.snapshot), by time, the first before it."""
    for (at_s, _), (_, after) in zip(readings, readings[1:], strict=False):
        if throttled(readings[0][1], after):
            return at_s
    return None
