"""Completion scripts have every command and every option that a help shows, and no old name."""

import argparse
import importlib
import shutil
import subprocess

import pytest

from ssdrig import cli
from ssdrig.base.errors import ToolMissing
from ssdrig.commands import completion
from ssdrig.plan import grammar

NO_SHTAB = "shtab is not installed: ./ssdrig setup --extra completion"


def whole() -> cli.Top:
    return cli.parser_of({name: importlib.import_module(where) for name, (where, _) in cli.COMMANDS.items()})


def asked(script: str, folder, questions: list[list[str]]) -> list[list[str]]:
    """What bash offers for each line of words, the last of which is being typed."""
    (folder / "script").write_text(script)
    lines = [f"source {folder / 'script'}", "compopt() { :; }"]
    for words in questions:
        typed = " ".join(f"'{word}'" for word in words)
        lines += [f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; COMPREPLY=()"]
        lines += [f"_shtab_ssdrig ssdrig '{words[-1]}' '{words[-2]}'; echo \"${{COMPREPLY[*]}}\""]
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_offers_every_command_and_every_option(tmp_path):
    pytest.importorskip("shtab", reason=NO_SHTAB)
    parser = whole()
    parsers = [command for command in completion._parsers(parser) if command.prog != "ssdrig"]
    script = completion.script(parser, "bash")
    questions = [[*command.prog.split(), "--"] for command in parsers]
    offers = asked(script, tmp_path, [["ssdrig", ""], ["ssdrig", "rig", "c"], ["ssdrig", "run", "pts-"], *questions])
    assert set(cli.COMMANDS) <= set(offers[0]) and set(offers[1]) == {"calibrate", "cut", "clear"}
    assert set(offers[2]) == {name for name in grammar.shipped() if name.startswith("pts-")}
    for command, offered in zip(parsers, offers[3:], strict=True):
        shown = {
            name
            for action in command._actions
            if action.help != argparse.SUPPRESS
            for name in action.option_strings
            if name.startswith("--")
        }
        assert set(offered) == shown, command.prog


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_offers_the_runs_that_are_there_the_serials_and_the_variants(tmp_path, monkeypatch):
    pytest.importorskip("shtab", reason=NO_SHTAB)
    for name in ("consistency-3fa9", "slc-cache-b071"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/lsblk").write_text("#!/bin/sh\necho S6WS123\necho\necho 21450Z\n")
    (tmp_path / "bin/lsblk").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    questions = [["report", ""], ["report", "l"], ["compare", "latest", "s"], ["report", "runs/c"], ["wear", ""]]
    questions += [["run", "consistency", "--variant", ""], ["run", "x", "--destroy-data", "2"]]
    offers = asked(completion.script(whole(), "bash"), tmp_path, [["ssdrig", *words] for words in questions])
    assert {"latest", "consistency-3fa9", "slc-cache-b071", "runs"} <= set(offers[0])
    assert offers[1:4] == [["latest"], ["slc-cache-b071"], ["runs/consistency-3fa9"]]
    assert {"S6WS123", "21450Z"} <= set(offers[4])
    assert "quick" in offers[5] and offers[6] == ["21450Z"]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_has_a_script_with_all_names(shell, capsys):
    pytest.importorskip("shtab", reason=NO_SHTAB)
    assert cli.main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for name in (*cli.COMMANDS, "steady-from", "purge-method", "consecutive", "consistency", "sata-tlc"):
        assert name in text, name


def test_without_shtab_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    with pytest.raises(ToolMissing, match="setup --extra completion"):
        completion.script(whole(), "bash")
