"""The commands. Each is a module with add_arguments(parser) and command(args) -> exit code; only the one asked for
is imported. Results go to stdout, words for people to stderr."""

import argparse
import contextlib
import difflib
import errno
import importlib
import os
import signal
import sys

from ssdrig import __version__
from ssdrig.errors import INTERRUPTED, JournalError, OutputError, SsdrigError, UsageError, exit_codes
from ssdrig.progress import Progress
from ssdrig.terminal import PrintableOut, fill_closed_streams

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

COMMANDS = {
    "demo": ("ssdrig.demo", "run the standard test twice on a SIMULATED drive and make a report; no hardware needed"),
    "run": ("ssdrig.run.run", "run a test on a drive and keep all its data in a run folder"),
    "resume": ("ssdrig.review.resume", "go on with a run or a review that was killed, interrupted or rebooted"),
    "review": (
        "ssdrig.review.command",
        "test a drive with all plans of a level, one after the other, and make one page of it",
    ),
    "plans": ("ssdrig.run.plans", "list the plans, what each takes and writes on a drive; show or check one"),
    "runs": ("ssdrig.archive.command", "list and search the run folders"),
    "label": ("ssdrig.archive.label", "give run folders a title and tags, to find them by"),
    "drives": (
        "ssdrig.drive.command",
        "list the disks of this machine: what each is, whether it is safe to test, health, wear",
    ),
    "wear": (
        "ssdrig.drive.wear.command",
        "show the wear of a drive, or of a saved smartctl JSON, against its limits: P/E, TBW, warranty, retention",
    ),
    "watch": ("ssdrig.watch.command", "record SMART data of drives periodically"),
    "purge": (
        "ssdrig.drive.erase.command",
        "erase a drive (format, sanitize, security erase or discard) and verify that it is empty",
    ),
    "calibrate": (
        "ssdrig.drive.count_units",
        "determine the units of undocumented SMART counters with a sequential write of known size",
    ),
    "rig": (
        "ssdrig.rig.command",
        "the rig: flash its firmware, show what it measures, calibrate it, switch the drive's supply",
    ),
    "trace": ("ssdrig.trace.command", "make, convert, record, show and play traces: I/Os with their own times"),
    "report": ("ssdrig.report", "make figures and one HTML page from one or several run folders"),
    "push": ("ssdrig.influx.push", "send a run folder to InfluxDB, or finish sending it"),
    "virtual": (
        "ssdrig.virtual.serve",
        "serve the SIMULATED drive over NBD or NVMe/TCP; print its ledger; precondition it",
    ),
    "bench": ("ssdrig.benchmarks.__main__", "check the accuracy claims against their limits"),
}
OF_THE_CLONE = ("test", "setup")  # what the launcher does itself (start.py)


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns its exit code (errors.exit_codes)."""
    argv = sys.argv[1:] if argv is None else argv
    fill_closed_streams()
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # in the background of a terminal of `stty tostop`, words stop no run
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a locale without a sign is no reason to fail
    parser = argparse.ArgumentParser(
        prog="ssdrig",
        description="Measure what an SSD really does: power, I/O, wear and events on one time axis.",
        epilog="also: `ssdrig test` runs the tests, `ssdrig setup` only sets up. Exit codes: "
        + ", ".join(f"{code} {words}" for code, (words, _) in sorted(exit_codes().items()))
        + ".",
    )
    parser.add_argument("--version", action="version", version=f"ssdrig {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    module = None
    for name, (module_name, words) in COMMANDS.items():
        sub = commands.add_parser(name, help=words, description=words)
        if name == chosen:
            module = importlib.import_module(module_name)
            module.add_arguments(sub)
    if not argv:
        parser.print_help(sys.stderr)
        return UsageError.exit_code
    if chosen is not None and module is None:
        near = difflib.get_close_matches(chosen, [*COMMANDS, *OF_THE_CLONE], 1)
        do = f"did you mean `ssdrig {near[0]}`?" if near else "`ssdrig --help` lists the commands"
        print(f"ssdrig: expected a command; seen {chosen!r}; do: {do}", file=sys.stderr)
        return UsageError.exit_code
    args = parser.parse_args(argv)
    assert module is not None  # or parse_args has ended: a command is required
    say = Progress().warn
    try:
        with contextlib.redirect_stdout(PrintableOut(sys.stdout)):
            code = module.command(args) or 0
            sys.stdout.flush()
        return code
    except SsdrigError as error:
        say(f"ssdrig {args.command}: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say(f"ssdrig {args.command}: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return 0
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _drop_stdout()
        where = JournalError if error.filename else OutputError
        name, why = error.filename or "stdout", error.strerror or str(error)
        say(f"ssdrig {args.command}: {where(f'to write to {name}', why, 'make room, then repeat')}")
        return where.exit_code


def _drop_stdout() -> None:
    """What is still buffered goes nowhere: the interpreter would try it again at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
