"""Another board appears on the port of a run: none of its samples is taken, and nothing is sent to it but questions."""

import json

import pytest
import stream
from rig_board import FakeBoard, book  # noqa: F401  fixture
from simboard import until

from ssdrig.base.errors import RigError
from ssdrig.meter import samples, wire
from ssdrig.meter.pico import stream as rig_module
from ssdrig.meter.pico.board import differs
from ssdrig.meter.pico.line import Line
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal

QUESTIONS = {wire.ASK_HELLO, wire.PING}


class Serial(FakeBoard):
    """A board with this serial (None: it has none)."""

    def __init__(self, serial, **more):
        super().__init__()
        self.of_hello = {"serial": serial, **more}

    def obey(self, kind, seq, body):
        if kind == wire.ASK_HELLO:
            self.heard.append(kind)
            hello = json.loads(stream.hello(boot=self.boot, configs=(self.config,)))
            self.say(wire.HELLO, json.dumps(hello | self.of_hello).encode())
        else:
            super().obey(kind, seq, body)


def exchanged(book, tmp_path, monkeypatch, first, second, streams=True):
    """The rig after `second` took the port of `first`."""
    monkeypatch.setattr(rig_module, "REOPEN_S", 0.1)
    link = tmp_path / "port"
    link.symlink_to(first.port)
    rig = Rig(str(link), book)
    first.start()
    second.boot, second.streaming = 2, streams
    second.start()
    rig.start()
    until(lambda: rig.live()["samples"] > 100)
    first.end()
    link.unlink()
    link.symlink_to(second.port)
    return rig


@pytest.mark.keeps_time
@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"serial": "A"}, {"serial": "B"}),
        ({"serial": "A"}, {"serial": None}),
        ({"serial": None}, {"serial": None, "build": "other"}),
    ],
)
def test_another_board_on_the_port_is_refused(book, tmp_path, monkeypatch, ours, theirs, streams):
    first, second = Serial(**ours), Serial(**theirs)
    rig = exchanged(book, tmp_path, monkeypatch, first, second, streams)
    try:
        until(lambda: rig.failure is not None)
        with pytest.raises(RigError, match="the board of this run"):
            rig.live()
        with pytest.raises(RigError, match="the board of this run"):
            rig.ask(wire.ARM, b"{}", (wire.ARMED,), 1.0, "the rig to arm")
    finally:
        rig.stop()
        second.end()
    assert set(second.heard) <= QUESTIONS
    assert len(samples.load(book.path).boots) == 1
    assert sum(event["kind"] == "rig.hello" for event in journal.events(book.path)) == 1


@pytest.mark.keeps_time
def test_the_same_board_after_a_hub_reset_goes_on(book, tmp_path, monkeypatch):
    first, second = Serial("A"), Serial("A")
    rig = exchanged(book, tmp_path, monkeypatch, first, second)
    try:
        until(lambda: rig.live()["boots"] == 2 and rig.live()["state"] == "streaming")
    finally:
        rig.stop()
        second.end()
    assert len(samples.load(book.path).boots) == 2


@pytest.mark.keeps_time
def test_a_resumed_run_refuses_another_board_before_any_command(book):
    board = Serial("B")
    board.start()
    rig = Rig(board.port, book)
    rig.expect(json.loads(stream.hello()) | {"serial": "A"})
    try:
        with pytest.raises(RigError, match="the board of this run"):
            rig.start()
    finally:
        board.end()
    assert set(board.heard) <= QUESTIONS


def frames(rig, *messages):
    rig._arrived(b"".join(wire.encode(*message) for message in messages), 1)


@pytest.mark.parametrize("case", range(20))
def test_a_board_exchanged_mid_run_is_noticed(book, case, monkeypatch):
    """In one piece of bytes or in several, with samples before its greeting or behind it."""
    sent = []
    monkeypatch.setattr(Line, "send", lambda self, kind, body=b"": sent.append(kind) or 1)
    rig = Rig("none", book)
    hello = lambda serial, boot: json.dumps(json.loads(stream.hello(boot=boot)) | {"serial": serial}).encode()
    tape = lambda at: stream.samples(at, [1000 * at + 1000], [25_600], [25_600])
    frames(rig, (wire.HELLO, 100, hello("A", 1)), *((wire.SAMPLES, 101 + n, tape(n)) for n in range(5)))
    ours = book.count() if hasattr(book, "count") else len(journal.records(book.path))
    other = [(wire.SAMPLES, n, tape(n)) for n in range(case % 5)]
    other.append((wire.HELLO, case % 5, hello("B", 1 + case % 2)))
    other += [(wire.SAMPLES, case % 5 + 1 + n, tape(n)) for n in range(3)]
    for order in [other] if case < 10 else [[one] for one in other]:
        frames(rig, *order)
    assert isinstance(rig.failure, RigError)
    assert len(journal.records(book.path)) == ours
    with pytest.raises(RigError):
        rig.ask(wire.ARM, b"{}", (wire.ARMED,), 1.0, "the rig to arm")
    assert wire.ARM not in sent


def test_boards_are_told_apart_by_serial_first():
    hello = json.loads(stream.hello())
    assert differs(hello | {"serial": "A"}, hello | {"serial": "A", "build": "new"}) == ""
    assert differs(hello | {"serial": "A"}, hello) and differs(hello, hello | {"serial": "A"})
    assert differs(hello, hello) == "" and differs(hello, json.loads(stream.hello(rails=(0, 1))))
