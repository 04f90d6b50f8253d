"""The writer's inner loop: which command comes next, its row of the history, and what becomes of those that have ended.
Compiled; no I/O, no clock.

A lane is a stream and the commands that are drawn for it. Each command that is submitted gives every lane its share of
one, and takes one from the lane that it is of; the lane with most in hand comes next, of those that may. A lane that
has MOST_IN_HAND waits for its own answers, and the others then wait with it, except those of mixes.BEHIND."""

from typing import NamedTuple

import numba
import numpy as np

from ssdrig.blockio.slots import Slots
from ssdrig.powerloss import record
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, NOT_BLANK, WRITE, ZEROS
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
    slots: Slots, share: np.ndarray, depth: np.ndarray, kept: np.ndarray, block_bytes: int, blank_word: int
) -> Loop:
    """With nothing under way and empty lanes."""
    lanes = np.zeros((len(share), 5), np.int64)
    lanes[:, DEPTH], lanes[:, KEPT] = depth, kept
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
