"""What a process asks of Linux for itself: free memory goes back, a thread is of real time for a while."""

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ssdrig.base import prctl

HOST = Path(__file__).parents[2] / "host"
# blocks too small for a mapping of their own, freed below one that stays: the heap keeps them
SCATTERED = """
import ctypes
from ssdrig.base import prctl
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]

def own_kB():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon"))

blocks = [libc.malloc(65536) for _ in range(1000)]
for block in blocks:
    ctypes.memset(block, 1, 65536)
stays = libc.malloc(65536)
for block in blocks:
    libc.free(block)
before = own_kB()
prctl.give_back()
print(before - own_kB())
"""


LARGE = """
import ctypes, sys
from ssdrig.base import prctl
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]

def mapped_bytes():
    class Info(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd".split() + list("abcde")]

    libc.mallinfo2.restype = Info
    return libc.mallinfo2().hblkhd

if sys.argv[1] == "apart":
    prctl.large_apart()
for _ in range(3):
    block = libc.malloc(16 << 20)
    seen = mapped_bytes()
    libc.free(block)
print(seen >> 20, mapped_bytes() >> 20)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="the C library has no mallinfo2")
@pytest.mark.parametrize(("how", "mapped"), [("apart", 16), ("as glibc has it", 0)])
def test_a_large_block_is_a_mapping_of_its_own_however_often_one_was_freed(how, mapped):
    done = subprocess.run(
        [sys.executable, "-c", LARGE, how], capture_output=True, text=True, env={"PYTHONPATH": str(HOST)}
    )
    assert done.stdout.split() == [str(mapped), "0"], done.stderr


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library has no malloc_trim")
def test_what_is_free_below_a_block_that_stays_goes_back():
    done = subprocess.run(
        [sys.executable, "-c", SCATTERED], capture_output=True, text=True, env={"PYTHONPATH": str(HOST)}
    )
    assert int(done.stdout) > 30_000, done.stderr


def test_a_c_library_without_it_is_left_alone(monkeypatch):
    monkeypatch.setattr(prctl, "_libc", object())
    for without in (prctl.give_back, prctl.large_apart, prctl.small_pages):
        assert without() is None
    called = []
    names = ("malloc_trim", "mallopt", "prctl")
    libc = type("Libc", (), {name: lambda _, *words, name=name: called.append(name) for name in names})
    monkeypatch.setattr(prctl, "_libc", libc())
    for within in (prctl.give_back, prctl.large_apart, prctl.small_pages):
        within()
    assert called == list(names)


def test_a_thread_is_of_real_time_and_then_as_before(monkeypatch):
    """A thread of its own: one that stayed so would keep others from their turns."""
    asked, policy = [], [os.SCHED_BATCH]
    monkeypatch.setattr(os, "sched_getscheduler", lambda pid: policy[0])
    monkeypatch.setattr(os, "sched_setscheduler", lambda pid, to, param: asked.append((pid, to, param.sched_priority)))
    with pytest.raises(ZeroDivisionError), prctl.real_time():
        assert asked == [(0, os.SCHED_FIFO, 1)]
        1 / 0  # noqa: B018
    assert asked[1:] == [(0, os.SCHED_BATCH, 0)]


def test_a_thread_that_may_not_be_of_real_time_goes_on_as_it_is(monkeypatch):
    tried = []

    def refuse(*asked):
        tried.append(asked)
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with prctl.real_time():
        pass
    assert len(tried) == 1


def test_the_system_agrees():
    policies = []

    def work():
        before = os.sched_getscheduler(0)
        with prctl.real_time():
            policies.append(os.sched_getscheduler(0))
        policies.append(os.sched_getscheduler(0) == before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert policies[0] in (os.SCHED_FIFO, os.sched_getscheduler(0)) and policies[1]
