"""Plays a trace: each I/O is submitted at its own time, counted from the beginning of the play, whatever came before;
when it was to be submitted, when it was, and when it was done is kept of each (RECORD)."""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Protocol

import numpy as np

from ssdrig.base import prctl
from ssdrig.base.errors import DriveError, UsageError
from ssdrig.load import traceform
from ssdrig.load.played import RECORD

WINDOW = 1024  # I/Os prepared per batch: some 0.1 ms, in which nothing is submitted
WINDOWS = 64
SLOTS = WINDOWS * WINDOW
BATCH = 64  # most that go in one call
TICK_NS = 50_000_000
AHEAD_NS = 300_000  # a gap that is long enough to prepare the next window in
STALL_NS = 60_000_000_000
LEAD_NS = 20_000_000  # from the start to the trace's beginning
IDLE_NS = 25_000_000  # a gap that gives a drive time for background work
SLACK_NS = 1000
USUAL_SLACK_NS = 50_000


class Target(Protocol):
    """What a trace is played on (trace_aio.Aio, trace_nbd.NbdPipe)."""

    size_bytes: int
    block_bytes: int
    most: int

    def prepare(self, first: int, rows: np.ndarray) -> None: ...
    def submit(self, first: int, n: int, now_ns: int) -> int: ...
    def reap(self, timeout_ns: int, done_ns: np.ndarray) -> int: ...


@dataclass(frozen=True)
class How:
    """`closed`: no times, each I/O as soon as fewer than its depth are under way. Otherwise the trace's times
    divided by `speed`, after gaps were cut to idle_cap_ns (None: none is). Times of the drive are 1/dilation of
    ours."""

    closed: bool = False
    speed: float = 1.0
    idle_cap_ns: int | None = None
    dilation: int = 1

    def check(self) -> None:
        """Raises UsageError."""
        if not 1e-3 <= self.speed <= 1e6:
            raise UsageError("a speed of 0.001 to 1000000", f"{self.speed:g}", "correct --speed")
        if self.idle_cap_ns is not None and self.idle_cap_ns < 0:
            raise UsageError("an idle cap of at least 0", f"{self.idle_cap_ns} ns", "correct --idle-cap")


class Schedule:
    """When the I/Os of one window after the other are to be submitted, ns from the beginning."""

    def __init__(self, how: How):
        self.how, self._last_ns, self._at_ns = how, 0, 0

    def of(self, t_ns: np.ndarray) -> np.ndarray:
        gaps = np.diff(t_ns, prepend=self._last_ns)
        if self.how.idle_cap_ns is not None:
            gaps = np.minimum(gaps, self.how.idle_cap_ns)
        at = self._at_ns + np.cumsum(gaps)
        self._last_ns, self._at_ns = int(t_ns[-1]), int(at[-1])
        return np.rint(at * (self.how.dilation / self.how.speed)).astype(np.int64)


def times(windows: Iterable[np.ndarray], how: How) -> dict:
    """What `how` makes of a trace's times, in drive time: {"trace_s", "play_s" (from the first I/O to the last),
    "idle_s", "play_idle_s" (in gaps of 25 ms and more)}; "play_s" and "play_idle_s" None for a closed play."""
    schedule = Schedule(replace(how, dilation=1))
    totals, last = np.zeros(4), np.zeros(2, np.int64)
    for rows in windows:
        for number, at in enumerate((rows["t_ns"], schedule.of(rows["t_ns"]))):
            gaps = np.diff(at, prepend=last[number])
            totals[[number, 2 + number]] += at[-1] - last[number], gaps[gaps >= IDLE_NS].sum()
            last[number] = at[-1]
    trace_s, play_s, idle_s, play_idle_s = (totals / 1e9).tolist()
    known = {"play_s": None, "play_idle_s": None} if how.closed else {"play_s": play_s, "play_idle_s": play_idle_s}
    return {"trace_s": trace_s, "idle_s": idle_s} | known


def lasts_ns(windows: Iterable[np.ndarray], how: How) -> int:
    """How long the trace is at these times; nothing is known of a closed play."""
    schedule, last = Schedule(how), 0
    for rows in windows:
        last = int(schedule.of(rows["t_ns"])[-1])
    return last


def fits(rows: np.ndarray, size_bytes: int, block_bytes: int) -> None:
    """Raises UsageError where the drive is too small for the trace or its blocks are larger."""
    for window in traceform.windows(rows):
        reach = int((window["offset_bytes"] + window["length_bytes"]).max())
        if reach > size_bytes:
            do = "make the trace with a smaller --working-set, or convert it with a smaller --range"
            raise UsageError(f"a trace within {size_bytes} bytes", f"an I/O that ends at byte {reach}", do)
        if np.any((window["offset_bytes"] | window["length_bytes"]) % block_bytes):
            do = f"make or convert the trace with --block {block_bytes}"
            raise UsageError(f"I/Os in blocks of {block_bytes} bytes", "smaller ones, or between them", do)


def play(
    rows: np.ndarray,
    target: Target,
    how: How,
    out: BinaryIO,
    look: Callable[[int], None] = lambda ended: None,
    clock: Callable[[], int] = time.monotonic_ns,
) -> int:
    """All rows; a RECORD of each goes to `out`, in their order. `look` gets the number that has ended, a few times a
    second; its exceptions end the play. Returns CLOCK_MONOTONIC of the trace's beginning. Raises DriveError where an
    I/O fails, or nothing is answered for a minute; the I/Os ended in order are in `out`."""
    how.check()
    playing = _Playing(target, how, out, look, clock)
    prctl.timer_slack(SLACK_NS)
    try:
        playing.all(traceform.windows(rows, WINDOW))
    finally:
        prctl.timer_slack(USUAL_SLACK_NS)
        playing.keep()
    return playing.t0_ns


