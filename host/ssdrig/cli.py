"""The commands. Each is a module with add_arguments(parser), command(args) -> exit code, and EXAMPLES; only the one
asked for is imported. Results go to stdout, words for people to stderr."""

import argparse
import contextlib
import errno
import importlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NoReturn

from ssdrig import __version__
from ssdrig.base import owner
from ssdrig.base.arguments import WIDEST, Parser, examples
from ssdrig.base.errors import INTERRUPTED, JournalError, OutputError, SsdrigError, ToolMissing, UsageError, exit_codes
from ssdrig.base.progress import Progress
from ssdrig.base.shipped import INSTALLED, as_called, missing
from ssdrig.base.terminal import NO_LIMIT, PrintableOut, error_lines, fill_closed_streams, printable, width, wrapped
from ssdrig.base.words import do_you_mean

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
NO_RIGHT = (errno.EACCES, errno.EPERM)
NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP)  # of words that cannot be one
ABOUT = "Measure what an SSD really does: power, I/O, wear and events on one time axis."

COMMANDS = {
    "demo": (
        "ssdrig.commands.demo",
        "run the standard test twice on a SIMULATED drive and make a report; no hardware needed",
    ),
    "drives": (
        "ssdrig.commands.drives",
        "list this machine's disks: model, serial, health, wear, and whether each is safe to test",
    ),
    "wear": (
        "ssdrig.commands.wear",
        "show the wear of a drive, or of a saved smartctl JSON, against its limits: P/E, TBW, warranty, retention",
    ),
    "watch": ("ssdrig.commands.watch", "record SMART data of drives periodically"),
    "record": (
        "ssdrig.run.record",
        "record I/O, power and SMART of a drive in use, or while a command runs; writes nothing to it",
    ),
    "read-map": (
        "ssdrig.commands.read_map",
        "read a drive, which may be in use, and show where it is slow; writes nothing to it",
    ),
    "purge": (
        "ssdrig.commands.purge",
        "erase a drive (format, sanitize, security erase or discard) and verify that it is empty",
    ),
    "units": (
        "ssdrig.commands.units",
        "determine the units of undocumented SMART counters with a sequential write of known size",
    ),
    "plans": ("ssdrig.commands.plans", "list the test plans with their time and bytes written; show or check one"),
    "run": ("ssdrig.run.run", "run a test on a drive and store all its data in a run folder"),
    "review": ("ssdrig.commands.review", "run all plans of a level on a drive, one after the other, and make one page"),
    "resume": ("ssdrig.run.review.resume", "continue a run or a review after a kill, an interrupt or a reboot"),
    "runs": ("ssdrig.commands.runs", "list and search the run folders"),
    "import": ("ssdrig.commands.imports", "turn other instruments' recordings into a run, or add their power to a run"),
    "label": ("ssdrig.commands.label", "give run folders a title and tags for searches"),
    "serve": ("ssdrig.commands.serve", "show the current run, the archive and the drives in a browser"),
    "note": ("ssdrig.commands.note", "add a timed note to a run, such as 'fan off'; its report shows it"),
    "report": ("ssdrig.report", "compute figures and make one HTML page from one or several run folders"),
    "library": (
        "ssdrig.commands.library",
        "exchange results of drives as files: export them, import those of others, list them",
    ),
    "check": ("ssdrig.commands.check", "check runs against limits: pass, fail or cannot tell; for people and CI"),
    "compare": (
        "ssdrig.commands.compare",
        "compare two runs, or two groups of repeats: differences and their uncertainty",
    ),
    "export": ("ssdrig.publish.lake.export", "write run folders as Parquet into a folder or an S3 bucket"),
    "query": ("ssdrig.publish.lake.query", "query run folders, or a lake of exported ones, in SQL"),
    "push": ("ssdrig.publish.influx.push", "send a run folder to InfluxDB, or finish sending it"),
    "trace": ("ssdrig.commands.trace", "generate, convert, record, show and play I/O traces"),
    "rig": (
        "ssdrig.commands.rig",
        "flash the rig's firmware, show its readings, calibrate it, switch the drive's supply",
    ),
    "hardware": (
        "ssdrig.commands.hardware",
        "make the files to order the boards: gerbers, placement, bill of materials",
    ),
    "virtual": (
        "ssdrig.virtual.serve",
        "serve the SIMULATED drive over NBD or NVMe/TCP; print its ledger; precondition it",
    ),
    "completion": ("ssdrig.commands.completion", "print the shell's completion script for commands and options"),
    "selfcheck": ("selfcheck.__main__", "check the accuracy claims against their limits"),
}
OF_THE_CLONE = {  # what the launcher does itself (start.py)
    "test": "set up what is missing and run all tests (pytest's arguments may follow)",
    "setup": "install everything that the other commands need, and run nothing",
}
GROUPS = {  # of the help; a command of none of them comes last
    "Try it": ("demo",),
    "Drives": ("drives", "wear", "watch", "record", "read-map", "purge", "units"),
    "Tests": (
        "plans",
        "run",
        "review",
        "resume",
        "runs",
        "import",
        "label",
        "note",
        "serve",
        "report",
        "push",
        "trace",
    ),
    "Verdicts": ("check", "compare"),
    "Many runs": ("query", "export", "library"),
    "Rig": ("rig",),
    "For developers": ("virtual", "hardware", "selfcheck", "completion", "test", "setup"),
}
FIRST = (
    ("demo", "two runs on a SIMULATED drive and their report, three minutes"),
    ("wear --smartctl FILE", "wear from a saved `smartctl --json=cv -x`"),
    ("run consistency --virtual sata-tlc -n", "a test's steps, bytes written and duration"),
)
DOCS = (
    "Docs: README.md and host/docs/ of ssdrig's repository."
    if INSTALLED
    else "Start with README.md; details are in host/docs/, every option in host/docs/reference/commands.md."
)


