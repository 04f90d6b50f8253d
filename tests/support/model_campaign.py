"""A campaign of power cuts against the faulty drive in model time: the project's writer, reading and judging, with
nothing of the run around them. What is found is compared with the drive's own truth."""

import itertools
import math
import os
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from support.faulty_drive import FAULTS, Drive
from support.model_link import ModelLink

from ssdrig.plan import grammar
from ssdrig.plan.kinds import cut_mixes, cut_schedule
from ssdrig.plan.kinds.cut_aims import AGAIN
from ssdrig.powerloss import fill, health, judging, layout, readback, record, verdict
from ssdrig.powerloss.aim import Plan
from ssdrig.powerloss.campaign import Contents, damage_spreads
from ssdrig.powerloss.cycle import Lived
from ssdrig.powerloss.health import DEAD_CYCLES, State
from ssdrig.powerloss.history import NEVER as NEVER_NS
from ssdrig.powerloss.history import History
from ssdrig.powerloss.promise import ACK, FLUSH, Promise
from ssdrig.powerloss.supply import Outcome
from ssdrig.powerloss.tally import Tally
from ssdrig.powerloss.writer import Aim, Writer

RUN = 0x5EED
NEVER = 1 << 30
AIMS = {"random": 9, AGAIN: 1}
SHAPES, GLITCH, GLITCH_NS = {"command": 1}, "glitch", 1_000_000
MODES = ("volatile", "through", "plp")
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a history is synced after each session
PLAN = tomllib.loads(grammar.shipped()["powerloss"].read_text())["param"]
# how long a session writes, by what it sends, and how much slower than usual the drive is then
SESSION_NS = {
    cut_mixes.USUAL: (5_000_000, 40_000_000),
    cut_mixes.UNFLUSHED: (60_000_000, 250_000_000),
    cut_mixes.DEEP: (5_000_000, 40_000_000),
    cut_mixes.IDLE: (2_700_000_000, 5_000_000_000),
}
SLOW = {cut_mixes.IDLE: 200}
LONGER = {"lie_every_1000th": 4}  # as long: a real session of 5 s sends some hundred FLUSHes, one of these some ten
OFF_NS = (500_000_000, 2_000_000_000)
SETTLE_NS = 2_000_000_000
CANARIES = 64


class Tested(NamedTuple):
    """`sessions`: records; `accused`: {session: {block: first session that may have done it}}; `cut_of`: {number of the
    cut, as the drive counts: session}."""

    sessions: list[dict]
    accused: dict[int, dict[int, int]]
    cut_of: dict[int, int]
    tally: Tally
    commands: int


def promise(drive: Drive) -> Promise:
    kind = FLUSH if drive.mode == "volatile" else ACK
    return Promise(kind, drive.page_bytes, 0, 0, 0, None, True, "NBD: what FLUSH or FUA covers is kept")


