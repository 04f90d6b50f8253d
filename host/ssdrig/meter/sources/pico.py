"""Our board: `pico:PORT`, or the port alone. It speaks wire.py itself, so its line needs no bridge."""

from ssdrig.meter.pico import ports
from ssdrig.meter.pico.line import Line

LINE = Line


def check(port: str) -> None:
    """Raises UsageError for a missing port."""
    ports.check_there(port)
