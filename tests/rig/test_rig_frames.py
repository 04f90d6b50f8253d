"""What comes from the rig: frames, damage, answers, the board's time, live power."""

import json
import random
import struct
import time

import numpy as np
import pytest
import stream
from hypothesis import given, settings
from hypothesis import strategies as st
from rig_board import board, book, rig  # noqa: F401  fixtures

from ssdrig.base.errors import RigError
from ssdrig.meter import wire
from ssdrig.meter.pico import line
from ssdrig.meter.pico.stream import Rig, patience_s, recent_s
from ssdrig.meter.power import mean_power_W
from ssdrig.runs import journal, rigbin

pytestmark = pytest.mark.keeps_time


def test_no_bytes_raise_and_all_damage_is_kept(book):
    @given(st.lists(st.one_of(st.binary(max_size=300), st.just(b"\x00"), st.just(b"\x01" * 3000)), max_size=20))
    @settings(max_examples=60, deadline=None)
    def check(pieces):
        begin = journal.records(book.path).next_offset
        rig = Rig("none", book)
        for k, piece in enumerate(pieces):
            rig._arrived(piece, k)
        assert len(rig._line.rest) <= wire.MAX_FRAME
        rig._arrived(b"\x00" + wire.encode(wire.LOG, 5, b"hello"), 99)
        records = journal.records(book.path, begin)
        assert records.payload(len(records) - 1) == struct.pack(wire.HEAD, wire.LOG, 5) + b"hello"
        assert (records.length[records.kind == rigbin.DAMAGE] <= line.DAMAGE_KEPT).all()
        assert rig.live()["damaged"] >= np.count_nonzero(records.kind == rigbin.DAMAGE)
        sent = [part for part in b"".join(pieces).split(b"\x00") if part]
        assert len(records) > len(sent) - 1  # each stretch is kept, as a frame or as damage

    check()


def test_whole_frames_with_any_body_do_not_raise(book):
    @given(
        st.sampled_from([wire.HELLO, wire.SAMPLES, wire.ENERGY, wire.PONG, wire.LOG, 0, 255]), st.binary(max_size=60)
    )
    @settings(max_examples=100, deadline=None)
    def check(kind, body):
        begin = journal.records(book.path).next_offset
        Rig("none", book)._arrived(wire.encode(kind, 0, body), 1)
        assert journal.records(book.path, begin).payload(0) == struct.pack(wire.HEAD, kind, 0) + body

    check()


@pytest.mark.parametrize("pieces", [1, 7, 64])
def test_frames_cut_anywhere_arrive_whole_with_the_time_of_the_completing_read(tmp_path, pieces):
    dice = random.Random(pieces)
    bodies = [dice.randbytes(dice.randrange(400)) for _ in range(50)]
    data = b"".join(wire.encode(wire.LOG, k, body) for k, body in enumerate(bodies))
    ends = np.cumsum([len(wire.encode(wire.LOG, k, body)) for k, body in enumerate(bodies)])
    cuts = sorted({0, len(data), *(dice.randrange(len(data)) for _ in range(pieces))})
    book = journal.create(tmp_path, {"run": "run"})
    rig = Rig("none", book)
    for k, (a, z) in enumerate(zip(cuts, cuts[1:])):
        rig._arrived(data[a:z], 1000 + k)
    records = journal.records(book.path)
    book.close("complete")
    assert [records.payload(i)[5:] for i in range(len(records))] == bodies
    assert (records.t_ns == 999 + np.searchsorted(cuts, ends)).all()


def hearing(book, *sayings):
    """A Rig without a port. sayings: for each command sent, [(kind, body)] that the board says on hearing it; an
    integer for the body of the answer to the ping: the board's time."""
    rig, seq, script = Rig("none", book), iter(range(100)), iter(sayings)

    def send(kind, body=b""):
        for answer, text in next(script, []):
            text = body + struct.pack("<QI", text, 0) if isinstance(text, int) else text
            rig._arrived(wire.encode(answer, next(seq), text), 1)
        return 1

    rig._line.send = send
    return rig


def armed(token):
    return wire.ARMED, struct.pack(wire.ARMED_BODY, token, 10_000)


def test_a_late_answer_is_not_taken_for_that_of_the_next_question(book):
    """The first question's answer comes after its time: behind the second one's ping, before its pong."""
    rig = hearing(book, [], [], [armed(1), (wire.PONG, 1)], [armed(2)])
    with pytest.raises(RigError, match="within 0 s"):
        rig.ask(wire.ARM, b"", (wire.ARMED,), 0, "the rig to arm")
    assert rig.ask(wire.ARM, b"", (wire.ARMED,), 5, "the rig to arm") == armed(2)
    assert rig.heard(wire.ARMED) == [armed(2)[1]]


def test_a_board_that_was_reset_owes_no_pong(book):
    rig = hearing(book, [(wire.HELLO, stream.hello(boot=1)), (wire.PONG, 1)], [armed(1)])
    assert rig.ask(wire.ARM, b"", (wire.ARMED,), 5, "the rig to arm") == armed(1)
    rig = hearing(book, [(wire.HELLO, stream.hello(boot=2))], [armed(2)])
    assert rig.ask(wire.ARM, b"", (wire.ARMED,), 5, "the rig to arm") == armed(2)


