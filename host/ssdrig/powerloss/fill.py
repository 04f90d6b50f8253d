"""Before the first session: every block of the window and each canary gets the content that a campaign begins with."""

from collections.abc import Callable

import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio.slots import Transport, carry_out
from ssdrig.powerloss import record
from ssdrig.powerloss.history import FLUSH, WRITE
from ssdrig.powerloss.layout import Layout
from ssdrig.powerloss.readback import all_blocks, pieces

DEPTH = 32
SEQ = 0  # of the fill


def fill(transport: Transport, layout: Layout, run: int, show: Callable[[int, int], None] = lambda done, of: None):
    """Write all of it, then FLUSH. show(done, of): bytes. Raises DriveError where the drive refuses or goes away."""
    slots = transport.slots
    first, n = pieces(all_blocks(layout), slots.bytes_each // layout.block_bytes)
    per_block = layout.block_bytes // record.BYTES
    none, stamps = np.zeros(slots.bytes_each // layout.block_bytes, np.int64), np.zeros((DEPTH, 5), np.int64)
    written, total = 0, int(n.sum()) * layout.block_bytes
    session = np.uint64(0)

    def prepare(numbers, at):
        slots.kind[at], slots.flags[at] = WRITE, 0
        slots.offset[at], slots.length[at] = first[numbers] * layout.block_bytes, n[numbers] * layout.block_bytes
        k = len(at)
        stamps[:k] = 0
        stamps[:k, record.LBA512], stamps[:k, record.RECORDS] = first[numbers] * per_block, n[numbers] * per_block
        stamps[:k, record.SLOT] = at
        now = np.uint64(transport.now_ns())
        record.stamp_all(slots.words, stamps, k, none, none, per_block, np.uint64(run), session, now)

    def taken(numbers, at):
        nonlocal written
        _refused(transport, at)
        written += int(n[numbers].sum()) * layout.block_bytes
        show(written, total)

    carry_out(transport, len(first), prepare, taken, DEPTH)
    flush(transport)


def flush(transport: Transport) -> None:
    """Data acknowledged before is durable from now on. Raises DriveError where the drive refuses or goes away."""
    slots = transport.slots

    def prepare(_, at):
        slots.kind[at], slots.flags[at], slots.offset[at], slots.length[at] = FLUSH, 0, 0, 0

    carry_out(transport, 1, prepare, lambda _, at: _refused(transport, at))


def flushed(transport: Transport) -> bool:
    """flush(); False: the drive refuses, as one may that has become read-only. Raises DriveError where it goes away."""
    try:
        flush(transport)
    except DriveError:
        if transport.gone or transport.under_way:
            raise
        return False
    return True


def _refused(transport: Transport, at: np.ndarray) -> None:
    bad = at[transport.slots.status[at] != 0]
    if len(bad):
        slot = bad[0]
        raise DriveError(
            f"the drive to take {transport.slots.length[slot]} bytes at {transport.slots.offset[slot]}",
            f"error {-transport.slots.status[slot]}",
            "see the kernel's log (dmesg)",
        )
