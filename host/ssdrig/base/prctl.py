"""What this process asks of Linux for itself: prctl(2), and of its heap. Imports nothing between fork and exec, so it
serves as a preexec_fn."""

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from ssdrig.base import system

FAVOURED_NICE = -15
_libc: Any = system.libc()
_SET_PDEATHSIG, _SET_TIMERSLACK, _SET_THP_DISABLE = 1, 29, 41
_MMAP_THRESHOLD, _LARGE_BYTES = -3, 1 << 20  # of mallopt(3)


def die_with_parent(parent: int, by: int = getattr(signal, "SIGKILL", signal.SIGTERM)) -> None:
    """This process gets the signal `by` when its parent, process id `parent`, ends. It ends
    immediately if the parent has already ended."""
    _libc.prctl(_SET_PDEATHSIG, ctypes.c_ulong(by), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def timer_slack(ns: int) -> None:
    """How late the kernel may wake this thread; children inherit it."""
    _libc.prctl(_SET_TIMERSLACK, ctypes.c_ulong(ns), 0, 0, 0)


def urgent() -> str:
    """Give this thread a real-time priority; with a single CPU, or where the system forbids that, a better nice value.
    Returns the priority in words."""
    if len(os.sched_getaffinity(0)) < 2:
        return favoured()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return favoured()
    return "real time (SCHED_FIFO 1)"


def favoured() -> str:
    """Give this thread and its children a better nice value, if the system allows it. Returns the priority in words."""
    me = threading.get_native_id()
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, me, FAVOURED_NICE)
    return f"nice {os.getpriority(os.PRIO_PROCESS, me)}"


@contextlib.contextmanager
def real_time() -> Iterator[None]:
    """This thread runs before all that are not of real time, meanwhile; as it did where the system forbids that.
    Without SCHED_RESET_ON_FORK, which a process without CAP_SYS_NICE may set and not take back."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def give_back() -> None:
    """Memory that is free goes back to the system. What one thread takes and another frees is scattered over the heaps
    of both, and otherwise stays there. Nothing with a C library that has no such call (glibc has)."""
    if trim := getattr(_libc, "malloc_trim", None):
        trim(ctypes.c_size_t(0))


def large_apart() -> None:
    """From now on a large block is its own mapping: it takes no memory until it is written, and is returned when freed.
    After freeing a few, glibc would take such blocks from the heap, where later blocks can pin them. No effect with a C
    library without mallopt."""
    if mallopt := getattr(_libc, "mallopt", None):
        mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)


def small_pages() -> None:
    """Disable huge pages for this process and its children. NumPy requests them, and finding 2 MB in one piece makes
    filling an array once three times as slow as with small pages."""
    if prctl := getattr(_libc, "prctl", None):
        prctl(_SET_THP_DISABLE, ctypes.c_ulong(1), 0, 0, 0)
