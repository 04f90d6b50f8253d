"""Man pages made from the parsers: ssdrig(1), and ssdrig-COMMAND(1) for each command of an installed package. Pure."""

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

from ssdrig import __version__, cli
from ssdrig.base.errors import exit_codes

SECTION = 1
OTHER_PAGES = ("fio(1)", "smartctl(8)", "nvme(1)")


def pages(modules: Mapping[str, ModuleType]) -> dict[str, str]:
    """File name -> text in man(7)'s macros.

    modules: command name -> its module, of all of cli.COMMANDS
    """
    whole = cli.parser_of(modules)
    below = _commands(whole)
    out = {f"ssdrig.{SECTION}": _overview()}
    for name, module in modules.items():
        out[f"ssdrig-{name}.{SECTION}"] = _of_command(name, below[name], getattr(module, "EXAMPLES", ()))
    return out


def _overview() -> str:
    lines = [*_head("ssdrig", cli.ABOUT), ".SH SYNOPSIS", '.BI "ssdrig " "COMMAND " [ARGUMENT\\ ...]']
    lines += [".SH FIRST STEPS", *_examples(cli.FIRST)]
    grouped = {name for names in cli.GROUPS.values() for name in names}
    for group, names in {**cli.GROUPS, "More": [name for name in cli.COMMANDS if name not in grouped]}.items():
        if names := [name for name in names if name in cli.COMMANDS]:
            lines.append(f".SH {_text(group.upper())}")
            for name in names:
                lines += [".TP", f".BR ssdrig\\-{_text(name)} ({SECTION})", _text(_sentence(cli.COMMANDS[name][1]))]
    lines.append(".SH EXIT STATUS")
    for code, (words, _) in sorted(exit_codes().items()):
        lines += [".TP", f".B {code}", _text(_sentence(words))]
    return "\n".join([*lines, *_see_also(cli.COMMANDS)]) + "\n"


def _of_command(name: str, parser: argparse.ArgumentParser, examples: Sequence[tuple[str, str]]) -> str:
    lines = [*_head(f"ssdrig-{name}", cli.COMMANDS[name][1]), ".SH SYNOPSIS", *_synopsis(parser)]
    lines += _arguments(parser, ".SH")
    for words, child in _commands(parser).items():
        lines += [f'.SH "ssdrig {_text(name)} {_text(words)}"', *_synopsis(child)]
        if child.description:
            lines += [".PP", _text(_sentence(child.description))]
        lines += _arguments(child, ".SS")
    if examples:
        lines += [".SH EXAMPLES", *_examples(examples)]
    return "\n".join([*lines, *_see_also(())]) + "\n"


def _head(name: str, words: str) -> list[str]:
    title = f'.TH {_text(name).upper()} {SECTION} "" "ssdrig {__version__}" "User Commands"'
    return [title, ".nh", ".ad l", ".SH NAME", f"{_text(name)} \\- {_text(words.rstrip('.'))}"]


def _synopsis(parser: argparse.ArgumentParser) -> list[str]:
    usage = re.sub(r"\s+", " ", parser.format_usage().removeprefix("usage: ").replace("./ssdrig", "ssdrig")).strip()
    return [".PP", f".B {_text(usage)}"]


def _arguments(parser: argparse.ArgumentParser, macro: str) -> list[str]:
    """The groups of the help, each under a heading of this macro."""
    lines: list[str] = []
    for group in parser._action_groups:
        shown = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if not shown or any(isinstance(action, argparse._SubParsersAction) for action in shown):
            continue
        lines.append(f"{macro} {_text((group.title or 'options').upper())}")
        for action in shown:
            help_words = (action.help or "") % ({"prog": parser.prog} | vars(action))
            lines += [".TP", f".B {_text(_typed(action))}", _text(_sentence(help_words))]
    return lines


def _typed(action: argparse.Action) -> str:
    """An argument as it is typed: `-n, --dry-run`, `--op PERCENT`, `RUN ...`."""
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    value = " ".join(value) if isinstance(value, tuple) else value
    value += " ..." if action.nargs in ("+", "*") else ""
    if not action.option_strings:
        return value
    return ", ".join(action.option_strings) + (f" {value}" if action.nargs != 0 else "")


def _examples(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for words, what in rows for line in (".TP", f".B ssdrig {_text(words)}", _text(_sentence(what)))]


def _see_also(names: Iterable[str]) -> list[str]:
    pages = [f"ssdrig-{name}({SECTION})" for name in names] or [f"ssdrig({SECTION})"]
    return [".SH SEE ALSO", _text(", ".join([*pages, *OTHER_PAGES]))]


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of its commands by their names; none: it has no commands."""
    below = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(next(below, {}))


def _sentence(words: str) -> str:
    words = words.replace("./ssdrig", "ssdrig").strip()
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith((".", "?", "!")) else ".")


def _text(words: str) -> str:
    """Words as man(7) takes them: hyphens that are typed, no line that begins with a request."""
    words = words.replace("\\", r"\e").replace("-", r"\-").replace("\n", " ")
    return rf"\&{words}" if words.startswith((".", "'")) else words
