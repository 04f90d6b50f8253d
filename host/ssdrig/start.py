"""Starts a command in the clone's environment once all that it needs is there; what is missing is set up first.

The launcher ./ssdrig runs this in the environment's own Python or, where there is none, in the machine's: standard
library only. A start with everything in place changes nothing.
"""

import contextlib
import fcntl
import os
import signal
import sys
from typing import NoReturn

from ssdrig import cli
from ssdrig.base.errors import SsdrigError, ToolMissing, UsageError
from ssdrig.base.terminal import error_lines, fill_closed_streams
from ssdrig.setup import absent
from ssdrig.setup.needs import ROOT, STAMP, VENV, environment_stands, in_environment, needs_packages, say, stands


def main() -> NoReturn:
    """Carry out the words of this process; exits with the command's exit code."""
    fill_closed_streams()
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # the launcher's, while we were imported
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = start(sys.argv[1:])
    except KeyboardInterrupt:  # between what start() and the command catch
        say("interrupted")
        code = 130
    raise SystemExit(code)


def start(argv: list[str]) -> int:
    """Set up what the command in argv lacks, then become it. Returns its exit code."""
    argv = cli.normal(argv)
    command = next((word for word in argv if not word.startswith("-")), "")
    helping = bool({"-h", "--help"} & set(argv))
    if command not in cli.COMMANDS and command not in cli.OF_THE_CLONE:
        return cli.main(argv)  # help, or wrong words: needs nothing
    try:
        if command == "setup":
            from ssdrig.setup import provision

            return provision.command(argv)
        needs = "" if helping and command != "test" else command
        if not stands(needs) or not environment_stands():
            needs = checked(command, argv)
            if not stands(needs):
                from ssdrig.setup import provision

                provision.set_up(needs)
    except Done as done:
        return done.code
    except SsdrigError as error:
        print(error_lines("ssdrig", error), file=sys.stderr, flush=True)
        return error.exit_code
    except OSError as error:
        refused = ToolMissing(f"to set up in {ROOT}", str(error), "make room, or clone where you may write")
        print(error_lines("ssdrig", refused), file=sys.stderr, flush=True)
        return refused.exit_code
    except KeyboardInterrupt:
        say("set-up interrupted; the next start resumes it")
        return 130
    if not needs_packages(needs) and not environment_stands():
        hold()
        return without_packages(command, argv)
    return become(command, argv)


class Done(Exception):
    """The words were wrong, or help was asked for, which has been printed."""

    def __init__(self, code: int):
        self.code = code


def checked(command: str, argv: list[str]) -> str:
    """The name under which needs.py knows what this start needs: the command, or "" for nothing.

    Nothing is installed yet: its words are checked with stand-ins for what is missing. Raises Done."""
    if command in cli.OF_THE_CLONE:
        for word in argv[argv.index(command) + 1 :]:
            path = word.partition("::")[0]
            if path.startswith("tests") and "/" in path and not (ROOT / path).exists():
                refused = UsageError("a file of tests", f"{path!r}, which does not exist", "name one in tests/")
                print(error_lines(f"ssdrig {command}", refused), file=sys.stderr, flush=True)
                raise Done(refused.exit_code)
        return command
    try:
        with absent.stood_in_for():
            module, args = cli.parsed(argv)
            asks = getattr(module, "asks_the_machine", None)
            return command if asks is None or asks(args) else ""
    except ToolMissing:  # what the set-up installs
        return command
    except SsdrigError as error:
        print(error_lines(f"ssdrig {command}", error), file=sys.stderr, flush=True)
        raise Done(error.exit_code) from None
    except SystemExit as end:  # of help
        raise Done(int(end.code or 0)) from None
    except Exception:  # a value of a package that is not there, or of a drive: the command itself finds out
        return command


def without_packages(command: str, argv: list[str]) -> int:
    """Run the command in this Python; where it imports a package all the same, set up and start again in there."""
    try:
        return cli.main(argv)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in absent.NAMES:
            raise
    from ssdrig.setup import provision

    try:
        provision.set_up("report")
    except SsdrigError as error:
        print(error_lines("ssdrig", error), file=sys.stderr, flush=True)
        return error.exit_code
    return become(command, argv)


def become(command: str, argv: list[str]) -> int:
    """Run the command in the environment, which is held for as long: here if this is its Python, else in its Python."""
    os.environ["PYTHONPATH"] = str(ROOT / "host")
    held = hold()
    if command != "test" and in_environment():
        return cli.main(argv)
    if held is not None:
        os.set_inheritable(held, True)
    python = str(VENV.resolve() / "bin/python")
    if command == "test":
        os.chdir(ROOT)
        words = argv[:]
        words.remove("test")
        os.environ.pop("PYTHONSAFEPATH", None)  # scripts of the tests import modules of their folder
        os.execv(python, [python, "-m", "pytest", "-n", "5", "--dist", "loadscope", *words])
    os.execv(python, [python, "-P", "-m", "ssdrig", *argv])


def hold() -> int | None:
    """Hold the environment that .venv leads to as long as this process lives; the descriptor, None without one."""
    with contextlib.suppress(OSError):  # none, or a file system without locks
        held = os.open(STAMP.resolve(), os.O_RDONLY)
        with contextlib.suppress(OSError):
            # provision.sweep removes only environments that no process holds; who else may lock it is not waited for
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return held
    return None
