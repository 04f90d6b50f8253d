"""The flash translation layer: page map, garbage collection, wear levelling, SLC cache. Flat arrays, Numba. SIMULATED.

    l2p    u32[pages]        logical page -> physical page, NONE if not mapped
    p2l    u32[blocks * NP]  physical page -> logical page last programmed there (the spare area; lies in a file)
    blk    i32[blocks, 5]    per block (= GC unit): valid pages, P/E count, list links, state
    lists  i32[...]          heads of the bucket lists by valid count (NP + 1), ring of free blocks, ring of closed ones
    m      i64[M_LENGTH]     constants, state, counts (see nand.py)
    die, cache, ring         timing of dies, write-cache slots (logical page, accepted, durable), bins of the power feed

A physical page is valid when l2p of its logical page points back to it: no bitmap is needed.
Host and relocated pages share one frontier, as in the theory that the write amplification is checked against.
Collection: greedy (fewest valid pages) or FIFO. Foreground: a new block is opened and fewer than RESERVE blocks are
free -> whole victims until that many are free. Paced (GC_PACE > 0): from GC_LOW free blocks on until GC_HIGH are free,
GC_PACE / 256 times V / (NP - V) relocations after each host page; 256 would just hold the level.
"""

import numpy as np

from . import nand
from .kernels import jit
from .nand import *  # noqa: F403  the names of constants, state and counts

NONE = np.uint32(0xFFFFFFFF)
VALID, PE, NEXT, PREV, STATE = range(5)
FREE, OPEN, CLOSED, VICTIM, SLC = range(5)
FAR = np.int64(1 << 62)
C_PAGE, C_ACCEPTED, C_DURABLE = range(3)


@jit
def bucket_push(blk, lists, b, v):
    h = lists[v]
    blk[b, NEXT] = h
    blk[b, PREV] = -1
    if h >= 0:
        blk[h, PREV] = b
    lists[v] = b


@jit
def bucket_remove(blk, lists, b, v):
    n = blk[b, NEXT]
    p = blk[b, PREV]
    if p >= 0:
        blk[p, NEXT] = n
    else:
        lists[v] = n
    if n >= 0:
        blk[n, PREV] = p


@jit
def invalidate(blk, lists, m, ppn):
    """The page at ppn holds no current data any more."""
    b = np.uint32(ppn) // np.uint32(m[K_NP])
    v = blk[b, VALID] - 1
    blk[b, VALID] = v
    if blk[b, STATE] == CLOSED and m[K_FIFO] == 0:
        bucket_remove(blk, lists, b, v + 1)
        bucket_push(blk, lists, b, v)
        if v < m[S_MIN_VALID]:
            m[S_MIN_VALID] = v


@jit
def open_block(blk, lists, m):
    """Take the least worn of the first eight free blocks as the main frontier (dynamic wear levelling)."""
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
        if blk[lists[at], PE] < blk[lists[best], PE]:
            best = at
    b = lists[best]
    lists[best] = lists[first]
    m[S_FREE_HEAD] = (head + 1) % units
    m[S_FREE] = n - 1
    blk[b, STATE] = OPEN
    m[S_BLOCK] = b
    m[S_OFF] = 0
    m[S_START] = 0


@jit
def open_slc(blk, m):
    b = m[K_UNITS] + m[S_SLC_HEAD] % m[K_SLC_UNITS]
    m[S_SLC_HEAD] += 1
    m[S_SLC_COUNT] += 1
    blk[b, STATE] = SLC
    m[S_BLOCK_SLC] = b
    m[S_OFF_SLC] = 0
    m[S_START_SLC] = 0


@jit
def close_block(blk, lists, m, b):
    blk[b, STATE] = CLOSED
    if m[K_FIFO]:
        units = m[K_UNITS]
        lists[m[K_NP] + 1 + units + (m[S_FIFO_HEAD] + m[S_FIFO_COUNT]) % units] = b
        m[S_FIFO_COUNT] += 1
    else:
        v = blk[b, VALID]
        bucket_push(blk, lists, b, v)
        if v < m[S_MIN_VALID]:
            m[S_MIN_VALID] = v


@jit
def dispatch(p2l, m, die, cache, ring, stream, pad):
    """Send the open unit to its die, however full; with `pad` filled up to a whole NAND page first."""
    s = stream * STREAM_WORDS
    off = m[S_OFF + s]
    start = m[S_START + s]
    if off == start:
        return
    first = m[S_BLOCK + s] * m[K_NP]
    if pad:
        while off % m[K_PAD_PAGES]:
            p2l[first + off] = NONE
            off += 1
            m[N_PAD] += 1
            m[S_EXTRA + s] += 1
        m[S_OFF + s] = off
    end = nand.program(m, die, ring, first + start, off - start, m[S_EXTRA + s], stream == 1, m[S_READY + s])
    m[S_START + s] = off
    n = m[S_PENDING + s]
    if n and m[K_LATENCY]:
        for q in range(m[S_SEQ] - n, m[S_SEQ]):
            cache[q % m[K_CACHE_PAGES], C_DURABLE] = end
        if end > m[S_DURABLE]:
            m[S_DURABLE] = end
    m[S_EXTRA + s] = 0
    m[S_PENDING + s] = 0


