"""What `ssdrig resume` must hear from the person again. A run folder is data: the commands that switch a supply, the
target, the files that a plan reads, a plan that is not ssdrig's, the budget and the consent are those of the command
line, never those of the folder. What else the folder contains is data: it may spoil its own figures and verdict."""

import argparse
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.terminal import printable
from ssdrig.plan import document, grammar
from ssdrig.plan.expand import Act
from ssdrig.plan.kinds import KINDS
from ssdrig.plan.kinds.retention_words import NONE
from ssdrig.run.cutting import Switched

SUPPLY = {"target": "--target", "power_off": "--power-off", "power_on": "--power-on"}  # key of run.json -> option


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("given again, as the run was begun with (never taken from the folder)").add_argument
    add("--target", metavar="TARGET", help="the NBD server of the run; all data on it is destroyed")
    add("--power-off", metavar="CMD", help="shell command that switches the power off")
    add("--power-on", metavar="CMD", help="shell command that switches it on again")
    add(
        "--switch",
        action=Switched,
        default=None,
        metavar="URL",
        help="URL of a switch, in place of --power-off and --power-on",
    )
    add("--read", metavar="FILE", action="append", help="a file that the plan reads (a trace, a log, a manifest)")
    add("--plan", metavar="FILE", help="the plan of a run on a real drive, where it is not one of ssdrig's")


def files(acts: Iterable[Act]) -> list[str]:
    """The files of this machine that the acts of a plan read, in their order."""
    options_ = []
    for act in acts:
        for key, spec in KINDS[act.do].KEYS.items():
            if spec.kind == "file" and act.keys.get(key, NONE) != NONE:
                options_.append(str(act.keys[key]))
    return list(dict.fromkeys(options_))


def check(args: argparse.Namespace, run: Path, header: Mapping, acts: Iterable[Act]) -> None:
    """Raises UsageError, with the whole command to type, where the command line lacks what the run was begun with or
    has what it was begun without. `header`: run.json; a virtual drive needs no options. A dry run starts and
    opens nothing but the files that the plan reads."""
    known = header["drive"]
    supply = {} if known.get("preset") else {key: known[key] for key in SUPPLY if known.get(key)}
    if ("power_off" in supply) != ("power_on" in supply) or ("target" in supply and "power_off" not in supply):
        raise JournalError(
            f"a run.json of {run} with both commands, or with neither",
            f"only {', '.join(supply)}",
            "it is damaged: take it from a copy of the run",
        )
    needed, given = files(acts), args.read or []
    for key, option in SUPPLY.items():
        if getattr(args, key) and key not in supply:
            raise UsageError(
                f"no {option} for a run that was begun without", _quoted(getattr(args, key)), f"leave {option} out"
            )
    lacking = [option for key, option in SUPPLY.items() if key in supply and not getattr(args, key)]
    if args.target and args.target != supply["target"]:
        lacking.append("--target")
    budget = None if known.get("preset") else header.get("budget_bytes")
    if budget is not None and args.budget is None:
        lacking.append("--budget")
    if not known.get("preset") and not _is_named(args.plan, (header.get("plan") or {}).get("text")):
        lacking.append("--plan")
    if args.dry_run:
        lacking = []
    lacking += [f"--read {_quoted(name)}" for name in needed if name not in given]
    if args.target and not args.dry_run and args.destroy_data != args.target:
        lacking.append("--destroy-data")
    if not lacking:
        return
    made_with = [f"{SUPPLY[key]} {_quoted(value)}" for key, value in supply.items()]
    made_with += [f"--read {_quoted(name)}" for name in needed]
    if "--budget" in lacking:
        made_with.append(f"--budget {_quoted(f'{budget} B')}")
    if "--plan" in lacking:
        name = (header.get("plan") or {}).get("name")
        made_with.append(f"--plan {_quoted(f'{name}.toml')}")
    consent = [f"--destroy-data {_quoted(supply['target'])}"] if "target" in supply else []
    raise UsageError(
        f"{', '.join(lacking)} on the command line: no command, target, file, plan, budget or consent is taken from a"
        " run folder",
        f"the folder states that the run was made with {' '.join(made_with)}",
        f"if that is what you want, give it again: {' '.join(_command(run, args, [*made_with, *consent]))}",
    )


def _is_named(path: str | None, text: object) -> bool:
    """Whether a plan's text is one of ssdrig's, or that of the file which was typed. Raises UsageError."""
    shipped = any(text == document.load(plan) for plan in grammar.shipped().values())
    return shipped or path is not None and text == document.load(Path(path))


def _command(run: Path, args: argparse.Namespace, options: list[str]) -> list[str]:
    """The command as typed, with the missing options."""
    typed = []
    had = (("--drive", args.drive), ("--rig", args.rig), ("--budget", args.budget), ("--plan", args.plan))
    for option, value in had:
        typed += [f"{option} {_quoted(value)}"] if value else []
    if args.destroy_data and not any(option.startswith("--destroy-data") for option in options):
        typed.append(f"--destroy-data {_quoted(args.destroy_data)}")
    flags = [name for name, on in (("--without-rig", args.without_rig), ("--dry-run", args.dry_run)) if on]
    return ["./ssdrig resume", _quoted(str(run)), *typed, *options, *flags]


def _quoted(text: str) -> str:
    """A word for a shell, every control character of it written out."""
    return printable(shlex.quote(text))
