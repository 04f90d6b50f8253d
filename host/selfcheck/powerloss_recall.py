"""What the judge of power-loss tests finds of faults that are known: campaigns in model time on a SIMULATED drive with
one of the faults of virtual/device/powerfaults.py each, against the drive's own truth of what can be seen of it."""

import os
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly, in_turn
from selfcheck.powerloss_cuts import OFF_NS, RUN, Campaign
from ssdrig.base.errors import DriveError
from ssdrig.powerloss import fill, health, readback, record
from ssdrig.powerloss.findings import NAMES
from ssdrig.virtual.device import injector, powerfaults, smartlog
from ssdrig.virtual.flash.presets import PRESETS, MiB

SEEDS = 20
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a history is synced after each session
LEAST, MOST = 8, 100  # cuts of a campaign: after the first so many it ends with the first finding
AT_ONCE = 5  # cuts in which a fault must be found that hurts each time
SEEN_NS = 50_000  # by which answers are seen late in model time, at most
SESSION_NS = 5_000_000, 40_000_000  # shortest, longest: a FLUSH or two
WINDOW_NS, STEP_NS = 400_000_000, 50_000_000  # from power-on: in it capacitors are charged
CONTROLS = 3  # announced shutdowns at the start, for the energy of a start without empty capacitors

TLC = replace(PRESETS["sata-tlc"], time_dilation=1, capacity_bytes=32 * MiB, op=0.6)
PLP = replace(PRESETS["enterprise-50"], time_dilation=1, capacity_bytes=32 * MiB, op=0.5)


class Case(NamedTuple):
    """A fault as it is tried. given: its parameters but for p, which is the table's; within: cuts in which each seed
    must find it."""

    fault: str
    given: dict[str, Any] = {}
    preset: Any = TLC
    block_bytes: int = 4096
    within: int = MOST
    off_ns: tuple[int, int] = OFF_NS
    twice: bool = False  # blocks are read twice, as control sessions do


DIP_NS = (1_000_000, 20_000_000)
CASES = (
    Case("lying_flush", within=AT_ONCE),
    Case("fua_ignored", within=AT_ONCE),
    Case("map_rollback"),
    Case("paired_page", within=AT_ONCE),
    Case("torn_block"),
    Case("misdirected"),
    Case("trim_resurrected"),
    Case("partial_dump", preset=PLP),
    Case("bit_flip"),
    Case("dropped_write"),
    Case("old_region"),
    Case("ghost", within=AT_ONCE),
    Case("aged_unsaid", preset=PLP),
    Case("torn_atomic", preset=PLP),
    Case("unreadable_line"),
    Case("rmw_neighbours", block_bytes=512),
    Case("slow_recovery"),
    Case("dead", {"after": 10}),
    Case("read_only", {"after": 10}),
    Case("lost_identity", {"after": 10}),
    Case("smart_rollback"),
    Case("uncounted_shutdown"),
    Case("unstable_read", twice=True),
    Case("brownout", off_ns=DIP_NS),
)


class Result(NamedTuple):
    """Of one campaign. found_at: the first cut whose finding is right, None if there was none. missed: observable
    instances without a finding, blocks_missed: observable blocks; false: findings where no fault was."""

    cuts: int
    found_at: int | None
    observable: int
    missed: int
    right: int
    blocks_missed: int
    false: int


# findings on the drive that last: aged capacitors, and pages that an earlier cut has left unreadable, read once more
LASTING = {"PLP_DEGRADED", "SPARE_MEDIA"}


