"""What the virtual drive holds: bytes or checks, holes, and what a power cut takes back."""

import os
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.errors import DriveError
from ssdrig.virtual.device import nbd, store

SIZE = 1 << 20


def put(s, offset: int, data: bytes) -> int:
    """Write through a batch of one. Returns its ERROR."""
    batch = np.zeros((1, nbd.COLUMNS), np.int64)
    batch[0, [nbd.OP, nbd.OFFSET, nbd.LENGTH, nbd.AT]] = nbd.WRITE, offset, len(data), 3
    s.write(np.frombuffer(b"abc" + data, np.uint8), batch, 1)
    return int(batch[0, nbd.ERROR])


def get(s, offset: int, length: int) -> bytes:
    out = np.full(16 + length, 0xEE, np.uint8)
    s.read(out, np.array([[16, offset, length]]), 1)
    return out[16:].tobytes()


def page(byte: int) -> bytes:
    return bytes([byte]) * 4096


@pytest.fixture
def made(tmp_path):
    """open_store() with its end taken care of."""
    stores = []

    def make(data="sparse", undo_pages=0):
        stores.append(store.open_store(str(tmp_path / data) if data == "file" else data, SIZE, undo_pages))
        return stores[-1]

    yield make
    for s in stores:
        s.close()


@given(
    st.lists(
        st.tuples(st.sampled_from("wzp"), st.integers(0, 40000), st.integers(1, 70000), st.integers(1, 255)),
        max_size=20,
    )
)
@settings(max_examples=60, deadline=None)
def test_byte_store_is_like_memory(steps):
    s, memory = store.open_store("sparse", SIZE), bytearray(SIZE)
    try:
        for kind, offset, length, byte in steps:
            if kind == "w":
                put(s, offset, bytes([byte]) * length)
                memory[offset : offset + length] = bytes([byte]) * length
            elif kind == "z":
                s.zero(offset, length)
                memory[offset : offset + length] = bytes(length)
            else:
                first, last = -(-offset // 4096), (offset + length) // 4096
                s.punch(first, last)
                if first < last:
                    memory[first * 4096 : last * 4096] = bytes((last - first) * 4096)
        assert get(s, 0, 131072) == memory[:131072] and get(s, 1, 999) == memory[1:1000]
    finally:
        s.close()


def test_holes_give_their_room_back(made, tmp_path):
    s = made("file")
    for i in range(0, SIZE, 65536):
        assert put(s, i, b"x" * 65536) == 0
    os.fsync(s.fd)
    assert os.fstat(s.fd).st_blocks * 512 >= SIZE
    s.punch(0, SIZE // 4096)
    os.fsync(s.fd)
    assert os.fstat(s.fd).st_blocks * 512 < SIZE // 8
    assert get(s, 0, SIZE) == bytes(SIZE)


def test_a_named_file_stays(made, tmp_path):
    put(made("file"), 5, b"hello")
    assert (tmp_path / "file").read_bytes()[:12] == b"\0\0\0\0\0hello\0\0"


def test_a_refused_write_is_an_error_of_that_request_only(made):
    s = made()
    os.close(s.fd)
    s.fd = os.open("/dev/full", os.O_RDWR)
    assert put(s, 0, b"x" * store.LONG_BYTES) == nbd.ENOSPC
    s.short_bytes = 0  # as when the disk is nearly full
    assert put(s, 0, b"x") == nbd.ENOSPC


def test_nearly_full_disk_is_seen(made, monkeypatch):
    s = made()
    assert s.short_bytes == store.LONG_BYTES
    monkeypatch.setattr(store, "SPARE_BYTES", 1 << 62)
    s.look()
    put(s, 5, b"hello")
    assert s.short_bytes == 0 and get(s, 4, 7) == b"\0hello\0"


def test_no_room_is_said_before_anything_is_served():
    with pytest.raises(DriveError, match="bytes free"):
        store.open_store("sparse", 1 << 60)
    with pytest.raises(DriveError, match="give another"):
        store.open_store("/nonexistent/file", SIZE)


@pytest.mark.parametrize("data", ["sparse", "crc"])
def test_lose_takes_back_what_is_named_and_no_more(made, data):
    s = made(data, undo_pages=8)
    for n, byte in ((1, 1), (2, 2), (3, 3)):
        put(s, n * 4096, page(byte))
    put(s, 2 * 4096, page(22))
    put(s, 2 * 4096, page(222))
    old, first = get(s, 3 * 4096, 4096), get(s, 4096, 4096)
    assert s.lose(np.array([2, 2, 3])) == (3, 0)  # the two newest of page 2, the only one of page 3
    put_again = made(data)
    put_again_2 = put(put_again, 2 * 4096, page(2))
    assert put_again_2 == 0 and get(s, 2 * 4096, 4096) == get(put_again, 2 * 4096, 4096)
    assert get(s, 3 * 4096, 4096) == bytes(4096) != old
    assert get(s, 4096, 4096) == first
    assert s.lose(np.array([1])) == (0, 1)  # once the power is gone all that is left is durable


@pytest.mark.parametrize("data", ["sparse", "crc"])
def test_trimmed_pages_do_not_come_back(made, data):
    s = made(data, undo_pages=8)
    put(s, 4096, page(1))
    put(s, 4096, page(2))
    s.punch(1, 2)
    assert s.lose(np.array([1])) == (0, 1)
    assert get(s, 4096, 4096) == bytes(4096)


def test_the_undo_ring_says_when_it_is_too_short(made):
    s = made(undo_pages=4)
    for i in range(6):
        put(s, i * 4096, page(i + 1))
    assert s.lose(np.arange(6)) == (4, 2)
    assert [get(s, i * 4096, 1)[0] for i in range(6)] == [1, 2, 0, 0, 0, 0]
    put(s, 0, page(7) * 9)  # more pages than the ring is long, in one write
    assert s.lose(np.array([8, 0])) == (1, 1)


def test_check_store_keeps_crcs_and_reads_its_pattern(made):
    s = made("crc")
    data = bytes(range(256)) * 16
    put(s, 5 * 4096, data + page(9))
    assert s.checks[4:8].tolist() == [0, zlib.crc32(data), zlib.crc32(page(9)), 0]
    line = (5).to_bytes(8, "little") + zlib.crc32(data).to_bytes(4, "little") + bytes(4)
    assert get(s, 4 * 4096, 2 * 4096) == bytes(4096) + line * 256
    s.zero(5 * 4096, 4096)
    assert get(s, 5 * 4096, 4096) == bytes(4096)


def test_a_crc_of_zero_is_not_taken_for_unwritten(made, monkeypatch):
    s = made("crc")
    monkeypatch.setattr(store.zlib, "crc32", lambda _: 0)
    put(s, 0, page(1))
    assert s.checks[0] == 1


@pytest.mark.parametrize("data", ["sparse", "crc"])
def test_clear(made, data):
    s = made(data, undo_pages=4)
    put(s, 0, page(3))
    s.clear()
    assert get(s, 0, 8192) == bytes(8192)
    assert s.lose(np.array([0])) == (0, 1)
