"""`ssdrig wear` on a terminal: the screen's words and bars."""

import copy
import json

import pytest
from wear_documents import NVME, no_table_of_the_user, read, run, watched  # noqa: F401  fixtures

from ssdrig.base import terminal
from ssdrig.drive.wear import screen as wear_screen


def test_the_screen(tmp_path, capsys, monkeypatch):
    """80 columns, without colour into a pipe; with it on a terminal, but for NO_COLOR."""
    monkeypatch.setenv("COLUMNS", "80")
    watched(tmp_path / "watch", 20)
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(NVME))
    words = ("--smartctl", str(path), "--history", str(tmp_path / "watch"), "--start", "2025-01-01")
    _, out, _ = run(capsys, *words)
    assert max(len(line) for line in out.splitlines()) <= 80 and "\x1b" not in out
    assert "TBW             █████████···········   43 %  256 of 600 TB (warranty ends there)" in out
    assert "warranty time   ████················   20 %  to 2030-01-01, 4.0 years left" in out
    flat = " ".join(out.split())
    assert (
        "Life left at this workload: 5.7 months, until the rated TBW, before the warranty's years end in 4.0 years."
        " Workload: 60.9 TB/month; 21 polls over 20 days." in flat
    )
    assert "not known: - NAND bytes written" in flat and "Without power at most 20 days since the first reading" in flat
    document = json.loads(run(capsys, *words, "--json")[1])
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = wear_screen.screen(document, 80, True)
    assert "\x1b[32m" in coloured
    bare = coloured
    for code in (*terminal.COLOURS.values(), "\x1b[0m"):
        bare = bare.replace(code, "")
    assert bare == wear_screen.screen(document, 80, False) == out[:-1]


@pytest.mark.parametrize("width", [50, 60, 72, 80, 100])
def test_it_fits_its_terminal(read, width):
    _, got = read(NVME, "--start", "2025-01-01")
    lines = wear_screen.screen(got, width, False).splitlines()
    assert max(map(len, lines)) <= width
    assert "(warranty ends there)" in " ".join(" ".join(lines).split())
    bars = [sum(line.count(sign) for sign in "█·") for line in lines if "·" in line or "█" in line]
    assert len(set(bars)) == 1 and wear_screen.LEAST_BAR <= bars[0] <= wear_screen.BAR


@pytest.mark.parametrize("width", range(40, 101, 3))
def test_an_option_is_not_broken_at_its_hyphens(read, width):
    _, got = read(NVME)
    assert "--start YYYY-MM-DD" in " ".join(wear_screen.screen(got, width, False).split())


def test_the_screen_says_what_is_over(read):
    document = copy.deepcopy(NVME)
    document["nvme_smart_health_information_log"] |= {
        "percentage_used": 130,
        "data_units_written": 1_200_000_000,
        "available_spare": 8,
    }
    document["smart_status"]["passed"] = False
    document["smartctl"]["exit_status"] = 8
    document["nvme_smart_health_information_log"]["critical_warning"] = 1
    _, got = read(document, "--start", "2019-01-01", "--rate", "1GB/day")
    text = " ".join(wear_screen.screen(got, 80, False).split())
    assert (
        "HEALTH FAILING" in text
        and "The rated TBW has been reached" in text
        and "No retention bound: 130 % of the rated endurance is used" in text
    )
    assert got["retention"]["state"] == "void"
    assert "\x1b[31m" + "█" * wear_screen.BAR in wear_screen.screen(got, 80, True)


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    path = tmp_path / "saved.json"
    odd = "X\x1b[2J\x1b]0;title\x07\nhealth ok\u202e\x9b"
    messages = {"exit_status": 2, "messages": [{"string": odd}]}
    path.write_text(json.dumps(NVME | {"model_name": odd, "serial_number": odd, "smartctl": messages}))
    _, out, err = run(capsys, "--smartctl", str(path))
    assert all(c.isprintable() or c == "\n" for c in out + err) and "\\x1b[2J" in out and "X\n" not in out
    assert json.loads(run(capsys, "--json", "--smartctl", str(path))[1])["model"] == odd  # the figure itself is kept


def test_what_is_reached_is_said_without_a_rate(tmp_path, capsys):
    path = tmp_path / "saved.json"
    saved = copy.deepcopy(NVME)
    saved["nvme_smart_health_information_log"] |= {"percentage_used": 107, "data_units_written": 2**127}
    path.write_text(json.dumps(saved))
    out = " ".join(run(capsys, "--smartctl", str(path))[1].split())
    assert '100 % in the drive\'s own "percentage used": reached.' in out


def test_the_explanation_is_given_when_asked_for(tmp_path, capsys):
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(NVME))
    short, long = run(capsys, "--smartctl", str(path))[1], run(capsys, "--explain", "--smartctl", str(path))[1]
    assert "not a promise" not in short and short.count("JESD218") == 1 and "not a promise" in " ".join(long.split())
