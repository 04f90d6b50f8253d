"""`ssdrig note RUN TEXT --at 620`: an observation, stored with a run and drawn in its plots."""

import argparse
import json
import re
import sys

from ssdrig.base.words import parse_seconds
from ssdrig.runs import annotations, journal, named, parts

EXAMPLES = (
    ("note latest 'fan off' --at 620", "620 s after the first I/O of the newest run"),
    ("note 3fa9 'hand on the drive'", "now, on the current run"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help=f"a run: {named.HELP}")
    parser.add_argument("text", metavar="TEXT", help="such as 'fan off'")
    parser.add_argument(
        "--at", metavar="TIME", help="drive time since the load's first I/O, such as 620 or 10m (default: now)"
    )
    parser.add_argument("--json", action="store_true", help="print the note as one JSON object on stdout")
    named.add_parent(parser)


def command(args) -> int:
    folder = named.one(args.run, args.parent)
    journal.run_header(folder)  # or it is not a run
    at_s = None
    if args.at is not None:
        at_s = float(args.at) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", args.at) else parse_seconds(args.at)
    stored = annotations.add(parts.shown(folder)[0], args.text, at_s)
    if args.json:
        print(json.dumps({"run": str(folder), **stored}))
    print("note: kept; `ssdrig report` shows it", file=sys.stderr)
    return 0
