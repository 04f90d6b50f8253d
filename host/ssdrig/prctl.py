"""What this process asks of Linux for itself: prctl(2). Imports nothing between fork and exec, so it serves as a
preexec_fn."""

import ctypes
import os
import signal

_libc = ctypes.CDLL(None)
_SET_PDEATHSIG, _SET_TIMERSLACK = 1, 29


def die_with_parent(parent: int, by: int = signal.SIGKILL) -> None:
    """This process gets the signal `by` when its parent, process id `parent`, ends. It ends at once if that has
    happened already."""
    _libc.prctl(_SET_PDEATHSIG, ctypes.c_ulong(by), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def timer_slack(ns: int) -> None:
    """How late the kernel may wake this thread; children inherit it."""
    _libc.prctl(_SET_TIMERSLACK, ctypes.c_ulong(ns), 0, 0, 0)
