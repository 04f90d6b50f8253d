"""The forecast of a run."""

import argparse

from small_plans import DRIVE, FILLED, HEAD

from ssdrig.run import dry_run, prepare
from ssdrig.run.budget import Budget

SLOW = "PCIe 4.0 x4 (drive: 5.0 x4)"


class Screen:
    live = False

    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines += text.splitlines()


def forecast(tmp_path, link):
    """The lines on stderr, and the object of --json."""
    path = tmp_path / "plan.toml"
    path.write_text(HEAD + FILLED)
    prepared = prepare.prepare(str(path), {**DRIVE, "link": link}, capabilities=frozenset({"purge"}))
    screen = Screen()
    dry_run.describe(argparse.Namespace(dry_run=True, json=False, jsonl=False), prepared, Budget(None), screen)
    return screen.lines, prepare.as_json(prepared)


def test_slow_link_is_the_first_line(tmp_path):
    lines, document = forecast(tmp_path, SLOW)
    assert len(document["warnings"]) == 1 and lines[0] == f"warning: {document['warnings'][0]}"


def test_full_link_has_no_warning(tmp_path):
    lines, document = forecast(tmp_path, "PCIe 5.0 x4")
    assert document["warnings"] == [] and not lines[0].startswith("warning")
