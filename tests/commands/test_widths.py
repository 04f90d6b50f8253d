"""Lists on a terminal: no line is longer than it is wide, and none is cut."""

import io
import json
import sys
from pathlib import Path

import pytest

from ssdrig import cli
from ssdrig.base.terminal import PrintableOut
from ssdrig.commands import runs
from ssdrig.plan import grammar
from ssdrig.reading.index import Run

FIGURES = {
    "iops_mean": 123456.0,
    "power_mean_W": 4.153,
    "energy_uJ_per_io": 142.1,
    "clat_p99_us": 1234.0,
    "wa": 3.4112,
    "wa_error": 0.0123,
    "window": "steady state, 1400–2000 s",
    "window_trust": {"host": "bad"},
    "trust": {"host": "bad", "steady": "ok"},
    "steady": {"passed": False, "drive_writes": 1.4, "past_spare": False},
    "why": None,
}
RUN = Run(
    "id",
    "a-run",
    "a-run",
    1_795_177_500_000_000_000,
    "power-states quick",
    "quick",
    "SIMULATED Samsung SSD 990 PRO with heatsink 2TB",
    "S6WSNJ0T900943T",
    25.0,
    True,
    True,
    "interrupted",
    None,
    "before the new firmware of November",
    ["review", "november", "firmware-4B2QGXA7"],
    1,
    FIGURES,
)


@pytest.fixture
def printed():
    """printed(columns, text): the lines that a terminal of that width gets."""

    def show(columns: int, text: str) -> list[str]:
        stream = io.StringIO()
        print(text, file=PrintableOut(stream, columns))
        return stream.getvalue().splitlines()

    return show


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_a_run_fits_its_terminal_and_loses_nothing(printed, columns):
    lines = runs.lines(Path("runs"), RUN)
    fitted = printed(columns, "\n".join(lines))
    assert max(map(len, fitted)) <= columns < max(map(len, lines))
    assert " ".join(fitted).split() == " ".join(lines).split()
    assert all(line.startswith(" " * 18) for line in fitted[1:])


@pytest.mark.parametrize(
    ("state", "of_review", "words"),
    [
        ("died", True, "./ssdrig review --resume '{root}/a review'"),
        ("died", False, "./ssdrig resume '{root}/a review/a-run'"),
        ("interrupted", True, ""),
        ("complete", False, ""),
    ],
)
def test_killed_run_is_shown_with_the_command_that_goes_on(tmp_path, state, of_review, words):
    (tmp_path / "a review").mkdir()
    if of_review:
        (tmp_path / "a review/review.json").write_text("{}")
    lines = runs.lines(tmp_path, RUN._replace(state=state, path="a review/a-run"))
    commands = [line.partition("go on with: ")[2] for line in lines if "go on with: " in line]
    assert commands == [words.format(root=tmp_path)] * bool(words)


@pytest.mark.parametrize("words", [["plans"], ["plans", "--virtual", "sata-tlc"]])
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_plans_fit_their_terminal(capsys, monkeypatch, words, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cli.main(words) == 0
    fitted = capsys.readouterr().out
    assert max(map(len, fitted.splitlines())) <= columns
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert cli.main(words) == 0
    assert fitted.split() == capsys.readouterr().out.split()


def test_files_and_json_are_printed_as_they_are(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert cli.main(["plans", "show", "consistency"]) == 0
    shown = capsys.readouterr().out
    assert shown == grammar.find("consistency")[0] and max(map(len, shown.splitlines())) > 60
    assert cli.main(["plans", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["plans"]) > 30


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("name  some words", ["name  some words"]),
        ("name  eight words go on and on here", ["name  eight words go on and on", "      here"]),
        ("no gap, only words that go on and on", ["no gap, only words that go on", "  and on"]),
        ("a very long name  and words that go on", ["a very long name  and words that", "  go on"]),
        ("  /a/path/that/has/no/blank/and/is/long", ["  /a/path/that/has/no/blank/and/is/long"]),
        ('{"a": 1, "b": "more than a line can hold"}', ['{"a": 1, "b": "more than a line can hold"}']),
        ("x\n\nname  eight words go on and on here", ["x", "", "name  eight words go on and on", "      here"]),
    ],
)
def test_a_line_hangs(printed, text, lines):
    assert printed(32, text) == lines


def test_the_rest_of_a_line_is_left_alone():
    stream = io.StringIO()
    out = PrintableOut(stream, 20)
    print("seen so far: ", end="", file=out)
    print("words that are too many", file=out)
    assert stream.getvalue() == "seen so far: words that are too many\n"
