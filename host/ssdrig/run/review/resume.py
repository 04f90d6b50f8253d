"""`ssdrig resume FOLDER`: go on with a run (run/resume.py), or with a review, whose runs it then executes."""

import argparse

from ssdrig.base.errors import UsageError
from ssdrig.run import resume
from ssdrig.runs import named, parts

add_arguments = resume.add_arguments
EXAMPLES = (
    ("resume latest --dry-run", "the valid and the repeated parts"),
    ("resume 3fa9", "the run by the end of its id"),
)
NOT_SAID = dict.fromkeys(("virtual", "level", "runs", "against", "out"))
ALIKE = (
    "drive",
    "destroy_data",
    "rig",
    "budget",
    "influx",
    "faults",
    "drive_faults",
    "dry_run",
    "json",
    "quiet",
    "verbose",
)


def check(args) -> None:
    """Raises UsageError for a word that names no run, JournalError for a folder without one."""
    named.check([args.run], args.runs)


def command(args) -> int:
    """Exit codes as of `run`."""
    args.run = named.one(args.run, args.runs)
    if not (args.run / parts.REVIEW).is_file():
        return resume.command(args)
    if args.purge or args.without_rig or args.jsonl:
        raise UsageError(
            "a review without --purge-method, --without-rig and --jsonl",
            "one of them",
            "leave it out: it goes on as it began",
        )
    from ssdrig.base.progress import Progress
    from ssdrig.run.review import perform

    own = argparse.Namespace(**{key: getattr(args, key) for key in ALIKE}, **NOT_SAID)
    return perform.go_on(args.run, own, Progress(args.quiet))
