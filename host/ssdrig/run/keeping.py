"""The options of `ssdrig run retention write|verify`, and what of a SIMULATED drive outlives its run there."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event
from typing import Any

from ssdrig.base.errors import UsageError
from ssdrig.drive.wear.retention import REQUIREMENTS
from ssdrig.plan import expand
from ssdrig.plan.expand import Act

NAME, WRITE, VERIFY = "retention", "retention-write", "retention-verify"
SETS = {  # option -> (plan, its parameter)
    "wear_to": (WRITE, "wear"),
    "storage": (VERIFY, "storage"),
    "celsius": (VERIFY, "celsius"),
    "hours": (VERIFY, "hours"),
    "manifest": (VERIFY, "manifest"),
    "label": (VERIFY, "label"),
    "passes": (VERIFY, "passes"),
}
FAST_WEAR = (
    "Wear that is written in days at room temperature leaves a drive that keeps data for less time than one worn over"
    " years of use, where the flash heals between writes (JESD218): the result is on the safe side."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("retention (run retention write|verify)").add_argument
    add("--wear-to", type=int, metavar="PERCENT", help="write: first wear the drive to this share of its rating")
    add("--class", dest="drive_class", choices=tuple(REQUIREMENTS), help="JESD218 class whose bound applies")
    add(
        "--storage",
        metavar="LOG",
        help="verify: CSV of the storage temperature, rows `time,C`; each holds until the next",
    )
    add("--celsius", type=float, metavar="T", help="verify: or one storage temperature, °C")
    add(
        "--hours",
        type=float,
        metavar="H",
        help="verify: storage time for --celsius, hours (default: from the seal until now)",
    )
    add("--manifest", metavar="FILE", help="verify: RUN/retention/manifest.json, if no copy on the drive is whole")
    add("--label", metavar="TEXT", help="verify: the line on the drive's label, or its last 16 digits")
    add(
        "--passes",
        type=int,
        metavar="N",
        help="verify: number of times to read it, with a day of power in between (--set pause=…)",
    )
    add("--kept", metavar="DIR", help="verify: the SIMULATED drive that a run saved (RUN/drive)")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError; `retention write` becomes the name of its plan."""
    if args.part is not None:
        if args.plan != NAME or args.part not in ("write", "verify"):
            raise UsageError("one PLAN, or retention write|verify", f"{args.plan} {args.part}", "see ./ssdrig plans")
        args.plan, args.part = f"{args.plan}-{args.part}", None
    elif args.plan == NAME:
        raise UsageError("retention write, or retention verify", NAME, "name one of them")
    own = str(args.plan).endswith(".toml")
    for name, (plan, _) in SETS.items():
        option = f"--{name.replace('_', '-')}"
        if getattr(args, name) is not None and args.plan != plan and not own:
            raise UsageError(f"{option} only with {plan.replace('-', ' ')}", f"with {args.plan}", f"leave {option} out")
    if args.drive_class and args.plan not in (WRITE, VERIFY) and not own:
        raise UsageError("--class only with retention", f"with {args.plan}", "leave it out")
    if args.wear_to is not None and not 0 <= args.wear_to <= 100:
        raise UsageError("--wear-to from 0 to 100 percent", str(args.wear_to), "correct it")
    if args.kept is not None:
        _check_drive_folder(args)


def _check_drive_folder(args: argparse.Namespace) -> None:
    """The preset and the size are those of the drive that is kept."""
    if not args.virtual:
        raise UsageError("--kept only with --virtual", "without", "leave it out")
    from ssdrig.virtual.device import persistence

    facts = persistence.facts(Path(args.kept))
    if facts is None:
        do = "name the folder `drive` of a run of this ssdrig"
        raise UsageError("a SIMULATED drive that was kept", f"none in {args.kept}", do)
    if facts["preset"] != args.virtual:
        raise UsageError(f"--virtual {facts['preset']}, as it was kept", args.virtual, "give that preset")
    args.capacity = str(facts["drive_bytes"])


def sets(args: argparse.Namespace) -> dict[str, str]:
    """The parameters that the options set."""
    settings = {key: getattr(args, name) for name, (_, key) in SETS.items() if getattr(args, name) is not None}
    if args.drive_class:
        settings["class"] = args.drive_class
    return {key: str(value) for key, value in settings.items()}


def variant(args: argparse.Namespace) -> str | None:
    """The variant for a virtual drive, which is small; None: as the plan is."""
    return "quick" if args.virtual and args.plan in (WRITE, VERIFY) else None


def folder(args: Any) -> Path | None:
    """Where the SIMULATED drive is that a run begins with; None: a new one."""
    return Path(args.kept) if getattr(args, "kept", None) else None


def reads_back(acts: Iterable[Act]) -> bool:
    """Whether the drive is to hold every byte, and to outlive the run."""
    return any(act.do in ("retain", "recall") for act in acts)


def writes(acts: Iterable[Act]) -> bool:
    """Whether any data on the drive is lost by these acts."""
    return any(act.do in (*expand.MAY_WRITE, *expand.ERASES) and not act.not_run for act in acts)


def unless(event: Event, duty: Callable[[], object]) -> Callable[[], None]:
    """The duty of a teardown, while the event is not set when its time comes."""

    def do() -> None:
        if not event.is_set():
            duty()

    return do


def describe(acts: Iterable[Act], say: Callable[[str], object]) -> None:
    """The wear warning before the write."""
    if any(act.do == "wear" and act.keys["to"] and not act.not_run for act in acts) and reads_back(acts):
        say(FAST_WEAR)
