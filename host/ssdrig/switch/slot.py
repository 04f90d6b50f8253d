"""A PCIe slot that the kernel can switch: `slot:NAME`, a folder of /sys/bus/pci/slots. Its power is read back: the
slot's controller reports whether it is on, which is not a measurement of the supply, so `seen_low` is not known.

Taking a slot's power also takes its PERST#, as an outage does."""

import os
from pathlib import Path

from ssdrig.base.errors import RigError, UsageError
from ssdrig.switch.command import timed
from ssdrig.switch.switch import Edge

ROOT = Path("/sys/bus/pci/slots")


class Slot:
    """See switch.Switch."""

    def __init__(self, power: Path):
        self._power = power

    def off(self, at_ns: int | None = None) -> Edge:
        return timed(lambda: self._write(0), at_ns)

    def on(self) -> Edge:
        return timed(lambda: self._write(1))

    def _write(self, value: int) -> None:
        try:
            self._power.write_text(f"{value}\n")
            seen = self._power.read_text().strip()
        except OSError as error:
            raise RigError(f"{self._power} that can be written", str(error.strerror), "run it as root") from error
        if seen != str(value):
            raise RigError(f"{value} in {self._power}", seen, "see the kernel's log (dmesg)")


def check(rest: str) -> None:
    """Raises UsageError for a slot that is not there or has no switch."""
    opened(rest)


def feeds(rest: str, root: str | os.PathLike = "/") -> tuple[str, ...]:
    """See switch.feeds(): the functions of the device in the slot."""
    pci = Path(root, "sys/bus/pci")
    try:
        address = (pci / "slots" / rest / "address").read_text().strip()
        names = os.listdir(pci / "devices")
    except (OSError, ValueError):
        return ()
    functions = [name for name in sorted(names) if name.rpartition(".")[0] == address]
    return tuple(os.path.realpath(pci / "devices" / name) for name in functions)


def opened(rest: str) -> Slot:
    power = ROOT / rest / "power"
    there = ", ".join(sorted(path.parent.name for path in ROOT.glob("*/power"))) or "none"
    if not rest or "/" in rest or not power.exists():
        raise UsageError("--switch slot:NAME of a slot with a switch", rest or "nothing", f"slots here: {there}")
    return Slot(power)
