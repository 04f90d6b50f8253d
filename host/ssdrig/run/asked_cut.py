"""A cut of the drive's power that the run's owner asks for over control.sock, in a run that was started with
--allow-cut. It takes two requests, so that a button can be held: `arm` gives a token, `cut` with that token, HOLD_S to
WITHIN_S later, asks for the cut. A caller that lets go, is killed or is late has asked for nothing.

The thread that executes the steps cuts, by the rig session that the run has: once, and the run ends there. fio does
not outlive its drive, and what a volatile cache held is gone, so nothing that came after would be of the same state.
Power returns by the rig's own clock. The drive is then found again, by its serial under whatever name, and read."""

import contextlib
import hmac
import secrets
import threading
import time
from collections.abc import Iterator
from typing import Any

from ssdrig.base.errors import TO_ITS_END, DriveError, ExchangedDrive, PowerCut, SsdrigError, words_of
from ssdrig.meter.pico.stream import Rig
from ssdrig.plan import expand
from ssdrig.plan.expand import Act
from ssdrig.powerloss.health import READY_S
from ssdrig.powerloss.supply import Outcome, RigSupply
from ssdrig.run.bench import Bench
from ssdrig.run.teardown import Stop
from ssdrig.runs.journal import Journal
from ssdrig.switch import pico
from ssdrig.switch.profiles import DEFAULT

OFF_S = 2.0  # without power
HOLD_S, WITHIN_S = 1.5, 5.0  # from `arm` to `cut`
LATE_S = 5.0  # a run that comes to the request later than this, such as one that was suspended, drops it
LOOK_S = 0.05  # between two looks whether the drive is back
STEPS = ("fill", "load", "replay", "idle")  # put I/O on the drive or let it rest, and judge none of its data
JUDGED, ERASES = (
    "it judges the drive's data, which a cut of another's would falsify",
    "an erase must not lose its power",
)
WHY_NOT = dict.fromkeys(("cuts", "retain", "recall", "wear"), JUDGED) | dict.fromkeys(expand.ERASES, ERASES)
SHORT = "it is short, or sets, reads or asks for something"
NO_STEP = "no step of the plan is being executed"


