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
from ssdrig.errors import SsdrigError, ToolMissing
from ssdrig.setup.needs import ROOT, STAMP, VENV, environment_stands, extras_missing, in_environment, missing, say
from ssdrig.terminal import error_lines, fill_closed_streams


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
        needs = "" if helping else command
        if missing(needs) or not environment_stands() or extras_missing(needs):
            from ssdrig.setup import provision

            provision.set_up(needs)
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
    return become(command, argv)


def become(command: str, argv: list[str]) -> int:
    """Run the command in the environment, which is held for as long: here if this is its Python, else in its Python."""
    os.environ["PYTHONPATH"] = str(ROOT / "host")
    held = os.open(STAMP.resolve(), os.O_RDONLY)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(held, fcntl.LOCK_SH)  # provision.sweep removes only environments that nobody holds
    if command != "test" and in_environment():
        return cli.main(argv)
    os.set_inheritable(held, True)
    python = str(VENV.resolve() / "bin/python")
    if command == "test":
        os.chdir(ROOT)
        words = argv[:]
        words.remove("test")
        os.execv(python, [python, "-m", "pytest", "-n", "5", "--dist", "loadscope", *words])
    os.execv(python, [python, "-P", "-m", "ssdrig", *argv])
