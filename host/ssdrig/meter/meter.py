"""The seam of meters: what measures the power of a drive.

A meter reports which rails it has and how accurate they are (`rails`), by how much its times may be off (`clock`), and
gives its readings (`blocks`). Each is a module of sources/ with a function `opened`, named by the scheme of its URL
(`--meter hwmon:/sys/class/hwmon/hwmon3`): it is known because the file is there. bridge.py carries its readings
into the run folder as the frames that our own board sends, so that all that reads a run reads any meter.

Accuracy is one of three: the budget of a sensor chip with a shunt (uncertainty.py), limits of a manual in percent of
the reading and fixed by range, or not known, with the reason. Of the last all figures stand and their uncertainty is
null.
"""

import importlib
import pkgutil
import time
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import NamedTuple, Protocol

from ssdrig.base.errors import UsageError
from ssdrig.base.words import do_you_mean
from ssdrig.meter import sources

BOARD = "pico"  # the scheme of a word that has none


class Limit(NamedTuple):
    """A range: a reading of at most `upto` is off by at most `percent` of itself and `fixed` (V, A or W)."""

    upto: float
    percent: float
    fixed: float = 0.0


class Accuracy(NamedTuple):
    """Limits (+-) of a rail: `volts` and `amperes`, or `watts` alone; or a chip with its shunt; or why not known."""

    volts: tuple[Limit, ...] = ()
    amperes: tuple[Limit, ...] = ()
    watts: tuple[Limit, ...] = ()
    chip: str = ""  # one of chips.CHIPS
    shunt_uOhm: int = 0
    unknown: str = ""


class Rail(NamedTuple):
    """One supply line that a meter measures."""

    name: str
    period_s: float  # from one reading to the next
    accuracy: Accuracy
    seen: float  # share of the time that the readings cover, 0 to 1; 0 where it is not known
    nominal_V: float | None = None
    most_V: float = 80.0  # largest readings; without a known digit, the steps in which they are stored
    most_A: float = 16.0  # follow from them
    digit_V: float = 0.0  # last digit of what the meter gives
    digit_A: float = 0.0


class Clock(NamedTuple):
    """Times on the host's CLOCK_MONOTONIC, each off by at most `bound_ns`. A reading with a larger error is
    dropped, and counted as lost."""

    bound_ns: int


class Block(NamedTuple):
    """Readings of one rail that follow each other without a loss. `missed`: readings lost before the first one;
    `bound_ns`: by how much their times may be off."""

    rail: int
    t_ns: Sequence[int]
    volts: Sequence[float]
    amperes: Sequence[float]
    missed: int = 0
    bound_ns: int = 0


class Meter(Protocol):
    """What measures. `name`: make and model, `serial`: by which the instrument is known again, "" for none."""

    name: str
    serial: str

    def rails(self) -> list[Rail]: ...
    def clock(self) -> Clock: ...
    def blocks(self) -> Iterator[Block]:
        """Readings from now on, without an end. Raises OSError when the instrument is gone."""
        ...

    def close(self) -> None: ...


def names() -> list[str]:
    """The schemes that are known."""
    return sorted(module.name for module in pkgutil.iter_modules(sources.__path__))


def split(url: str) -> tuple[str, str]:
    """Scheme and the rest of a meter's URL; a serial port is our board, and so is one on another machine
    (tcp://HOST:PORT)."""
    scheme, colon, rest = url.partition(":")
    return (scheme, rest) if colon and scheme.isidentifier() and not rest.startswith("//") else (BOARD, url)


def is_rig(url: str) -> bool:
    """Whether it is a bare serial port: our board as a meter and a switch in one."""
    return split(url) == (BOARD, url)


def source(scheme: str) -> ModuleType:
    """The module of a scheme. Raises UsageError."""
    if scheme not in names():
        do = do_you_mean(scheme, names())
        raise UsageError(f"a meter that is one of {', '.join(f'{name}:' for name in names())}", f"{scheme}:", do)
    return importlib.import_module(f"{sources.__name__}.{scheme}")


def check(url: str) -> None:
    """Raises UsageError for a meter that this machine cannot have: no such scheme, or what its source refuses."""
    scheme, rest = split(url)
    if hasattr(of := source(scheme), "check"):
        of.check(rest)


def of_drive(url: str, controller: str | None, serial: str) -> str:
    """The URL of a meter for a run on this drive: one that the drive itself is needs its controller and serial.

    url: as it was given.
    controller: /dev/nvme0; None of a drive without.
    Raises UsageError."""
    scheme, rest = split(url)
    made = getattr(source(scheme), "of_drive", None)
    return f"{scheme}:{made(rest, controller, serial)}" if made else url


def opened(url: str) -> Meter:
    """The meter of a URL, other than our board. Raises UsageError, RigError, ToolMissing."""
    scheme, rest = split(url)
    return source(scheme).opened(rest)


def polled(rail: int, period_s: float, read: Callable[[], tuple[float, float]]) -> Iterator[Block]:
    """Readings that are asked for one at a time, `period_s` apart: read() gives V and A. A reading belongs to the
    middle of its question; a moment that a busy host passed over is counted as missed."""
    begin_ns, period_ns, next_ = time.monotonic_ns(), round(period_s * 1e9), 0
    while True:
        due_ns = begin_ns + next_ * period_ns
        now_ns = time.monotonic_ns()
        if now_ns < due_ns:
            time.sleep((due_ns - now_ns) / 1e9)
        asked_ns = time.monotonic_ns()
        passed = max(0, (asked_ns - due_ns) // period_ns)  # moments that went by before this one
        volts, amperes = read()
        answered_ns = time.monotonic_ns()
        middle_ns, half_ns = (asked_ns + answered_ns) // 2, (answered_ns - asked_ns + 1) // 2
        yield Block(rail, (middle_ns,), (volts,), (amperes,), passed, half_ns)
        next_ += passed + 1
