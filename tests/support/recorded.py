"""Recordings of another instrument whose truth is known: a rail with the marks of a run, seen by a clock of its own."""

import random

import numpy as np

from ssdrig.meter import pairing, sync
from ssdrig.meter.recordings import Rail, Recording

SLOT_NS = round(pairing.SLOT_S * 1e9)


def mark(begin_ns: int, seed: int, late_us: float = 300.0, lasts_us: float = 700.0) -> sync.Mark:
    """A mark whose bursts begin `late_us` behind their slots, and whose first reads last so long."""
    slots = sync.pattern(random.Random(seed))
    late_ns, lasts_ns = round(late_us * 1000), round(lasts_us * 1000)
    rises = tuple(
        (begin_ns + n * SLOT_NS + late_ns, begin_ns + n * SLOT_NS + late_ns + lasts_ns)
        for n, (before, burst) in enumerate(zip((False, *slots[:-1]), slots))
        if burst and not before
    )
    return sync.Mark(begin_ns, SLOT_NS, slots, tuple(100 << 20 if slot else 0 for slot in slots), rises)


def event(of: sync.Mark) -> dict:
    """As the journal has it."""
    return {
        "kind": sync.EVENT,
        "slots": "".join("1" if slot else "0" for slot in of.slots),
        "begin_ns": of.begin_ns,
        "slot_ns": of.slot_ns,
        "slot_bytes": list(of.slot_bytes),
        "rises_ns": [list(rise) for rise in of.rises],
    }


def active(marks, t_ns: np.ndarray) -> np.ndarray:
    """1.0 where a burst of a mark draws power: from the middle of its first reads to 80 % of its last slot."""
    out = np.zeros(len(t_ns))
    for of in marks:
        begin = None
        rises = iter(of.rises)
        for n, (burst, after) in enumerate(zip(of.slots, (*of.slots[1:], False))):
            if burst and begin is None:
                begin = sum(next(rises)) / 2
            if burst and not after and begin is not None:
                end = of.begin_ns + (n + 0.8) * of.slot_ns
                out[slice(*np.searchsorted(t_ns, [begin, end]))] = 1.0
                begin = None
    return out


class Clock:
    """Another instrument's clock: own = (host - zero) (1 + drift) + offset."""

    def __init__(self, zero_ns: int, offset_s: float, drift_ppm: float):
        self.zero_ns, self.offset_ns, self.rate = zero_ns, round(offset_s * 1e9), 1 + drift_ppm * 1e-6

    def own(self, host_ns) -> np.ndarray:
        since = np.asarray(host_ns, np.int64) - self.zero_ns
        return self.offset_ns + np.rint(since * self.rate).astype(np.int64)


def recording(
    marks, begin_ns: int, end_ns: int, clock: Clock, *, seed=1, period_ns=1_000_000, base=1.5, step=0.8, noise=0.05
):
    """What the instrument records of a drive that idles at `base` W and draws `step` more in bursts."""
    rng = np.random.default_rng(seed)
    fine = 4
    t = np.arange(begin_ns, end_ns, period_ns // fine, dtype=np.int64)[: (end_ns - begin_ns) // period_ns * fine]
    watts = (base + step * active(marks, t)).reshape(-1, fine).mean(axis=1)
    host = t.reshape(-1, fine)[:, -1] + period_ns // fine
    watts = watts + rng.normal(0, noise, len(watts))
    rail = Rail("5V", clock.own(host), np.full(len(watts), 5.0), watts)
    return Recording("synthetic", False, [rail])
