"""fill: write the range sequentially: once, or until `amount` is written."""

from ssdrig.plan.kinds.keys import CPUS, ENGINE, RANGE, Key

KEYS = {
    "range": RANGE,
    "amount": Key("amount"),
    "block": Key("block", "128 KiB"),
    "qd": Key("count", 32),
    "threads": Key("count", 1),
    "compressible": Key("percent", 0),
    "zones": Key("count", needs="zoned"),
    "engine": ENGINE,
    "cpus": CPUS,
}


def job(act, target: str, seed: int, dilation: int = 1):
    """fio's job of a fill."""
    from ssdrig.load.engine import how
    from ssdrig.load.fiojob import Job

    keys = act.keys
    return Job(
        name=act.path.rpartition("/")[2],
        rw="write",
        block_bytes=keys["block"],
        queue_depth=keys["qd"],
        threads=keys["threads"],
        size_bytes=act.range_bytes,
        io_size=act.amount_bytes if act.amount_bytes != act.range_bytes else None,
        compressible=keys["compressible"],
        open_zones=keys.get("zones"),
        **how(keys, keys["threads"] * keys["qd"] * keys["block"]),
        seed=seed,
        target=target,
    )
