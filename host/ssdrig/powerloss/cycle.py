"""One power session of a campaign as it goes: commands are written until the power goes, the link breaks, power comes
back, the drive answers again. What it comes to is judged in judging.py.

The writer runs in a thread of its own: the cut is waited for meanwhile. When the link is gone, and nothing is
outstanding any more, it lets go of the drive at once, so that the kernel gives it the same name when it comes back."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.errors import DriveError, RigError, SsdrigError, words_of
from ssdrig.powerloss import aim, history, readback, schedule
from ssdrig.powerloss.history import NEVER, History
from ssdrig.powerloss.layout import Layout
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.schedule import Cut
from ssdrig.powerloss.supply import CommandSupply, Outcome, RigSupply
from ssdrig.powerloss.target import Target
from ssdrig.powerloss.writer import ERROR, GONE, Aim, Writer
from ssdrig.rig.profiles import DEFAULT

LEAD_S = 0.2  # the shortest time from the order to the cut
SETTLE_S = 120.0  # the kernel gives up on a command after 30 s, and may repeat it
READY_S = 30.0  # a drive that takes longer is missing; it gets more power cycles then
TRIES = 3  # power cycles in which a missing drive is waited for
MISSING_OFF_S = 10.0
USUAL = DEFAULT  # the shape of a cut that no plan has a word on
SIGNATURE_S = 40.0  # so long a current is waited for that a cut is aimed at
POLL_S = 0.01  # between two looks whether it is there


@dataclass
class Lived:
    """A session that has ended. Times: ns of CLOCK_MONOTONIC; `settled_ns`: since when nothing was outstanding, None:
    something was to the end; `outcome` of the cut, None: there was none; `second`: of the one into its recovery;
    `ready_s`: from the return of power to the first block read; None: it was not away."""

    rows: np.ndarray
    planned_ns: int | None
    ended_ns: int
    settled_ns: int | None
    outcome: Outcome | None
    plan: aim.Plan
    second: Outcome | None = None
    ready_s: float | None = None
    tries: int = 1


class Cycle:
    """Sessions on one target. `tell` takes events of the run's journal. `thresholds`: of the drive's current, for aims
    at its bursts; `bulk_uF`: the capacitance of the rail, for a ramp; both None as long as they are not known."""

    def __init__(
        self,
        target: Target,
        supply: RigSupply | CommandSupply,
        layout: Layout,
        promise: Promise,
        run: int,
        seed: int,
        keys: Mapping,
        tell: Callable[..., Any],
    ):
        self._target, self._supply, self._layout, self._promise = target, supply, layout, promise
        self._run, self._seed, self._keys, self._tell = run, seed, keys, tell
        self.thresholds: aim.Thresholds | None = None
        self.bulk_uF: float | None = None

    def live(self, cut: Cut, folder: Path, first_seq: int, base: np.ndarray, link) -> tuple[Lived, Any]:
        """One session over `link`, which is used up: what it came to, and a new link. Raises RigError where the supply
        fails, DriveError for a drive that does not come back."""
        folder.mkdir(parents=True)
        book = History(folder / "history.bin", first_seq)
        writer = Writer(link, book, self._layout, self._promise, self._run, cut.number, cut.seed, base)
        made = self._plan(cut)
        said = {"cut": cut.number, "aim": cut.aim, "shape": cut.shape, "control": cut.control, "seed": cut.seed}
        self._tell("cut.plan", **said, planned_ns=made.cut_ns)
        moved = None
        if made.submit_ns is not None:
            moved = Aim(made.kind, made.submit_ns, silence_ns=made.silence_ns)
        writing = _Writing(writer, link, self._target, moved, leaves=cut.control is None)
        outcome = None
        try:
            if cut.control is None:
                outcome = self._cut(cut, made, writer)
            else:
                _until(made.cut_ns)
        finally:
            writing.end()
            book.close()
        if cut.control == schedule.ANNOUNCED and writing.settled_ns is not None:
            assert self._target.announce is not None
            link.close()
            self._target.announce()
            self._target.away()
            outcome = self._supply.cut(USUAL, None, self._keys["off_time"])
        rows = history.read(folder / "history.bin")
        lived = Lived(rows, made.cut_ns, writing.ended_ns, writing.settled_ns, outcome, plan=made)
        if outcome is None:
            return lived, link
        self._tell("cut.fired", cut=cut.number, fired_ns=outcome.fired_ns, bound_ns=outcome.bound_ns)
        if made.second_us is not None:
            second_ns = max(time.monotonic_ns() + int(LEAD_S * 1e9), outcome.on_ns + made.second_us * 1000)
            lived.second = self._supply.cut(USUAL, second_ns, self._keys["off_time"])
            self._tell("cut.fired", cut=cut.number, fired_ns=lived.second.fired_ns, bound_ns=lived.second.bound_ns)
        self._tell("cut.on", cut=cut.number, on_ns=outcome.on_ns)
        if not writing.left and not cut.control:  # it kept its power, or nobody has noticed
            link.close()
            self._target.away()
        return lived, self._back(cut, lived)

    def load(self, folder: Path, first_seq: int, base: np.ndarray, link, measure: Callable[[], Any]):
        """Write as in a session as long as `measure()` takes: (rows, what that returned). Raises DriveError where
        something is outstanding in the end."""
        folder.mkdir(parents=True)
        book = History(folder / "history.bin", first_seq)
        writer = Writer(link, book, self._layout, self._promise, self._run, 0, self._seed, base)
        writing = _Writing(writer, link, self._target, None, leaves=False)
        try:
            found = measure()
        finally:
            writing.end()
            book.close()
        if writing.settled_ns is None:
            raise DriveError("all commands to end", "some have not", "see the kernel's log (dmesg)")
        return history.read(folder / "history.bin"), found

    def _plan(self, cut: Cut) -> aim.Plan:
        """When and by what the cut comes, from now on."""
        begin_ns = time.monotonic_ns() + int(LEAD_S * 1e9)
        write_ns = int(self._keys["write"] * 1e9)
        if cut.control:
            return aim.Plan(cut.control, begin_ns + int(cut.share * write_ns))
        return aim.plan(aim.parse(cut.aim), self._seed, cut.nth, begin_ns, begin_ns + write_ns, self.thresholds)

    def _cut(self, cut: Cut, made: aim.Plan, writer: Writer) -> Outcome | None:
        """The cut as it was aimed; None: what it was to wait for did not come."""
        assert cut.shape is not None
        own = schedule.own(cut, self.bulk_uF)
        shape, own = (USUAL, {}) if own is None else (cut.shape, own)
        when = None
        if made.arm_ns is not None:
            _until(made.arm_ns)
        if made.above_A is not None:
            assert isinstance(self._supply, RigSupply)
            when = aim.when(made, self._supply.board_us, self._supply.lsb_A, self._supply.rail, cut.seed)
            own["timeout_s"] = SIGNATURE_S
        until = time.monotonic() + self._keys["write"]
        while made.unflushed_bytes is not None and writer.unflushed_bytes < made.unflushed_bytes:
            if time.monotonic() > until:
                break  # its own FLUSHes come too often for so many
            time.sleep(0.0005)
        try:
            return self._supply.cut(shape, made.cut_ns, self._keys["off_time"], when, **own)
        except RigError:
            if when is None:
                raise
            return None  # it was called off: no such current came

    def _back(self, cut: Cut, lived: Lived):
        """A link to the drive once it answers again, after some more power cycles if need be. Raises DriveError."""
        assert lived.outcome is not None
        since_ns = (lived.second or lived.outcome).on_ns
        while True:
            try:
                link = self.there(READY_S)
            except SsdrigError as error:
                self._tell("drive.missing", cut=cut.number, tries=lived.tries, why=words_of(error))
                if lived.tries >= TRIES:
                    raise
                lived.tries += 1
                since_ns = self._supply.cut(USUAL, None, MISSING_OFF_S).on_ns
                continue
            lived.ready_s = (time.monotonic_ns() - since_ns) / 1e9
            self._tell("drive.ready", cut=cut.number, ready_s=lived.ready_s)
            return link

    def answers(self) -> bool:
        """Whether the drive is there, just now."""
        try:
            self.there(0.0).close()
        except DriveError:
            return False
        return True

    def there(self, within_s: float):
        """A link to the drive, which has answered a read. Raises DriveError where it does not in time."""
        deadline = time.monotonic() + within_s
        while True:
            link = None
            try:
                self._target.back()
                link = self._target.open()
                readback.block(link, self._layout, int(self._layout.starts[0]))
                return link
            except (SsdrigError, OSError) as error:
                if link is not None:
                    with contextlib.suppress(SsdrigError, OSError):
                        link.close()
                if time.monotonic() > deadline:
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
        try:
            ended = self._writer.write(NEVER, self._moved)
            self.ended_ns = ended.t_ns
            self.settled_ns = self._writer.settle(int(SETTLE_S * 1e9))
            if ended.reason in (GONE, ERROR) and self._leaves:
                self._link.close()
                self._target.away()
                self.left = True
        except BaseException as error:
            self._error = error

    def end(self) -> None:
        """Have it end, and wait for that. Raises what it met."""
        self._writer.stop()
        self._thread.join()
        if self._error:
            raise self._error


def _until(t_ns: int | None) -> None:
    if t_ns is not None:
        time.sleep(max(0.0, (t_ns - time.monotonic_ns()) / 1e9))
