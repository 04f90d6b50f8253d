"""Records into raw tables: whatever a line does to the stream, what comes out is what was sent, or is counted as
lost."""

import struct

import numpy as np
import pytest
import stream
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ssdrig.meter import wire
from ssdrig.meter.frames import Decoder
from ssdrig.runs import rigbin, rigrecords


def decoded(tape_or_rows, pieces=1):
    rows = getattr(tape_or_rows, "rows", tape_or_rows)
    decoder = Decoder()
    for part in np.array_split(np.arange(len(rows)), pieces):
        decoder.feed(rigrecords.decode(b"".join(rigbin.encode(*rows[i]) for i in part)))
    return decoder


sample = st.tuples(st.integers(0, 65535), st.integers(0, 2**20 - 1), st.integers(-(2**19), 2**19 - 1))


@given(
    st.lists(st.lists(sample, min_size=1, max_size=wire.MAX_SAMPLES), min_size=1, max_size=6),
    st.integers(0, 2**50),
    st.integers(1, 5),
)
@settings(max_examples=40, deadline=None)
def test_every_raw_integer_comes_back(frames, t0_us, pieces):
    tape, index, want = stream.started(), 0, {"t_us": [], "vbus": [], "current": []}
    at = t0_us
    for frame in frames:
        dt, vbus, current = (np.array(v) for v in zip(*frame))
        dt[0] = 0
        t_us = at + np.cumsum(dt)
        tape.frame(wire.SAMPLES, stream.samples(index, t_us, vbus.tolist(), current.tolist(), missed=index))
        index, at = index + len(frame), int(t_us[-1]) + 1000
        for name, value in (("t_us", t_us), ("vbus", vbus), ("current", current)):
            want[name] += value.tolist()
    frames_ = decoded(tape, pieces).frames(0)
    assert {name: getattr(frames_, name).tolist() for name in want} == want
    assert frames_.n.tolist() == [len(f) for f in frames]
    assert frames_.missed.tolist() == frames_.index.tolist() == np.cumsum([0] + [len(f) for f in frames])[:-1].tolist()


def test_energy_frames_come_back():
    tape = stream.started()
    body = struct.pack(
        wire.ENERGY_BODY,
        2,
        5,
        77,
        1 << 40,
        (0xABCDEF0123).to_bytes(5, "little"),
        (2**40 - 3).to_bytes(5, "little"),
        -300,
        0xC001,
    )
    tape.frame(wire.ENERGY, body)
    row = decoded(tape).energies()[0]
    assert row.tolist() == (0, 2, 5, 77, 1 << 40, 0xABCDEF0123, -3, -300, 0xC001)


def test_rails_are_kept_apart():
    tape = stream.started(rails=(0, 1))
    tape.stream(2, current=10)
    tape.stream(1, rail=1, current=20)
    decoder = decoded(tape)
    assert decoder.rails() == [0, 1]
    assert (decoder.frames(0).current == 10).all() and len(decoder.frames(0).current) == 100
    assert (decoder.frames(1).current == 20).all() and len(decoder.frames(1).current) == 50
    assert len(decoder.frames(7).current) == 0


@pytest.mark.parametrize("pieces", [1, 3, 40])
def test_pongs_find_their_pings_in_either_order(pieces):
    tape = stream.started()
    tape.stream(10)
    rows = list(tape.rows)
    for i in range(len(rows) - 1):  # the ping's record may come right behind the pong's
        if rows[i][0] == rigbin.PING and i % 4 == 0:
            rows[i], rows[i + 1] = rows[i + 1], rows[i]
    pings = decoded(rows, pieces).boots[0].pings
    ticks = stream.TICK0_US + 50_000 * np.arange(1, 11)
    assert [p[1] for p in pings] == ticks.tolist()
    assert all(p[2] - p[0] == 200_000 for p in pings)


def test_pongs_without_ping_are_no_pings():
    tape = stream.started()
    tape.frame(wire.PONG, struct.pack(wire.PONG_BODY, 99, stream.TICK0_US, 0))
    tape.t_us += 5_000_000
    tape.stream(3)
    assert len(decoded(tape).boots[0].pings) == 3


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("again", [[(5, 6)], [(5, 6), (5, 7)], [(3, 20)], [(0, 4)]])
def test_repeated_frames_are_dropped_and_counted(again, pieces):
    """Frames from..to come a second time right behind."""
    tape = stream.started()
    tape.stream(15)
    frames = [i for i, row in enumerate(tape.rows) if row[0] == rigbin.FRAME]
    rows = list(tape.rows)
    repeated = 0
    for a, z in again:
        rows[frames[z - 1] + 1 : frames[z - 1] + 1] = [tape.rows[i] for i in frames[a:z]]
        repeated += z - a
    want, got = decoded(tape), decoded(rows, pieces)
    assert got.frames(0).t_us.tolist() == want.frames(0).t_us.tolist()
    assert len(got.boots) == 1
    assert (got.counts["repeated"], got.counts["resets"], got.counts["frames_lost"]) == (repeated, 0, 0)


