"""The records of a run's rig.bin as arrays (schemas/journal.md). Pure."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from ssdrig.runs.rigbin import MAGIC, RECORD, RECORD_HEAD

_MAGIC = re.compile(MAGIC)
_FRAMING = struct.Struct("<4s4xI8xI")  # of RECORD: magic, payload length, crc32
SHORT_BYTES = 40  # the CRCs of shorter payloads are computed side by side
# CRC-32 of each byte, without the inversions before and after
CRC_TABLE = np.array([~crc32(bytes([i]), 0xFFFFFFFF) & 0xFFFFFFFF for i in range(256)], np.uint32)
FIELDS = np.dtype([("magic", "S4"), ("kind", "u1"), ("zero", "V3"), ("length", "<u4"), ("t_ns", "<u8"), ("crc", "<u4")])
# bytes, and the same as an array -> what _in_a_row() returns
InARow = Callable[[bytes, np.ndarray], tuple[np.ndarray, int, np.ndarray | None]]


@dataclass
class Records:
    """Whole records of rig.bin in file order; `data` holds all payloads, record i is
    data[start[i]:start[i]+length[i]]."""

    kind: np.ndarray  # uint8
    t_ns: np.ndarray  # int64, CLOCK_MONOTONIC
    start: np.ndarray  # int64
    length: np.ndarray  # int64
    data: np.ndarray  # uint8
    next_offset: int  # where in rig.bin to go on reading
    left_bytes: int  # bytes after next_offset that are not a whole record (yet)
    skipped_bytes: int  # damaged, followed by whole records
    place: int = 0  # of data[0] in rig.bin

    def __len__(self) -> int:
        return len(self.kind)

    def payload(self, i: int) -> bytes:
        return self.data[self.start[i] : self.start[i] + self.length[i]].tobytes()

    def part(self, first: int, last: int) -> "Records":
        """Records first..last-1, sharing the data."""
        rows = slice(first, last)
        return Records(
            self.kind[rows],
            self.t_ns[rows],
            self.start[rows],
            self.length[rows],
            self.data,
            self.next_offset,
            self.left_bytes,
            self.skipped_bytes,
            self.place,
        )


def decode(data: bytes, offset: int = 0, in_a_row: InARow | None = None) -> Records:
    """Split bytes of rig.bin that begin at a record into records. Damaged ones are skipped if a whole one follows; the
    rest, from the first that is torn on, is left. in_a_row: walk.in_a_row, for many of them."""
    size, at, skipped = len(data), 0, 0
    unpack, head, covered = _FRAMING.unpack_from, RECORD.size, RECORD_HEAD.size

    def end_of(at: int) -> int:
        """Where the record that starts there ends; 0 if it is not whole."""
        if at + head > size:
            return 0
        magic, length, crc = unpack(data, at)
        end = at + head + length
        whole = magic == MAGIC and end <= size and crc32(data[at + head : end], crc32(data[at : at + covered])) == crc
        return end if whole else 0

    octets = np.frombuffer(data, np.uint8)
    starts, at, fields = (in_a_row or _in_a_row)(data, octets)
    heads: list[int] = []
    while True:
        while at + head <= size:  # as end_of(), without a call for each of a hundred thousand records
            magic, length, crc = unpack(data, at)
            end = at + head + length
            if magic != MAGIC or end > size or crc32(data[at + head : end], crc32(data[at : at + covered])) != crc:
                break
            heads.append(at)
            at = end
        following = next((m.start() for m in _MAGIC.finditer(data, at + 1) if end_of(m.start())), None)
        if following is None:
            break
        skipped += following - at
        at = following
    if heads or fields is None:
        starts = np.concatenate([starts, np.array(heads, np.int64)])
        fields = _fields(octets, starts)
    return Records(
        fields["kind"].copy(),
        fields["t_ns"].astype(np.int64),
        starts + head,
        fields["length"].astype(np.int64),
        octets,
        offset + at,
        len(data) - at,
        skipped,
        offset,
    )


def _fields(octets: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The headers of records, dtype FIELDS."""
    return octets[starts[:, None] + np.arange(RECORD.size)].view(FIELDS)[:, 0]


def _in_a_row(data: bytes, octets: np.ndarray) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Where whole records start that follow each other from the first byte on (int64), where the last one ends, and
    their _fields, in one batch, because a call for each of millions takes seconds. No result for records with damage
    or ambiguity."""
    none = np.empty(0, np.int64), 0, None
    starts = np.flatnonzero(octets[: max(0, len(octets) - RECORD.size + 1)] == MAGIC[0])
    for i in range(1, len(MAGIC)):
        starts = starts[octets[starts + i] == MAGIC[i]]
    if not len(starts):
        return none
    fields = _fields(octets, starts)
    ends = starts + RECORD.size + fields["length"]
    if ends[-1] > len(octets):  # torn
        starts, ends, fields = starts[:-1], ends[:-1], fields[:-1]
    in_order = len(starts) > 0 and starts[0] == 0 and (starts[1:] == ends[:-1]).all()
    if not in_order or ends[-1] > len(octets):  # torn is the one before: it has another one's beginning in its payload
        return none
    crc = _crc_of_columns(octets, starts, RECORD_HEAD.size, np.zeros(len(starts), np.uint32))
    payload, short = starts + RECORD.size, fields["length"] <= SHORT_BYTES
    for length in np.unique(fields["length"][short]).tolist():
        rows = np.flatnonzero(fields["length"] == length)
        crc[rows] = _crc_of_columns(octets, payload[rows], length, crc[rows])
    long = np.flatnonzero(~short)
    spans = zip(payload[long].tolist(), ends[long].tolist(), crc[long].tolist(), strict=True)
    crc[long] = [crc32(data[a:z], before) for a, z, before in spans]
    return (starts, int(ends[-1]), fields) if (crc == fields["crc"]).all() else none


def _crc_of_columns(octets: np.ndarray, at: np.ndarray, count: int, crc: np.ndarray) -> np.ndarray:
    """CRC-32 (zlib's) of `count` bytes from each place, going on from `crc` (uint32)."""
    crc = ~crc
    for column in np.ascontiguousarray(octets[at[:, None] + np.arange(count)].T):
        crc = CRC_TABLE[crc.astype(np.uint8) ^ column] ^ (crc >> 8)
    return ~crc
