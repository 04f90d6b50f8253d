"""NAND and controller in time and energy: the resources and the energy of an operation. SIMULATED.

All times are integers in ns of model time, all energies integers in nJ. One int64 vector `m` holds the constants (K_),
the state (S_) and the counts (N_, truth for the ledger). An operation reserves its resource (controller, link, channel,
die) from the moment it is free; its energy is spread evenly over the time it takes and added to the ring of the feed.

    program  unit of pages (one-shot) to one die: bus transfer, then t_PROG; power P_prog
    read     one multi-plane page of one die: t_R, then transfer; goes before queued programs (waits for the running
             one at most `suspend`), which are pushed back by t_R
    erase    one block of one die per full-size block's worth of pages given back, so that a scaled-down drive spends
             the same share of its time and energy on erases as the full-size one

Power: P = P_idle (less while it sleeps, power_states.py) + P_active while any work is going on + sum over dies of P_op
+ e_IO per byte on the NAND bus. Relocations take (1 + fw_overhead) times their die time: map writes, read retries,
pauses of real firmware.
"""

from collections import namedtuple

import numpy as np
from llvmlite.ir import Constant, FunctionType, IntType, VoidType
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ssdrig.base.kernels import inline, jit
from ssdrig.virtual.flash.feed import BIN_NS, BINS

# fmt: off
(K_PAGES, K_NP, K_UNITS, K_SLC_UNITS, K_SLC_NP, K_RESERVE, K_GC_LOW, K_GC_HIGH, K_GC_PACE, K_FIFO, K_WL_THRESHOLD,
 K_PROG_PAGES, K_PLANE_PAGES, K_PAD_PAGES, K_DIES, K_CHANNELS, K_CACHE_PAGES, K_PLP, K_LATENCY, K_LIVE,
 K_IDLE_FREE, K_IDLE_NS, K_DRAIN_NS, K_BLOCK_PAGES, K_HISTORY_MS, K_WORDS, K_PLANE_SHIFT, K_NP_MAGIC, K_NP_SHIFT,
 K_TR, K_TPROG, K_TPROG_SLC, K_TBERS, K_SUSPEND, K_CHANNEL_PAGE_NS, K_LINK_PAGE_NS, K_CMD_READ, K_CMD_WRITE,
 K_OVERHEAD_PERMILLE, K_E_READ, K_E_PROG_PJ, K_E_PROG_SLC_PJ, K_E_BERS, K_E_IO_PJ,
 K_P_ACTIVE, K_P_IDLE, K_SLC_LEAST, K_RING, K_REFRESH_NS,
 S_CPU, S_LINK, S_ACCEPT, S_SEQ, S_DURABLE, S_ACTIVE_UNTIL, S_LAST_HOST, S_LAST_END,
 S_FREE_HEAD, S_FREE, S_MIN_VALID, S_FIFO_HEAD, S_FIFO_COUNT, S_VICTIM, S_VICTIM_RATE, S_VICTIM_CAUSE,
 S_CREDIT, S_GC_ON, S_WL_CURSOR, S_WL_NEXT, S_ERASE_PAGES, S_ERASE_DIE, S_GROUP, S_GROUP_READY, S_GROUP_DIE,
 S_SLC_HEAD, S_SLC_COUNT, S_STREAM, S_MAPPED, S_BROKEN, S_MAIN_ERASES,
 S_FILLED, S_SLUMBER_FROM, S_SEALED, S_BATCH_NJ, S_OFFLINE, S_TABLE, S_IDLE_FROM, S_LAID_SINCE, S_LOG, S_MAP_SAVED,
 S_SEED, S_AGED, S_REFRESH_CURSOR,
 S_BLOCK, S_OFF, S_START, S_READY, S_EXTRA, S_PENDING,                   # open block of the main stream
 S_BLOCK_SLC, S_OFF_SLC, S_START_SLC, S_READY_SLC, S_EXTRA_SLC, S_PENDING_SLC,  # and of the SLC stream
 N_WRITE_CMDS, N_READ_CMDS, N_TRIM_CMDS, N_FLUSH_CMDS, N_FUA_CMDS, N_WRITE_PAGES, N_READ_PAGES, N_TRIM_PAGES,
 N_HOST, N_GC, N_IDLE_GC, N_WL, N_FOLD, N_REFRESH, N_PAD, N_SLC, N_PROGRAMS, N_READS, N_NAND_READ_PAGES, N_ERASES,
 N_DIE_ERASES, N_FEED_GAP_BINS, N_OFFLINE_NJ, N_CUT_NJ, N_BEYOND_NJ, N_SOFT, N_REFRESHED,
 E_STATIC, E_ACTIVE, E_READ, E_PROGRAM, E_ERASE, E_TRANSFER, E_BOOT, E_CHARGE, K_LEVELS) = range(141)
