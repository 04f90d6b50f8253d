"""`-v`: each event of a run as it is recorded, a line each."""

import json
import time
from collections.abc import Callable, Mapping

from ssdrig.base.words import clock

LONGEST = 160  # characters of a field


def teller(say: Callable[[str], object]) -> Callable[[Mapping], None]:
    """Printer of events, with the time since now."""
    began_ns = time.monotonic_ns()

    def tell(event: Mapping) -> None:
        say(line(event, began_ns))

    return tell


def line(event: Mapping, began_ns: int) -> str:
    """ "    1:02  step.begin  step=load"."""
    fields = [f"{key}={_short(value)}" for key, value in event.items() if key not in ("t_ns", "kind", "n", "crc")]
    return f"{clock((event['t_ns'] - began_ns) / 1e9):>8}  {'  '.join([event['kind'], *fields])}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
