"""The host end of the rig against a fake board on a pseudo-terminal, and against the SIMULATED one."""

import json
import os
import pty
import random
import select
import struct
import threading
import time
import tty

import numpy as np
import pytest
import stream
from hypothesis import given, settings
from hypothesis import strategies as st
from simboard import until

from ssdrig import journal, rigbin, wire
from ssdrig.benchmarks import clock as clock_bench
from ssdrig.errors import JournalError, RigError
from ssdrig.meter import samples
from ssdrig.meter.power import mean_power_W
from ssdrig.rig import line
from ssdrig.rig import stream as rig_module
from ssdrig.rig.stream import Rig

pytestmark = pytest.mark.keeps_time


class FakeBoard(threading.Thread):
    """Speaks the board's side of wire.py, 1000 samples/s of 1 W. Its vices are attributes, set at any time."""

    def __init__(self):
        super().__init__(daemon=True)
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.port = os.ttyname(slave)
        self.slave = slave  # held open, so that the port can be closed and opened again
        self.boot, self.protocol, self.config = 1, wire.PROTOCOL, 0
        self.mute = self.deaf = self.dry = self.no_pongs = False  # says nothing; hears nothing; streams nothing
        self.text = b""  # said over and over
        self.heard: list[int] = []
        self.ending = threading.Event()
        self.restart()

    def restart(self, boot=None):
        self.boot = boot or self.boot
        self.seq, self.index, self.streaming = 0, 0, False
        self.born = self.sent_until = time.monotonic()

    def now_us(self):
        return int((time.monotonic() - self.born) * 1e6)

    def say(self, kind, body):
        if not self.mute:
            os.write(self.master, wire.encode(kind, self.seq, body))
        self.seq += 1

    def run(self):
        rest, chatted = b"", 0.0
        while not self.ending.is_set():
            if select.select([self.master], [], [], 0.005)[0]:
                try:
                    *parts, rest = (rest + os.read(self.master, 4096)).split(b"\x00")
                except OSError:
                    return
                for part in filter(None, [] if self.deaf else parts):
                    self.obey(*wire.decode(part))
            if self.text and time.monotonic() > chatted + 0.05:
                chatted = time.monotonic()
                os.write(self.master, self.text)
            while self.streaming and time.monotonic() - self.sent_until >= 0.02:
                t_us = int((self.sent_until - self.born) * 1e6) + 1000 * np.arange(1, 21)
                self.sent_until += 0.02
                if not self.dry:
                    self.say(
                        wire.SAMPLES, stream.samples(self.index, t_us, [25_600] * 20, [25_600] * 20, config=self.config)
                    )
                self.index += 20

    def obey(self, kind, seq, body):
        self.heard.append(kind)
        if kind == wire.ASK_HELLO:
            self.say(wire.HELLO, stream.hello(boot=self.boot, protocol=self.protocol, configs=(self.config,)))
        elif kind == wire.PING and not self.no_pongs:
            self.say(wire.PONG, body + struct.pack("<QI", self.now_us(), 0))
        elif kind == wire.GO:
            self.streaming, self.index, self.sent_until = True, 0, time.monotonic()
        elif kind == wire.STOP:
            self.streaming = False

    def end(self):
        self.ending.set()
        self.join()
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                pass  # the test hung up


@pytest.fixture
def board():
    board = FakeBoard()
    board.start()
    yield board
    board.end()


@pytest.fixture
def book(tmp_path):
    book = journal.create(tmp_path, {"run": "run"})
    yield book
    book.close("failed", "test over", 1)


@pytest.fixture
def rig(board, book):
    rig = Rig(board.port, book)
    yield rig
    rig.stop()


def kinds(book):
    return [e["kind"] for e in journal.events(book.path)]


def test_start_stream_stop(rig, board, book):
    hello = rig.start()
    assert hello["boot"] == 1 and kinds(book) == ["rig.hello"]
    assert journal.events(book.path)[0]["hello"] == hello
    until(lambda: rig.live()["samples"] >= 500)
    assert rig.last_second().power_W() == pytest.approx(1.0) and rig.lost() == 0 and rig.silent_s() < 5
    rig.stop()
    assert not board.streaming and board.heard[-1] != wire.GO
    p = samples.load(book.path)
    assert (p.P == 1.0).all() and len(p.t_ns) == p.index[-1] + 1 >= 500
    assert p.lost == 0 and p.counts["frames_lost"] == p.counts["damaged"] == 0
    true_ns = p.t_us * 1000 + int(board.born * 1e9)
    assert (np.abs(p.t_ns - true_ns) <= p.err_ns + 2000).all()
    rig.stop()  # twice is once
    records = journal.records(book.path)
    ports = [json.loads(records.payload(i))["state"] for i in np.flatnonzero(records.kind == rigbin.PORT)]
    assert ports == ["open", "closed"]


