"""`ssdrig purge`: shows the drive's methods and what blocks them, or purges the drive that the user named."""

import argparse
import contextlib
import json
import sys
from dataclasses import asdict

from ssdrig.base.arguments import add_dry_run
from ssdrig.base.errors import DriveError, UnsafeTarget
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock, size
from ssdrig.drive import confirm, guard
from ssdrig.drive.confirm import confirmed
from ssdrig.drive.inventory import Drive
from ssdrig.drive.purge import METHODS, ONLY_IF_ASKED, OTHER_INTERFACE, choose, methods, purge
from ssdrig.drive.wear import warranty

EXAMPLES = (
    ("purge SERIAL --dry-run", "the methods of this drive, and what blocks them"),
    ("purge SERIAL --destroy-data SERIAL --method sanitize-block", "erase it, and verify that it is empty"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    confirm.add_arguments(parser)
    parser.add_argument(
        "--method",
        "--purge-method",
        default="auto",
        choices=("auto", *METHODS),
        metavar="METHOD",
        help=f"auto (the best there is) or {', '.join(METHODS)}",
    )
    add_dry_run(parser, "only show what could be done and what blocks it")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on stdout")


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for a drive that there is not."""
    confirm.chosen(args)


def command(args: argparse.Namespace) -> int:
    """0: purged and seen to be so, or a dry run with nothing against it. 3: refused. 4: drive. Unverified effect: 0,
    with words."""
    drive = confirm.chosen(args)
    if args.dry_run or not (args.destroy_data or sys.stdin.isatty()):
        return _dry_run(args, drive)
    chosen = choose(methods(drive), args.method)
    writes = drive.capacity_bytes if chosen.name in ONLY_IF_ASKED else 0
    rated = warranty.rated_bytes(warranty.limits_for(drive.model, drive.capacity_bytes))
    print(guard.announcement(drive, f"purge by {chosen.name}: {chosen.does}", writes, rated), file=sys.stderr)
    with guard.hold(drive, confirmed(drive, args.destroy_data)) as held:
        result = purge(held, args.method, Progress())
    print(
        f"{'purged' if result['ok'] else 'done, but'} in {clock(result['duration_s'])}: {result['effect']['words']}",
        file=sys.stderr,
    )
    if args.json:
        print(json.dumps(result, ensure_ascii=False))
    else:
        print(
            f"{result['method']} with {result['tool']}:"
            f" {'effect verified' if result['ok'] else result['effect']['words']}"
        )
    return 0


def _dry_run(args: argparse.Namespace, drive: Drive) -> int:
    offered, against = methods(drive), guard.refusals(drive, args.destroy_data)
    chosen = None
    with contextlib.suppress(DriveError):
        chosen = choose(offered, args.method).name
    if args.json:
        rows = [{"check": r.check, "why": r.why, "override": r.override} for r in against]
        print(
            json.dumps(
                {"drive": asdict(drive), "methods": [asdict(m) for m in offered], "chosen": chosen, "refusals": rows},
                ensure_ascii=False,
            )
        )
    else:
        print(f"{drive.model} {drive.serial}, {size(drive.capacity_bytes)}, {drive.interface}, {drive.node}")
        for m in (m for m in offered if m.available or not (m.why_not or "").startswith(OTHER_INTERFACE)):
            time_words = f" (about {clock(m.estimate_s)})" if m.estimate_s else ""
            print(
                f"  {'*' if m.name == chosen else ' '}"
                f" {m.name:20}{m.does + time_words if m.available else f'no: {m.why_not}'}"
            )
        for r in against:
            print(f"  against it: {r.check}: {r.why}" + (f" (lifted by {r.override})" if r.override else ""))
    if not args.dry_run:
        print(f"nothing was done: give --destroy-data {drive.consent}", file=sys.stderr)
        return UnsafeTarget.exit_code
    return UnsafeTarget.exit_code if against or chosen is None else 0
