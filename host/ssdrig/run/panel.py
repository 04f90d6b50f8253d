"""The lines that stand at the foot of the terminal while a run goes on. Pure."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.base import words
from ssdrig.base.progress import Part, fitted, sparkline

BAR = 16  # characters
FEWEST_BARS = 8  # of a sparkline, in a narrow terminal
LEAST_ROWS = 10  # of a terminal that has room for the lines; a lower one gets one line
DAY_S = 86400


class Panel(NamedTuple):
    """What the lines show. Rates and latencies in drive time; None: not known."""

    place: str  # step of the plan, such as "3/7 load"
    share: float | None  # of the step, 0 to 1; None: it goes on until someone ends it
    elapsed_s: float
    left_s: tuple[float, float] | None  # host time to the end of the whole run, (least, most)
    written: str
    rule: str = ""
    iops: Sequence[float] = ()  # of each second of the step
    bytes_per_s: float | None = None
    latency_s: float | None = None  # mean of the last second
    stall_utc_s: float | None = None  # when the last second without any I/O was
    watts: Sequence[float] = ()  # of each second of the step
    temperature_C: float | None = None  # of the last SMART reading
    power: Sequence[Part] = ()  # the rig's state: losses, limits


def lines(panel: Panel, utc_s: float, columns: int) -> list[str]:
    """Two to four lines, each shorter than the terminal is wide.

    utc_s: now, for the clock time of the end
    """
    rows = [_course(panel, utc_s), _rates(panel), _power(panel), [Part(panel.rule, 1, 24), Part(panel.written)]]
    return [line for line in (fitted(row, columns) for row in rows) if line]


def _course(panel: Panel, utc_s: float) -> list[Part]:
    parts = [Part(panel.place, 0, 12)]
    if panel.share is None:
        parts.append(Part(words.clock(panel.elapsed_s)))
    else:
        full = round(BAR * min(1.0, panel.share))
        parts += [Part("█" * full + "·" * (BAR - full), 4), Part(f"{panel.share:4.0%}", 1)]
    if panel.left_s is not None:
        ends = "…".join(dict.fromkeys(_clock_time(utc_s + left_s, utc_s) for left_s in panel.left_s))
        left = "…".join(dict.fromkeys(map(words.clock, panel.left_s)))
        parts += [Part(f"whole run ends {ends}", 3), Part(f"in {left}")]
    return parts


def _rates(panel: Panel) -> list[Part]:
    if not panel.iops:
        return []
    parts = [Part(sparkline(list(panel.iops)), 4, FEWEST_BARS), Part(f"{panel.iops[-1]:9,.0f} IOPS")]
    if panel.bytes_per_s is not None:
        parts.append(Part(f"{words.size(panel.bytes_per_s):>7}/s", 1))
    if panel.latency_s is not None:
        parts.append(Part(f"mean latency {_latency(panel.latency_s)}", 2))
    if panel.stall_utc_s is not None:
        parts.append(Part(f"last stall {time.strftime('%H:%M:%S', time.localtime(panel.stall_utc_s))}", 3))
    return parts


def _power(panel: Panel) -> list[Part]:
    parts = [Part(sparkline(list(panel.watts)), 4, FEWEST_BARS)] if panel.watts else []
    parts += panel.power
    if panel.temperature_C is not None:
        parts.append(Part(f"{panel.temperature_C:.0f} °C", 1))
    return parts


def _latency(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def _clock_time(at_s: float, utc_s: float) -> str:
    """A time of day; more than a day away, with the weekday."""
    return time.strftime("%H:%M" if at_s - utc_s < DAY_S else "%a %H:%M", time.localtime(at_s))
