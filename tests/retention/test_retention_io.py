"""Writing and reading back a retention test on a drive in memory: what is bad and what is slow is found exactly."""

import functools

import numpy as np
import pytest
from memory_drive import MemoryDrive

from ssdrig.base.errors import DriveError
from ssdrig.base.overprovisioning import MIB
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.powerloss import record
from ssdrig.powerloss.history import BLANK, WRITE
from ssdrig.retention import passes, reading, writing

RUN, SIZE = 7, 66 * MIB
LAYOUT = layouts.make(4096, SIZE, SIZE)
KEPT = layouts.of_kinds(LAYOUT, layouts.KEPT)
FOREVER = 1 << 30


@functools.cache
def written_once() -> bytes:
    drive = MemoryDrive(SIZE)
    done = writing.write(drive, LAYOUT, RUN, 1)
    assert done == layouts.written_bytes(LAYOUT) - 2 * 3 * MIB  # the copies, and their place in the region
    writing.put_copies(drive, LAYOUT, b"x" * MIB)
    return drive.bytes.tobytes()


class Slow(MemoryDrive):
    """As written; reads in `slow` pieces take 1 ms, in others 0.1 ms."""

    def __init__(self, slow=()):
        super().__init__(SIZE)
        self.bytes[:] = np.frombuffer(written_once(), np.uint8)
        self.slow, self.read_bytes = set(slow), np.zeros(SIZE // 4096, np.int64)

    def _do(self, slot):
        if self.slots.kind[slot] == BLANK:
            first, n = int(self.slots.offset[slot]), int(self.slots.length[slot])
            self.read_bytes[first // 4096 : (first + n) // 4096] += 1
            self.t_ns += 1_000_000 if first // LAYOUT.piece_bytes in self.slow else 100_000
        return super()._do(slot)


def read(drive):
    return list(reading.pieces(drive, LAYOUT, RUN, KEPT))


def test_a_fresh_drive_is_read_once_and_holds_everything():
    drive = Slow()
    pieces = read(drive)
    assert sum(len(piece.bad) for piece in pieces) == 0
    assert sum(piece.bytes for piece in pieces) == layouts.judged_bytes(LAYOUT) == drive.read_bytes.sum() * 4096
    assert drive.read_bytes.max() == 1 and WRITE not in drive.kinds
    assert reading.copies(drive, SIZE) == [b"x" * MIB] * 3


def test_scratch_is_overwritten_and_moved_pieces_are_not():
    drive = Slow()
    for piece in layouts.of_kinds(LAYOUT, (layouts.SCRATCH,)):
        (read_piece,) = reading.pieces(drive, LAYOUT, RUN, [piece])
        assert set(read_piece.bad[:, 1].tolist()) == {reading.OTHER} and len(read_piece.bad) > read_piece.blocks / 2


def test_bad_blocks_are_found_exactly_with_their_class():
    drive = Slow()
    bad = {}
    for n, piece in enumerate(KEPT[3:12]):
        at = piece * LAYOUT.piece_bytes + n * 4096
        drive.bad[at] = FOREVER
        drive.bytes[at + 40960 + 100] ^= 1
        drive.bytes[at + 81920 : at + 81920 + 4096] = 0
        drive.bytes[at + 122880 : at + 122880 + 4096] = drive.bytes[at : at + 4096]
        bad |= {at: "UNREADABLE", at + 40960: "CORRUPT", at + 81920: "ZEROS", at + 122880: "MISDIRECTED"}
    runs = passes.runs(np.concatenate([piece.bad for piece in read(drive)]))
    assert {first * 4096: kind for first, n, kind in runs} == bad and all(n == 1 for _, n, _ in runs)


def test_slow_pieces_are_those_that_are():
    slow = set(KEPT[1::7])
    drive = Slow(slow)
    baseline = passes.middle([passes.piece(piece) for piece in read(Slow()) if layouts.kind(piece.piece) == "baseline"])
    pieces = read(drive)
    bad = passes.runs(np.concatenate([piece.bad for piece in pieces]))
    judged = passes.judge(LAYOUT, [passes.piece(piece) for piece in pieces], bad, baseline)
    assert set(judged["slow"]) == slow and judged["bad"] == 0
    assert judged["slowdown"] == pytest.approx(1 + 9 * len(slow) / len(KEPT), rel=0.15)


def test_a_drive_that_refuses_to_be_written_is_an_error():
    drive = MemoryDrive(SIZE)
    drive.refuses = True
    with pytest.raises(DriveError, match="error 5 at byte"):
        writing.write(drive, LAYOUT, RUN, 1)


def test_another_run_is_not_taken_for_this_one():
    (read_piece,) = reading.pieces(Slow(), LAYOUT, RUN + 1, [KEPT[5]])
    assert set(read_piece.bad[:, 1].tolist()) == {record.FOREIGN} and len(read_piece.bad) == read_piece.blocks
