"""Stamped records: every 512 bytes written identify themselves. Compiled; no I/O.

A record is a header of 64 bytes and a payload of 448 that is a function of run, address and command, so the data read
back is compared with the data written, not with a checksum; it cannot be compressed, and no two records are alike.
Its size does not depend on the drive's logical block: a block of 4096 bytes holds eight.
"""

import numba
import numpy as np

from ssdrig.powerloss.kinds import UNKNOWN

BYTES = 512
WORDS = BYTES // 8
# little endian; a record as stored on the drive
HEADER = np.dtype(
    [
        ("run", "<u4"),
        ("magic", "<u4"),
        ("lba512", "<u8"),  # where it belongs, in units of 512 bytes
        ("seq", "<u8"),  # the command that wrote it, 1 and up in the campaign; 0: the fill before it
        ("session", "<u4"),
        ("index", "<u2"),  # of the record in its command
        ("length", "<u2"),  # records of that command
        ("first_lba512", "<u8"),
        ("prev_seq", "<u8"),  # the command whose content the host believed to be here
        ("t_submit_ns", "<i8"),
        ("hash", "<u8"),  # of the 56 bytes before
    ]
)
MAGIC = 0x31474952  # "RIG1"
HEADER_WORDS = HEADER.itemsize // 8

# what a record, and then a block, is when it does not hold the content of one command (that one is its seq, >= 0)
ZEROS, ONES, FOREIGN, TORN, MISDIRECTED, CORRUPT, UNREADABLE, UNSTABLE = -1, -2, -3, -4, -5, -6, -7, -9
WORDS_OF = {
    ZEROS: "zeros",
    ONES: "ones",
    FOREIGN: "a record of another run",
    TORN: "records of different commands inside one logical block",
    MISDIRECTED: "a record that belongs to another address",
    CORRUPT: "bytes that no command has written",
    UNREADABLE: "nothing: the drive refuses to read it",
    UNKNOWN: "not known",
    UNSTABLE: "one content, and another when it was read again",
}

_ODD = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio, as in SplitMix64 (Steele, Lea, Flood 2014)
_MIX = np.uint64(0xBF58476D1CE4E5B9)  # its first multiplier
_RUN = np.uint64(MAGIC << 32)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@numba.njit(cache=True, inline="always")
def _mixed(word):
    word = (word ^ (word >> np.uint64(30))) * _MIX
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True)
def _hash(record):
    out = _ODD
    for i in range(HEADER_WORDS - 1):
        out = _mixed(out ^ record[i]) + _ODD
    return out


@numba.njit(cache=True)
def _key(run, lba512, seq):
    return _mixed(_mixed(run + _ODD) ^ _mixed(lba512 * _ODD) ^ (seq * _MIX))


@numba.njit(cache=True)
def _stamp(record, run, seq, lba512, session, index, length, prev_seq, t_submit_ns):
    record[0] = run ^ _RUN
    record[1] = lba512
    record[2] = seq
    record[3] = session | index << np.uint64(32) | length << np.uint64(48)
    record[4] = lba512 - index
    record[5] = prev_seq
    record[6] = t_submit_ns
    record[HEADER_WORDS - 1] = _hash(record)
    key = _key(run, lba512, seq)
    for j in range(HEADER_WORDS, WORDS):
        record[j] = _mixed(key + np.uint64(j) * _ODD)


@numba.njit(cache=True)
def _fill(records, run, seq, lba512, session, prev_seq, t_submit_ns):
    for n in range(len(records)):
        i = np.uint64(n)
        _stamp(records[n], run, seq, lba512 + i, session, i, np.uint64(len(records)), prev_seq, t_submit_ns)


SEQ, LBA512, RECORDS, AT, SLOT = range(5)  # columns of what stamp_all() takes for each command


