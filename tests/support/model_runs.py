"""Runs of shipped plans whose loads the virtual drive's model carries out in model time: what fio would have left of
each, SMART documents with the model's counters, and the ledger beside it. SIMULATED; no host that could be slow."""

from pathlib import Path
from typing import NamedTuple

from synthetic_pts import Put, Run

from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import SATA_TLC

CAPACITY_BYTES = 256 << 20
SECOND_NS = 1_000_000_000
PAGE_BYTES = 4096
OLD_BYTES = 1 << 40  # written in the drive's life before
SETTLE_NS = 5_000_000  # until the energy of a load is known
LOOK_NS = 10_000_000  # between two looks of the model at what it may do on its own
SAMPLES = 1 << 20  # latencies of a load that are kept, more than it has


class Truth(NamedTuple):
    """Of a load by the drive's ledger: I/Os and what was written, J."""

    ios: int
    host_bytes: int
    nand_bytes: int
    joules: float


class ModelRun(Run):
    """`truth`: of each load, by (label, round)."""

    def __init__(self, runs: Path, name: str, preset=SATA_TLC, seed: int = 1, **params):
        super().__init__(runs, name, logical=4096, **params)
        self.model, self.now_ns = VirtualDrive(preset, capacity_bytes=CAPACITY_BYTES, seed=seed), 0
        self.truth: dict[tuple[str, int | None], Truth] = {}

    def smart(self, reason: str) -> None:
        ledger = self.model.ledger()
        self.t_ns += SETTLE_NS
        self.poll(reason, OLD_BYTES + ledger["host_write_bytes"], OLD_BYTES + ledger["nand_write_bytes"])

    def carried_out(self, keys, seconds: int) -> tuple[Put, Truth]:
        """A closed loop of so many seconds, all of the drive."""
        before, begun_ns = self.model.ledger(), self.now_ns
        threads, share = keys["threads"], keys["read"] / 100
        counts, latencies = self.model.closed_loop(
            queue_depth=keys["qd"] * threads,
            t_ns=begun_ns,
            duration_ns=seconds * SECOND_NS,
            read_share=share,
            npages=keys["block"][0][0] // PAGE_BYTES,
            samples=SAMPLES,
        )
        self.now_ns += seconds * SECOND_NS + SETTLE_NS
        self.model.advance(self.now_ns)
        after = self.model.ledger()
        watts = [
            self.model.energy_between(begun_ns + s * SECOND_NS, begun_ns + (s + 1) * SECOND_NS) for s in range(seconds)
        ]
        did = {key: after[key] - before[key] for key in before if key.startswith(("host_", "nand_"))}
        of_reads = did["host_read_commands"] / (did["host_read_commands"] + did["host_write_commands"])
        reads = [round(int(count) * of_reads) for count in counts]
        writes = [int(count) - read for count, read in zip(counts, reads, strict=True)]
        mean_ns, block = float(latencies.mean()), float(keys["block"][0][0])
        put = Put(reads, writes, mean_ns, mean_ns, watts, block, 0.0, {round(mean_ns): sum(reads) + sum(writes)})
        return put, Truth(put.ios, did["host_write_bytes"], did["nand_write_bytes"], sum(watts))

    def rests(self, ns: int) -> None:
        """Leaves the drive alone, which may work on its own."""
        end_ns = self.now_ns + ns
        while self.now_ns < end_ns:
            self.now_ns = min(end_ns, self.now_ns + LOOK_NS)
            self.model.advance(self.now_ns)

    def point(self, label: str, seconds: int, round_: int | None = None, gap_ns: int = 0, rested: bool = False) -> None:
        """`gap_ns`: in which the drive rests before it; `rested`: it did so already (rests)."""
        self.now_ns += 0 if rested else gap_ns
        put, self.truth[label, round_] = self.carried_out(self.acts[label].keys, seconds)
        self.does(label, put, round_, gap_ns=gap_ns or None)
