"""What a session came to: its blocks judged, the drive looked at, and the flat record of both. Pure but for what it is
given to read blocks with."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ssdrig.powerloss import aim, findings, health, picture, schedule, verdict
from ssdrig.powerloss.cycle import Lived
from ssdrig.powerloss.history import FLUSH, NEVER, WRITE
from ssdrig.powerloss.promise import ACK, Promise
from ssdrig.powerloss.proof import proof
from ssdrig.powerloss.schedule import Cut
from ssdrig.powerloss.sessions import MOST_PROOFS
from ssdrig.powerloss.supply import BACK_BY_ITSELF
from ssdrig.powerloss.verdict import Blocks, Session, Verdict

NO_FALL = "the power was not taken by the rig: nothing was recorded of the fall"


class Judged(NamedTuple):
    """`record`: flat, as the journal keeps it; `harness`: why a control session failed, "" where it did not; `picture`:
    what a page shows of it."""

    record: dict[str, Any]
    verdict: Verdict
    proofs: list[dict]
    harness: str
    picture: dict[str, Any]


def judge(
    cut: Cut,
    lived: Lived,
    blocks: Blocks,
    verify_ns: int,
    promise: Promise,
    queues_deleted: bool,
    before: health.State,
    after: health.State,
    usual_s: float | None,
    fall: Mapping | None,
    block: Callable[[int], bytes | None],
) -> Judged:
    """The verdict on a session and on the drive after it. `before`, `after`: what the drive said of itself around it;
    `block`: one as it is now."""
    outcome = lived.outcome
    cut_ns = outcome.fired_ns if outcome else lived.ended_ns
    if cut.control or outcome is None:  # all had ended before
        cut_ns = lived.settled_ns or lived.ended_ns
    on_ns = outcome.on_ns if outcome and not cut.control else NEVER
    session = Session(lived.rows, cut_ns, on_ns, lived.settled_ns, verify_ns, (), queues_deleted)
    held = promise._replace(mode=ACK) if cut.control == schedule.NO_CUT else promise
    found = verdict.judge(session, blocks, held)
    harness = ""
    if cut.control == schedule.ANNOUNCED and not len(found.failed()):  # what it promises is kept: was it told?
        held = promise._replace(mode=ACK)
        found = verdict.judge(session, blocks, held)
    why_not = found.why_not or _no_cut(cut, lived, before, after)
    names = {findings.NAMES[n]: int(count) for n, count in enumerate(np.bincount(found.finding)) if n and count}
    if cut.control and len(found.failed()) and held.mode != promise.mode or cut.control == schedule.NO_CUT and names:
        words = ", ".join(f"{name} on {count} blocks" for name, count in names.items())
        harness = f"{'no power was cut' if cut.control == schedule.NO_CUT else 'the cut was announced'}, yet {words}"
    said = []
    if not why_not:
        cycles, unsafe = _expected(cut, lived, before, after)
        said = health.judge(before, after, unsafe, cycles, usual_s, None, lived.tries)
        if cut.control == schedule.ANNOUNCED and _grown(before.unsafe_shutdowns, after.unsafe_shutdowns):
            harness = harness or "the cut was announced, yet the drive counts an unsafe shutdown"
    judged = not why_not and not harness
    accused = [int(i) for i in found.failed()[:MOST_PROOFS]] if not why_not else []
    proofs = [proof(session, blocks, held, found, i, block(int(blocks.lba[i]))) for i in accused]
    names |= {each.name: 1 for each in said}
    certain = bool(len(found.failed())) or any(each.certain for each in said)
    record = {
        "cut": cut.number,
        "aim": cut.aim,
        "shape": cut.shape,
        "control": cut.control,
        "seed": cut.seed,
        "planned_ns": lived.planned_ns,
        "fired_ns": outcome.fired_ns if outcome else None,
        "bound_ns": outcome.bound_ns if outcome else None,
        "on_ns": outcome.on_ns if outcome else None,
        "off_s": outcome.off_s if outcome else None,
        "ready_s": lived.ready_s,
        **at_cut(session, promise),
        "blocks_read": len(blocks.lba),
        "findings": names if judged else {},
        "failed": judged and certain,
        "suspicion": judged and not certain and bool(names),
        "lost_volatile": len(found.lost_volatile) if judged else None,
        "judged": judged,
        "why_not": why_not or harness,
        "words": [each.words for each in said],
        "unsafe_shutdowns": _grown(before.unsafe_shutdowns, after.unsafe_shutdowns),
        "power_cycles": _grown(before.power_cycles, after.power_cycles),
        "fall": dict(fall) if fall else None,
        "fall_why": None if fall else NO_FALL,
        "recharge_J": None,
        "boot_J": None,
    }
    return Judged(record, found, proofs, harness if not why_not else "", picture.of_cut(session, blocks, held, found))


def at_cut(session: Session, promise: Promise) -> dict[str, Any]:
    """Where the drive stood when its power went: {"commands", "durable": of them had to survive, "in_flight",
    "unflushed_bytes": acknowledged writes that had not, "written_bytes", "delta_flush_us", "delta_ack_us": from the
    submission of the FLUSH nearest to the cut, and from its acknowledgement, to the cut}."""
    rows, counted, kept = session.rows, verdict.counts(session), verdict.durable(session, promise)
    size = np.where(rows["kind"] == WRITE, rows["n"].astype(np.int64), 0) * promise.block_bytes
    flush = aim.actual(rows, FLUSH, 0, session.cut_ns, 0, session.on_ns)
    return {
        "commands": len(rows),
        "durable": int(kept.sum()),
        "in_flight": int(
            ((rows["submit_ns"] < session.cut_ns) & ~(counted & (rows["done_ns"] <= session.cut_ns))).sum()
        ),
        "unflushed_bytes": int(size[counted & ~kept].sum()),
        "written_bytes": int(size.sum()),
        "delta_flush_us": flush.delta_us if flush else None,
        "delta_ack_us": flush.ack_us if flush else None,
    }


def _no_cut(cut: Cut, lived: Lived, before: health.State, after: health.State) -> str:
    """Why there was no cut where one was meant, "" for one."""
    outcome = lived.outcome
    if outcome is None:
        return "" if cut.control else f"what the cut was to wait for did not come: {cut.aim}"
    if outcome.why_not:
        return outcome.why_not
    if cut.shape in BACK_BY_ITSELF and _grown(before.power_cycles, after.power_cycles) == 0:
        return f"the {cut.shape} was no reset: the drive counts no power cycle"
    return ""


def _expected(cut: Cut, lived: Lived, before: health.State, after: health.State) -> tuple[int, int]:
    """(power cycles, unsafe shutdowns) that the drive should have counted. A second cut into its start may have come
    before it counted anything."""
    cycles = int(lived.outcome is not None) + lived.tries - 1
    unsafe = cycles if cut.control is None else 0
    if lived.second is None:
        return cycles, unsafe
    counted = (_grown(getattr(before, name), getattr(after, name)) for name in ("power_cycles", "unsafe_shutdowns"))
    return tuple(n if n in (each, each + 1) else each for n, each in zip(counted, (cycles, unsafe)))  # type: ignore


def _grown(was: int | None, now: int | None) -> int | None:
    return None if was is None or now is None else now - was


def state(snapshot: Mapping | None, ready_s: float | None) -> health.State:
    """What a SMART snapshot (drive/smart/counters.py) says of a drive that is there."""
    said = snapshot or {}
    return health.State(
        ready_s,
        said.get("model"),
        said.get("serial"),
        said.get("firmware"),
        said.get("capacity_bytes"),
        None,
        None,
        said.get("critical_warning"),
        said.get("power_cycles"),
        said.get("unsafe_shutdowns"),
        said.get("power_on_hours"),
        None,
        None,
        said.get("nand_written_bytes"),
        said.get("media_errors"),
        said.get("available_spare_percent"),
    )


def counted(records: Iterable[Mapping]) -> tuple[int, int, int]:
    """(judged cuts, those of them that broke a promise, those that are only suspicious); control sessions are none."""
    judged = [record for record in records if record["judged"]]
    cuts = [record for record in judged if record["control"] is None]
    failed = [record for record in judged if record["failed"]]
    return len(cuts), len(failed), sum(bool(record["suspicion"]) for record in cuts)
