"""`ssdrig export RUN... --parquet DIR|s3://BUCKET/PREFIX`: run folders into a lake of Parquet files; --fio and --jls:
files for fio-plot and for the Joulescope UI.

Existing rows stay unchanged, so the same command may be repeated at any time, by a timer or after a kill."""

import argparse
import json
import os
import platform
import re
from pathlib import Path

from ssdrig.base.arguments import add_quiet
from ssdrig.base.errors import JournalError, SsdrigError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import error_lines, printable
from ssdrig.base.words import size
from ssdrig.publish import fio_names, jls
from ssdrig.publish.influx.line_protocol import host_tag
from ssdrig.publish.lake import place, write
from ssdrig.runs import journal, named, parts

EXAMPLES = (
    ("export latest --parquet ~/lake", "the newest run"),
    ("export latest --fio plots", "fio's results, for fio-plot"),
    ("export latest --jls power.jls", "export power to the Joulescope UI"),
    ("export runs --parquet s3://benches/lake --lab berlin", "all runs that are not there yet"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help=f"a run that has ended: {named.HELP}; or a folder of runs"
    )
    named.add_parent(parser)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--parquet",
        metavar="DIR|s3://BUCKET/PREFIX",
        help="the lake: a folder, or an S3 bucket (credentials as in $AWS_ACCESS_KEY_ID and the like)",
    )
    where.add_argument(
        "--fio", metavar="DIR", help="instead, fio's documents and logs of each step, named as fio-plot looks for them"
    )
    where.add_argument(
        "--jls", metavar="FILE", help="export only current, voltage and power of one run to the Joulescope UI (pyjls)"
    )
    parser.add_argument(
        "--lab",
        metavar="NAME",
        default=os.environ.get("SSDRIG_LAB"),
        help="name of the lab, a part of each path (default: $SSDRIG_LAB, otherwise the run's host name)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each run")
    add_quiet(parser)


def check(args) -> None:
    """Raises UsageError for a word that names no run, JournalError for a folder without one."""
    named.check(args.runs, args.parent)
    if args.jls and len(named.several(args.runs, args.parent)) > 1:
        raise UsageError("one run for --jls", "several", "export each into its own file")
    if args.jls and Path(args.jls).exists():
        raise UsageError(f"a new file {args.jls}", "one that exists", "remove it, or name another")


def command(args) -> int:
    """0 when all runs are in the lake, otherwise the exit code of the first that is not; the others are exported all
    the same."""
    show = Progress(args.quiet)
    runs = named.several(args.runs, args.parent)
    if args.jls or args.fio:
        check(args)
        return _files(args, runs, show)
    where = place.open_place(args.parquet)
    failed = []
    for i, run in enumerate(runs):
        show.show(f"export: run {i + 1} of {len(runs)}, {run.name}")
        try:
            done = write.export(run, where, args.lab or lab_of(parts.root(run)))
        except (SsdrigError, OSError) as error:
            if isinstance(error, OSError):  # the run's folder is gone meanwhile, or parts of it
                error = JournalError(f"to read {run}", error.strerror or str(error), "fix the folder")
            show.warn(error_lines(f"ssdrig export: {printable(str(run))}", error))
            failed.append(error.exit_code)
            continue
        if args.json:
            print(json.dumps(done._asdict()), flush=True)
        per_sample = f", {done.sample_bytes / done.samples:.2f} B a sample" if done.sample_bytes else ""
        what = f"{len(done.files)} files, {size(done.bytes)}{per_sample}" if done.new else "is there already"
        show.say(f"{done.run}: {what}")
    return failed[0] if failed else 0


def _files(args, runs: list[Path], show: Progress) -> int:
    """For other programs."""
    for run in runs:
        if args.jls:
            made = jls.export(run, Path(args.jls))
            summary = f"{made.path}: {max(made.samples.values(), default=0)} samples of {', '.join(made.samples)}"
            fields = made._asdict()
        else:
            folder = Path(args.fio) / run.name if len(runs) > 1 else Path(args.fio)
            of_fio = fio_names.export(run, folder)
            fields = {"folder": str(folder), **of_fio._asdict()}
            summary = f"{run.name}: {len(of_fio.files)} files in {folder}"
            for step, why in of_fio.left_out.items():
                show.warn(f"{step} is left out: {why}")
        show.say(summary)
        if args.json:
            print(json.dumps({"run": run.name, **fields}), flush=True)
    return 0


def lab_of(run: Path) -> str:
    """The host of a run, in letters that a path takes."""
    name = host_tag(journal.open_run(run)) or platform.node()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "lab"
