"""`ssdrig label RUN...`: a title and tags for run folders, to find them by."""

import argparse
import json

from ssdrig.base.errors import UsageError
from ssdrig.base.terminal import printable
from ssdrig.runs import labels, named

EXAMPLES = (("label latest --title 'fan off' --tag cooling", "the newest run"), ("label 3fa9 --untag draft", "another"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help=f"a run: {named.HELP}; or a folder of runs")
    named.add_parent(parser)
    parser.add_argument("--title", metavar="TEXT", help='title of the run; "" removes it')
    parser.add_argument("--tag", metavar="WORD", action="append", default=[], help="add a tag (may be repeated)")
    parser.add_argument("--untag", metavar="WORD", action="append", default=[], help="remove a tag (may be repeated)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line for each run")


def command(args) -> int:
    folders = named.several(args.runs, args.parent)
    if both := {*map(labels.tag, args.tag)} & {*map(labels.tag, args.untag)}:
        raise UsageError("each tag either added or removed", f"both of {', '.join(sorted(both))}", "choose one")
    changes = args.title is not None or args.tag or args.untag
    for folder in folders:
        now = labels.change(folder, args.title, args.tag, args.untag) if changes else labels.of(folder)
        if args.json:
            print(json.dumps({"run": str(folder), **now._asdict()}))
        else:
            print(f"{printable(str(folder))}: {printable(now.title) or 'no title'}; {' '.join(now.tags) or 'no tags'}")
    return 0
