"""A block device, or a file, opened past the page cache."""

import errno
import os

import pytest
from loop_device import loop_device

from ssdrig.base.errors import DriveError
from ssdrig.blockio import direct
from ssdrig.drive import block


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "drive"
    path.write_bytes(b"\xff" * (1 << 20))
    return str(path)


def test_only_a_file_is_opened_through_the_cache_and_only_when_asked(file, monkeypatch):
    fd, past_cache = direct.opened(file)
    os.close(fd)
    assert past_cache
    real = os.open

    def refusing(path, flags, *more, **how):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "a file system without direct I/O")
        return real(path, flags, *more, **how)

    monkeypatch.setattr(os, "open", refusing)
    fd, past_cache = direct.opened(file, or_buffered=True)
    os.close(fd)
    assert not past_cache
    for path, or_buffered in ((file, False), ("/dev/null", True), (f"{file}x", True)):
        with pytest.raises(DriveError, match="for direct I/O"):
            direct.opened(path, or_buffered)


def test_a_file_takes_no_discards(file):
    fd, _ = direct.opened(file)
    try:
        assert not direct.is_block_device(fd)
        assert not direct.takes(fd, direct.DISCARD) and not direct.takes(fd, direct.ZEROES)
        assert direct.discard(fd, 0, 4096) == direct.discard(fd, 0, 4096, block.BLKZEROOUT) == errno.ENOTTY
    finally:
        os.close(fd)


def test_discards_end_in_order_with_their_errors(file):
    with loop_device(file) as node:
        fd, _ = direct.opened(node)
        discards = direct.Discards(fd)
        try:
            assert direct.is_block_device(fd) and direct.takes(fd, direct.DISCARD)
            discards.ask(7, 0, 4096)
            discards.ask(8, 4096, 4096, block.BLKZEROOUT)
            discards.ask(9, 2 << 20, 4096)  # behind the end
            discards.close()
            answers = [discards.taken() for _ in range(4)]
        finally:
            os.close(fd)
    assert [answer and (answer[0], answer[2]) for answer in answers] == [(7, 0), (8, 0), (9, errno.EINVAL), None]
    assert answers[0][1] <= answers[1][1] <= answers[2][1] and discards.under_way == 0
    with open(file, "rb") as f:
        assert f.read() == bytes(8192) + b"\xff" * ((1 << 20) - 8192)