def test_a_board_that_was_reset_in_the_midst_of_a_question_is_not_waited_for(book):
    """Firmware that was killed while a cut was to be reported was waited for as long as the cut might have taken."""
    rig = hearing(book, [(wire.HELLO, stream.hello(boot=2))], [(wire.LOG, b"hello")])
    rig._greeted(json.loads(stream.hello(boot=1)), 0.0)
    with pytest.raises(RigError, match="the rig to arm; seen a board that was reset meanwhile"):
        rig.ask(wire.ARM, b"", (wire.ARMED,), 60, "the rig to arm")
    assert rig.hello()["boot"] == 2


def test_the_boards_time_is_waited_for_and_not_the_hosts(book):
    rig = hearing(book, [(wire.PONG, 5000)], [(wire.PONG, 5999)], [], [(wire.PONG, 6001)])
    assert rig.await_us(4000) == 5000
    with pytest.raises(RigError, match="whose time passes"):
        rig.await_us(6000, timeout_s=0)
    with pytest.raises(RigError, match="whose time passes"):
        rig.await_us(0, timeout_s=0)  # no pong: what it said before is not its time of now
    assert rig.await_us(6000) == 6001


def test_an_answer_that_never_comes_from_a_port_that_has_gone_says_so(book, monkeypatch):
    rig = Rig("none", book)
    rig._arrived(wire.encode(wire.HELLO, 0, stream.hello(boot=1)), 1)
    monkeypatch.setattr(Rig, "_over", lambda *_: True)
    for why, seen in (("", "0 samples; do:"), ("port none gone: hung up", "0 samples; port none gone: hung up; do:")):
        rig._lost_why = why
        with pytest.raises(RigError, match=f"a greeting of boot 1, 0 pongs, {seen}"):
            rig._until(lambda: False, 1, "a report")


def test_mean_power_needs_a_known_configuration():
    body = stream.samples(0, np.array([1000, 2000]), [25_600, 25_600], [25_600, -51_200])
    hello = json.loads(stream.hello())
    assert mean_power_W(body, hello) == pytest.approx(-0.5)
    assert mean_power_W(body, None) is None
    assert mean_power_W(stream.samples(0, np.array([1]), [1], [1], config=2), hello) is None


def test_a_source_may_be_silent_for_as_long_as_its_readings_are_apart_and_late():
    board = json.loads(stream.hello())
    assert patience_s(board, 5.0) == patience_s(None, 5.0) == 5.0
    slow = {"rails": [{"conversion_ns": 10**9}, {"conversion_ns": 10**6}], "stamp_ns": 2 * 10**9}
    assert patience_s(slow, 5.0) == 30.0 and patience_s(slow, 60.0) == 60.0
    assert (recent_s(board), recent_s(slow)) == (1.0, 4.0)


def test_a_reading_a_second_is_power_in_every_second(book):
    rig = Rig("none", book)
    rails = stream.hello(conversion_ns=10**9)
    rig._arrived(wire.encode(wire.HELLO, 0, rails), time.monotonic_ns())
    body = stream.samples(0, np.array([1000]), [25_600], [25_600])
    rig._arrived(wire.encode(wire.SAMPLES, 1, body), time.monotonic_ns())
    rig._recent[0] = (time.monotonic() - 1.9, body)
    assert rig.last_second().power_W() == pytest.approx(1.0)


def test_live_power_is_the_sum_of_all_rails_and_unknown_without_one(book):
    rig, seq = Rig("none", book), iter(range(100))
    two = stream.hello(rails=(0, 1))

    def arrives(kind, body):
        rig._arrived(wire.encode(kind, next(seq), body), time.monotonic_ns())

    arrives(wire.HELLO, two)
    arrives(wire.SAMPLES, stream.samples(0, np.array([1000, 2000]), [25_600] * 2, [25_600] * 2))
    recent = rig.last_second()
    assert recent.rails_W() == {0: pytest.approx(1.0), 1: None} and recent.power_W() is None
    arrives(wire.SAMPLES, stream.samples(0, np.array([1000, 1740]), [61_440] * 2, [12_800] * 2, rail=1))
    arrives(wire.SAMPLES, stream.samples(2, np.array([3000, 4000]), [25_600] * 2, [76_800] * 2))
    assert [rail["rail"] for rail in rig.silent_rails()] == []
    rig._heard_at[1] -= 20
    assert [rail["rail"] for rail in rig.silent_rails()] == [1] and rig.silent_s() == 0.0
    rig._wanted = True
    assert rig.silent_s() == pytest.approx(20, abs=1)  # of the one that is silent for longest
    recent = rig.last_second()
    assert recent.rails_W() == {0: pytest.approx(2.0), 1: pytest.approx(1.2)}
    assert recent.power_W() == pytest.approx(3.2)
