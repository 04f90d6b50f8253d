"""Aimed cuts on the whole virtual bench, the real firmware among it, against their plan and against the truth of board
and drive: a campaign whose cuts are aimed at FLUSHes, and cuts into bursts of a load whose bursts are known. On the
host's own time, so on a busy machine the writer is late. Cuts aimed at bytes that are not flushed are in model time,
on drives of all speeds."""

import heapq
import json
import random
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly, in_turn, powerloss_runs
from selfcheck.powerloss_fall import DEAD_us, RISE_ms
from ssdrig.base.errors import DriveError, RigError, SsdrigError
from ssdrig.blockio.slots import Slots
from ssdrig.meter.pico.session import Session, session
from ssdrig.plan.kinds import cut_aims, cut_mixes
from ssdrig.powerloss import aim, cycle, judging
from ssdrig.powerloss import layout as layouts
from ssdrig.powerloss.history import WRITE, History
from ssdrig.powerloss.nbdwriter import Nbd
from ssdrig.powerloss.promise import FLUSH, Promise
from ssdrig.powerloss.verdict import Session as PowerSession
from ssdrig.powerloss.writer import Writer
from ssdrig.switch import pico
from ssdrig.virtual import bench as virtual
from ssdrig.virtual.board import supply
from ssdrig.virtual.device import truth
from ssdrig.virtual.flash.presets import PRESETS

BENCH = "powerloss-aim"
PRESET = "sata-tlc"
CUTS, BURSTS, BINS = 100, 50, 20
LEAST, LEAST_BURSTS = 40, 15  # fewer show nothing; so many sweep all bins
FLUSHES_S, BURSTS_S = 190.0, 150.0  # each part ends then, with what it has
FIRED_S = 10.0  # for a burst to come, and the power to go and return
NEAR_US, REACH_US = 300, 2000
CAMPAIGN = ('aims={ "flush:-2..2" = 1 }', "write=0.4 s")
ROUNDED_NS = 2000  # what the board says of the edge is in whole us
MOST_W = 12.0  # more than the drive ever draws
OFF = {"off_ms": 1, "residual_ms": 5}
BURST_S, PAUSE_S = 0.15, 0.35  # of the load, whose bursts are to be found
LEARN_S = 4.0
READY_S, SETTLE_NS = 30.0, 1_000_000_000
KEPT = Promise(FLUSH, 4096, 1, 0, 0, "zeros", True, "SIMULATED")
AT_WORK = 1.05  # of what it draws at rest: its own record has no noise
SHOWN = 40  # ms of that record before a cut that missed


def flushes(cuts: int) -> list[Figure]:
    """A campaign of cuts aimed at FLUSHes, as far as it comes in FLUSHES_S."""
    with tempfile.TemporaryDirectory(prefix="ssdrig-aim-", dir="/var/tmp") as name:
        runs = Path(name)
        code = powerloss_runs.within(powerloss_runs.begin(runs, cuts, *CAMPAIGN), FLUSHES_S)
        run = powerloss_runs.folder(runs)
        if code or run is None:
            print(f"exit code {code}: {powerloss_runs.last_output(runs)}", file=sys.stderr)
        if run is None:
            raise DriveError("a campaign", "no run folder", "see what it says")
        judged = powerloss_runs.cuts_of(powerloss_runs.records(run))
        carried_out = at_least(f"of {cuts} cuts, carried out in {FLUSHES_S:g} s", len(judged), "cuts", min(cuts, LEAST))
        if not carried_out.met:
            return [carried_out]
        known = [session for session in judged if session["delta_us"] is not None]
        boots = powerloss_runs.board(run)
        reports = {session["cut"]: powerloss_runs.report(run, session["cut"]) for session in known}
        edge_ns = np.array(
            [
                powerloss_runs.true_ns(boots, reports[session["cut"]]["fired_us"], session["fired_ns"])
                for session in known
            ]
        )
        lines = [json.loads(line) for line in (run / "truth" / "cuts.jsonl").read_text().splitlines()]
    delta_us, planned, bound = (
        np.array([session[key] for session in known]) for key in ("delta_us", "planned_delta_us", "delta_bound_us")
    )
    true_us = delta_us + (edge_ns - [session["fired_ns"] for session in known]) / 1000
    off_us, near = np.abs(delta_us - planned), np.abs(delta_us - planned) <= NEAR_US
    least_ns, most_ns = falls_ns()
    crossed_ns = np.array([line["t_ns"] for line in lines])
    fell_ns = [int(np.min(np.where(crossed_ns >= edge, crossed_ns - edge, 1 << 62))) for edge in edge_ns]
    follows = sum(least_ns <= span_ns <= most_ns for span_ns in fell_ns)
    hit = np.histogram(delta_us, BINS, (-REACH_US, REACH_US))[0]
    return [
        exactly("exit code of the campaign, 0 where it was ended in time", code or 0, "", 0),
        carried_out,
        at_least(f"of {len(judged)} cuts, within 0.3 ms of the plan", 100 * near.sum() / len(judged), "%", 95),
        Figure("median distance from the plan", float(np.median(off_us)), "us", "to compare", True),
        at_least(
            "the truth of the distance is inside its bound", 100 * np.mean(np.abs(delta_us - true_us) <= bound), "%", 99
        ),
        at_most("largest bound", float(bound.max()), "us", NEAR_US),
        exactly("cuts after which the drive's truth has its loss in time", follows, "cuts", len(known)),
        at_least(f"of {BINS} bins over 4 ms, hit", int((hit > 0).sum()), "bins", BINS),
    ]


