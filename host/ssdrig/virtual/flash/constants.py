"""The constants of a drive's machine vector (nand.py), from its preset."""

import numpy as np

from ssdrig.virtual.flash import nand, power_states
from ssdrig.virtual.flash.presets import Preset

PAGE = 4096
NJ = 1e-9  # the vector counts energy in nJ
ON_THEIR_WAY_PAGES = 4096  # that the ring of versions holds beyond the cache, at least


def ring_slots(p: Preset) -> int:
    """Versions of pages that a drive remembers, a power of 2."""
    return 1 << (p.cache_bytes // PAGE + ON_THEIR_WAY_PAGES - 1).bit_length()


def constants(p: Preset, pages: int, units: int, latency: bool, live: bool) -> np.ndarray:
    """The machine vector with all constants of the preset set and all state and counts 0."""
    m = np.zeros(nand.M_LENGTH, np.int64)
    page_ns = lambda B_per_s: round(PAGE * 1e9 / B_per_s)
    prog = p.program_pages
    plane_pages = p.planes * p.nand_page_bytes // PAGE
    shift = 31 + (p.block_pages - 1).bit_length()
    values = {
        nand.K_PAGES: pages,
        nand.K_NP: p.block_pages,
        nand.K_UNITS: units,
        nand.K_SLC_UNITS: p.slc_blocks,
        nand.K_SLC_LEAST: p.slc_reserve_units,
        nand.K_SLC_NP: p.block_pages // 3 // plane_pages * plane_pages,
        nand.K_RESERVE: p.gc_reserve,
        nand.K_GC_LOW: p.gc_low,
        nand.K_GC_HIGH: p.gc_high,
        nand.K_GC_PACE: round(p.gc_pace * 256),
        nand.K_FIFO: p.gc_policy == "fifo",
        nand.K_WL_THRESHOLD: p.wl_threshold,
        nand.K_PROG_PAGES: prog,
        nand.K_PLANE_PAGES: plane_pages,
        nand.K_PAD_PAGES: p.nand_page_bytes // PAGE,
        nand.K_DIES: p.dies,
        nand.K_CHANNELS: p.channels,
        nand.K_CACHE_PAGES: p.cache_bytes // PAGE,
        nand.K_RING: ring_slots(p) - 1,
        nand.K_PLP: p.plp,
        nand.K_LATENCY: latency,
        nand.K_LIVE: live,
        nand.K_IDLE_NS: p.idle_ns,
        nand.K_DRAIN_NS: 50_000_000,
        nand.K_REFRESH_NS: p.refresh_idle_ns,
        nand.K_IDLE_FREE: p.gc_policy == "greedy" and int(p.idle_gc_share * (units - -(-pages // p.block_pages))),
        nand.K_BLOCK_PAGES: p.full_block_pages,
        nand.K_TR: p.t_R_ns,
        nand.K_TPROG: p.t_PROG_ns,
        nand.K_TPROG_SLC: p.t_PROG_SLC_ns,
        nand.K_TBERS: p.t_BERS_ns,
        nand.K_SUSPEND: p.suspend_ns,
        nand.K_CHANNEL_PAGE_NS: page_ns(p.channel_B_per_s),
        nand.K_LINK_PAGE_NS: page_ns(p.link_B_per_s),
        nand.K_CMD_READ: p.cmd_read_ns,
        nand.K_CMD_WRITE: p.cmd_write_ns,
        nand.K_OVERHEAD_PERMILLE: round(p.fw_overhead * 1000),
        nand.K_E_READ: p.P_read_mW * p.t_R_ns // 1000,
        nand.K_E_PROG_PJ: p.P_prog_mW * p.t_PROG_ns // prog,
        nand.K_E_PROG_SLC_PJ: p.P_prog_mW * p.t_PROG_SLC_ns // plane_pages,
        nand.K_E_BERS: p.P_erase_mW * p.t_BERS_ns // 1000,
        nand.K_E_IO_PJ: p.e_io_pJ_per_B * PAGE,
        nand.K_P_ACTIVE: p.P_active_mW,
        nand.K_P_IDLE: p.P_idle_mW,
        nand.K_WORDS: -(-p.block_pages // 64),
        nand.K_PLANE_SHIFT: plane_pages.bit_length() - 1,
        nand.K_NP_SHIFT: shift,
        nand.K_NP_MAGIC: -(-(1 << shift) // p.block_pages),
        nand.S_MIN_VALID: p.block_pages,
        nand.S_FREE: units,
        nand.S_VICTIM: -1,
        nand.S_WL_NEXT: -1,
        nand.S_GROUP: -1,
        nand.S_BLOCK: -1,
        nand.S_BLOCK_SLC: -1,
    }
    for i, v in values.items():
        m[i] = v
    levels = power_states.schedule(p, 0, power_states.default_apst(p))
    m[nand.K_LEVELS :] = np.tile(power_states.rows(levels), 2)
    return m
