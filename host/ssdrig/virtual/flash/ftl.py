"""The flash translation layer: page map, garbage collection, wear levelling, SLC cache. Flat arrays, Numba. SIMULATED.

    l2p    u32[pages]        logical page -> physical page, NONE if not mapped
    p2l    u32[blocks * NP]  physical page -> logical page last programmed there (the spare area; is in a file)
    bits   u64[blocks * W]   one bit per physical page: it holds current data; W = ceil(NP / 64) words a block
    blk    i32[blocks, ROW]  per block (= GC unit): valid pages, P/E count, list links, state, age
    lists  i32[...]          heads of the bucket lists by valid count (NP + 1), ring of free blocks, ring of closed ones
    m      i64[M_LENGTH]     constants, state, counts (see nand.py)
    die, ring                timing of dies, bins of the power feed
    cache    i64[RING, 3]    the latest versions of host pages, by number: logical page, accepted by the write cache,
                             on NAND; the last CACHE_PAGES of them are its slots
    log      i64[RING, 8]    the latest commands but reads, by number (L_ columns)

Host and relocated pages share one frontier, as in the theory that the write amplification is checked against.
Collection: greedy (fewest valid pages) or FIFO. Foreground: a new block is opened and fewer than RESERVE blocks are
free -> whole victims until that many are free. Paced (GC_PACE > 0): from GC_LOW free blocks on until GC_HIGH are free,
GC_PACE / 256 times V / (NP - V) relocations after each host page; 256 would just hold the level.
"""

import numpy as np

from ssdrig.base.kernels import inline, jit
from ssdrig.virtual.flash import nand
from ssdrig.virtual.flash.nand import *

NONE = np.uint32(0xFFFFFFFF)
VALID, PE, NEXT, PREV, STATE, AGE, STRESS, WORST = range(8)  # the last three: see aged.py
ROW = 8  # words of a row of blk: a row never is in two cache lines
ONE = np.uint64(1)
FREE, OPEN, CLOSED, VICTIM, SLC = range(5)
FAR = np.int64(1 << 62)
C_PAGE, C_ACCEPTED, C_DURABLE = range(3)
L_OP, L_FLAGS, L_PAGE, L_PAGES, L_VERSION, L_CAME, L_DONE = range(7)  # L_VERSION: number of its first page's version
L_ROW = 8


@inline
def bucket_push(d, b, v):
    h = d.lists[v]
    d.blk[ROW * b + NEXT] = h
    d.blk[ROW * b + PREV] = -1
    if h >= 0:
        d.blk[ROW * h + PREV] = b
    d.lists[v] = b


@inline
def bucket_remove(d, b, v):
    n = d.blk[ROW * b + NEXT]
    p = d.blk[ROW * b + PREV]
    if p >= 0:
        d.blk[ROW * p + NEXT] = n
    else:
        d.lists[v] = n
    if n >= 0:
        d.blk[ROW * n + PREV] = p


@inline
def block_of(d, ppn):
    """ppn // NP, exact for ppn < 2**31 (Granlund, Montgomery 1994)."""
    return (np.int64(ppn) * d.m[K_NP_MAGIC]) >> d.m[K_NP_SHIFT]


@inline
def invalidate(d, ppn):
    """The page at ppn holds no current data any more."""
    m = d.m
    b = block_of(d, ppn)
    pos = np.int64(ppn) - b * m[K_NP]
    d.bits[b * m[K_WORDS] + (pos >> 6)] &= ~(ONE << np.uint64(pos & 63))
    v = d.blk[ROW * b + VALID] - 1
    d.blk[ROW * b + VALID] = v
    if d.blk[ROW * b + STATE] == CLOSED and m[K_FIFO] == 0:
        bucket_remove(d, b, v + 1)
        bucket_push(d, b, v)
        if v < m[S_MIN_VALID]:
            m[S_MIN_VALID] = v


