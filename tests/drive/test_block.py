"""Samples of a block device, read and written past the page cache."""

import pytest
from purging import LOOP_BYTES, loop  # noqa: F401  fixture

from ssdrig.base.errors import DriveError
from ssdrig.drive import block


def test_block_io_past_the_page_cache(loop):
    with open(loop.node, "rb") as f:
        between = f.read(8192)[4096:]
    block.write(loop.node, {0: b"a" * 4096, 8192: b"b" * 4096})
    assert block.read(loop.node, [0, 4096, 8192]) == [b"a" * 4096, between, b"b" * 4096]
    assert block.size(loop.node) == LOOP_BYTES
    assert block.read(loop.node, [LOOP_BYTES]) == [None]  # beyond the end
    with pytest.raises(DriveError, match="No such file"):
        block.read("/dev/ssdrig-no-such", [0])


def test_samples_are_the_ends_and_spread_and_always_the_same():
    offsets = block.sample_offsets(10**12)
    assert len(offsets) == 66 and offsets == sorted(set(offsets)) == block.sample_offsets(10**12)
    assert offsets[0] == 0 and offsets[-1] == 10**12 // 4096 * 4096 - 4096
    assert sum(offset < 5 * 10**11 for offset in offsets) in range(20, 47)
    assert block.sample_offsets(3 * 4096 + 100) == [0, 4096, 8192]
