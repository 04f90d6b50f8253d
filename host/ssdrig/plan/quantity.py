"""Values as a plan writes them: whatever has a unit is a string with that unit, counts are integers.

    bytes   "4 KiB" "512 B" "5 TB"      int, bytes, at least 1
    block   "4 KiB"                     int, bytes, a multiple of 512, at most 16 MiB
    time    "60 s" "5 min" "5 ms"       float, seconds, at least 0.001
    pause   "60 s" "0 s"                float, seconds; 0: none
    amount  "2 x" "10 GiB"              Amount: times the capacity of the drive, or bytes
    range   "75 %" "raw 75 %" "10 GiB"  Range: share of the user capacity or of the raw NAND, or bytes
    wear    "0.1 %" "2 x" "10 GiB"      Wear: share of the rated endurance, times the capacity, or bytes
    rate    "20 kIOPS"                  float, I/Os per second
    count   32                          int, at least 1
    index   0                           int, at least 0
    percent 65                          int, 0 to 100
    word    "random"                    str

Pure. `parse` raises ValueError with the expected form; the caller adds the place. `suggest` guesses the intended value.
"""

import difflib
import re
from fractions import Fraction
from typing import NamedTuple

from ssdrig.base.words import BYTES, SECONDS

IOPS = {"IOPS": 1, "kIOPS": 1000}
EXPECTED = {
    "bytes": 'a size such as "4 KiB"',
    "block": 'a block size such as "4 KiB", a multiple of 512 B up to 16 MiB',
    "time": 'a time of at least 1 ms such as "60 s"',
    "pause": 'a time such as "60 s", or "0 s" for none',
    "amount": 'an amount such as "2 x", which is twice the capacity, or "10 GiB"',
    "range": 'a part of the drive such as "75 %", "raw 75 %" or "10 GiB"',
    "wear": 'an amount such as "0.1 %" (of the rated endurance), "0.25 x" (drive writes) or "10 GiB"',
    "rate": 'a rate such as "20 kIOPS"',
    "count": "a whole number from 1, such as 32",
    "index": "a whole number from 0, such as 3",
    "percent": "a whole number from 0 to 100, such as 65",
    "word": 'a word such as "random"',
}
LIMITS = {
    "bytes": "of whole bytes, at least 1 B and at most 1024 PiB",
    "block": "of 512 B, or a multiple of it up to 16 MiB",
    "time": "from 1 ms to 10000000 s",
    "pause": "up to 10000000 s",
    "amount": "above 0 x and up to 1000 x",
    "range": "above 0 % and up to 100 %",
    "wear": "above 0 % and up to 1000 %",
    "rate": "above 0 IOPS and up to 1000000 kIOPS",
    "count": "from 1 to 2147483648",
    "index": "from 0 to 2147483648",
    "percent": "from 0 to 100",
}
UNITS: dict[str, dict] = {
    **dict.fromkeys(("bytes", "block"), BYTES),
    **dict.fromkeys(("time", "pause"), SECONDS),
    **{"amount": {"x": 1, **BYTES}, "range": {"%": 1, **BYTES}, "rate": IOPS},
    "wear": {"%": 1, "x": 1, **BYTES},
}
INTEGERS = {"count": (1, 1 << 31), "index": (0, 1 << 31), "percent": (0, 100)}
SHORTEST_S, LONGEST_S = 0.001, 10_000_000  # fio takes a runtime of 0 ms as endless; 116 days
MOST_BYTES = 1 << 60
MOST_BLOCK_BYTES = 16 << 20
SECTOR_BYTES = 512  # no drive has smaller blocks
_NUMBER = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,12})?) ?([A-Za-zµ%]+)")
_WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# units that people write -> ours
_MEANT = {
    **{"m": "min", "mins": "min", "minute": "min", "minutes": "min", "hr": "h", "hrs": "h", "hour": "h", "hours": "h"},
    **{"sec": "s", "secs": "s", "second": "s", "seconds": "s", "msec": "ms", "usec": "us", "day": "d", "days": "d"},
    **{"k": "KiB", "M": "MiB", "G": "GiB", "T": "TiB", "byte": "B", "bytes": "B", "percent": "%"},
}


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


class Wear(NamedTuple):
    """How much is written: `percent` of the drive's rated endurance, `times` the user capacity, or `fixed_bytes`."""

    percent: float | None
    times: float | None
    fixed_bytes: int | None


