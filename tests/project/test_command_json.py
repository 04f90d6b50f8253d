"""Each command has --json, as the parser knows them, or a reason why not."""

import argparse
import importlib
import json

import pytest
import synthetic_run

from ssdrig import cli
from ssdrig.commands import completion

WHY_NOT = {  # its words -> what it prints instead
    "plans show": "a plan's file",
    "serve": "a server; what it serves is JSON",
    "completion": "a shell's script",
    "virtual ledger": "one JSON object, always",
    "virtual precondition": "one JSON object, always",
    "virtual age": "one JSON object, always",
}


def commands() -> dict[str, argparse.ArgumentParser]:
    """The words of each command that can be carried out -> its parser."""
    whole = cli.parser_of({name: importlib.import_module(where) for name, (where, _) in cli.COMMANDS.items()})
    parsers = {parser.prog.removeprefix("ssdrig").strip(): parser for parser in completion._parsers(whole)}
    below = {
        name
        for name, parser in parsers.items()
        if any(isinstance(a, argparse._SubParsersAction) for a in parser._actions)
    }
    return {name: parser for name, parser in parsers.items() if name not in below}


def test_each_command_prints_json_or_says_why_not():
    without = {name for name, parser in commands().items() if "--json" not in parser._option_string_actions}
    assert without == WHY_NOT.keys()


@pytest.mark.parametrize(
    "words, keys",
    [
        (["plans", "check", "consistency"], {"file", "plan", "steps", "variants", "views"}),
        (["plans"], {"drive", "plans"}),
        (["run", "consistency", "--virtual", "sata-tlc", "-n"], {"dry_run", "plan", "drive", "acts", "host_s"}),
        (["note", "RUN", "fan off", "--at", "3"], {"run", "text", "utc_ns", "at_s"}),
    ],
)
def test_one_object_on_stdout(words, keys, tmp_path, capsys):
    if "RUN" in words:
        run = synthetic_run.write(tmp_path, [1000] * 8, zoom_s=4)
        words = [str(run) if word == "RUN" else word for word in words]
    assert cli.main([*words, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert keys <= json.loads(line).keys()