# fmt: on
LEVELS, LEVEL_WORDS = 6, 4  # two tables of this many from K_LEVELS on, see power_states.py
M_LENGTH = K_LEVELS + 2 * LEVELS * LEVEL_WORDS
FOREVER = 1 << 61
STREAM_WORDS = S_BLOCK_SLC - S_BLOCK  # state of the SLC stream is stored this far after that of the main stream

# The arrays of a drive as bare pointers, flattened: what compiled code passes around. An array argument would cost
# seven words and a reference count in each call. Only bind() makes one; the caller keeps the arrays alive.
Pointers = namedtuple("Pointers", "l2p p2l bits blk lists m die cache log ring history")

D_FREE, D_READ, D_CHANNEL, D_FLIGHT = 0, 1, 2, 3  # columns of `die`; D_CHANNEL is indexed by channel
FLIGHTS = 8  # programs a die remembers: pages of these are still in the buffer and are read from there
D_NEXT = D_FLIGHT + 2 * FLIGHTS
D_ERASED = D_NEXT + 1  # end of the last erase
D_COLUMNS = D_ERASED + 1

LAG_NS = 4_000_000  # work at t draws power from t + LAG: room for the server to be late without touching passed bins
HORIZON_NS = 250_000_000  # static power is laid down this far ahead


@intrinsic
def pointer_to(typingctx, array):
    """Address of the first element of a contiguous array, as a pointer that can be indexed."""

    def codegen(context, builder, signature, args):
        return cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), codegen


