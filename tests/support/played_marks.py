"""Marks of a run as a model host draws them on a model drive, in model time: what run/sync_marks.py journals of them,
and what an instrument with a clock of its own records.

    PYTHONPATH=host:tests/support python tests/support/played_marks.py 1000    # so many of scene()"""

import contextlib
import random
import sys
from typing import NamedTuple
from unittest import mock

import numpy as np
from recorded import Clock

from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.meter import sync
from ssdrig.meter.recordings import Rail, Recording
from ssdrig.run import bursts, sync_marks


class Drive(NamedTuple):
    """`io_us`: that an I/O takes in the drive; `io_J`: what it costs; `idle_W`; `awake_W`: more while it is awake,
    from the first I/O to `asleep_ms` after the last."""

    io_us: float
    io_J: float
    idle_W: float
    awake_W: float
    asleep_ms: float


class Host(NamedTuple):
    """`stalls`: share of the I/Os that wait for a processor, before they are submitted or before their end is noticed;
    `stall_ms`: for how long, on average."""

    stalls: float
    stall_ms: float


class Model:
    """A host that plays bursts on a drive. `served_ns`: begin and end of each I/O in the drive; `trains`: how many."""

    def __init__(self, drive: Drive, host: Host, seed: int):
        self.drive, self.host, self.random = drive, host, random.Random(seed)
        self.now_ns, self.served_ns, self.trains = 0, [], 0

    def play(self, connect, slots, slot_s, reach, write=False, check=None, thread_count=None) -> bursts.Played:
        """As bursts.play()."""
        self.trains += thread_count == 1
        many, slot_ns = thread_count or bursts.THREADS, round(slot_s * 1e9)
        begin_ns = self.now_ns + 100_000_000
        done_bytes, ios, free_ns = [0] * len(slots), [], 0
        threads = [(begin_ns, -1, 0) for _ in range(many)]  # ready at; slot, bytes in it so far
        while threads:
            at_ns, before, moved = threads.pop(threads.index(min(threads)))
            slot, into_ns = divmod(at_ns - begin_ns, slot_ns)
            moved = moved if slot == before else 0
            if slot >= len(slots):
                continue
            ends = not all(slots[slot : slot + 2]) and into_ns > (1 - bursts.LAST) * slot_ns
            if not slots[slot] or ends:
                wait_ns = (slot + 1) * slot_ns - (at_ns - begin_ns)
                threads.append((at_ns + wait_ns + self._late_ns(bursts.LOOK_S * 1e9), slot, 0))
                continue
            if moved >= bursts.SLOT_BYTES // many * into_ns // slot_ns + bursts.IO_BYTES:
                threads.append((at_ns + round(bursts.LOOK_S * 1e9) + self._stall_ns(), slot, moved))
                continue
            asked_ns = at_ns + 5_000
            service_ns = max(asked_ns + 20_000 + self._stall_ns(), free_ns)
            free_ns = service_ns + round(self.drive.io_us * 1000 * self.random.uniform(0.8, 1.25))
            noticed_ns = free_ns + 20_000 + self._stall_ns()
            self.served_ns.append((service_ns, free_ns))
            ios.append((asked_ns, noticed_ns))
            done_bytes[min(slot, len(slots) - 1)] += bursts.IO_BYTES
            threads.append((noticed_ns + self._stall_ns(), slot, moved + bursts.IO_BYTES))
        self.now_ns = max(begin_ns + len(slots) * slot_ns, max((done for _, done in ios), default=0))
        return bursts.Played(begin_ns, slot_ns, tuple(done_bytes), "", tuple(sorted(ios)))

    def mark(self, begin_ns: int) -> sync.Mark:
        """The mark that a run makes from `begin_ns` on."""
        self.now_ns = begin_ns
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(bursts, "play", self.play))
            stack.enter_context(mock.patch.object(sync_marks, "REST_S", 0.0))
            bench = mock.Mock(drive={"capacity_bytes": 1 << 40})
            event = sync_marks.make(bench, _Journal(), lambda: None, Progress(True), self.random)
        (mark,) = sync.marks([event])
        return mark

    def joules(self, at_ns: np.ndarray) -> np.ndarray:
        """Energy of the drive since the first of these times."""
        begins, ends = np.array(self.served_ns, np.int64).T
        order = np.argsort(begins)
        begins, ends = begins[order], ends[order]
        quiet_ns = round(self.drive.asleep_ms * 1e6)
        first = np.r_[True, begins[1:] > np.maximum.accumulate(ends)[:-1] + quiet_ns]
        woken = begins[first]
        asleep = np.r_[np.maximum.accumulate(ends)[:-1][first[1:]], ends.max()] + quiet_ns
        rates = self.drive.io_J / (ends - begins)
        times = np.concatenate([begins, ends, woken, asleep])
        awake = np.full(len(woken), self.drive.awake_W * 1e-9)
        steps = np.concatenate([rates, -rates, awake, -awake])
        order = np.argsort(times, kind="stable")
        times, level = times[order] - at_ns[0], np.cumsum(steps[order])
        total = np.r_[0.0, np.cumsum(level[:-1] * np.diff(times))]
        since = (at_ns - at_ns[0]).astype(float)
        return np.interp(since, times.astype(float), total) + self.drive.idle_W * 1e-9 * since

    def _late_ns(self, most_ns: float) -> int:
        return round(self.random.uniform(0, most_ns)) + self._stall_ns()

    def _stall_ns(self) -> int:
        if self.random.random() >= self.host.stalls:
            return 0
        return round(self.random.expovariate(1 / (self.host.stall_ms * 1e6)))


