"""Values as a plan writes them, and what they are: everything with a unit is a string with a unit, counts are integers.

    bytes   "4 KiB" "512 B" "5 TB"      int, bytes
    time    "60 s" "5 min" "5 ms"       float, seconds
    amount  "2 x" "10 GiB"              Amount: times the capacity of the drive, or bytes
    range   "75 %" "raw 75 %" "10 GiB"  Range: share of the user capacity or of the raw NAND, or bytes
    rate    "20 kIOPS"                  float, I/Os per second
    count   32                          int, at least 1
    percent 65                          int, 0 to 100
    word    "random"                    str

Pure. `parse` raises ValueError with what was expected; grammar.py says where.
"""

import re
from typing import NamedTuple

from ssdrig.words import BYTES, SECONDS

IOPS = {"IOPS": 1.0, "kIOPS": 1e3}
# what a person is told to write
EXAMPLES = {
    "bytes": '"4 KiB"',
    "time": '"60 s"',
    "amount": '"2 x" or "10 GiB"',
    "range": '"75 %", "raw 75 %" or "10 GiB"',
    "rate": '"20 kIOPS"',
    "count": "32",
    "percent": "65, from 0 to 100",
    "word": '"random"',
}
LONGEST_S = 10_000_000.0  # 116 days
MOST_BYTES = 1 << 60
_NUMBER = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z%]+)")


class Amount(NamedTuple):
    """How much is written: `times` the user capacity, or `fixed_bytes`."""

    times: float | None
    fixed_bytes: int | None


class Range(NamedTuple):
    """Which part of the drive is used, from its beginning: `percent` of the user capacity or, with `raw`, of the raw
    NAND; or `fixed_bytes`."""

    percent: float | None
    raw: bool
    fixed_bytes: int | None


def parse(value, kind: str):
    """`value` of a plan (str or int) as a quantity of `kind`. Raises ValueError."""
    expected = f"{kind} such as {EXAMPLES[kind]}"
    if kind in ("count", "percent"):
        least, most = (1, 1 << 31) if kind == "count" else (0, 100)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(expected)
        return value
    if not isinstance(value, str):
        raise ValueError(expected)
    if kind == "word":
        if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", value):
            raise ValueError(expected)
        return value
    raw = kind == "range" and value.startswith("raw ")
    match = _NUMBER.fullmatch(value[4:] if raw else value)
    if not match:
        raise ValueError(expected)
    number, unit = float(match[1]), match[2]
    if kind == "time" and unit in SECONDS and number * SECONDS[unit] <= LONGEST_S:
        return number * SECONDS[unit]
    if kind == "rate" and unit in IOPS and 0 < number * IOPS[unit] <= 1e9:
        return number * IOPS[unit]
    if kind == "range" and unit == "%" and 0 < number <= 100:
        return Range(number, raw, None)
    if kind == "amount" and unit == "x" and 0 < number <= 1000:
        return Amount(number, None)
    if kind in ("bytes", "amount", "range") and unit in BYTES and not raw:
        size = round(number * BYTES[unit])
        if size == number * BYTES[unit] and 0 < size <= MOST_BYTES:  # no half byte
            return {"bytes": size, "amount": Amount(None, size), "range": Range(None, False, size)}[kind]
    raise ValueError(expected)


def from_words(text: str):
    """A value of the command line (--set NAME=VALUE): an integer, or the text."""
    return int(text) if re.fullmatch(r"\d{1,9}", text) else text
