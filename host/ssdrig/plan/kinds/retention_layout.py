"""Where on a drive the data of a retention test lie. Pure: all of it follows from three numbers.

The region is the first bytes of the drive, in pieces of 1 GiB, of a small drive less. Of twenty pieces one is the
baseline, which is read once as soon as it is written; two are `moved`, written in turn with two of scratch, which are
then overwritten at random: the drive has to move the rest of their blocks. The others are cold. The first MiB of
the drive, the one at its middle and its last one hold the copies of the manifest."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.base.overprovisioning import MIB, whole_MiB

COLD, MOVED, SCRATCH, BASELINE = "cold", "moved", "scratch", "baseline"
KEPT = (COLD, MOVED, BASELINE)  # the judged pieces
CHURN = 2  # times the scratch is overwritten in all
EVERY = 20
_KINDS = {7: BASELINE, 3: MOVED, 13: MOVED, 4: SCRATCH, 14: SCRATCH}
BLOCKS = (512, 1024, 2048, 4096)
PIECE_BYTES, LEAST_PIECES = 1 << 30, 64
COPY_BYTES = MIB
PLACES = ("first MiB", "middle", "last MiB")  # of the copies


class Layout(NamedTuple):
    """`pieces` of piece_bytes from the drive's beginning on; blocks are logical blocks."""

    block_bytes: int
    capacity_bytes: int
    piece_bytes: int
    pieces: int

    @property
    def region_bytes(self) -> int:
        return self.pieces * self.piece_bytes


def make(block_bytes: int, capacity_bytes: int, region_bytes: int) -> Layout:
    """The layout of the first region_bytes of a drive. Raises UsageError for less than 64 MiB, and for a block size
    that is not in BLOCKS."""
    region_bytes = min(region_bytes, capacity_bytes)
    if region_bytes < LEAST_PIECES * MIB or capacity_bytes < LEAST_PIECES * MIB:
        raise UsageError("a region of at least 64 MiB", f"{region_bytes} bytes", "ask for a larger one")
    if block_bytes not in BLOCKS:
        raise UsageError("logical blocks of 512 to 4096 bytes", f"{block_bytes}", "format the drive with 512 or 4096")
    piece = MIB
    while piece < PIECE_BYTES and 2 * piece * LEAST_PIECES <= region_bytes:
        piece *= 2
    return Layout(block_bytes, capacity_bytes, piece, region_bytes // piece)


def of_drive(drive: Mapping, region_bytes: int) -> Layout:
    """make() of a drive (its part of run.json)."""
    return make(drive.get("logical_block_bytes") or 512, drive["capacity_bytes"], region_bytes)


def kind(piece: int) -> str:
    """COLD, MOVED, SCRATCH or BASELINE. A moved piece is followed by its scratch."""
    return _KINDS.get(piece % EVERY, COLD)


def of_kinds(layout: Layout, kinds: Iterable[str]) -> list[int]:
    """The pieces of these kinds, in order."""
    wanted = set(kinds)
    return [piece for piece in range(layout.pieces) if kind(piece) in wanted]


def copies(capacity_bytes: int) -> tuple[int, int, int]:
    """Where the copies of the manifest begin: bytes."""
    return 0, whole_MiB(capacity_bytes // 2), whole_MiB(capacity_bytes) - MIB


def commands(layout: Layout, pieces: Iterable[int], each_bytes: int) -> np.ndarray:
    """int64[k, 3]: offset and length in bytes, and piece, of these pieces in commands of each_bytes at most (a part of
    1 MiB), without the copies of the manifest."""
    begin = np.arange(0, layout.piece_bytes, each_bytes)
    numbers = np.array(list(pieces), np.int64)
    offset = (numbers[:, None] * layout.piece_bytes + begin).reshape(-1)
    rows = np.stack([offset, np.full_like(offset, each_bytes), np.repeat(numbers, len(begin))], 1)
    outside = ~np.isin(offset // COPY_BYTES * COPY_BYTES, copies(layout.capacity_bytes))
    return rows[outside]


def written_bytes(layout: Layout) -> int:
    """Most bytes written: everything once, the scratch CHURN times more, the copies."""
    scratch = len(of_kinds(layout, (SCRATCH,))) * layout.piece_bytes
    return layout.region_bytes + CHURN * scratch + len(PLACES) * COPY_BYTES


def judged_bytes(layout: Layout) -> int:
    """How much of the drive a verify reads and judges."""
    size = len(of_kinds(layout, KEPT)) * layout.piece_bytes
    within = [at // layout.piece_bytes for at in copies(layout.capacity_bytes) if at < layout.region_bytes]
    return size - COPY_BYTES * sum(kind(piece) in KEPT for piece in within)


def as_json(layout: Layout) -> dict:
    """The numbers that all of it follows from."""
    return layout._asdict()


def of_json(document: dict) -> Layout:
    """as_json() back. Raises ValueError, KeyError or TypeError for another thing."""
    layout = Layout(**{name: document[name] for name in Layout._fields})
    if any(type(number) is not int for number in layout):
        raise ValueError(f"no layout of a retention test: {document}")
    whole = layout.piece_bytes >= MIB and layout.piece_bytes % MIB == 0 and layout.block_bytes in BLOCKS
    if not whole or layout.pieces < 1 or layout.region_bytes > layout.capacity_bytes:
        raise ValueError(f"no layout of a retention test: {document}")
    return layout
