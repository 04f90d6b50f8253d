"""prctl.give_back(): free memory of the heaps of all threads goes back to the system."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from ssdrig import prctl

HOST = Path(__file__).parents[1] / "host"
# blocks too small for a mapping of their own, freed below one that stays: the heap keeps them
SCATTERED = """
import ctypes
from ssdrig import prctl
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


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library has no malloc_trim")
def test_what_is_free_below_a_block_that_stays_goes_back():
    done = subprocess.run(
        [sys.executable, "-c", SCATTERED], capture_output=True, text=True, env={"PYTHONPATH": str(HOST)}
    )
    assert int(done.stdout) > 30_000, done.stderr


def test_a_c_library_without_it_is_left_alone(monkeypatch):
    monkeypatch.setattr(prctl, "_libc", object())
    prctl.give_back()
