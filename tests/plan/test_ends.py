"""What the tests' own boards do when the other end does not: a write has an end in time, and what was started ends."""

import os
import pty
import select
import time
import tty

import pytest
import simboard
from rig_board import FakeBoard

SLEEPS = "import time\n\n\ndef main(words):\n    print(end=%r, flush=True)\n    time.sleep(100)\n"


def test_a_write_to_a_board_that_does_not_read_ends():
    master, slave = pty.openpty()
    tty.setraw(slave)
    try:
        line = simboard.Line(slave)
        line.write(b"x" * 100, 5)
        assert os.read(master, 1000) == b"x" * 100
        began = time.monotonic()
        with pytest.raises(pytest.fail.Exception, match="bytes were not taken within 0.1 s"):
            line.write(b"x" * 100_000, 0.1)
        assert time.monotonic() - began < 60
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("says", ["", "{}\n"])
def test_a_board_that_does_not_start_is_ended(tmp_path, monkeypatch, says):
    program = "says_a_thing" if says else "says_nothing"
    (tmp_path / f"{program}.py").write_text(SLEEPS % says)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ['PYTHONPATH']}")
    monkeypatch.setattr(simboard, "CABLE", program)
    monkeypatch.setattr(simboard, "interpreter", lambda: ["micropython"])
    if not says:  # what a board does say a busy machine may bring late
        monkeypatch.setattr(simboard, "PATIENCE_S", 0.1)
    board = simboard.Board(tmp_path)
    with pytest.raises(KeyError if says else RuntimeError):
        board.__enter__()
    assert board.process.returncode is not None


def test_a_board_ends_though_nobody_reads_what_it_says():
    board = FakeBoard()
    board.text = b"x" * 100_000
    board.start()
    assert select.select([board.slave], [], [], 60)[0]
    board.end()
    assert not board.is_alive()
