"""The virtual drive against its promises: speed, memory, and agreement with the closed forms of theory.py."""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np

from selfcheck import Figure, at_least, at_most, theory
from ssdrig.virtual.flash import workload
from ssdrig.virtual.flash.constants import PAGE
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import SATA_MLC, SATA_TLC

BLOCKS = 4_200  # at least 4 096 GC units
SPARE = (0.07, 0.12, 0.20, 0.28)


def plain_drive(spare_factor: float, blocks: int, block_pages: int, policy: str = "greedy") -> VirtualDrive:
    """A drive as the theory has it: `blocks` blocks, Sf as given, foreground collection only, no cache, no latency
    model. Written once from end to end."""
    pages = round(blocks * block_pages * (1 - spare_factor))
    preset = replace(
        SATA_TLC,
        block_pages=block_pages,
        op=(blocks * block_pages + 0.5) / pages - 1,
        gc_policy=policy,
        gc_low=0,
        gc_high=0,
        gc_pace=0.0,
        idle_gc_share=0.0,
    )
    drive = VirtualDrive(preset, capacity_bytes=pages * PAGE, latency=False)
    drive.precondition("seq", 1)
    return drive


def nand_and_host(drive: VirtualDrive) -> np.ndarray:
    """(NAND bytes, host bytes) so far."""
    ledger = drive.ledger()
    return np.array([ledger["nand_write_bytes"], ledger["host_write_bytes"]], float)


def steady_wa(drive: VirtualDrive, writes: int, seed: int) -> float:
    """WA over `writes` uniformly random page writes; ageing before is the caller's."""
    before = nand_and_host(drive)
    drive.precondition("random", writes / drive.pages, seed)
    nand, host = nand_and_host(drive) - before
    return nand / host


def trim_mix(drive: VirtualDrive, requests: int, trim_share: float) -> None:
    """Requests of the workload of Frankie et al., offline."""
    workload.write_trim_mix(drive._arrays, drive.rng, drive.pages, requests, round(1000 * trim_share))
    drive._check()


def wa_theory() -> list[Figure]:
    figures = []
    for policy, closed_form in (("greedy", theory.wa_greedy), ("fifo", lambda a, _: theory.wa_fifo(a))):
        for spare in SPARE:
            drive = plain_drive(spare, BLOCKS, 64, policy)
            drive.precondition("random", 10, 1)
            measured = steady_wa(drive, 6_000_000, 2)
            expected = closed_form(theory.effective_alpha(BLOCKS, drive.pages, 64, drive.preset.gc_reserve), 64)
            error = 100 * abs(measured / expected - 1)
            figures.append(
                at_most(f"{policy}, Sf {spare:.0%}: WA {measured:.4f}, theory {expected:.4f}", error, "%", 0.5)
            )
    for share in (0.05, 0.10, 0.20, 0.30):
        drive = plain_drive(0.07, BLOCKS, 64)
        trim_mix(drive, 12 * drive.pages, share)
        before = nand_and_host(drive)
        trim_mix(drive, 8_000_000, share)
        nand, host = nand_and_host(drive) - before
        alpha = theory.effective_alpha(BLOCKS, drive.pages, 64, drive.preset.gc_reserve)
        expected = theory.wa_greedy_trim(alpha, 64, share)
        error = 100 * abs(nand / host / expected - 1)
        name = f"greedy, Sf 7%, {share:.0%} TRIM: WA {nand / host:.4f}, theory {expected:.4f}"
        figures.append(at_most(name, error, "%", 0.5))
    return figures


def plateau() -> list[Figure]:
    figures = []
    for op, undershoot in theory.UNDERSHOOT.items():
        drive = plain_drive(op / (1 + op), BLOCKS, 256)
        step = drive.pages // 200  # 0.005 drive writes
        wa = np.array([steady_wa(drive, step, seed) for seed in range(2, 2 + round(200 * (2 * op + 0.3)))])
        begin = int(np.argmax(wa > 1.02)) / 200
        alpha = theory.effective_alpha(BLOCKS, drive.pages, 256, drive.preset.gc_reserve)
        expected = theory.plateau_drive_writes(alpha)
        name = f"OP {op:.1%}: WA 1 for {begin:.3f} drive writes, theory {expected:.3f}, differ by"
        figures.append(at_most(name, abs(begin - expected), "drive writes", 0.005 + 1e-9))
        window = max(2, round(200 * op / 8))  # narrow against the dip, wide against noise
        peak = np.convolve(wa, np.ones(window) / window, "valid").max() / theory.wa_greedy(alpha, 256)
        name = f"OP {op:.1%}: peak WA {peak:.3f} times steady, off {undershoot:.3f} by"
        figures.append(at_most(name, 100 * abs(peak / undershoot - 1), "%", 4))
    for preset in (SATA_MLC, SATA_TLC):
        for raw_share in (None, 0.25):
            drive = VirtualDrive(preset)
            span = drive.pages if raw_share is None else int(drive.raw_nand_bytes * (1 - raw_share)) // PAGE
            drive.precondition("seq", span / drive.pages)
            counts, _ = drive.closed_loop(queue_depth=32, t_ns=0, duration_ns=60 * 10**9, span=span)
            flat = int(np.argmax(counts < 0.9 * counts[0]))
            label = f"{preset.name}, {'default OP' if raw_share is None else '25 % of raw'}"
            figures.append(at_least(f"{label}: plateau at {counts[0]} IOPS lasts", flat, "s", 4))
            free = (preset.gc_low + preset.gc_high) / 2  # of paced collection, in the mean
            blocks = drive.raw_nand_bytes // PAGE // preset.block_pages
            alpha = theory.effective_alpha(blocks, span, preset.block_pages, free)
            expected = theory.write_iops(preset, theory.wa_greedy(alpha, preset.block_pages))
            steady = counts[-20:].mean()
            name = f"{label}: steady {steady:.0f} IOPS, theory {expected:.0f}, differ by"
            figures.append(at_most(name, 100 * abs(steady / expected - 1), "%", 20))
    return figures


