"""The set-up's steps: a log with all lines, few words on the terminal, an end on Ctrl-C."""

import os
import signal
import sys
import threading
import time

import pytest

from ssdrig.base import progress
from ssdrig.base.errors import ToolMissing
from ssdrig.setup import steps

PRINTS = [sys.executable, "-c", "import sys; print('one'); print('two', file=sys.stderr); sys.exit(int(sys.argv[1]))"]


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(steps, "LOG", tmp_path / "log")
    monkeypatch.setattr(steps, "STEPS", steps.Steps())
    return tmp_path / "log"


def test_what_a_step_prints_goes_to_the_log_alone(log, capfd):
    assert steps.run([*PRINTS, "0"], "printing")
    assert log.read_text().splitlines()[-2:] == ["one", "two"] or log.read_text().splitlines()[-2:] == ["two", "one"]
    assert capfd.readouterr() == ("", "ssdrig: printing\n")


def test_a_step_that_fails_names_the_log_and_shows_its_last_lines(log, capfd):
    with pytest.raises(ToolMissing) as raised:
        steps.run([*PRINTS, "7"], "printing")
    assert raised.value.seen == "exit code 7" and str(log) in raised.value.do
    assert "ssdrig:   one\n" in capfd.readouterr().err
    assert steps.run([*PRINTS, "7"], "printing", check=False) is False


def test_a_set_up_begins_its_log_once(log):
    log.write_text("of the set-up before\n")
    for _ in range(2):
        steps.begin()
        steps.run([*PRINTS, "0"], "printing")
    assert log.read_text().count("\none\n") == 2 and "before" not in log.read_text()


def test_the_log_follows_no_link(log, tmp_path):
    (tmp_path / "other").write_text("kept")
    log.symlink_to(tmp_path / "other")
    with pytest.raises(OSError):
        steps.begin()
    assert (tmp_path / "other").read_text() == "kept"


def test_a_terminal_has_one_line_with_a_bar(log, capfd, monkeypatch):
    monkeypatch.setattr(progress, "columns", lambda: 80)
    steps.STEPS.progress.live = True
    steps.STEPS.expect(4)
    steps.STEPS.done = 1
    steps.run([sys.executable, "-c", "import time; time.sleep(0.3)"], "sleeping")
    shown = capfd.readouterr().err
    assert "████············ 1 of 4  0:00  sleeping" in shown and "\n" not in shown


def test_without_a_terminal_a_long_set_up_reports_ever_less_often(log, capfd, monkeypatch):
    """Eleven minutes in six steps: a line a step and five between, so that a log of CI stays readable."""
    now_s = [0.0]
    monkeypatch.setattr(steps.time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_S", 0)
    monkeypatch.setattr(steps, "STEPS", steps.Steps())
    for number in range(6):
        with steps.STEPS.step(f"step {number}"):
            for _ in range(1100):
                now_s[0] += steps.POLL_S
                steps.STEPS.show()
    lines = capfd.readouterr().err.splitlines()
    reports = [line.split()[5] for line in lines if line.startswith("setting up:")]
    assert reports == ["0:30", "1:00", "2:00", "4:00", "8:00"]
    assert len(lines) == 6 + len(reports) <= 15


def test_ctrl_c_ends_the_program_and_the_step(log):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            steps.run([sys.executable, "-c", "import time; time.sleep(600)"], "sleeping")
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - begun < 30
