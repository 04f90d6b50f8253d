"""What the page shows of one session, taken from its commands when it is judged: a report of hundreds of cuts reads
these few kilobytes each, not the histories. Pure."""

from typing import TYPE_CHECKING

import numpy as np

from ssdrig.powerloss.history import FLUSH, FUA, WRITE
from ssdrig.powerloss.promise import Promise

if TYPE_CHECKING:
    from ssdrig.powerloss.verdict import Blocks, Session, Verdict

BEFORE_MS, AFTER_MS = 350, 50  # around the cut, a bin each millisecond
MOST_MARKS = 48  # of FLUSHes, and of writes with FUA: those next to the cut
MOST_TORN = 20
# age of an acknowledged write at the cut: bins from each of these to the next, the last one open
AGES_MS = (*range(0, 250, 5), 250, 500, 1000, 2000, 5000, 10_000, 30_000)


def of_cut(session: "Session", blocks: "Blocks", promise: Promise, verdict: "Verdict") -> dict:
    """{"ages", "lost_bytes", "suffix", "ticks", "flushes", "fuas", "in_flight", "lost_us", "volatile_us", "torn"}.
    Times are µs from the cut, negative before it; null: absent.

    ages: {"kept": counts by AGES_MS, "lost": counts} of writes that were acknowledged, that no promise covers, and
    whose fate is seen; one that a later write has replaced is in neither. suffix: {"newer": writes of these that were
    acknowledged no earlier than the oldest lost one, "lost": those of them that are lost}: equal where the drive loses
    a suffix. ticks: {"submitted": [...], "acknowledged": [...]} of writes by the millisecond. flushes, fuas:
    [submitted, acknowledged or null]. in_flight: {"count", "since_us", "blocks"}. lost_us: acknowledgement of the first
    write that had to survive and did not; volatile_us: of the first one lost that had not to. torn: [blocks present,
    blocks, whether these are its first ones] of writes under way that are there in part."""
    # here, since it is compiled: a report wants the rest of this module, and is there half a second earlier
    from ssdrig.powerloss.verdict import counts, durable

    rows, counted, lasting = session.rows, counts(session), durable(session, promise)
    write = rows["kind"] == WRITE
    done_us = np.where(counted, (rows["done_ns"] - session.cut_ns) / 1e3, np.nan)
    submit_us = (rows["submit_ns"] - session.cut_ns) / 1e3
    seen, present = np.unique(verdict.seen_row[verdict.seen_row >= 0], return_counts=True)
    free = write & counted & ~lasting
    lost = np.zeros(len(rows), bool)
    lost[verdict.lost_volatile] = True
    lost &= free
    there = np.zeros(len(rows), bool)
    there[seen] = True
    there &= free & ~lost
    under_way = write & ~counted
    first_lost = verdict.durable_row[verdict.failed()]
    torn_row = verdict.torn_row[verdict.torn_row >= 0]
    had_to = np.union1d(first_lost[first_lost >= 0], torn_row)
    return {
        "ages": {"kept": _by_age(done_us[there]), "lost": _by_age(done_us[lost])},
        "lost_bytes": int(rows["n"][lost].sum()) * promise.block_bytes,
        "suffix": _suffix(done_us, lost, there),
        "ticks": {"submitted": _ticks(submit_us[write]), "acknowledged": _ticks(done_us[write & counted])},
        "flushes": _marks(submit_us, done_us, rows["kind"] == FLUSH),
        "fuas": _marks(submit_us, done_us, write & (rows["flags"] & FUA > 0)),
        "in_flight": {
            "count": int(under_way.sum()),
            "since_us": _whole(submit_us[under_way].min()) if under_way.any() else None,
            "blocks": int(rows["n"][under_way].sum()),
        },
        "lost_us": _first(done_us[had_to]),
        "volatile_us": _first(done_us[lost]),
        "torn": _torn(session, blocks, verdict, seen[under_way[seen]], present[under_way[seen]]),
    }


def _whole(us: float) -> int:
    return round(float(us))


def _first(us: np.ndarray) -> int | None:
    known = us[np.isfinite(us)]
    return _whole(known.min()) if len(known) else None


def _by_age(done_us: np.ndarray) -> list[int]:
    """Counts by AGES_MS; data acknowledged after the edge, which the clock's bound allows, has age 0."""
    at = np.searchsorted(AGES_MS, np.maximum(0.0, -done_us / 1e3), "right") - 1
    return np.bincount(at, minlength=len(AGES_MS)).tolist()


def _suffix(done_us: np.ndarray, lost: np.ndarray, there: np.ndarray) -> dict[str, int] | None:
    if not lost.any():
        return None
    newer = done_us >= done_us[lost].min()
    return {"newer": int((newer & (lost | there)).sum()), "lost": int(lost.sum())}


def _ticks(us: np.ndarray) -> list[int]:
    at = np.floor(us / 1e3).astype(np.int64) + BEFORE_MS
    return np.bincount(at[(at >= 0) & (at < BEFORE_MS + AFTER_MS)], minlength=BEFORE_MS + AFTER_MS).tolist()


def _marks(submit_us: np.ndarray, done_us: np.ndarray, of: np.ndarray) -> list[list[int | None]]:
    marks = np.flatnonzero(of & (submit_us >= -1e3 * BEFORE_MS))
    near = np.sort(marks[np.argsort(np.abs(submit_us[marks]), kind="stable")[:MOST_MARKS]])
    return [[_whole(submit_us[i]), _whole(done_us[i]) if np.isfinite(done_us[i]) else None] for i in near]


def _torn(
    session: "Session", blocks: "Blocks", verdict: "Verdict", seen: np.ndarray, present: np.ndarray
) -> list[list]:
    out: list[list] = []
    for row, count in zip(seen, present, strict=True):
        n = int(session.rows["n"][row])
        if count < n and len(out) < MOST_TORN:
            last = int(blocks.lba[verdict.seen_row == row].max()) - int(session.rows["lba"][row])
            out.append([int(count), n, bool(last + 1 == count)])
    return out
