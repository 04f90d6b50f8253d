"""Outcome of a session: the verdict on its blocks, the check of the drive, and the flat record of both. Pure, except
for the function that reads blocks.

The proof of an accusation: everything needed to reach the same verdict on one block, as data and in
sentences. Pure."""

import errno
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ssdrig.blockio.slots import AWAY
from ssdrig.plan.kinds import cut_aims, cut_schedule
from ssdrig.plan.kinds.cut_schedule import Cut
from ssdrig.powerloss import aim, exposure, findings, health, picture, record, verdict
from ssdrig.powerloss.cycle import Lived
from ssdrig.powerloss.findings import CLASSES, NAMES
from ssdrig.powerloss.health import Symptom
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, KINDS, NEVER, NOT_BLANK, WRITE, ZEROS
from ssdrig.powerloss.promise import ACK, Promise
from ssdrig.powerloss.promise import FLUSH as BY_FLUSH
from ssdrig.powerloss.sessions import MOST_PROOFS
from ssdrig.powerloss.supply import BACK_BY_ITSELF
from ssdrig.powerloss.verdict import Blocks, Session, Verdict, counts, part_findings
from ssdrig.switch import profiles

MOST_ROWS = 64  # of the block's commands; those that the verdict names are always among them


def proof(
    session: Session,
    blocks: Blocks,
    promise: Promise,
    verdict: Verdict,
    i: int,
    data: bytes | None = None,
    cuts: tuple[int, int] | None = None,
) -> dict:
    """Proof for block i of `blocks`: {"class", "certain", "lba", "found", "base", "durable", "flush", "torn", "rows",
    "left_out", "promise", "cut_ns", "edge_ns", "on_ns", "before_cut_us", "before_cut_least_us", "before_cut_most_us",
    "commands_before_cut", "cuts", "parts", "headers", "hex", "sentences"}.

    found, base: a command's seq or a code of record; durable, flush, torn: the seq of the command that must have
    survived, of the FLUSH that covers it, of the torn write, or None; rows: the block's commands, each with "counts"
    (verdict.counts); before_cut_us and commands_before_cut: from the acknowledgement of the lost data to the cut, and
    with the bound of the switch at least and at most; cuts: the first and the last session whose cut may have done it;
    parts: of a torn block [content, class] of each 512 bytes, judged on its own, or None;
    headers: the headers in each 512 bytes of `data`, the block as it was read."""
    rows, counted = session.rows, counts(session)
    lba = int(blocks.lba[i])
    first = rows["lba"].astype(np.int64)
    of_block = np.flatnonzero((first <= lba) & (lba < first + rows["n"]) & (rows["kind"] != FLUSH))
    durable, torn = int(verdict.durable_row[i]), int(verdict.torn_row[i])
    lost = torn if torn >= 0 else durable
    flush = _flush(session, counted, durable) if durable >= 0 and not _by_itself(rows[durable], promise) else -1
    named = [row for row in (durable, flush, torn, int(verdict.seen_row[i])) if row >= 0]
    shown = np.union1d(of_block[-MOST_ROWS:], np.array(named, np.int64))
    before_us = least_us = most_us = None
    after = 0
    if lost >= 0 and counted[lost]:
        edge_ns = session.edge_ns or (session.cut_ns, session.cut_ns)
        times_ns = np.array([session.cut_ns, *edge_ns]) - int(rows["done_ns"][lost])
        before_us, least_us, most_us = (float(time_us) for time_us in times_ns / 1e3)
        after = int((rows["submit_ns"] > rows["done_ns"][lost]).sum())
    out = {
        "class": NAMES[verdict.finding[i]],
        "certain": CLASSES[verdict.finding[i]].certain,
        "lba": lba,
        "found": int(blocks.seen[i]),
        "base": int(blocks.base[i]),
        "durable": _seq(rows, durable),
        "flush": _seq(rows, flush),
        "torn": _seq(rows, torn),
        "rows": [_row(rows[n], bool(counted[n])) for n in shown],
        "left_out": len(np.setdiff1d(of_block, shown)),
        "promise": promise._asdict(),
        "cut_ns": session.cut_ns,
        "edge_ns": session.edge_ns,
        "on_ns": session.on_ns,
        "before_cut_us": before_us,
        "before_cut_least_us": least_us,
        "before_cut_most_us": most_us,
        "cuts": cuts,
        "commands_before_cut": after if before_us is not None else None,
        "parts": _parts(session, blocks, promise, i),
        "headers": data and [record.header(data[at : at + record.BYTES]) for at in range(0, len(data), record.BYTES)],
        "hex": data and data.hex(),
    }
    return out | {"sentences": _sentences(out, rows, durable, int(verdict.seen_row[i]))}


