"""Reads a sealed drive through a transport (blockio/slots.py): one command at a time, in order, each block once, so
that the time of each command is the drive's own. A command that the drive refuses is read again block by block, so
that the readable blocks around a bad one are judged too."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ssdrig.blockio.slots import Transport, carry_out
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.plan.kinds.retention_layout import Layout
from ssdrig.powerloss import record
from ssdrig.powerloss.history import BLANK
from ssdrig.retention.writing import COMMAND_BYTES, SEQ

OK = 0  # a block with the written content; the other codes are in record.WORDS_OF
OTHER = record.FOREIGN - 100  # a record of this run, but of another command


class Read(NamedTuple):
    """One piece as it was read. `ns`: int64[k], the time of each command; `blocks`: how many; `bad`: int64[m, 2],
    (block, class) of those that are not as they were written, in order."""

    piece: int
    ns: np.ndarray
    bytes: int
    blocks: int
    bad: np.ndarray


def pieces(transport: Transport, layout: Layout, run: int, wanted: Iterable[int]) -> Iterator[Read]:
    """These pieces, one after the other. Raises DriveError where the drive goes away or hangs."""
    for piece in wanted:
        rows = layouts.commands(layout, [piece], min(COMMAND_BYTES, transport.slots.bytes_each))
        seen, ns, refused = _read(transport, layout, run, rows)
        for i in np.flatnonzero(refused):
            blocks = np.arange(rows[i, 0], rows[i, 0] + rows[i, 1], layout.block_bytes)
            blockwise = np.stack([blocks, np.full_like(blocks, layout.block_bytes), np.zeros_like(blocks)], 1)
            again, _, still = _read(transport, layout, run, blockwise)
            contents = np.array([part[0] for part in again], np.int64)
            seen[i] = np.where(still, record.UNREADABLE, contents)
        if not len(rows):  # all of a small piece is a copy of the manifest
            yield Read(piece, ns, 0, 0, np.zeros((0, 2), np.int64))
            continue
        lba = np.concatenate([np.arange(at, at + n, layout.block_bytes) for at, n, _ in rows]) // layout.block_bytes
        content = np.concatenate(seen)
        kind = np.where(content == SEQ, OK, np.where(content >= 0, OTHER, content))
        at = np.flatnonzero(kind != OK)
        yield Read(piece, ns, int(rows[:, 1].sum()), len(lba), np.stack([lba[at], kind[at]], 1))


def _read(transport: Transport, layout: Layout, run: int, rows: np.ndarray):
    """(what the blocks of each command hold, ns of each, bool: refused)."""
    slots = transport.slots
    seen: list[np.ndarray] = [np.zeros(0, np.int64)] * len(rows)
    began, ns, refused = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)

    def prepare(numbers, at):
        slots.kind[at], slots.flags[at] = BLANK, 0
        slots.offset[at], slots.length[at] = rows[numbers, 0], rows[numbers, 1]
        began[numbers] = transport.now_ns()

    def taken(numbers, at):
        ns[numbers] = transport.now_ns() - began[numbers]
        for number, slot in zip(numbers.tolist(), at.tolist(), strict=True):
            length = int(slots.length[slot])
            refused[number] = slots.status[slot] != 0
            data = slots.data[slot * slots.bytes_each : slot * slots.bytes_each + length]
            blocks = np.arange(length // layout.block_bytes) + int(slots.offset[slot]) // layout.block_bytes
            lba512 = blocks * (layout.block_bytes // record.BYTES)
            seen[number] = record.classify(data, run, lba512, layout.block_bytes)

    carry_out(transport, len(rows), prepare, taken, 1)
    return seen, ns, refused


def copies(transport: Transport, capacity_bytes: int) -> list[bytes | None]:
    """The three places of the manifest; None: the drive refuses to read it. Raises DriveError."""
    slots = transport.slots
    size = slots.bytes_each
    copies_read: list[bytes | None] = []
    for begin in layouts.copies(capacity_bytes):
        parts: dict[int, bytes | None] = {}

        def prepare(numbers, at, begin=begin):
            slots.kind[at], slots.flags[at] = BLANK, 0
            slots.offset[at], slots.length[at] = begin + numbers * size, size

        def taken(numbers, at, parts=parts):
            for number, slot in zip(numbers.tolist(), at.tolist(), strict=True):
                data = slots.data[slot * size : (slot + 1) * size].tobytes()
                parts[number] = None if slots.status[slot] else data

        n = layouts.COPY_BYTES // size
        carry_out(transport, n, prepare, taken, 1)
        whole = [parts[i] for i in range(n)]
        # the header's length ends in the first part: the zeros after it need not be readable
        copies_read.append(None if whole[0] is None else b"".join(part or bytes(size) for part in whole))
    return copies_read
