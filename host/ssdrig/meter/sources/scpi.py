"""A bench supply, a multimeter or a power analyser: `scpi:RESOURCE?ch=1&rate=20&V=0.05%+10mV&A=0.2%+10mA`.

Voltage and current are asked for one after the other (`MEAS:VOLT?`, `MEAS:CURR?`), `rate` times a second (default 10).
`V` and `A` are the limits of the manual, percent of the reading and a fixed part; without them the uncertainty is null.
`age_ms`: how old a reading may be when it is given (default 100, as a supply that measures ten times a second).
`volts` and `amps` are other questions than these, of one with another language; `nominal` the rail's voltage."""

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import manual, meter, visa

EXAMPLE = "scpi:TCPIP::192.168.1.5::INSTR?ch=1&V=0.05%+10mV&A=0.2%+10mA"
OPTIONS = {"ch", "rate", "V", "A", "age_ms", "volts", "amps", "nominal", "library"}
RATE_HZ, FASTEST_HZ, SLOWEST_HZ = 10.0, 1000.0, 0.5
AGE_MS = 100.0
TRIES = 5  # questions before the first reading, which show how long one takes
SLOWER = 3.0  # than the slowest of them an answer may come; one that is later still is counted as lost
LEAST_NS = 5_000_000


class Asked(NamedTuple):
    """What a URL asks for."""

    resource: str
    library: str
    rate_Hz: float
    age_ns: int
    volts: str
    amperes: str
    accuracy: meter.Accuracy
    nominal_V: float | None


class Scpi:
    """See meter.Meter."""

    def __init__(self, asked: Asked):
        self._asked, self._link = asked, visa.Instrument(asked.resource, asked.library)
        self.name = self.serial = self._link.name
        self._slowest_ns = max(self._taken_ns() for _ in range(TRIES))

    def _taken_ns(self) -> int:
        begin_ns = time.monotonic_ns()
        self._read()
        return time.monotonic_ns() - begin_ns

    def _read(self) -> tuple[float, float]:
        return self._link.number(self._asked.volts), self._link.number(self._asked.amperes)

    def rails(self) -> list[meter.Rail]:
        return [meter.Rail("supply", 1 / self._asked.rate_Hz, self._asked.accuracy, 0.0, self._asked.nominal_V)]

    def clock(self) -> meter.Clock:
        return meter.Clock(self._asked.age_ns + self._half_ns)

    @property
    def _half_ns(self) -> int:
        return max(LEAST_NS, round(SLOWER * self._slowest_ns / 2))

    def blocks(self) -> Iterator[meter.Block]:
        for block in meter.polled(0, 1 / self._asked.rate_Hz, self._read):
            yield block._replace(bound_ns=block.bound_ns + self._asked.age_ns)

    def close(self) -> None:
        self._link.close()


def check(rest: str) -> None:
    """Raises UsageError for another kind of URL, ToolMissing without PyVISA."""
    _asked(rest)
    visa.require()


def opened(rest: str) -> Scpi:
    asked = _asked(rest)
    visa.require()
    try:
        return Scpi(asked)
    except OSError as error:
        raise RigError("an instrument that measures", str(error), EXAMPLE) from error


def _asked(rest: str) -> Asked:
    resource, asked = visa.parts(rest, OPTIONS, EXAMPLE)
    channel = asked.get("ch", "")
    if not re.fullmatch(r"\d{0,2}", channel):
        raise UsageError("ch= with a number", channel, EXAMPLE)
    of = f" CH{channel}" if channel else ""
    numbers = {}
    for key, usual, low, high in (
        ("rate", RATE_HZ, SLOWEST_HZ, FASTEST_HZ),
        ("age_ms", AGE_MS, 0.0, 1000.0),
        ("nominal", 0.0, 0.0, 80.0),
    ):
        try:
            numbers[key] = float(asked.get(key, usual))
        except ValueError:
            numbers[key] = -1.0
        if not low <= numbers[key] <= high:
            raise UsageError(f"{key}= from {low:g} to {high:g}", asked[key], EXAMPLE)
    volts, amperes = asked.get("volts", f"MEAS:VOLT?{of}"), asked.get("amps", f"MEAS:CURR?{of}")
    accuracy = manual.accuracy(asked, EXAMPLE, "no limits of the instrument's manual were given")
    age_ns, library = round(numbers["age_ms"] * 1e6), asked.get("library", "")
    return Asked(resource, library, numbers["rate"], age_ns, volts, amperes, accuracy, numbers["nominal"] or None)