def _parts(session: Session, blocks: Blocks, promise: Promise, i: int) -> list[list] | None:
    of = slice(*np.searchsorted(blocks.part_lba, [blocks.lba[i], blocks.lba[i] + 1]))
    if blocks.seen[i] != record.TORN or of.start == of.stop:
        return None
    one = Blocks(*(np.broadcast_to(field, len(blocks.lba))[i : i + 1] for field in blocks[:6]))
    base = blocks.part_base[of] if len(blocks.part_base) else blocks.part_base
    one = one._replace(part_lba=blocks.part_lba[of], part_seen=blocks.part_seen[of], part_base=base)
    findings = part_findings(session, one, promise)
    return [[int(seen), NAMES[finding]] for seen, finding in zip(one.part_seen, findings, strict=True)]


def _by_itself(row: np.void, promise: Promise) -> bool:
    """Whether it is durable without a FLUSH."""
    return promise.mode == ACK or bool(row["flags"] & FUA and row["kind"] != BLANK)


def _flush(session: Session, counted: np.ndarray, durable: int) -> int:
    """The first FLUSH that covers the command."""
    rows = session.rows
    covers = counted & (rows["kind"] == FLUSH) & (rows["submit_ns"] >= rows["done_ns"][durable])
    covering = np.flatnonzero(covers)
    return int(covering[np.argmin(rows["submit_ns"][covering])])


def _seq(rows: np.ndarray, row: int) -> int | None:
    return int(rows["seq"][row]) if row >= 0 else None


def _row(row: np.void, counted: bool) -> dict:
    out = {name: int(row[name]) for name in ("seq", "lba", "n", "status", "submit_ns")}
    done_ns = None if row["done_ns"] == NEVER else int(row["done_ns"])
    return out | {
        "done_ns": done_ns,
        "kind": KINDS[int(row["kind"])],
        "fua": bool(row["flags"] & FUA),
        "zeros": bool(row["flags"] & ZEROS),
        "counts": counted,
    }


def _content(code: int) -> str:
    if code < 0:
        return record.WORDS_OF[code]
    return f"the content of command {code}" if code else "the content of the fill"


def _runs(parts: Sequence) -> str:
    """Contents of a torn block: "sectors 0 to 2: the content of command 7; sector 3: ..."."""
    out: list[str] = []
    begin = 0
    for end in range(1, len(parts) + 1):
        if end == len(parts) or parts[end] != parts[begin]:
            content, finding = parts[begin]
            where = f"sector {begin}" if end == begin + 1 else f"sectors {begin} to {end - 1}"
            out.append(f"{where}: {_content(content)}" + (f", {finding}" if finding != "OK" else ""))
            begin = end
    return "; ".join(out)


def _cuts(cuts: tuple[int, int]) -> str:
    return f"{cuts[0]} or {cuts[1]}" if cuts[1] == cuts[0] + 1 else f"{cuts[0]} to {cuts[1]}"


