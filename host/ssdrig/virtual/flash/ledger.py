"""The truth of a virtual drive, read from its machine vector (nand.py): its operations, their time and energy."""

import numpy as np

from ssdrig.virtual.flash import ftl, nand
from ssdrig.virtual.flash.constants import NJ, PAGE
from ssdrig.virtual.flash.feed import BIN_NS


def ledger(m: np.ndarray, blk: np.ndarray) -> dict:
    """Flat: counts, bytes by cause, energy by cause, state. m: the vector; blk: the table of blocks."""
    n = lambda i: int(m[i])
    nand_by_cause = {
        "nand_host_bytes": n(nand.N_HOST) * PAGE,
        "nand_gc_bytes": n(nand.N_GC) * PAGE,
        "nand_idle_gc_bytes": n(nand.N_IDLE_GC) * PAGE,
        "nand_wear_levelling_bytes": n(nand.N_WL) * PAGE,
        "nand_slc_fold_bytes": n(nand.N_FOLD) * PAGE,
        "nand_refresh_bytes": n(nand.N_REFRESH) * PAGE,
        "nand_padding_bytes": n(nand.N_PAD) * PAGE,
    }
    energy = {
        "energy_static_J": n(nand.E_STATIC) * NJ,
        "energy_controller_J": n(nand.E_ACTIVE) * NJ,
        "energy_read_J": n(nand.E_READ) * NJ,
        "energy_program_J": n(nand.E_PROGRAM) * NJ,
        "energy_erase_J": n(nand.E_ERASE) * NJ,
        "energy_transfer_J": n(nand.E_TRANSFER) * NJ,
        "energy_boot_J": n(nand.E_BOOT) * NJ,
        "energy_charge_J": n(nand.E_CHARGE) * NJ,
        "energy_cut_J": -n(nand.N_CUT_NJ) * NJ,
    }
    written, host = sum(nand_by_cause.values()), n(nand.N_WRITE_PAGES) * PAGE
    return {
        "host_write_commands": n(nand.N_WRITE_CMDS),
        "host_read_commands": n(nand.N_READ_CMDS),
        "host_trim_commands": n(nand.N_TRIM_CMDS),
        "host_flush_commands": n(nand.N_FLUSH_CMDS),
        # of the write commands: those that had to be on NAND before they were answered
        "host_fua_write_commands": n(nand.N_FUA_CMDS),
        "host_write_bytes": host,
        "host_read_bytes": n(nand.N_READ_PAGES) * PAGE,
        "trim_bytes": n(nand.N_TRIM_PAGES) * PAGE,
        **nand_by_cause,
        "nand_write_bytes": written,
        "nand_slc_bytes": n(nand.N_SLC) * PAGE,
        "nand_read_bytes": n(nand.N_NAND_READ_PAGES) * PAGE,
        "programs": n(nand.N_PROGRAMS),
        "nand_reads": n(nand.N_READS),
        "soft_ecc_pages": n(nand.N_SOFT),
        "refreshed_units": n(nand.N_REFRESHED),
        "erases": n(nand.N_ERASES),
        "die_erases": n(nand.N_DIE_ERASES),
        "wa": written / host if host else None,
        **energy,
        "energy_J": sum(energy.values()),
        "energy_offline_J": n(nand.N_OFFLINE_NJ) * NJ,
        "energy_beyond_feed_J": n(nand.N_BEYOND_NJ) * NJ,
        "feed_gap_ns": n(nand.N_FEED_GAP_BINS) * BIN_NS,
        "mapped_pages": n(nand.S_MAPPED),
        "free_blocks": n(nand.S_FREE),
        "slc_blocks_used": n(nand.S_SLC_COUNT),
        "pe_mean": float(blk[:, ftl.PE].mean()),
        "pe_max": int(blk[:, ftl.PE].max()),
    }
