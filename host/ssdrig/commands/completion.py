"""`ssdrig completion SHELL`: the script by which a shell completes commands, options, plans, variants, presets, runs
and serials on Tab. It is made once from the parsers, so that Tab starts no Python: runs are the folders in ./runs,
serials are those that lsblk lists."""

import argparse
from typing import Any

from ssdrig.base import shipped
from ssdrig.base.errors import ToolMissing

SHELLS = ("bash", "zsh", "fish", "tcsh")
WHOLE = "whole"  # cli.py gives the parser of all commands under this name
EXAMPLES = (
    ("completion bash > ~/.local/share/bash-completion/completions/ssdrig", "from the next bash on"),
    ("completion zsh > ~/.zfunc/_ssdrig", "in a folder of your $fpath"),
)
FOLDERS = ("DIR", "FOLDER")
FILES = ("FILE", "CSV", "LOG", "SOURCE", "PLAN", "NAME|FILE")
RUNS = ("RUN", "A", "B")
DRIVES = ("DRIVE", "SERIAL")
LIST_RUNS = "echo latest; ls runs 2>/dev/null"
LIST_SERIALS = "lsblk -dno SERIAL"
RUNS_FUNCTION = "_ssdrig_runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(verbatim=True)  # a script
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def command(args) -> int:
    """Raises ToolMissing where shtab is not installed."""
    print(script(args.whole, args.shell))
    return 0


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The completion script of all that `parser` takes. Raises ToolMissing."""
    try:
        import shtab
    except ImportError:
        do = shipped.installing("completion")
        raise ToolMissing("shtab, which makes the script", "it is not installed", do) from None
    for subparser in _parsers(parser):
        for action in subparser._actions:
            _add_values(action, shtab)
    return shtab.complete(parser, shell)


def _parsers(parser: argparse.ArgumentParser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _parsers(child)


def _add_values(action: Any, shtab) -> None:
    """Set what may stand for the argument (an argparse.Action; shtab reads its extra attribute `complete`): the plans,
    the presets, runs, serials, files or folders."""
    from ssdrig.plan import grammar
    from ssdrig.virtual.flash.presets import PRESETS

    if action.metavar == "PLAN":
        action.choices = list(grammar.shipped())
    elif action.metavar == "PRESET":
        action.choices = list(PRESETS)
    elif action.metavar == "V" and "--variant" in action.option_strings:
        action.choices = _variants()
    elif action.metavar in RUNS:
        bash = f'{RUNS_FUNCTION}() {{ compgen -W "$({LIST_RUNS})" -- "$1"; compgen -d -- "$1"; }}'
        action.complete = shtab.cmd(LIST_RUNS) | {
            "bash": RUNS_FUNCTION,
            "tcsh": "`ls runs`",  # which has no functions, and cannot silence stderr alone
            "preamble": {"bash": bash},
        }
    elif action.metavar in DRIVES:
        action.complete = shtab.cmd(LIST_SERIALS)
    elif action.metavar in FOLDERS:
        action.complete = shtab.DIRECTORY
    elif action.metavar in FILES:
        action.complete = shtab.FILE


def _variants() -> list[str]:
    """The names of the variants that any shipped plan has."""
    from ssdrig.plan import document, grammar

    plans = (document.parse(document.load(path), path.name) for path in grammar.shipped().values())
    return sorted({name for plan in plans for name in plan.get("variant", {})})