@pytest.mark.parametrize("pieces", [1, 9])
def test_lost_frames_are_counted_by_sequence_number(pieces):
    tape = stream.started()
    tape.stream(20, lose=(3, 4, 11))
    decoder = decoded(tape, pieces)
    assert decoder.counts["frames_lost"] == 3
    assert len(decoder.frames(0).n) == 17


@pytest.mark.parametrize("pieces", [1, 9])
def test_each_frame_of_a_gap_counts(pieces):
    """Samples and pongs alike, five in a row."""
    tape = stream.started()
    tape.stream(3)
    for _ in range(5):
        tape.frame(wire.LOG, b"", lost=True)
    tape.stream(3, first_index=150)
    assert decoded(tape, pieces).counts["frames_lost"] == 5


@pytest.mark.parametrize("pieces", [1, 9])
@pytest.mark.parametrize("lost", [0, 1, 3])
def test_frames_lost_right_behind_a_reset_count(lost, pieces):
    """A boot counts its frames from 0, so the first one that arrives says how many did not."""
    tape = stream.started(boot=11)
    tape.stream(200)
    tape.reset(dark_us=500_000)
    for _ in range(lost):
        tape.frame(wire.LOG, b"", lost=True)
    tape.frame(wire.HELLO, stream.hello(boot=22))
    tape.stream(3)
    counts = decoded(tape, pieces).counts
    assert (counts["resets"], counts["frames_lost"]) == (1, lost)


@pytest.mark.parametrize("pieces", [1, 2, 31])
@pytest.mark.parametrize("frames_before", [2, 200])
def test_a_reset_begins_a_new_boot_named_by_its_hello(frames_before, pieces):
    tape = stream.started(boot=11)
    tape.stream(frames_before)
    tape.reset(dark_us=500_000)
    tape.ping()  # answered by the new boot before it is asked who it is
    tape.frame(wire.HELLO, stream.hello(boot=22))
    tape.stream(3)
    decoder = decoded(tape, pieces)
    last = decoder.boots[-1]
    assert decoder.boots[0].boot == 11 and last.boot == 22
    assert decoder.frames(0).boot.tolist() == [0] * frames_before + [len(decoder.boots) - 1] * 3
    if frames_before == 200:
        assert len(decoder.boots[0].pings) == 200 and len(last.pings) == 4


def test_a_hello_of_another_boot_is_a_reset_even_if_nothing_fell_back():
    tape = stream.started(boot=11)
    tape.stream(1)
    tape.frame(wire.HELLO, stream.hello(boot=22))
    tape.stream(1)
    assert decoded(tape).frames(0).boot.tolist() == [0, 1]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xff", b"[]", b"{}", b'{"boot": 3, "protocol": 1}', b'{"boot": 3, "protocol": 1, "rails": [{}]}'],
)
def test_a_hello_that_is_none_is_counted_and_changes_nothing(body):
    tape = stream.started(boot=11)
    tape.frame(wire.HELLO, body)
    tape.stream(1)
    decoder = decoded(tape)
    assert decoder.counts["malformed"] == 1
    assert decoder.boots[-1].boot == 11 and decoder.frames(0).boot.tolist() == [0]


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 1, 1, 2, 3, 4, 200]), st.binary(max_size=80), st.integers(0, 2**62)), max_size=30
    ),
    st.integers(0, 30),
)
@example([(1, bytes(7 + n), 0) for n in range(3)], 3)  # too short to say how many samples it holds
@settings(max_examples=200, deadline=None)
def test_nothing_a_board_may_send_raises(rows, at):
    """Valid records with any content, kinds, lengths and numbers no board would send, before and after a stretch of
    sound ones."""
    tape = stream.started()
    tape.stream(2)
    rows = [(kind, (bytes([b"HSEPL"[len(p) % 5]]) + p) if kind == 1 else p, t) for kind, p, t in rows]
    decoder = decoded(rows[:at] + tape.rows + rows[at:])
    assert decoder.counts["frames"] <= len(rows) + len(tape.rows)
    assert 0 in decoder.rails() and (decoder.frames(0).n == 50).sum() == 2
    for rail in decoder.rails():
        frames = decoder.frames(rail)
        assert frames.n.sum() == len(frames.t_us)


def test_a_samples_frame_of_the_wrong_length_is_malformed():
    tape = stream.started()
    tape.stream(1)
    tape.frame(wire.SAMPLES, stream.samples(50, np.array([3_000_000, 3_001_000]), [1, 1], [1, 1])[:-1])
    decoder = decoded(tape)
    assert decoder.counts["malformed"] == 1 and decoder.frames(0).n.tolist() == [50]