def energy_per_byte() -> list[Figure]:
    figures = []
    for spare in SPARE:
        drive = plain_drive(spare, BLOCKS, 192)
        drive.precondition("random", 6, 1)
        before, wear = drive.ledger(), nand_and_host(drive)
        wa = steady_wa(drive, 3_000_000, 2)
        after, (_, host) = drive.ledger(), nand_and_host(drive) - wear
        keys = ("energy_program_J", "energy_erase_J", "energy_read_J", "energy_transfer_J")
        program, erase, read, transfer = (after[k] - before[k] for k in keys)
        per_page = (program + erase + read + transfer) / (host / PAGE) * 1e9
        expected = theory.nand_energy_per_page_nJ(drive.preset, wa)
        name = f"Sf {spare:.0%}, WA {wa:.3f}: {per_page / PAGE:.3f} nJ/B of NAND energy, closed form differs by"
        figures.append(at_most(name, 100 * abs(per_page / expected - 1), "%", 1.0))
        unit = theory.nand_energy_per_page_nJ(drive.preset, 1.0) - drive.preset.e_io_pJ_per_B * 4.096
        ratio = (program + erase) / (host / PAGE) * 1e9 / unit / wa
        name = f"Sf {spare:.0%}: program and erase energy per host byte over WA, off its value at WA 1 by"
        figures.append(at_most(name, 100 * abs(ratio - 1), "%", 0.5))
    return figures


def speed() -> list[Figure]:
    """Least CPU time of submit() over many rounds of 32 768 uniformly random page writes, no latency model,
    collecting."""
    preset = replace(SATA_TLC, op=0.2165)
    figures = []
    for pages in (1 << 20, 1 << 24):
        drive = VirtualDrive(preset, capacity_bytes=pages * PAGE, latency=False)
        drive.precondition("seq", 1)
        drive.precondition("random", 2.0, 1)
        rng = np.random.default_rng(1)
        for batch in (4096, 1024, 32):
            total = 1 << 15
            op, n, flags = np.ones(batch, np.uint8), np.ones(batch, np.int64), np.zeros(batch, np.uint8)
            before, best = nand_and_host(drive), np.inf
            # The least of many: what other programs take from the caches is not the simulator's cost.
            for _ in range(200 if pages == 1 << 20 else 20):
                page = rng.integers(0, drive.pages, (total // batch, batch))
                begin = time.process_time_ns()
                for p in page:
                    drive.submit(op, p, n, flags, 0)
                best = min(best, (time.process_time_ns() - begin) / total)
            nand, host = nand_and_host(drive) - before
            name = f"{pages >> 20} Mi pages, batches of {batch}, WA {nand / host:.2f}: host write"
            if batch >= 1024:
                figures.append(at_most(name, best, "ns", 40 if pages == 1 << 20 else 120))
            else:
                figures.append(Figure(name, best, "ns", "stated", True))
    return figures


MEMORY_PROBE = """
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import SATA_TLC
def anonymous():
    return sum(1024 * int(l.split()[1]) for l in open("/proc/self/smaps_rollup") if l.startswith("Anonymous:"))
small = VirtualDrive(SATA_TLC, capacity_bytes=1 << 28, latency=False)
small.precondition("random", 1)
before = anonymous()
drive = VirtualDrive(SATA_TLC, capacity_bytes=(16 << 20) * 4096, latency=False)
drive.precondition("seq", 1)
drive.precondition("random", 0.3)
print((anonymous() - before) / drive.pages)
"""


def memory() -> list[Figure]:
    probe = subprocess.run(
        [sys.executable, "-c", MEMORY_PROBE], capture_output=True, text=True, timeout=300, check=True
    )
    return [at_most("anonymous memory per logical page, 16 Mi pages, full and aged", float(probe.stdout), "bytes", 5.0)]


BENCHES = {
    "wa-theory": ("write amplification at steady state against the closed forms", wa_theory),
    "plateau": ("length of the fresh plateau, undershoot after the cliff, steady rate", plateau),
    "energy-per-byte": ("NAND energy per host byte against write amplification", energy_per_byte),
    "ftl": ("CPU time of one host write in batches", speed),
    "memory": ("memory of the virtual drive beyond its data", memory),
}