@intrinsic
def trailing_zeros(typingctx, word):
    """Zero bits below the lowest set bit of a uint64 that is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], Constant(IntType(1), 1))

    return types.int64(word), codegen


@intrinsic
def prefetch(typingctx, pointer, i):
    """Bring pointer[i] into the cache. A hint without effect: nothing waits for it."""

    def codegen(context, builder, signature, args):
        byte = builder.bitcast(builder.gep(args[0], [args[1]]), cgutils.voidptr_t)
        words = [IntType(32)] * 3
        kind = FunctionType(VoidType(), [byte.type, *words])
        hint = builder.module.declare_intrinsic("llvm.prefetch", (byte.type,), kind)
        builder.call(hint, [byte, *(Constant(IntType(32), n) for n in (1, 3, 1))])  # to write, keep, data
        return context.get_dummy_value()

    return types.none(pointer, types.int64), codegen


@jit
def bind(a):
    """Tuple of the arrays in the order of Pointers -> Pointers."""
    return Pointers(
        pointer_to(a[0]),
        pointer_to(a[1]),
        pointer_to(a[2]),
        pointer_to(a[3]),
        pointer_to(a[4]),
        pointer_to(a[5]),
        pointer_to(a[6]),
        pointer_to(a[7]),
        pointer_to(a[8]),
        pointer_to(a[9]),
        pointer_to(a[10]),
    )


@inline
def add(d, b, nJ):
    """Add nJ to bin b; a bin not touched before starts at 0. Bins beyond the ring are only counted."""
    if b >= d.m[S_SEALED] + BINS:
        d.m[N_BEYOND_NJ] += nJ
        return
    slot = b & (BINS - 1)
    if d.ring[2 * slot] != np.uint32(b & 0xFFFFFFFF):
        d.ring[2 * slot + 1] = np.uint32(0)
        d.ring[2 * slot] = np.uint32(b & 0xFFFFFFFF)
    d.ring[2 * slot + 1] += np.uint32(nJ)


@jit
def deposit(d, start, end, nJ):
    """Spread nJ evenly over [start, end) ns. With the latency model off it is kept for the end of the batch."""
    m = d.m
    if m[K_LATENCY] == 0:
        m[S_BATCH_NJ] += nJ
        return
    start += LAG_NS
    end += LAG_NS
    first = start // BIN_NS
    last = (end - 1) // BIN_NS
    if last <= first:
        add(d, first, nJ)
        return
    left = nJ
    length = end - start
    part = nJ * ((first + 1) * BIN_NS - start) // length
    add(d, first, part)
    left -= part
    part = nJ * BIN_NS // length
    for b in range(first + 1, last):
        add(d, b, part)
        left -= part
    add(d, last, left)


@jit
def deposit_batch(d, t):
    """Latency model off: the energy of the batch goes into the bins right after t, at most 4 J (2**32 nJ) each."""
    m = d.m
    b = (t + LAG_NS) // BIN_NS
    left = m[S_BATCH_NJ]
    m[S_BATCH_NJ] = 0
    if m[S_OFFLINE]:
        return
    while left > 0:
        part = min(left, 2_000_000_000)
        add(d, b, part)
        left -= part
        b += 1


@jit
def active(d, start, end):
    """The controller works during [start, end): P_active for the part that is not counted yet."""
    m = d.m
    if m[K_LATENCY] == 0:
        return
    start = max(start, m[S_ACTIVE_UNTIL])
    if end > start:
        nJ = m[K_P_ACTIVE] * (end - start) // 1000
        m[E_ACTIVE] += nJ
        deposit(d, start, end, nJ)
        m[S_ACTIVE_UNTIL] = end


@jit
def seal(d, t):
    """Bins that end at or before t are final: add them to the history, nJ per ms of model time."""
    m = d.m
    end = t // BIN_NS
    per = 1_000_000 // BIN_NS
    for b in range(m[S_SEALED], end):
        slot = b & (BINS - 1)
        if d.ring[2 * slot] == np.uint32(b & 0xFFFFFFFF):
            d.history[b // per - m[K_HISTORY_MS]] += d.ring[2 * slot + 1]
    m[S_SEALED] = max(m[S_SEALED], end)


@inline
def die_of(d, ppn):
    """The dies take turns, unit of programming by unit: of a block of the SLC cache, whose units are a third as large,
    too."""
    m = d.m
    slc = ppn - m[K_UNITS] * m[K_NP]
    if slc >= 0:
        return (slc // m[K_NP] * m[K_SLC_NP] + slc % m[K_NP]) // m[K_PLANE_PAGES] % m[K_DIES]
    return (ppn // m[K_PROG_PAGES]) % m[K_DIES]


@jit
def program(d, ppn, n, extra, slc, ready):
    """Program n pages at ppn, `extra` of them not the host's, data there from `ready` on. Returns the end."""
    m = d.m
    m[N_PROGRAMS] += 1
    e_prog = n * (m[K_E_PROG_SLC_PJ] if slc else m[K_E_PROG_PJ]) // 1000
    e_io = n * m[K_E_IO_PJ] // 1000
    m[E_PROGRAM] += e_prog
    m[E_TRANSFER] += e_io
    if slc:
        m[N_SLC] += n
    if m[K_LATENCY] == 0:
        m[S_BATCH_NJ] += e_prog + e_io
        return ready
    k = die_of(d, ppn)
    c = k % m[K_CHANNELS]
    bus = n * m[K_CHANNEL_PAGE_NS]
    sent = max(d.die[D_COLUMNS * c + D_CHANNEL], ready) + bus
    d.die[D_COLUMNS * c + D_CHANNEL] = sent
    t_prog = m[K_TPROG_SLC] if slc else m[K_TPROG]
    t_prog += t_prog * m[K_OVERHEAD_PERMILLE] * extra // (1000 * n)
    start = max(sent, d.die[D_COLUMNS * k + D_FREE])
    end = start + t_prog
    d.die[D_COLUMNS * k + D_FREE] = end
    f = d.die[D_COLUMNS * k + D_NEXT]
    d.die[D_COLUMNS * k + D_FLIGHT + 2 * f] = ppn
    d.die[D_COLUMNS * k + D_FLIGHT + 2 * f + 1] = end
    d.die[D_COLUMNS * k + D_NEXT] = (f + 1) % FLIGHTS
    deposit(d, sent - bus, sent, e_io)
    deposit(d, start, end, e_prog)
    active(d, sent - bus, end)
    if end > m[S_LAST_END]:
        m[S_LAST_END] = end
    return end