class Faulty(Campaign):
    """A campaign that reads all blocks after each cut, and asks the drive how it is."""

    def __init__(self, case: Case, seed: int, folder: Path, faults: dict | None):
        how = {"block_bytes": case.block_bytes, "capacity_bytes": case.preset.capacity_bytes}
        super().__init__(case.preset, folder, seed, session_ns=SESSION_NS, **how)
        self.case = case
        self.recharge_J: list[float] = []
        self.ready_s: list[float] = []
        self.off_ns = case.off_ns
        fill.fill(self.transport, self.layout, RUN)
        self.known.content[:] = fill.SEQ
        self._usual_J = float(np.mean([self._announced_J() for _ in range(CONTROLS)]))
        if faults:
            self.device.faults = injector.Injector(faults, SEEN_NS, case.block_bytes)
        self.state = self._state(None)

    def _announced_J(self) -> float:
        """Energy of a start after an announced shutdown."""
        transport, device = self.transport, self.device
        clean_ns = device.shut_down(transport.now_ns())
        transport.pause(clean_ns - transport.t_ns + 1_000_000)
        device.power_cut(transport.t_ns)
        on_ns = transport.t_ns + 1_000_000_000
        transport.power_on(on_ns)
        self._wait()
        return device.energy_J(on_ns, transport.t_ns) - self._steady_J(on_ns)

    def _wait(self) -> None:
        """Until the capacitors are charged. The drive draws power for at most 250 ms that nobody looks at."""
        for _ in range(WINDOW_NS // STEP_NS):
            self.transport.pause(STEP_NS)

    def _steady_J(self, on_ns: int) -> float:
        """What an idle drive draws in that time: starts differ in length."""
        return self.device.preset.P_idle_mW / 1e3 * (self.transport.t_ns - on_ns) / 1e9

    def read(self, rows: np.ndarray, chance: np.random.Generator):
        if self.device.reserve:
            on_ns = int(self.device.last_cut["on_t_ns"])
            self._wait()
            self.recharge_J.append(
                self.device.energy_J(on_ns, self.transport.t_ns) - self._steady_J(on_ns) - self._usual_J
            )
        runs = readback.all_blocks(self.layout)
        blocks = readback.read(self.transport, self.layout, RUN, self.known.content, runs)
        if self.case.twice:
            again = readback.read(self.transport, self.layout, RUN, self.known.content, runs)
            blocks = blocks._replace(seen=record.agreed(blocks.seen, again.seen))
        return blocks

    def _state(self, ready_s: float | None) -> health.State:
        known, counters = self.device.identity(), self.device.health()
        identity = {name: known[name] for name in ("model", "serial", "firmware", "capacity_bytes")}
        pages = smartlog.log_02h(counters), smartlog.log_c0h(counters) if self.device.reserve else None
        return health.of_pages(ready_s, identity, *pages)

    def drive_says(self, ready_ns: int | None) -> set[str]:
        """Findings on the drive as a whole, after a cut."""
        if ready_ns is None:
            return {symptom.name for symptom in health.judge(self.state, health.State(None), tries=health.DEAD_CYCLES)}
        before, self.state = self.state, self._state(ready_ns / 1e9)
        usual_s = health.usual_s(self.ready_s)
        self.ready_s.append(ready_ns / 1e9)
        symptoms = {symptom.name for symptom in health.judge(before, self.state, usual_s=usual_s)}
        aged = health.capacitors(range(len(self.recharge_J)), self.recharge_J)
        return symptoms | ({aged.name} if aged else set())


def campaign(case: Case, seed: int, with_fault: bool = True, least: int = LEAST, most: int = MOST) -> Result:
    """Cuts until the fault is found, at least `least`, at most `most`."""
    fault = powerfaults.BY_NAME[case.fault]
    faults = {case.fault: {"p": fault.p, **case.given}, powerfaults.SEED: seed} if with_fault else None
    count = dict.fromkeys(("observable", "missed", "right", "blocks_missed", "false"), 0)
    found_at, n = None, 0
    with tempfile.TemporaryDirectory(prefix="ssdrig-recall-", dir=MEMORY) as folder:
        test = Faulty(case, seed, Path(folder), faults)
        try:
            while n < most and (n < least or found_at is None):
                n += 1
                failed, names, late_trims = _one(test)
                truth = [injected for injected in test.device.last_cut["faults"] if injected["observable"]]
                faults_of = test.device.last_cut["faults"]
                score = _compared(fault, truth, failed, names, faults_of, case.block_bytes, late_trims)
                for name in count:
                    count[name] += score[name]
                known = score["right"] or (names & set(fault.leads_to) and with_fault)
                found_at = n if found_at is None and known else found_at
                if names & {"DEAD", "MISSING"}:
                    break
        finally:
            test.close()
    return Result(n, found_at, **count)


def _one(test: Faulty) -> tuple[dict[int, str], set[str], set[int]]:
    """({block: class} of the blocks that break a promise, findings on the drive, blocks that read as zeros and that an
    earlier trim allows to) of the next cut."""
    try:
        cut = test.cut()
    except DriveError:
        return {}, test.drive_says(None), set()
    blocks, ruling = cut.blocks, cut.verdict
    failed = {int(blocks.lba[i]): NAMES[ruling.finding[i]] for i in ruling.failed()}
    late_trims = blocks.lba[blocks.trimmed & (blocks.seen == record.ZEROS)]
    return failed, test.drive_says(cut.ready_ns), set(late_trims.tolist())


def _compared(
    fault: powerfaults.Fault,
    truth: list[dict],
    failed: dict[int, str],
    names: set[str],
    all_truth: Iterable[dict],
    block_bytes: int,
    late_trims: set[int],
) -> dict[str, int]:
    """Counts of a Result, of one cut. A block that was trimmed before and reads as zeros is no miss: only the drive
    knows that it had lost that trim."""
    out = dict.fromkeys(("observable", "missed", "right", "blocks_missed", "false"), 0)
    of_a_page = 4096 // block_bytes
    touched: set[int] = set()
    for injected in all_truth:
        touched |= {page * of_a_page + k for page in injected["pages"] for k in range(of_a_page)} | set(
            injected["blocks"]
        )
    for injected in truth:
        reported = {failed[block] for block in injected["blocks"] if block in failed} if injected["blocks"] else names
        out["observable"] += 1
        out["missed"] += not reported
        out["right"] += bool(reported & set(fault.leads_to))
        out["blocks_missed"] += sum(block not in failed and block not in late_trims for block in injected["blocks"])
    out["false"] = len(failed.keys() - touched) + len(names - set(fault.leads_to) if truth else names - LASTING)
    return out


def recall(seeds: int = SEEDS) -> list[Figure]:
    """Each case with each seed."""
    out = []
    total = dict.fromkeys(("observable", "missed", "right", "blocks_missed", "false"), 0)
    for case in CASES:
        results = [campaign(case, seed) for seed in in_turn(range(1, seeds + 1), f"powerloss-recall {case.fault}")]
        for name in total:
            total[name] += sum(getattr(result, name) for result in results)
        worst = max(result.found_at or 10 * MOST for result in results)
        seen = sum(result.observable for result in results)
        out.append(
            at_most(f"{case.fault}: cuts to the first finding, at worst", worst, f"of {seeds} seeds", case.within)
        )
        out.append(Figure(f"{case.fault}: observable instances", float(seen), "instances", "for comparison", True))
    out.append(exactly("observable instances without a finding", total["missed"], "instances", 0))
    out.append(exactly("observable blocks without a finding", total["blocks_missed"], "blocks", 0))
    share = 100 * total["right"] / max(1, total["observable"] - total["missed"])
    out.append(at_least("instances with the right class", share, "%", 95))
    out.append(exactly("findings where no fault was", total["false"], "findings", 0))
    clean = [campaign(case, seed, False, MOST // 5, MOST // 5) for case in (CASES[0], CASES[7]) for seed in (1, 2)]
    out.append(
        exactly(
            f"findings in {sum(result.cuts for result in clean)} cuts without faults",
            sum(result.false for result in clean),
            "findings",
            0,
        )
    )
    return out


BENCHES = {
    "powerloss-recall": ("what the judge of power-loss tests finds of 24 seeded faults of the virtual drive", recall)
}