def normal(argv: list[str]) -> list[str]:
    """The words, with `COMMAND --help` for `help COMMAND`."""
    at = next((i for i, word in enumerate(argv) if not word.startswith("-")), None)
    if at is None:
        return argv
    if argv[at] == "help":
        return normal([*argv[:at], *argv[at + 1 : at + 2], "--help"])
    return argv


class Top(Parser):
    """Its help shows the commands in groups. It knows the command that was asked for, or none, so its errors list
    none."""

    def format_help(self) -> str:
        return as_called(help_text(min(shutil.get_terminal_size().columns, WIDEST)))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            raise UsageError("a command", repr(value), "`ssdrig --help` lists the commands")
        super()._check_value(action, value)


def help_text(columns: int) -> str:
    """What ssdrig is, three commands to try, the commands in groups, where the docs are, exit codes."""
    known = {name: words for name, (_, words) in COMMANDS.items()} | ({} if INSTALLED else OF_THE_CLONE)
    grouped = {name for names in GROUPS.values() for name in names}
    groups = {**GROUPS, "More": tuple(name for name in known if name not in grouped)}
    width = max(map(len, known)) + 4
    out = [wrapped(ABOUT, columns), "", "usage: ./ssdrig COMMAND [ARGUMENT ...]", "       ./ssdrig COMMAND --help", ""]
    out += [examples(FIRST).replace("examples:", "first steps:")]
    for group, names in groups.items():
        if names := [name for name in names if name in known]:
            out += ["", f"{group}:"]
            out += [wrapped(known[name], columns, f"  {name}".ljust(width), " " * width) for name in names]
    codes = ", ".join(f"{code} {words}" for code, (words, _) in sorted(exit_codes().items()))
    out += ["", wrapped(DOCS, columns), "", wrapped(f"Exit codes: {codes}.", columns)]
    return "\n".join(out) + "\n"


def parser_of(commands: Mapping[str, ModuleType]) -> Top:
    """The parser of these commands alone: making one for a command that nobody asked for costs time at each start."""
    parser = Top(prog="ssdrig", description=ABOUT)
    parser.add_argument("--version", action="version", version=f"ssdrig {__version__}")
    below = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for name, module in commands.items():
        words = COMMANDS[name][1]
        sub = below.add_parser(name, help=words, description=f"{words[:1].upper()}{words[1:]}.")
        module.add_arguments(sub)
        if lines := getattr(module, "EXAMPLES", ()):
            sub.epilog = examples(lines)
    return parser