def campaign(
    drive: Drive,
    folder: Path,
    cuts: int,
    seed: int,
    window_bytes: int,
    controls: int = 2,
    whole: Callable[[int], bool] | None = None,
    limit_s: float | None = None,
    weights: Mapping[str, int] = PLAN["mixes"],
    shares: Mapping[str, float] = PLAN["streams"],
    aims: Mapping[str, int] = AIMS,
    longer: int = 1,
    queues: int = PLAN["queues"],
    shapes: Mapping[str, int] = SHAPES,
) -> Tested:
    """So many cuts at random times, with control sessions between them. `whole`: which sessions read all of the window;
    None: as a campaign does. `weights`: of mixes; `shares`: of streams; `aims`: "random" and "again"; `longer`: times
    as long a session; `queues`: by which commands come in turn; `shapes`: "command", a
    cut, or "glitch", a dip of the supply that is no reset."""
    link, held = ModelLink(drive, seed, queues), promise(drive)
    places = layout.make(drive.page_bytes, drive.size, window_bytes, CANARIES)
    fill.fill(link, places, RUN)
    contents = Contents(places, verdict.known(places.base_blocks, fill.SEQ))
    plan = cut_schedule.cuts(seed, cuts, controls, aims, shapes, False)
    tested = Tested([], {}, {}, Tally(), 0)
    before, next_seq, felt, commands = State(0.0, capacity_bytes=link.size_bytes), 1, False, 0
    for n, cut in enumerate(plan):
        path = folder / "history.bin"
        path.unlink(missing_ok=True)
        book = History(path, next_seq)
        name = cut_mixes.drawn(weights, cut.seed, cut.follows_again)
        how = cut_mixes.mix(name, shares, cut.seed, cut.number)
        link.slow = SLOW.get(name, 1)
        base = contents.known.content
        writer = Writer(link, book, places, held, RUN, cut.number, cut.seed, base, how.shares, how.depth, how.idle_ns)
        least_ns, most_ns = SESSION_NS[name]
        lived = _lived(link, writer, book, cut, (longer * least_ns, longer * most_ns))
        link.slow = 1
        next_seq, commands = book.next_seq, commands + len(lived.rows)
        book.close()
        if lived.outcome is not None and cut.shape != GLITCH:
            tested.cut_of[drive.cuts] = cut.number
        if lived.outcome is not None and lived.ready_s is None:
            blocks, after = _nothing(), State(None)
            judged = _judge(cut, lived, blocks, link, held, before, after, tested, felt, limit_s)
            _add(tested, cut, judged, blocks)
            break
        after = State(lived.ready_s if lived.outcome else before.ready_s, capacity_bytes=link.size_bytes)
        all_of_it = contents.is_whole(n, len(plan)) if whole is None else whole(n) or n == len(plan) - 1
        more = True
        while more:
            runs = contents.wanted(lived.rows, cut.seed, all_of_it)
            blocks = contents.asked(readback.read(link, places, RUN, contents.known.content, runs, lived.rows))
            if cut.control or cut.aim == AGAIN:
                again = readback.again(link, places, RUN, contents.known.content, blocks)
                blocks = blocks._replace(seen=record.agreed(blocks.seen, again))
            judged = _judge(cut, lived, blocks, link, held, before, after, tested, felt, limit_s)
            more = not all_of_it and damage_spreads(len(judged.verdict.failed()), tested.tally.broken)
            all_of_it = all_of_it or more
        felt = felt or lived.outcome is not None
        before = health.compared(before, after)
        _add(tested, cut, judged, blocks)
        if judged.harness or "CAPACITY" in judged.record["findings"]:
            break
        if not len(lived.rows) or fill.flushed(link):
            contents.take(lived.rows, blocks, judged.verdict, held, cut.number, all_of_it)
        else:
            contents.take_unjudged([lived.rows], blocks, held, cut.number, all_of_it, settled=False)
    return tested._replace(commands=commands)


def _lived(link: ModelLink, writer: Writer, book: History, cut: cut_schedule.Cut, session_ns: tuple[int, int]) -> Lived:
    chance = np.random.default_rng([cut.seed, 1])
    end_ns = link.now_ns() + int(chance.integers(*session_ns))
    if cut.control:
        ended = writer.write(end_ns)
        settled_ns = writer.settle(SETTLE_NS)
        return Lived(book.written(), end_ns, ended.t_ns, settled_ns, None, Plan(cut.control, end_ns))
    if cut.shape == GLITCH:
        writer.write(end_ns)
        link.dip()
        ended = writer.write(end_ns + GLITCH_NS + int(chance.integers(*SESSION_NS[cut_mixes.USUAL])))
        outcome = Outcome(end_ns, 1000, end_ns + GLITCH_NS, GLITCH_NS / 1e9, "the rail was not seen low")
        settled_ns, plan = writer.settle(SETTLE_NS), Plan(cut.aim, end_ns)
        return Lived(book.written(), end_ns, ended.t_ns, settled_ns, outcome, plan, ready_s=0.1)
    link.cut_at_ns = end_ns
    silence = Aim(0, 0, silence_ns=NEVER_NS) if cut.aim == AGAIN else None
    ended = writer.write(end_ns + SETTLE_NS, silence)
    writer.settle(SETTLE_NS)
    on_ns = max(link.t_ns, end_ns) + int(chance.integers(*OFF_NS))
    ready_s = link.power_on(on_ns)
    settled_ns = writer.settle(SETTLE_NS)
    outcome = Outcome(end_ns, 1000, on_ns, (on_ns - end_ns) / 1e9)
    lived = Lived(book.written(), end_ns, ended.t_ns, settled_ns, outcome, Plan(cut.aim, end_ns), link_lost=True)
    lived.ready_s, lived.tries = ready_s, 1 if ready_s is not None else DEAD_CYCLES
    return lived


def _judge(cut, lived, blocks, link, held, before, after, tested: Tested, felt, limit_s) -> judging.Judged:
    usual_s, last = health.usual_s(tested.tally.ready_s), tested.tally.last_cut
    none = lambda lba: None
    how = before, after, usual_s, None, none, tested.tally.before(cut.number), limit_s, felt, last
    return judging.judge(cut, lived, blocks, link.t_ns + 1, held, True, *how)