class _Playing:
    def __init__(self, target: Target, how: How, out: BinaryIO, look: Callable[[int], None], clock: Callable[[], int]):
        self.target, self.how, self.out, self.look, self.clock = target, how, out, look, clock
        self.intended, self.issued, self.done = (np.zeros(SLOTS, np.int64) for _ in range(3))
        self.sizes: list[int] = []  # of the windows
        self.reaped = 0  # windows that are in `out`
        self.under_way = self.ended = 0
        self.t0_ns = self.alive_ns = self.looked_ns = 0
        self.schedule = Schedule(how)
        self.ahead: tuple[int, list[int], list[int]] | None = None
        self.last = False  # no window comes any more

    def all(self, windows: Iterator[np.ndarray]) -> None:
        self._prepare(windows)
        self.t0_ns = self.clock() + LEAD_NS
        while self.ahead:
            (slot, begins, times), self.ahead = self.ahead, None
            (self._closed if self.how.closed else self._timed)(slot, begins, times, windows)
            if not self.ahead:
                self._prepare(windows)
        while self.under_way:
            self._reap(TICK_NS)

    def _prepare(self, windows: Iterator[np.ndarray]) -> None:
        """The next window, as (first slot, first row of each burst and the end, time of each burst; in a closed play of
        each run of one depth, and the depth)."""
        rows = next(windows, None)
        if rows is None:
            self.last = True
            return
        self.keep()
        while len(self.sizes) - self.reaped >= WINDOWS:  # its slots are not free yet
            self._reap(TICK_NS)
            self.keep()
        slot, n = len(self.sizes) % WINDOWS * WINDOW, len(rows)
        self.sizes.append(n)
        self.done[slot : slot + n] = 0
        self.target.prepare(slot, rows)
        t_ns = rows["t_ns"]
        at = self.schedule.of(t_ns)
        self.intended[slot : slot + n] = at
        if self.how.closed and not rows["depth"].all():
            raise UsageError(
                "I/Os whose queue depth is known", "one of depth 0", "convert the trace again with --depth N"
            )
        values = rows["depth"].astype(np.int64) if self.how.closed else at
        first = np.flatnonzero(np.diff(values, prepend=-1))
        self.ahead = slot, [*first.tolist(), n], values[first].tolist()

    def _timed(self, slot: int, begins: list[int], times: list[int], windows: Iterator[np.ndarray]) -> None:
        at, burst, n, t0, clock = 0, 0, begins[-1], self.t0_ns, self.clock
        self.intended[slot : slot + n] += t0
        while at < n:
            now, taken = clock(), -1
            if times[burst] + t0 <= now and self.under_way < self.target.most:
                due = begins[bisect_right(times, now - t0, burst)]
                taken = self._submit(slot + at, min(due - at, self.target.most - self.under_way, BATCH), now)
                at += taken
                if at == n:
                    break
                burst = bisect_right(begins, at, burst) - 1
            full = not taken or self.under_way >= self.target.most
            wait = TICK_NS if full else min(TICK_NS, max(0, times[burst] + t0 - clock()))
            if wait > AHEAD_NS and not (self.under_way or self.ahead or self.last):
                self._prepare(windows)
            else:
                self._reap(wait)

    def _closed(self, slot: int, begins: list[int], depths: list[int], windows: Iterator[np.ndarray]) -> None:
        for first, end, most in zip(begins, begins[1:], depths):
            depth, at = min(most, self.target.most), first
            while at < end:
                room = min(depth - self.under_way, end - at, BATCH)
                now = self.clock()
                if room > 0 and (taken := self._submit(slot + at, room, now)):
                    self.intended[slot + at : slot + at + taken] = now
                    at += taken
                else:
                    self._reap(TICK_NS)

    def _submit(self, slot: int, n: int, now: int) -> int:
        self.issued[slot : slot + n] = now
        if not self.under_way:
            self.alive_ns = now
        taken = self.target.submit(slot, n, now)
        self.under_way += taken
        return taken

    def _reap(self, timeout_ns: int) -> None:
        ended = self.target.reap(timeout_ns, self.done)
        now = self.clock()
        if ended:
            self.under_way -= ended
            self.ended += ended
            self.alive_ns = now
        elif self.under_way and now - self.alive_ns > STALL_NS:
            raise DriveError("an answer within a minute", f"none to {self.under_way} I/Os", "see whether it is there")
        if now - self.looked_ns > 200_000_000:
            self.looked_ns = now
            self.look(self.ended)

    def keep(self) -> None:
        """Write the records of the oldest windows whose I/Os have all ended."""
        while self.reaped < len(self.sizes):
            slot, n = self.reaped % WINDOWS * WINDOW, self.sizes[self.reaped]
            if not self.done[slot : slot + n].all():
                return
            records = np.empty(n, RECORD)
            records["intended_ns"], records["issued_ns"], records["done_ns"] = (
                part[slot : slot + n] for part in (self.intended, self.issued, self.done)
            )
            self.out.write(records.tobytes())
            self.reaped += 1
