"""The output of a bench supply: `scpi:RESOURCE?ch=1`, by OUTP. It is read back, and the voltage that the supply itself
measures shows whether the output fell: below `LOW_SHARE` of its earlier value, within `FALL_S`."""

import re
import time

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import visa
from ssdrig.switch.command import timed
from ssdrig.switch.switch import Edge

EXAMPLE = "scpi:TCPIP::192.168.1.5::INSTR?ch=1"
OPTIONS = {"ch", "library"}
LOW_SHARE = 0.1
FALL_S = 5.0


class Output:
    """See switch.Switch."""

    def __init__(self, link: visa.Instrument, channel: str):
        self._link, self._of = link, f" CH{channel}" if channel else ""

    def off(self, at_ns: int | None = None) -> Edge:
        """`seen_low`: by the supply's own voltmeter."""
        before_V = self._volts()
        edge = timed(lambda: self._set("OFF"), at_ns)
        until = time.monotonic() + FALL_S
        while (low := self._volts() < LOW_SHARE * before_V) is False and time.monotonic() < until:
            time.sleep(0.02)
        return edge._replace(seen_low=low)

    def on(self) -> Edge:
        return timed(lambda: self._set("ON"))

    def _set(self, state: str) -> None:
        """Returns when the supply confirms it."""
        channel = f"{self._of.strip()}," if self._of else ""
        try:
            self._link.say(f"OUTP {channel}{state}")
            seen = self._link.ask(f"OUTP?{self._of}").upper()
        except OSError as error:
            raise RigError(f"a supply that switches {state.lower()}", str(error), "look at it") from error
        if seen not in ({"ON", "1"} if state == "ON" else {"OFF", "0"}):
            raise RigError(f"an output that is {state.lower()}", seen, "look at the supply: is its panel locked?")

    def _volts(self) -> float:
        try:
            return self._link.number(f"MEAS:VOLT?{self._of}")
        except OSError as error:
            raise RigError("a supply that measures its output", str(error), "look at it") from error


def check(rest: str) -> None:
    """Raises UsageError for another URL, ToolMissing without PyVISA."""
    _parts(rest)
    visa.require()


def opened(rest: str) -> Output:
    resource, library, channel = _parts(rest)
    visa.require()
    return Output(visa.Instrument(resource, library), channel)


def _parts(rest: str) -> tuple[str, str, str]:
    resource, asked = visa.parts(rest, OPTIONS, EXAMPLE)
    channel = asked.get("ch", "")
    if not re.fullmatch(r"\d{0,2}", channel):
        raise UsageError("ch= with a number", channel, EXAMPLE)
    return resource, asked.get("library", ""), channel
