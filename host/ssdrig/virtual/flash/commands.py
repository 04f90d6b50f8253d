"""Host commands and background work on top of the flash translation layer. SIMULATED.

A command passes the controller (serial, CMD_READ or CMD_WRITE ns each), the link (serial), and for writes the write
cache: a page is accepted when a slot is free, and its slot is free again when the program that holds it has ended.
Writes complete when the cache took them; FUA when their programs have ended; FLUSH when all host programs have ended;
with power-loss protection FUA and FLUSH cost only the command. Reads of pages still in the buffer skip the NAND.
"""

import numpy as np

from ssdrig.base.kernels import inline, jit
from ssdrig.virtual.flash import aged, nand
from ssdrig.virtual.flash.ftl import *
from ssdrig.virtual.flash.nand import *
from ssdrig.virtual.flash.power_states import OPERATIONAL, fill_static, wake

READ, WRITE, FLUSH, TRIM, WRITE_ZEROES = 0, 1, 3, 4, 6
FUA = 1


@inline
def pace(d, n, t):
    """After n host pages: the relocations that keep the level, in pieces (a call per page would cost more than the
    page)."""
    m = d.m
    if m[S_GC_ON]:
        if m[S_FREE] >= m[K_GC_HIGH]:
            m[S_GC_ON] = 0
        else:
            m[S_CREDIT] += n * (m[S_VICTIM_RATE] if m[S_VICTIM] >= 0 else 256)
            moves = m[S_CREDIT] >> 8
            if moves >= 16:
                m[S_CREDIT] &= 255
                collect(d, moves, m[K_GC_HIGH], np.int64(N_GC), t)


@inline
def host_page(d, lpn, t):
    """Write one host page that has arrived at t. Returns when the write cache took it."""
    m = d.m
    if m[K_LATENCY]:
        slot = m[S_SEQ] & m[K_RING]
        t = max(max(t, m[S_ACCEPT]), d.cache[3 * ((m[S_SEQ] - m[K_CACHE_PAGES]) & m[K_RING]) + C_DURABLE])
        m[S_ACCEPT] = t
    else:
        slot = np.int64(0)
    old = d.l2p[lpn]
    if old != NONE:
        invalidate(d, old)
        d.l2p[lpn] = NONE  # collection may run before the new place is known: it must not move the old one
    else:
        m[S_MAPPED] += 1
    stream = 0
    if slc_has_room(m):
        stream = 1
        if m[S_BLOCK_SLC] < 0:
            open_slc(d)
    if stream != m[S_STREAM]:  # host pages waiting in a unit are always the last ones of the cache
        if m[S_PENDING + m[S_STREAM] * STREAM_WORDS]:
            flush_stream(d, m[S_STREAM], t)
        m[S_STREAM] = stream
    if stream == 0 and m[S_BLOCK] < 0:
        open_block(d)
        if m[S_FREE] < m[K_RESERVE]:
            collect(d, FAR, m[K_RESERVE], np.int64(N_GC), t)
            if m[S_BLOCK] < 0:
                open_block(d)
        if m[K_GC_PACE] and m[S_FREE] < m[K_GC_LOW]:
            m[S_GC_ON] = 1
    if m[S_BROKEN]:
        return t
    if m[K_LATENCY]:
        d.cache[3 * slot + C_PAGE] = lpn
        d.cache[3 * slot + C_ACCEPTED] = t
        d.cache[3 * slot + C_DURABLE] = FAR
        m[S_SEQ] += 1
    m[N_HOST] += 1
    place(d, stream, lpn, t)
    pace(d, np.int64(1), t)
    return t


@jit
def flush_stream(d, stream, t):
    """From t on program the stream's buffer, padded to a whole NAND page; close the block if full."""
    m = d.m
    s = stream * STREAM_WORDS
    if t > m[S_READY + s]:
        m[S_READY + s] = t
    dispatch(d, stream, True)
    b = m[S_BLOCK + s]
    if b >= 0 and m[S_OFF + s] >= (m[K_SLC_NP] if stream else m[K_NP]):
        m[S_BLOCK + s] = -1
        if stream == 0:
            close_block(d, b)


