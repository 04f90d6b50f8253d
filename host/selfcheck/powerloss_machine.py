"""Two references for the verdict of powerloss, which share no code with it: a machine with a volatile cache whose every
behaviour is searched, and the definition by sets. And random small histories to compare them on."""

import random
from typing import NamedTuple

import numpy as np

from ssdrig.powerloss import kinds as history_kinds
from ssdrig.powerloss import record, verdict
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, ROW, TRIM, WRITE
from ssdrig.powerloss.promise import ACK, Promise
from ssdrig.powerloss.promise import FLUSH as BY_FLUSH

BLOCKS = 2
CUT_NS, ON_NS = 50, 60
ZEROS = record.ZEROS
FIRST_SEQ = 100  # of the session; base contents are older


class Command(NamedTuple):
    seq: int
    kind: int
    blocks: tuple[int, ...]
    fua: bool
    status: int
    submit_ns: int
    done_ns: int
    zeros: bool = False  # of a write


class History(NamedTuple):
    commands: tuple[Command, ...]
    base: tuple[int, ...]  # content of each block before
    ack: bool


def drawn(chance: random.Random, most: int) -> History:
    """A history of 1 to `most` commands on two blocks; times are few, so that many of them tie. Some commands do not
    return, fail, or return only after power is back. No block is read while it is trimmed or zeroed."""
    commands = []
    for i in range(chance.randint(1, most)):
        kind = chance.choice((WRITE, WRITE, WRITE, FLUSH, TRIM, BLANK))
        blocks = chance.choice(((0,), (1,), (0, 1))) if kind != FLUSH else ()
        submit = chance.randrange(0, 16)
        done = chance.choice((submit + chance.randint(1, 8), submit + chance.randint(1, 20), NEVER, ON_NS + i))
        status = -5 if chance.random() < 0.08 and done != NEVER else 0
        fua, zeros = (kind == WRITE and chance.random() < share for share in (0.3, 0.15))
        commands.append(Command(0, kind, blocks, fua, status, submit, done, zeros))
    trims = [command for command in commands if command.kind == TRIM or command.zeros]
    commands = [
        command for command in commands if command.kind != BLANK or not any(_meet(command, trim) for trim in trims)
    ]
    commands.sort(key=lambda command: command.submit_ns)
    numbered = tuple(command._replace(seq=FIRST_SEQ + i) for i, command in enumerate(commands))
    return History(numbered, (chance.choice((7, ZEROS)), 8), chance.random() < 0.2)


def _meet(read: Command, trim: Command) -> bool:
    """Whether the trim may be under way while the block is read; one that failed may be at any later time."""
    done = trim.done_ns if trim.status == 0 and trim.done_ns < ON_NS else NEVER
    return bool({*read.blocks} & {*trim.blocks}) and trim.submit_ns <= read.done_ns and read.submit_ns <= done


def by_sets(history: History) -> list[set[int]]:
    """What each block may hold, by the definition with sets: no durable command came strictly after it."""
    acked = [command for command in history.commands if command.status == 0 and command.done_ns < ON_NS]
    flushes = [command for command in acked if command.kind == FLUSH]

    def is_durable(x: Command) -> bool:
        if x not in acked or x.kind not in (WRITE, BLANK):
            return False
        return history.ack or x.fua or any(x.done_ns <= flush.submit_ns for flush in flushes)

    out = []
    for block in range(BLOCKS):
        on = [command for command in history.commands if block in command.blocks]
        durable = [command for command in on if is_durable(command)]

        def follows(x: Command, blank: bool, durable: list[Command] = durable) -> bool:
            """Whether something durable came after x; of a blank, something that was written."""
            done = x.done_ns if x in acked else NEVER
            return any(done < command.submit_ns for command in durable if not (blank and command.kind == BLANK))

        legal = {
            command.seq for command in on if command.kind == WRITE and not command.zeros and not follows(command, False)
        }
        if any((command.kind == TRIM or command.zeros) and not follows(command, True) for command in on):
            legal.add(ZEROS)
        base = history.base[block]
        if not [command for command in durable if not (base == ZEROS and command.kind == BLANK)]:
            legal.add(base)
        out.append(legal)
    return out


