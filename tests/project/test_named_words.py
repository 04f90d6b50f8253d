"""Every command, option and path of this tree that a string of the program names exists."""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "host" / "docs"))

import make

from selfcheck.__main__ import registry
from ssdrig.cli import COMMANDS

VALUE = "\0"  # stands for what an f-string puts in
LAUNCHER = ("test", "setup")  # host/ssdrig/start.py takes them before a parser exists
# options of other programs, and of what LAUNCHER takes, that a message or a docstring names
FOREIGN = {
    "nvme-cli": "--all --ause --log-id --ctrl-loss-tmo --force --raw-binary --reconnect-delay --ses",
    "hdparm": "--security-disable --security-unlock --user-master",
    "smartctl": "--scan",
    "udevadm": "--reload",
    "uhubctl": "--action --location --ports --repeat",
    "fio": "--output-format --status-interval --version --write_bw_log --write_iops_log --write_lat_log",
    "ssdrig setup": "--emulator --extra",
}
TREE = re.compile(r"(?<![\w/.-])(?:\.ci|firmware|hardware|host|schemas|tests)/[\w./-]*\w")
COMMAND = re.compile(r"(?:(?<=`)|\./)ssdrig ([^\n`;:()\"]*)")
STYLE = re.compile(r"var\(--|style=|<!--|:[^{}]*;|\{[^{}]*:")  # CSS and HTML have words with two dashes, too
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")


def strings(code: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each string of a module; an f-string is one, with VALUE where it puts something in."""
    inside = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            yield node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else VALUE for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below `parser`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def own_options(parser: argparse.ArgumentParser) -> set[str]:
    below = [own_options(child) for child in parsers(parser).values()]
    return {option for action in parser._actions for option in action.option_strings}.union(*below)


@pytest.fixture(scope="module")
def commands() -> dict[str, argparse.ArgumentParser]:
    return {name: make.parser_of(name) for name in COMMANDS}


def gone(text: str, commands: dict[str, argparse.ArgumentParser]) -> list[str]:
    """What `text` names that is not there: commands, their options, files of this tree."""
    missing = [path for path in TREE.findall(text) if not (ROOT / path).exists()]
    for line in COMMAND.findall(text):
        words = line.split()
        name = words[0].rstrip(".,") if words else ""
        if name in LAUNCHER or not re.fullmatch(r"[a-z][a-z-]*", name):
            continue
        if name not in commands:
            missing.append(f"ssdrig {name}")
            continue
        parser, below = commands[name], parsers(commands[name])
        if below and len(words) > 1 and re.fullmatch(r"[a-z][a-z-]+", words[1]):
            if words[1] in below:
                parser = below[words[1]]
            else:
                missing.append(f"ssdrig {name} {words[1]}")
        if name == "selfcheck" and len(words) > 1 and re.fullmatch(r"[a-z][a-z-]+", words[1]):
            missing += [f"selfcheck {words[1]}"] * (words[1] not in {*registry(), "all"})
        own = re.split(r"[|&>]", line)[0]  # up to the next command of a shell line
        missing += [f"ssdrig {name} {option}" for option in OPTION.findall(own) if option not in own_options(parser)]
    known = set(" ".join(FOREIGN.values()).split()).union(*map(own_options, commands.values()))
    if " " in text and not STYLE.search(text):
        missing += [option for option in OPTION.findall(text) if option not in known]
    return list(dict.fromkeys(missing))


def test_every_command_option_and_path_in_a_string_exists(commands):
    missing = []
    for path in [path for room in ("ssdrig", "selfcheck") for path in sorted((ROOT / "host" / room).rglob("*.py"))]:
        missing += [
            f"{path.relative_to(ROOT)}:{line}: {name}"
            for line, text in strings(path.read_text())
            for name in gone(text, commands)
        ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    "text, missing",
    [
        ("see host/ssdrig/no_such.py", ["host/ssdrig/no_such.py"]),
        ("run ./ssdrig calibrate SERIAL", ["ssdrig calibrate"]),
        ("./ssdrig rig melt", ["ssdrig rig melt"]),
        ("./ssdrig wear --smartkettle FILE", ["ssdrig wear --smartkettle", "--smartkettle"]),
        ("./ssdrig selfcheck no-such-check", ["selfcheck no-such-check"]),
        ("give the serial with --destroy-everything", ["--destroy-everything"]),
        ("./ssdrig wear --smartctl FILE; or look at host/docs/use/wear.md", []),
    ],
)
def test_name_of_what_is_gone_is_reported(text, missing, commands):
    assert gone(text, commands) == missing