def parse(value, kind: str):
    """`value` of a plan (str or int) as a quantity of `kind`. Raises ValueError with the expected form."""
    if kind in INTEGERS:
        least, most = INTEGERS[kind]
        if type(value) is not int or not least <= value <= most:  # true is an int, too
            raise ValueError(EXPECTED[kind])
        return value
    if kind == "word":
        if not isinstance(value, str) or not _WORD.fullmatch(value):
            raise ValueError(EXPECTED[kind])
        return value
    raw = kind == "range" and isinstance(value, str) and value.startswith("raw ")
    match = _NUMBER.fullmatch(value[4:] if raw else value) if isinstance(value, str) else None
    parsed = _measured(Fraction(match[1]), match[2], kind, raw) if match else None
    if parsed is None:
        raise ValueError(EXPECTED[kind])
    return parsed


def _measured(number: Fraction, unit: str, kind: str, raw: bool):
    """The quantity, or None where the unit or the number does not fit. Exact: "1.1 GB" is 1 100 000 000 bytes."""
    if unit not in UNITS[kind] or (raw and unit != "%"):
        return None
    if kind in ("time", "pause"):
        seconds = float(number) * SECONDS[unit]
        least_s = SHORTEST_S if kind == "time" else 0
        return seconds if least_s <= seconds <= LONGEST_S else None
    if kind == "rate":
        return float(number * IOPS[unit]) if 0 < number * IOPS[unit] <= 10**9 else None
    if kind == "wear" and unit in ("%", "x"):
        if not 0 < number <= 1000:
            return None
        return Wear(float(number), None, None) if unit == "%" else Wear(None, float(number), None)
    if unit == "%":
        return Range(float(number), raw, None) if 0 < number <= 100 else None
    if unit == "x":
        return Amount(float(number), None) if 0 < number <= 1000 else None
    size = number * BYTES[unit]
    if size.denominator != 1 or not 0 < size <= MOST_BYTES:  # no half byte
        return None
    if kind == "block" and (size % SECTOR_BYTES or size > MOST_BLOCK_BYTES):
        return None
    known = {"amount": Amount(None, int(size)), "range": Range(None, False, int(size))}
    return (known | {"wear": Wear(None, None, int(size))}).get(kind, int(size))


def advice(value, kind: str) -> str:
    """What to do about `value`, which parse() refuses."""
    likely = suggest(value, kind)
    if likely:
        return f"do you mean {likely}?"
    if kind in INTEGERS:
        return f"choose a number {LIMITS[kind]}" if type(value) is int else "write the number, without quotes or unit"
    if kind == "word":
        return "write a word of a-z, 0-9, ., _ and -"
    match = _NUMBER.fullmatch(value.removeprefix("raw ")) if isinstance(value, str) else None
    if match and match[2] in UNITS[kind]:
        return f"choose a value {LIMITS[kind]}"
    return f"write digits and one of the units {' '.join(UNITS[kind])}, in quotes"


def suggest(value, kind: str) -> str | None:
    """What `value`, which parse() refuses, is likely to mean: '60 sec' -> '60 s', '4 kib' -> '4 KiB', 60 -> '60 s'.
    None: no idea."""
    if kind in INTEGERS:
        match = re.fullmatch(r"([0-9]{1,10})(?:\.0*)?(?: ?%)?", str(value)) if type(value) in (str, float) else None
        return _valid(int(match[1]), kind) if match else None
    if kind == "word" or type(value) not in (str, int, float):
        return None
    if isinstance(value, int) and abs(value) > MOST_BYTES:
        return None
    match = re.fullmatch(r"\s*(raw )?\s*([0-9]{1,19}(?:\.[0-9]{1,12})?)\s*([^\W\d_]*|%)\s*", str(value))
    if not match:
        return None
    unit = match[3]
    if not unit:
        usual = {"time": "s", "pause": "s", "range": "%", "amount": "x", "rate": "IOPS"}.get(kind, "B")
        return _valid(f"{match[1] or ''}{match[2]} {usual}", kind)
    same = [known for known in UNITS[kind] if known.lower() == unit.lower()]
    near = difflib.get_close_matches(unit, UNITS[kind], 1)
    for meant in (*same, _MEANT.get(unit, _MEANT.get(unit.lower(), unit)), *near):
        corrected = _valid(f"{match[1] or ''}{match[2]} {meant}", kind)
        if corrected:
            return corrected
    return None


def _valid(value, kind: str) -> str | None:
    try:
        parse(value, kind)
    except ValueError:
        return None
    return str(value) if isinstance(value, int) else f'"{value}"'