@jit
def open_block(d):
    """Take the least worn of the first eight free blocks as the main frontier (dynamic wear levelling)."""
    m = d.m
    n = m[S_FREE]
    if n == 0:
        m[S_BROKEN] = 1
        return
    units = m[K_UNITS]
    base = m[K_NP] + 1
    head = m[S_FREE_HEAD]
    first = base + head
    best = first
    for i in range(1, min(n, 8)):
        at = base + (head + i) % units
        if d.blk[ROW * d.lists[at] + PE] < d.blk[ROW * d.lists[best] + PE]:
            best = at
    b = d.lists[best]
    d.lists[best] = d.lists[first]
    m[S_FREE_HEAD] = (head + 1) % units
    m[S_FREE] = n - 1
    d.blk[ROW * b + STATE] = OPEN
    m[S_BLOCK] = b
    m[S_OFF] = 0
    m[S_START] = 0


@inline
def slc_has_room(m):
    """Whether the next host page goes to the SLC cache. Units that the cache borrows from the free ones are given back
    as the drive fills up: this many of them as the share of its pages that hold nothing."""
    if m[K_SLC_UNITS] == 0 or m[S_BLOCK_SLC] >= 0:
        return m[K_SLC_UNITS] > 0
    most = m[K_SLC_UNITS] - m[K_SLC_LEAST]
    return (m[S_SLC_COUNT] - m[K_SLC_LEAST]) * m[K_PAGES] < most * (m[K_PAGES] - m[S_MAPPED])


@jit
def open_slc(d):
    m = d.m
    b = m[K_UNITS] + m[S_SLC_HEAD] % m[K_SLC_UNITS]
    m[S_SLC_HEAD] += 1
    m[S_SLC_COUNT] += 1
    d.blk[ROW * b + STATE] = SLC
    m[S_BLOCK_SLC] = b
    m[S_OFF_SLC] = 0
    m[S_START_SLC] = 0


@jit
def close_block(d, b):
    m = d.m
    d.blk[ROW * b + STATE] = CLOSED
    if m[K_FIFO]:
        units = m[K_UNITS]
        d.lists[m[K_NP] + 1 + units + (m[S_FIFO_HEAD] + m[S_FIFO_COUNT]) % units] = b
        m[S_FIFO_COUNT] += 1
    else:
        v = d.blk[ROW * b + VALID]
        bucket_push(d, b, v)
        if v < m[S_MIN_VALID]:
            m[S_MIN_VALID] = v


@jit
def dispatch(d, stream, pad):
    """Send the open unit to its die, however full; with `pad` filled up to a whole NAND page first."""
    m = d.m
    s = stream * STREAM_WORDS
    off = m[S_OFF + s]
    start = m[S_START + s]
    if off == start:
        return
    first = m[S_BLOCK + s] * m[K_NP]
    if pad:
        while off % m[K_PAD_PAGES]:
            d.p2l[first + off] = NONE
            off += 1
            m[N_PAD] += 1
            m[S_EXTRA + s] += 1
        m[S_OFF + s] = off
    end = nand.program(d, first + start, off - start, m[S_EXTRA + s], stream == 1, m[S_READY + s])
    m[S_START + s] = off
    n = m[S_PENDING + s]
    if n and m[K_LATENCY]:
        for q in range(m[S_SEQ] - n, m[S_SEQ]):
            d.cache[3 * (q & m[K_RING]) + C_DURABLE] = end
        if end > m[S_DURABLE]:
            m[S_DURABLE] = end
    m[S_EXTRA + s] = 0
    m[S_PENDING + s] = 0