@jit
def flush(d, t):
    """From t on program all host pages that are still buffered. Returns when the last host page is durable."""
    m = d.m
    for stream in range(2):
        if m[S_PENDING + stream * STREAM_WORDS]:
            flush_stream(d, stream, t)
    return m[S_DURABLE]


@inline
def map_updates(m):
    """Entries of the page map that were changed since the drive was made."""
    return m[N_HOST] + m[N_TRIM_PAGES] + m[N_GC] + m[N_IDLE_GC] + m[N_WL] + m[N_FOLD] + m[N_REFRESH]


@jit
def unmap(d, first, n):
    m = d.m
    for lpn in range(first, first + n):
        old = d.l2p[lpn]
        if old != NONE:
            invalidate(d, old)
            d.l2p[lpn] = NONE
            m[S_MAPPED] -= 1


@inline
def host_read(d, first, n, ready, t):
    """Read n logical pages asked for at t, command handled at `ready`. Returns when the last one is on the host."""
    m = d.m
    m[N_READ_PAGES] += n
    out = loaded = ready
    group = k = np.int64(-1)
    steps = 0
    for lpn in range(first, first + n):
        ppn = np.int64(d.l2p[lpn])
        if ppn == NONE or (m[K_LATENCY] and in_buffer(d, ppn, t)):
            continue
        m[N_NAND_READ_PAGES] += 1
        nJ = m[K_E_IO_PJ] // 1000
        m[E_TRANSFER] += nJ
        if ppn >> m[K_PLANE_SHIFT] != group:
            group = ppn >> m[K_PLANE_SHIFT]
            k = nand.die_of(d, ppn)
            loaded = nand.read(d, k, ready, False)
            steps = 0
        if m[S_AGED]:
            loaded, steps = aged.retried(d, k, ppn, loaded, steps)
        if m[K_LATENCY]:
            out = max(out, nand.transfer_out(d, k, ready, loaded))
        else:
            m[S_BATCH_NJ] += nJ
    if m[K_LATENCY] == 0:
        return t
    m[S_LINK] = max(m[S_LINK], t) + n * m[K_LINK_PAGE_NS]
    return max(m[S_LINK], out + m[K_LINK_PAGE_NS])


@inline
def host_write(d, first, n, fua, ready, t):
    """Write n logical pages; returns the completion: in the cache, or with fua and no power-loss protection on NAND."""
    m = d.m
    m[N_WRITE_PAGES] += n
    page_ns = m[K_LINK_PAGE_NS]
    link = max(m[S_LINK], t)
    if m[K_LATENCY]:
        m[S_LINK] = link + n * page_ns
    done = ready
    for i in range(n):
        arrived = max(ready, link + (i + 1) * page_ns)
        done = host_page(d, first + i, arrived)
    if fua and m[K_PLP] == 0:
        flush(d, done)
        for i in range(min(n, m[K_CACHE_PAGES]) if m[K_LATENCY] else 0):
            done = max(done, d.cache[3 * ((m[S_SEQ] - 1 - i) & m[K_RING]) + C_DURABLE])
    return done


@inline
def command(d, op, first, n, flags, t):
    """One host command arriving at t. Returns its completion time (t with the latency model off), -1 if refused."""
    m = d.m
    if first < 0 or n < 0 or first + n > m[K_PAGES]:
        return np.int64(-1)
    latency = m[K_LATENCY]
    m[S_LAST_HOST] = t
    if m[S_SLUMBER_FROM] < m[S_FILLED]:
        m[S_CPU] = max(m[S_CPU], t + wake(d, t))
    cost = m[K_CMD_READ] if op == READ else m[K_CMD_WRITE]
    ready = t
    if latency:
        ready = max(m[S_CPU], t) + cost
        m[S_CPU] = ready
        active(d, ready - cost, ready)
    done = ready
    if op == WRITE:
        m[N_WRITE_CMDS] += 1
        m[N_FUA_CMDS] += flags & FUA
        done = host_write(d, first, n, flags & FUA, ready, t)
    elif op == READ:
        m[N_READ_CMDS] += 1
        done = host_read(d, first, n, ready, t)
    elif op == FLUSH:
        m[N_FLUSH_CMDS] += 1
        m[S_MAP_SAVED] = map_updates(m)
        if m[K_PLP] == 0:
            done = max(ready, flush(d, ready))
    elif op == TRIM or op == WRITE_ZEROES:
        m[N_TRIM_CMDS] += 1
        m[N_TRIM_PAGES] += n
        unmap(d, first, n)
    else:
        return np.int64(-1)
    return done if latency else t