def test_before_start_there_is_nothing_to_show(rig):
    assert rig.last_second().power_W() is None and rig.silent_s() == 0.0 and rig.lost() == 0
    assert rig.live()["state"] == "stopped"
    rig.stop()


def test_a_port_that_is_none(book):
    with pytest.raises(RigError, match="serial port /dev/nonsense"):
        Rig("/dev/nonsense", book).start()


def test_a_file_is_no_port(book, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RigError, match="serial port"):
        Rig(str(tmp_path / "file"), book).start()


def test_a_port_in_use(rig, board, book):
    rig.start()
    with pytest.raises(RigError, match="serial port"):
        Rig(board.port, book).start()
    before = rig.live()["samples"]
    until(lambda: rig.live()["samples"] > before)  # the first one goes on


def test_another_protocol_is_refused_naming_both(rig, board):
    board.protocol = 7
    with pytest.raises(RigError, match=f"protocol {wire.PROTOCOL}; seen protocol 7"):
        rig.start()
    assert wire.GO not in board.heard


def test_a_silent_board(rig, board):
    board.mute = True
    with pytest.raises(RigError, match="answers within 0.7 s.*seen nothing"):
        rig.start(timeout_s=0.7)
    assert rig._threads == [] and not rig._line.is_open


def test_something_else_on_the_port(rig, board):
    board.mute = True
    board.text = b"MicroPython v1.26.0 on 2026-01-01; Raspberry Pi Pico\r\n>>> "
    with pytest.raises(RigError, match="no frames, such as .*>>>"):
        rig.start(timeout_s=0.7)


def test_a_board_without_samples(rig, board, monkeypatch):
    monkeypatch.setattr(rig_module, "FIRST_SAMPLE_S", 0.5)
    board.dry = True
    with pytest.raises(RigError, match="sends samples.*a greeting of boot 1"):
        rig.start()


def test_a_board_that_answers_no_pings(rig, board):
    board.no_pongs = True
    with pytest.raises(RigError, match="answers pings"):
        rig.start(timeout_s=0.7)


def test_a_reset_board_is_greeted_and_started_again(rig, board, book):
    rig.start()
    until(lambda: rig.live()["samples"] > 200)
    board.restart(boot=2)
    until(lambda: rig.live()["boots"] == 2)
    before = rig.live()["samples"]
    until(lambda: rig.live()["samples"] > before + 200)
    rig.stop()
    assert [e["hello"]["boot"] for e in journal.events(book.path)] == [1, 2]
    p = samples.load(book.path)
    assert [p.boots[b].boot for b in p.segment_boot] == [1, 2] and (p.P == 1.0).all()
    assert p.counts["resets"] >= 1


def test_silence_is_said_once_and_its_end_too(rig, board, book, monkeypatch):
    monkeypatch.setattr(rig_module, "SILENT_S", 0.4)
    rig.start()
    board.mute = True
    until(lambda: "rig.lost" in kinds(book))
    time.sleep(0.6)
    assert rig.live()["state"] == "lost" and rig.silent_s() > 0.4
    board.mute = False
    until(lambda: rig.live()["state"] == "streaming")
    assert kinds(book) == ["rig.hello", "rig.lost", "rig.hello"]
    rig.stop()
    p = samples.load(book.path)
    assert p.lost >= 400 and len(p.segment) == 1  # it went on streaming meanwhile: the same `go`
    assert p.lost + len(p.t_ns) == p.index[-1] + 1


def test_a_board_that_forgot_to_stream_is_started_again(rig, board, book, monkeypatch):
    monkeypatch.setattr(rig_module, "SILENT_S", 0.4)
    rig.start()
    until(lambda: rig.live()["samples"] > 100)
    board.streaming = False
    until(lambda: board.streaming)
    before = rig.live()["samples"]
    until(lambda: rig.live()["samples"] > before)
    assert kinds(book) == ["rig.hello", "rig.lost", "rig.hello"]


def test_an_unknown_configuration_is_asked_about(rig, board, book):
    rig.start()
    until(lambda: rig.live()["samples"] > 100)
    asked = board.heard.count(wire.ASK_HELLO)
    board.config = 3
    until(lambda: board.heard.count(wire.ASK_HELLO) > asked)
    until(lambda: rig._hello["rails"][0]["config"] == 3)
    rig.stop()
    p = samples.load(book.path)
    assert p.counts["unconverted"] == 0 and p.lost == 0 and len(p.segment) == 2


