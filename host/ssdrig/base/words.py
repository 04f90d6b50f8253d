"""Bytes, durations and other quantities as people write them and as ssdrig prints them. Pure."""

import difflib
import math
import re
from collections.abc import Iterable

from ssdrig.base.errors import UsageError

DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
BINARY = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50}
BYTES = {"B": 1} | DECIMAL | BINARY
_BYTES_OF = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | BYTES
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}
_SECONDS_OF = SECONDS | {"m": 60}  # as fio writes it
_ELECTRIC = {
    **{"uA": ("A", 1e-6), "µA": ("A", 1e-6), "mA": ("A", 1e-3), "A": ("A", 1.0)},
    **{"nF": ("F", 1e-9), "uF": ("F", 1e-6), "µF": ("F", 1e-6), "mF": ("F", 1e-3), "F": ("F", 1.0)},
}
DAYS_PER = {"hour": 1 / 24, "day": 1, "week": 7, "month": 365.25 / 12, "year": 365.25}
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what one begins with
YEARS_MOST = 100  # a later date means no more than "not in your time"


def parse_bytes(text: str) -> int:
    """ "4GiB", "4 GiB" -> 4294967296; without a unit bytes. Raises UsageError."""
    match = re.fullmatch(r"([0-9]+)\s*([A-Za-z]*)", text.strip())
    if not match or match[2] not in _BYTES_OF:
        raise UsageError(
            "a size such as 4GiB or 240GB",
            repr(text),
            f"give a whole number and one of the units {' '.join(unit for unit in _BYTES_OF if unit)}",
        )
    return int(match[1]) * _BYTES_OF[match[2]]


def parse_seconds(text: str) -> float:
    """ "60 s" -> 60.0, "1.5h" -> 5400.0, "5m" -> 300.0, "5 ms" -> 0.005. The unit is required. Raises UsageError."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,20})?)\s*([a-zµ]+)", text.strip())
    if not match or match[2] not in _SECONDS_OF:
        raise UsageError(
            "a duration such as 60 s or 5 ms", repr(text), f"give a number and one of the units {' '.join(SECONDS)}"
        )
    return float(match[1]) * _SECONDS_OF[match[2]]


def parse_in(unit: str, text: str) -> float:
    """A duration, current or capacitance as a number of `unit`: ("us", "1.5 ms") -> 1500.0, ("mA", "0.3A") -> 300.0.
    Raises UsageError."""
    if unit in SECONDS:
        return parse_seconds(text) / SECONDS[unit]
    kind, one = _ELECTRIC[unit]
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-zµA-Z]+)", text.strip())
    if not match or _ELECTRIC.get(match[2], ("", 0))[0] != kind:
        units = [name for name, (of, _) in _ELECTRIC.items() if of == kind]
        what = "a current" if kind == "A" else "a capacitance"
        raise UsageError(
            f"{what} such as 300{unit}", repr(text), f"give a number and one of the units {' '.join(units)}"
        )
    return float(match[1]) * _ELECTRIC[match[2]][1] / one


def size(count: float) -> str:
    """Bytes in decimal units with three digits: 13880000000000 -> '13.9 TB'."""
    unit = "B"
    for bigger in DECIMAL:
        if abs(count) < 999.5:
            break
        count, unit = count / 1000, bigger
    digits = 0 if unit == "B" else max(0, 2 - math.floor(math.log10(abs(count)))) if abs(count) >= 1 else 2
    return f"{count:.{digits}f} {unit}"


def counted(count: int, noun: str) -> str:
    """1, 'step' -> '1 step'; 3, 'step' -> '3 steps'."""
    return f"{count} {noun}" + "s" * (count != 1)


def exact_size(count: int) -> str:
    """Bytes without rounding, in the largest unit that divides them: 4096 -> '4 KiB', 10**9 -> '1 GB', 1000 -> '1000
    B'. For blocks and for the units of counters."""
    for name in ("GiB", "GB", "MiB", "KiB"):
        if count and count % BYTES[name] == 0:
            return f"{count // BYTES[name]} {name}"
    return f"{count} B"


def slow_link(link: str) -> str | None:
    """The warning for a link ("PCIe 4.0 x4 (drive: 5.0 x4)": Drive.link of drive/inventory.py) that is slower or
    narrower than the drive supports; None otherwise."""
    now, _, best = link.partition(" (drive: ")
    if not best:
        return None
    return f"link {now}; the drive supports {best.removesuffix(')')}: the slot may limit its speed"


def clock(seconds: float) -> str:
    """A duration as a clock shows it: 123 -> '2:03'; 3723 -> '1:02:03'."""
    seconds = max(0, round(seconds))
    hours, rest = divmod(seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def period(days: float) -> str:
    """A long duration in two or three digits: 0.02 -> '29 minutes', 0.5 -> '12 hours', 5 -> '5.0 days', 100 -> '3.3
    months', 4000 -> '11 years', above 100 years 'over 100 years'."""
    if days < DAYS_PER["hour"]:
        count, name = 60 * days / DAYS_PER["hour"], "minutes"
    elif days < 1:
        count, name = days / DAYS_PER["hour"], "hours"
    elif days < 60:
        count, name = days, "days"
    elif days < 4 * DAYS_PER["year"]:
        count, name = days / DAYS_PER["month"], "months"
    else:
        count, name = days / DAYS_PER["year"], "years"
    if name == "years" and count > YEARS_MOST:
        return f"over {YEARS_MOST} years"
    return f"{count:.{1 if count < 10 else 0}f} {name}"


def do_you_mean(word: str, known: Iterable[str]) -> str:
    """What to do about a misspelt word: "do you mean 'pattern'?", or which words there are."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, 1)
    if near:
        return f"do you mean {near[0]!r}?"
    listed = f"{', '.join(names[:20])}{', …' if len(names) > 20 else ''}"
    return f"use one of {listed}" if names else "leave it out: nothing to name"


def unique(names: Iterable[str]) -> list[str]:
    """The names, with a number from the second on where some are equal: run, run_2."""
    names, out = list(names), []
    for name in names:
        number, candidate = 1, name
        while candidate in out or (number > 1 and candidate in names):
            number += 1
            candidate = f"{name}_{number}"
        out.append(candidate)
    return out


def as_cell(value):
    """A value for CSV. Text that a spreadsheet would take for a formula, such as a drive's model `=HYPERLINK(…)`, gets
    an apostrophe in front; numbers stay."""
    return f"'{value}" if isinstance(value, str) and value[:1] in FORMULA else value


def serial_key(serial: str) -> str:
    """One spelling of a drive's serial: no case, and no blanks around it or doubled in it."""
    return " ".join(serial.split()).casefold()


def digits(value: float | None, most: int) -> str:
    """A figure in up to this many digits, without an exponent: (1234.5, 3) -> '1234', (0.1, 3) -> '0.1',
    (0.00001234, 2) -> '0.000012', (None, 3) -> '–'."""
    if value is None:
        return "–"
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    places = max(0, most - 1 - math.floor(math.log10(abs(float(f"{value:.{most - 1}e}")))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text
