"""The closed loop that writes until the power goes: streams through a transport, each command a row of the history.

`submit_ns` is taken before the transport is called, `done_ns` after it has returned. The drive going away is how a
session ends, so nothing here raises because of it.

The writer's inner loop: which command comes next, its row of the history, and what becomes of those that have ended.
Compiled; no I/O, no clock.

A lane is a stream and the commands that are drawn for it. Each command that is submitted gives every lane its share of
one, and takes one from the lane that it is of; the lane with most in hand comes next, of those that may. A lane that
has MOST_IN_HAND waits for its own answers, and the others then wait with it, except those of mixes.BEHIND."""

import contextlib
import threading
from collections.abc import Mapping
from typing import NamedTuple

import numba
import numpy as np

from ssdrig.base import prctl
from ssdrig.blockio.slots import Slots, Transport
from ssdrig.plan.kinds import cut_mixes
from ssdrig.powerloss import record, streams
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, NOT_BLANK, TRIM, WRITE, ZEROS, History
from ssdrig.powerloss.layout import Layout
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.record import BYTES
from ssdrig.powerloss.streams import AT, FLAGS, KIND, LBA, N

# columns of a lane
DEPTH, UNDER_WAY, HEAD, TAIL, KEPT = range(5)
# words of the state. HOLD: no command of this kind that has these flags; ONLY: of this lane alone; BLANK_WORD: what
# trimmed blocks read as; SENT, ACKED: bytes submitted, and acknowledged, without FUA; FLUSHED: of them, those that a
# FLUSH has covered; GATHER: nothing more is submitted once this many are SENT
FREE, UNDER_WAY_N, ACKED, FLUSHED, LOW, ERRORS, HOLD_KIND, HOLD_FLAGS, ONLY, BLANK_WORD, BLOCK_BYTES = range(11)
SENT, GATHER = 11, 12
STATES = 13
# columns of a slot's content; MARK: of a FLUSH, ACKED when it was submitted
LANE, ROW_AT, MARK = range(3)
ANY = -1  # ONLY
QUEUE = 1024  # commands that a lane can hold, drawn ahead
LOW_WATER = 128
MOST_IN_HAND = 4.0
GATHER_SLACK = 8  # of the bytes to gather, a part of which the last write may exceed them by


class Loop(NamedTuple):
    """All arrays of the loop."""

    queue: np.ndarray  # int64[lanes, QUEUE, 5], columns of streams
    lanes: np.ndarray  # int64[lanes, 5]
    credit: np.ndarray  # float64[lanes]
    share: np.ndarray  # float64[lanes], together 1
    state: np.ndarray  # int64[STATES]
    free: np.ndarray  # int64[slots], the first FREE of them are free slots
    held: np.ndarray  # int64[slots, 3]
    kind: np.ndarray  # of slots.Slots, as the following
    flags: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    status: np.ndarray
    words: np.ndarray


def made(
    slots: Slots, share: np.ndarray, depth: np.ndarray, in_order: np.ndarray, block_bytes: int, blank_word: int
) -> Loop:
    """With nothing under way and empty lanes."""
    lanes = np.zeros((len(share), 5), np.int64)
    lanes[:, DEPTH], lanes[:, KEPT] = depth, in_order
    state = np.zeros(STATES, np.int64)
    state[FREE], state[ONLY], state[BLOCK_BYTES], state[BLANK_WORD] = slots.n, ANY, block_bytes, blank_word
    state[GATHER] = NEVER
    queue, held = np.zeros((len(share), QUEUE, 5), np.int64), np.zeros((slots.n, 3), np.int64)
    free, credit = np.arange(slots.n, dtype=np.int64)[::-1].copy(), np.zeros(len(share))
    of_slots = slots.kind, slots.flags, slots.offset, slots.length, slots.status, slots.words
    return Loop(queue, lanes, credit, np.asarray(share, float), state, free, held, *of_slots)


