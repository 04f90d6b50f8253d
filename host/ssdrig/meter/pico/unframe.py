"""Many frames of the wire taken apart at once, as wire.decode does it one by one: what has waited at a port, or came
fast. The COBS codes of a frame are a chain, each says where the next one lies; here the chains of all frames are
followed in step. Pure.
"""

from itertools import pairwise
from zlib import crc32

import numpy as np

from ssdrig.meter import wire

MANY = 1024  # frames at once take 6 MB at most, 64 KiB of delimiters and single bytes would take 270
FEW = 8  # frames, below which one by one is faster
STEPS = 16  # codes that are followed before it is seen whether all chains have ended
MOST_CODES = 512  # of a frame with more of them the chain is followed alone; 50 samples have some 150
_CRC_BYTES = 4


def payloads(parts: list[bytes]) -> list[bytes | None]:
    """What each of these stretches of bytes between delimiters (none empty, no 0x00 inside) carries: kind, seq and
    body of a frame, its CRC checked and left out. None: it is no frame."""
    if len(parts) < FEW:
        return [_alone(part) for part in parts]
    if len(parts) > MANY:
        return [payload for i in range(0, len(parts), MANY) for payload in payloads(parts[i : i + MANY])]
    line = b"\x00".join(parts) + bytes(256)  # a code that points past the last delimiter ends there
    octets = np.frombuffer(line, np.uint8)
    steps = octets.astype(np.int64)
    ends = np.cumsum([len(part) + 1 for part in parts]) - 1
    begins = np.concatenate([[0], ends[:-1] + 1])
    codes = np.empty(
        (MOST_CODES + 1, len(parts)), np.int64
    )  # where the codes of each frame lie; at last: its delimiter
    codes[0], last = begins, 0
    while last < MOST_CODES:
        for now, following in pairwise(codes[last : last + STEPS + 1]):
            steps.take(now, out=following, mode="clip")
            np.add(now, following, out=following)
        last += STEPS
        if not octets[codes[last]].any():  # a chain that has come to a delimiter stays there
            break
    # of a block of 254 the code stands for no zero, and a chain that leaves its frame is none
    plain = (codes[last] == ends) & ~(np.diff(codes[: last + 1], axis=0) == 255).any(axis=0)
    zeroed = octets.copy()
    zeroed[codes[:last] if plain.all() else codes[:last, plain]] = 0
    sums = np.zeros(len(parts), np.int64)
    for i in range(_CRC_BYTES):
        sums |= zeroed[ends - _CRC_BYTES + i].astype(np.int64) << (8 * i)
    text = zeroed.tobytes()
    return [
        (text[a + 1 : z] if z - a > wire.BODY and crc32(text[a + 1 : z]) == said else None) if fine else _alone(part)
        for part, a, z, said, fine in zip(
            parts, begins.tolist(), (ends - _CRC_BYTES).tolist(), sums.tolist(), plain.tolist()
        )
    ]


def _alone(part: bytes) -> bytes | None:
    try:
        whole = wire.cobs_decode(part)
    except wire.WireError:
        return None
    payload, said = whole[:-_CRC_BYTES], whole[-_CRC_BYTES:]
    return payload if len(payload) >= wire.BODY and crc32(payload) == int.from_bytes(said, "little") else None
