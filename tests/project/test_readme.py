"""README.md is short, comes in the order of what a reader asks, and shows what ssdrig prints. What the pages name is in
test_docs.py."""

import re
from pathlib import Path

from ssdrig.cli import COMMANDS, main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
ACCURACY = (ROOT / "host" / "docs" / "how/accuracy.md").read_text()
RIG = (ROOT / "host" / "docs" / "use/rig.md").read_text()


def rows(text: str) -> list[list[str]]:
    """The cells of every table row."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_it_fits_on_two_screens():
    lines = README.splitlines()
    wide = [line for line in lines if len(line) > 120 and not line.startswith(("|", "!"))]
    assert len(lines) <= 120 and not wide


def test_it_answers_in_the_order_in_which_a_reader_asks():
    sections = re.findall(r"^## (.*)$", README, re.MULTILINE)
    assert [section.split(":")[0] for section in sections] == [
        "Questions it answers",
        "Try it",
        "Test a drive",
        "Check wear",
        "The rig",
        "How sure are the numbers",
        "Dangers",
        "Compared with",
        "More",
    ]
    assert README.index("**Status.**") < README.index("## ") and "not built yet" in README


def test_the_danger_stands_before_the_first_command_that_destroys():
    assert README.index("destroys all data") < README.index("--destroy-data")


def test_every_command_is_named():
    for name in COMMANDS:
        assert re.search(rf"(\./ssdrig |`){name}\b", README), name


def test_every_claim_is_the_one_of_the_accuracy_page():
    whole = [row[1:] for row in rows(ACCURACY)]
    claims = [row for row in rows(README) if "./ssdrig selfcheck" in row[-1]]
    assert len(claims) == 4
    for row in claims:
        assert row[1:] in whole


def test_the_sample_rates_are_those_of_the_rigs_page():
    seen = "\n".join(row[1] for row in rows(RIG) if row[0].startswith("INA2"))
    rates = [row for row in rows(README) if "INA2" in row[0]]
    assert len(rates) == 3
    for row in rates:
        for rate in re.findall(r"\d+(?: \d{3})*", row[1]):
            assert rate in seen, rate


def test_the_wear_screen_is_what_wear_prints(capsys, monkeypatch, tmp_path):
    """Line by line up to the ellipsis; what depends on today's date is left out."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    command, shown = re.search(r"    \$ \./ssdrig (wear [^\n]*)\n(.*?)    …", README, re.DOTALL).groups()
    assert main(command.split()) == 0
    printed = capsys.readouterr().out.splitlines()
    dated = re.compile(r"^(warranty time).*( to \d{4}-\d\d-\d\d), .*")
    for line, seen in zip(shown.splitlines(), printed):
        assert dated.sub(r"\1\2", line.removeprefix("    ")) == dated.sub(r"\1\2", seen)
    assert 7 <= len(shown.splitlines()) < len(printed)


def test_the_exit_codes_of_the_help_are_those_of_the_errors(capsys):
    from ssdrig.base.errors import exit_codes

    try:
        main(["--help"])
    except SystemExit:
        pass
    words = " ".join(capsys.readouterr().out.split())
    for code, (name, _) in exit_codes().items():
        assert f" {code} {name}" in words
