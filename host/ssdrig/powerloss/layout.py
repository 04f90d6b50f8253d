"""Where on the drive a campaign writes: an active window in pieces spread over the whole range, so that all dies and
all regions of the map take part, and canaries between them that are never written again. Pure.

The known contents are one array, the base: 8 bytes for each block of the window, then the blocks
of the canaries. Only `index` and `lba` map blocks to their places in it."""

from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import UsageError

UNIT_BYTES = 4096  # what most writes are, and what a canary is
WINDOW_BYTES = 64 << 30
PIECE_BYTES = 1 << 30  # at most
STEP_BYTES = 1 << 20  # of a piece, at least
LEAST_PIECES = 16
CANARIES = 4096


class Layout(NamedTuple):
    """Blocks are logical blocks; starts and canaries ascend."""

    block_bytes: int
    piece_blocks: int
    starts: np.ndarray  # int64[k], the first block of each piece
    canaries: np.ndarray  # int64[c], the first block of each canary

    @property
    def unit(self) -> int:
        """Blocks of UNIT_BYTES."""
        return UNIT_BYTES // self.block_bytes

    @property
    def window_blocks(self) -> int:
        return len(self.starts) * self.piece_blocks

    @property
    def base_blocks(self) -> int:
        """Length of the base."""
        return self.window_blocks + len(self.canaries) * self.unit


def make(
    block_bytes: int, size_bytes: int, window_bytes: int = WINDOW_BYTES, canaries: int = CANARIES, at_byte: int = 0
) -> Layout:
    """Layout of the range of size_bytes from at_byte on. The window takes at most half of it, unless it is asked for
    less. Raises UsageError for blocks that do not divide 4 KiB, and for a range of less than 2 MiB."""
    if UNIT_BYTES % block_bytes or block_bytes % 512:
        raise UsageError("logical blocks of 512 to 4096 bytes", f"{block_bytes}", "format the drive with 512 or 4096")
    at_byte = -(-at_byte // STEP_BYTES) * STEP_BYTES
    window = min(window_bytes, size_bytes // 2)
    piece = min(PIECE_BYTES, window // LEAST_PIECES) // STEP_BYTES * STEP_BYTES or STEP_BYTES
    pieces = window // piece
    if pieces < 1:
        raise UsageError(f"a range of at least {2 * STEP_BYTES} bytes", f"{size_bytes}", "give the test more room")
    stride = size_bytes // pieces // STEP_BYTES * STEP_BYTES
    starts = at_byte + np.arange(pieces) * stride
    # evenly in the gap after each piece
    count = min(-(-canaries // pieces), (stride - piece) // UNIT_BYTES) if canaries else 0
    within = piece + np.arange(count) * ((stride - piece) // max(count, 1) // UNIT_BYTES * UNIT_BYTES)
    places = (starts[:, None] + within).reshape(-1)
    return Layout(block_bytes, piece // block_bytes, starts // block_bytes, places // block_bytes)


def index(layout: Layout, lba: np.ndarray) -> np.ndarray:
    """int64[]: places of these blocks in the base; -1: not part of the campaign."""
    lba = np.asarray(lba, np.int64)
    piece = np.searchsorted(layout.starts, lba, "right") - 1
    within = lba - layout.starts[piece]
    out = np.where((piece >= 0) & (within < layout.piece_blocks), piece * layout.piece_blocks + within, -1)
    if len(layout.canaries):
        canary = np.searchsorted(layout.canaries, lba, "right") - 1
        within = lba - layout.canaries[canary]
        is_one = (canary >= 0) & (within < layout.unit)
        out = np.where(is_one, layout.window_blocks + canary * layout.unit + within, out)
    return out


def lba(layout: Layout, at: np.ndarray) -> np.ndarray:
    """int64[]: the blocks at these positions of the base."""
    at = np.asarray(at, np.int64)
    inside = at < layout.window_blocks
    piece, within = np.divmod(np.where(inside, at, 0), layout.piece_blocks)
    out = layout.starts[piece] + within
    if len(layout.canaries):
        canary, within = np.divmod(np.where(inside, 0, at - layout.window_blocks), layout.unit)
        out = np.where(inside, out, layout.canaries[canary] + within)
    return out
