"""Stamped records: what was written is told from everything else, bit for bit; the format stays what it is."""

import hashlib
import zlib

import numpy as np
import pytest

from ssdrig.powerloss import record

RUN, SEQ, LBA = 0xC0FFEE, 41, 96


def stamped(n=8, run=RUN, seq=SEQ, lba512=LBA):
    data = np.zeros(n * record.BYTES, np.uint8)
    record.fill(data, run, seq, lba512, session=3, prev_seq=17, t_submit_ns=5_000)
    return data


def seen(data, lba512=LBA, block_bytes=record.BYTES):
    at = lba512 + np.arange(0, len(data) // record.BYTES, block_bytes // record.BYTES)
    return record.classify(data, RUN, at, block_bytes).tolist()


def test_what_was_written_is_known_by_itself():
    data = stamped()
    assert seen(data) == [SEQ] * 8 and seen(data, block_bytes=4096) == [SEQ]
    header = record.header(data[1024:].tobytes())
    assert header == {
        "run": RUN,
        "lba512": LBA + 2,
        "seq": SEQ,
        "session": 3,
        "index": 2,
        "length": 8,
        "first_lba512": LBA,
        "prev_seq": 17,
        "t_submit_ns": 5_000,
    }


def test_any_bit_that_changes_is_noticed():
    bits = np.tile(stamped(1), (record.BYTES * 8, 1))
    at = np.arange(len(bits))
    bits[at, at // 8] ^= (1 << at % 8).astype(np.uint8)
    classes = record.classify(bits.reshape(-1), RUN, np.full(len(bits), LBA))
    assert set(classes.tolist()) == {record.CORRUPT}


@pytest.mark.parametrize("block_bytes", [512, 4096])
def test_what_else_a_block_may_hold(block_bytes):
    n = block_bytes // record.BYTES
    cases = {
        record.ZEROS: np.zeros(block_bytes, np.uint8),
        record.ONES: np.full(block_bytes, 0xFF, np.uint8),
        record.FOREIGN: stamped(n, run=RUN + 1),
        record.MISDIRECTED: stamped(n, lba512=LBA + n),
        record.CORRUPT: np.arange(block_bytes).astype(np.uint8),
    }
    assert {code: seen(data, block_bytes=block_bytes) for code, data in cases.items()} == {
        code: [code] for code in cases
    }
    assert record.header(cases[record.CORRUPT].tobytes()) is None


@pytest.mark.parametrize(
    "other", [stamped(seq=SEQ + 1), np.zeros(4096, np.uint8), stamped(run=1)], ids=["version", "zeros", "run"]
)
def test_every_split_of_a_block_is_torn(other):
    for split in range(1, 8):
        data = stamped()
        data[split * record.BYTES :] = other[split * record.BYTES :]
        assert seen(data, block_bytes=4096) == [record.TORN]
        data[-1] ^= 1
        assert seen(data, block_bytes=4096) == [record.CORRUPT]  # worse than torn


def test_no_two_payloads_have_a_word_in_common_and_none_can_be_compressed():
    many = np.concatenate([stamped(seq=seq, lba512=lba) for seq in (1, 2, 3) for lba in (0, 8, 1 << 40)])
    payload = many.view(np.uint64).reshape(-1, record.WORDS)[:, record.HEADER_WORDS :]
    assert len(np.unique(payload)) == payload.size
    assert len(zlib.compress(payload.tobytes(), 1)) >= payload.nbytes


def test_the_format_stays():
    """Data of a campaign must be readable by the next release: a change needs another MAGIC."""
    data = stamped(2).tobytes()
    assert data[:16].hex() == "eeffc000524947316000000000000000"
    assert hashlib.sha256(data).hexdigest() == "0892f7667612b1e635c5109f76046bfab909b762de2f0e0c0a82c47117c1f188"


@pytest.mark.parametrize("size", [0, 511, 513, 512 << 16])
def test_a_size_that_is_no_command_is_refused(size):
    with pytest.raises(ValueError, match="records of 512 bytes"):
        record.fill(np.zeros(size, np.uint8), RUN, 1, 0)


def test_a_block_that_reads_differently_each_time_is_unstable():
    first, again = np.array([5, record.ZEROS, 6, record.CORRUPT]), np.array([5, record.ZEROS, 5, 6])
    assert record.agreed(first, again).tolist() == [5, record.ZEROS, record.UNSTABLE, record.UNSTABLE]
