"""wear: write in slices until the drive is worn (plan/rules/worn.py), with sample blocks that are read back
(plan/rules/stamps.py).

Bytes are counted, not slices: an interrupted run resumes within the slice, with the rest of it."""

from ssdrig.plan.kinds.keys import ENGINE, RANGE, Key

KEYS = {
    "block": Key("blocks", required=True),
    "qd": Key("count", 1),
    "threads": Key("count", 1),
    "range": RANGE,
    "hot": Key("hot"),
    "compressible": Key("percent", 0),
    "slice": Key("wear", "0.1 %"),
    "total": Key("wear", "100 %"),
    "to": Key("percent", 100),
    "samples": Key("range", "0.1 %"),
    "engine": ENGINE,
}


def layout(act, key: int):
    """Where the sample blocks of the act lie."""
    from ssdrig.plan.rules import stamps

    return stamps.layout(act.range_bytes, act.keys["samples_bytes"], key)


def job(act, target: str, seed: int, dilation: int = 1, interface: str = "", size_bytes: int | None = None, number=1):
    """fio's job of a slice of size_bytes (None: a whole one)."""
    from ssdrig.load.engine import how
    from ssdrig.load.fiojob import Job

    keys = act.keys
    blocks = keys["block"]
    return Job(
        name=f"s{number:04}",
        rw="randwrite",
        block_bytes=min(size for size, _ in blocks),
        blocks=blocks if len(blocks) > 1 else (),
        queue_depth=keys["qd"],
        threads=keys["threads"],
        size_bytes=layout(act, 0).begin,
        io_size=size_bytes or keys["slice_bytes"],
        zones=keys.get("hot", ()),
        compressible=keys["compressible"],
        **how(keys, keys["threads"] * keys["qd"] * max(size for size, _ in blocks)),
        detail="none",
        seed=seed,
        target=target,
    )


def smallest_bytes(act) -> int:
    """The least that a job of fio writes: the largest block in each thread."""
    return act.keys["threads"] * max(size for size, _ in act.keys["block"])
