"""A USB hub that switches its ports: `usb:LOCATION.PORT`, such as usb:1-1.4, the drive's own path in /sys/bus/usb, by
uhubctl. A hub without the switch may claim to have one, so a campaign checks whether the drive disappeared."""

import re
import shutil

from ssdrig.base.errors import ToolMissing, UsageError
from ssdrig.switch.command import carry_out, timed
from ssdrig.switch.switch import Edge

WORD = re.compile(r"(\d+-\d+(?:\.\d+)*)\.(\d+)|(\d+)-(\d+)")


class Port:
    """See switch.Switch."""

    def __init__(self, location: str, port: str):
        self._words = f"uhubctl -l {location} -p {port} -r 1 -a"

    def off(self, at_ns: int | None = None) -> Edge:
        return timed(lambda: carry_out(f"{self._words} off", "--switch"), at_ns)

    def on(self) -> Edge:
        return timed(lambda: carry_out(f"{self._words} on", "--switch"))


def check(rest: str) -> None:
    """Raises UsageError for a word that is not a port, ToolMissing without uhubctl."""
    opened(rest)


def opened(rest: str) -> Port:
    match = WORD.fullmatch(rest)
    if not match:
        raise UsageError("--switch usb:HUB.PORT", rest or "nothing", "see the ports: uhubctl; e.g. usb:1-1.4")
    if shutil.which("uhubctl") is None:
        raise ToolMissing("uhubctl", "not installed", "sudo apt-get install uhubctl")
    return Port(match[1] or match[3], match[2] or match[4])
