"""The workflow that is there to be copied: every command of ssdrig in it can be typed, and its verdicts are kept."""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from ssdrig import cli

WORKFLOW = (Path(__file__).parents[2] / "host/docs/use/ci-workflow.yml").read_text()
STEPS = [line.strip() for line in re.findall(r"run: (.*)", WORKFLOW)]
COMMANDS = [words for step in STEPS for words in re.findall(r"ssdrig/ssdrig ([^;&\"]+(?:\"\$\w+\"[^;&\"]*)*)", step)]


def test_each_job_sets_up_cuts_checks_and_reports():
    for job in re.split(r"^  \w+:$", WORKFLOW.partition("jobs:")[2], flags=re.MULTILINE)[1:]:
        assert re.findall(r"ssdrig/ssdrig (\w+)", job) == ["setup", "run", "check", "report"]


@pytest.mark.parametrize("words", [words for words in COMMANDS if words.strip() != "setup"])
def test_each_command_can_be_typed(words):
    words_ = shlex.split(words.replace("$SERIAL", "S1"))
    cli.parser_of({words_[0]: importlib.import_module(cli.COMMANDS[words_[0]][0])}).parse_args(words_)


def test_a_verdict_is_made_and_stored_also_after_a_broken_promise():
    for step in ("check latest", "report latest", "upload-artifact"):
        before = WORKFLOW.partition(step)[0].splitlines()[-2:]
        assert any("!cancelled()" in line for line in before), step
    assert "check.xml" in WORKFLOW.partition("upload-artifact")[2]
