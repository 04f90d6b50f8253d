"""A campaign of power cuts: fill the window, then session after session: write, cut, off, on, ready, read, judge.

After each verdict everything is on the disk (sessions.py), so a campaign that was killed goes on with the next session.
An interrupted session is not judged: the window is read once, and its content is where the next session begins.

The known contents of the window from session to session of a campaign, and the reads after each. No I/O.

Of each block: the content that was read last, after which session, and whether a trim may still take effect (verdict.
Known). Blocks that were under way at the latest cuts are read again after the next ones: a later cut may show them. So
is, after a session without a command, all that the session before it touched. After each session some of the rest is
read, wherever it is: data at rest may be lost, too, and a large window is read as a whole too seldom to tell.

The file systems of a campaign, session by session: made once, written to by their clients, looked at after each cut,
and made again if damaged.

The draw of a drive at rest, to aim at its own work. One that works after the writes (it folds its
cache) is waited for: a threshold learnt meanwhile is above all of its bursts."""

import contextlib
import functools
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base import prctl
from ssdrig.base.errors import (
    ControlFailed,
    DriveError,
    ExchangedDrive,
    JournalError,
    NotPaired,
    PowerCut,
    PromiseBroken,
    RigError,
    SlotError,
    SsdrigError,
    UsageError,
    words_of,
)
from ssdrig.base.terminal import printable
from ssdrig.blockio.slots import Transport
from ssdrig.drive.inventory import Drive
from ssdrig.drive.slot import PCIE, WAYS_OUT, went
from ssdrig.meter import pairing
from ssdrig.plan.kinds import cut_aims, cut_schedule
from ssdrig.plan.kinds.cut_schedule import Cut
from ssdrig.plan.rules.chance import Stop
from ssdrig.powerloss import (
    above,
    aim,
    filesystems,
    health,
    history,
    judging,
    precondition,
    readback,
    record,
    sessions,
    tally,
    verdict,
)
from ssdrig.powerloss import fall as falls
from ssdrig.powerloss.cycle import USUAL, Cycle, Gone, Lived
from ssdrig.powerloss.filesystems import Filesystems
from ssdrig.powerloss.fill import SEQ, fill, flush, flushed
from ssdrig.powerloss.history import ROW
from ssdrig.powerloss.layout import Layout, index, lba, make
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.supply import RigSupply, SwitchSupply
from ssdrig.powerloss.tally import Tally
from ssdrig.powerloss.verdict import Blocks, Known, Verdict
from ssdrig.runs import journal, parts
from ssdrig.switch import switch
from ssdrig.switch.profiles import PROFILES

LEARN_S = 10.0  # of idle, and of load
MOST_S = 300.0  # longest wait for it


def rest_A(
    supply: RigSupply,
    link: Transport,
    layout: Layout,
    check: Callable[[], None],
    tell: Callable[..., None],
    most_s: float = MOST_S,
) -> np.ndarray:
    """float64[n]: the current of LEARN_S after a read of one block, because a drive is awake then, as it is when a cut
    is aimed. `check` raises on a request to end; `tell` takes an event. Raises RigError, DriveError."""
    deadline = time.monotonic() + most_s
    while True:
        check()
        readback.block(link, layout, int(layout.starts[0]))
        currents = supply.currents(LEARN_S)
        if aim.rests(currents):
            return currents
        if time.monotonic() > deadline:
            tell("note", text=f"the drive was not at rest within {most_s:g} s: aims at its own work may miss it")
            return currents


REPORT = ("filesystem", "client", "session", "begun")


class Mounted:
    """asked: as cut_filesystems.parse() has them; capacity_bytes: of the drive, whose end they take."""

    def __init__(self, driver: Filesystems, asked: Sequence[Sequence[str]], block_bytes: int, capacity_bytes: int):
        self._driver, self._block_bytes = driver, block_bytes
        self._places = filesystems.places(asked, capacity_bytes)
        self._to_make = {place["kind"] for place in self._places}
        self._rest: list[dict[str, Any]] = []  # reports of the session before, of the undamaged ones

    def start(self, session: int, writes: bool = True) -> dict[str, Any] | None:
        """Make what there is to make, and start a client of each kind on each, or none where nothing `writes`: then
        the result of Filesystems.down(), otherwise None. Raises DriveError."""
        if places := [place for place in self._places if place["kind"] in self._to_make]:
            self._driver.make(self._block_bytes, places)
            self._to_make = set()
        if not writes:
            return {"clients": [], "down_ns": 0}
        self._driver.start(session, self._rest[0]["session"] if self._rest else 0)
        return None

    def forget(self) -> None:
        """Their state is unknown: make all again before the next session."""
        self._to_make, self._rest = {place["kind"] for place in self._places}, []

    def judge(self, cut: int, down: Mapping[str, Any], **times: Any) -> tuple[dict[str, Any], int]:
        """(the verdict above the block, bytes that all file systems wrote). The drive has its power. down: what
        Filesystems.down() gave; times: until_ns, fired_ns, why_not and block_failed of above.judge(). Raises
        DriveError."""
        reports = [*down["clients"], *self._rest]
        seen = self._driver.look([{key: part[key] for key in REPORT} for part in reports])
        session = above.judge(cut, reports, seen, down_ns=down["down_ns"], **times)
        damaged = {part["filesystem"] for part in session["clients"] if above.broken(part)}
        damaged |= {part["filesystem"] for part in session["filesystems"] if not above.sound(part)}
        self._to_make = damaged
        if not down["clients"]:
            self._rest = [part for part in self._rest if part["filesystem"] not in damaged]
            return session, seen["written_bytes"]
        self._rest = [
            {**{key: part[key] for key in REPORT}, "acked_ns": [0] * left["whole"][0][1], "at_rest": True}
            for part in down["clients"]
            for left in seen["clients"]
            if all(left[key] == part[key] for key in REPORT[:3])
            and part["filesystem"] not in damaged
            and len(left["whole"]) == 1
            and left["whole"][0][0] == 1
        ]
        return session, seen["written_bytes"]


