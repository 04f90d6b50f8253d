"""README says what is."""

import re
from pathlib import Path

from ssdrig.benchmarks.__main__ import registry
from ssdrig.cli import COMMANDS
from ssdrig.report import terms

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_meaning_of_each_figure_is_the_reports():
    assert terms.markdown() in README, "put what ssdrig.report.terms.markdown() returns into README.md"


def test_every_command_is_named():
    for name in COMMANDS:
        assert f"./ssdrig {name}" in README, name


def test_every_bench_that_is_named_exists():
    named = set(re.findall(r"\./ssdrig bench ([a-z-]+)`", README))
    assert named and named <= set(registry()), named - set(registry())


def test_every_file_that_is_named_exists():
    for path in re.findall(r"`((?:firmware|host|schemas|tests)/[\w./-]+)`", README) + re.findall(
        r"\]\(([\w./-]+)\)", README
    ):
        assert (ROOT / path).exists(), path