class AskedCut:
    """arm() and ask() are called by the thread of control.sock, all else by the one that executes the steps."""

    def __init__(self, bench: Bench, book: Journal, rig: Rig, stop: Stop):
        self._bench, self._book, self._rig, self._stop = bench, book, rig, stop
        self._lock = threading.Lock()  # guards the next five
        self._step: str | None = None
        self._why_not: str | None = NO_STEP
        self._token: tuple[str, float] | None = None  # and when it was given
        self._asked_at: float | None = None
        self.made = False  # once power was cut, or may have been
        self._doubt: Exception | None = None  # why the rig's action is unknown
        self._outcome: Outcome | None = None

    # ---- asked

    def arm(self) -> dict[str, Any]:
        """The answer to `arm`."""
        with self._lock:
            if why := self._refused():
                return {"ok": False, "why": why}
            self._token = secrets.token_hex(16), time.monotonic()
            return {"ok": True, "token": self._token[0], "hold_s": HOLD_S, "off_s": OFF_S}

    def ask(self, token: str, **who: int) -> dict[str, Any]:
        """The answer to `cut`. `who`: uid and pid of the caller."""
        with self._lock:
            armed, self._token = self._token, None  # it is used up
            why = self._refused()
            given = token.encode(errors="replace")  # a lone surrogate is not UTF-8
            if not why and (armed is None or not hmac.compare_digest(armed[0].encode(), given)):
                why = "not armed, or armed again meanwhile"
            elif not why and armed and not HOLD_S <= (held_s := time.monotonic() - armed[1]) <= WITHIN_S:
                why = f"{held_s:.1f} s after it was armed, not {HOLD_S:g} to {WITHIN_S:g} s"
            if why:
                return {"ok": False, "why": why}
            self._book.event("cut.asked", step=self._step, **who)
            self._asked_at = time.monotonic()
            return {"ok": True}

    def _refused(self) -> str | None:
        if self.made or self._asked_at is not None:
            return "a cut was asked for already; the run ends with it"
        if why := getattr(self._rig, "unpaired", ""):
            return why
        return "the run is ending" if self._stop.asked() else self._why_not

    # ---- executed

    @contextlib.contextmanager
    def within(self, act: Act) -> Iterator[None]:
        """Around a step. Raises PowerCut at its end where power was cut in it, once the drive is back; DriveError where
        it is not, RigError if the rig's action is unknown."""
        words = f"not in step {act.path} ({act.do}): {WHY_NOT.get(act.do, SHORT)}"
        with self._lock:
            self._step, self._why_not = act.path, None if act.do in STEPS else words
        try:
            yield
        except Exception as error:
            self._end(error)
            raise
        finally:
            with self._lock:
                self._step, self._why_not = None, NO_STEP
        self._end(None)

    def due(self) -> bool:
        """Cuts the power if that was requested. Returns whether it was cut in this step. Raises RigError if nobody
        knows what the rig did."""
        with self._lock:
            asked_at, made = self._asked_at, self.made
        if asked_at is None or made:
            return made
        if time.monotonic() - asked_at > LATE_S:
            self._drop(f"the run came to it after more than {LATE_S:g} s")
        elif self._stop.asked():
            self._drop("the end of the run was asked for before it")
        else:
            with self._stop.held():
                self._cut()
        return self.made

    def check(self) -> None:
        """Raises PowerCut if due() is true; see within()."""
        if self.due():
            raise PowerCut(TO_ITS_END, "a cut of the drive's power", "see the run's events")

    def _cut(self) -> None:
        begin_ns = time.monotonic_ns()
        step: dict[str, Any] = {"step": self._step, "cut": None}
        try:
            outcome = RigSupply(self._rig, self._book.path).cut(DEFAULT, None, OFF_S)
        except Exception as error:
            if isinstance(error, SsdrigError) and error.seen.startswith(pico.REFUSED):
                self._drop(f"the rig has {error.seen}")
                return
            self.made, self._doubt = True, error
            half_ns = (time.monotonic_ns() - begin_ns) // 2 + 1
            self._book.event("cut.fired", **step, fired_ns=begin_ns + half_ns, bound_ns=half_ns, why=words_of(error))
            raise
        self.made, self._outcome = True, outcome
        fired: dict[str, Any] = {
            "fired_ns": outcome.fired_ns,
            "bound_ns": outcome.bound_ns,
            "why": outcome.why_not or None,
        }
        self._book.event("cut.fired", **step, **fired)
        self._book.event("cut.on", **step, on_ns=outcome.on_ns, off_s=round(outcome.off_s, 6))

    def _drop(self, why: str) -> None:
        with self._lock:
            self._asked_at = None
        self._book.event("cut.dropped", step=self._step, why=why)

    def _end(self, error: Exception | None) -> None:
        if not self.made:
            if self._asked_at is not None:
                self._drop("the step ended before it")
            return
        if self._doubt:
            raise self._doubt
        ready_s = self._back()
        assert self._outcome is not None
        seen = (
            f"cut from the web in {self._step}: {self._outcome.off_s:.2f} s without power, ready {ready_s:.2f} s after"
        )
        raise PowerCut(TO_ITS_END, seen, "./ssdrig resume goes on with the run") from error

    def _back(self) -> float:
        """The drive answers: how long after its power was back, s. Raises DriveError."""
        target, outcome = self._bench.target, self._outcome
        assert target is not None and outcome is not None
        target.away()
        began = time.monotonic()
        with self._stop.second_raises():
            while True:
                try:
                    target.back()
                    if self._bench.read_blocks([0])[0] is None:
                        raise DriveError("a drive that reads", "an error of its first block", "see dmesg")
                    break
                except ExchangedDrive:
                    raise
                except (SsdrigError, OSError) as error:
                    if time.monotonic() - began > READY_S or target.ended():
                        why = words_of(error)
                        self._book.event("drive.missing", step=self._step, cut=None, tries=1, why=why)
                        expected = f"the drive to come back within {READY_S:g} s of the cut that was asked for"
                        raise DriveError(expected, why, "look at the drive") from error
                time.sleep(LOOK_S)
        ready_s = (time.monotonic_ns() - outcome.on_ns) / 1e9
        self._book.event("drive.ready", step=self._step, cut=None, ready_s=round(ready_s, 3))
        return ready_s
