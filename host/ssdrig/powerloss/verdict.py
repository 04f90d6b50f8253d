"""The exact verdict after a cut: the legal contents of each block, by the contract of NVMe and ATA, and the violations.
Pure.

A power session goes from "ready" to the cut. x -> y means that x was completed before y was submitted:
done(x) < submit(y).

    counts(x)  = status ok and done(x) < the time when power returned, otherwise done(x) is infinite
    (R1) F*         = the latest submission of a FLUSH that counts
    durable(x) = counts(x) and (mode ACK, or x has FUA, or done(x) <= F*); of trims only those read back as trimmed
    D_b        = the latest submission of a durable x on block b
    legal(b)   = {x on b: done(x) >= D_b}, and the content from before the session where nothing durable is on b

This is sound and complete: the medium holds what the cache held at a time not before the last forced write-out of the
block, and blocks are written out independently, so legal images are the product of the legal(b) and nothing has to be
searched (`bench powerloss-verdict` compares with a machine that is searched).

Over many sessions (Known): of each block the content that was read last, the number of the session after which it was
read, and whether a trim may still take effect. Such a trim ends with a durable write, or, where trimmed blocks read as
zeros or ones, once the block was read so. Until then the block may hold anything (after_trim None), or turn blank. A
block without a durable write in the session may have been damaged by any cut since it was read last: an interval.

R1: a drive without power acknowledges nothing, so a success seen before power returned was given before the loss. A
later one is unknown: Linux repeats a FLUSH across the outage (libata-eh.c, ata_eh_maybe_retry_flush; nvme/host/core.c)
and would accuse an innocent drive. R2: blocks are read only when no command is outstanding any more. R3: a glitch that
was not a proven reset does not end the session; data returned after its earliest time is unknown.
"""

from typing import NamedTuple

import numpy as np

from ssdrig.powerloss import record
from ssdrig.powerloss.findings import CLASSES, NUMBER
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, NOT_BLANK, TRIM, WRITE, ZEROS
from ssdrig.powerloss.promise import ACK, Promise

NONE = -NEVER  # before everything
METADATA_BLOCKS = 64  # violating blocks outside the session's writes that are one finding
NEAR_BYTES = 65536  # two blocks of one such piece may share a word line or a read-modify-write
BAD = {  # never legal
    record.TORN: "TORN_LB",
    record.MISDIRECTED: "MISDIRECTED",
    record.CORRUPT: "CORRUPT",
    record.UNREADABLE: "UNREADABLE",
    record.UNSTABLE: "UNSTABLE",
}
BLANKS = {"zeros": (record.ZEROS,), "ones": (record.ONES,), None: (record.ZEROS, record.ONES)}


class Session(NamedTuple):
    """One power session. Times: ns of one clock."""

    rows: np.ndarray  # history.ROW[k]
    cut_ns: int  # the edge
    on_ns: int  # the earliest time at which power may have returned: the bound of the clock is taken off
    settled_ns: int | None  # since when no command was outstanding; None: never
    verify_ns: int  # when the first block was read
    glitches_ns: tuple[int, ...] = ()  # the earliest time of each glitch that was not a proven reset
    queues_deleted: bool = True  # the drive cannot know a command of an earlier session: its queues were made again
    edge_ns: tuple[int, int] | None = None  # the earliest and the latest time of the edge; None: cut_ns is exact


_NO, _NONE_READ, _NO_PARTS = np.zeros(1, bool), np.zeros(1, np.int64), np.zeros(0, np.int64)


class Blocks(NamedTuple):
    """The blocks read after the cut: arrays of one length, sorted by lba. Contents are seq or a code of record."""

    lba: np.ndarray  # int64, logical blocks
    base: np.ndarray  # int64, before the session: what the verification before had read
    seen: np.ndarray  # int64
    canary: np.ndarray  # bool: never written in the campaign
    trimmed: np.ndarray = _NO  # bool: a trim of an earlier session may still take effect
    verified: np.ndarray = _NONE_READ  # int64: the number of the session after which it was read last; 0: the fill
    part_lba: np.ndarray = _NO_PARTS  # int64: for each 512 bytes of each torn block, the block
    part_seen: np.ndarray = _NO_PARTS  # int64: what these 512 bytes hold
    part_base: np.ndarray = _NO_PARTS  # int64: their earlier content; empty: as their block


