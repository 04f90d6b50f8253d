"""Writing the data of a retention test, and its manifest, through a transport (blockio/slots.py)."""

from collections.abc import Callable

import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio.slots import Transport, carry_out
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.plan.kinds.retention_layout import BASELINE, COLD, MOVED, SCRATCH, Layout
from ssdrig.powerloss import record
from ssdrig.powerloss.fill import flush
from ssdrig.powerloss.history import WRITE

SEQ = 1  # of all that is kept: one version
DEPTH = 32
CHURN_BYTES = 4096  # of an overwrite of the scratch, at random
COMMAND_BYTES = 128 << 10  # whatever a slot takes: a baseline's times are compared with those of years later
AT_ONCE = 4096  # commands between two looks whether someone wants it to end
Show = Callable[[int], None]  # is given the bytes written so far


def write(transport: Transport, layout: Layout, run: int, seed: int, show: Show = lambda done: None) -> int:
    """The whole region, then FLUSH; bytes written. Raises DriveError where the drive refuses or goes away."""
    size = min(COMMAND_BYTES, transport.slots.bytes_each)
    cold = layouts.commands(layout, layouts.of_kinds(layout, (COLD, BASELINE)), size)
    done = _write(transport, layout, run, cold, np.full(len(cold), SEQ), show, 0)
    moved = layouts.commands(layout, layouts.of_kinds(layout, (MOVED,)), size)
    scratch = layouts.commands(layout, layouts.of_kinds(layout, (SCRATCH,)), size)
    turns = _in_turn(moved, scratch)
    done = _write(transport, layout, run, turns, np.full(len(turns), SEQ), show, done)
    if len(scratch):
        n = layouts.CHURN * int(scratch[:, 1].sum()) // CHURN_BYTES
        rng = np.random.default_rng(seed)
        for begin in range(0, n, AT_ONCE):
            seqs = np.arange(begin, min(begin + AT_ONCE, n)) + SEQ + 1
            row = scratch[rng.integers(0, len(scratch), len(seqs))]
            within = rng.integers(0, size // CHURN_BYTES, len(seqs)) * CHURN_BYTES
            small = np.stack([row[:, 0] + within, np.full(len(seqs), CHURN_BYTES), row[:, 2]], 1)
            done = _write(transport, layout, run, small, seqs, show, done)
    flush(transport)
    return done


def _in_turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rows of both in turn, then the rest of the longer one."""
    order = np.argsort(np.concatenate([2 * np.arange(len(a)), 2 * np.arange(len(b)) + 1]), kind="stable")
    return np.concatenate([a, b])[order]


def _write(transport: Transport, layout: Layout, run: int, rows: np.ndarray, seqs: np.ndarray, show: Show, done: int):
    slots, per_block = transport.slots, layout.block_bytes // record.BYTES
    none = np.zeros(slots.bytes_each // layout.block_bytes, np.int64)
    stamps, session = np.zeros((DEPTH, 5), np.int64), np.uint64(0)

    for begin in range(0, len(rows), AT_ONCE):
        some, seq = rows[begin : begin + AT_ONCE], seqs[begin : begin + AT_ONCE]

        def prepare(numbers, at, some=some, seq=seq):
            slots.kind[at], slots.flags[at] = WRITE, 0
            slots.offset[at], slots.length[at] = some[numbers, 0], some[numbers, 1]
            k = len(at)
            stamps[:k, record.SEQ], stamps[:k, record.LBA512] = seq[numbers], some[numbers, 0] // record.BYTES
            stamps[:k, record.RECORDS], stamps[:k, record.AT] = some[numbers, 1] // record.BYTES, 0
            stamps[:k, record.SLOT] = at
            now = np.uint64(transport.now_ns())
            none[:] = 0
            record.stamp_all(slots.words, stamps, k, none, none, per_block, np.uint64(run), session, now)

        carry_out(transport, len(some), prepare, lambda _, at: _refused(transport, at), DEPTH)
        done += int(some[:, 1].sum())
        show(done)
    return done


def _refused(transport: Transport, at: np.ndarray) -> None:
    slots = transport.slots
    bad = at[slots.status[at] != 0]
    if len(bad):
        seen = f"error {-slots.status[bad[0]]} at byte {slots.offset[bad[0]]}"
        raise DriveError("the drive to accept the writes", seen, "see the kernel's log (dmesg)")


def put_copies(transport: Transport, layout: Layout, copy: bytes) -> None:
    """The manifest at its three places, then FLUSH. Raises DriveError."""
    slots = transport.slots
    size = slots.bytes_each
    data = np.frombuffer(copy, np.uint8)
    rows = [(at + part, part) for at in layouts.copies(layout.capacity_bytes) for part in range(0, len(data), size)]

    def prepare(numbers, at):
        for number, slot in zip(numbers.tolist(), at.tolist(), strict=True):
            offset, part = rows[number]
            slots.kind[slot], slots.flags[slot] = WRITE, 0
            slots.offset[slot], slots.length[slot] = offset, size
            slots.data[slot * size : (slot + 1) * size] = data[part : part + size]

    carry_out(transport, len(rows), prepare, lambda _, at: _refused(transport, at), DEPTH)
    flush(transport)
