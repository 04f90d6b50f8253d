"""Blocks that know where and when they were written, to find out whether a drive still has them. Pure.

A stamped block of 4 KiB: magic, its number on the drive, the slice it was written in, the key of the run, filled up
with bytes that follow from these (so that nothing compresses it), and a CRC-32 of all before it. The stamped blocks are
at the end of the tested range, where the load does not write. In each slice one group of them is rewritten, every
GROUPSth block, and all are read: they are one to GROUPS slices old, and so share the drive's open blocks, its
relocations and its wear with what the load writes."""

import random
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

BLOCK_BYTES = 4096
GROUPS = 8
_HEAD = struct.Struct("<8sQIQ")
_MAGIC = b"SSDRSTMP"
VERDICTS = ("good", "old", "elsewhere", "zeros", "damaged", "unreadable")


class Layout(NamedTuple):
    """`blocks` stamped blocks from byte `begin` on. `key` of the run."""

    begin: int
    blocks: int
    key: int

    def offset(self, i: int) -> int:
        return self.begin + i * BLOCK_BYTES

    def group(self, slice_: int) -> range:
        """The blocks that a slice (from 1) rewrites: the first slice all, later ones every GROUPSth."""
        return range(self.blocks) if slice_ == 1 else range(slice_ % GROUPS, self.blocks, GROUPS)

    def expected(self, i: int, slice_: int) -> int:
        """The slice that block i was last written in once `slice_` has been."""
        return max(1, slice_ - (slice_ - i) % GROUPS)


def layout(range_bytes: int, samples_bytes: int, key: int) -> Layout:
    """At the end of a range; at least GROUPS blocks. Raises ValueError where the range is too small for that."""
    count = max(GROUPS, samples_bytes // BLOCK_BYTES)
    begin = (range_bytes - count * BLOCK_BYTES) // BLOCK_BYTES * BLOCK_BYTES
    if begin < range_bytes // 2:
        raise ValueError("samples of less than half of the range")
    return Layout(begin, count, key)


def stamp(at: Layout, i: int, slice_: int) -> bytes:
    """Block i as a slice writes it."""
    number = at.offset(i) // BLOCK_BYTES
    head = _HEAD.pack(_MAGIC, number, slice_, at.key)
    filler = random.Random(head).randbytes(BLOCK_BYTES - _HEAD.size - 4)
    body = head + filler
    return body + struct.pack("<I", zlib.crc32(body))


def stamped(at: Layout, slice_: int) -> Iterator[tuple[int, bytes]]:
    """(byte offset, content) of each block that a slice writes."""
    return ((at.offset(i), stamp(at, i, slice_)) for i in at.group(slice_))


ReadsAs = Callable[[int, bytes], bytes]  # (byte offset, written data) -> data returned by a read


def verdict(
    at: Layout, i: int, slice_: int, block: bytes | None, reads_as: ReadsAs = lambda offset, content: content
) -> str:
    """The verdict, of VERDICTS, on a read of block i after the stamps of `slice_`: "old": data of an earlier slice,
    "elsewhere": a whole block that belongs to another place or run. None: the drive could not read it. `reads_as`: a
    SIMULATED drive may keep a check of each block alone."""
    if block is None:
        return "unreadable"
    last, offset = at.expected(i, slice_), at.offset(i)
    if block == reads_as(offset, stamp(at, i, last)):
        return "good"
    if any(block == reads_as(offset, stamp(at, i, before)) for before in {1, max(1, last - GROUPS)} - {last}):
        return "old"
    if not any(block):
        return "zeros"
    whole = len(block) == BLOCK_BYTES and zlib.crc32(block[:-4]) == struct.unpack("<I", block[-4:])[0]
    magic, number, _, key = _HEAD.unpack_from(block)
    if not whole or magic != _MAGIC:
        return "damaged"
    return "old" if (number, key) == (at.offset(i) // BLOCK_BYTES, at.key) else "elsewhere"


def tally(
    at: Layout, slice_: int, blocks: Mapping[int, bytes | None], reads_as: ReadsAs = lambda offset, content: content
) -> dict[str, int]:
    """How many of the blocks {i: content} have each verdict; none of those that none has, but "good"."""
    counts = dict.fromkeys(VERDICTS, 0)
    for i, block in blocks.items():
        counts[verdict(at, i, slice_, block, reads_as)] += 1
    return {word: count for word, count in counts.items() if count or word == "good"}