class Known(NamedTuple):
    """The known content of every block when a session begins: arrays over the base (layout.base_blocks)."""

    content: np.ndarray  # int64, a seq or a code of record; UNKNOWN: anything
    trimmed: np.ndarray  # bool
    verified: np.ndarray  # int32
    parts: dict[int, np.ndarray]  # of each TORN one, by its place: what each 512 bytes hold


class Verdict(NamedTuple):
    """`why_not` is "" where the session could be judged; else nothing is accused. Row numbers are -1 where there is
    none."""

    finding: np.ndarray  # uint8[m], of findings.CLASSES
    seen_row: np.ndarray  # int64[m], the command whose content was seen
    durable_row: np.ndarray  # int64[m], the command that a legal content must not be older than
    torn_row: np.ndarray  # int64[m], of TORN_ATOMIC
    lost_volatile: np.ndarray  # int64, rows that were acknowledged and are gone, as the promise allows
    trimmed: np.ndarray  # bool[m], a trim may still take effect after this session
    why_not: str

    def failed(self) -> np.ndarray:
        """Indices of the blocks that break a promise."""
        return np.flatnonzero(_CERTAIN[self.finding])


_CERTAIN = np.array([item.certain and item.name != "OK" for item in CLASSES])


def counts(session: Session) -> np.ndarray:
    """bool[k]: the acknowledgements that the drive must stand by (R1, R3)."""
    until_ns = min(session.on_ns, *session.glitches_ns, NEVER)
    return (session.rows["status"] == 0) & (session.rows["done_ns"] < until_ns)


def durable(session: Session, promise: Promise) -> np.ndarray:
    """bool[k]: the commands whose effect must survive the cut."""
    rows, counted = session.rows, counts(session)
    flushes = rows["submit_ns"][counted & (rows["kind"] == FLUSH)]
    lasting = rows["done_ns"] <= (flushes.max() if len(flushes) else NONE)
    if promise.mode == ACK:
        lasting[:] = True
    write = (rows["kind"] == WRITE) & (lasting | (rows["flags"] & FUA > 0))
    blank = (rows["kind"] == BLANK) & lasting & (promise.after_trim is not None)
    return counted & (write | blank)