@jit
def place(l2p, p2l, blk, lists, m, die, cache, ring, stream, lpn, ready, host):
    """Put logical page lpn at the frontier of the stream (which must be open); send and close what becomes full."""
    s = stream * STREAM_WORDS
    b = m[S_BLOCK + s]
    off = m[S_OFF + s]
    ppn = b * m[K_NP] + off
    p2l[ppn] = np.uint32(lpn)
    l2p[lpn] = np.uint32(ppn)
    blk[b, VALID] += 1
    off += 1
    m[S_OFF + s] = off
    if ready > m[S_READY + s]:
        m[S_READY + s] = ready
    if host:
        m[S_PENDING + s] += 1
    else:
        m[S_EXTRA + s] += 1
    limit = m[K_SLC_NP] if stream else m[K_NP]
    unit = m[K_PLANE_PAGES] if stream else m[K_PROG_PAGES]
    if off - m[S_START + s] >= unit or off == limit:
        dispatch(p2l, m, die, cache, ring, stream, False)
    if off == limit:
        m[S_BLOCK + s] = -1
        if stream == 0:
            close_block(blk, lists, m, b)


@jit
def pick_victim(blk, lists, m):
    """Choose the block to collect; False if none would give a page back."""
    np_ = m[K_NP]
    m[S_VICTIM_CAUSE] = -1
    if m[K_FIFO]:
        if m[S_FIFO_COUNT] == 0:
            return False
        units = m[K_UNITS]
        b = np.int64(lists[np_ + 1 + units + m[S_FIFO_HEAD]])
        m[S_FIFO_HEAD] = (m[S_FIFO_HEAD] + 1) % units
        m[S_FIFO_COUNT] -= 1
    elif m[S_WL_NEXT] >= 0 and blk[m[S_WL_NEXT], STATE] == CLOSED:
        b = m[S_WL_NEXT]
        m[S_VICTIM_CAUSE] = N_WL
        bucket_remove(blk, lists, b, blk[b, VALID])
    else:
        v = m[S_MIN_VALID]
        while v < np_ and lists[v] < 0:
            v += 1
        m[S_MIN_VALID] = v
        if v >= np_:
            return False
        b = np.int64(lists[v])
        bucket_remove(blk, lists, b, v)
    m[S_WL_NEXT] = -1
    blk[b, STATE] = VICTIM
    m[S_VICTIM] = b
    m[S_VICTIM_POS] = 0
    m[S_GROUP] = -1
    v = np.int64(blk[b, VALID])
    m[S_VICTIM_RATE] = m[K_GC_PACE] * v // max(np_ - v, 1)
    return True


@jit
def give_back(blk, lists, m, die, ring, b, t):
    """Erase block b. Every erase also looks at one more block: one far less worn than the mean is collected next
    (static wear levelling), so that cold data does not keep its block out of use."""
    blk[b, PE] += 1
    blk[b, STATE] = FREE
    m[N_ERASES] += 1
    units = m[K_UNITS]
    if b < units:
        m[S_MAIN_ERASES] += 1
        lists[m[K_NP] + 1 + (m[S_FREE_HEAD] + m[S_FREE]) % units] = b
        m[S_FREE] += 1
        c = (m[S_WL_CURSOR] + 1) % units
        m[S_WL_CURSOR] = c
        if blk[c, STATE] == CLOSED and blk[c, PE] + m[K_WL_THRESHOLD] < m[S_MAIN_ERASES] // units:
            m[S_WL_NEXT] = c
    nand.erase(m, die, ring, m[K_NP], t)


@jit
def relocate(l2p, p2l, blk, lists, m, die, cache, ring, ppn, lpn, cause, t):
    """Read the valid page at ppn and program it at the main frontier. One read serves all pages of a NAND page."""
    if m[S_BLOCK] < 0:
        open_block(blk, lists, m)
        if m[S_BROKEN]:
            return
    group = ppn // m[K_PLANE_PAGES]
    if group != m[S_GROUP]:
        m[S_GROUP] = group
        m[S_GROUP_READY] = nand.read(m, die, ring, ppn, 1, t, True)
    blk[ppn // m[K_NP], VALID] -= 1
    m[cause] += 1
    m[N_NAND_READ_PAGES] += 1
    place(l2p, p2l, blk, lists, m, die, cache, ring, 0, lpn, m[S_GROUP_READY], False)


@jit
def collect(l2p, p2l, blk, lists, m, die, cache, ring, limit, until, cause, t):
    """Collect garbage until `limit` pages are moved or `until` blocks are free. False when nothing can be gained."""
    np_ = m[K_NP]
    while m[S_FREE] < until and m[S_BROKEN] == 0:
        b = m[S_VICTIM]
        if b < 0:
            if not pick_victim(blk, lists, m):
                return False
            b = m[S_VICTIM]
        pos = m[S_VICTIM_POS]
        base = b * np_
        why = m[S_VICTIM_CAUSE] if m[S_VICTIM_CAUSE] >= 0 else cause
        while blk[b, VALID] > 0 and limit > 0 and m[S_BROKEN] == 0 and pos < np_:
            ppn = base + pos
            lpn = p2l[ppn]
            if lpn != NONE and l2p[lpn] == ppn:
                relocate(l2p, p2l, blk, lists, m, die, cache, ring, ppn, lpn, why, t)
                limit -= 1
            pos += 1
        m[S_VICTIM_POS] = pos
        if blk[b, VALID] > 0:
            return True
        m[S_VICTIM] = -1
        give_back(blk, lists, m, die, ring, b, t)
        if limit <= 0:
            return True
    return True