def _when(least_us: float | None, most_us: float | None) -> str:
    """How long before the cut, within the bound of the switch."""
    if least_us is None or most_us is None:
        return ""
    ms = [f"{abs(us) / 1e3:.3f}" for us in (least_us, most_us)]
    if least_us < 0 <= most_us:
        return f" between {ms[1]} ms before and {ms[0]} ms after the cut"
    if least_us < 0:
        ms.reverse()
    return f" {ms[0] if ms[0] == ms[1] else ' to '.join(ms)} ms {'before' if least_us >= 0 else 'after'} the cut"


def _sentences(proof: dict, rows: np.ndarray, durable: int, seen_row: int) -> list[str]:
    """The events, the finding, and the rule it breaks."""
    block, content = f"block {proof['lba']}", _content(proof["found"])
    if proof["parts"]:
        content += f" ({_runs(proof['parts'])})"
    when = _when(proof["before_cut_least_us"], proof["before_cut_most_us"])
    out = []
    if proof["torn"] is not None:
        n = next(row["n"] for row in proof["rows"] if row["seq"] == proof["torn"])
        limit = proof["promise"]["atomic_blocks"]
        out.append(f"Command {proof['torn']} wrote {n} blocks; the drive promises that up to {limit} are atomic.")
        out.append(f"Another of its blocks holds it, but {block} holds {content}, which is older.")
    elif proof["durable"] is not None:
        did = "wrote zeros to it" if rows["flags"][durable] & ZEROS else "wrote it"
        did = "read it as trimmed" if rows["kind"][durable] == BLANK else did
        how = ""
        if proof["flush"] is not None:
            how = f", and the acknowledged FLUSH {proof['flush']} was submitted after that"
        elif rows["flags"][durable] & FUA:
            did += " with FUA" if proof["promise"].get("fua", True) else " with a FLUSH after it"
        else:
            how = ": " + proof["promise"]["why"]
        out.append(f"{block.capitalize()}: command {proof['durable']} {did} and was acknowledged{when}{how}.")
        older = ""
        if seen_row >= 0:
            older = f", which was complete before command {proof['durable']} was submitted"
        elif proof["found"] == proof["base"]:
            older = ", which it held before this session"
        out.append(f"Found: {content}{older}.")
    else:
        out.append(f"{block.capitalize()}: nothing in this session had to survive there.")
        out.append(f"Found: {content}; before this session: {_content(proof['base'])}.")
        if proof["cuts"] is not None and proof["cuts"][0] < proof["cuts"][1]:
            out.append(f"It was not read since session {proof['cuts'][0] - 1}: cut {_cuts(proof['cuts'])} did it.")
    words = next(kind.words for kind in CLASSES if kind.name == proof["class"])
    out.append(f"{'This breaks the promise' if proof['certain'] else 'Suspected'}: {words}.")
    return out


READ_ONLY = "READ_ONLY"
STILL_READ_ONLY = "the drive has taken no writes since an earlier cut: nothing was tested"
ADVICE = "TRIM_KEPT"  # a drive may ignore a trim, with its power on, too
OF_HOST = (errno.EAGAIN, errno.ENOMEM)  # errnos that are not the drive's
NOTHING_TESTED = "no write was acknowledged before the cut: nothing was tested"
NO_FALL = "the power was not taken by the rig: nothing was recorded of the fall"
# A drive answers its host over a link that needs its supply, so its capacitors carry no acknowledgement across: they
# feed its own flush. The rest is the fall of the rail to where its controller stops, some ms to some tens of ms.
HOLD_UP_NS = 100_000_000
LATER = "taken from all starts together once the campaign has ended: `found` of the step in figures.json"


