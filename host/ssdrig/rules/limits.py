"""What has set the limit of a load, if not the drive: the host that could not ask for more, or a drive that slowed down
because it was hot. Pure; neither changes a figure."""

from collections.abc import Mapping, Sequence

FIO_PERCENT = 85.0  # of a core, taken by each thread of fio: it has no time left to ask for more
CPUS_PERCENT = 95.0  # of a core, or of all of them: busy
REACHED = 0.9  # of the I/Os that should be in flight
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


def host(
    fio_percent: float | None,
    threads: int,
    in_flight: float | None,
    asked: float | None,
    cpus_busy_percent: Sequence[float] = (),
) -> str | None:
    """Why a load was limited by the host, None where nothing says so. `fio_percent`: CPU of all threads of fio, 100 for
    each core; `in_flight`: I/Os by Little's law, `asked`: the queue depth of a closed loop."""
    each = None if fio_percent is None else fio_percent / max(1, threads)
    if each is not None and each >= FIO_PERCENT:
        of = "fio" if threads == 1 else f"each of the {threads} threads of fio"
        return f"{of} took {each:.0f} % of a core"
    if not cpus_busy_percent:
        return None
    mean, most = sum(cpus_busy_percent) / len(cpus_busy_percent), max(cpus_busy_percent)
    if mean >= CPUS_PERCENT:
        return f"all CPUs of the host were {mean:.0f} % busy"
    if asked and in_flight is not None and in_flight < REACHED * asked and most >= CPUS_PERCENT:
        return f"{in_flight:.1f} of {asked:g} I/Os were in flight, and a CPU of the host was {most:.0f} % busy"
    return None


def throttled(before: Mapping, after: Mapping) -> str | None:
    """What a drive has counted of heat between two readings (counters.snapshot); None: nothing, or it does not say."""
    moved = []
    for key, words in HOT.items():
        first, last = before.get(key), after.get(key)
        if first is not None and last is not None and last > first:
            moved.append(f"{words} +{last - first:g}")
    return ", ".join(moved) or None
