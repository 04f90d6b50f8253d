"""One power session of a campaign as it goes: commands are written until the power goes, the link breaks, power comes
back, the drive answers again. judging.py judges the outcome.

The writer runs in its own thread: the cut is waited for meanwhile. When the link is gone, and nothing is
outstanding any more, it releases the drive immediately, so that the kernel gives it the same name when it comes
back."""

import contextlib
import errno
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base import prctl
from ssdrig.base.errors import (
    ChangedDrive,
    DriveError,
    ExchangedDrive,
    NotPaired,
    RigError,
    SlotError,
    SsdrigError,
    words_of,
)
from ssdrig.drive.slot import WAYS_OUT
from ssdrig.plan.kinds import cut_aims, cut_mixes, cut_schedule
from ssdrig.plan.kinds.cut_schedule import Cut
from ssdrig.powerloss import aim, history, readback, waiting
from ssdrig.powerloss.filesystems import Filesystems
from ssdrig.powerloss.health import DEAD_CYCLES, READY_S
from ssdrig.powerloss.history import NEVER, History
from ssdrig.powerloss.layout import Layout
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.supply import Outcome, RigSupply, SwitchSupply
from ssdrig.powerloss.target import Target
from ssdrig.powerloss.writer import ERROR, GONE, Aim, Writer
from ssdrig.switch import pico
from ssdrig.switch.profiles import DEFAULT

OF_HOST = (errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS, errno.EMFILE, errno.ENFILE)  # errnos of who asks
LEAD_S = 0.2  # the shortest time from the order to the cut
MISSING_OFF_S, LAST_OFF_S = 10.0, 60.0  # of the power cycles of a missing drive, and of the last of them
# makers have a drive that is gone after a loss of power rebuild its tables for 20 minutes with power, twice (Crucial)
PATIENT_S, PATIENT_TRIES = 1200.0, 2  # how long it is waited for in the last power cycles, and how many they are
USUAL = DEFAULT  # the shape of a cut that no plan has a word on
TRIED_BLOCKS = 16
UNFLUSHED_BYTES = 1 << 20  # more are rarely unflushed while the usual streams send FLUSHes
GATHER_S, GATHER_LOOK_S = 30.0, 0.0005  # that bytes are waited for, longer than a session if need be; between looks
ANSWER_S = 1.0  # a drive that has power answers a read sooner
SIGNATURE_S = 40.0  # how long to wait for a current that a cut is aimed at
SWITCH_S = 0.0005  # how long another thread may keep the writer from its aimed command; Python's own is 5 ms
POLL_S = 0.01  # between two looks whether it is there
LOOK_S = 0.005  # between two looks whether its function reads as one without power
START_S = 3.0  # of current after the return of power
STARTS_A = 0.02  # at least, of a drive that starts; the sensors' offsets are below 2 mA
STARTS_SHARE = 0.5  # of its draw at the start of the rehearsal


@dataclass
class Lived:
    """A session that has ended. Times: ns of CLOCK_MONOTONIC; `settled_ns`: since when nothing was outstanding, None:
    something was to the end; `outcome` of the cut, None: no cut; `second`: of the one into its recovery;
    `ready_s`: from the return of power to the first block read; None: it was not away; `stalled_s`: the most of it
    that may not be the drive's: until power was back for certain, and what the host held up (waiting.py)."""

    rows: np.ndarray
    planned_ns: int | None
    ended_ns: int
    settled_ns: int | None
    outcome: Outcome | None
    plan: aim.Plan
    second: Outcome | None = None
    ready_s: float | None = None
    stalled_s: float = 0.0
    tries: int = 1
    aimed_seq: int | None = None  # of the command that was moved to the cut
    link_lost: bool = False
    by_kernel: bool = True  # a kernel is between, which may repeat commands once power is back
    starts: list[bool | None] = field(default_factory=list)  # of each further try: the drive drew its start-up current


class Gone(DriveError):
    """The drive of a session has not come back; `lived`: its record; `changed`: or it is there and may
    not be written, and these facts of it (health.State) differ."""

    def __init__(self, error: SsdrigError, lived: Lived, changed: Mapping[str, Any] | None = None):
        super().__init__(error.expected, error.seen, error.do)
        self.lived, self.changed = lived, changed or {}


