"""Reads of units that have aged without power, and their refresh (charge_loss.py). SIMULATED.

    blk AGE     minutes at 30 C without power since the unit was programmed; 0 again with its erase
    blk STRESS  1e6 times the natural logarithm of its median RBER over E1, as of its last ageing
    blk WORST   the highest level of a page that it held then: read-retries, UNREADABLE; 0: nothing to do
    m S_AGED    units with WORST > 0; without any, a read costs one more comparison

The level of a page is a draw that the drive's seed, its place on NAND and the unit's P/E cycles fix: the same at each
read, and never lower for more age."""

import math

import numpy as np

from ssdrig.base.kernels import jit
from ssdrig.virtual.flash import nand
from ssdrig.virtual.flash.charge_loss import ECC_NS, RETRIES, SIGMA, STEPS, UNREADABLE
from ssdrig.virtual.flash.ftl import *
from ssdrig.virtual.flash.nand import *

_STEPS = np.array(STEPS)
_SCALE = SIGMA * math.sqrt(2)
_LOWEST = -8.5 * SIGMA  # no draw of 53 bits is further out


@jit
def mixed(z):
    """The finalizer of SplitMix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@jit
def level(d, b, ppn):
    """0 to RETRIES read-retries of the page at ppn in unit b; UNREADABLE if none helps."""
    x = d.blk[ROW * b + STRESS] * 1e-6
    if x < _LOWEST:
        return 0
    z = mixed(np.uint64(d.m[S_SEED]) + np.uint64(0x9E3779B97F4A7C15))
    z = mixed(z + (np.uint64(d.blk[ROW * b + PE]) << np.uint64(32)) + np.uint64(ppn))
    u = (np.float64(z >> np.uint64(11)) + 0.5) * 2.0**-53
    total = 0
    while total < UNREADABLE and u < 0.5 * math.erfc((_STEPS[total] - x) / _SCALE):
        total += 1
    return total


@jit
def retried(d, k, ppn, loaded, steps):
    """The page at ppn, of die k, is in the register since `loaded`, after `steps` retries for other pages with it.
    Returns (since when it can be corrected, retries by then)."""
    m = d.m
    b = block_of(d, ppn)
    if d.blk[ROW * b + WORST] == 0:
        return loaded, steps
    needs = min(level(d, b, ppn), RETRIES)
    m[N_SOFT] += needs > 0
    while steps < needs:
        nJ = m[K_E_IO_PJ] // 1000
        m[E_TRANSFER] += nJ
        m[N_NAND_READ_PAGES] += 1
        if m[K_LATENCY]:
            loaded = nand.transfer_out(d, k, loaded, loaded) + ECC_NS
        else:
            m[S_BATCH_NJ] += nJ
        loaded = nand.read(d, k, loaded, False)
        steps += 1
    return loaded, steps


@jit
def refresh(d, t):
    """Move the valid pages of one unit that needs it to new places, and erase it. False without one."""
    m = d.m
    for _ in range(m[K_UNITS]):
        b = m[S_REFRESH_CURSOR]
        m[S_REFRESH_CURSOR] = (b + 1) % m[K_UNITS]
        state = d.blk[ROW * b + STATE]
        if d.blk[ROW * b + WORST] == 0 or not (state == CLOSED or state == VICTIM):
            continue
        if state == CLOSED:
            bucket_remove(d, b, d.blk[ROW * b + VALID])
            d.blk[ROW * b + STATE] = VICTIM
        else:
            m[S_VICTIM] = -1
        m[S_GROUP] = -1
        relocate_block(d, b, FAR, np.int64(N_REFRESH), t)
        m[S_GROUP] = -1
        m[N_REFRESHED] += 1
        give_back(d, b, t)
        collect(d, FAR, m[K_RESERVE], np.int64(N_GC), t)
        return True
    return False


@jit
def close_kernel(arrays):
    """Close all open units, as at a loss of power: later writes go to new ones."""
    d = bind(arrays)
    m = d.m
    for s in (0, STREAM_WORDS):
        b = m[S_BLOCK + s]
        if b >= 0 and m[S_OFF + s] > 0:
            m[S_BLOCK + s] = -1
            m[S_OFF + s] = m[S_START + s] = 0
            if s == 0:
                close_block(d, b)


@jit
def levels_kernel(arrays, levels):
    """The level of each mapped page into levels, uint8[pages]."""
    d = bind(arrays)
    for lpn in range(levels.size):
        if d.l2p[lpn] != NONE:
            b = block_of(d, d.l2p[lpn])
            if d.blk[ROW * b + AGE]:
                levels[lpn] = level(d, b, d.l2p[lpn])