class _Journal:
    def event(self, kind: str, **fields) -> dict:
        return {"kind": kind, **fields}


def recording(
    model: Model,
    begin_ns: int,
    end_ns: int,
    clock: Clock,
    period_ns: int,
    noise_W: float,
    seed: int,
    aperture: float = 1.0,
) -> Recording:
    """What an instrument records of a model's drive: means of the last part `aperture` of each period, with noise."""
    edges = np.arange(begin_ns, end_ns, period_ns, dtype=np.int64)
    opens = edges[1:] - round(period_ns * aperture)
    if aperture == 1.0:
        joules = np.diff(model.joules(edges))
    else:
        both = model.joules(np.column_stack([opens, edges[1:]]).ravel()).reshape(-1, 2)
        joules = both[:, 1] - both[:, 0]
    watts = joules / (edges[1:] - opens) * 1e9 + np.random.default_rng(seed).normal(0, noise_W, len(opens))
    return Recording("model", False, [Rail("5V", clock.own(edges[1:]), np.full(len(watts), 5.0), watts)])


class Scene(NamedTuple):
    """A recording of two marks. `host_ns`: times from the first mark to the last; `own_ns`: the recording's, then.
    `quiet`: no I/O waited for a processor, the drive takes at most 2 ms for one, the instrument 1000 samples a second;
    its noise is a quarter of the step at most."""

    recording: Recording
    marks: list[sync.Mark]
    clock: Clock
    drift_ppm: float
    rate: float
    quiet: bool

    def host_ns(self) -> np.ndarray:
        return np.linspace(self.marks[0].begin_ns, self.marks[-1].begin_ns + 9 * 10**9, 999).astype(np.int64)


def scene(seed: int) -> Scene:
    """Drift up to 100 ppm, offset up to 10 s, 10 to 10 000 samples/s, any of many drives, a host that is busy every
    other time."""
    source = random.Random(seed)
    io_us = source.choice([60, 300, 500, 2000, 6000])
    step_W = source.choice([0.3, 1.0, 4.0])
    awake_W = source.choice([0, 0.3, 1.0]) * step_W
    drive = Drive(io_us, step_W * max(io_us, 240) * 1e-6, source.uniform(0.02, 2), awake_W, source.uniform(1, 25))
    busy = seed % 2 == 1
    host = Host(source.uniform(0.005, 0.1), source.uniform(1, 15)) if busy else Host(0, 0)
    model, begin_ns = Model(drive, host, seed), 7_000_000_000_000
    first = model.mark(begin_ns + round(source.uniform(2, 4) * 1e9))
    last = model.mark(model.now_ns + round(source.uniform(5, 40) * 1e9))
    end_ns = model.now_ns + 2 * 10**9
    drift_ppm = source.uniform(-100, 100)
    clock = Clock(begin_ns, source.uniform(-10, 10), drift_ppm)
    rate = 10 ** source.uniform(1, 4)
    noise = source.uniform(0.01, 0.25)
    aperture = source.choice([1.0, 1.0, 0.1])
    quiet = not busy and rate >= 1000 and io_us <= 2000
    made = recording(model, begin_ns, end_ns, clock, round(1e9 / rate), noise * step_W, seed, aperture)
    return Scene(made, [first, last], clock, drift_ppm, rate, quiet)


def errors_ns(match: sync.Match, clock: Clock, host_ns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(error, bound) at these host times, of what the found clock makes of the instrument's."""
    own_ns, knots = clock.own(host_ns), np.array(match.knots, np.int64)
    base, offset = knots[0, 0], knots[:, 1] - knots[:, 0]
    since, at = (own_ns - base).astype(float), (knots[:, 0] - base).astype(float)
    moved = np.interp(since, at, (offset - offset[0]).astype(float))
    return own_ns + offset[0] + moved - host_ns, np.interp(since, at, knots[:, 2].astype(float))


def main(many: int) -> int:
    """Print how far off the found clocks are. Returns 1 where more than 1 % are outside of their bound."""
    outside, refused, wide, quiet = [], [], [], 0
    by_rate: dict[int, list[float]] = {}
    for seed in range(many):
        case = scene(seed)
        quiet += case.quiet
        try:
            match = sync.find(case.recording, case.marks)
        except UsageError as error:
            refused.append((seed, round(case.rate), error.seen))
            continue
        error_ns, bound_ns = errors_ns(match, case.clock, case.host_ns())
        off = abs(match.drift_ppm - case.drift_ppm) > match.drift_error_ppm
        if (np.abs(error_ns) > bound_ns).any() or off:
            outside.append((seed, round(case.rate), float(np.abs(error_ns / bound_ns).max())))
        if case.quiet and match.bound_ns > 5e6:
            wide.append((seed, round(case.rate), match.bound_ns / 1e6))
        by_rate.setdefault(int(np.log10(case.rate) * 2), []).append(match.bound_ns / 1e6)
    print(
        f"{many} recordings: {len(outside)} outside of their bound {outside[:9]}, {len(refused)} refused {refused[:9]}"
    )
    print(f"{quiet} of 1000 samples/s and more on a quiet host: {len(wide)} with a bound of more than 5 ms {wide[:9]}")
    for key, bounds in sorted(by_rate.items()):
        low, high = np.percentile(bounds, [50, 99])
        print(f"from {10 ** (key / 2):6.0f} samples/s: bound {low:6.2f} ms (median), {high:6.2f} ms (99 %)")
    return int(len(outside) * 100 > many)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
