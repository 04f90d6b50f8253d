"""The end of a run, whatever brings it about: signals that ask for it, and the duties that must be done then.

Each resource that a run acquires pushes its duty immediately. When the block ends the duties run in reverse order, each
for a bounded time; one that fails or hangs is recorded and never keeps the others from being tried."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

from ssdrig.base.errors import JournalError, RigError, SsdrigError, words_of
from ssdrig.base.progress import Progress

LIMIT_S = 30.0  # for a duty that names no other
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """`with Stop(show) as stop`: SIGINT, SIGTERM and SIGHUP are counted from then on, and the old handlers come back at
    the end.

    A signal raises KeyboardInterrupt only where it may: immediately while nothing is acquired, the second one inside
    `with stop.second_raises()`, none inside `with stop.held()`. At most one raises; all others are only counted, so
    that nothing interrupts what a run does to end. One that interrupted a finalizer does not count: Python drops what
    is raised there, so the next signal raises in its place. Nor does a SIGHUP after another signal: of a terminal that
    is gone several come, from the kernel, the shell and the session, and none of them from an impatient person."""

    def __init__(self, show: Progress):
        self.count = 0
        self.name: str | None = None  # of the first signal
        self.doing: str | None = None  # the duty of the teardown that is being executed
        self._show = show
        self._raises_at: int | None = None
        self._raised = False
        self._dropped = False
        self._acquired = False
        self._old: dict = {}
        self._old_hook = sys.unraisablehook

    def __enter__(self) -> "Stop":
        self._old_hook, sys.unraisablehook = sys.unraisablehook, self._on_dropped
        for number in SIGNALS:
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # nohup
            self._old[number] = signal.signal(number, self._on_signal)
        if self.count:  # meanwhile: who enters nothing leaves nothing
            self.__exit__()
            self.check()
        self._raises_at = 1
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._old_hook

    def _on_signal(self, number, _frame) -> None:
        if number == signal.SIGHUP and self.count and not self._dropped:
            return
        self._dropped = False
        self.count += 1
        self.name = self.name or signal.Signals(number).name
        raises_at = None if self._raises_at == 1 and self._acquired else self._raises_at
        if raises_at and self.count >= raises_at and not self._raised:
            self._raise()
        if self.doing:
            words = f"finishing: {self.doing}"
        else:
            words = "stopping after this second" + ("; once more stops immediately" if raises_at else "")
        self._write(f"{signal.Signals(number).name}: {words}")

    def _on_dropped(self, dropped: "sys.UnraisableHookArgs") -> None:
        """What Python drops, because it was raised in a finalizer or a callback of a weak reference."""
        if dropped.exc_type is not KeyboardInterrupt:
            self._old_hook(dropped)
            return
        self._raised, self._dropped = False, True
        self._write(f"{self.name}: not stopped; once more stops immediately")

    def _raise(self) -> NoReturn:
        self._raised = True
        raise KeyboardInterrupt

    def _write(self, words: str) -> None:
        if not self._show.quiet:
            with contextlib.suppress(OSError):
                # not by print: the handler may have interrupted one
                os.write(2, f"\n{words}\n".encode())

    def asked(self) -> bool:
        return self.count > 0

    def check(self) -> None:
        """Raise KeyboardInterrupt if someone asked for the end."""
        if self.count:
            self._raise()

    def acquired(self) -> None:
        """From now on there is something to tear down: between two blocks nothing may interrupt the way there."""
        self._acquired = True

    def held(self):
        """Signals are counted only: something is being acquired, or ends on its own soon."""
        return self._raising_at(None)

    def second_raises(self):
        """The second signal raises: the first may have to wait for long."""
        return self._raising_at(2)

    @contextlib.contextmanager
    def next_raises(self, doing: str) -> Iterator[None]:
        """The next signal raises, whatever came before: nothing is left to tear down, and what `doing` names can be
        made later."""
        self.doing, self._raised, self._acquired = doing, False, False
        try:
            with self._raising_at(self.count + 1):
                yield
        finally:
            self.doing = None

    @contextlib.contextmanager
    def _raising_at(self, count: int | None) -> Iterator[None]:
        before, self._raises_at = self._raises_at, count
        try:
            yield
        finally:
            self._raises_at = before


class Teardown:
    """`with Teardown(stop, show) as teardown`: the duties that were pushed run at its end, the last one first.

    `failures`: (duty, error) of those that failed or were not done in time, in the order tried. `record`, where set, is
    given the words of each; they also go to stderr."""

    def __init__(self, stop: Stop, show: Progress):
        self.failures: list[tuple[str, BaseException]] = []
        self.record: Callable[[str], object] | None = None
        self._stop, self._show = stop, show
        self._stack = contextlib.ExitStack()

    def push(self, duty: str, function: Callable[[], object], limit_s: float = LIMIT_S) -> None:
        """`function()` is to be called at the end; `duty` names it: "stop the rig"."""
        self._stop.acquired()
        self._stack.callback(self._carry_out, duty, function, limit_s)

    def __enter__(self) -> "Teardown":
        return self

    def __exit__(self, *what):
        with self._stop.held():
            try:
                return self._stack.__exit__(*what)
            finally:
                self._stop.doing = None

    def _carry_out(self, duty: str, function: Callable[[], object], limit_s: float) -> None:
        self._stop.doing = duty
        ended: list[BaseException | None] = []

        def attempt() -> None:
            try:
                function()
            except BaseException as error:
                ended.append(error)
            else:
                ended.append(None)

        thread = threading.Thread(target=attempt, name=f"teardown: {duty}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread is to be had: then without a limit
            attempt()
        else:
            thread.join(limit_s)
        error = ended[0] if ended else TimeoutError(f"not done after {limit_s:g} s")
        if error is not None:
            self._failed(duty, error)

    def _failed(self, duty: str, error: BaseException) -> None:
        self.failures.append((duty, error))
        words = f"teardown: {duty}: {words_of(error)}"
        if self.record:
            with contextlib.suppress(SsdrigError, OSError, ValueError):
                self.record(words)
        self._show.warn(words)


def exit_code(error: BaseException) -> int:
    """Exit code of a run that this error ended: 1 for a defect."""
    if isinstance(error, SsdrigError):
        return error.exit_code
    if isinstance(error, TimeoutError):
        return RigError.exit_code
    return JournalError.exit_code if isinstance(error, OSError) else 1
