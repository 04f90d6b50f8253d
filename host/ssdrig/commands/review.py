"""The options of `ssdrig review`."""

import argparse
from pathlib import Path

from ssdrig.base.arguments import RIG, add_dry_run, add_output, add_quiet
from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.plan import reviews
from ssdrig.reading import review_folder
from ssdrig.run import options
from ssdrig.run.review import perform

KNOWN = ("virtual", "capacity", "raw_nand", "purge")  # to a review that goes on


EXAMPLES = (
    ("review --virtual sata-tlc", "some minutes on a SIMULATED drive"),
    ("review --drive SERIAL --level standard --dry-run", "the order, days, bytes and share of the TBW"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    parser.set_defaults(repeated=0)
    add(
        "--level",
        choices=reviews.LEVELS,
        default="quick",
        help="quick: SCALED variants, minutes on a virtual drive; standard: the tests at full length, days;"
        " full: all tests, weeks (default %(default)s; --dry-run shows how long)",
    )
    add("--resume", metavar="FOLDER", type=Path, help="continue the interrupted review in this folder")
    add = parser.add_argument_group("drive").add_argument
    add("--drive", metavar="DRIVE", help=options.DRIVE)
    add("--virtual", metavar="PRESET", help="a SIMULATED drive and board instead (./ssdrig virtual --list-presets)")
    add("--capacity", metavar="SIZE", help="capacity of the virtual drive, e.g. 8GiB (default: the preset's)")
    add("--raw-nand", metavar="SIZE", help=options.RAW_NAND.replace("base of --op", "base of over-provisioning"))
    add("--rig", metavar="PORT", help=f"{RIG} (default: no power measurement)")
    safety = parser.add_argument_group("safety")
    add_dry_run(safety, "print the order, time, bytes and share of the TBW; touch nothing")
    add = safety.add_argument
    add("--destroy-data", metavar="SERIAL", help="repeat the serial to confirm that all data may be destroyed")
    add("--budget", metavar="SIZE", help='all plans together write no more than this: "5 TB", or "2 %%" of the TBW')
    add("--purge-method", dest="purge", metavar="METHOD", help=options.PURGE_METHOD)
    add = parser.add_argument_group("recording").add_argument
    add("--runs", metavar="DIR", default="runs", help="parent folder of the review's folder (default ./%(default)s)")
    add("--seed", type=int, metavar="N", help=f"random seed of the first plan (default {options.SEED})")
    add("--influx", metavar="URL", help="http://host:port/DB to send points to (default: $SSDRIG_INFLUX)")
    add = parser.add_argument_group("faults, on purpose (virtual bench)").add_argument
    add("--faults", metavar="JSON", help="faults of the board (python -m ssdrig.virtual.cable --help)")
    add("--drive-faults", metavar="JSON", help='faults of the drive at a loss of power: {"lying_flush": 1}')
    output = parser.add_argument_group("output")
    add = output.add_argument
    add_output(output, "the page (default: report.html in the review's folder)")
    add(
        "--against",
        nargs="+",
        metavar="RUN",
        help="earlier runs, reviews and library files to compare it with (default: all complete runs of the folder"
        " --runs and the drives imported there)",
    )
    add("--json", action="store_true", help="print the result as one JSON object on stdout")
    add_quiet(output)
    add("-v", "--verbose", action="store_true", help="also print each event as it is recorded")


def check(args) -> None:
    """Raises UsageError for options that this machine cannot run, JournalError for a folder without
    one."""
    if args.resume:
        review_folder.read(args.resume)
        return
    perform.of_run(args)
    options.check_parts([options.Named("drive", args.drive, args.rig)] if args.drive else [])


def command(args) -> int:
    """Exit codes as of `run`: the code of the plan that ended the review, otherwise of the first that failed."""
    show = Progress(args.quiet)
    if args.resume is None:
        return perform.begin(args, show)
    for key in KNOWN:
        if getattr(args, key):
            option = "--purge-method" if key == "purge" else f"--{key.replace('_', '-')}"
            raise UsageError("--resume without what the review knows itself", option, "leave it out")
    return perform.go_on(args.resume, args, show)
