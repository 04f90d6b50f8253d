"""Contents a host may find on a page of the SIMULATED drive after a cut, from the drive's own record of its requests:
the truth against which a judge is measured. It shares no code with the judge (powerloss/verdict.py). Pure.

Of one block: a write is kept if it was answered before the cut, and had FUA, or a FLUSH that was answered came after
its answer, or the drive keeps all that it answers. A block that was read as trimmed, and then flushed, must not hold
data older than that read. The newest surviving request, by arrival, is the limit: everything answered before
the limit came is gone for good. With nothing kept, what the block held before the session is allowed, too.

A host sees an answer later than the drive gives it. An error here is an error for each host that sees every answer
within seen_ns."""

from typing import NamedTuple

ZEROS = bytes(4096)
NEVER = 1 << 62
NONE = -NEVER


class Change(NamedTuple):
    """One write or trim of a page, times in ns; done_ns NEVER if it was not answered before the cut. before, after:
    the whole page."""

    came_ns: int
    done_ns: int
    fua: bool
    trim: bool
    before: bytes
    after: bytes


class Read(NamedTuple):
    """The page read as zeros."""

    came_ns: int
    done_ns: int


def last_flush_ns(flushes, cut_ns: int) -> int:
    """When the latest FLUSH came that was answered. flushes: (came_ns, done_ns) each."""
    return max((came for came, done in flushes if done <= cut_ns), default=NONE)


def illegal(
    content: bytes | None,
    base: bytes,
    unknown: set[int],
    changes: list[Change],
    blanks: list[Read],
    flush_ns: int,
    keeps_all: bool,
    seen_ns: int,
    block_bytes: int,
) -> list[int]:
    """Blocks of a page (0 is its first) that show what no drive that keeps its promise shows. found: the page as it
    reads, None if it does not; base: before the session; unknown: blocks with unknown content at that time;
    changes: of the session, in the order in which they came."""
    out = []
    for block in range(len(base) // block_bytes):
        part = slice(block * block_bytes, (block + 1) * block_bytes)
        writes = [c for c in changes if c.trim or c.before[part] != c.after[part]]
        limit_ns = NONE
        for c in writes:
            if not c.trim and c.done_ns < NEVER and (keeps_all or c.fua or c.done_ns + seen_ns <= flush_ns):
                limit_ns = max(limit_ns, c.came_ns)
        now = content[part] if content is not None else None
        if now != ZEROS[part]:
            for read in blanks:
                if read.done_ns < NEVER and (keeps_all or read.done_ns + seen_ns <= flush_ns):
                    limit_ns = max(limit_ns, read.came_ns)
        allowed = any(now == c.after[part] and c.done_ns + seen_ns >= limit_ns for c in writes)
        if limit_ns == NONE:
            allowed |= now == base[part] or block in unknown
        if not allowed:
            out.append(block)
    return out
