"""The wire's definition: golden frames, COBS, and that the board's own fast code is the same thing."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simboard import run_script

from ssdrig.meter import wire

EXAMPLES = sorted((Path(__file__).parents[2] / "schemas/examples/wire").glob("*.hex"))


def example(path):
    """-> dict of the file's lines: frame, and for a good one kind, seq, body."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return {line.split(" ")[0]: line.split(" ")[1] for line in lines}


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem.startswith("good")], ids=lambda p: p.stem)
def test_good_frames(path):
    e = example(path)
    expected = ord(e["kind"]), int(e["seq"]), bytes.fromhex(e["body"])
    assert wire.decode(bytes.fromhex(e["frame"])) == expected
    assert wire.encode(*expected).hex() == e["frame"] + "00"


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem.startswith("bad")], ids=lambda p: p.stem)
def test_bad_frames_are_refused(path):
    with pytest.raises(wire.WireError):
        wire.decode(bytes.fromhex(example(path)["frame"]))


def test_examples_are_all_there():
    assert len(EXAMPLES) == 30


@pytest.mark.usefixtures("integers")
def test_micropython_decodes_and_encodes_the_same():
    lines = [example(p) for p in EXAMPLES]
    done = run_script("golden.py", stdin="".join(e["frame"] + "\n" for e in lines))
    assert done.returncode == 0, done.stderr
    for path, e, answer in zip(EXAMPLES, lines, done.stdout.splitlines(), strict=True):
        expected = f"{e['kind']} {e['seq']} {e['body']} True" if "kind" in e else "bad"
        assert answer == expected, path.stem


@pytest.mark.usefixtures("integers")
def test_micropython_agrees_on_random_frames():
    """COBS edge lengths and random bytes, sound and damaged, through wire.py and link.py on the interpreter."""
    import random

    dice = random.Random(4)
    lines, expected = [], []
    for n in [*range(0, 12), 244, 245, 246, 247, 500, 600, *(dice.randrange(600) for _ in range(120))]:
        body = bytes(dice.choice((0, 1, dice.randrange(256))) if dice.random() < 0.3 else 7 for _ in range(n))
        kind, seq = dice.choice(b"HSEPLACN"), dice.randrange(1 << 32)
        frame = wire.encode(kind, seq, body)[:-1]
        lines.append(frame.hex())
        expected.append(f"{chr(kind)} {seq} {body.hex()} True")
        at = dice.randrange(len(frame))
        lines.append((frame[:at] + bytes([frame[at] ^ 1 << dice.randrange(8)]) + frame[at + 1 :]).hex())
        expected.append("bad")
    done = run_script("golden.py", stdin="\n".join(lines) + "\n")
    assert done.stdout.splitlines() == expected


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=700))
def test_cobs_round_trip(data):
    stuffed = wire.cobs_encode(data)
    assert 0 not in stuffed
    assert len(stuffed) <= len(data) + len(data) // 254 + 1
    assert wire.cobs_decode(stuffed) == data


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_anything_else_than_a_frame_is_a_wire_error(data):
    """A CRC of 32 bits that is right by chance has not been seen by anyone."""
    with pytest.raises(wire.WireError):
        wire.decode(data)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 255), st.integers(0, 2**32 - 1), st.binary(max_size=300))
def test_any_frame_comes_back(kind, seq, body):
    assert wire.decode(wire.encode(kind, seq, body)[:-1]) == (kind, seq, body)


@given(st.binary(max_size=4))
def test_a_right_crc_does_not_make_a_frame_of_less_than_a_head(payload):
    with pytest.raises(wire.WireError, match="too short"):
        wire.decode(wire.cobs_encode(payload + struct.pack("<I", wire.crc32(payload))))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.data())
def test_any_single_damaged_byte_is_refused(body, data):
    frame = wire.encode(wire.LOG, 5, body)[:-1]
    at = data.draw(st.integers(0, len(frame) - 1))
    how = data.draw(st.sampled_from(("change", "lose", "double")))
    if how == "change":
        other = data.draw(st.integers(1, 255).filter(lambda b: b != frame[at]))
        damaged = frame[:at] + bytes([other]) + frame[at + 1 :]
    elif how == "lose":
        damaged = frame[:at] + frame[at + 1 :]
    else:
        damaged = frame[: at + 1] + frame[at:]
    with pytest.raises(wire.WireError):
        wire.decode(damaged)


def test_longest_frames_fit():
    full = struct.pack(wire.SAMPLES_HEAD, 0, 0, 50, 0, 0, 0) + bytes(wire.SAMPLE_BYTES * wire.MAX_SAMPLES)
    assert len(wire.encode(wire.SAMPLES, 0, full)) <= wire.MAX_FRAME
    assert struct.calcsize(wire.SAMPLES_HEAD) == 19
    assert struct.calcsize(wire.ENERGY_BODY) == 28