def searched(history: History) -> set[tuple[int, ...]]:
    """Every image that a machine with a volatile cache can show after the cut, given what was acknowledged when; none
    where no machine behaves so (a read that found zeros where there were none).

    A command takes effect on each of its blocks at any time between its submission and its completion, one without an
    acknowledgement before the cut or not at all; a trim also later, until a write that was submitted after it has taken
    effect. Any block may be written out at any time; it must be between submission and completion of a FLUSH, and
    between effect and completion of a FUA write. Without a volatile cache every effect is written out at once."""
    events = []
    for i, command in enumerate(history.commands):
        known = command.status == 0 and command.done_ns < CUT_NS
        events.append((command.submit_ns, 2 if command.kind == FLUSH else 0, "submit", i))
        if known:
            events.append((command.done_ns, 1, "done", i))
    events.sort()
    # a state: what the cache holds, what the medium holds, effects that have happened, duties that are done
    states: set[tuple] = {(history.base, history.base, frozenset(), frozenset())}
    active: set[int] = set()
    finished: set[int] = set()
    for _, _, what, i in events:
        command = history.commands[i]
        if what == "submit":
            active.add(i)
        else:
            states = {state for state in states if _may_complete(history, i, state)}
            finished.add(i)
            if command.kind != TRIM:
                active.discard(i)
        states = _closed(history, states, active, finished)
    return {medium for _, medium, _, _ in states}


def _may_complete(history: History, i: int, state: tuple) -> bool:
    command = history.commands[i]
    _, _, effects, duties = state
    if command.kind == WRITE:
        parts = {(i, block) for block in command.blocks}
        return parts <= effects and (not command.fua or history.ack or parts <= duties)
    if command.kind == FLUSH:
        return history.ack or {(i, block) for block in range(BLOCKS)} <= duties
    return command.kind == TRIM or {(i, block) for block in command.blocks} <= duties


def _closed(history: History, states: set, active: set[int], finished: set[int]) -> set:
    """All states that are reached from these before the next event."""
    states = {_read(history, state, active) for state in states}
    ahead = list(states)
    while ahead:
        cache, medium, effects, duties = ahead.pop()
        after = []
        for i in active:
            command = history.commands[i]
            if command.kind not in (WRITE, TRIM):
                continue
            for block in command.blocks:
                if (i, block) in effects or (command.kind == TRIM and _overtaken(history, i, block, effects)):
                    continue
                new = (
                    cache[:block]
                    + (command.seq if command.kind == WRITE and not command.zeros else ZEROS,)
                    + cache[block + 1 :]
                )
                after.append((new, new if history.ack else medium, effects | {(i, block)}, duties))
        for block in range(BLOCKS):
            out = {(i, block) for i in active if history.commands[i].kind == FLUSH}
            out |= {(i, block) for i in active if history.commands[i].fua and (i, block) in effects}
            new = medium[:block] + (cache[block],) + medium[block + 1 :]
            after.append((cache, new, effects, duties | out))
        for state in after:
            state = _read(history, state, active)
            if state not in states:
                states.add(state)
                ahead.append(state)
    return states


def _overtaken(history: History, i: int, block: int, effects: frozenset) -> bool:
    """Whether a write that was submitted after the trim was complete has taken effect."""
    trim = history.commands[i]
    done = trim.done_ns if trim.status == 0 and trim.done_ns < CUT_NS else NEVER
    return any(
        (k, block) in effects and command.kind == WRITE and done < command.submit_ns
        for k, command in enumerate(history.commands)
    )


def _read(history: History, state: tuple, active: set[int]) -> tuple:
    """Reads under way that may have found zeros by now."""
    cache, medium, effects, duties = state
    zeroed = {
        (i, block)
        for i in active
        if history.commands[i].kind == BLANK
        for block in history.commands[i].blocks
        if cache[block] == ZEROS
    }
    return cache, medium, effects, duties | zeroed


def judged(history: History, checker=verdict) -> list[set[int]]:
    """What each block may hold, by the verdict: every content is asked for."""
    promise = Promise(ACK if history.ack else BY_FLUSH, 512, 1, 0, 0, "zeros", True, "")
    writes = [command for command in history.commands if command.kind == WRITE and not command.zeros]
    old = {ZEROS, 5, *history.base}
    asked = [
        (b, content)
        for b in range(BLOCKS)
        for content in {*old, *(command.seq for command in writes if b in command.blocks)}
    ]
    lba, seen = (np.array(column, np.int64) for column in zip(*asked))
    base = np.array([history.base[block] for block, _ in asked], np.int64)
    blocks = verdict.Blocks(lba, base, seen, np.zeros(len(asked), bool))
    ruling = checker.judge(session(history), blocks, promise)
    failed = set(ruling.failed().tolist())
    out: list[set[int]] = [set() for _ in range(BLOCKS)]
    for i, (block, content) in enumerate(asked):
        if i not in failed:
            out[block].add(content)
    return out


def session(history: History) -> verdict.Session:
    flags = lambda e: FUA * e.fua | history_kinds.ZEROS * e.zeros
    rows = [
        (e.seq, e.blocks[0] if e.blocks else 0, len(e.blocks), e.kind, flags(e), e.status, e.submit_ns, e.done_ns)
        for e in history.commands
    ]
    return verdict.Session(np.array(rows, ROW), CUT_NS, ON_NS, ON_NS + 50, ON_NS + 100)
