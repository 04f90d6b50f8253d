"""The board behind the rig: its prompt stays in reach, it carries this clone's firmware, and a host survives its
reset."""

import hashlib
import time

import pytest

from ssdrig.meter import samples, wire
from ssdrig.meter.pico.stream import Rig
from ssdrig.rig import flash
from ssdrig.runs import journal


def test_the_prompt_is_in_reach_and_the_firmware_is_this_clone_s(port, hello, back):
    """What `rig flash` and mpremote do: the program is interrupted, asked, started again."""
    try:
        board = flash.look(port)
        flash.check(board)
        wanted = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in flash.FIRMWARE.glob("*.py")}
        differ = sorted(name for name in wanted if board["files"].get(name) != wanted[name])
        assert differ == [], "files on the board are not those of this clone: run ./ssdrig rig flash"
        assert board["machine"] == hello["board"]
    finally:
        flash.start(port)
        again = back()
    assert again["boot"] != hello["boot"] and again["serial"] == hello["serial"]


def test_quit_ends_at_the_prompt(line, port, back):
    line.send(wire.QUIT)
    line.until(lambda: b">>> " in line.rest, 10)
    line.write(b"\x04")  # soft reset: main.py runs again
    back()


def test_a_run_goes_on_after_the_board_was_reset(port, tmp_path, reset_board):
    """The board is reset, and goes from USB for a moment, while a host streams: it is greeted and started again, and
    what was lost is known."""
    book = journal.create(tmp_path, {"run": "hil"})
    rig = Rig(port, book)
    try:
        rig.start()
        time.sleep(1.0)
        reset_board(wait=False)
        deadline = time.monotonic() + 30
        while rig.live()["boots"] < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert rig.live()["boots"] == 2, "the board did not come back within 30 s"
        before = rig.live()["samples"]
        while rig.live()["samples"] < before + 500 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert rig.live()["state"] == "streaming"
    finally:
        rig.stop()
        book.close("complete")
    for power in samples.load_rails(book.path):
        assert len(power.boots) == 2 and power.counts["resets"] == 1
        dark_s = float(power.gap_ns.max()) * 1e-9
        assert (
            power.lost * power.facts["conversion_ns"] * 1e-9 == pytest.approx(dark_s, rel=0.02, abs=0.1)
            and 0 < dark_s < 30
        )
