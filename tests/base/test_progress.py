import fcntl
import os
import struct
import termios

import pytest

from ssdrig.base.progress import Part, Progress, fitted, sparkline


def test_sparkline_is_logarithmic_and_shows_zero_as_a_hole():
    assert sparkline([10, 100, 1000]) == "▁▅█"
    assert sparkline([5, 0, 5]) == "▁ ▁"
    assert sparkline([0, 0]) == "  "
    assert len(sparkline(list(range(1, 100)), width=10)) == 10


def test_in_a_log_one_line_each_ten_seconds(capsys):
    p = Progress()
    for i in range(5):
        p.show(f"second {i}")
    p.say("done")
    assert capsys.readouterr().err.splitlines() == ["second 0", "done"]


def test_quiet_says_nothing(capsys):
    p = Progress(quiet=True)
    p.show("x")
    p.say("y")
    assert capsys.readouterr().err == ""


PARTS = [
    Part("rounds 3/5…25"),
    Part("17/56", 2),
    Part("point read=65 block=16KiB", 6),
    Part("  41%", 1),
    Part("▁" * 16 + "▂▃▄▅▆▇█▇", 9, 8),
    Part("   38,214 IOPS", 1),
    Part(" 4.15 W", 3),
    Part("range 12 % of 20 %, slope 3 % of 10 %, 1 of 3 steady", 4),
    Part("wrote 1.20 TB of 5.00 TB", 5),
    Part("ETA 2:10:00…18:40:00"),
]


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (60, "rounds 3/5…25    41%     38,214 IOPS  ETA 2:10:00…18:40:00"),
        (80, "rounds 3/5…25  17/56    41%     38,214 IOPS   4.15 W  ETA 2:10:00…18:40:00"),
        (20, "rounds 3/5…25"),
        (10, "rounds 3…"),
    ],
)
def test_a_narrow_terminal_gets_what_matters_most(columns, line):
    assert fitted(PARTS, columns) == line
    assert len(line) < columns


def test_no_line_fills_the_terminal_and_a_wide_one_gets_all():
    lines = [fitted(PARTS, columns) for columns in range(1, 260)]
    assert all(len(line) < columns or not line for columns, line in enumerate(lines, 1))
    assert lines[-1] == "  ".join(part.text for part in PARTS)
    bars = len("  ".join(part.text for part in PARTS)) + 1
    assert "▁" * 16 not in fitted(PARTS, bars - 1) and "▂▃▄▅▆▇█▇" in fitted(PARTS, bars - 16)  # the newest are kept


def on_terminal(monkeypatch, term, what) -> str:
    """What a terminal of 40 columns behind stderr is sent, while stdout is none."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with open(theirs, "w") as stream, monkeypatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        patch.setenv("TERM", term)
        patch.setattr("sys.stderr", stream)
        Progress().show(what)
        sent = os.read(ours, 4096).decode()
    os.close(ours)
    return sent


def test_the_width_is_that_of_stderrs_terminal_whatever_stdout_is(monkeypatch):
    assert on_terminal(monkeypatch, "xterm", PARTS) == "\r\x1b[K" + fitted(PARTS, 40)


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    assert on_terminal(monkeypatch, "dumb", "x") == "x\r\n"


def test_a_log_gets_all_parts_and_no_control_character(capsys):
    Progress().show([Part("load"), Part("", 1), Part("\x1b[2J 5 IOPS", 9)])
    assert capsys.readouterr().err == "load  \\x1b[2J 5 IOPS\n"


@pytest.mark.parametrize("live", [True, False])
def test_a_line_that_stays_hangs_in_a_terminal_and_is_whole_in_a_log(capsys, monkeypatch, live):
    monkeypatch.setenv("COLUMNS", "60")
    p = Progress()
    p.live = live
    text = "one: fresh, 0–9 s: lat_p50_us, lat_p99_us: fio left no histogram of lat for these seconds"
    p.say(text)
    lines = capsys.readouterr().err.removeprefix("\r\x1b[K").splitlines()
    assert " ".join(lines).split() == text.split() and len(lines) == (2 if live else 1)
    assert max(map(len, lines)) <= (60 if live else len(text))