def parsed(argv: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    """The module of the command in argv, and its arguments, which its check(), if it has one, has passed: what is wrong
    with them whatever the machine has. Raises UsageError and others of SsdrigError; SystemExit after help."""
    chosen = next(word for word in argv if not word.startswith("-"))
    module = importlib.import_module(COMMANDS[chosen][0])
    args = parser_of({chosen: module}).parse_args(argv)
    if check := getattr(module, "check", None):
        check(args)
    return module, args


def main(argv: list[str] | None = None) -> int:
    """Run one command. Returns its exit code (errors.exit_codes)."""
    argv = normal(sys.argv[1:] if argv is None else argv)
    fill_closed_streams()
    if hasattr(signal, "SIGTTOU"):
        signal.signal(
            signal.SIGTTOU, signal.SIG_IGN
        )  # in the background of a terminal of `stty tostop`, words stop no run
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a locale without a sign is no reason to fail
    if not argv:
        print(as_called(help_text(min(shutil.get_terminal_size().columns, WIDEST))), end="", file=sys.stderr)
        return UsageError.exit_code
    chosen = next((word for word in argv if not word.startswith("-")), None)
    prefix, say = "ssdrig", Progress().warn
    try:
        if INSTALLED and chosen in OF_THE_CLONE:
            raise missing(chosen)
        if chosen is not None and chosen not in COMMANDS:
            near = do_you_mean(chosen, [*COMMANDS, *OF_THE_CLONE])
            do = near if "?" in near else "`ssdrig --help` lists the commands"
            raise UsageError("a command", repr(chosen), do)
        prefix = f"ssdrig {chosen}" if chosen else prefix
        module = importlib.import_module(COMMANDS[chosen][0]) if chosen else None
        args = parser_of({chosen: module} if chosen and module else {}).parse_args(argv)
        assert module is not None  # or parse_args has raised: a command is required
        if whole := getattr(module, "WHOLE", None):
            every = {name: importlib.import_module(where) for name, (where, _) in COMMANDS.items()}
            setattr(args, whole, parser_of(every))
        columns = NO_LIMIT if getattr(args, "verbatim", False) else width()
        verdict = getattr(module, "VERDICT", False)
        out = (VerdictOut if verdict else PrintableOut)(sys.stdout, columns)
        with contextlib.redirect_stdout(out), owner.of_new_files():
            try:
                code = module.command(args) or 0
            finally:
                if verdict:
                    out.flush()
            out.flush()
        return code
    except SsdrigError as error:
        say(error_lines(prefix, error))
        return error.exit_code
    except ModuleNotFoundError as error:
        if not INSTALLED or not error.name:
            raise  # start.py sets a clone up and starts again
        say(error_lines(prefix, missing(error.name.partition(".")[0])))
        return ToolMissing.exit_code
    except KeyboardInterrupt:
        say(f"{prefix}: interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return 0
    except MemoryError:  # such as a run folder's file with a hole of terabytes
        do = "look for a file that is far too long in what it reads"
        say(error_lines(prefix, JournalError("enough memory for what this command reads", "no more of it", do)))
        return JournalError.exit_code
    except OSError as error:
        if error.errno in NO_PATH:
            path = str(error.filename or "")
            seen = f"{error.strerror}: {path[:60]}{'…' if len(path) > 60 else ''}"
            say(error_lines(prefix, UsageError("the path of a file or a folder", seen, "correct it")))
            return UsageError.exit_code
        if error.errno == errno.ENOENT and not error.filename and _is_nowhere():
            say(
                error_lines(
                    prefix, UsageError("a current folder that is there", "one that was removed", "cd elsewhere")
                )
            )
            return UsageError.exit_code
        if error.errno in NO_RIGHT and error.filename:
            do = "ask its owner for the right, or name another"
            seen = error.strerror or str(error)
            say(error_lines(prefix, JournalError(f"to read and write {printable(str(error.filename))}", seen, do)))
            return JournalError.exit_code
        if error.errno not in NO_ROOM:
            raise
        _drop_stdout()
        where = JournalError if error.filename else OutputError
        name, why = error.filename or "stdout", error.strerror or str(error)
        say(error_lines(prefix, where(f"to write to {name}", why, "make room, then repeat")))
        return where.exit_code


def installed() -> NoReturn:
    """The program of an installed package: run this process's words, in the environment that the launcher of a clone
    sets."""
    places = [os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"]  # smartctl, nvme, hdparm
    os.environ["PATH"] = os.pathsep.join(filter(None, places)) if os.name == "posix" else places[0]
    os.environ["PYTHONSAFEPATH"] = "1"  # no code of the current folder is run, nor by Python's children
    for variable in ("PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT"):
        os.environ.pop(variable, None)
    try:
        code = main()
    except KeyboardInterrupt:  # before or after what main() catches
        code = INTERRUPTED
    raise SystemExit(code)


def _is_nowhere() -> bool:
    """Whether the current folder was removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


class VerdictOut(PrintableOut):
    """stdout of a command whose exit code is a verdict (VERDICT of its module): without a reader, as after the match of
    a `grep -q`, the command goes on to its code."""

    def write(self, text: str) -> int:
        with _or_nowhere():
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with _or_nowhere():
            super().flush()


@contextlib.contextmanager
def _or_nowhere() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _drop_stdout()


def _drop_stdout() -> None:
    """What is still buffered goes nowhere: the interpreter would try it again at its end, and complain."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
