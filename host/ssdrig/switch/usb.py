"""A USB hub that switches its ports: `usb:LOCATION.PORT`, such as usb:1-1.4, the drive's own path in /sys/bus/usb, by
uhubctl. A hub without the switch may claim to have one, so a campaign checks whether the drive disappeared."""

import os
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


def feeds(rest: str, root: str | os.PathLike = "/") -> tuple[str, ...]:
    """See switch.feeds(): the devices at the port, on its USB 2 and its USB 3 side, which uhubctl switches together
    (Linux, Documentation/ABI/testing/sysfs-bus-usb: /sys/bus/usb/devices/…/<hub>-port<X>)."""
    match = WORD.fullmatch(rest)
    if not match:
        return ()
    hub, number = match[1] or match[3], match[2] or match[4]
    interface, name = (f"{hub}:1.0", hub) if match[1] else (f"{hub}-0:1.0", f"usb{hub}")
    port = os.path.join(root, "sys/bus/usb/devices", interface, f"{name}-port{number}")
    links = [os.path.join(port, *side, "device") for side in ((), ("peer",))]
    return tuple(os.path.realpath(link) for link in links if os.path.exists(link))


def opened(rest: str) -> Port:
    match = WORD.fullmatch(rest)
    if not match:
        raise UsageError("--switch usb:HUB.PORT", rest or "nothing", "see the ports: uhubctl; e.g. usb:1-1.4")
    if shutil.which("uhubctl") is None:
        raise ToolMissing("uhubctl", "not installed", "sudo apt-get install uhubctl")
    return Port(match[1] or match[3], match[2] or match[4])
