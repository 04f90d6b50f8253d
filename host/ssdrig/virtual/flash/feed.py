"""The power feed: how the virtual drive's power reaches the simulated sensor chip.

One file that both processes map, a ring of energy bins in model time:

    header, 64 bytes, little endian
      0  8s  magic  b"SSDRPWR1"
      8  u32 bins   number of bins N (a power of two)
     12  u32 bin_ns length of a bin, model time
     16  u64 t0_ns  CLOCK_MONOTONIC of the start of bin 0
     24  u32 dilation k: model time = (CLOCK_MONOTONIC - t0_ns) / k
     28  u32 rail_mV nominal supply voltage of the drive
    then N times  u32 bin (index of the bin stored here, low 32 bits), u32 energy_nJ

Guarantees: a bin's energy includes static power; a bin is complete once CLOCK_MONOTONIC has passed its end, because
the drive only ever adds energy to bins that lie in the future. A slot whose `bin` is not the one asked for means 0 W:
the drive has no power or its process is dead. Power of a bin in watts = energy_nJ / bin_ns.

A feed of one bin has no time: it holds the current power, whatever its number. For a load that somebody sets
by hand.
"""

import mmap
import os
import stat
import struct

import numpy as np

from ssdrig.base.errors import UsageError

MAGIC = b"SSDRPWR1"
HEADER = struct.Struct("<8sIIQII32x")
BIN_NS = 250_000
BINS = 1 << 16  # 16 s of model time


def create(path: str, t0_ns: int, dilation: int = 1, rail_mV: int = 5000, bins: int = BINS) -> np.ndarray:
    """Make the feed file and map it. Returns uint32 array (bins, 2): columns bin index, energy_nJ; all slots empty.

    A feed that a killed server left is replaced, any other file stays as it is: UsageError."""
    if _is_feed(path):
        os.unlink(path)
    try:
        f = open(path, "x+b")
    except OSError as e:
        do = "give the path of a new file in an existing folder"
        raise UsageError(f"a new file {path} for the power feed", str(e.strerror), do) from e
    with f:
        f.truncate(HEADER.size + bins * 8)
        m = mmap.mmap(f.fileno(), 0)
    ring = np.frombuffer(m, dtype="<u4", offset=HEADER.size).reshape(bins, 2)
    ring[:, 0] = 0xFFFFFFFF
    m[: HEADER.size] = HEADER.pack(MAGIC, bins, BIN_NS, t0_ns, dilation, rail_mV)
    return ring


def unlink(path: str) -> None:
    """Remove the file if it is a feed; maps that are held stay valid."""
    if _is_feed(path):
        os.unlink(path)


def _is_feed(path: str) -> bool:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        with open(path, "rb") as f:
            magic, bins, *_ = HEADER.unpack(f.read(HEADER.size))
            return magic == MAGIC and os.fstat(f.fileno()).st_size == HEADER.size + bins * 8
    except (OSError, struct.error):
        return False