def judge(session: Session, blocks: Blocks, promise: Promise) -> Verdict:
    """The verdict on every block read. The same block may be asked for several times with other contents, except
    atomic writes."""
    m = len(blocks.lba)
    empty = np.full(m, -1, np.int64)
    if m and (session.settled_ns is None or session.settled_ns > session.verify_ns):
        why = "blocks were read while commands were outstanding"
        trims = blocks.trimmed | _any(pairs(session.rows[session.rows["kind"] == TRIM], blocks.lba)[0], m)
        return Verdict(np.zeros(m, np.uint8), empty, empty, empty, empty[:0], trims, why)
    rows, kind = session.rows, session.rows["kind"]
    counted, lasting = counts(session), durable(session, promise)
    done_ns = np.where(counted, rows["done_ns"], NEVER)
    submit_ns = rows["submit_ns"]
    block, row = pairs(rows, blocks.lba)
    pair_kind = kind[row]
    changes = pair_kind != BLANK
    written = _any(block[changes], m)

    # the content that was seen, and when it was complete at the latest
    blank = np.isin(blocks.seen, BLANKS[promise.after_trim])
    readable = (blocks.base == record.UNKNOWN) & (blocks.seen != record.UNREADABLE)
    is_base = _unchanged(blocks) | readable | (blocks.base == record.UNREADABLE)
    seen_row = empty.copy()
    seq = rows["seq"].astype(np.int64)
    zeros = (pair_kind == WRITE) & (rows["flags"][row] & ZEROS > 0)
    hit = (pair_kind == WRITE) & ~zeros & (seq[row] == blocks.seen[block])
    seen_row[block[hit]] = row[hit]
    hit = (pair_kind == TRIM) & blank[block] | zeros & (blocks.seen[block] == record.ZEROS)
    order = np.argsort(done_ns[row[hit]], kind="stable")
    seen_row[block[hit][order]] = row[hit][order]
    recorded = seen_row >= 0
    seen_ns = np.where(recorded, done_ns[seen_row] if len(rows) else NONE, NONE)

    # the oldest legal content; that zeros were read does not make zeros older
    must = lasting[row] & ~((pair_kind == BLANK) & blank[block])
    least_ns = np.full(m, NONE)
    np.maximum.at(least_ns, block[must], submit_ns[row[must]])
    durable_row = empty.copy()
    sets = must & (submit_ns[row] == least_ns[block])
    durable_row[block[sets]] = row[sets]
    free = durable_row < 0

    legal = (recorded & (seen_ns >= least_ns)) | (is_base & free)
    may_be = done_ns[row] >= least_ns[block]
    trimmed = _any(block[(pair_kind == TRIM) & may_be], m) | (blocks.trimmed & free)
    if promise.after_trim is None:  # a trimmed block may read as anything, and as something else each time: not fail
        legal |= trimmed & (blocks.seen != record.UNREADABLE)
    else:  # it may have been executed only now
        legal |= trimmed & blank
        trimmed &= ~blank
    finding = np.zeros(m, np.uint8)
    if not promise.atomic_blocks:  # of a torn block each part must be legal on its own
        torn = (blocks.seen == record.TORN) & ~legal
        finding[torn] = _of_parts(session, blocks, promise)[torn]
        legal |= torn & (finding == 0)
    if len(rows):
        finding[~recorded & (blocks.seen >= seq.min())] = NUMBER["UNRECORDED"]

    def say(name: str, where: np.ndarray) -> None:
        finding[where & (finding == 0) & ~legal] = NUMBER[name]

    for code, name in BAD.items():
        say(name, blocks.seen == code)
    setter = durable_row  # index -1 is never used: these blocks have one
    if len(rows):
        say("TRIM_UNDONE", ~free & (kind[setter] == BLANK))
        if promise.mode == ACK:
            say("LOST_ACKED", ~free)
        if promise.fua:  # else the kernel has sent a FLUSH
            say("LOST_FUA", ~free & (rows["flags"][setter] & FUA > 0))
        say("LOST_FLUSHED", ~free)
    newer = (blocks.base >= 0) & (blocks.seen > blocks.base)
    say("GHOST" if session.queues_deleted else "GHOST_UNSURE", newer)
    say("STALE", np.ones(m, bool))

    if promise.atomic_blocks > 1:
        whole = legal & ~np.isin(blocks.seen, [*BAD])
        torn_row = _torn(rows, counted, promise, block, row, seen_row, seen_ns, whole)
        finding[torn_row >= 0] = NUMBER["TORN_ATOMIC"]
        # of a completed write each block may be older: "reads for locations written to the volatile write cache ..."
        torn = np.flatnonzero(torn_row >= 0)
        finding[torn[counted[torn_row[torn]]]] = NUMBER["TORN_CACHED"]
    else:
        torn_row = empty

    if promise.sector_blocks:
        open_ = _near(rows[(kind == WRITE) & ~lasting], blocks.lba, promise.sector_blocks)
        finding[open_ & (finding == NUMBER["UNREADABLE"])] = NUMBER["UNREADABLE_OPEN"]

    # what points at the cause: next to a write in flight; many together
    beside = np.isin(finding, [NUMBER[name] for name in ("STALE", "CORRUPT", "UNREADABLE")]) & ~written
    near = _near(rows[(kind == WRITE) & ~counted], blocks.lba, max(1, NEAR_BYTES // promise.block_bytes))
    finding[beside & near] = NUMBER["COLLATERAL"]
    outside = _CERTAIN[finding] & ~written
    if outside.sum() >= METADATA_BLOCKS or (outside & blocks.canary).any():
        finding[outside] = NUMBER["METADATA"]

    ignores_trims = ((kind == BLANK) & (rows["status"] == NOT_BLANK)).any()  # it may: a trim is advice
    if promise.after_trim is not None and not ignores_trims:
        flushed = durable(session._replace(rows=_as_writes(rows)), promise)
        older = legal[block] & (blocks.seen[block] >= 0) & (seen_ns[block] < submit_ns[row])
        executed = flushed & (rows["n"].astype(np.int64) >= _least_trim(rows))
        kept_data = _any(block[(pair_kind == TRIM) & executed[row] & older], m)
        finding[kept_data & (finding == 0)] = NUMBER["TRIM_KEPT"]
    gone = (pair_kind == WRITE) & counted[row] & ~lasting[row] & legal[block] & (seen_ns[block] < submit_ns[row])
    return Verdict(finding, seen_row, durable_row, torn_row, np.unique(row[gone]), trimmed, "")


def _of_parts(session: Session, blocks: Blocks, promise: Promise) -> np.ndarray:
    """uint8[m]: the worst finding on the 512-byte parts of each torn block; TORN_LB where the parts are not known."""
    out = np.where(blocks.seen == record.TORN, NUMBER["TORN_LB"], 0).astype(np.uint8)
    at = np.searchsorted(blocks.lba, blocks.part_lba)
    if len(at):
        finding = part_findings(session, blocks, promise)
        out[at] = 0
        bad = _CERTAIN[finding]
        np.maximum.at(out, at[bad], finding[bad])
    return out


def part_findings(session: Session, blocks: Blocks, promise: Promise) -> np.ndarray:
    """uint8[parts], of findings.CLASSES: each 512 bytes of the torn blocks, judged as if they were a block."""
    at = np.searchsorted(blocks.lba, blocks.part_lba)
    of = lambda field: np.broadcast_to(field, len(blocks.lba))[at]
    parts = Blocks(blocks.part_lba, _part_base(blocks), blocks.part_seen, of(blocks.canary), of(blocks.trimmed))
    return judge(session, parts, promise).finding


def _part_base(blocks: Blocks) -> np.ndarray:
    if len(blocks.part_base):
        return blocks.part_base
    base = blocks.base[np.searchsorted(blocks.lba, blocks.part_lba)]
    return np.where(base == record.TORN, record.UNKNOWN, base)


def _unchanged(blocks: Blocks) -> np.ndarray:
    """bool[m]: blocks with unchanged content; a torn one in each of its parts."""
    out = blocks.base == blocks.seen
    if len(blocks.part_base):
        out[np.searchsorted(blocks.lba, blocks.part_lba[blocks.part_seen != blocks.part_base])] = False
    return out


def since(blocks: Blocks, verdict: Verdict, number: int) -> np.ndarray:
    """int64[m]: the first session whose cut may have damaged each block; `number`: of this session. A block that had to
    hold something of this session was damaged by its cut."""
    verified = np.broadcast_to(blocks.verified, len(blocks.lba)) + 1
    return np.where((verdict.durable_row >= 0) | (verdict.torn_row >= 0), number, np.minimum(verified, number))


def known(blocks: int, content: int = record.UNKNOWN) -> Known:
    """Knowledge of n equal blocks before the first session."""
    return Known(np.full(blocks, content, np.int64), np.zeros(blocks, bool), np.zeros(blocks, np.int32), {})


def asked(known: Known, at: np.ndarray, blocks: Blocks) -> Blocks:
    """`blocks`, which stand at these places of the base, with their known contents."""
    part_base = blocks.base[np.searchsorted(blocks.lba, blocks.part_lba)]
    for i in np.flatnonzero((blocks.seen == record.TORN) & (blocks.base == record.TORN)):
        parts = slice(*np.searchsorted(blocks.part_lba, [blocks.lba[i], blocks.lba[i] + 1]))
        part_base[parts] = known.parts.get(int(at[i]), record.UNKNOWN)
    return blocks._replace(trimmed=known.trimmed[at], verified=known.verified[at].astype(np.int64), part_base=part_base)


def take(
    known: Known, at: np.ndarray, blocks: Blocks, verdict: Verdict, number: int, where: np.ndarray | None = None
) -> None:
    """Change `known` to what the next session begins with, from session `number`; only of the blocks `where`
    (bool[m])."""
    record_contents(known, at, blocks, verdict.trimmed, number, where)


def record_contents(
    known: Known, at: np.ndarray, blocks: Blocks, trimmed: np.ndarray, number: int, where: np.ndarray | None = None
) -> None:
    """As take(), with the one field of the verdict that counts."""
    where = np.ones(len(at), bool) if where is None else where
    content = next_base(blocks)
    known.content[at[where]], known.trimmed[at[where]] = content[where], trimmed[where]
    known.verified[at[where]] = number
    for place in np.intersect1d(list(known.parts), at[where]).tolist():
        del known.parts[int(place)]
    for i in np.flatnonzero((content == record.TORN) & where):
        parts = slice(*np.searchsorted(blocks.part_lba, [blocks.lba[i], blocks.lba[i] + 1]))
        known.parts[int(at[i])] = blocks.part_seen[parts].copy()


def unjudged(rows: np.ndarray, blocks: Blocks, promise: Promise, settled: bool = True) -> tuple[Blocks, Verdict]:
    """Knowledge of blocks read after commands whose acknowledgements mean nothing: one that these touch may hold
    anything, another one its earlier candidates. `settled`: none of the commands was outstanding any more; else
    their blocks may still change."""
    never = rows.copy()
    never["done_ns"] = NEVER
    result = judge(Session(never, 0, NEVER, 0, 0), blocks, promise)
    touched = _any(pairs(never, blocks.lba)[0], len(blocks.lba))
    free = touched | _unchanged(blocks) | (blocks.base == record.UNKNOWN)
    finding = np.where(free, 0, result.finding).astype(np.uint8)
    seen = blocks.seen if settled else np.where(touched, record.UNKNOWN, blocks.seen)
    return blocks._replace(seen=seen), result._replace(finding=finding)


def next_base(blocks: Blocks) -> np.ndarray:
    """What the next session starts from, int64[m]: an error is counted once, and its block then may hold anything until
    a durable write. One that could be read must be read again. A torn block whose parts are known is not ambiguous."""
    lost = np.isin(blocks.seen, [code for code in BAD if code != record.UNREADABLE])
    lost &= ~((blocks.seen == record.TORN) & np.isin(blocks.lba, blocks.part_lba))
    return np.where(lost, record.UNKNOWN, blocks.seen)


def pairs(rows: np.ndarray, lba: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(index into lba, index into rows) of each block that each command covers, in the order of rows."""
    first = rows["lba"].astype(np.int64)
    low = np.searchsorted(lba, first)
    n = np.searchsorted(lba, first + rows["n"]) - low
    row = np.repeat(np.arange(len(rows)), n)
    return np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n) + low[row], row


def _any(at: np.ndarray, m: int) -> np.ndarray:
    out = np.zeros(m, bool)
    out[at] = True
    return out


def _as_writes(rows: np.ndarray) -> np.ndarray:
    """With trims as if they were plain writes."""
    out = rows.copy()
    out["kind"][rows["kind"] == TRIM] = WRITE
    return out


def _least_trim(rows: np.ndarray) -> int:
    """Blocks of the shortest trim that was read as trimmed from its first block on: a drive may leave out one that is
    shorter than its granularity. NEVER: none was."""
    trims = rows[(rows["kind"] == TRIM) & (rows["status"] == 0)]
    blank = rows["lba"][(rows["kind"] == BLANK) & (rows["status"] == 0)]
    return int(trims["n"].astype(np.int64)[np.isin(trims["lba"], blank)].min(initial=NEVER))


def _torn(rows, counted, promise, block, row, seen_row, seen_ns, whole) -> np.ndarray:
    """int64[m]: the write within the atomic limit that is seen elsewhere while this block holds something strictly
    older, one that was not acknowledged before others; -1 without one."""
    lba, n = rows["lba"].astype(np.int64), rows["n"].astype(np.int64)
    atomic = (rows["kind"] == WRITE) & (rows["flags"] & ZEROS == 0) & (n >= 2) & (n <= promise.atomic_blocks)
    if promise.boundary_blocks:
        piece = lambda at: (at - promise.boundary_offset) // promise.boundary_blocks
        atomic &= piece(lba) == piece(lba + n - 1)
    seen = _any(row[seen_row[block] == row], len(rows))
    old = whole[block] & (seen_row[block] != row) & (seen_ns[block] < rows["submit_ns"][row])
    hit = (atomic & seen)[row] & old
    out = np.full(len(seen_row), -1, np.int64)
    for acked in (True, False):
        of = hit & (counted[row] == acked)
        out[block[of]] = row[of]
    return out


def _near(rows: np.ndarray, lba: np.ndarray, blocks: int) -> np.ndarray:
    """bool[m]: blocks in the same aligned piece of `blocks` as one of these commands."""
    first = rows["lba"].astype(np.int64)
    low = np.searchsorted(lba, first // blocks * blocks)
    high = np.searchsorted(lba, -(-(first + rows["n"]) // blocks) * blocks)
    steps = np.zeros(len(lba) + 1, np.int64)
    np.add.at(steps, low, 1)
    np.add.at(steps, high, -1)
    return np.cumsum(steps[:-1]) > 0