class Judged(NamedTuple):
    """`record`: flat, as the journal keeps it; `harness`: why the harness is suspected, "" where it is not; `picture`:
    what a page shows of it; `unfelt`: evidence that the drive kept its power in the cut, or ""."""

    record: dict[str, Any]
    verdict: Verdict
    proofs: list[dict]
    harness: str
    picture: dict[str, Any]
    unfelt: str = ""


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
    earlier: Mapping | None = None,
    limit_s: float | None = None,
    felt: bool = True,
    last_cut: int = 0,
) -> Judged:
    """The verdict on a session and on the drive after it. `before`, `after`: the drive's reports around it;
    `block`: one as it is now; `earlier`: the record of the session before it; `usual_s`, `limit_s`: see health.py;
    `felt`: an earlier cut has shown that the drive feels them; `last_cut`: the session before this one in which power
    was taken last, 0: none."""
    outcome, rows = lived.outcome, lived.rows
    cut_ns = outcome.fired_ns if outcome else lived.ended_ns
    if cut.control or outcome is None:  # all had ended before
        cut_ns = lived.settled_ns or lived.ended_ns
    on_ns = outcome.on_ns if outcome and not cut.control else NEVER
    edge_ns = None
    if outcome and not cut.control:  # a command takes the power at any time from its start on
        edge_ns = cut_ns - (outcome.bound_ns if outcome.report else 0), cut_ns + outcome.bound_ns
    session = Session(rows, cut_ns, on_ns, lived.settled_ns, verify_ns, (), queues_deleted, edge_ns)
    refused, taken = _refused(lived, cut_ns), int((verdict.counts(session) & (rows["kind"] == WRITE)).sum())
    earlier = earlier or {}
    was_read_only = READ_ONLY in (earlier.get("findings") or {})
    twice = len(refused) and earlier.get("refused") and not earlier.get("acknowledged")
    if not taken and (was_read_only or twice):  # a session that tries no write knows no better
        after = after._replace(writable=False)
    unfelt = _unfelt(cut, lived, before, after, felt)
    no_cut = unfelt or _no_cut(cut, lived, before, after)
    if no_cut and outcome is not None:  # power may have dipped: acknowledgements from then on are unknown
        session = session._replace(glitches_ns=(outcome.fired_ns - outcome.bound_ns,))
    held = promise._replace(mode=ACK) if cut.control == cut_schedule.NO_CUT else promise
    result = verdict.judge(session, blocks, held)
    if cut.control == cut_schedule.ANNOUNCED and not len(result.failed()):  # its guarantees held: was it notified?
        held = promise._replace(mode=ACK)
        result = verdict.judge(session, blocks, held)
    why_not = result.why_not or no_cut
    tested = cut.aim == cut_aims.AGAIN or taken or len(refused) or len(result.failed()) or after.ready_s is None
    if not (why_not or cut.control or tested):
        why_not = NOTHING_TESTED
    # where nothing took the drive's power since a block was read, the host may be as guilty as the drive
    failed, since = result.failed(), verdict.since(blocks, result, cut.number)
    powered = bool(unfelt) or outcome is None
    excused = (since[failed] > last_cut) & powered
    if cut.control == cut_schedule.ANNOUNCED and held.mode != promise.mode:
        excused[:] = True
    broken = failed[~excused]
    names = _counted(result.finding)
    wrong = _words_of(_counted(result.finding[failed[excused]]))
    if outcome is None:
        wrong += _words_of({name: n for name, n in names.items() if not findings.BY_NAME[name].certain})
    by_cut = not taken and 0 < last_cut == cut.number - 1  # no write was taken since the cut before
    if cut.control and len(refused) and after.writable is not False and not by_cut:
        wrong.append(_words(refused))
    harness = ""
    if wrong:
        how = "the cut was announced" if cut.control == cut_schedule.ANNOUNCED else "no power was cut"
        harness = f"{how}, yet {', '.join(wrong)}"
    reports = []
    if not why_not:
        cycles, unsafe = _expected(cut, lived, before, after)
        away = (usual_s, limit_s) if outcome is not None else (None, None)
        reports = health.judge(before, after, unsafe, cycles, *away, lived.tries, lived.stalled_s)
        if len(refused) and after.writable is not False and not harness:
            reports.append(Symptom("REFUSED", _words(refused)))
        if cut.control == cut_schedule.ANNOUNCED and _grown(before.unsafe_shutdowns, after.unsafe_shutdowns):
            harness = harness or "the cut was announced, yet the drive counts an unsafe shutdown"
    judged = not why_not and not harness
    accused = failed[:MOST_PROOFS]
    last = last_cut if powered else cut.number
    proofs = [
        proof(
            session, blocks, held, result, int(i), block(int(blocks.lba[i])), (int(since[i]), max(last, int(since[i])))
        )
        for i in accused
    ]
    names |= {report.name: 1 for report in reports}
    exposed = exposure.of(session, blocks, held, result) if judged and not cut.control else None
    if no_cut and cut.shape in BACK_BY_ITSELF and outcome is not None and not result.why_not:
        exposed = exposure.of_dip(blocks)
    if lasting := READ_ONLY in names and was_read_only:
        why_not = why_not or STILL_READ_ONLY
        judged = False
    certain = any(report.certain for report in reports if not (lasting and report.name == READ_ONLY))
    first = [*since[broken].tolist(), *([cut.number] if certain else [])]
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
        "ready_s": None if no_cut else lived.ready_s,
        "stalled_s": lived.stalled_s,
        **at_cut(session, promise),
        **_aimed(lived),
        "acknowledged": taken,
        "refused": len(refused),
        "blocks_read": len(blocks.lba),
        "exposed": exposed,
        "findings": names,
        "failed": bool(first),
        "interval": [max(first), max(last, max(first)), min(first)] if first else None,
        "suspicion": judged and not first and bool(names.keys() - {findings.UNSURE}),
        "lost_volatile": len(result.lost_volatile) if judged else None,
        "judged": judged,
        "why_not": why_not or harness,
        "harness": harness,
        "words": [report.words for report in reports],
        "unsafe_shutdowns": _grown(before.unsafe_shutdowns, after.unsafe_shutdowns),
        "power_cycles": _grown(before.power_cycles, after.power_cycles),
        "fall": dict(fall) if fall else None,
        "fall_why": None if fall else NO_FALL,
        "recharge_J": None,
        "boot_J": None,
        "energy_why": LATER if outcome and outcome.report else NO_FALL,
    }
    return Judged(record, result, proofs, harness, picture.of_cut(session, blocks, held, result), unfelt)