class Cycle:
    """Sessions on one target, each by what `promise` is when it begins. `tell` accepts events of the run's journal.
    `thresholds`: of the drive's current, for aims at its bursts; `bulk_uF`: the capacitance of the rail, for a ramp;
    both None while unknown. `filesystems`: with clients at work while `down` is None, whose reports replace it before
    power returns."""

    def __init__(
        self,
        target: Target,
        supply: RigSupply | SwitchSupply,
        layout: Layout,
        promise: Promise,
        run: int,
        seed: int,
        keys: Mapping,
        tell: Callable[..., Any],
    ):
        self._target, self._supply, self._layout, self.promise = target, supply, layout, promise
        self._run, self._seed, self._keys, self._tell = run, seed, keys, tell
        self.thresholds: aim.Thresholds | None = None
        self.bulk_uF: float | None = None
        self._start_A: float | None = None  # what the rail draws while the drive starts
        self.filesystems: Filesystems | None = None
        self.down: Mapping[str, Any] | None = {}
        # when the last look at a drive that is waited for began, and the last one before that found it away
        self._asked_ns, self._failed_ns = 0, 0
        self._writing: _Writing | None = None
        self._ending = threading.Lock()

    def live(self, cut: Cut, folder: Path, first_seq: int, base: np.ndarray, link) -> tuple[Lived, Any]:
        """One session over `link`, which is used up: its outcome, and a new link. Raises RigError where the supply
        fails, DriveError for a drive that does not come back."""
        folder.mkdir(parents=True, exist_ok=True)  # a session that is repeated has one
        book = History(folder / "history.bin", first_seq)
        name = cut_mixes.drawn(self._keys["mixes"], cut.seed, cut.follows_again)
        flushes = (self._plan(cut).unflushed_bytes or 0) < UNFLUSHED_BYTES
        mix = cut_mixes.mix(name, self._keys["streams"], cut.seed, cut.number, flushes)
        how = mix.shares, mix.depth, mix.idle_ns
        writer = Writer(link, book, self._layout, self.promise, self._run, cut.number, cut.seed, base, *how)
        self._supply.server = getattr(link, "server", None)
        made = self._plan(cut)  # after the slow part
        plan = {"cut": cut.number, "aim": cut.aim, "shape": cut.shape, "control": cut.control, "seed": cut.seed}
        plan["mix"] = name
        self._tell("cut.plan", **plan, planned_ns=made.cut_ns)
        moved = None
        if made.submit_ns is not None:
            moved = Aim(made.kind, made.submit_ns, silence_ns=made.silence_ns, urgent=bool(made.kind))
        if made.unflushed_bytes is not None:
            writer.gather(made.unflushed_bytes)
        writing = self._writing = _Writing(writer, link, self._target, moved, leaves=cut.control is None)
        outcome = None
        try:
            if cut.control is None:
                with self._dropping():
                    outcome = self._cut(cut, made, writer)
            else:
                _until(made.cut_ns)
        finally:
            writing.end()
            book.close()
            self._down()
        if cut.control:
            _settled(writing)
        if cut.control == cut_schedule.ANNOUNCED:
            assert self._target.announce is not None
            link.close()
            self._target.announce()
            self._target.away()
            outcome = self._supply.cut(USUAL, None, self._keys["off_time"])
        rows = history.read(folder / "history.bin")
        lived = Lived(rows, made.cut_ns, writing.ended_ns, writing.settled_ns, outcome, plan=made)
        lived.aimed_seq, lived.link_lost = writer.aimed_seq, writing.left
        lived.by_kernel = self._target.slot is not None
        if outcome is None:
            return lived, link
        self._tell("cut.fired", cut=cut.number, fired_ns=outcome.fired_ns, bound_ns=outcome.bound_ns)
        if made.second_us is not None:
            second_ns = max(time.monotonic_ns() + int(LEAD_S * 1e9), outcome.on_ns + made.second_us * 1000)
            lived.second = self._supply.cut(USUAL, second_ns, self._keys["off_time"])
            self._tell("cut.fired", cut=cut.number, fired_ns=lived.second.fired_ns, bound_ns=lived.second.bound_ns)
        self._tell("cut.on", cut=cut.number, on_ns=outcome.on_ns)
        if not writing.left and not cut.control:  # it kept its power, or the loss went unnoticed
            link.close()
            self._target.away()
        return lived, self._back(cut, lived)

    def rehearse(self, link):
        """Take the drive away as cuts will, without a write: out of the kernel and in again where its slot needs that,
        then by a power cycle. Uses `link` up and returns a new one. Raises SlotError where the drive does not come
        back, NotPaired where it did not feel the power cycle, ExchangedDrive, UnsafeTarget, RigError."""
        slot = self._target.slot
        assert slot is not None
        self._tell("slot.rehearsal", place=slot.place.kind, hotplug=slot.place.hotplug, words=slot.place.words)
        if slot.removes:
            link.close()
            slot.drop()
            self._target.away()
            link = self._rejoined("it was removed from the kernel, with its power on")
        link.close()
        with self._dropping():
            outcome = self._supply.cut(USUAL, None, self._keys["off_time"])
        self._target.away()
        self._start_A = self._drawn_A()
        if outcome.why_not:
            do = "check that the rig, or the switch, feeds this drive and no other"
            raise NotPaired("the drive to lose its power in the rehearsal", outcome.why_not, do)
        link = self._rejoined("a power cycle without writes")
        ready_s = (time.monotonic_ns() - outcome.on_ns) / 1e9
        self._tell("slot.rehearsed", ready_s=ready_s, start_A=self._start_A, words=slot.place.words)
        return link

    def _rejoined(self, after: str):
        try:
            return self.there(READY_S)
        except (ExchangedDrive, ChangedDrive):
            raise
        except SsdrigError as error:
            expected = f"the drive back in the kernel within {READY_S:g} s after {after}: no cut was judged"
            raise SlotError(expected, words_of(error), WAYS_OUT) from error

    @contextlib.contextmanager
    def _dropping(self) -> Iterator[None]:
        """Meanwhile have the kernel drop a drive that it would keep, as soon as that one has lost its power: the
        commands then in flight end immediately, not after the kernel's 30 s."""
        slot = self._target.slot
        if slot is None or not slot.removes:
            yield
            return
        ended, failed = threading.Event(), []

        def watch() -> None:
            try:
                while not ended.wait(LOOK_S):
                    if slot.lost_power() or self._refused():
                        slot.drop()
                        self._down()
                        return
            except SsdrigError as error:
                failed.append(error)

        watching = threading.Thread(target=watch, name="powerloss-slot", daemon=True)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()
        if failed:
            raise failed[0]
        if not slot.dropped and slot.lost_power():  # power was back before anyone looked
            slot.drop()

    def _refused(self) -> bool:
        """Whether the kernel has given up on the commands in flight, where a rig cut the power: with two commands that
        is unknown."""
        return isinstance(self._supply, RigSupply) and self._writing is not None and self._writing.left

    def without(self) -> None:
        """Two commands switch the power, and the drive has none now: have the kernel drop it, if that was asked for,
        and take the file systems down. Raises DriveError, UnsafeTarget."""
        slot = self._target.slot
        if slot is not None and slot.always and not slot.dropped:
            slot.drop()
        self._down()

    def _down(self) -> None:
        """End the clients of the file systems, once in a session. Raises DriveError."""
        with self._ending:
            if self.filesystems is not None and self.down is None:
                self.down = self.filesystems.down()
                if self.down["down_ns"] is None:  # it would be in the way of the drive that comes back
                    do = "see the kernel's log (dmesg)"
                    raise DriveError("file systems that can be unmounted", "the kernel keeps one", do)

    def _drawn_A(self) -> float | None:
        """The mean current of the rail from now on, for START_S; None without a rig, or without samples."""
        if not isinstance(self._supply, RigSupply):
            return None
        try:
            return float(np.mean(self._supply.currents(START_S)))
        except RigError:
            return None

    def _starts(self) -> bool | None:
        """Whether the drive, whose power has just returned, draws the current of a start; None: unknown."""
        drawn_A = self._drawn_A() if self._target.slot else None
        return None if drawn_A is None else drawn_A >= max(STARTS_A, STARTS_SHARE * (self._start_A or 0.0))

    def possible(self, cut: Cut) -> Cut:
        """The cut with the shape that it will have: the usual one of a notified drive, and while the needs of its own
        one are not known."""
        announced = cut.control == cut_schedule.ANNOUNCED
        return (
            cut._replace(shape=USUAL)
            if cut.shape and (announced or cut_schedule.own(cut, self.bulk_uF) is None)
            else cut
        )

    def load(self, folder: Path, first_seq: int, base: np.ndarray, link, measure: Callable[[], Any]):
        """Write as in a session while `measure()` runs: (rows, its result). Raises DriveError where
        commands stay outstanding."""
        folder.mkdir(parents=True, exist_ok=True)
        book = History(folder / "history.bin", first_seq)
        shares = self._keys["streams"]
        writer = Writer(link, book, self._layout, self.promise, self._run, 0, self._seed, base, shares)
        writing = _Writing(writer, link, self._target, None, leaves=False)
        try:
            result = measure()
        finally:
            writing.end()
            book.close()
        _settled(writing)
        return history.read(folder / "history.bin"), result

    def _plan(self, cut: Cut) -> aim.Plan:
        """When and by what the cut comes, from now on."""
        begin_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        write_ns = int(self._keys["write"] * 1e9)
        if cut.control:
            return aim.Plan(cut.control, begin_ns + int(cut.share * write_ns))
        return aim.plan(cut_aims.parse(cut.aim), self._seed, cut.nth, begin_ns, begin_ns + write_ns, self.thresholds)

    def _cut(self, cut: Cut, made: aim.Plan, writer: Writer) -> Outcome | None:
        """The cut as it was aimed; None: its condition did not occur."""
        assert cut.shape is not None
        own = cut_schedule.own(cut, self.bulk_uF)
        assert own is not None
        when, boot = None, None
        if made.arm_ns is not None:
            _until(made.arm_ns)
        if made.above_A is not None:
            assert isinstance(self._supply, RigSupply)
            when = aim.when(made, self._supply.board_us, self._supply.lsb_A, self._supply.rail, cut.seed)
            own["timeout_s"], boot = SIGNATURE_S, self._supply.boot
        until = time.monotonic() + gathers_s(self._keys["write"])
        while made.unflushed_bytes is not None and writer.unflushed_bytes < made.unflushed_bytes:
            if time.monotonic() > until:
                break  # this drive does not acknowledge that many in the time
            time.sleep(GATHER_LOOK_S)
        try:
            return self._supply.cut(cut.shape, made.cut_ns, self._keys["off_time"], when, **own)
        except RigError as error:
            refused = error.seen.startswith(pico.REFUSED)
            if when is None or refused or not isinstance(self._supply, RigSupply) or boot != self._supply.boot:
                raise
            return None  # it was called off: no such current came

    def _back(self, cut: Cut, lived: Lived):
        """A link to the drive once it answers again, after some more power cycles if need be. Raises Gone."""
        assert lived.outcome is not None
        since = lived.second or lived.outcome
        slot, kernel_s = self._target.slot, 0.0
        appearances = slot.appearances if slot else 0
        if slot is not None and slot.removes:  # until here the kernel has kept the drive, which then cannot be seen
            kernel_s = (time.monotonic_ns() - since.on_ns) / 1e9
        while True:
            patient = lived.tries > DEAD_CYCLES - PATIENT_TRIES
            try:
                link = self.there(PATIENT_S if patient else READY_S)
            except ExchangedDrive:
                raise  # cutting this drive's power was not authorised
            except ChangedDrive as error:
                lived.ready_s = (time.monotonic_ns() - since.on_ns) / 1e9
                raise Gone(error, lived, error.facts) from error
            except SsdrigError as error:
                self._tell("drive.missing", cut=cut.number, tries=lived.tries, why=words_of(error))
                if self._target.ended():
                    raise
                if lived.tries >= DEAD_CYCLES:
                    raise Gone(error, lived) from error
                lived.tries += 1
                off_s = LAST_OFF_S if lived.tries == DEAD_CYCLES else MISSING_OFF_S
                since, kernel_s = self._supply.cut(USUAL, None, off_s), 0.0
                lived.starts.append(self._starts())
                continue
            lived.ready_s = (time.monotonic_ns() - since.on_ns) / 1e9
            until = waiting.now(getattr(link, "server", None))
            failed_s, asked_s = (max(0.0, (t_ns - since.on_ns) / 1e9) for t_ns in (self._failed_ns, self._asked_ns))
            looks = waiting.Looks(failed_s, asked_s, prove=slot is None)
            own_s = waiting.own_s(since.waited, until)
            server_s = waiting.server_s(since.waited, until) if slot is None else 0.0
            least_s = waiting.ready_least_s(lived.ready_s, since.on_late_s, looks, own_s, server_s)
            lived.stalled_s = min(lived.ready_s, max(kernel_s, lived.ready_s - least_s))
            if slot is not None and slot.appearances != appearances:
                lived.link_lost = True  # the kernel has found it again
            self._tell("drive.ready", cut=cut.number, ready_s=lived.ready_s)
            return link

    def answers(self) -> bool:
        """Whether the drive answers a read within ANSWER_S, under the name that it had. A kernel may hold the read
        until power is back, together with its caller: in a separate thread."""
        answered = threading.Event()

        def ask() -> None:
            with contextlib.suppress(SsdrigError, OSError), contextlib.closing(self._target.open()) as link:
                if self._reads(link):
                    answered.set()

        asking = threading.Thread(target=ask, name="powerloss-probe", daemon=True)
        asking.start()
        asking.join(ANSWER_S)
        return answered.is_set()

    def _reads(self, link) -> bool:
        """Whether one of some blocks can be read: a kernel that has not noticed yet, or not given up, refuses all."""
        first = self._layout.starts[:TRIED_BLOCKS].tolist()
        return any(readback.block(link, self._layout, lba) is not None for lba in first)

    def there(self, within_s: float):
        """A link to the drive, which has answered a read. Raises DriveError where it does not in time, ExchangedDrive
        where another one is in its place by then."""
        deadline, self._failed_ns = time.monotonic() + within_s, 0
        while True:
            link, self._asked_ns = None, time.monotonic_ns()
            try:
                self._target.back()
                queues = self._keys.get("queues", 1)
                link = self._target.open(queues) if queues > 1 else self._target.open()
                if not self._reads(link):
                    raise DriveError("a drive that reads", "an error for every block", "see the kernel's log (dmesg)")
                return link
            except (SsdrigError, OSError) as error:
                if link is not None:
                    with contextlib.suppress(SsdrigError, OSError):
                        link.close()
                if not _of_host(error):
                    self._failed_ns = self._asked_ns
                if time.monotonic() > deadline or self._target.ended():
                    if isinstance(error, (ExchangedDrive, ChangedDrive)):
                        raise
                    raise DriveError(
                        f"the drive to come back within {within_s:g} s of power", words_of(error), "look at the drive"
                    ) from error
            time.sleep(POLL_S)