def falls_ns() -> tuple[int, int]:
    """From the edge to the drive's lock-out: shortest and longest, ns, by the closed form of the SIMULATED supply."""
    load, volts = supply.Load(RISE_ms), PRESETS[PRESET].rail_V
    supply_ = supply.Supply(_Still(volts), load)
    dead_ns = DEAD_us * 1000

    def of(watts: float) -> int:
        at_V = supply_.voltage(supply.Phase(supply.ALIVE, 0, volts, 0.0, watts), dead_ns)  # the crowbar is open yet
        closed = supply.Phase(supply.ALIVE, dead_ns, at_V, load.discharge, watts)
        return load.gate_ns + supply_.crossing(closed, load.uvlo * volts)

    return of(MOST_W), of(0.0) + ROUNDED_NS


class _Still:
    def __init__(self, volts: float):
        self.volts = volts


def bursts(count: int) -> list[Figure]:
    """Cuts at the current's rise, of a load that works for a third of the time, as many as come in BURSTS_S."""
    edge_ns: list[int] = []
    tried, deadline = 0, time.monotonic() + BURSTS_S
    with tempfile.TemporaryDirectory(prefix="ssdrig-aim-", dir="/var/tmp") as name:
        folder = Path(name)
        made = virtual.start(PRESET, capacity="512MiB")
        try:
            assert made.port
            with session(made.port) as rig:
                learnt = _learnt(made, rig, folder)
                lsb_A = rig.rail(0)["current_lsb_pA"] * 1e-12
                for number in in_turn(range(1, count + 1), BENCH):
                    if time.monotonic() > deadline:
                        break
                    tried = number
                    plan = aim.plan(cut_aims.parse("burst"), 1, number, 0, 0, learnt)
                    with closing(_Bursts(made, folder, number)) as load:
                        try:
                            load.rests()
                            when = aim.when(plan, None, lsb_A, 0, number)
                            report = pico.arm_and_cut(rig.rig, when=when, timeout_s=FIRED_S, **OFF)
                        except (DriveError, RigError) as error:
                            print(f"cut {number}: {error}", file=sys.stderr)
                            continue
                    boots = json.loads(made.board_truth.read_text())
                    edge_ns.append(powerloss_runs.true_ns(boots, report["fired_us"], time.monotonic_ns()))
        finally:
            made.end(keep_truth_in=folder / "truth")
        power = Power.of(folder / "truth")
        inside = sum(power.in_burst(edge) for edge in edge_ns)
        for number, edge in enumerate(edge_ns, 1):
            if not power.in_burst(edge):
                print(f"cut {number} is in no burst; W of the ms before it: {power.before(edge)}", file=sys.stderr)
    least = min(count, LEAST_BURSTS)
    return [
        at_least(f"of {count} cuts into bursts, tried in {BURSTS_S:g} s", tried, "cuts", least),
        exactly(f"of {tried} cuts into bursts, fired", len(edge_ns), "cuts", tried),
        exactly(f"of {len(edge_ns)} cuts, inside a burst of the drive's truth", inside, "cuts", len(edge_ns)),
    ]


