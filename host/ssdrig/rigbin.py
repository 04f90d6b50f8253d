"""The records of a run's rig.bin (schemas/journal.md): what came from the rig, and when; bytes and arrays. Pure."""

import re
import struct
from dataclasses import dataclass
from zlib import crc32

import numpy as np

FRAME, PING, DAMAGE, PORT = 1, 2, 3, 4  # kinds of records in rig.bin
RECORD = struct.Struct("<4sB3xIQI")  # magic, kind, payload length, t_ns, crc32
RECORD_HEAD = struct.Struct("<4sB3xIQ")  # the part of it that the CRC covers
MAGIC = b"SJR1"
_MAGIC = re.compile(MAGIC)
_FRAMING = struct.Struct("<4s4xI8xI")  # of RECORD: magic, payload length, crc32
_FIELDS = np.dtype(
    [("magic", "S4"), ("kind", "u1"), ("zero", "V3"), ("length", "<u4"), ("t_ns", "<u8"), ("crc", "<u4")]
)


def encode(kind: int, payload: bytes, t_ns: int) -> bytes:
    """One record of rig.bin as bytes."""
    head = RECORD_HEAD.pack(MAGIC, kind, len(payload), t_ns)
    return head + crc32(payload, crc32(head)).to_bytes(4, "little") + payload


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
    left_bytes: int  # bytes behind next_offset that are no whole record (yet)
    skipped_bytes: int  # damaged, with whole records behind them
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


def decode(data: bytes, offset: int = 0) -> Records:
    """Split bytes of rig.bin that begin at a record into records. Damaged ones are skipped if a whole one follows; the
    rest, from the first that is torn on, is left."""
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

    heads = []
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
    starts = np.array(heads, np.int64)
    octets = np.frombuffer(data, np.uint8)
    fields = octets[starts[:, None] + np.arange(head)].copy().view(_FIELDS)[:, 0]
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
