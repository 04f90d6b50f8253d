"""Purge of the flash: nothing is mapped and every block is erased. SIMULATED."""

from ssdrig.base.kernels import jit
from ssdrig.virtual.flash import nand
from ssdrig.virtual.flash.ftl import *
from ssdrig.virtual.flash.nand import *
from ssdrig.virtual.flash.power_states import wake


@jit
def format_kernel(arrays, t):
    """Unmap everything and erase every block that was written. Returns when the last erase has ended."""
    d = bind(arrays)
    m = d.m
    for i in range(m[K_PAGES]):
        d.l2p[i] = NONE
    for i in range((m[K_UNITS] + m[K_SLC_UNITS]) * m[K_WORDS]):
        d.bits[i] = 0
    for i in range(m[K_RING] + 1):
        d.cache[3 * i + C_DURABLE] = 0
    t += wake(d, t)
    units = m[K_UNITS]
    for v in range(m[K_NP] + 1):
        d.lists[v] = -1
    for i in range(units):
        d.lists[m[K_NP] + 1 + i] = i
    for b in range(units + m[K_SLC_UNITS]):
        if d.blk[ROW * b + STATE] != FREE:
            d.blk[ROW * b + PE] += 1
            d.blk[ROW * b + STATE] = FREE
            m[N_ERASES] += 1
            if b < units:
                m[S_MAIN_ERASES] += 1
            nand.erase(d, m[K_NP], t)
        for word in (VALID, AGE, STRESS, WORST):
            d.blk[ROW * b + word] = 0
    for s in (0, STREAM_WORDS):
        m[S_BLOCK + s] = -1
        m[S_OFF + s] = 0
        m[S_START + s] = 0
        m[S_READY + s] = 0
        m[S_EXTRA + s] = 0
        m[S_PENDING + s] = 0
    m[S_FREE_HEAD] = 0
    m[S_FREE] = units
    m[S_MIN_VALID] = m[K_NP]
    m[S_FIFO_HEAD] = 0
    m[S_FIFO_COUNT] = 0
    m[S_VICTIM] = -1
    m[S_WL_NEXT] = -1
    m[S_GC_ON] = 0
    m[S_CREDIT] = 0
    m[S_STREAM] = 0
    m[S_SLC_HEAD] = 0
    m[S_SLC_COUNT] = 0
    m[S_MAPPED] = 0
    m[S_AGED] = 0
    if m[K_LATENCY] == 0:
        deposit_batch(d, t)
        return t
    return max(t, m[S_LAST_END])
