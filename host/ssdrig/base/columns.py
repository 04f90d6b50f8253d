"""Tables that other programs wrote: which column holds what, in which unit, and the exact numbers in them. Pure."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import NamedTuple

from ssdrig.base.errors import UsageError

NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "100ns": 100, "min": 60 * 10**9}
BYTES = {"B": 1, "sectors": 512, "KiB": 1 << 10, "MiB": 1 << 20, "blocks4k": 4096}
VOLTS = {"V": Fraction(1), "mV": Fraction(1, 10**3), "uV": Fraction(1, 10**6)}
AMPERES = {"A": Fraction(1), "mA": Fraction(1, 10**3), "uA": Fraction(1, 10**6), "nA": Fraction(1, 10**9)}
WATTS = {"W": Fraction(1), "mW": Fraction(1, 10**3), "uW": Fraction(1, 10**6)}
_SPELLED = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("msec", "milliseconds"), "ms"),
    **dict.fromkeys(("usec", "µs", "μs", "microseconds"), "us"),
    **dict.fromkeys(("nsec", "nanoseconds"), "ns"),
    **dict.fromkeys(("bytes", "byte", "b"), "B"),
    **dict.fromkeys(("volts", "volt", "v"), "V"),
    **dict.fromkeys(("amps", "amperes", "a"), "A"),
    **dict.fromkeys(("watts", "w"), "W"),
    **{"mv": "mV", "ma": "mA", "mw": "mW"},
    **dict.fromkeys(("ua", "µa", "μa"), "uA"),
    **dict.fromkeys(("uv", "µv", "μv"), "uV"),
    **dict.fromkeys(("uw", "µw", "μw"), "uW"),
}
_MOST_DIGITS = 40
_MOST_UTC_NS = 1 << 62  # in 2116: what a run folder holds
_NUMBER = re.compile(r"([+-]?)(\d{1,40})?(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,2}))?", re.ASCII)
_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+", re.ASCII)
_COMMA_GROUPS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII)
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}", re.ASCII)
_QUOTED = re.compile(r'"[^"]*"')
_UNIT_AT_END = re.compile(r"^(.*?)[\s_]*[\[(]\s*([^\[\]()]{1,14}?)\s*[\])]\s*$|^(.*\S)[\s_/]+(\S{1,12})$")


class Column(NamedTuple):
    """A column by its `name`, or by its number from 1; `unit` is "" where the table's own heading has it."""

    name: str
    unit: str = ""


def chosen(texts: Iterable[str], roles: Sequence[str]) -> dict[str, Column]:
    """Role -> column of options such as "t=Time:ms,V=3". Raises UsageError."""
    columns_: dict[str, Column] = {}
    for text in texts:
        for part in re.split(r",(?=\s*\w+\s*=)", text):
            role, equals, name = (word.strip() for word in part.partition("="))
            if role not in roles or not equals or not name:
                known = ", ".join(f"{role}=" for role in roles)
                raise UsageError(f"columns as NAME[:UNIT], after one of {known}", repr(part), "correct --column")
            head, colon, unit = name.rpartition(":")
            columns_[role] = (
                Column(head.strip().strip('"'), unit.strip()) if colon and head else Column(name.strip('"'))
            )
    return columns_


def delimiter(line: str) -> str:
    """What separates the fields of this line: a tab, semicolon or comma outside of quotes; "" for blanks."""
    bare = _QUOTED.sub('""', line)
    return next((mark for mark in "\t;," if mark in bare), "")


def unquoted(line: str, mark: str) -> str:
    """A line without its quotes. A mark within them becomes `?`: the fields keep their places, and no number is made
    of two."""
    if '"' not in line:
        return line
    return _QUOTED.sub(lambda quoted: quoted[0].replace(mark or '"', "?"), line).replace('"', "")


def split(line: str, mark: str) -> list[str]:
    """The fields of a line, without blanks and quotes around them; a mark within quotes separates nothing."""
    if not mark:
        return line.split()
    if '"' not in line:
        return [field.strip() for field in line.split(mark)]
    pattern = rf'(?:"[^"]*"|[^"{re.escape(mark)}])*'
    fields = re.findall(rf"({pattern})(?:{re.escape(mark)}|$)", line)
    return [field.strip().strip('"').strip() for field in (fields[:-1] if fields and not fields[-1] else fields)]


