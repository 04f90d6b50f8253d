"""Finds consecutive records of rig.bin at the pace of memory. Compiled: import it for long runs only, because the
import takes as long as some tens of megabytes of records."""

import numba
import numpy as np

from ssdrig.runs import rigbin, rigrecords

STRIDE = 16  # bytes per step of the CRC-32: "slicing" (Kounavis and Berry 2005)


def _tables() -> np.ndarray:
    """Effect of a byte on a CRC when 0 to STRIDE - 1 bytes follow it; uint32 (STRIDE, 256)."""
    tables: list[np.ndarray] = [rigrecords.CRC_TABLE]
    for _ in range(STRIDE - 1):
        tables.append(rigrecords.CRC_TABLE[tables[-1] & 0xFF] ^ (tables[-1] >> 8))
    return np.array(tables)


_TABLES = _tables()
_MAGIC = int.from_bytes(rigbin.MAGIC, "little")
_HEAD, _COVERED, _WORDS = rigbin.RECORD.size, rigbin.RECORD_HEAD.size, rigbin.RECORD.size // 8
_LENGTH_AT, _CRC_AT = 8, 16  # words of a head that have the payload's length as lower half, the CRC as upper half


def in_a_row(data: bytes, octets: np.ndarray) -> tuple[np.ndarray, int, np.ndarray]:
    """Where whole records start that follow each other from the first byte on (int64), where the last one ends, and
    their headers, dtype rigrecords.FIELDS. octets: the bytes as uint8."""
    most = len(data) // _HEAD
    starts, heads = np.empty(most, np.int64), np.empty((most, _WORDS), np.uint64)
    n = end = 0
    if most:
        words = np.ndarray(len(data) - 7, "<u8", data, strides=(1,))  # that begin at each byte
        n, end = _walk(octets, words, _TABLES, starts, heads)
    return starts[:n], end, heads[:n].view(rigrecords.FIELDS)[:, 0]


@numba.njit(cache=True)
def _walk(octets, words, tables, starts, heads):
    at, n, ones = 0, 0, np.uint64(0xFFFFFFFF)
    while at + _HEAD <= len(octets):
        end = at + _HEAD + np.int64(words[at + _LENGTH_AT] & ones)
        if words[at] & ones != _MAGIC or end > len(octets):
            break
        crc = _crc(_crc(ones, octets, words, at, at + _COVERED, tables), octets, words, at + _HEAD, end, tables)
        if crc ^ ones != words[at + _CRC_AT] >> np.uint64(32):
            break
        starts[n] = at
        for i in range(_WORDS):
            heads[n, i] = words[at + 8 * i]
        n += 1
        at = end
    return n, at


@numba.njit(cache=True, inline="always")
def _crc(crc, octets, words, at, end, t):
    low = np.uint64(0xFF)
    while at + STRIDE <= end:
        a, b = words[at] ^ crc, words[at + 8]
        crc = np.uint64(
            t[15, a & low]
            ^ t[14, a >> np.uint64(8) & low]
            ^ t[13, a >> np.uint64(16) & low]
            ^ t[12, a >> np.uint64(24) & low]
            ^ t[11, a >> np.uint64(32) & low]
            ^ t[10, a >> np.uint64(40) & low]
            ^ t[9, a >> np.uint64(48) & low]
            ^ t[8, a >> np.uint64(56)]
            ^ t[7, b & low]
            ^ t[6, b >> np.uint64(8) & low]
            ^ t[5, b >> np.uint64(16) & low]
            ^ t[4, b >> np.uint64(24) & low]
            ^ t[3, b >> np.uint64(32) & low]
            ^ t[2, b >> np.uint64(40) & low]
            ^ t[1, b >> np.uint64(48) & low]
            ^ t[0, b >> np.uint64(56)]
        )
        at += STRIDE
    while at < end:
        crc = t[0, (crc ^ octets[at]) & low] ^ crc >> np.uint64(8)
        at += 1
    return crc