def _add(tested: Tested, cut: cut_schedule.Cut, judged: judging.Judged, blocks: verdict.Blocks) -> None:
    tested.tally.add(judged.record)
    tested.sessions.append(judged.record)
    since = verdict.since(blocks, judged.verdict, cut.number)
    tested.accused[cut.number] = {int(blocks.lba[i]): int(since[i]) for i in judged.verdict.failed()}


def _nothing() -> verdict.Blocks:
    empty = np.zeros(0, np.int64)
    return verdict.Blocks(empty, empty, empty, np.zeros(0, bool))


class Compared(NamedTuple):
    """Blocks: `false` accused and innocent, `right` accused with an interval that has the cut that did it, `wrong` with
    another one, `missed`: damaged and read, and not accused. `bad`: cuts that did damage, `found` of them."""

    false: int
    right: int
    wrong: int
    missed: int
    bad: int
    matched: int


def compared(drive: Drive, tested: Tested) -> Compared:
    """With the drive's truth: each accused block must have been damaged, in the interval that is given."""
    damaged: dict[int, list[float]] = {}  # block -> cuts that damaged it
    for cut, pages in drive.truth.items():
        for page in pages:
            damaged.setdefault(page, []).append(cut)
    false = right = wrong = 0
    known: set[tuple[int, float]] = set()
    for number, blocks in tested.accused.items():
        for block, first in blocks.items():
            did = [fault for fault in damaged.get(block, []) if _sessions(fault, tested)[0] <= number]
            inside = [fault for fault in did if first <= _sessions(fault, tested)[1]]
            false, right, wrong = false + (not did), right + bool(inside), wrong + bool(did and not inside)
            known |= {(block, fault) for fault in inside}
    shown = {(page, cut) for cut, pages in drive.shown.items() if _sessions(cut, tested)[0] < NEVER for page in pages}
    bad = {cut for _, cut in shown}
    return Compared(false, right, wrong, len(shown - known), len(bad), len({cut for _, cut in known} & bad))


def _sessions(cut: float, tested: Tested) -> tuple[int, int]:
    """The first and the last session in which the damage of a cut, or of the time behind it, may have been done: a
    session reads with its power on, too."""
    return tested.cut_of.get(int(cut), 0 if cut < 1 else NEVER), tested.cut_of.get(math.ceil(cut), NEVER)


class Tried(NamedTuple):
    """A fault in one campaign. `exercised`: how often it did something; `events`: things wrong with the drive as a
    whole; `names`: what was found."""

    fault: str
    seed: int
    mode: str
    exercised: int
    events: int
    compared: Compared
    failing: tuple[int, int]
    suspicious: int
    cuts: int
    commands: int
    exit_code: int
    names: tuple[str, ...]


OF_SHAPE = {"brownout": {"command": 3, GLITCH: 1}}  # that need another shape
OF_512 = ("fua_unal4k",)  # that need a drive with blocks of 512 bytes
HONEST = "honest"


def tried(fault: str, cuts: int, seed: int, mode: str = "volatile") -> Tried:
    """One campaign on a drive with this fault, of FAULTS, or HONEST."""
    page_bytes = 512 if fault in OF_512 else 4096
    drive = Drive(64 << 20, seed, "" if fault == HONEST else fault, mode, page_bytes=page_bytes)
    how = {"longer": LONGER.get(fault, 1), "shapes": OF_SHAPE.get(fault, SHAPES)}
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        tested = campaign(drive, Path(folder), cuts, seed, 16 << 20, cuts // 20, **how)
        error, failing = tested.tally.outcome(Path(folder)), tested.tally.failing
    names = sorted({name for session in tested.sessions for name in session["findings"]})
    return Tried(
        fault,
        seed,
        mode,
        drive.exercised,
        len(drive.events),
        compared(drive, tested),
        (failing.least, failing.most),
        tested.tally.suspicious,
        tested.tally.cuts,
        tested.commands,
        error.exit_code if error else 0,
        tuple(names),
    )


def main(cuts: int, seeds: int, *faults: str) -> None:
    """A line for each fault and seed; HONEST in each mode of the cache."""
    for fault in faults or (HONEST, *FAULTS):
        for seed, mode in itertools.product(range(1, seeds + 1), MODES if fault == HONEST else MODES[:1]):
            of = tried(fault, cuts, seed, mode)
            print(
                f"{fault:18} {mode:8} seed {seed}: exit {of.exit_code:2}, {of.cuts} cuts, {of.commands} commands,"
                f" exercised {of.exercised}, events {of.events}, failing {of.failing[0]}..{of.failing[1]},"
                f" {of.suspicious} suspicious, {of.compared} {' '.join(of.names)}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