@inline
def look_ahead(d, page, i):
    """Bring what the writes after page[i] will change into the cache, in steps that do not wait for each other: the map
    entry; the row and the bits of the block that it names; that block's neighbours. Pages must lie inside the drive."""
    last = page.size - 1
    prefetch(d.l2p, page[min(i + 24, last)])
    old = d.l2p[page[min(i + 16, last)]]
    if old != NONE:
        b = block_of(d, old)
        prefetch(d.blk, ROW * b)
        prefetch(d.bits, b * d.m[K_WORDS] + ((np.int64(old) - b * d.m[K_NP]) >> 6))
    old = d.l2p[page[min(i + 8, last)]]
    if old != NONE:
        b = block_of(d, old)
        prefetch(d.blk, ROW * max(d.blk[ROW * b + NEXT], 0))
        prefetch(d.blk, ROW * max(d.blk[ROW * b + PREV], 0))


@inline
def host_run(d, op, page, npages, flags, t, done, i):
    """Without the latency model: plain writes of a page from command i on that go to the open program unit before
    anything else is due, each as command() would do it; counters are updated once a run. Returns how many."""
    m = d.m
    b = m[S_BLOCK]
    slc = slc_has_room(m)
    if b < 0 or slc or m[S_STREAM] or m[S_BROKEN] or m[S_SLUMBER_FROM] < m[S_FILLED]:
        return np.int64(0)
    np_, off = m[K_NP], m[S_OFF]
    n = min(op.size - i, min(m[K_PROG_PAGES] - (off - m[S_START]), np_ - off))
    if m[S_GC_ON] and m[S_FREE] < m[K_GC_HIGH]:
        rate = m[S_VICTIM_RATE] if m[S_VICTIM] >= 0 else np.int64(256)
        if rate:
            n = min(n, max((16 * 256 - m[S_CREDIT] + rate - 1) // rate, 1))
    first, word = b * np_ + off, b * m[K_WORDS]
    k = mapped = np.int64(0)
    while k < n and op[i + k] == WRITE and npages[i + k] == 1 and flags[i + k] == 0:
        look_ahead(d, page, i + k)
        lpn = page[i + k]
        old = d.l2p[lpn]
        if old != NONE:
            invalidate(d, old)
        else:
            mapped += 1
        d.p2l[first + k] = np.uint32(lpn)
        d.l2p[lpn] = np.uint32(first + k)
        d.bits[word + ((off + k) >> 6)] |= ONE << np.uint64((off + k) & 63)  # it may be written again in this run
        done[i + k] = t
        k += 1
    if k == 0:
        return np.int64(0)
    arrived = max(t, m[S_LINK]) + m[K_LINK_PAGE_NS]
    d.blk[ROW * b + VALID] += np.int32(k)
    m[S_LAST_HOST] = t
    m[N_WRITE_CMDS] += k
    m[N_WRITE_PAGES] += k
    m[N_HOST] += k
    m[S_MAPPED] += mapped
    m[S_PENDING] += k
    m[S_READY] = max(m[S_READY], arrived)
    advance_frontier(d, 0, b, off + k, np_, m[K_PROG_PAGES])
    pace(d, k, arrived)
    return k


@jit
def submit(arrays, op, page, npages, flags, t, done):
    """All commands of a batch that arrived at t, in order; their ends into `done`. Returns how many it refused."""
    d = bind(arrays)
    m = d.m
    refused = 0
    least = most = np.int64(0)
    for i in range(op.size):
        least, most = min(least, page[i]), max(most, page[i])
    inside = least >= 0 and most < m[K_PAGES]  # a page outside is refused below; look_ahead would read there
    i = np.int64(0)
    while i < op.size:
        if inside:
            k = host_run(d, op, page, npages, flags, t, done, i) if m[K_LATENCY] == 0 else np.int64(0)
            if k:
                i += k
                continue
            look_ahead(d, page, i)
        version = m[S_SEQ]
        done[i] = command(d, op[i], page[i], npages[i], flags[i], t)
        if done[i] < 0:
            refused += 1
        elif m[K_LATENCY] and op[i] != READ:
            at = L_ROW * (m[S_LOG] & m[K_RING])
            d.log[at + L_OP], d.log[at + L_FLAGS], d.log[at + L_VERSION] = op[i], flags[i], version
            d.log[at + L_PAGE], d.log[at + L_PAGES] = page[i], npages[i]
            d.log[at + L_CAME], d.log[at + L_DONE] = t, done[i]
            m[S_LOG] += 1
        i += 1
    if m[K_LATENCY] == 0 and m[S_BATCH_NJ]:
        deposit_batch(d, t)
    return refused


@jit
def fold(d, t):
    """Move the oldest full SLC block's valid pages to the main area and erase it. False without one."""
    m = d.m
    closed = m[S_SLC_COUNT] - (1 if m[S_BLOCK_SLC] >= 0 else 0)
    if closed <= 0:
        return False
    b = m[K_UNITS] + (m[S_SLC_HEAD] - m[S_SLC_COUNT]) % m[K_SLC_UNITS]
    m[S_GROUP] = -1
    relocate_block(d, b, FAR, np.int64(N_FOLD), t)
    m[S_GROUP] = -1
    m[S_SLC_COUNT] -= 1
    give_back(d, b, t)
    collect(d, FAR, m[K_RESERVE], np.int64(N_GC), t)
    return True


@jit
def background(d, t):
    """What the drive does on its own up to t: static power, history, and when idle: drain the cache, fold, collect
    (greedy only, and only blocks that give back at least one page in sixteen), refresh (greedy only)."""
    m = d.m
    fill_static(d, t)
    seal(d, t)
    idle = t - m[S_LAST_HOST]
    if idle >= m[K_DRAIN_NS]:
        m[S_MAP_SAVED] = map_updates(m)
    if idle >= m[K_DRAIN_NS] and m[S_PENDING] + m[S_PENDING_SLC] > 0 and m[K_PLP] == 0:
        flush(d, t + wake(d, t))
    rounds = 64
    # a drive that the host has sent to sleep does not work on its own (NOPPME)
    while idle >= m[K_IDLE_NS] and m[S_TABLE] == OPERATIONAL and m[S_LAST_END] < t + 10_000_000 and rounds > 0:
        fold_due = m[S_SLC_COUNT] > (1 if m[S_BLOCK_SLC] >= 0 else 0)
        gc_due = m[S_FREE] < m[K_IDLE_FREE] and (m[S_VICTIM] >= 0 or 16 * fewest_valid(d) <= 15 * m[K_NP])
        refresh_due = m[S_AGED] > 0 and idle >= m[K_REFRESH_NS] and m[K_FIFO] == 0
        if m[S_BROKEN] or not (fold_due or gc_due or refresh_due):
            break
        begin = max(t + wake(d, t), m[S_IDLE_FROM])
        if fold_due:
            fold(d, begin)
        elif gc_due:
            if not collect(d, m[K_PROG_PAGES], m[K_IDLE_FREE], np.int64(N_IDLE_GC), begin):
                break
        elif not aged.refresh(d, begin):
            break
        rounds -= 1
    if m[K_LATENCY] == 0 and m[S_BATCH_NJ]:
        deposit_batch(d, t)


@jit
def flush_kernel(arrays, t):
    """flush() for callers outside compiled code."""
    return flush(bind(arrays), t)


@jit
def background_kernel(arrays, t):
    """background() for callers outside compiled code."""
    background(bind(arrays), t)
