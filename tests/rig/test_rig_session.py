"""A reading waits for the board's time, not for the host's."""

import struct
from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.base.errors import RigError
from ssdrig.meter import wire
from ssdrig.meter.pico import session as rig_session
from ssdrig.meter.pico.session import LATE_S, SILENT_S, Memory, Session
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import rigbin


class SlowBoard:
    """A host's clock that runs ten times as fast as the board's, as on a machine that has no time for the board.
    Rail 0 sends a sample with each pong until `rail_until_s`, the board until `until_s`, both in board time."""

    def __init__(self, monkeypatch, rail_until_s=1e9, until_s=1e9):
        self.host_s = self.board_s = 100.0
        self.began_s = self.host_s
        self.rail_until_s, self.until_s = 100.0 + rail_until_s, 100.0 + until_s
        self.stamps = []
        self.memory = Memory()
        self.session = Session(SimpleNamespace(live=dict), self.memory, {}, lambda text: None)
        self.session.powers = lambda rails: {0: SimpleNamespace(t_ns=np.array(self.stamps, np.int64))}
        self.session._cut = lambda number, power, begin_ns, end_ns: (power, begin_ns, end_ns)
        now = SimpleNamespace(monotonic=self.now_s, monotonic_ns=lambda: int(self.now_s() * 1e9), sleep=self.sleep)
        monkeypatch.setattr(rig_session, "time", now)

    def now_s(self):
        return self.host_s

    def sleep(self, seconds):
        self.host_s += seconds
        self.board_s += seconds / 10
        t_us = int(self.board_s * 1e6)
        if self.board_s < min(self.rail_until_s, self.until_s):
            head = struct.pack(wire.SAMPLES_HEAD, 0, 0, 1, 0, 0, t_us)
            self.record(wire.SAMPLES, head + bytes(wire.SAMPLE_BYTES))
            self.stamps.append(t_us * 1000)
        if self.board_s < self.until_s:
            self.record(wire.PONG, struct.pack(wire.PONG_BODY, 0, t_us, 0))

    def record(self, kind, body):
        self.memory.record(rigbin.FRAME, struct.pack(wire.HEAD, kind, 0) + body, 0)


def test_late_samples_are_waited_for(monkeypatch):
    board = SlowBoard(monkeypatch)
    power, begin_ns, end_ns = board.session.readings([0], 1.0)[0]
    assert (begin_ns, end_ns) == (100_000_000_000, 101_000_000_000) and power.t_ns[-1] >= end_ns
    assert board.host_s - board.began_s == pytest.approx(10, abs=0.5)


@pytest.mark.parametrize("rail_until_s", [0.0, 0.5])
def test_a_rail_that_sends_nothing_is_an_error_after_so_much_of_the_boards_time(monkeypatch, rail_until_s):
    board = SlowBoard(monkeypatch, rail_until_s)
    with pytest.raises(RigError, match="samples of rail 0 up to now; seen none for 3.0 s of the board's time"):
        board.session.readings([0], 1.0)
    assert board.board_s - 100 - rail_until_s == pytest.approx(LATE_S, abs=0.1)


def test_a_board_that_falls_silent_is_an_error(monkeypatch):
    board = SlowBoard(monkeypatch, until_s=0.5)
    with pytest.raises(RigError, match="a board that answers; seen nothing from it for 10 s"):
        board.session.readings([0], 1.0)
    assert board.host_s - board.began_s == pytest.approx(5 + SILENT_S, abs=0.5)


def waited(monkeypatch, step_us):
    """Rounds that a Rig waits, 0.5 s promised, for the 8th; each brings a pong, the board's clock `step_us` later. No
    news ends a wait, so each takes its whole time, of a host's clock that only it moves."""
    rig, rounds, now_s = Rig("none", Memory()), [], [100.0]
    monkeypatch.setattr("ssdrig.meter.pico.stream.time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(rig._news, "wait", lambda timeout_s: now_s.append(now_s.pop() + timeout_s))
    rig._account(wire.PONG, 0, struct.pack(wire.PONG_BODY, 0, 1_000_000, 0))

    def reached():
        rounds.append(1)
        rig._account(wire.PONG, len(rounds), struct.pack(wire.PONG_BODY, 0, 1_000_000 + step_us * len(rounds), 0))
        return len(rounds) == 8

    try:
        rig._until(reached, 0.5, "an answer")
    except RigError:
        return len(rounds), "given up"
    return len(rounds), "reached"


def test_an_answer_is_waited_for_in_the_boards_time(monkeypatch):
    assert waited(monkeypatch, 20_000) == (8, "reached")
    assert waited(monkeypatch, 200_000) == (3, "given up")
    assert waited(monkeypatch, -1) == (3, "given up"), "the board was reset"


def test_a_board_with_a_backlog_is_waited_for_while_it_answers_what_came_before(monkeypatch):
    """On a busy machine a board was 6 s behind, at its full speed: its greeting came after the 5 s of a question."""
    rig, now_s = Rig("none", Memory()), [100.0]
    monkeypatch.setattr("ssdrig.meter.pico.stream.time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def over(after_s, token):
        now_s[0] = 100.0 + after_s
        rig._account(wire.PONG, 0, struct.pack(wire.PONG_BODY, token, int(now_s[0] * 1e6), 0))
        return rig._over(100.0, 100_000_000, 5.0)

    rig._fence = 9
    assert not over(0, 6) and not over(5.5, 7)
    assert over(50.5, 8), "bounded"
    assert not over(6, 9) and not over(10.9, 60) and over(11.1, 61)
    rig._fence = 70
    assert not over(17, 69) and over(17.1, 71), "its own pong was lost"


def test_a_board_that_is_behind_may_be_silent_for_as_long_as_it_is_behind(monkeypatch):
    """On a machine at load 20 a campaign of cuts ended with "the scope to start within 5 s": no pong for 6 s."""
    rig, now_s = Rig("none", Memory()), [100.0]
    monkeypatch.setattr("ssdrig.meter.pico.stream.time", SimpleNamespace(monotonic=lambda: now_s[0]))
    rig._token = rig._fence = 70

    def over(token, after_s):
        now_s[0] = 100.0
        rig._account(wire.PONG, 0, struct.pack(wire.PONG_BODY, token, 100_000_000, 0))
        now_s[0] += after_s
        return rig._over(100.0, 100_000_000, 5.0)

    assert not over(69, 4.9) and over(69, 5.2)
    assert not over(40, 7.9) and over(40, 8.1), "30 pings behind: 3 s"


def test_a_board_that_begins_anew_counts_from_there(monkeypatch):
    board = SlowBoard(monkeypatch)
    for kind, t_us in ((wire.SAMPLES, 900), (wire.PONG, 1000), (wire.PONG, 100), (wire.PONG, 500)):
        head = struct.pack(wire.SAMPLES_HEAD, 0, 0, 1, 0, 0, t_us)
        board.record(kind, head if kind == wire.SAMPLES else struct.pack(wire.PONG_BODY, 0, t_us, 0))
    assert board.session.quiet_s(0, 0) == pytest.approx(400e-6)