def _counted(finding: np.ndarray) -> dict[str, int]:
    """{class: blocks}, without OK."""
    return {findings.NAMES[n]: int(count) for n, count in enumerate(np.bincount(finding)) if n and count}


def _words_of(names: Mapping[str, int]) -> list[str]:
    return [f"{name} on {count} blocks" for name, count in names.items() if name != ADVICE]


def _aimed(lived: Lived) -> dict[str, Any]:
    """Where the plan put the cut and where it came to lie, from the submission of the command that was moved to it."""
    reached, outcome = None, lived.outcome
    if outcome is not None:
        times = outcome.fired_ns, outcome.bound_ns, outcome.on_ns
        reached = aim.reached(lived.plan, lived.rows, lived.aimed_seq, *times)
    return {
        "planned_delta_us": lived.plan.delta_us,
        "planned_unflushed_bytes": lived.plan.unflushed_bytes,
        "delta_us": reached.delta_us if reached else None,
        "delta_bound_us": reached.bound_us if reached else None,
    }


def _refused(lived: Lived, cut_ns: int) -> np.ndarray:
    """int64[]: the errnos of the commands that a drive with power refused, one that was there. A user's command
    takes the power at any time from its start on."""
    rows, outcome = lived.rows, lived.outcome
    bound_ns = outcome.bound_ns if outcome and outcome.report else 0
    errors = -rows["status"].astype(np.int64)[(rows["done_ns"] < cut_ns - bound_ns) & (rows["status"] != NOT_BLANK)]
    return errors[(errors > 0) & ~np.isin(errors, (*AWAY, *OF_HOST))]


