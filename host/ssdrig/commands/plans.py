"""`ssdrig plans`: list the plans, their cost on a drive and their content, and check plan files."""

import argparse
import json
import sys
from dataclasses import asdict

from ssdrig.base.errors import SsdrigError, UsageError
from ssdrig.base.words import counted
from ssdrig.plan import grammar
from ssdrig.run import dry_run, options, prepare

EXAMPLES = (
    ("plans --virtual sata-tlc", "with time and bytes on a SIMULATED drive"),
    ("plans show consistency > mine.toml", "a plan to begin with"),
    ("plans check mine.toml", "is it a plan?"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="what", metavar="list|show|check")
    listing = sub.add_parser("list", help="list the plans; with a drive, time and bytes on it (default)")
    for subparser in (parser, listing):
        subparser.add_argument(
            "--drive", metavar="DRIVE", help="with time and bytes on this drive: serial or by-id path"
        )
        subparser.add_argument("--virtual", metavar="PRESET", help="with time and bytes on this SIMULATED drive")
        subparser.add_argument("--capacity", metavar="SIZE", help="capacity of the virtual drive, e.g. 8GiB")
        subparser.add_argument("--raw-nand", metavar="SIZE", help="raw NAND capacity of a real drive, e.g. 256GiB")
        subparser.add_argument(
            "--runs", metavar="DIR", default="runs", help="folder of earlier runs, from which times are estimated best"
        )
        subparser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    show = sub.add_parser("show", help="print a plan's file")
    show.add_argument("plan", metavar="NAME|FILE", help="name of a plan, or a plan file (….toml)")
    show.set_defaults(verbatim=True)  # a file
    check = sub.add_parser(
        "check", help="check a plan file with each of its variants; one error and exit code 2 if it is wrong"
    )
    check.add_argument("plan", metavar="FILE", help="a plan file (….toml)")
    check.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def command(args) -> int:
    if args.what == "show":
        return _show(args.plan)
    if args.what == "check":
        return _check(args.plan, args.json)
    return _list(args)


def _show(name: str) -> int:
    text, where = grammar.find(name)
    grammar.read(text, where)
    sys.stdout.write(text)
    return 0


def _check(name: str, as_json: bool) -> int:
    text, where = grammar.find(name)
    plan = grammar.of_variants(text, where)[None]
    steps = sum(1 for _ in grammar.every(plan.steps))
    if as_json:
        counts = {"steps": steps, "variants": len(plan.variants), "views": len(plan.shows)}
        print(json.dumps({"file": where, "plan": plan.name, **counts}))
        return 0
    parts = ((steps, "step"), (len(plan.variants), "variant"), (len(plan.shows), "view"))
    print(f"{where}: a plan of {', '.join(counted(*part) for part in parts)}")
    return 0


def _list(args) -> int:
    drive = _drive(args)
    rows = []
    for name in grammar.shipped():
        plans = grammar.of_variants(*grammar.find(name))
        rows += [_row(name, plan, drive, args.runs) for plan in plans.values()]
    if args.json:
        print(json.dumps({"drive": drive, "plans": rows}))
        return 0
    width = max(len(row["words"]) for row in rows)
    for row in rows:
        line = f"{row['words']:{width}}  {row['title']}" if not row["variant"] else f"{row['words']:{width}}"
        if row.get("why"):
            line += f"  not on this drive: {row['why']}"
        elif drive:
            title = "" if row["variant"] else row["title"]
            line = f"{row['words']:{width}}  {row['time']:>19}  {row['writes']:>17}  {title}"
        print(line.rstrip())
    return 0


def _row(name: str, plan: grammar.Plan, drive: dict | None, runs: str) -> dict:
    variant = plan.variant
    option = f"  --variant {variant}" if variant else name
    row = {"plan": name, "variant": variant, "title": plan.title, "scaled": plan.scaled, "words": option}
    if drive is None:
        return row
    try:
        can = prepare.of_virtual(drive["preset"]) if drive.get("preset") else prepare.VIRTUAL
        prepared = prepare.prepare(name, drive, variant, None, capabilities=can, runs=runs, exact=False)
    except SsdrigError as error:
        return row | {"why": error.seen}
    k = drive["time_dilation"]
    return row | {
        "time": dry_run.times(prepared.cost, k),
        "writes": dry_run.written(prepared.cost),
        "host_s": [round(s * k) for s in prepared.cost.time_s],
        "written_bytes": [round(size) for size in prepared.cost.written_bytes],
    }


def _drive(args) -> dict | None:
    """The drive that is named, as run.json would have it; None: none is."""
    if args.drive and args.virtual:
        raise UsageError("one drive", "--drive and --virtual", "leave one out")
    if args.virtual:
        return options.virtual_drive(args)
    if not args.drive:
        return None
    from ssdrig.drive import inventory
    from ssdrig.drive.wear import warranty

    drive = inventory.find(args.drive)
    raw, assumed = options.raw_nand(args, drive.model, drive.capacity_bytes)
    rated_bytes = warranty.rated_bytes(warranty.limits_for(drive.model, drive.capacity_bytes))
    known = {**asdict(drive), "rated_write_bytes": rated_bytes}
    return {**known, "raw_nand_bytes": raw, "raw_nand_assumed": assumed, "time_dilation": 1}
