"""Repeats, resets, patience and nonsense in a stream of frames: each limit from both sides."""

import json
import struct

import numpy as np
import pytest
import stream
from test_frames import decoded

from ssdrig.meter import wire
from ssdrig.meter.frames import KINDS, Decoder
from ssdrig.runs import rigbin, rigrecords

S = 10**9


def row(kind: int, seq: int, body: bytes = b"", t_ns: int = stream.T0_NS):
    return rigbin.FRAME, struct.pack(wire.HEAD, kind, seq) + body, t_ns


def sampled(seq: int, t_us: int) -> tuple:
    return row(wire.SAMPLES, seq, stream.samples(seq, np.array([t_us]), [1], [1]))


def counts(rows, pieces=1) -> tuple[int, int, int]:
    counts_ = decoded(rows, pieces).counts
    return counts_["repeated"], counts_["resets"], counts_["frames_lost"]


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize(
    ("back", "expected"),
    [
        (63, (1, 0, 0)),  # the frame 63 before it, as it was
        (64, (1, 0, 0)),
        (65, (0, 1, 35)),  # too far back to be a repeat: sequence number 35 of a new boot, the first 35 are lost
    ],
)
def test_how_far_back_a_repeat_is_looked_for(back, expected, pieces):
    rows = [row(wire.LOG, seq) for seq in range(100)]
    rows.append(rows[len(rows) - back])
    assert counts(rows, pieces) == expected


@pytest.mark.parametrize(("back", "expected"), [(64, (1, 0, 0)), (65, (0, 1, 35))])
def test_how_far_back_it_is_looked_for_in_an_earlier_piece(back, expected):
    """The repeated one is the last of the first piece; so many frames follow it in the second."""
    rows = [row(wire.LOG, seq) for seq in range(100)]
    decoder = Decoder()
    for piece in (rows[: 101 - back], [*rows[101 - back :], rows[100 - back]]):
        decoder.feed(rigrecords.decode(b"".join(rigbin.encode(*r) for r in piece)))
    assert tuple(decoder.counts[name] for name in ("repeated", "resets", "frames_lost")) == expected


def test_frames_lost_behind_number_0_in_an_earlier_piece_count():
    decoder = Decoder()
    for seq in (0, 3):
        decoder.feed(rigrecords.decode(rigbin.encode(*row(wire.LOG, seq))))
    assert decoder.counts["frames_lost"] == 2


@pytest.mark.parametrize(("fell", "resets"), [(63, 0), (64, 1)])
def test_a_sequence_number_that_falls_far_is_a_reset(fell, resets):
    rows = [row(wire.LOG, seq, b"%d" % seq) for seq in range(101)] + [row(wire.LOG, 100 - fell, b"other")]
    assert counts(rows)[1] == resets


@pytest.mark.parametrize(("fell_us", "resets"), [(1_000_000, 0), (1_000_001, 1)])
def test_board_time_that_falls_by_more_than_a_second_is_a_reset(fell_us, resets):
    rows = [sampled(5, 9_000_000), sampled(6, 9_000_000 - fell_us), sampled(7, 9_500_000)]
    decoder = decoded(rows)
    assert (decoder.counts["resets"], decoder.counts["frames_lost"]) == (resets, 6 * resets)
    assert decoder.frames(0).boot.tolist() == [0, resets, resets]


@pytest.mark.parametrize(("t_us", "read"), [(0, True), ((1 << 52) - 1, True), (1 << 52, False), (1 << 63, False)])
def test_ticks_of_another_age_are_nonsense(t_us, read):
    decoder = decoded([sampled(5, t_us)])
    assert (len(decoder.frames(0).n), decoder.counts["malformed"]) == (int(read), int(not read))
    pong = row(wire.PONG, 1, struct.pack(wire.PONG_BODY, 7, t_us, 0))
    decoder = decoded([(rigbin.PING, struct.pack("<I", 7), stream.T0_NS), pong])
    assert len(decoder.boots[0].pings) == int(read)


def test_board_time_0_is_a_reset_too():
    assert decoded([sampled(5, 9_000_000), sampled(6, 0)]).counts["resets"] == 1