def _words(refused: np.ndarray) -> str:
    names = sorted({errno.errorcode.get(int(code), str(code)) for code in refused})
    return f"with its power on it refused {len(refused)} commands ({', '.join(names)})"


def at_cut(session: Session, promise: Promise) -> dict[str, Any]:
    """State of the drive when its power went: {"commands", "durable": of them had to survive, "in_flight",
    "unflushed_bytes": acknowledged writes that neither FLUSH nor FUA covers, "written_bytes", "delta_flush_us",
    "delta_ack_us": from the submission of the FLUSH nearest to the cut, and from its acknowledgement, to the cut}."""
    rows, counted, durable_rows = session.rows, verdict.counts(session), verdict.durable(session, promise)
    flushed = verdict.durable(session, promise._replace(mode=BY_FLUSH))
    size = np.where(rows["kind"] == WRITE, rows["n"].astype(np.int64), 0) * promise.block_bytes
    flush = aim.actual(rows, FLUSH, 0, session.cut_ns, 0, session.on_ns)
    return {
        "commands": len(rows),
        "durable": int(durable_rows.sum()),
        "in_flight": int(
            ((rows["submit_ns"] < session.cut_ns) & ~(counted & (rows["done_ns"] <= session.cut_ns))).sum()
        ),
        "unflushed_bytes": int(size[counted & ~flushed].sum()),
        "written_bytes": int(size.sum()),
        "delta_flush_us": flush.delta_us if flush else None,
        "delta_ack_us": flush.ack_us if flush else None,
    }


def _no_cut(cut: Cut, lived: Lived, before: health.State, after: health.State) -> str:
    """Why an intended cut did not happen, "" if it did."""
    outcome = lived.outcome
    if outcome is None:
        return "" if cut.control else f"what the cut was to wait for did not come: {cut.aim}"
    rows = lived.rows
    late = (rows["status"] == 0) & (rows["submit_ns"] > outcome.fired_ns + outcome.bound_ns)
    if outcome.report is None and not outcome.why_not and (late & (rows["done_ns"] < outcome.on_ns)).any():
        return "the drive still executed commands when the command that takes its power had ended"
    _, begun, most_ms = _after_edge(cut, lived)
    if begun.any() and not outcome.why_not:  # and it counts the cycle, or _unfelt() has more to say
        return f"the drive executed commands for {most_ms:.0f} ms after the edge: its power fell late"
    resets = _grown(before.power_cycles, after.power_cycles) if cut.shape in BACK_BY_ITSELF else None
    if resets == 0:
        return f"no reset by {cut.shape}: the drive counts no power cycle"
    return "" if resets else outcome.why_not  # too short for the rig to see, and yet a reset


def feels(lived: Lived, before: health.State, after: health.State) -> bool:
    """Whether a cut reached the drive: its link was lost, it counts a power cycle, it has not come back, or commands
    under way ended only once power was back, as a kernel has it that repeats them. Without a kernel between they are
    those of a drive that was slow, unless it counts no power cycles."""
    rows, outcome = lived.rows, lived.outcome
    away = np.isin(-rows["status"].astype(np.int64), AWAY) & (rows["status"] != NOT_BLANK)
    open_ = (rows["done_ns"] == NEVER).any()
    if outcome is not None:
        open_ |= ((rows["submit_ns"] < outcome.fired_ns) & (rows["done_ns"] > outcome.on_ns)).any()
    cycles = _grown(before.power_cycles, after.power_cycles)
    open_ &= lived.by_kernel or cycles is None
    return bool(lived.link_lost or away.any() or open_ or (cycles or 0) > 0 or after.ready_s is None)