@numba.njit(cache=True)
def stamp_all(words, commands, n, last, base, per_block, run, session, t_submit_ns):
    """The data of n commands (int64[n, 5]): the records of each go to the beginning of words[SLOT]. last (int64[]): the
    seq that was written last to each block in this session, 0: none; base: its earlier content; a command begins at AT
    in both and its blocks become its seq in `last`. per_block: records of a block."""
    for k in range(n):
        seq, length, at = np.uint64(commands[k, SEQ]), commands[k, RECORDS], commands[k, AT]
        row, first = words[commands[k, SLOT]], np.uint64(commands[k, LBA512])
        for i in range(length):
            block = at + i // per_block
            before = last[block] if last[block] else max(base[block], 0)
            record, index = row[i * WORDS : (i + 1) * WORDS], np.uint64(i)
            _stamp(record, run, seq, first + index, session, index, np.uint64(length), np.uint64(before), t_submit_ns)
        for block in range(at, at + length // per_block):
            last[block] = commands[k, SEQ]


@numba.njit(cache=True)
def _classify(records, lba512, run, out):
    for n in range(len(records)):
        record = records[n]
        own_run = record[0] ^ _RUN
        if own_run >> np.uint64(32) or record[HEADER_WORDS - 1] != _hash(record):
            low, high = np.uint64(0), _ALL
            for j in range(WORDS):
                low |= record[j]
                high &= record[j]
            out[n] = ZEROS if low == np.uint64(0) else ONES if high == _ALL else CORRUPT
            continue
        key = _key(own_run, record[1], record[2])
        wrong = np.uint64(0)
        for j in range(HEADER_WORDS, WORDS):
            wrong |= record[j] ^ _mixed(key + np.uint64(j) * _ODD)
        if wrong:
            out[n] = CORRUPT
        elif own_run != run:
            out[n] = FOREIGN
        elif record[1] != np.uint64(lba512[n]):
            out[n] = MISDIRECTED
        else:
            out[n] = np.int64(record[2])


def fill(data: np.ndarray, run: int, seq: int, lba512: int, session: int = 0, prev_seq: int = 0, t_submit_ns: int = 0):
    """Stamp `data` (uint8, n * 512, contiguous) with the n <= 65535 records of one command at lba512. `run` has 32
    bits. Raises ValueError for another size."""
    if not 0 < len(data) // BYTES < 1 << 16 or len(data) % BYTES:
        raise ValueError(f"1 to 65535 records of {BYTES} bytes, not {len(data)} bytes")
    numbers = (np.uint64(value) for value in (run, seq, lba512, session, prev_seq, t_submit_ns))
    _fill(data.view(np.uint64).reshape(-1, WORDS), *numbers)


def classify(data: np.ndarray, run: int, lba512: np.ndarray, block_bytes: int = BYTES) -> np.ndarray:
    """What blocks hold: int64[m], the seq of the command that wrote all of a block, or one of the codes above. `data`:
    uint8, m * block_bytes; `lba512`: int64[m], where each block was read."""
    per_block = block_bytes // BYTES
    records = data.view(np.uint64).reshape(-1, WORDS)
    out = np.empty(len(records), np.int64)
    if per_block == 1:
        _classify(records, np.asarray(lba512, np.int64), np.uint64(run), out)
        return out
    units = (np.asarray(lba512, np.int64)[:, None] + np.arange(per_block)).reshape(-1)
    _classify(records, units, np.uint64(run), out)
    parts = out.reshape(-1, per_block)
    whole = parts[:, 0].copy()
    whole[(parts != whole[:, None]).any(axis=1)] = TORN
    for worst in (MISDIRECTED, CORRUPT):
        whole[(parts == worst).any(axis=1)] = worst
    return whole


def agreed(first: np.ndarray, again: np.ndarray) -> np.ndarray:
    """What blocks hold that were read twice, int64[m], from classify() of each time: UNSTABLE where they differ."""
    return np.where(first == again, first, UNSTABLE)


def header(record: bytes) -> dict | None:
    """The fields of a record, as numbers; None if it belongs to no run."""
    words = np.frombuffer(record[:BYTES], np.uint64)
    fields = np.frombuffer(record[: HEADER.itemsize], HEADER)[0]
    if fields["magic"] != MAGIC or _hash(words) != words[HEADER_WORDS - 1]:
        return None
    return {name: int(fields[name]) for name in HEADER.fields or () if name not in ("magic", "hash")}
