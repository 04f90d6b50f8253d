"""What the virtual drive holds: bytes or checks, holes, and what recent versions of pages replaced."""

import os
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import DriveError
from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import store
from ssdrig.virtual.flash import versions

SIZE = 1 << 20


def put(s, offset: int, data: bytes, number: int = 0) -> int:
    """Write through a batch of one, whose first version has this number. Returns its ERROR."""
    batch = np.zeros((1, nbd_protocol.COLUMNS), np.int64)
    batch[0, [nbd_protocol.OP, nbd_protocol.OFFSET, nbd_protocol.LENGTH, nbd_protocol.AT]] = (
        nbd_protocol.WRITE,
        offset,
        len(data),
        3,
    )
    s.write(np.frombuffer(b"abc" + data, np.uint8), batch, 1, number)
    return int(batch[0, nbd_protocol.ERROR])


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

    def make(data="sparse", slots=0):
        stores.append(store.open_store(str(tmp_path / data) if data == "file" else data, SIZE, slots))
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
                store.zero(s, offset, length)
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
    assert put(s, 0, b"x" * store.LONG_BYTES) == nbd_protocol.ENOSPC
    s.short_bytes = 0  # as when the disk is nearly full
    assert put(s, 0, b"x") == nbd_protocol.ENOSPC


def test_nearly_full_disk_is_seen(made, monkeypatch):
    monkeypatch.setattr(store, "SPARE_BYTES", 1)  # however full this machine's is
    s = made()
    assert s.short_bytes == store.LONG_BYTES
    monkeypatch.setattr(store, "SPARE_BYTES", 1 << 62)
    s.look()
    put(s, 5, b"hello")
    assert s.short_bytes == 0 and get(s, 4, 7) == b"\0hello\0"


def test_no_room_is_said_before_anything_is_served(tmp_path):
    with pytest.raises(DriveError, match="bytes free"):
        store.open_store("sparse", 1 << 60)
    with pytest.raises(DriveError, match="give another"):
        store.open_store(str(tmp_path / "nothing/file"), SIZE)


def version(number: int, command: int = 0, trim: bool = False):
    row = np.zeros(1, versions.VERSION)[0]
    row["cell"], row["command"], row["trim"] = number, command, trim
    return row


@pytest.mark.parametrize("data", ["sparse", "crc"])
def test_what_a_version_replaced_can_be_put_back(made, data):
    s = made(data, slots=8)
    put(s, 4096, page(1) + page(2) + page(3), 5)  # versions 5 to 7
    put(s, 2 * 4096, page(22), 8)
    put(s, 2 * 4096, page(222), 9)
    newest, cells = get(s, 2 * 4096, 4096), [s.replaced.cell(version(n)) for n in (9, 8, 6)]
    again = made(data)
    for cell, byte in zip(cells, (22, 2, 0)):
        put(again, 2 * 4096, page(byte)) if byte else again.punch(2, 3)
        s.put(2, cell)
        assert get(s, 2 * 4096, 4096) == get(again, 2 * 4096, 4096) != newest
        assert s.load(2) == again.load(2)


def test_versions_are_kept_in_the_order_of_their_packet(made):
    """A short write, one past the map, and a short one again, all of one page."""
    s, batch = made(slots=16), np.zeros((3, nbd_protocol.COLUMNS), np.int64)
    parts = [page(1), bytes([2]) * store.LONG_BYTES, page(3)]
    for row, part, at in zip(batch, parts, (0, 4096, 4096 + store.LONG_BYTES)):
        row[[nbd_protocol.OP, nbd_protocol.LENGTH, nbd_protocol.AT]] = nbd_protocol.WRITE, len(part), at
    assert s.write(np.frombuffer(b"".join(parts), np.uint8), batch, 3, 100) == 110
    assert [s.replaced.cell(version(n))[0] for n in (100, 101, 109)] == [0, 1, 2] and get(s, 0, 1) == b"\3"
    put(s, 0, page(7) * 20, 110)  # more than the ring holds: the last 16 of them
    assert s.replaced.cell(version(114)) == page(2) and s.replaced.cell(version(129)) == page(0)


@pytest.mark.parametrize("data", ["sparse", "crc"])
def test_what_a_trim_took_is_kept_for_a_while(made, data, monkeypatch):
    s = made(data, slots=8)
    for n in (1, 2, 4):
        put(s, n * 4096, page(n))
    held = [s.load(n) for n in (1, 2)]
    s.trim(0, 4, 17)
    assert get(s, 0, 4 * 4096) == bytes(4 * 4096) and s.replaced.trimmed[17].tolist() == [1, 2]
    assert [s.replaced.cell(version(i, 17, trim=True)) for i in (0, 1)] == held
    monkeypatch.setattr(store, "TRIM_PAGES", 2)
    s.trim(4, 5, 18)
    assert list(s.replaced.trimmed) == [18]
    s.clear()
    assert get(s, 0, 8192) == bytes(8192) and not s.replaced.trimmed


def test_zeroes_make_the_versions_and_commands_that_the_flash_makes(made):
    s, rng = made(slots=8), np.random.default_rng(2)
    op, flags = np.zeros(9, np.uint8), np.zeros(9, np.uint8)
    first, pages, owner = (np.zeros(9, np.int64) for _ in range(3))
    for offset, length in rng.integers(1, 14_000, (60, 2)).tolist():
        batch = np.zeros((1, nbd_protocol.COLUMNS), np.int64)
        batch[0, [nbd_protocol.OP, nbd_protocol.OFFSET, nbd_protocol.LENGTH]] = (
            nbd_protocol.WRITE_ZEROES,
            offset,
            length,
        )
        m = nbd_protocol.page_commands(batch, 1, 4096, op, first, pages, flags, owner)
        assert store.zero(s, offset, length) == (pages[:m][op[:m] == nbd_protocol.WRITE].sum(), m)


def test_check_store_keeps_crcs_and_reads_its_pattern(made):
    s = made("crc")
    data = bytes(range(256)) * 16
    put(s, 5 * 4096, data + page(9))
    assert s.checks[4:8].tolist() == [0, zlib.crc32(data), zlib.crc32(page(9)), 0]
    line = (5).to_bytes(8, "little") + zlib.crc32(data).to_bytes(4, "little") + bytes(4)
    assert get(s, 4 * 4096, 2 * 4096) == bytes(4096) + line * 256
    store.zero(s, 5 * 4096, 4096)
    assert get(s, 5 * 4096, 4096) == bytes(4096)


def test_a_crc_of_zero_is_not_taken_for_unwritten(made, monkeypatch):
    s = made("crc")
    monkeypatch.setattr(store.zlib, "crc32", lambda _: 0)
    put(s, 0, page(1))
    assert s.checks[0] == 1
