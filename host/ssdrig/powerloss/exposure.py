"""What a session put at stake: how many commands and blocks would have shown a fault, had the drive had it. With the
numbers of all cuts, a campaign states which faults it would have found. Pure."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ssdrig.plan.rules import chance
from ssdrig.powerloss.kinds import BLANK, FLUSH, FUA, WRITE

if TYPE_CHECKING:  # it is compiled, and a report wants the rest of this module
    from ssdrig.powerloss.promise import Promise
    from ssdrig.powerloss.verdict import Blocks, Session, Verdict

# kind -> what a fault of it does
KINDS = {
    "flush": "FLUSHes does nothing for the data that only it covers",
    "fua": "writes with FUA is lost",
    "acked": "acknowledged writes is lost",
    "open": "writes under way at the cut spoils a block",
    "rest": "blocks that were not being written is lost",
    "dips": "dips of the supply without a reset damages a block",
}

# key of a campaign -> (the least of it, without which no such fault can show, what such a fault is)
NEEDS = {
    "queues": (2, "a FLUSH that covers the writes of only its own queue (queues is below 2)"),
    "precondition": (1, "a fault while the drive collects garbage (precondition is 0)"),
}


def of(session: "Session", blocks: "Blocks", promise: "Promise", judged: "Verdict") -> dict[str, int]:
    """For a judged cut, by KINDS: the faults that would be seen in the blocks that were read. A FLUSH counts if some
    block shows
    it: no other FLUSH or FUA covers its newest write. So does a write that is the newest of a block. `rest`: blocks
    that no command of the session touched."""
    import numpy as np

    from ssdrig.powerloss import verdict
    from ssdrig.powerloss.promise import ACK

    rows, counted = session.rows, verdict.counts(session)
    block, row = verdict.pairs(rows, blocks.lba)
    changes = rows["kind"][row] != BLANK
    block, row = block[changes], row[changes]
    newest = np.full(len(blocks.lba), -1)
    order = np.argsort(rows["submit_ns"][row], kind="stable")
    newest[block[order]] = row[order]
    shown = np.unique(newest[(newest >= 0) & (newest == judged.durable_row)])
    shown = shown[rows["kind"][shown] == WRITE]
    fua, done_ns = rows["flags"][shown] & FUA > 0, rows["done_ns"][shown]
    flushes = np.sort(rows["submit_ns"][counted & (rows["kind"] == FLUSH)])
    last_ns, before_ns = (flushes[-n] if len(flushes) >= n else verdict.NONE for n in (1, 2))
    is_open = ~counted & (rows["kind"] == WRITE)
    out = {"open": len(np.unique(row[is_open[row]])), "rest": int((newest < 0).sum())}
    if promise.mode == ACK:
        return {"acked": len(shown), **out}
    alone = ~fua & (done_ns <= last_ns) & (done_ns > before_ns)
    return {"flush": int(alone.any()), "fua": int((fua & (done_ns > last_ns)).sum()), **out}


def of_dip(blocks: "Blocks") -> dict[str, int]:
    """For a dip in which the drive kept its power, or was not seen to lose it: one, where blocks were read after it."""
    return {"dips": int(len(blocks.lba) > 0)}


def total(records: Iterable[Mapping]) -> dict[str, dict]:
    """From the records of sessions, {kind: {"n", "rate"}}: a fault that hits a higher share of them would have been
    found with 95 %."""
    out: dict[str, int] = {}
    for record in records:
        exposed = record.get("exposed")
        for kind, n in exposed.items() if isinstance(exposed, Mapping) else ():
            if kind in KINDS and type(n) is int:
                out[kind] = out.get(kind, 0) + n
    return {kind: {"n": n, "rate": chance.upper_bound(0, n)} for kind, n in out.items() if n > 0}
