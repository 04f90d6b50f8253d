"""`ssdrig record`: what programs do with a drive in use, as a run: I/O by the second, power, SMART and wear. Nothing is
purged, and nothing is written to the drive by ssdrig."""

import argparse
from pathlib import Path

from ssdrig.base.arguments import RIG, add_dry_run, whole_seconds
from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.drive import guard, inventory, uses
from ssdrig.drive.inventory import Drive
from ssdrig.load import application_log
from ssdrig.run import bench, dry_run, options, planned, run
from ssdrig.run.steps import record
from ssdrig.run.teardown import Stop, Teardown

PLAN = Path(__file__).resolve().parents[1] / "plan" / "record.toml"
EXAMPLES = (
    ("record --drive SERIAL --time 10m", "ten minutes of a drive in use"),
    ("record --drive SERIAL --rig /dev/ttyACM0 -- pgbench -T 600", "a benchmark, with the drive's power"),
    ("record --drive SERIAL --log bench.csv -- ./bench", "with what the benchmark logs by the second"),
    ("record --drive SERIAL --runs /dev/shm -- make -j8", "of the drive that this system runs from"),
    ("record --virtual sata-tlc -- fio job.fio", "a SIMULATED drive; job.fio: ioengine=nbd, uri=${SSDRIG_TARGET}"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("words", metavar="COMMAND", nargs="*", help="after --: is run, and recorded until it ends; it has your rights")
    add("--drive", metavar="DRIVE", help="serial or /dev/disk/by-id path (./ssdrig drives lists them); may be in use")
    add("--virtual", metavar="PRESET", help="a SIMULATED drive instead; COMMAND finds its URI in $SSDRIG_TARGET")
    add("--rig", metavar="PORT", help=f"{RIG} (default: no power measurement)")
    add("--meter", metavar="URL", help="another meter of its power, as of `run` (host/docs/use/meters.md)")
    add("--bmc", metavar="URL", help=options.BMC_POWER)
    add(
        "--time",
        type=whole_seconds,
        metavar="TIME",
        help="end after this long, e.g. 10m (default: with COMMAND, or Ctrl-C)",
    )
    add(
        "--smart-interval",
        type=whole_seconds,
        metavar="TIME",
        help="read SMART so often (default: first and last only)",
    )
    add(
        "--log",
        metavar="FILE",
        type=Path,
        action="append",
        help="also take the application's own log: CSV, TSV or blanks, a time (UTC, or s since COMMAND's start) "
        "and numbers in each line; it may be written by COMMAND",
    )
    runs = "parent folder of the run folders, on another disk than DRIVE (default ./%(default)s)"
    add("--runs", metavar="DIR", default="runs", help=runs)
    add("--influx", metavar="URL", help="http://host:port/DB to send points to (default: $SSDRIG_INFLUX)")
    add_dry_run(parser, "print what would be recorded; touch nothing")
    options.add_result(parser)


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for options that this machine cannot record with."""
    run.check(_as_run(args))
    record.check(args.words)
    if log := _log(args):
        application_log.check(log, bool(args.words))


def command(args: argparse.Namespace) -> int:
    """Exit codes as of `run`; a command that fails is a load that failed, and the recording is complete."""
    asked = _as_run(args)
    run.check_words(asked)
    record.check(args.words)
    if log := _log(args):
        application_log.check(log, bool(args.words))
    show = Progress(args.quiet)
    options.check(asked)
    return run.performed(asked, show, _on_real if asked.drive else run.on_virtual)[1]


def _as_run(args: argparse.Namespace) -> argparse.Namespace:
    """The options as `ssdrig run` has them. Raises UsageError."""
    if args.drive and args.virtual:
        raise UsageError("--drive or --virtual", "both", "leave one out")
    words = [str(PLAN)]
    for option in ("drive", "virtual", "rig", "meter", "bmc", "influx", "runs"):
        if getattr(args, option) is not None:
            words.append(f"--{option}={getattr(args, option)}")
    if args.time is not None:
        if args.time <= 0:
            raise UsageError("a time above 0 s", f"{args.time:g}", "correct --time, or leave it out")
        words.append(f"--set=time={args.time} s")
    if args.smart_interval is not None:
        words.append(f"--set=smart={args.smart_interval} s")
    asked = options.parse(words)
    for name in ("dry_run", "json", "jsonl", "quiet", "verbose", "words"):
        setattr(asked, name, getattr(args, name))
    asked.application_log = _log(args)
    return asked


def _log(args: argparse.Namespace) -> Path | None:
    """Raises UsageError for more than one."""
    logs = args.log or [None]
    if len(logs) > 1:
        raise UsageError("one --log", f"{len(logs)}", "leave one out, or let COMMAND write one table")
    return logs[0]


def _on_real(args, show: Progress, stop: Stop, teardown: Teardown) -> tuple[Path | None, dict | None]:
    prepared, budget, rated_bytes, drive, limits, (raw, assumed) = planned.on_real(args)
    assert drive is not None
    _refuse_own(args.runs, drive)
    dry_run.describe(args, prepared, budget, show, rated_bytes)
    if args.dry_run:
        guard.announce_refusals(drive, None, show.say, reads=True)
        return None, None
    with stop.held():
        held = bench.real(drive, limits, None, "auto", raw, args.rig, assumed, reads=True)
        bench_ = held.__enter__()
        teardown.push("release the drive", lambda: held.__exit__(None, None, None))
        for left in guard.left_changed(drive, drive.node):
            show.warn(f"warning: {left}")
        return run.carry_out(args, prepared, bench_, show, stop, budget)


def _refuse_own(runs: str, drive: Drive) -> None:
    """Raises UsageError where the run folder would be on the drive: its I/O would be recorded as the command's."""
    same = {other.name for other in inventory.all_drives() if other.key and other.key == drive.key} | {drive.name}
    if same & uses.disks_of_folder(runs):
        raise UsageError(
            f"a folder for the run that is not on {drive.node}",
            f"{runs}, which is: what ssdrig writes there would be recorded",
            "give --runs on another disk, or in memory: --runs /dev/shm",
        )