def test_a_stream_may_begin_anywhere():
    assert counts([row(wire.LOG, seq) for seq in (7, 8, 10)]) == (0, 0, 1)
    assert counts([row(wire.LOG, 0), row(wire.LOG, 1)]) == (0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_that_are_known(kind):
    decoder = decoded([row(kind, 1, stream.hello() if kind == wire.HELLO else b"")])
    assert decoder.counts["malformed"] == (kind in (wire.SAMPLES, wire.ENERGY)) and decoder.counts["frames"] == 1


def test_another_kind_and_a_frame_without_body_are_malformed():
    decoder = decoded([row(ord("z"), 1), row(wire.ENERGY, 2, bytes(3)), row(wire.ENERGY, 3, bytes(60))])
    assert decoder.counts["malformed"] == 3 and len(decoder.energies()) == 0


def test_an_empty_samples_frame_holds_nothing_and_is_no_damage():
    body = stream.samples(0, np.array([1_000_000]), [1], [1])[: -wire.SAMPLE_BYTES]
    body = body[:2] + b"\0" + body[3:]
    decoder = decoded([row(wire.SAMPLES, 1, body)])
    assert decoder.rails() == [] and decoder.counts["malformed"] == 0


def test_records_that_are_no_frames():
    records = [(rigbin.PING, bytes(3), 1), (rigbin.PING, bytes(5), 1), (rigbin.FRAME, bytes(4), 1)]
    decoder = decoded([*records, (rigbin.DAMAGE, b"x", 2), (rigbin.DAMAGE, b"", 3)])
    assert decoder.counts == dict.fromkeys(decoder.counts, 0) | {"damaged": 2}


def pong(seq: int, token: int, t_ns: int, held: bytes = b"") -> tuple:
    return row(wire.PONG, seq, struct.pack("<IQ", token, 2_000_000) + held, t_ns)


@pytest.mark.parametrize(("late_ns", "paired"), [(S - 1, True), (S, False)])
def test_a_pong_waits_a_second_for_its_ping(late_ns, paired):
    decoder = Decoder()
    for rows in ([pong(1, 7, 100 * S)], [(rigbin.DAMAGE, b"", 100 * S + late_ns)]):
        decoder.feed(rigrecords.decode(b"".join(rigbin.encode(*r) for r in rows)))
    decoder.feed(rigrecords.decode(rigbin.encode(rigbin.PING, struct.pack("<I", 7), 99 * S)))
    assert decoder.boots[0].pings.tolist() == ([[99 * S, 2_000_000, 100 * S, 0]] if paired else [])


@pytest.mark.parametrize(("sent_ns", "paired"), [(5 * S, True), (5 * S + 1, False)])
def test_an_answer_is_not_read_before_it_was_asked_for(sent_ns, paired):
    decoder = decoded([(rigbin.PING, struct.pack("<I", 7), sent_ns), pong(1, 7, 5 * S)])
    assert len(decoder.boots[0].pings) == paired


def test_how_long_a_ping_was_held():
    ping = (rigbin.PING, struct.pack("<I", 7), S)
    for held, us in ((b"", 0), (struct.pack("<I", 300), 300)):
        assert decoded([ping, pong(1, 7, 5 * S, held)]).boots[0].pings.tolist() == [[S, 2_000_000, 5 * S, us]]


@pytest.mark.parametrize(("more", "forgotten"), [(9_999, False), (10_000, True)])
def test_pings_without_an_answer_are_forgotten_after_a_minute(more, forgotten):
    pings = [(rigbin.PING, struct.pack("<I", i), S if i == 0 else 61 * S) for i in range(more + 1)]
    decoder = decoded(pings)
    later = [pong(1, 0, 62 * S), pong(2, more, 62 * S), (rigbin.DAMAGE, b"", 64 * S)]
    decoder.feed(rigrecords.decode(b"".join(rigbin.encode(*r) for r in later)))
    assert [p[0] for p in decoder.boots[0].pings] == ([] if forgotten else [S]) + [61 * S]


def hello(**more) -> bytes:
    hello_ = json.loads(stream.hello(rails=(0, 1)))
    hello_["rails"][1] |= more
    return json.dumps(hello_).encode()


@pytest.mark.parametrize("key", ["vbus_lsb_nV", "current_lsb_pA", "conversion_ns"])
@pytest.mark.parametrize(("value", "rails"), [(0, 1), (-1, 1), (1e-9, 2)])
def test_a_rail_whose_scale_is_none_is_left_out(key, value, rails):
    assert len(decoded([row(wire.HELLO, 0, hello(**{key: value}))]).boots[0].rails) == rails


@pytest.mark.parametrize(("protocol", "read"), [(0, False), (1, True), (2, False), (None, False)])
def test_protocols_that_are_read(protocol, read):
    decoder = decoded(
        [row(wire.HELLO, 4, stream.hello(boot=9, protocol=protocol)), row(wire.HELLO, 5, stream.hello(9))]
    )
    assert decoder.boots[0].boot == 9 and decoder.boots[0].hello_frame == (0 if read else 1)


@pytest.mark.parametrize(
    ("names", "shown"),
    [(("5V", "12V"), ("5V", "12V")), (("5V", "5V"), ("5V 0", "5V 1")), (("", "5V"), ("rail 0", "5V"))],
)
def test_names_of_rails(names, shown):
    hello_ = json.loads(stream.hello(rails=(0, 1)))
    for rail, name in zip(hello_["rails"], names, strict=True):
        rail["name"] = name
    assert decoded([row(wire.HELLO, 0, json.dumps(hello_).encode())]).rail_names() == dict(enumerate(shown))


def test_frames_of_several_lengths_and_many_at_once():
    """More than 20 000 frames of one length are decoded in parts."""
    sizes = [1, 2] * 3
    rows, at = [], 0
    for seq, n in enumerate(sizes):
        t_us = 1_000_000 + 1000 * np.arange(at, at + n)
        rows.append(
            row(wire.SAMPLES, seq, stream.samples(at, t_us, range(at, at + n), [-i for i in range(at, at + n)]))
        )
        at += n
    frames_ = decoded(rows).frames(0)
    assert frames_.vbus.tolist() == [-i for i in frames_.current.tolist()] == list(range(9))
    assert frames_.t_us.tolist() == [1_000_000 + 1000 * i for i in range(9)]
    chosen = frames_.only(np.array([False, True, False, True, False, False]))
    assert chosen.vbus.tolist() == [1, 2, 4, 5] and chosen.n.tolist() == [2, 2] and chosen.index.tolist() == [1, 4]


@pytest.mark.parametrize(
    ("kind", "payload", "paired"),
    [(rigbin.PING, b"abcd", True), (rigbin.PING, b"abcde", False), (rigbin.DAMAGE, b"abcd", False)],
)
def test_a_ping_is_its_token_and_nothing_else(kind, payload, paired):
    pong = row(wire.PONG, 1, b"abcd" + struct.pack(wire.PONG_BODY, 0, 9, 0)[4:], stream.T0_NS + 5)
    decoder = decoded([(kind, payload, stream.T0_NS), pong])
    assert bool(len(decoder.boots[0].pings)) == paired


def test_a_rail_without_samples_has_empty_tables():
    empty = Decoder().frames(3)
    assert {len(getattr(empty, name)) for name in vars(empty)} == {0}
