"""The host's side of the rig: start, loss and return of board and port."""

import json
import time

import numpy as np
import pytest
from rig_board import FakeBoard, board, book, rig  # noqa: F401  fixtures
from simboard import until

from selfcheck import clock as clock_bench
from ssdrig.base.errors import JournalError, RigError
from ssdrig.meter import samples, wire
from ssdrig.meter.pico import stream as rig_module
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal, rigbin

pytestmark = pytest.mark.keeps_time


def kinds(book):
    return [e["kind"] for e in journal.events(book.path)]


def test_start_stream_stop(rig, board, book):
    hello = rig.start()
    assert hello["boot"] == 1 and kinds(book) == ["rig.hello"]
    assert journal.events(book.path)[0]["hello"] == hello
    until(lambda: rig.live()["samples"] >= 500)
    assert rig.last_second().power_W() == pytest.approx(1.0) and rig.lost() == 0 and rig.silent_s() < 5
    rig.stop()
    until(lambda: not board.streaming)
    assert board.heard[-1] != wire.GO
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
    with pytest.raises(RigError, match="serial port.*another program has it"):
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
    rig.start()
    board.mute = True
    monkeypatch.setattr(rig_module, "SILENT_S", 0.4)
    until(lambda: "rig.lost" in kinds(book))
    time.sleep(0.6)
    assert rig.live()["state"] == "lost" and rig.silent_s() > 0.4
    monkeypatch.setattr(rig_module, "SILENT_S", 90)  # a machine that stands still makes no second silence
    board.deaf = True  # one that greets before its samples come is started again, a new `go`
    board.mute = False
    until(lambda: rig.live()["state"] == "streaming")
    board.deaf = False
    assert kinds(book) == ["rig.hello", "rig.lost", "rig.hello"]
    rig.stop()
    p = samples.load(book.path)
    assert p.lost >= 400 and len(p.segment) == 1  # it went on streaming meanwhile: the same `go`
    assert p.lost + len(p.t_ns) == p.index[-1] + 1


def test_a_board_that_forgot_to_stream_is_started_again(rig, board, book, monkeypatch):
    rig.start()
    until(lambda: rig.live()["samples"] > 100)
    board.streaming = False
    monkeypatch.setattr(rig_module, "SILENT_S", 0.4)
    until(lambda: "rig.lost" in kinds(book))
    monkeypatch.setattr(rig_module, "SILENT_S", 90)  # a machine that stands still makes no second silence
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
        whole = [s.energy_J for s in rows[1:-1]]  # by whatever clock, a second of 2 W is 2 J
        assert len(whole) >= 2 and whole == pytest.approx([2.0] * len(whole), rel=1e-4)
        # the clock is fitted anew for each second: an edge is moved by at most the errors before and after
        moved_s = 2e-9 * (sum(s.t_err_ns for s in rows) + float(p.err_ns.max()))
        assert sum(s.energy_J for s in rows) == pytest.approx(p.energy_measured_J, abs=2.0 * moved_s)
