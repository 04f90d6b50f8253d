"""For tests: the frames of a fast current channel whose current is known (synthetic_run.py)."""

import struct

import numpy as np

from ssdrig.meter import wire

FAST = {
    "rail": 0,
    "gpio": 28,
    "nA_per_count": 1_074_219,
    "step_ns": 4000,
    "width": 25,
    "interval": 25_000,
    "limit": 3847,
}


def events(amps_at, first_ns: int, t0_ns: int, end_ns: int, tick, bursts, gain=1.0, zero=0, gone=None) -> list[tuple]:
    """F frames of rail 0's fast current channel: of amps_at(times since the first I/O, s), and bursts of (t_s, A, s) on
    top. gain, zero: of the amplifier (a factor, counts). gone: (from_s, to_s) in which it sends nothing."""
    n, step_ns = FAST["interval"], 4000 / float(np.diff(tick(np.array([0, 1e9])))[0] / 1e6)  # of the board's own clock
    out = []
    for number in range(int((end_ns - t0_ns) / (n * step_ns)) - 1):
        begin = t0_ns + 7_000_000 + n * number * step_ns
        t_s = (begin - first_ns + step_ns * np.arange(n)) * 1e-9
        amps = amps_at(t_s[[0, -1]])
        if amps[0] == amps[1] and not any(t_s[0] <= at_s <= t_s[-1] for at_s, _, _ in bursts):
            t_s, amps = t_s[: FAST["width"]], amps[:1]  # all of them are equal: a window's worth stands for them
        else:
            amps = amps_at(t_s)
        for at_s, more_A, lasts_s in bursts:
            amps = amps + more_A * ((t_s >= at_s) & (t_s < at_s + lasts_s))
        counts = np.clip(np.rint(zero + gain * amps * 1e9 / FAST["nA_per_count"]), 0, 4095).astype(np.int64)
        counts = np.broadcast_to(counts, len(t_s))
        sums = np.convolve(counts, np.ones(FAST["width"], np.int64), "valid")  # that begin before are left out
        best = int(np.argmax(sums))
        limited = int((counts[best : best + FAST["width"]] >= FAST["limit"]).sum())
        us = round(float(tick(begin)))
        total, last = int(counts.sum()) * n // len(counts), best + FAST["width"] - 1
        of = (0, 28, number, us, n, total, int(sums[best]), last, limited, 0, 0)
        if gone is None or not gone[0] <= t_s[0] < gone[1]:
            out.append((int(begin + n * step_ns), "F", wire.FAST, struct.pack(wire.FAST_BODY, *of)))
    return out