GATHERED = "bytes:8..64"
WITHIN = 0.25  # of the bytes that were planned
SPEEDS = (4e6, 3e9)  # of the drives, bytes a second
TOOK_NS, LATE_NS = (20_000, 200_000), (1_000_000, 80_000_000)  # a command beside its data; from the order to the edge
WRITE_S = 5.0


def gathered(count: int) -> list[Figure]:
    """Cuts aimed at bytes that are acknowledged and not flushed, in model time."""
    aims, times = cut_aims.parse(GATHERED), random.Random(1)
    within = near = 0
    least, most = 1e9, 0.0
    with tempfile.TemporaryDirectory(prefix="ssdrig-aim-") as name:
        for number in in_turn(range(count), BENCH):
            rate = SPEEDS[0] * (SPEEDS[1] / SPEEDS[0]) ** times.random()
            plan = aim.plan(aims, 1, number, 0, 0)
            MiB = gather(Path(name) / "history", plan, number, rate, times) / (1 << 20)
            (Path(name) / "history").unlink()
            assert plan.unflushed_bytes
            near += abs(MiB / (plan.unflushed_bytes / (1 << 20)) - 1) <= WITHIN
            within += aim.hit(aims, MiB, 0)
            least, most = min(least, MiB), max(most, MiB)
    return [
        at_least(f"of {count} cuts at {GATHERED}, within 25 % of their plan", 100 * near / count, "%", 95),
        at_least(f"of {count} cuts at {GATHERED}, {least:.2f} to {most:.2f} MiB: within it", within, "cuts", count),
    ]


def gather(path: Path, plan: aim.Plan, number: int, rate: float, times: random.Random) -> int:
    """One such session on a drive of `rate` bytes a second: the bytes that are not flushed at its cut."""
    assert plan.unflushed_bytes is not None
    link, places = _Paced(rate, times), layouts.make(KEPT.block_bytes, 1 << 30)
    mix = cut_mixes.mix(cut_mixes.USUAL, cut_mixes.SHARES, 1, number, plan.unflushed_bytes < cycle.UNFLUSHED_BYTES)
    writer = Writer(link, History(path, 1), places, KEPT, 1, number, 7, None, mix.shares, mix.depth, mix.idle_ns)
    writer.gather(plan.unflushed_bytes)
    until_ns = link.t_ns + int(cycle.gathers_s(WRITE_S) * 1e9)
    while writer.unflushed_bytes < plan.unflushed_bytes and link.t_ns < until_ns:
        writer.write(link.t_ns + int(cycle.GATHER_LOOK_S * 1e9))
    writer.write(cut_ns := link.t_ns + times.randint(*LATE_NS))
    rows = writer.book.written().copy()
    writer.book.close()
    session = PowerSession(rows, cut_ns, cut_ns, cut_ns, cut_ns)
    return judging.at_cut(session, KEPT)["unflushed_bytes"]


class _Paced:
    """A drive of one speed, without contents, as a transport in model time."""

    def __init__(self, rate: float, times: random.Random):
        self.slots, self.gone, self.under_way, self.t_ns, self.can_trim, self.can_zero = Slots(), "", 0, 0, True, True
        self._rate, self._times, self._busy_ns = rate, times, 0
        self._answers: list[tuple[int, int]] = []

    size_bytes = 1 << 30

    def now_ns(self) -> int:
        self.t_ns += 500
        return self.t_ns

    def submit(self, order: np.ndarray, n: int) -> None:
        for slot in order[:n].tolist():
            moved = self.slots.length[slot] if self.slots.kind[slot] == WRITE else 0
            self._busy_ns = max(self._busy_ns, self.t_ns) + int(1e9 * moved / self._rate)
            self.slots.status[slot] = 0
            heapq.heappush(self._answers, (self._busy_ns + self._times.randint(*TOOK_NS), slot))
        self.under_way += n

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        until_ns, n = self.t_ns + timeout_ns, 0
        if not self._answers or self._answers[0][0] > until_ns:
            self.t_ns = until_ns
            return 0
        self.t_ns = max(self.t_ns, self._answers[0][0])
        while self._answers and self._answers[0][0] <= self.t_ns and n < len(ended):
            ended[n] = heapq.heappop(self._answers)[1]
            n += 1
        self.under_way -= n
        return n

    def pause(self, ns: int) -> None:
        self.t_ns += ns

    def close(self) -> None:
        pass