@numba.njit(cache=True)
def _next(loop):
    """The lane whose turn it is; -1: none may. Near the end of the gathering a long write gives way to a shorter
    one."""
    state = loop.state
    best, most = -1, -1e300
    if state[SENT] >= state[GATHER]:
        return best
    shortest, least, most_blocks = -1, NEVER, NEVER
    if state[GATHER] < NEVER:
        most_blocks = (state[GATHER] - state[SENT] + state[GATHER] // GATHER_SLACK) // state[BLOCK_BYTES]
    for i in range(len(loop.lanes)):
        lane = loop.lanes[i]
        if state[ONLY] != ANY and state[ONLY] != i or lane[HEAD] == lane[TAIL]:
            continue
        command = loop.queue[i, lane[HEAD] % QUEUE]
        held = state[HOLD_KIND] and command[KIND] == state[HOLD_KIND]
        if held and command[FLAGS] & state[HOLD_FLAGS] == state[HOLD_FLAGS] and state[ONLY] == ANY:
            continue
        if lane[UNDER_WAY] >= lane[DEPTH]:
            if lane[KEPT] and loop.credit[i] >= MOST_IN_HAND and state[ONLY] == ANY:
                return -1
            continue
        if command[KIND] == WRITE and command[N] > most_blocks:
            if command[N] < least:
                shortest, least = i, command[N]
            continue
        if loop.credit[i] > most:
            best, most = i, loop.credit[i]
    return best if best >= 0 else shortest


@numba.njit(cache=True)
def issue(loop, rows, at, seq, t_ns, most, order, stamps):
    """Up to `most` commands into free slots: their numbers to order, their rows to rows[at:] without a seq (the first
    will be `seq`), what record.stamp_all() needs of the writes to stamps. Returns (commands, writes among them)."""
    state = loop.state
    n = writes = 0
    while n < most and state[FREE]:
        i = _next(loop)
        if i < 0:
            break
        lane = loop.lanes[i]
        command = loop.queue[i, lane[HEAD] % QUEUE]
        lane[HEAD] += 1
        lane[UNDER_WAY] += 1
        if lane[TAIL] - lane[HEAD] < LOW_WATER:
            state[LOW] = 1
        for j in range(len(loop.credit)):
            loop.credit[j] = min(loop.credit[j] + loop.share[j], MOST_IN_HAND + 1)
        loop.credit[i] -= 1.0
        state[FREE] -= 1
        slot = loop.free[state[FREE]]
        kind, blocks = command[KIND], command[N]
        loop.kind[slot], loop.flags[slot], loop.status[slot] = kind, command[FLAGS], 0
        loop.offset[slot], loop.length[slot] = command[LBA] * state[BLOCK_BYTES], blocks * state[BLOCK_BYTES]
        loop.held[slot, LANE], loop.held[slot, ROW_AT], loop.held[slot, MARK] = i, at + n, state[ACKED]
        if kind == WRITE and not command[FLAGS] & FUA:
            state[SENT] += loop.length[slot]
        row = rows[at + n]
        row["lba"], row["n"], row["kind"], row["flags"] = command[LBA], blocks, kind, command[FLAGS]
        row["status"], row["submit_ns"], row["done_ns"] = 0, t_ns, NEVER
        if kind == WRITE and not command[FLAGS] & ZEROS:
            records = blocks * state[BLOCK_BYTES] // BYTES
            stamp = stamps[writes]
            stamp[record.SEQ], stamp[record.LBA512], stamp[record.RECORDS] = (
                seq + n,
                loop.offset[slot] // BYTES,
                records,
            )
            stamp[record.AT], stamp[record.SLOT] = command[AT], slot
            writes += 1
        order[n] = slot
        n += 1
    state[UNDER_WAY_N] += n
    return n, writes


@numba.njit(cache=True)
def complete(loop, rows, ended, n, t_ns):
    """These slots have ended, and that was seen at t_ns."""
    state = loop.state
    for k in range(n):
        slot = ended[k]
        kind, status = loop.kind[slot], loop.status[slot]
        if status == 0 and kind == BLANK:
            blank = np.uint64(state[BLANK_WORD])
            for j in range(loop.length[slot] // 8):
                if loop.words[slot, j] != blank:
                    status = NOT_BLANK
                    break
        elif status:
            state[ERRORS] += 1
            if kind == WRITE and not loop.flags[slot] & FUA:
                state[SENT] -= loop.length[slot]
        elif kind == WRITE and not loop.flags[slot] & FUA:
            state[ACKED] += loop.length[slot]
        elif kind == FLUSH:
            state[FLUSHED] = max(state[FLUSHED], loop.held[slot, MARK])
        row = rows[loop.held[slot, ROW_AT]]
        row["status"], row["done_ns"] = status, t_ns
        loop.lanes[loop.held[slot, LANE], UNDER_WAY] -= 1
        loop.free[state[FREE]] = slot
        state[FREE] += 1
    state[UNDER_WAY_N] -= n


GONE, TIME, STOPPED, ERROR = "gone", "time", "stopped", "error"
BATCH = 64  # most commands that are submitted per batch
WAIT_NS = 10_000_000  # how often it is looked whether to stop
SPIN_NS = 500_000  # time before an aimed command without other waits: the kernel wakes late
HOLD_NS = 20_000_000
AIMED = len(cut_mixes.NAMES)  # the lane of aimed commands


class Aim(NamedTuple):
    """One command at a given time of the transport's clock: FLUSH, WRITE with FUA, or TRIM; 0: none, only the silence.
    From hold_ns before it on none of its kind is submitted; it goes alone; for silence_ns after it, nothing is.
    `urgent`: meanwhile the writer's thread has real-time priority, if it may, because another process may keep it from
    its time for milliseconds."""

    kind: int
    at_ns: int
    hold_ns: int = HOLD_NS
    silence_ns: int = 0
    urgent: bool = False


class Ended(NamedTuple):
    """Why and when the writing ended."""

    reason: str  # GONE: the drive cannot be reached; TIME; STOPPED; ERROR: it refuses commands, and is still there
    t_ns: int
    why: str


class Writer:
    """One session. `run` is the campaign's number (32 bits), `seed` what its streams are drawn from, `base` what the
    blocks held before (int64[layout.base_blocks], None: nothing known), shares as cut_mixes.SHARES; without trims, or
    writes of zeros, where the transport takes none. `idle_ns`: of silence before a FLUSH, again and again; 0: none. The
    history stays the caller's. `aimed_seq`: of the aimed command, None while it was not submitted."""

    def __init__(
        self,
        transport: Transport,
        book: History,
        layout: Layout,
        promise: Promise,
        run: int,
        session: int,
        seed: int,
        base: np.ndarray | None = None,
        shares: Mapping[str, float] = cut_mixes.SHARES,
        depth: Mapping[str, int] | None = None,
        idle_ns: int = 0,
    ):
        self.transport, self.book = transport, book
        self.aimed_seq: int | None = None
        self._drawn_from = layout, promise, seed, session
        if not transport.can_trim:
            shares = {**shares, **dict.fromkeys(cut_mixes.TRIMS, 0)}
        if not transport.can_zero:
            shares = {**shares, cut_mixes.ZEROES: 0}
        share = np.array([shares.get(name, 0) for name in cut_mixes.NAMES] + [0.0])
        depth = cut_mixes.depth(seed, session) if depth is None else depth
        depths = np.array([depth[name] if shares.get(name, 0) else 0 for name in cut_mixes.NAMES] + [1])
        in_order = np.array([name not in cut_mixes.BEHIND for name in cut_mixes.NAMES] + [False])
        blank = -1 if promise.after_trim == "ones" else 0
        self._loop = made(transport.slots, share / share.sum(), depths, in_order, layout.block_bytes, blank)
        self._loop.credit[:] = np.random.default_rng([seed, session, AIMED]).random(AIMED + 1)
        self._chunks = [0] * AIMED
        self._last = np.zeros(layout.base_blocks, np.int64)
        self._base = self._last if base is None else base
        self._per_block = layout.block_bytes // record.BYTES
        self._run, self._session = np.uint64(run), np.uint64(session)
        self._order, self._stamps = np.zeros(BATCH, np.int64), np.zeros((BATCH, 5), np.int64)
        self._ended = np.zeros(transport.slots.n, np.int64)
        self._stopping = threading.Event()
        self._aimed_command = np.zeros((0, 5), np.int64)
        self._idle_ns, self._idle_at_ns = idle_ns, transport.now_ns() + cut_mixes.IDLE_EVERY_NS if idle_ns else NEVER
        self._draw()

    @property
    def commands(self) -> int:
        return len(self.book)

    @property
    def in_flight(self) -> int:
        return int(self._loop.state[UNDER_WAY_N])

    @property
    def unflushed_bytes(self) -> int:
        """Acknowledged without FUA, and no FLUSH that was submitted after that is done."""
        return int(self._loop.state[ACKED] - self._loop.state[FLUSHED])

    def gather(self, unflushed_bytes: int) -> None:
        """Before write(): submit no FLUSH, and nothing more once this many bytes are written and not flushed: an eighth
        more at most, unless no stream has a write that is short enough."""
        self._loop.state[GATHER] = unflushed_bytes
        self._loop.state[HOLD_KIND], self._loop.state[HOLD_FLAGS] = FLUSH, 0
        if not self._drawn_from[1].fua:  # the kernel sends a FLUSH after each
            self._loop.share[[cut_mixes.NAMES.index(name) for name in cut_mixes.FUAS]] = 0
            self._loop.lanes[[cut_mixes.NAMES.index(name) for name in cut_mixes.FUAS], DEPTH] = 0

    def stop(self) -> None:
        """From another thread: submit nothing more."""
        self._stopping.set()

    def write(self, until_ns: int, aim: Aim | None = None) -> Ended:
        """Until then, or the drive is gone, or stop(). settle() waits for the commands in flight."""
        state, transport = self._loop.state, self.transport
        if aim is not None and aim.kind:
            self._aimed_command = self._drawn(aim.kind)  # beforehand: that takes longer than the command may be late
        with contextlib.ExitStack() as urgent:
            while True:
                now_ns = transport.now_ns()
                if transport.gone:
                    return Ended(GONE, now_ns, transport.gone)
                if state[ERRORS]:
                    return Ended(ERROR, now_ns, "a command failed")
                if now_ns >= until_ns or self._stopping.is_set():
                    return Ended(STOPPED if self._stopping.is_set() else TIME, now_ns, "")
                wait_ns = min(WAIT_NS, until_ns - now_ns)
                if aim is not None:
                    wait_ns, aim = self._aimed(aim, now_ns, wait_ns, urgent)
                elif now_ns < self._idle_at_ns or state[GATHER] < NEVER:
                    self._issue()
                elif now_ns >= self._idle_at_ns + self._idle_ns:
                    self._put(AIMED, self._drawn(FLUSH))
                    self._issue_alone()
                    self._idle_at_ns = now_ns + cut_mixes.IDLE_EVERY_NS
                self._reap(wait_ns)

    def settle(self, timeout_ns: int) -> int | None:
        """Wait until nothing is under way. Returns since when, or None where something still is."""
        until_ns = self.transport.now_ns() + timeout_ns
        while self.transport.under_way:
            left_ns = until_ns - self.transport.now_ns()
            if left_ns <= 0:
                return None
            self._reap(min(left_ns, WAIT_NS))
        return self.transport.now_ns()

    def _aimed(self, aim: Aim, now_ns: int, wait_ns: int, urgent: contextlib.ExitStack) -> tuple[int, Aim | None]:
        """How long to wait for answers now, and the rest of the aim."""
        state, left_ns = self._loop.state, aim.at_ns - now_ns
        if aim.urgent and left_ns <= aim.hold_ns:
            urgent.enter_context(prctl.real_time())
            aim = aim._replace(urgent=False)
        if left_ns <= 0:
            if aim.kind and self.aimed_seq is None:
                self._submit_aimed()
            urgent.close()
            state[HOLD_KIND] = 0
            if left_ns > -aim.silence_ns:
                return min(wait_ns, aim.silence_ns + left_ns), aim
            self._issue()
            return wait_ns, None
        if aim.kind and left_ns <= aim.hold_ns:
            state[HOLD_KIND], state[HOLD_FLAGS] = aim.kind, FUA if aim.kind == WRITE else 0
        if left_ns > SPIN_NS:
            self._issue()
            if state[LOW]:
                self._draw()
            return min(wait_ns, left_ns - SPIN_NS), aim
        return 0, aim

    def _drawn(self, kind: int) -> np.ndarray:
        """One command of a stream that has such."""
        name = {FLUSH: "flush", WRITE: "log-fua", TRIM: "trim"}[kind]
        drawn = streams.commands(name, *self._drawn_from, 1 << 20)
        return drawn[drawn[:, streams.KIND] == kind][:1]

    def _submit_aimed(self) -> None:
        self._put(AIMED, self._aimed_command)
        seq = self.book.next_seq
        if self._issue_alone():
            self.aimed_seq = seq

    def _issue_alone(self) -> int:
        """Submit only the command in its own lane."""
        self._loop.state[ONLY] = AIMED
        n = self._issue()
        self._loop.state[ONLY] = ANY
        return n

    def _issue(self) -> int:
        book, order, t_ns = self.book, self._order, self.transport.now_ns()
        if self._loop.state[LOW]:
            self._draw()
        book.reserve(BATCH)
        n, writes = issue(self._loop, book.rows, len(book), book.next_seq, t_ns, BATCH, order, self._stamps)
        if not n:
            return 0
        if writes:
            record.stamp_all(
                self._loop.words,
                self._stamps,
                writes,
                self._last,
                self._base,
                self._per_block,
                self._run,
                self._session,
                np.uint64(t_ns),
            )
        book.add(n)
        self.transport.submit(order, n)
        return n

    def _reap(self, timeout_ns: int) -> None:
        if n := self.transport.reap(self._ended, timeout_ns):
            complete(self._loop, self.book.rows, self._ended, n, self.transport.now_ns())

    def _draw(self) -> None:
        """Fill up the lanes."""
        lanes = self._loop.lanes
        for lane, name in enumerate(cut_mixes.NAMES):
            while lanes[lane, DEPTH] and lanes[lane, TAIL] - lanes[lane, HEAD] < LOW_WATER:
                self._put(lane, streams.commands(name, *self._drawn_from, self._chunks[lane]))
                self._chunks[lane] += 1
        self._loop.state[LOW] = 0

    def _put(self, lane: int, commands: np.ndarray) -> None:
        tail = self._loop.lanes[lane, TAIL]
        self._loop.queue[lane, (tail + np.arange(len(commands))) % QUEUE] = commands
        self._loop.lanes[lane, TAIL] += len(commands)