@jit
def transfer_out(d, k, t, ready):
    """Move one page over the bus of die k, asked for at t, in the die's register from `ready` on. Returns the end.
    The caller counts the energy."""
    m = d.m
    bus = m[K_CHANNEL_PAGE_NS]
    at = D_COLUMNS * (k % m[K_CHANNELS]) + D_CHANNEL
    d.die[at] = max(d.die[at], t) + bus
    out = max(d.die[at], ready + bus)
    deposit(d, out - bus, out, m[K_E_IO_PJ] // 1000)
    active(d, out - bus, out)
    return out


@inline
def reads_at_once(d, n):
    """Count n reads of multi-plane pages with the latency model off."""
    m = d.m
    m[N_READS] += n
    m[E_READ] += n * m[K_E_READ]
    m[S_BATCH_NJ] += n * m[K_E_READ]


@jit
def read(d, k, t, relocation):
    """Read one multi-plane page of die k, asked for at t. Returns when it is in the die's register."""
    m = d.m
    if m[K_LATENCY] == 0:
        reads_at_once(d, 1)
        return t
    m[N_READS] += 1
    m[E_READ] += m[K_E_READ]
    t_read = m[K_TR]
    if relocation:
        t_read += t_read * m[K_OVERHEAD_PERMILLE] // 1000
    free = D_COLUMNS * k + D_FREE
    start = max(t, d.die[D_COLUMNS * k + D_READ])
    if d.die[free] > start:
        start += min((d.die[free] - start) % m[K_TPROG], m[K_SUSPEND])
    end = start + t_read
    d.die[D_COLUMNS * k + D_READ] = end
    d.die[free] = max(d.die[free] + t_read, end)
    deposit(d, start, end, m[K_E_READ])
    active(d, start, end)
    return end


@jit
def in_buffer(d, ppn, t):
    """True if the program that holds ppn has not ended at t: the page is then read from the buffer."""
    m = d.m
    k = die_of(d, ppn)
    for f in range(FLIGHTS):
        first = d.die[D_COLUMNS * k + D_FLIGHT + 2 * f]
        if d.die[D_COLUMNS * k + D_FLIGHT + 2 * f + 1] > t and first <= ppn < first + m[K_PROG_PAGES]:
            return True
    return False


@jit
def erase(d, pages, t):
    """Give back `pages` pages: erase one full-size block of one die for each block's worth of them."""
    m = d.m
    m[S_ERASE_PAGES] += pages
    while m[S_ERASE_PAGES] >= m[K_BLOCK_PAGES]:
        m[S_ERASE_PAGES] -= m[K_BLOCK_PAGES]
        m[N_DIE_ERASES] += 1
        m[E_ERASE] += m[K_E_BERS]
        if m[K_LATENCY] == 0:
            m[S_BATCH_NJ] += m[K_E_BERS]
            continue
        k = m[S_ERASE_DIE]
        m[S_ERASE_DIE] = (k + 1) % m[K_DIES]
        start = max(t, d.die[D_COLUMNS * k + D_FREE])
        end = start + m[K_TBERS]
        d.die[D_COLUMNS * k + D_FREE] = end
        d.die[D_COLUMNS * k + D_ERASED] = end
        deposit(d, start, end, m[K_E_BERS])
        active(d, start, end)
        if end > m[S_LAST_END]:
            m[S_LAST_END] = end


@jit
def draw_kernel(arrays, start, end, nJ, counter):
    """nJ more drawn over [start, end) ns, counted at this place of the vector."""
    d = bind(arrays)
    d.m[counter] += nJ
    deposit(d, start, end, nJ)
    if d.m[K_LATENCY] == 0:
        deposit_batch(d, start)