def _learnt(made: virtual.VirtualBench, rig: Session, folder: Path) -> aim.Thresholds:
    idle_A = rig.readings([0], LEARN_S)[0].raw_A
    with closing(_Bursts(made, folder, 0)):
        return aim.learn(idle_A, rig.readings([0], LEARN_S)[0].raw_A)


class Power(NamedTuple):
    """What the drive drew, W, in each step since start_ns, by its own record of its energy. The last step begins before
    a cut and ends at it or up to a step before it, so a burst is known to last until then to one step: a mean of more
    of them reaches over the beginning of one that is short."""

    start_ns: int
    step_ns: int
    drawn_W: np.ndarray
    rest_W: float

    @staticmethod
    def of(folder: Path) -> "Power":
        start_ns, step_ns, nJ = truth.energies(str(folder))
        return Power(start_ns, step_ns, nJ / step_ns, PRESETS[PRESET].P_idle_mW / 1000)

    def in_burst(self, t_ns: int) -> bool:
        """Whether it drew more than at rest then."""
        return bool(self.drawn_W[self._at(t_ns) - 1] > AT_WORK * self.rest_W)

    def before(self, t_ns: int) -> str:
        return " ".join(f"{watts:.2f}" for watts in self.drawn_W[self._at(t_ns) - SHOWN : self._at(t_ns)])

    def _at(self, t_ns: int) -> int:
        return (t_ns - self.start_ns) // self.step_ns


class _Bursts:
    """A writer that works for BURST_S and rests for PAUSE_S, in turns, until it is closed or the drive is gone."""

    def __init__(self, made: virtual.VirtualBench, folder: Path, number: int):
        self._link = _linked(made)
        self._book = History(folder / f"{number}.bin", 1)
        layout = layouts.make(KEPT.block_bytes, self._link.size_bytes)
        self._writer = Writer(self._link, self._book, layout, KEPT, 1, number, 7)
        self._stopping, self._resting = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        while not self._stopping.is_set() and not self._link.gone:
            self._writer.write(time.monotonic_ns() + int(BURST_S * 1e9))
            self._writer.settle(SETTLE_NS)
            self._resting.set()
            self._stopping.wait(PAUSE_S)
            self._resting.clear()

    def rests(self) -> None:
        """Wait until the second burst is over: the next one can be told from rest by what came before it. Raises
        DriveError for a load that does not go on."""
        for turn in range(3):
            time.sleep(PAUSE_S if turn else 0)
            if not self._resting.wait(READY_S):
                raise DriveError("a load in bursts", self._link.gone or "none", "see whether the drive is there")

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._book.close()
        self._link.close()


def _linked(made: virtual.VirtualBench) -> Nbd:
    """A link to the drive, once it answers. Raises DriveError."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            return Nbd(made.fio_target)
        except (DriveError, OSError):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def shown(cuts: int = CUTS) -> list[Figure]:
    figures = []
    for part, count in ((gathered, 2 * cuts), (flushes, cuts), (bursts, min(cuts, BURSTS))):
        try:
            figures += part(count)
        except (SsdrigError, OSError, ValueError) as error:  # ValueError: no samples of a host that stood still
            print(f"{part.__name__}: {error}", file=sys.stderr)
            figures.append(exactly(f"{part.__name__}: carried out", 0, "", 1))
    return figures


BENCHES = {BENCH: ("aimed cuts on the virtual bench, against their plan and against the truth (5 min at most)", shown)}