def decimal(rows: Iterable[Sequence[str]], mark: str) -> str:
    """The decimal mark of the numbers in these fields: a comma where tabs or semicolons separate them, one of them is
    a number with it, and no other one has a decimal point. Commas between tabs may be marks of thousands: where all
    fields allow that, the decimal mark is a point."""
    if mark not in (";", "\t"):
        return "."
    fields = [field for row in rows for field in row]
    with_comma = [field for field in fields if exact(field) is None and exact(field, ",") is not None]
    if any("." in field and exact(field) is not None and not _GROUPS.fullmatch(field) for field in fields):
        return "."
    if mark == "\t" and all(_COMMA_GROUPS.fullmatch(field) and field[0] != "0" for field in with_comma):
        return "."
    return "," if with_comma else "."


def named(heading: str) -> tuple[str, str]:
    """(name, unit) of a heading: "Current (mA)", "I [A]", "time_us", "Main voltage V"; unit "" where it has none."""
    if match := _UNIT_AT_END.fullmatch(heading.strip()):
        name, unit = (match[1], match[2]) if match[2] else (match[3], match[4])
        if (known := unit_named(unit)) and name.strip():
            return name.strip(), known
    return heading.strip(), ""


def unit_named(text: str) -> str:
    """The unit as it is written here, or "" if it is unknown."""
    known = {*NS, *BYTES, *VOLTS, *AMPERES, *WATTS}
    return text if text in known else _SPELLED.get(text.lower(), "") or _SPELLED.get(text, "")


def place(column: Column, headings: Sequence[str]) -> int | None:
    """Which field the column is, from 0; None where the headings have no such name."""
    if column.name.isascii() and column.name.isdigit():
        return int(column.name) - 1 if 0 < int(column.name) <= len(headings) else None
    wanted = column.name.casefold()
    for key in (str.casefold, lambda text: named(text)[0].casefold()):
        matches = [number for number, heading in enumerate(headings) if key(heading.strip()) == wanted]
        if matches:
            return matches[0]
    return None


def exact(text: str, decimal: str = ".") -> Fraction | None:
    """The number that is written, also with an exponent or in hexadecimal; None where it is not a number. Before a
    decimal comma, points are marks of thousands; a single point without a comma is not known to be one."""
    text = text.strip()
    if _HEX.fullmatch(text):
        return Fraction(int(text, 16))
    if decimal != ".":
        before, comma, after = text.partition(decimal)
        grouped = _GROUPS.fullmatch(before) and (comma or before.count(".") > 1)
        text = f"{before.replace('.', '') if grouped else before}.{after}"
        if not grouped and "." in before or decimal in after:
            return None
    match = _NUMBER.fullmatch(text)
    if not match or not (match[2] or match[3]):
        return None
    sign, whole, part, power = match[1], match[2] or "", match[3] or "", int(match[4] or 0)
    value = Fraction(int(whole + part)) * Fraction(10) ** (power - len(part))
    return -value if sign == "-" else value


def whole(text: str, factor: int = 1, decimal: str = ".") -> int | None:
    """The number times `factor`, rounded to a whole one; None where it is not a number."""
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text) * factor
    before, _, after = text.partition(decimal)
    if before.isascii() and before.isdigit() and after.isascii() and after.isdigit() and len(text) <= _MOST_DIGITS:
        parts = 10 ** len(after)
        return int(before) * factor + (2 * int(after) * factor + parts) // (2 * parts)
    value = exact(text, decimal)
    return None if value is None else round(value * factor)


def ungrouped(text: str) -> str:
    """A number without commas as marks of thousands; other texts as they are."""
    return text.replace(",", "") if _COMMA_GROUPS.fullmatch(text.strip()) else text


def has_zone(text: str) -> bool:
    """Whether an ISO 8601 time states its time zone."""
    return re.search(r"(?:[zZ]|[+-]\d\d(?::?\d\d)?)$", text.strip().partition(":")[2]) is not None


def utc_ns(text: str) -> int | None:
    """UTC in ns of an ISO 8601 time from 1970 to 2116; None otherwise. A time without a zone is taken as UTC."""
    text, digits = text.strip(), ""
    if match := re.fullmatch(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)[.,](\d{1,12})(.*)", text, re.ASCII):
        text, digits = match[1] + match[3], match[2]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if not re.match(r"\d{4}-\d\d-\d\d.", text, re.ASCII):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    ns = (since.days * 86400 + since.seconds) * 10**9 + since.microseconds * 1000 + int(digits.ljust(9, "0")[:9])
    return ns if 0 <= ns < _MOST_UTC_NS else None
