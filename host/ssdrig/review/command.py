"""The options of `ssdrig review`."""

import argparse
from pathlib import Path

from ssdrig.errors import UsageError
from ssdrig.plan import reviews
from ssdrig.progress import Progress
from ssdrig.review import ended, perform

KNOWN = ("virtual", "capacity", "raw_nand", "purge")  # to a review that goes on


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--drive", metavar="DRIVE", help="serial or /dev/disk/by-id path of the drive; all of its data is destroyed")
    add("--virtual", metavar="PRESET", help="a SIMULATED drive and board instead (./ssdrig virtual --list-presets)")
    add(
        "--level",
        choices=reviews.LEVELS,
        default="quick",
        help="quick: SCALED variants, minutes on a virtual drive; standard: the tests as they are, days; full: all that"
        " there are, weeks (default %(default)s; --dry-run says how long)",
    )
    add("--resume", metavar="FOLDER", type=Path, help="go on with the review of this folder where it was cut short")
    add("--budget", metavar="SIZE", help='of all plans together: "5 TB", or "2 %%" of the TBW')
    add("--destroy-data", metavar="SERIAL", help="repeat the serial to confirm that all data may be destroyed")
    add("--purge", metavar="METHOD", help="how to empty a real drive (default: the best it has)")
    add("--raw-nand", metavar="SIZE", help="raw NAND of a real drive, or assumed; as of ./ssdrig run")
    add("--rig", metavar="PORT", help="serial port of the rig that powers a real drive (default: no power measurement)")
    add("--capacity", metavar="SIZE", help="capacity of the virtual drive (default: the preset's)")
    add("--faults", metavar="JSON", help="faults of the virtual board")
    add("--drive-faults", metavar="JSON", help="faults of the virtual drive at a loss of power; as of ./ssdrig run")
    add("--seed", type=int, default=4242, help="random seed of the first plan (default %(default)s)")
    add("--runs", metavar="DIR", default="runs", help="parent folder of the review's folder (default ./%(default)s)")
    add(
        "--against",
        nargs="+",
        metavar="RUN",
        help="earlier runs and reviews to show it beside (default: all complete runs of the folder --runs)",
    )
    add("--out", metavar="FILE", help="the page (default: report.html in the review's folder)")
    add("--influx", metavar="URL", help="as of ./ssdrig run")
    add("--dry-run", "-n", action="store_true", help="print the order, time, bytes and share of the TBW; touch nothing")
    add("--json", action="store_true", help="print the result as one JSON object on stdout")
    add("--quiet", action="store_true", help="no progress on stderr")


def command(args) -> int:
    """Exit codes as of `run`: of the plan with which the review ended, else of the first that failed."""
    show = Progress(args.quiet)
    if args.resume is None:
        review, code = perform.begin(args, show)
    else:
        for key in KNOWN:
            if getattr(args, key):
                option = f"--{key.replace('_', '-')}"
                raise UsageError("--resume without what the review knows itself", option, "leave it out")
        review, code = perform.go_on(args.resume, args, show)
    if review is None:
        return code
    return ended.told(review, args, show, code)
