"""The records of a run's rig.bin (schemas/journal.md): what came from the rig, and when; as bytes. As arrays:
rigrecords.py, which takes longer to import than many a command to run. Pure."""

import struct
from zlib import crc32

FRAME, PING, DAMAGE, PORT, CLAIM = 1, 2, 3, 4, 5  # kinds of records in rig.bin
CLAIM_BODY = struct.Struct("<qQ")  # tick_us, bound_ns: the tick was at t_ns, off by at most the bound
RECORD = struct.Struct("<4sB3xIQI")  # magic, kind, payload length, t_ns, crc32
RECORD_HEAD = struct.Struct("<4sB3xIQ")  # the part of it that the CRC covers
MAGIC = b"SJR1"


def encode(kind: int, payload: bytes, t_ns: int) -> bytes:
    """One record of rig.bin as bytes."""
    head = RECORD_HEAD.pack(MAGIC, kind, len(payload), t_ns)
    return head + crc32(payload, crc32(head)).to_bytes(4, "little") + payload
