"""Frames taken apart at once are what wire.decode makes of each."""

import random
import struct
import tracemalloc

import pytest

from ssdrig.meter import wire
from ssdrig.meter.pico import line


def one_by_one(part: bytes) -> bytes | None:
    try:
        kind, seq, body = wire.decode(part)
    except wire.WireError:
        return None
    return struct.pack(wire.HEAD, kind, seq) + body


def bodies(dice: random.Random) -> list[bytes]:
    """Short and long ones, without a zero, of zeros, with blocks of 254, and with more codes than are followed."""
    samples = [struct.pack("<HIH", 100, 25_600 + dice.randrange(99), dice.randrange(9)) * 50 for _ in range(40)]
    runs = [bytes([7]) * n for n in (0, 1, 244, 245, 246, 247, 248, 249, 250, 254, 255, 508, 509, 1000)]
    zeros = [bytes(n) for n in (1, 3, line.MOST_CODES - 10, line.MOST_CODES, line.MOST_CODES + 10, 3000)]
    return samples + runs + zeros + [dice.randbytes(dice.randrange(600)) for _ in range(60)]


def damaged(frame: bytes, dice: random.Random) -> bytes:
    """A frame of which bytes are lost, changed or more, with no 0x00 in it."""
    at, octets = dice.randrange(len(frame)), bytearray(frame)
    how = dice.randrange(4)
    if how == 0:
        octets[at] = dice.randrange(1, 256)
    elif how == 1:
        del octets[at:]
    elif how == 2:
        octets[at:at] = bytes([dice.randrange(1, 256)]) * dice.randrange(1, 9)
    else:
        octets[at] = 255  # a code that points into the frames behind it
    return bytes(octets) or b"\x01"


@pytest.mark.parametrize("seed", range(4))
def test_as_one_by_one(seed):
    dice = random.Random(seed)
    frames = [wire.encode(65 + i % 20, i, body)[:-1] for i, body in enumerate(bodies(dice))]
    parts = frames + [damaged(frame, dice) for frame in frames for _ in range(3)]
    parts += [b"\x01" * n for n in (1, 5, 9, 10)] + [b"\xff"]
    dice.shuffle(parts)
    expected = [one_by_one(part) for part in parts]
    assert line.payloads(parts) == expected
    assert sum(payload is not None for payload in expected) >= len(frames)


@pytest.mark.parametrize("n", [0, 1, line.FEW - 1, line.FEW])
def test_few(n):
    parts = [wire.encode(wire.LOG, i, b"text %d" % i)[:-1] for i in range(n)]
    assert line.payloads(parts) == [one_by_one(part) for part in parts]


def test_what_comes_at_once_is_taken_apart_in_bounded_memory():
    """64 KiB of single bytes and one long chain of codes took 270 MB."""
    parts = [b"\1"] * 20_000 + [b"\1" * 600, wire.encode(wire.LOG, 1, b"text")[:-1]]
    tracemalloc.start()
    payloads = line.payloads(parts)
    most_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert payloads == [None] * 20_001 + [one_by_one(parts[-1])] and most_bytes < 16 << 20


def test_the_last_frame_may_point_past_the_end():
    parts = [wire.encode(wire.LOG, i, b"text")[:-1] for i in range(line.FEW)] + [b"\xff", b"\xfe\x01"]
    assert line.payloads(parts)[-2:] == [None, None]
