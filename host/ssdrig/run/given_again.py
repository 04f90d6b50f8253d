"""What `ssdrig resume` must hear from the person again. A run folder is data: the commands that switch a supply, the
target, the files that a plan reads and the consent are those of the command line, never those of the folder."""

import argparse
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from ssdrig.errors import JournalError, UsageError
from ssdrig.plan.expand import Act
from ssdrig.retention.asked import NONE
from ssdrig.steps import KINDS
from ssdrig.terminal import printable

SUPPLY = {"target": "--target", "power_off": "--power-off", "power_on": "--power-on"}  # key of run.json -> option


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("given again, as the run was begun with (never taken from the folder)").add_argument
    add("--target", metavar="TARGET", help="the NBD server of the run; all data on it is destroyed")
    add("--power-off", metavar="CMD", help="shell command that switches the power off")
    add("--power-on", metavar="CMD", help="shell command that switches it on again")
    add("--read", metavar="FILE", action="append", help="a file that the plan reads (a trace, a log, a manifest)")


def files(acts: Iterable[Act]) -> list[str]:
    """The files of this machine that the acts of a plan read, in their order."""
    found = []
    for act in acts:
        for key, spec in KINDS[act.do].KEYS.items():
            if spec.kind == "file" and act.keys.get(key, NONE) != NONE:
                found.append(str(act.keys[key]))
    return list(dict.fromkeys(found))


def check(args: argparse.Namespace, run: Path, known: Mapping, acts: Iterable[Act]) -> None:
    """Raises UsageError, with the whole command to type, where the command line lacks what the run was begun with or
    has what it was begun without. `known`: the drive of run.json; of a virtual one nothing has to be given. A dry run
    starts and opens nothing but the files that the plan reads."""
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
    if args.dry_run:
        lacking = []
    lacking += [f"--read {_quoted(name)}" for name in needed if name not in given]
    if args.target and not args.dry_run and args.destroy_data != args.target:
        lacking.append("--destroy-data")
    if not lacking:
        return
    made_with = [f"{SUPPLY[key]} {_quoted(value)}" for key, value in supply.items()]
    made_with += [f"--read {_quoted(name)}" for name in needed]
    consent = [f"--destroy-data {_quoted(supply['target'])}"] if "target" in supply else []
    raise UsageError(
        f"{', '.join(lacking)} on the command line: no command, target, file or consent is taken from a run folder",
        f"the folder says that the run was made with {' '.join(made_with)}",
        f"if that is what you want, give it again: {' '.join(_command(run, args, [*made_with, *consent]))}",
    )


def _command(run: Path, args: argparse.Namespace, options: list[str]) -> list[str]:
    """The command that was typed, with what it lacks."""
    typed = []
    for option, value in (("--drive", args.drive), ("--rig", args.rig), ("--budget", args.budget)):
        typed += [f"{option} {_quoted(value)}"] if value else []
    if args.destroy_data and not any(option.startswith("--destroy-data") for option in options):
        typed.append(f"--destroy-data {_quoted(args.destroy_data)}")
    flags = [name for name, on in (("--without-rig", args.without_rig), ("--dry-run", args.dry_run)) if on]
    return ["./ssdrig resume", _quoted(str(run)), *typed, *options, *flags]


def _quoted(text: str) -> str:
    """A word for a shell, every control character of it written out."""
    return printable(shlex.quote(text))
