"""Closed forms that the virtual drive is checked against. Write amplification A = NAND programs / host page writes.

Terms: T blocks, U * NP logical pages of NP per block, alpha = T / U, spare factor Sf = 1 - 1/alpha, over-provisioning
OP = alpha - 1. Workload: uniformly random single pages over all of U. Always A = NP / (NP - V), V the mean number of
valid pages of a victim.
"""

from ssdrig.base.overprovisioning import lambert_w0 as lambert_w0
from ssdrig.base.overprovisioning import wa_fifo as wa_fifo


def effective_alpha(blocks: int, pages: int, block_pages: int, reserve: float) -> float:
    """alpha that a real collector has. A victim is chosen when a block has just been opened and reserve - 1 are free:
    all data then is in the other blocks - reserve blocks."""
    return (blocks - reserve) * block_pages / pages


def wa_greedy(alpha: float, block_pages: int) -> float:
    """Greedy collection, finite blocks, mean field. Blocks flow from i to i-1 valid pages at a constant rate, so
    i * x_i is constant above the victim level j: (NP - j + f) / (H_NP - H_j + f/j) = NP / alpha with f in [0, 1],
    A = NP / (NP - j + f). The limit of Bux and Iliadis 2010, Desnoyers 2012, Van Houdt 2013. ValueError if alpha <=
    1."""
    if alpha <= 1:
        raise ValueError(f"alpha must exceed 1, is {alpha}")
    n, k = block_pages, block_pages / alpha
    tail = 0.0  # H_NP - H_j
    for j in range(n - 1, 0, -1):
        tail += 1.0 / (j + 1)
        if k != j:
            f = (k * tail - (n - j)) / (1.0 - k / j)
            if 0.0 <= f <= 1.0:
                return n / (n - j + f)
    return 1.0


def in_use_share(trim_share: float) -> float:
    """Share of logical pages mapped at steady state when a share q of the requests trims a random mapped page and the
    rest write uniformly: (1 - 2q) / (1 - q) (Frankie et al. 2012). ValueError unless 0 <= q < 0.5."""
    if not 0 <= trim_share < 0.5:
        raise ValueError(f"trim share must be in [0, 0.5), is {trim_share}")
    return (1.0 - 2.0 * trim_share) / (1.0 - trim_share)


def wa_greedy_trim(alpha: float, block_pages: int, trim_share: float) -> float:
    """Greedy under the TRIM mix: as with alpha divided by the share of pages in use."""
    return wa_greedy(alpha / in_use_share(trim_share), block_pages)


def plateau_drive_writes(alpha: float) -> float:
    """Random writes after a sequential fill before collection starts, in units of the user capacity: alpha - 1."""
    return alpha - 1.0


# Peak of WA just after the cliff over steady WA, by OP, from an independent C simulation of greedy collection (NP 256,
# 8 192 blocks, from a sequential fill); no closed form is known.
UNDERSHOOT = {0.0737: 1.295, 0.145: 1.326, 0.28: 1.329, 0.40: 1.301}


def reads_per_moved_page(preset, wa: float) -> float:
    """NAND reads per relocated page: a multi-plane page of g logical pages is read once if any of them is valid, which
    each is with v = V / NP = (wa - 1) / wa: (1 - (1 - v)**g) / (g v)."""
    g = preset.planes * preset.nand_page_bytes // 4096
    v = (wa - 1.0) / wa
    return (1.0 - (1.0 - v) ** g) / (g * v) if v > 0 else 0.0


def page_time_ns(preset, wa: float) -> float:
    """Mean die time per host page at write amplification wa, ns, all dies busy: programs, reads of relocated pages
    with the firmware's overhead, and erases. Its inverse bounds the write rate together with the controller and
    link."""
    program = preset.t_PROG_ns / preset.program_pages / preset.dies
    read = preset.t_R_ns * reads_per_moved_page(preset, wa) / preset.dies
    erase = preset.t_BERS_ns / preset.full_block_pages / preset.dies
    return program + (wa - 1.0) * (program + read) * (1.0 + preset.fw_overhead) + wa * erase


def write_iops(preset, wa: float) -> float:
    """4 KiB random writes per second at write amplification wa."""
    return 1e9 / max(page_time_ns(preset, wa), preset.cmd_write_ns, 4096e9 / preset.link_B_per_s)


def nand_energy_per_page_nJ(preset, wa: float) -> float:
    """NAND energy per host page, nJ: wa programs, transfers in and shares of an erase; wa - 1 transfers out and
    reads."""
    program = preset.P_prog_mW * preset.t_PROG_ns / preset.program_pages / 1000
    erase = preset.P_erase_mW * preset.t_BERS_ns / preset.full_block_pages / 1000
    read = preset.P_read_mW * preset.t_R_ns * reads_per_moved_page(preset, wa) / 1000
    io = preset.e_io_pJ_per_B * 4.096
    return wa * (program + erase + io) + (wa - 1.0) * (read + io)
