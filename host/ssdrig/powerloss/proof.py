"""The proof of an accusation: everything needed to reach the same verdict on one block, as data and in
sentences. Pure."""

from collections.abc import Sequence

import numpy as np

from ssdrig.powerloss import record
from ssdrig.powerloss.findings import CLASSES, NAMES
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, KINDS, NEVER, ZEROS
from ssdrig.powerloss.promise import ACK, Promise
from ssdrig.powerloss.verdict import Blocks, Session, Verdict, counts, part_findings

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
    named = [each for each in (durable, flush, torn, int(verdict.seen_row[i])) if each >= 0]
    shown = np.union1d(of_block[-MOST_ROWS:], np.array(named, np.int64))
    before_us = least_us = most_us = None
    after = 0
    if lost >= 0 and counted[lost]:
        edge_ns = session.edge_ns or (session.cut_ns, session.cut_ns)
        times_ns = np.array([session.cut_ns, *edge_ns]) - int(rows["done_ns"][lost])
        before_us, least_us, most_us = (float(each) for each in times_ns / 1e3)
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
    found = np.flatnonzero(covers)
    return int(found[np.argmin(rows["submit_ns"][found])])


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
    block, found = f"block {proof['lba']}", _content(proof["found"])
    if proof["parts"]:
        found += f" ({_runs(proof['parts'])})"
    when = _when(proof["before_cut_least_us"], proof["before_cut_most_us"])
    out = []
    if proof["torn"] is not None:
        n = next(row["n"] for row in proof["rows"] if row["seq"] == proof["torn"])
        limit = proof["promise"]["atomic_blocks"]
        out.append(f"Command {proof['torn']} wrote {n} blocks; the drive promises that up to {limit} are atomic.")
        out.append(f"Another of its blocks holds it, but {block} holds {found}, which is older.")
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
        out.append(f"Found: {found}{older}.")
    else:
        out.append(f"{block.capitalize()}: nothing in this session had to survive there.")
        out.append(f"Found: {found}; before this session: {_content(proof['base'])}.")
        if proof["cuts"] is not None and proof["cuts"][0] < proof["cuts"][1]:
            out.append(f"It was not read since session {proof['cuts'][0] - 1}: cut {_cuts(proof['cuts'])} did it.")
    words = next(each.words for each in CLASSES if each.name == proof["class"])
    out.append(f"{'This breaks the promise' if proof['certain'] else 'Suspected'}: {words}.")
    return out