@inline
def advance_frontier(d, s, b, off, limit, unit):
    """The open block b of the stream with words at s is full up to off: send and close what that makes full."""
    m = d.m
    m[S_OFF + s] = off
    if off - m[S_START + s] >= unit or off == limit:
        dispatch(d, s // STREAM_WORDS, False)
    if off == limit:
        m[S_BLOCK + s] = -1
        if s == 0:
            close_block(d, b)


@inline
def place(d, stream, lpn, ready):
    """Put logical page lpn of the host at the frontier of the stream, which must be open."""
    m = d.m
    s = stream * STREAM_WORDS
    b = m[S_BLOCK + s]
    off = m[S_OFF + s]
    ppn = b * m[K_NP] + off
    d.p2l[ppn] = np.uint32(lpn)
    d.l2p[lpn] = np.uint32(ppn)
    d.bits[b * m[K_WORDS] + (off >> 6)] |= ONE << np.uint64(off & 63)
    d.blk[ROW * b + VALID] += 1
    if ready > m[S_READY + s]:
        m[S_READY + s] = ready
    m[S_PENDING + s] += 1
    limit = m[K_SLC_NP] if stream else m[K_NP]
    advance_frontier(d, s, b, off + 1, limit, m[K_PLANE_PAGES] if stream else m[K_PROG_PAGES])


@jit
def fewest_valid(d):
    """Valid pages of the block that greedy collection would take; NP if none would give a page back."""
    m = d.m
    v = m[S_MIN_VALID]
    while v < m[K_NP] and d.lists[v] < 0:
        v += 1
    m[S_MIN_VALID] = v
    return v


@jit
def pick_victim(d):
    """Choose the block to collect; False if none would give a page back."""
    m = d.m
    np_ = m[K_NP]
    m[S_VICTIM_CAUSE] = -1
    if m[K_FIFO]:
        if m[S_FIFO_COUNT] == 0:
            return False
        units = m[K_UNITS]
        b = np.int64(d.lists[np_ + 1 + units + m[S_FIFO_HEAD]])
        m[S_FIFO_HEAD] = (m[S_FIFO_HEAD] + 1) % units
        m[S_FIFO_COUNT] -= 1
    elif m[S_WL_NEXT] >= 0 and d.blk[ROW * m[S_WL_NEXT] + STATE] == CLOSED:
        b = m[S_WL_NEXT]
        m[S_VICTIM_CAUSE] = N_WL
        bucket_remove(d, b, d.blk[ROW * b + VALID])
    else:
        v = fewest_valid(d)
        if v >= np_:
            return False
        b = np.int64(d.lists[v])
        bucket_remove(d, b, v)
    m[S_WL_NEXT] = -1
    d.blk[ROW * b + STATE] = VICTIM
    m[S_VICTIM] = b
    m[S_GROUP] = -1
    v = np.int64(d.blk[ROW * b + VALID])
    for i in range(b * np_, (b + 1) * np_, 16):  # a cache line holds 16
        prefetch(d.p2l, i)
    m[S_VICTIM_RATE] = m[K_GC_PACE] * v // max(np_ - v, 1)
    return True


@jit
def give_back(d, b, t):
    """Erase block b. Every erase also looks at one more block: one far less worn than the mean is collected next
    (static wear levelling), so that cold data does not keep its block out of use."""
    m = d.m
    d.blk[ROW * b + PE] += 1
    d.blk[ROW * b + STATE] = FREE
    m[S_AGED] -= d.blk[ROW * b + WORST] > 0
    d.blk[ROW * b + AGE] = d.blk[ROW * b + STRESS] = d.blk[ROW * b + WORST] = 0
    m[N_ERASES] += 1
    units = m[K_UNITS]
    if b < units:
        m[S_MAIN_ERASES] += 1
        d.lists[m[K_NP] + 1 + (m[S_FREE_HEAD] + m[S_FREE]) % units] = b
        m[S_FREE] += 1
        c = (m[S_WL_CURSOR] + 1) % units
        m[S_WL_CURSOR] = c
        if d.blk[ROW * c + STATE] == CLOSED and d.blk[ROW * c + PE] + m[K_WL_THRESHOLD] < m[S_MAIN_ERASES] // units:
            m[S_WL_NEXT] = c
    nand.erase(d, m[K_NP], t)


@inline
def mark(d, b, off, n):
    """Pages off .. off + n - 1 of block b hold current data from now on."""
    d.blk[ROW * b + VALID] += np.int32(n)
    first = b * d.m[K_WORDS]
    end = off + n
    while off < end:
        k = min(end - off, 64 - (off & 63))
        d.bits[first + (off >> 6)] |= (~np.uint64(0) >> np.uint64(64 - k)) << np.uint64(off & 63)
        off += k


@jit
def fetch(d, ppn, t):
    """With the latency model: read page ppn for relocation, asked for at t. One read serves all pages of a multi-plane
    page. Returns when it is in the buffer."""
    m = d.m
    if ppn >> m[K_PLANE_SHIFT] != m[S_GROUP]:
        m[S_GROUP] = ppn >> m[K_PLANE_SHIFT]
        m[S_GROUP_DIE] = nand.die_of(d, ppn)
        m[S_GROUP_READY] = nand.read(d, m[S_GROUP_DIE], t, True)
    return nand.transfer_out(d, m[S_GROUP_DIE], t, m[S_GROUP_READY])


@inline
def relocate_block(d, b, limit, cause, t):
    """Read the first `limit` valid pages of block b and program them at the main frontier, in runs up to the end of a
    program unit: counters are updated once a run. One read serves all pages of a multi-plane page. Returns how
    many there were."""
    m = d.m
    np_ = m[K_NP]
    shift = m[K_PLANE_SHIFT]
    latency = m[K_LATENCY]
    todo = min(limit, np.int64(d.blk[ROW * b + VALID]))
    first = b * np_
    group = m[S_GROUP]
    reads = moved = 0
    w = b * m[K_WORDS]
    word = d.bits[w]
    while moved < todo:
        if m[S_BLOCK] < 0:
            open_block(d)
            if m[S_BROKEN]:
                break
        to = m[S_BLOCK]
        off = m[S_OFF]
        n = min(todo - moved, min(m[K_PROG_PAGES] - (off - m[S_START]), np_ - off))
        ready = t if latency == 0 else np.int64(0)
        for at in range(to * np_ + off, to * np_ + off + n):
            while word == 0:
                d.bits[w] = word
                w += 1
                first += 64
                word = d.bits[w]
            ppn = first + trailing_zeros(word)
            word &= word - ONE
            reads += ppn >> shift != group
            group = ppn >> shift
            if latency:
                ready = max(ready, fetch(d, ppn, t))
            lpn = d.p2l[ppn]
            d.p2l[at] = lpn
            d.l2p[lpn] = np.uint32(at)
        d.blk[ROW * b + VALID] -= np.int32(n)
        mark(d, to, off, n)
        moved += n
        m[S_EXTRA] += n
        m[S_READY] = max(m[S_READY], ready)
        advance_frontier(d, 0, to, off + n, np_, m[K_PROG_PAGES])
    if latency == 0:
        m[S_GROUP] = group
    d.bits[w] = word
    # Paced collection moves the next pages a few host writes later: by then their map entries are in the cache.
    for _ in range(min(moved, np.int64(d.blk[ROW * b + VALID]))):
        while word == 0:
            w += 1
            first += 64
            word = d.bits[w]
        prefetch(d.l2p, np.int64(d.p2l[first + trailing_zeros(word)]))
        word &= word - ONE
    m[cause] += moved
    m[N_NAND_READ_PAGES] += moved
    nJ = moved * (m[K_E_IO_PJ] // 1000)
    m[E_TRANSFER] += nJ
    if latency == 0:
        nand.reads_at_once(d, reads)
        if reads:
            m[S_GROUP_READY] = t
        m[S_BATCH_NJ] += nJ
    return moved


@jit
def collect(d, limit, until, cause, t):
    """Collect garbage until `limit` pages are moved or `until` blocks are free. False when nothing can be gained."""
    m = d.m
    while m[S_FREE] < until and m[S_BROKEN] == 0:
        b = m[S_VICTIM]
        if b < 0:
            if not pick_victim(d):
                return False
            b = m[S_VICTIM]
        why = m[S_VICTIM_CAUSE] if m[S_VICTIM_CAUSE] >= 0 else cause
        limit -= relocate_block(d, b, limit, why, t)
        if d.blk[ROW * b + VALID] > 0:
            return True
        m[S_VICTIM] = -1
        give_back(d, b, t)
        if limit <= 0:
            return True
    return True