def test_a_port_that_goes_is_an_event_and_is_opened_again(book, tmp_path, monkeypatch):
    monkeypatch.setattr(rig_module, "REOPEN_S", 0.1)
    first, second = FakeBoard(), FakeBoard()
    link = tmp_path / "port"
    link.symlink_to(first.port)
    rig = Rig(str(link), book)
    try:
        first.start()
        second.boot = 2
        second.start()
        rig.start()
        until(lambda: rig.live()["samples"] > 100)
        first.end()
        until(lambda: "rig.lost" in kinds(book))
        assert rig.live()["state"] == "lost"
        link.unlink()
        link.symlink_to(second.port)
        until(lambda: rig.live()["boots"] == 2 and rig.live()["state"] == "streaming")
        before = rig.live()["samples"]
        until(lambda: rig.live()["samples"] > before + 100)
    finally:
        rig.stop()
        first.end()
        second.end()
    assert kinds(book) == ["rig.hello", "rig.lost", "rig.hello"]
    assert "gone" in journal.events(book.path)[1]["why"]
    p = samples.load(book.path)
    assert [p.boots[b].boot for b in p.segment_boot] == [1, 2]


def test_a_full_disk_is_raised_where_someone_listens(rig, board, book, monkeypatch):
    rig.start()
    real = journal.Journal._append

    def full(self, name, data):
        if name == "rig.bin":
            raise JournalError("room", "No space left on device", "make room")
        return real(self, name, data)

    monkeypatch.setattr(journal.Journal, "_append", full)
    with pytest.raises(JournalError, match="No space left"):
        until(lambda: rig.live() is None)
    rig.stop()  # and the end is clean all the same
    assert rig._threads == []


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
    found = journal.records(book.path)
    book.close("complete")
    assert [found.payload(i)[5:] for i in range(len(found))] == bodies
    assert (found.t_ns == 999 + np.searchsorted(cuts, ends)).all()


def hearing(book, *sayings):
    """A Rig without a port. sayings: for each command sent, [(kind, body)] that the board says on hearing it; an
    integer for the body of the answer to the ping: the board's time."""
    rig, seq, said = Rig("none", book), iter(range(100)), iter(sayings)

    def send(kind, body=b""):
        for answer, text in next(said, []):
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


def test_the_boards_time_is_waited_for_and_not_the_hosts(book):
    rig = hearing(book, [(wire.PONG, 5000)], [(wire.PONG, 5999)], [], [(wire.PONG, 6001)])
    assert rig.await_us(4000) == 5000
    with pytest.raises(RigError, match="whose time passes"):
        rig.await_us(6000, timeout_s=0)
    with pytest.raises(RigError, match="whose time passes"):
        rig.await_us(0, timeout_s=0)  # no pong: what it said before is not its time of now
    assert rig.await_us(6000) == 6001


def test_mean_power_needs_a_known_configuration():
    body = stream.samples(0, np.array([1000, 2000]), [25_600, 25_600], [25_600, -51_200])
    hello = json.loads(stream.hello())
    assert mean_power_W(body, hello) == pytest.approx(-0.5)
    assert mean_power_W(body, None) is None
    assert mean_power_W(stream.samples(0, np.array([1]), [1], [1], config=2), hello) is None


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


def test_the_simulated_board_end_to_end(micropython):
    """Real firmware in the real interpreter, noise and faults off: 2 W come out as 2 W, on time, closed, nothing
    lost."""
    exact = {"ppm": 80, "noise": 0, "offset_uV": 0, "gain_ppm": 0, "vbus_gain_ppm": 0}
    with clock_bench.measured(4, exact, watts=2.0) as (run, truth, live):
        p = samples.load(run)
        assert p.P.mean() == pytest.approx(2.0, rel=1e-3)
        assert p.lost == 0 and p.counts["frames_lost"] == 0 and len(p.t_ns) == p.index[-1] + 1 == live["samples"]
        assert (np.abs(clock_bench.time_errors_ns(p, truth)) <= p.err_ns).all()
        assert abs(p.closure.corrected_percent) < 0.05
        rate_known_ppm = 1e6 * 2e-9 * float(p.err_ns.max()) / p.closure.seconds  # both ends of the stretch may be off
        assert p.closure.chip_clock_ppm == pytest.approx(5000, abs=rate_known_ppm)
        rows = [s for _, s in samples.Follower(run).seconds(final=True)]
        assert sum(s.samples for s in rows) == len(p.t_ns)
        assert sum(s.energy_J for s in rows) == pytest.approx(p.energy_measured_J, rel=1e-4)
