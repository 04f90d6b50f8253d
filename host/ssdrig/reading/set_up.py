"""What drive and host were set to in a run, of its events `conditions`: the lines that a page shows, and what of it
makes figures worse or hard to compare. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ssdrig.base.words import size, slow_link

# the lines shown, in this order: words, the keys whose values make them up
ROWS = (
    *(("Kernel", ("kernel",)), ("Microcode", ("microcode",)), ("CPU idle driver", ("cpuidle",))),
    *(("CPU frequency governor", ("governor",)), ("Turbo off", ("no_turbo",)), ("Turbo", ("boost",))),
    *(("PCIe ASPM", ("aspm",)), ("SATA ALPM", ("alpm",)), ("PCIe link", ("link.current_link_speed",))),
    *(("PCIe link, most", ("link.max_link_speed",)), ("PCIe lanes, most", ("link.max_link_width",))),
    *(("PCIe lanes", ("link.current_link_width",)), ("NUMA node", ("link.numa_node",))),
    *(("PCIe L1", ("link.l1_aspm",)), ("PCIe L1.2", ("link.l1_2_aspm",))),
    *(("I/O scheduler", ("queue.scheduler",)), ("Requests of the queue", ("queue.nr_requests",))),
    *(("Merges off", ("queue.nomerges",)), ("Completion on", ("queue.rq_affinity",))),
    *(("Write cache", ("queue.write_cache", "nvme.write_cache")), ("FUA", ("queue.fua",))),
    *(
        ("LBA format", ("nvme.lba_format",)),
        ("LBA formats", ("nvme.lba_formats",)),
        ("Logical block", ("queue.logical_block_size",)),
        ("Physical block", ("queue.physical_block_size",)),
    ),
    *(
        ("Host memory buffer", ("nvme.hmb",)),
        ("Data placement", ("nvme.fdp",)),
        ("APST", ("nvme.apst",)),
        ("APST, from to after ms", ("nvme.apst_table",)),
    ),
    *(("APST, most latency the kernel takes, µs", ("apst_max_latency_us",)), ("Power state", ("nvme.power_state",))),
    *(("io_uring off", ("io_uring_disabled",)), ("Load average", ("load_average",))),
)
BUSY_SHARE = 0.5  # of the CPUs: a load average above it, before the run, comes from other processes
LEAST_OTHER_BYTES = 100_000_000  # of other disks in a run before it is reported
MOST_TEXT = 80


class Line(NamedTuple):
    """`after` is "" where it is as before."""

    words: str
    before: str
    after: str


def of(events: Sequence[Mapping]) -> tuple[dict, dict]:
    """The first and the last event `conditions`, {} without one; the first with the `rows` of the event `data`."""
    conditions = [event for event in events if event.get("kind") == "conditions"]
    before = [dict(event) for event in conditions if event.get("when") == "before"]
    after = [dict(event) for event in conditions if event.get("when") == "after"]
    rows = next((event.get("rows") for event in events if event.get("kind") == "data"), None)
    return (before or [{}])[0] | ({"data": rows} if rows else {}), (after or [{}])[-1]


def lines(before: Mapping, after: Mapping) -> list[Line]:
    """The known conditions, in the order of ROWS, mitigations as a count; then those that changed on their own."""
    one, two = before.get("found") or {}, after.get("found") or {}
    out = []
    for words, keys in ROWS:
        pair = [_together(conditions, keys) for conditions in (one, two)]
        if any(pair):
            out.append(Line(words, pair[0] or "–", pair[1] if two and pair[1] != pair[0] else ""))
    mitigated = [str(value) for key, value in one.items() if key.startswith("vulnerability.")]
    if mitigated:
        on = sum(value.startswith("Mitigation") for value in mitigated)
        out.append(Line("CPU mitigations", f"{on} of {len(mitigated)} vulnerabilities", ""))
    out += _of_data(before.get("data"))
    if moved := other_bytes(one, two):
        out.append(Line("I/O of other disks in the run", f"{size(moved[0])} read, {size(moved[1])} written", ""))
    return out


def _of_data(rows) -> list[Line]:
    """How far the data that fio wrote can be compressed and deduplicated."""
    out = []
    for row in rows if isinstance(rows, list) else []:
        known = row if isinstance(row, Mapping) else {}
        left, distinct, share = (
            _number(known.get(key)) for key in ("compressed_percent", "distinct_percent", "compressible")
        )
        if left is not None and distinct is not None:
            name = "Written data" + (f", {share:g} % compressible" if share else "")
            name += ", from a pool" if known.get("pool") else ""
            out.append(Line(name, f"zlib leaves {left:g} %; {distinct:g} % of its 4 KiB blocks differ", ""))
    return out


def other_bytes(one: Mapping, two: Mapping) -> tuple[int, int] | None:
    """What all other disks read and wrote between the two readings."""
    keys = ("other_disks_read_bytes", "other_disks_written_bytes")
    if any(conditions.get(key) is None for conditions in (one, two) for key in keys):
        return None
    read, written = (max(0, int(two[key]) - int(one[key])) for key in keys)
    return read, written


def wrong(before: Mapping, after: Mapping, cpus: int | None, simulated: bool, link: str = "") -> list[str]:
    """The conditions under which others could not repeat the figures, each with its effect. `link`: Drive.link."""
    one, two = before.get("found") or {}, after.get("found") or {}
    slow = slow_link(link)
    out = [slow] if slow else []
    out += [
        f"{key}: {_text(was)} before the run, {_text(now)} after it"
        for key, (was, now) in (after.get("changed") or {}).items()
    ]
    governors = str(one.get("governor") or "performance").split()
    if governors != ["performance"]:
        out.append(f"governor {' '.join(governors)}: latencies at low queue depths hold what a CPU takes to speed up")
    scheduler = _chosen(str(one.get("queue.scheduler") or "none"))
    if scheduler != "none":
        out.append(f"I/O scheduler {scheduler}: it orders and merges what the drive is given")
    if str(one.get("queue.rotational") or "0") == "1" and not simulated:
        out.append("the kernel takes the drive for a rotating one")
    if str(one.get("apst_max_latency_us")) == "0":
        out.append("the kernel keeps the drive from going to sleep (default_ps_max_latency_us = 0)")
    load = _number(one.get("load_average"))
    if load is not None and cpus and load > BUSY_SHARE * cpus:
        out.append(f"load average {load:g} on {cpus} CPUs before the run: others used the host")
    moved = other_bytes(one, two)
    if moved and sum(moved) > LEAST_OTHER_BYTES:
        out.append(f"other disks of the host moved {size(sum(moved))} in the run")
    return out


def unknown(before: Mapping) -> list[str]:
    """ "nvme.apst: the program nvme was not found"."""
    return [f"{key}: {why}" for key, why in (before.get("unknown") or {}).items()]


def _together(conditions: Mapping, keys: Sequence[str]) -> str:
    """The values of these keys, each once; "" where none is known."""
    return " ".join(dict.fromkeys(_text(conditions[key]) for key in keys if conditions.get(key) not in (None, "")))


def _text(value) -> str:
    if isinstance(value, list):
        value = ", ".join(" ".join(map(str, row)) if isinstance(row, list) else str(row) for row in value) or "none"
    words = str(value)
    return words if len(words) <= MOST_TEXT else f"{words[: MOST_TEXT - 1]}…"


def _chosen(text: str) -> str:
    """ "mq-deadline [none]" -> "none"."""
    return text.partition("[")[2].partition("]")[0] or text


def _number(value) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
