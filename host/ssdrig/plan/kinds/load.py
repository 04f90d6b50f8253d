"""load: I/O against the drive for a time, an amount, a number of bursts, or until a rule holds."""

from ssdrig.plan.kinds.keys import CPUS, ENGINE, RANGE, SMART, Key

KEYS = {
    "pattern": Key("word", required=True, words=("random", "sequential")),
    "read": Key("percent", required=True),
    "block": Key("blocks", required=True),
    "qd": Key("count", 1),
    "threads": Key("count", 1),
    "range": RANGE,
    "offset": Key("place"),
    "hot": Key("hot"),
    "compressible": Key("percent", 0),
    "zones": Key("count", needs="zoned"),
    "handle": Key("index", needs="fdp"),
    "handles": Key("word", words=("hot",), needs="fdp"),
    "rate": Key("rate"),
    "every": Key("time"),
    "read_qd": Key("count"),
    "arrival": Key("word", "even", words=("even", "poisson")),
    "sync": Key("word", "none", words=("none", "each", "flush")),
    "on": Key("time"),
    "off": Key("time"),
    "cycles": Key("count"),
    "time": Key("time"),
    "amount": Key("amount"),
    "until": Key("until"),
    "over": Key("over"),
    "resume": Key("word", words=("restart", "plan", "continue")),
    "smart": SMART,
    "detail": Key("word", words=("second", "minute", "none", "fine")),
    "windows": Key("windows"),
    "judge": Key("judge"),
    "engine": ENGINE,
    "cpus": CPUS,
}
ENDS = ("time", "amount", "cycles", "until")  # exactly one of these


def job(act, target: str, seed: int, dilation: int, interface: str):
    """fio's job of a load."""
    from ssdrig.load.engine import how
    from ssdrig.load.fiojob import Job

    keys = act.keys
    random, read, blocks = keys["pattern"] == "random", keys["read"], keys["block"]
    word = {100: "read", 0: "write"}.get(read, "rw")
    time_s = longest_s(act)
    most_bytes = most_written_bytes(act, interface)
    return Job(
        name=act.path.rpartition("/")[2],
        rw=("rand" if random else "") + word,
        block_bytes=min(size for size, _ in blocks),
        blocks=blocks if len(blocks) > 1 else (),
        queue_depth=keys["qd"],
        threads=keys["threads"],
        size_bytes=act.range_bytes - keys.get("offset", 0),
        offset=keys.get("offset", 0),
        time_s=time_s * dilation if time_s else None,
        io_size=act.amount_bytes,
        burst_s=keys.get("on", 0.0) * dilation if keys.get("off") else 0.0,
        pause_s=keys.get("off", 0.0) * dilation,
        # fio counts reads and writes together; writes with parallel reads have a rate, which bounds them
        most_bytes=int(most_bytes / (1 - read / 100)) if most_bytes and "read_qd" not in keys else None,
        read_percent=read,
        zones=keys.get("hot", ()),
        rate_iops=keys["rate"] / dilation if "rate" in keys else None,
        poisson=keys["arrival"] == "poisson",
        sync=keys["sync"],
        every_s=keys.get("every", 0.0) * dilation,
        read_qd=keys.get("read_qd"),
        compressible=keys["compressible"],
        open_zones=keys.get("zones"),
        handles=handles(keys),
        **how(keys, keys["threads"] * keys["qd"] * max(size for size, _ in blocks)),
        detail=keys.get("detail", "minute" if {"read_qd", "every"} & set(keys) else None),
        seed=seed,
        target=target,
    )


def handles(keys) -> tuple[int, ...]:
    """The placement handles that it writes by: one for all writes, or one for each hot zone; () by none."""
    if "handles" in keys:
        return tuple(range(len(keys["hot"])))
    return (keys["handle"],) if "handle" in keys else ()


def reads(keys) -> bool:
    """Whether it reads, alone or in parallel with its writes."""
    return keys["read"] > 0 or "read_qd" in keys


def most_ios(keys) -> int | None:
    """After how many I/Os the load ends; None: no number of them ends it."""
    return next((entry.ios for entry in keys.get("until", ()) if entry.ios), None)


def begins_s(keys) -> float:
    """Seconds of drive time from which figures describe the load: after fio's first, long burst."""
    from ssdrig.load.fiojob import first_burst_s

    return first_burst_s(keys.get("on", 0.0), keys.get("off", 0.0))


def busy_share(act) -> float:
    """Share of the load's time in which it does I/O: below 1 with pauses."""
    keys = act.keys
    if "cycles" not in keys:
        return 1.0
    return (begins_s(keys) + keys["cycles"] * keys["on"]) / (longest_s(act) or 1.0)


def longest_s(act) -> float | None:
    """Seconds of drive time after which the load ends at the latest; None: an amount ends it."""
    keys = act.keys
    if "time" in keys:
        return keys["time"]
    if "cycles" in keys:
        return begins_s(keys) + keys["cycles"] * (keys["on"] + keys.get("off", 0.0))
    if "until" in keys:
        return min((entry.time_s for entry in keys["until"] if entry.time_s), default=LONGEST_S)
    return None


def most_written_bytes(act, interface: str) -> int | None:
    """The most that a load may write, where a time ends it; it is ended there. None: an amount ends it."""
    from ssdrig.plan.kinds import speeds

    keys, time_s = act.keys, longest_s(act)
    if time_s is None:
        return None
    if "rate" in keys:  # a second more, for the excess of a Poisson process over its mean
        mean_bytes = sum(size * percent for size, percent in keys["block"]) / 100
        return round(keys["rate"] * (1 - keys["read"] / 100) * mean_bytes * (time_s + 1))
    small = keys["pattern"] == "random" and all(size <= speeds.SMALL_BYTES for size, _ in keys["block"])
    return speeds.most_written_bytes(time_s, interface, keys["read"], small)


LONGEST_S = 6 * 3600.0  # of a load that a rule ends and that names no time