class _Writing:
    """The writer at work in a thread. Where `leaves`, it lets go of the drive when its link is gone."""

    def __init__(self, writer: Writer, link, target: Target, moved: Aim | None, leaves: bool):
        self._writer, self._link, self._target, self._moved, self._leaves = writer, link, target, moved, leaves
        self._error: BaseException | None = None
        self.left = False
        self.ended_ns = 0
        self.settled_ns: int | None = None
        self._thread = threading.Thread(target=self._work, name="powerloss-writer", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        before_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        prctl.timer_slack(1)
        try:
            spread = getattr(self._link, "spread", contextlib.nullcontext)
            with spread():
                ended = self._writer.write(NEVER, self._moved)
            self.ended_ns = ended.t_ns
            self.settled_ns = self._writer.settle(int(self._target.settle_s * 1e9))
            if ended.reason in (GONE, ERROR) and self._leaves:
                self._link.close()
                self._target.away()
                self.left = True
        except BaseException as error:
            self._error = error
        finally:
            sys.setswitchinterval(before_s)

    def end(self) -> None:
        """End it and wait. Raises its error."""
        self._writer.stop()
        self._thread.join()
        if self._error:
            raise self._error


def _of_host(error: BaseException) -> bool:
    """Whether this host could not ask: no memory, no file, no socket left."""
    number = getattr(error, "errno", None)
    return number in OF_HOST or error.__cause__ is not None and _of_host(error.__cause__)


def gathers_s(write_s: float) -> float:
    """How long a cut waits for the bytes that it is aimed at, where a session writes for write_s."""
    return max(write_s, GATHER_S)


def _settled(writing: _Writing) -> None:
    """Raises DriveError where a drive that has its power owes an answer."""
    if writing.settled_ns is None:
        raise DriveError("all commands to end", "some have not", "see the kernel's log (dmesg)")


def _until(t_ns: int | None) -> None:
    if t_ns is not None:
        time.sleep(max(0.0, (t_ns - time.monotonic_ns()) / 1e9))
