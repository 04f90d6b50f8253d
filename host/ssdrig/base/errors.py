"""What can go wrong, one class per matter. Each error has three parts: expected, found, hint;
the exit code of the command is the class's. Exit 1 is left to defects, 2 to argparse, 130 to Ctrl-C."""

import re
from collections.abc import Iterable


class SsdrigError(Exception):
    """Base of all errors that are shown to the user. Never raised itself."""

    exit_code = 1

    def __init__(self, expected: str, seen: str, do: str):
        super().__init__(f"expected {expected}; seen {seen}; do: {do}")
        self.expected, self.seen, self.do = expected, seen, do


def reason(error: BaseException) -> str:
    """What an exception reports, as a reason: KeyError holds the key alone, others may have no text."""
    if isinstance(error, KeyError):
        return f"it has no {', '.join(map(repr, error.args))}"
    return str(error) or type(error).__name__


class UsageError(SsdrigError):
    """The command's words do not fit together."""

    exit_code = 2


class UnsafeTarget(SsdrigError):
    """The target must not be written to."""

    exit_code = 3


class ExchangedDrive(UnsafeTarget):
    """Another drive is where the one was that may be written."""


class ChangedDrive(UnsafeTarget):
    """The drive that may be written has come back with another capacity, or read-only. `facts`: of health.State."""

    def __init__(self, expected: str, seen: str, do: str, **facts: int | bool):
        super().__init__(expected, seen, do)
        self.facts = facts


class DriveError(SsdrigError):
    """The drive is lost, refuses, or did not execute a command."""

    exit_code = 4


class RigError(SsdrigError):
    """The instrument is lost, silent, or of another protocol version."""

    exit_code = 5


class UploadIncomplete(SsdrigError):
    """All is measured and kept, but not all of it has reached InfluxDB yet."""

    exit_code = 6


class OutputError(SsdrigError):
    """The result is known but cannot be written to stdout."""

    exit_code = 7


class JournalError(SsdrigError):
    """A run folder is missing, damaged, in use, of another schema version, or takes no more: the disk is full."""

    exit_code = 8


class ToolMissing(SsdrigError):
    """A program that ssdrig calls is not installed or too old."""

    exit_code = 9


class LoadError(SsdrigError):
    """fio failed, hung, or wrote what cannot be read."""

    exit_code = 10


class PromiseBroken(SsdrigError):
    """The drive broke a promise about a loss of power. Each accusation has its proof in the run folder."""

    exit_code = 11


class Suspicion(SsdrigError):
    """No guarantee is proven broken, but something looks wrong after a power loss. The run folder lists what would
    settle it."""

    exit_code = 12


class ControlFailed(SsdrigError):
    """A control session failed: the test set-up is at fault, so the drive is not judged."""

    exit_code = 13


class ManifestRefused(SsdrigError):
    """The manifest of a sealed drive is missing, altered, or from another drive: its contents cannot be judged."""

    exit_code = 14


class DataLost(SsdrigError):
    """Blocks that were sealed no longer hold their data. The run folder has each of them."""

    exit_code = 15


class RailTripped(SsdrigError):
    """The rig opened a rail to protect the drive: more current or voltage than its board.json allows. It stays open
    until you clear it."""

    exit_code = 16


class PowerCut(SsdrigError):
    """The drive's power was cut because the run's owner asked for it, and the run ended there."""

    exit_code = 17


class NotPaired(SsdrigError):
    """The rig, or the switch, does not act on the drive that is tested. No cut is made, and the drive gets no
    verdict."""

    exit_code = 18


class SlotError(SsdrigError):
    """The host does not find a drive that has its power: its slot, adapter or kernel is at fault, and the drive gets no
    verdict."""

    exit_code = 19


class LimitMissed(SsdrigError):
    """`check`: a figure misses a limit beyond its uncertainty, or the run's own verdict is against the drive."""

    exit_code = 20


class CannotTell(SsdrigError):
    """`check` or `compare`: no verdict, because of the uncertainty, or because a figure is not known or not to be
    trusted. `run powerloss`: whether the drive was ready in time, because this host may have taken the time."""

    exit_code = 21


class NoAnswer(SsdrigError):
    """A question was not answered: standard input ended, or the text is not an answer."""

    exit_code = 22


INTERRUPTED = 130
TO_ITS_END = "the step to its end"  # the `expected` of a PowerCut


def worst(codes: Iterable[int]) -> int:
    """The exit code of a command that did several things, from theirs: the highest of what went wrong; that someone
    ended it counts only where nothing else did."""
    seen = {0, *codes}
    return max(seen - {INTERRUPTED}) or max(seen)


def exit_codes() -> dict[int, tuple[str, str]]:
    """Exit code -> (a word or two, the meaning), for every code that a command ends with."""
    codes = {
        0: ("ok", "Done, and every promise of the command was kept."),
        1: ("defect", "A defect of ssdrig, or a limit missed in `./ssdrig selfcheck`."),
        INTERRUPTED: ("interrupted", "Ctrl-C, SIGTERM, or the terminal hung up. The teardown was run."),
    }
    for error in SsdrigError.__subclasses__():
        words = re.sub(r"(?<!^)([A-Z])", r" \1", error.__name__.removesuffix("Error")).lower()
        codes[error.exit_code] = (words, " ".join((error.__doc__ or "").split()))
    return codes


def words_of(error: BaseException) -> str:
    """An error of ours as it is, any other with its class."""
    return str(error) if isinstance(error, SsdrigError) else f"{type(error).__name__}: {error}"


def by_a_person(why) -> bool:
    """Whether a step ended by request, by a signal or a cut, rather than by a failure. why: from words_of()."""
    return str(why).startswith(KeyboardInterrupt.__name__) or TO_ITS_END in str(why)