def _after_edge(cut: Cut, lived: Lived) -> tuple[np.ndarray, np.ndarray, float]:
    """Which commands ended well, without power, longer after the edge than a drive holds up; which of them began after
    it, too; and how long (ms) after it the last ended. A stalled host sees the end of a command late, but begins none
    meanwhile."""
    outcome, rows = lived.outcome, lived.rows
    if outcome is None or cut.control or cut.shape in BACK_BY_ITSELF:
        none = np.zeros(len(rows), bool)
        return none, none, 0.0
    low_ns = outcome.fired_ns + outcome.bound_ns
    if cut.shape in profiles.PROFILES:
        low_ns += profiles.PROFILES[cut.shape].lasts_us(cut_schedule.own(cut, None) or {}) * 1000
    done = (rows["status"] == 0) & (rows["done_ns"] < outcome.on_ns)
    late = done & (rows["done_ns"] > low_ns + HOLD_UP_NS)
    return late, late & (rows["submit_ns"] > low_ns), (int(rows["done_ns"][late].max(initial=low_ns)) - low_ns) / 1e6


def _unfelt(cut: Cut, lived: Lived, before: health.State, after: health.State, felt: bool) -> str:
    """Evidence that a cut did not reach the drive, or "": commands that it executed without
    power; or, before any cut was felt, no sign of a loss at all."""
    outcome = lived.outcome
    if outcome is None or cut.control or cut.shape in BACK_BY_ITSELF:
        return ""
    by_rig = outcome.report is not None
    if by_rig and outcome.why_not:  # the rail was not seen low
        return ""
    late, begun, most_ms = _after_edge(cut, lived)
    counted = (_grown(before.power_cycles, after.power_cycles) or 0) > 0
    if late.any() and not counted and (begun.any() or not feels(lived, before, after)):
        return f"the drive executed commands for {most_ms:.0f} ms after its power was taken"
    if not felt and not feels(lived, before, after):
        why = f" ({outcome.why_not})" if outcome.why_not else ""
        return f"the drive did not feel its first cut: no link was lost and no power cycle counted{why}"
    return ""


def _expected(cut: Cut, lived: Lived, before: health.State, after: health.State) -> tuple[int, int]:
    """(power cycles, unsafe shutdowns) that the drive should have counted. A second cut into its start may have come
    before it counted anything, and each of several dips may have been a reset, or not."""
    cycles = int(lived.outcome is not None) + lived.tries - 1
    unsafe = cycles if cut.control is None else 0
    more = int(lived.second is not None) + ((cut_schedule.own(cut, None) or {}).get("dips", 1) - 1)
    counted = (_grown(getattr(before, name), getattr(after, name)) for name in ("power_cycles", "unsafe_shutdowns"))
    nearest = [
        n if n is not None and expected <= n <= expected + more else expected
        for n, expected in zip(counted, (cycles, unsafe))
    ]
    return nearest[0], nearest[1]


def _grown(was: int | None, now: int | None) -> int | None:
    return None if was is None or now is None else now - was


def state(snapshot: Mapping | None, ready_s: float | None) -> health.State:
    """The health of a present drive from a SMART snapshot (drive/smart/counters.py)."""
    fields = snapshot or {}
    return health.State(
        ready_s,
        fields.get("model"),
        fields.get("serial"),
        fields.get("firmware"),
        fields.get("capacity_bytes"),
        None,
        None,
        fields.get("critical_warning"),
        fields.get("power_cycles"),
        fields.get("unsafe_shutdowns"),
        fields.get("power_on_hours"),
        None,
        None,
        None if fields.get("nand_written_wrap_bytes") else fields.get("nand_written_bytes"),  # one that wraps goes back
        fields.get("media_errors"),
        fields.get("available_spare_percent"),
        fields.get("incomplete_shutdowns"),
        fields.get("capacitor_health_percent"),
        protocol=fields.get("protocol"),
        nand_source=fields.get("nand_written_source"),
        identity_source=_who_names_it(fields.get("exit_status")),
    )


def _who_names_it(exit_status: int | None) -> str:
    """smartctl, if it could be run and reach the drive (bits 0 and 1 of its status)."""
    return "the kernel" if exit_status is None or exit_status & 3 else "smartctl"