WHOLE_EVERY = 50  # sessions after which all of the window is read
WHOLE_BYTES = 512 << 20  # a window that is read as a whole after each session
COLD_BYTES = 16 << 20  # of pieces all over the window that are read after each session
REOPENED = 2  # cuts after which that is read which was under way at an earlier one


class Contents:
    """`known`: arrays over the base (layout.base_blocks)."""

    def __init__(self, layout: Layout, known: Known):
        self.layout, self.known = layout, known
        self._again: list[np.ndarray] = []
        self._touched = readback.merged(np.zeros((0, 2), np.int64))

    @property
    def window_bytes(self) -> int:
        return self.layout.window_blocks * self.layout.block_bytes

    def is_whole(self, n: int, of: int) -> bool:
        """Whether all of the window is read after the n-th session, from 0, of this many."""
        return n % WHOLE_EVERY == WHOLE_EVERY - 1 or n == of - 1 or self.window_bytes <= WHOLE_BYTES

    def wanted(self, rows: np.ndarray, seed: int, whole: bool) -> np.ndarray:
        """The runs of blocks to read after a session with these commands, as readback.wanted() has them."""
        chance, near = np.random.default_rng(seed), readback.NEAR_BYTES // self.layout.block_bytes
        pieces = self.layout.window_blocks // near
        at = chance.integers(0, pieces, min(pieces, COLD_BYTES // readback.NEAR_BYTES)) * near
        first = lba(self.layout, at)
        cold = np.stack([first, first + near], 1)
        also = np.concatenate([*self._again, cold, self._touched[: 0 if len(rows) else None]])
        return readback.wanted(rows, self.layout, chance, whole, also=also)

    def asked(self, blocks: Blocks) -> Blocks:
        """Blocks that were read, with their known contents."""
        return verdict.asked(self.known, index(self.layout, blocks.lba), blocks)

    def take(
        self, rows: np.ndarray, blocks: Blocks, judgement: Verdict, promise: Promise, number: int, whole: bool
    ) -> None:
        """After the verdict on session `number`: the `blocks` that it read are what the next one begins with."""
        if judgement.why_not:  # commands were outstanding, and may still change their blocks
            self.take_unjudged([rows], blocks, promise, number, whole, settled=False)
        else:
            self._take(blocks, judgement, number, whole, np.ones(len(blocks.lba), bool))
        self._again = [*self._again, readback.open_runs(rows)][-REOPENED:]
        self._touched = readback.touched_runs(rows)

    def take_unjudged(
        self,
        unjudged: Sequence[np.ndarray],
        blocks: Blocks,
        promise: Promise,
        number: int,
        whole: bool,
        settled: bool = True,
    ) -> None:
        """After commands that are not judged: the blocks they touched count as they are now, and trims among them may
        still take effect. For a block that they did not touch and whose content is not allowed, the known content
        stays; it is read and judged in the next session. `number`: of the session before them."""
        rows = np.concatenate([np.zeros(0, ROW), *unjudged])
        blocks, ruling = verdict.unjudged(rows, blocks, promise, settled)
        good = ruling.finding == 0
        self._take(blocks, ruling, number, whole, good)
        bad = blocks.lba[~good]
        self._again = [readback.merged(np.stack([bad, bad + 1], 1))]

    def _take(self, blocks: Blocks, judgement: Verdict, number: int, whole: bool, good: np.ndarray) -> None:
        """Only of the `good` blocks; one that is not in a reading of the whole window is unchanged."""
        at = index(self.layout, blocks.lba)
        if whole:
            verified = self.known.verified[at]
            self.known.verified[:] = number
            self.known.verified[at] = verified
        verdict.take(self.known, at, blocks, judgement, number, good)


def damage_spreads(failing_blocks: int, broken: int) -> bool:
    """Whether the whole window is read right after a session that found this many damaged blocks, with `broken` such
    sessions before it: what its cut did must not be found after a later one. At the first, the second, the fourth, the
    eighth, …, since reading takes minutes."""
    return failing_blocks > 0 and (broken + 1) & broken == 0


NONE = Blocks(*(np.zeros(0, kind) for kind in (np.int64, np.int64, np.int64, bool)))
PROOFS = 64  # places that are read where a verdict's own reading shows nothing of this run
NAMED = 4  # files that are not as they were written
MARKS = 8  # places by which later steps know the drive
FIRST_S = 30.0  # for the drive to answer before the first session
RESTORE_S = 330.0  # of a teardown that gives the drive its power by a command


def carry_out(act, stage) -> dict:
    """All sessions of the act that are not judged yet: {"bytes", "stop"}. The finding is stage.outcome, too. Raises
    ControlFailed; DriveError for a drive that is gone; RigError."""
    prctl.large_apart()  # the arrays of a link, 16 MiB: memory swung by as much
    with stage.stop.second_raises(), contextlib.ExitStack() as open_links:
        return _Campaign(act, stage, open_links).carry_out()


class _Campaign:
    def __init__(self, act, stage, open_links: contextlib.ExitStack):
        self.act, self.stage, self.keys, self.book = act, stage, act.keys, stage.book
        self.link: Any = None  # to the drive, while there is one
        open_links.callback(self._close)
        self.target = stage.bench.target
        if self.target is None:
            do = "give --rig PORT, or --power-off and --power-on"
            raise UsageError("a bench that can take the drive's power", "none", do)
        root = parts.root(self.book.path)
        self.folders = parts.of(root)
        self.run = zlib.crc32(root.name.encode())
        self.promise = self.target.promise()
        self.asked, capacity = act.keys.get("filesystems") or [], stage.bench.drive["capacity_bytes"]
        size = capacity - filesystems.reserved_bytes(self.asked)
        self.size_bytes = size
        self.layout = make(self.promise.block_bytes, size, act.range_bytes)
        self.supply = self._supply()
        self.cycle = Cycle(
            self.target, self.supply, self.layout, self.promise, self.run, stage.seed, self.keys, self._tell
        )
        self.aims = dict(act.keys["aims"])
        if not isinstance(self.supply, RigSupply):  # without a rig the drive's current is unknown
            self.aims = {name: n for name, n in self.aims.items() if cut_aims.parse(name).name not in cut_aims.SIGNED}
            self.aims = self.aims or {"random": 1}
        if not self.promise.fua:  # the kernel sends a FLUSH in its place
            self.aims = cut_aims.without_fua(self.aims)
        self.contents = Contents(self.layout, verdict.known(0))
        self.next_seq = 1
        self.written_bytes = 0
        self.state = health.State(None)
        self.tally, self.misses = Tally(), 0
        self.session = 0  # the number of the session under way
        self.felt = False  # a cut of this part has shown that it reaches the drive
        self.mounted = self._mounted(open_links)
        self.most_above_bytes = 0  # of file systems in a session
        # sessions after which a file system or a client of one lacks guaranteed data
        self.damaged = above.damaged(event for part in self.folders for event in journal.events(part))

    def carry_out(self) -> dict:
        try:
            return self._carry_out()
        except PowerCut:
            raise
        except (SsdrigError, OSError) as error:
            raise self._beside(error) from error

    def _carry_out(self) -> dict:
        keys = self.keys
        every = cut_schedule.cuts(
            self.stage.seed,
            keys["cuts"],
            cut_schedule.controls(keys["cuts"], keys["control"]),
            self.aims,
            keys["shapes"] if isinstance(self.supply, RigSupply) else {"command": 1},
            self.target.announce is not None,
        )
        judged = self._tell_judged()
        todo = [cut for cut in every if cut.number not in judged and (keys["only"] or cut.number) == cut.number]
        self._begin(len(every), judged)
        why = None
        rule = Stop(None, keys["bound"], keys["stop"] == "first")
        for n, cut in enumerate(todo):
            self.stage.stop.check()
            if why := self.stage.over_budget(self.written_bytes, self._most_bytes()):
                break
            # the writer's threads come and go, and the links that they close are made by this one; what still grows are
            # the buffers that NumPy keeps, up to seven of each size below 1 KiB: 3.7 MB in all
            prctl.give_back()
            self._session(cut, self.contents.is_whole(n, len(todo)))
            self._show(n + 1, len(todo))
            # damage that no judged cut did ends a campaign that is to end with the first, too
            if why := rule.why(max(self.tally.failing.most, min(1, self.tally.broken)), self.tally.cuts):
                break
        if not isinstance(self.stage.outcome, PromiseBroken):  # of an earlier step
            self.stage.outcome = self._outcome() or self.stage.outcome
        self._tell("powerloss.end", stop=why)
        self.target.remember([int(lba) * self.layout.block_bytes for lba in self._written(MARKS)])
        return {"bytes": self.written_bytes, "stop": why}

    # ---- before the first session

    def _supply(self) -> RigSupply | SwitchSupply:
        stage, target = self.stage, self.target
        if target.commands:
            supply = SwitchSupply(
                switch.of(*target.commands), lambda: self.cycle.answers(), lambda: self.cycle.without()
            )
            stage.teardown.push("give the drive its power", supply.restore, RESTORE_S)
            return supply
        if stage.rig is None:
            raise UsageError("a rig that takes the drive's power", "none", "give --rig PORT")
        return RigSupply(stage.rig, self.book.path)

    def _tell_judged(self) -> set[int]:
        """The sessions that earlier parts have judged; one that came to its verdict, but not to its event, gets it
        now."""
        records = dict(sorted(sessions.judged(self.folders).items()))
        reported = {e["cut"] for part in self.folders for e in journal.events(part) if e["kind"] == sessions.JUDGED}
        for number in sorted(records.keys() - reported):
            self._tell(sessions.JUDGED, **records[number])
        self.tally = Tally(records.values())
        return set(records)

    def _begin(self, of: int, judged: set[int]) -> None:
        """The drive is there, the window filled or, of a campaign that goes on, read."""
        stage, promise = self.stage, self.promise
        self._same_campaign(stage.seed)
        self._tell(
            sessions.BEGIN,
            run=self.run,
            seed=stage.seed,
            cuts=self.keys["cuts"],
            sessions=of,
            aims=self.aims,
            shapes=self.keys["shapes"],
            streams=self.keys["streams"],
            mixes=self.keys["mixes"],
            queues=self.keys.get("queues", 1),
            precondition=self.keys.get("precondition", 0),
            bound=self.keys["bound"],
            window_bytes=self.contents.window_bytes,
            promise=promise._asdict(),
            cannot=[*self.target.cannot, *self._unlike_an_outage()],
        )
        try:
            self.link = self.cycle.there(FIRST_S)
        except DriveError:
            if not isinstance(self.supply, SwitchSupply):
                raise
            self.supply.give()  # a campaign that was killed may have left it without power
            self.link = self.cycle.there(FIRST_S)
        if not self.link.can_trim and (aims := [name for name in self.aims if cut_aims.parse(name).name == "trim"]):
            raise UsageError("a drive that takes trims, to aim at them", f"{aims[0]}", "leave the aim out")
        if self._filled():
            stage.progress.show(f"{self.act.path}: reading the window")
            flush(self.link)  # the drive may have kept its power, and its cache unjudged data
            self.contents = Contents(self.layout, sessions.known(self.folders, self.layout, judged))
            self._resynchronise(sessions.unjudged(self.folders), self.tally.last.get("cut", 0))
        else:
            self._precondition()
            stage.progress.show(f"{self.act.path}: filling the window")
            fill(self.link, self.layout, self.run)
            self.contents = Contents(self.layout, verdict.known(self.layout.base_blocks, SEQ))
            self._holds_the_fill()
            self.written_bytes += self.layout.base_blocks * self.layout.block_bytes
            self._tell("powerloss.filled", bytes=self.written_bytes)
        self._rehearse()
        self.next_seq = sessions.first_seq(self.folders, self.contents.known.content)
        self._learn()
        self.state = self._looked(0.0)

    def _holds_the_fill(self) -> None:
        """Before power is cut the drive must hold the fill: some of the window and every canary are read. A drive with
        a false capacity writes over its own data. Raises ControlFailed."""
        runs = self.contents.wanted(np.zeros(0, history.ROW), self.stage.seed, False)
        runs = readback.merged(np.concatenate([runs, readback.canaries(self.layout)]))
        blocks = readback.read(self.link, self.layout, self.run, self.contents.known.content, runs)
        bad = np.flatnonzero(blocks.seen != SEQ)
        if len(bad):
            seen = f"{len(bad)} of {len(blocks.lba)} blocks differ, the first is block {blocks.lba[bad[0]]}"
            do = "the drive reports a false capacity, or look at the cables, the host's memory, and who else writes"
            raise ControlFailed("the data just written, before any power was cut", seen, do)

    def _same_campaign(self, seed: int) -> None:
        """Raises JournalError where the folder of a campaign that goes on is not what that one wrote."""
        now = {"run": self.run, "seed": seed, "cuts": self.keys["cuts"], "streams": self.keys["streams"]}
        now |= {"mixes": self.keys["mixes"], "window_bytes": self.contents.window_bytes}
        lost, odd = sessions.doubts(self.folders)
        for event in (event for part in self.folders for event in journal.events(part)):
            if event["kind"] == sessions.BEGIN:
                odd += [
                    f"{key}: {event.get(key)}, now {value}" for key, value in now.items() if event.get(key) != value
                ]
        if odd:
            do = "take it from a copy of the run, or start the campaign over"
            raise JournalError("the folder of a campaign as that one wrote it", "; ".join(odd[:NAMED]), do)
        if lost:
            more = f"; and {len(lost) - NAMED} more" if len(lost) > NAMED else ""
            text = f"nothing is known of the window any more: {'; '.join(lost[:NAMED])}{more}"
            self._tell("note", text=text)
            self.stage.progress.warn(text)

    def _precondition(self) -> None:
        """Have the drive collect garbage from here on, where the plan asks for it. Raises DriveError."""
        times = self.keys.get("precondition", 0)
        if not times:
            return
        show = self.stage.progress.show

        def shown(done: int, of: int) -> None:
            self.stage.stop.check()
            show(f"{self.act.path}: preconditioning, {100 * done / of:.0f} %")

        made = precondition.write(self.link, self.size_bytes, times, self.stage.seed, shown)
        self.written_bytes += made.written_bytes
        self._tell(
            "powerloss.preconditioned", bytes=made.written_bytes, first_iops=made.iops[0], last_iops=made.iops[1]
        )

    def _mounted(self, open_links: contextlib.ExitStack) -> Mounted | None:
        """The file systems that the plan asks for. Raises UsageError where the target can have none."""
        if not self.asked:
            return None
        if self.target.filesystems is None:
            filesystems.refuse_server(self.asked)
        assert self.target.filesystems is not None
        driver = self.target.filesystems(self.asked)
        open_links.callback(driver.close)
        self.cycle.filesystems = driver
        if slot := self.target.slot:  # a kernel that kept the drive would repeat later what a file system had sent
            slot.always = True
            filesystems.refuse_place(self.asked, slot.place)
        capacity = self.stage.bench.drive["capacity_bytes"]
        return Mounted(driver, self.asked, self.promise.block_bytes, capacity)

    def _unlike_an_outage(self) -> list[str]:
        """Where PERST# stays released while a PCIe drive has no power, which no outage does."""
        if self.target.slot is None or self.target.slot.place.kind != PCIE:
            return []
        if isinstance(self.supply, RigSupply):
            why = "" if self.supply.sideband else "this rig does not drive it (no sideband in its board.json)"
        else:
            why = "the effect of this switch is unknown"
        if why:
            self.stage.progress.warn(f"PERST# may stay released while the drive has no power: {why}")
        return [f"an outage as its maker defines it, with PERST# asserted: {why}"] if why else []

    def _rehearse(self) -> None:
        """Where a kernel is between: see that the drive comes back, and still is this drive, before the first cut."""
        slot = self.target.slot
        if slot is None:
            return
        self.stage.progress.show(f"{self.act.path}: rehearsing that the drive comes back: {slot.place.words}")
        self.stage.teardown.push("have the kernel find the drive again", self._find_again, FIRST_S + RESTORE_S)
        flush(self.link)
        others = self.target.others()
        link, self.link = self.link, None
        self.link = self.cycle.rehearse(link)
        self._alone(others, "the rehearsal's cut")
        self._prove(NONE)

    def _alone(self, others: Sequence[Drive], cut: str) -> None:
        """Raises NotPaired if one of the other disks, as they were before a cut, has lost its power as well."""
        if lost := went(others, self.target.others()):
            disks = ", ".join(f"{disk.node} ({printable(disk.model)} {printable(disk.serial)})" for disk in lost)
            self._tell("powerloss.end", stop="other disks", disks=[disk.serial for disk in lost])
            do = "give the drive its own supply, and look at these disks before they are used"
            error = NotPaired(f"{cut} to take the power of this drive alone", f"it took that of {disks}", do)
            raise self._beside(error)

    def _find_again(self) -> None:
        """At the end of a campaign after which the kernel has dropped the drive. Raises DriveError, RigError."""
        if self.target.slot is not None and self.target.slot.dropped:
            self.supply.restore()
            self.cycle.there(FIRST_S).close()

    def _filled(self) -> bool:
        return any(event["kind"] == "powerloss.filled" for part in self.folders for event in journal.events(part))

    # ---- one session

    def _session(self, cut: Cut, whole: bool) -> None:
        where, cut = self.book.path / sessions.folder(cut.number), self.cycle.possible(cut)
        self.session = cut.number
        others = self.target.others()
        try:
            lived = self._lived(cut, where)
        except Gone as gone:
            self._gone(cut, gone.lived, gone.changed)
            raise
        if len(lived.rows):
            self.next_seq = int(lived.rows["seq"][-1]) + 1
        after = self._looked(lived.ready_s if lived.outcome else self.state.ready_s)
        verify_ns, fall = time.monotonic_ns(), self._fall(cut, lived)
        whole, more = whole, True
        while more:
            blocks = self._read(lived.rows, cut.seed, whole)
            if (
                cut.control or cut.aim == cut_aims.AGAIN
            ):  # a drive that reads differently on its own is found without a cut
                again = readback.again(self.link, self.layout, self.run, self.contents.known.content, blocks)
                blocks = blocks._replace(seen=record.agreed(blocks.seen, again))
            judged = judging.judge(
                cut,
                lived,
                blocks,
                verify_ns,
                self.promise,
                self.target.queues_deleted,
                self.state,
                after,
                health.usual_s(self.tally.ready_s),
                fall,
                lambda lba: readback.block(self.link, self.layout, lba),
                self.tally.before(cut.number),
                self.keys["ready"] or None,
                self.felt,
                self.tally.last_cut,
            )
            more = not whole and damage_spreads(len(judged.verdict.failed()), self.tally.broken)
            whole = whole or more
        judged.record["whole"] = whole
        if not self.felt and lived.outcome is not None and judging.feels(lived, self.state, after):
            self.felt = True
            if isinstance(self.supply, RigSupply):  # the drive's own answer, where a signature may have shown nothing
                why = f"cut {cut.number} by the rig took the drive's power"
                self._tell(pairing.EVENT, verdict=pairing.PAIRED, why=why, looks=[])
        self.state = health.compared(self.state, after)
        self._keep(lived, blocks, judged)
        if lived.outcome is not None:
            self._promised_now(cut)
            self._alone(others, f"cut {cut.number}")
        if judged.unfelt:
            self._tell("powerloss.end", stop="not felt")
            do = "the drive is not judged: check that the rig, or the switch, feeds this drive and no other"
            raise NotPaired(f"the drive to lose its power in cut {cut.number}", judged.unfelt, do)
        if judged.harness:
            self._tell("powerloss.end", stop="control")
            error = self._outcome()
            assert error is not None
            raise error
        if "CAPACITY" in judged.record["findings"]:  # the window may not be there any more
            self._tell("powerloss.end", stop="changed")
            outcome = self._outcome()
            assert outcome is not None
            raise outcome
        if lived.outcome is not None:
            self._prove(blocks)
        # the data read may be volatile: it kept its power, or the kernel repeated a write. Without a command the next
        # session's first FLUSH is the drive's first since its power returned
        if not len(lived.rows) or flushed(self.link):
            self.contents.take(lived.rows, blocks, judged.verdict, self.promise, cut.number, whole)
        else:
            self.contents.take_unjudged([lived.rows], blocks, self.promise, cut.number, whole, settled=False)
        if lived.outcome is None:
            self._missed(cut)
        self._judge_above(cut, lived, judged.record)

    def _judge_above(self, cut: Cut, lived: Lived, record: Mapping[str, Any]) -> None:
        """The state of the file systems and their clients, next to the verdict on the block. Raises DriveError."""
        if self.mounted is None:
            return
        assert self.cycle.down is not None
        outcome = lived.outcome
        why_not = "" if record["judged"] or record["why_not"] == judging.NOTHING_TESTED else record["why_not"]
        event, written_bytes = self.mounted.judge(
            cut.number,
            self.cycle.down,
            until_ns=outcome.on_ns if outcome else history.NEVER,
            fired_ns=outcome.fired_ns if outcome else None,
            why_not=why_not,
            block_failed=bool(record["failed"]),
        )
        self.written_bytes += written_bytes
        self.most_above_bytes = max(self.most_above_bytes, written_bytes)
        self.damaged += [cut.number] * event["failed"]
        self._tell(above.JUDGED, **event)

    def _beside(self, error: SsdrigError | OSError) -> SsdrigError | OSError:
        """An error that ends the campaign, or what the drive was proven guilty of before, which it does not take back,
        with it. That a drive stays away, or that another one may be in its place, does not prove itself."""
        outcome, broken = self._outcome(), self.tally.broken
        if isinstance(error, (Gone, ExchangedDrive)) and self.tally.last.get("cut") == self.session:
            broken -= bool(self.tally.last["failed"])
        if isinstance(error, PromiseBroken) or not isinstance(outcome, PromiseBroken) or not broken:
            return error
        return PromiseBroken(outcome.expected, f"{outcome.seen}; then: {words_of(error)}", outcome.do)

    def _gone(self, cut: Cut, lived: Lived, changed: Mapping[str, Any]) -> None:
        """The drive has not come back, or `changed`, which is what this cut did. Where two commands switch the power,
        its return was not seen. Raises PromiseBroken for a change, SlotError where the host is at fault."""
        by_slot = self.target.slot is not None
        if not isinstance(self.supply, RigSupply) or by_slot and not health.no_start(lived.starts):
            lived.tries = min(lived.tries, health.DEAD_CYCLES - 1)
        now_ns, unique, before, after = time.monotonic_ns(), self.target.queues_deleted, self.state, health.State(None)
        if changed:
            if before.capacity_bytes is None:
                before = before._replace(capacity_bytes=self.stage.bench.drive["capacity_bytes"])
            after = before._replace(ready_s=lived.ready_s, **changed)
        how = NONE, now_ns, self.promise, unique, before, after, None, self._fall(cut, lived), lambda lba: None
        judged = judging.judge(cut, lived, *how)
        alive = health.alive(lived.starts) if by_slot and not changed else ""
        if alive:  # a drive that the host does not see is not a finding
            none = {"findings": {}, "words": [], "failed": False, "interval": None, "suspicion": False}
            judged.record.update(judged=False, why_not=alive, **none)
        self._keep(lived, NONE, judged)
        if changed and isinstance(outcome := self._outcome(), PromiseBroken):
            self._tell("powerloss.end", stop="changed")
            raise outcome
        if alive:
            self._tell("powerloss.end", stop="alive")
            do = f"the drive is not judged: {WAYS_OUT}"
            raise SlotError("the host to find the drive again", alive, do)

    def _keep(self, lived: Lived, blocks: Blocks, judged: judging.Judged) -> None:
        """From now on the session is judged."""
        self.written_bytes += judged.record["written_bytes"]
        outcome = lived.outcome
        more = {"run": self.run, "promise": self.promise._asdict(), "report": outcome.report if outcome else None}
        more["picture"] = judged.picture
        picture = outcome.waveform if outcome else None
        sessions.put(self.book, judged.record, lived.rows, blocks, judged.verdict, judged.proofs, more, picture)
        self.tally.add(judged.record)
        self._tell(sessions.JUDGED, **judged.record)

    def _lived(self, cut: Cut, where: Path) -> Lived:
        """The session, repeated once where the rig failed. Raises RigError where it fails again, DriveError."""
        for last in (False, True):
            if self.mounted is not None:
                self.cycle.down = self.mounted.start(cut.number, writes=cut.aim != cut_aims.AGAIN)
            link, self.link = self.link, None
            try:
                lived, self.link = self.cycle.live(cut, where, self.next_seq, self.contents.known.content, link)
                return lived
            except RigError as error:
                if link is not None:
                    with contextlib.suppress(SsdrigError, OSError):
                        link.close()
                if last:
                    raise
                self._lost(cut, where, error)
        raise AssertionError("the last try returns or raises")

    def _lost(self, cut: Cut, where: Path, error: RigError) -> None:
        """The rig failed in a session, so its result is unknown and not judged: the drive gets its power,
        and the session starts over from the present content. Raises RigError, DriveError."""
        self._tell("session.lost", cut=cut.number, why=words_of(error))
        if self.mounted is not None:
            self.mounted.forget()
        rows = history.read(where / "history.bin")
        (where / "history.bin").rename(where / sessions.LOST)
        if len(rows):
            self.next_seq = int(rows["seq"][-1]) + 1
        self.supply.restore()
        self.target.away()
        self.link = self.cycle.there(FIRST_S)
        flush(self.link)  # it may have kept its power
        self._resynchronise([rows], cut.number - 1)
        self.state = self._looked(self.state.ready_s)
        self._promised_now(cut)

    def _promised_now(self, cut: Cut) -> None:
        """The guarantees that the next session is judged by. Without power a drive loses its settings (its
        write cache), and a kernel that attaches it again those of its queue. Raises DriveError for blocks of
        another size."""
        promise = self.target.promise()
        if promise.block_bytes != self.promise.block_bytes:
            seen, do = f"{promise.block_bytes}", "look at the drive: a cut must not format it"
            raise DriveError(f"logical blocks of {self.promise.block_bytes} bytes, as before the cut", seen, do)
        if promise != self.promise:
            self._tell("powerloss.promise", cut=cut.number, promise=promise._asdict(), was=self.promise._asdict())
            self.stage.progress.warn(f"from cut {cut.number} on the drive promises otherwise: {promise.why}")
            self.promise = self.cycle.promise = promise

    def _fall(self, cut: Cut, lived: Lived) -> dict | None:
        """What the picture of the fall shows; the capacitance of a crowbar's is kept for ramps."""
        outcome = lived.outcome
        if outcome is None or outcome.report is None or not isinstance(self.supply, RigSupply):
            return None
        shape = cut.shape or USUAL
        ohm = self.supply.discharge_ohm if PROFILES[shape].learnt else None
        own, rail = cut_schedule.own(cut, self.cycle.bulk_uF) or {}, outcome.report["rails"][0]
        back_us = PROFILES[shape].back_us(own)
        seen = falls.of(outcome.waveform, outcome.fired_ns, shape, rail, ohm, self.cycle.bulk_uF, back_us)
        if shape == USUAL and seen.capacitance_uF:
            self.cycle.bulk_uF = seen.capacitance_uF
        return seen._asdict()

    def _learn(self) -> None:
        """The drive's current, idle and under load, where cuts are aimed at its bursts."""
        if not isinstance(self.supply, RigSupply) or not {cut_aims.parse(name).name for name in self.aims} & set(
            cut_aims.SIGNED
        ):
            return
        self.stage.progress.show(f"{self.act.path}: learning what the drive draws, {2 * LEARN_S:g} s")
        where = self.book.path / sessions.folder(0)
        idle_A = rest_A(self.supply, self.link, self.layout, self.stage.stop.check, self._tell)
        measure = functools.partial(self.supply.currents, LEARN_S)
        rows, load_A = self.cycle.load(where, self.next_seq, self.contents.known.content, self.link, measure)
        name = sessions.LEARNT.format(self.next_seq)
        self.next_seq += len(rows)
        flush(self.link)
        self._resynchronise([rows], self.tally.last.get("cut", 0), whole=False)
        self.book.put(f"{sessions.folder(0)}/{name}", zlib.compress(rows.tobytes(), 1))
        (where / "history.bin").unlink()
        self.cycle.thresholds = aim.learn(idle_A, load_A)
        self._tell("powerloss.learnt", **self.cycle.thresholds._asdict())

    def _missed(self, cut: Cut) -> None:
        """The work that a cut was aimed at did not come: the learnt currents of the drive may no longer be valid.
        They are learnt again after the first, second, fourth, eighth, … time, because some drives never do such
        work."""
        if cut_aims.parse(cut.aim).name in cut_aims.SIGNED and not cut.control:
            self.misses += 1
            if self.misses & (self.misses - 1) == 0:
                self._learn()

    def _read(self, rows: np.ndarray, seed: int, whole: bool) -> Blocks:
        runs = self.contents.wanted(rows, seed, whole)
        blocks = readback.read(self.link, self.layout, self.run, self.contents.known.content, runs, rows)
        return self.contents.asked(blocks)

    def _resynchronise(self, unjudged: Sequence[np.ndarray], number: int, whole: bool = True) -> None:
        """Accept the present content after commands that are not judged. `number`: of the session before them."""
        there = self._read(np.concatenate([np.zeros(0, history.ROW), *unjudged]), 0, whole)
        if whole:
            self._prove(there)
        self.contents.take_unjudged(unjudged, there, self.promise, number, whole)

    def _prove(self, blocks: Blocks) -> None:
        """After an absence, judged or not, and before the next write: something of this run must be on the drive that
        came back. Where the blocks read for the verdict have nothing, some more places are read. Raises
        ExchangedDrive."""
        if self.target.exchanged is None or np.any(blocks.seen >= 0):
            return
        known = self._written(PROOFS)
        if len(known):
            runs = np.stack([known, known + 1], 1)
            blocks = readback.read(self.link, self.layout, self.run, self.contents.known.content, runs)
        elif len(self.contents.known.content) and np.any(self.contents.known.content != record.UNKNOWN):
            return  # nothing of this run was there before the absence either
        if not np.any(blocks.seen >= 0):
            self._tell("powerloss.end", stop="mark")
            raise self.target.exchanged(len(blocks.lba))

    def _written(self, count: int) -> np.ndarray:
        """int64[]: at most this many blocks, apart from each other, that were seen to hold content of this run."""
        at = np.flatnonzero(self.contents.known.content[: self.layout.window_blocks] >= 0)
        at = at[np.linspace(0, len(at) - 1, min(count, len(at))).astype(np.int64)]
        return self.layout.starts[at // self.layout.piece_blocks] + at % self.layout.piece_blocks

    def _looked(self, ready_s: float | None) -> health.State:
        state = judging.state(self.stage.live.poll_smart("cut"), ready_s)
        if "target" in self.stage.bench.drive:  # an NBD server, which has no other sign of it
            state = state._replace(capacity_bytes=self.link.size_bytes)
        return state

    def _most_bytes(self) -> int:
        """What the next session may write: half as much again as the most of any so far."""
        return int(1.5 * (self.tally.most_bytes + self.most_above_bytes))

    # ---- after the cut

    def _show(self, done: int, of: int) -> None:
        cuts, suspicious, failing = self.tally.cuts, self.tally.suspicious, self.tally.failing
        text = f"{tally.of(failing.least, failing.most, cuts)} broke a promise"
        text += f", {suspicious} suspicious" if suspicious else ""
        self.stage.live.share(
            done / of, text, self.written_bytes, cuts=cuts, failed=self.tally.broken, suspicious=suspicious
        )

    def _outcome(self) -> SsdrigError | None:
        return self.tally.outcome(self.book.path / sessions.FOLDER) or above.outcome(self.damaged)

    def _tell(self, kind: str, **fields) -> None:
        self.book.event(kind, step=self.act.path, **fields)

    def _close(self) -> None:
        if self.link is not None:
            with contextlib.suppress(SsdrigError, OSError):
                self.link.close()
