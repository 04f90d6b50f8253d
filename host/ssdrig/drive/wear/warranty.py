"""What a model's maker rates and warrants: the shipped table warranty.toml, the user's own, and words of the command
line.

Each row names where its figures are from; a model that is not in a table has no limits, because none is guessed."""

import argparse
import functools
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

from ssdrig.base import owner
from ssdrig.base.errors import UsageError
from ssdrig.base.words import parse_bytes
from ssdrig.drive.wear.endurance import Limits, dwpd_of_tbw, tbw_of_dwpd

SHIPPED = Path(__file__).with_name("warranty.toml")
MOST_YEARS = 100
CAPACITY_TOLERANCE = 0.04  # a row has 1000 GB for a drive of 1 000 204 886 016 bytes, or 1024 GB for one sold as "1 TB"
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "tbw_TB": (int, float),
    "years": (int, float),
    "dwpd": (int, float),
    "pe_cycles": (int, float),
    "mileage": bool,
    "drive_class": str,
    "source": str,
    "basis": str,
}


def user_file() -> Path:
    """$XDG_CONFIG_HOME/ssdrig/warranty.toml: rows there win over the shipped ones."""
    return owner.base("XDG_CONFIG_HOME", ".config") / "ssdrig" / "warranty.toml"


def limits_for(model: str, capacity_bytes: int | None) -> Limits | None:
    """The limits of a model, from the user's table or the shipped one; None if neither has it. A missing TBW or DWPD is
    computed from the other. Raises UsageError if the user's table cannot be read."""
    for path in (user_file(), SHIPPED):
        for row, capacity_GB, tbw_TB in _rows(path):
            near = capacity_GB is None or (
                capacity_bytes and abs(capacity_bytes / (capacity_GB * 1e9) - 1) <= CAPACITY_TOLERANCE
            )
            if near and re.search(row["model"], model):
                given: dict[str, Any] = {k: row[k] for k in _FIELDS if k in row}
                if tbw_TB is not None:
                    given["tbw_TB"] = tbw_TB
                return completed(Limits(**given), capacity_bytes)
    return None


def rated_bytes(limits: Limits | None) -> float | None:
    """Host bytes that the warranty allows; None where no table has the drive or its row has no TBW."""
    return limits.tbw_TB * 1e12 if limits and limits.tbw_TB else None


def completed(limits: Limits, capacity_bytes: int | None) -> Limits:
    """The limits with TBW computed from DWPD, or DWPD from TBW, if years and capacity are known; `basis` names the
    computed one."""
    if limits.years is None or not capacity_bytes:
        return limits
    if limits.tbw_TB is None and limits.dwpd is not None:
        made = f"TBW = {limits.dwpd:g} DWPD x capacity x {limits.years:g} years"
        return limits._replace(
            tbw_TB=tbw_of_dwpd(limits.dwpd, capacity_bytes, limits.years),
            basis="; ".join(filter(None, (limits.basis, made))),
        )
    if limits.dwpd is None and limits.tbw_TB is not None:
        return limits._replace(dwpd=dwpd_of_tbw(limits.tbw_TB, capacity_bytes, limits.years))
    return limits


def _rows(path: Path) -> list[tuple[dict, float | None, float | None]]:
    """(row, capacity in GB, TBW of it) of one table: a row with tbw_by_GB yields one for each of its capacities."""
    try:
        return _parsed(path, path.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UsageError(
            "a table of warranties in TOML", f"{path}: {error}", "correct that file, or move it away"
        ) from error


@functools.lru_cache(4)  # a thousand drives are looked up in one text
def _parsed(path: Path, text: str) -> list[tuple[dict, float | None, float | None]]:
    out: list[tuple[dict, float | None, float | None]] = []
    table = tomllib.loads(text)
    rows = table.get("drive")
    if not isinstance(rows, list):
        raise UsageError("rows [[drive]]", f"{path} without them", f"see the head of {SHIPPED}")
    for row in rows:
        trouble = _trouble(row)
        if trouble:
            raise UsageError(
                "a row of a model and its limits, with their source", f"{path}: {trouble}", f"see the head of {SHIPPED}"
            )
        if "tbw_by_GB" in row:
            out += [(row, float(capacity), tbw) for capacity, tbw in row["tbw_by_GB"].items()]
        else:
            capacities = row.get("capacity_GB")
            out += [
                (row, capacity, None) for capacity in (capacities if isinstance(capacities, list) else [capacities])
            ]
    return out


def _trouble(row: dict) -> str | None:
    """The defect of a row, in words, or None."""
    if not isinstance(row, dict) or not isinstance(row.get("model"), str) or not isinstance(row.get("source"), str):
        return f"{row} has no model or no source"
    try:
        re.compile(row["model"])
    except re.error as error:
        return f"the model {row['model']!r} is not a regular expression: {error}"
    for name, value in row.items():
        if name in _FIELDS and (
            not isinstance(value, _FIELDS[name]) or isinstance(value, bool) != (_FIELDS[name] is bool)
        ):
            return f"{row['model']}: {name} = {value!r}"
        numbers = value if name == "capacity_GB" and isinstance(value, list) and value else [value]
        if name in ("tbw_TB", "years", "dwpd", "pe_cycles", "capacity_GB") and not all(
            _is_number(v) and v > 0 for v in numbers
        ):
            return f"{row['model']}: {name} = {value!r}"
        if name not in (*_FIELDS, "model", "capacity_GB", "tbw_by_GB"):
            return f"{row['model']}: unknown field {name}"
    by_GB = row.get("tbw_by_GB", {"1": 1})
    if not isinstance(by_GB, dict) or not all(
        k.replace(".", "", 1).isdecimal() and _is_number(v) and v > 0 for k, v in by_GB.items()
    ):
        return f"{row['model']}: tbw_by_GB = {by_GB!r}"
    if row.get("years", 1) > MOST_YEARS:
        return f"{row['model']}: years = {row['years']!r}"
    if row.get("drive_class", "client") not in ("client", "enterprise"):
        return f"{row['model']}: drive_class = {row['drive_class']!r}"
    return None


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words that stand in for the table, or correct it for one drive."""
    group = parser.add_argument_group(
        "limits", f"the maker's warranty (default: from {user_file()} or the shipped table)"
    )
    group.add_argument("--tbw", type=_tbw, metavar="TB", help="rated bytes written: terabytes, or with a unit (72TB)")
    group.add_argument("--years", type=_years, metavar="Y", help="length of the warranty, years")
    group.add_argument("--dwpd", type=_positive, metavar="N", help="drive writes per day over those years")
    group.add_argument("--pe-cycles", type=_positive, metavar="N", help="rated program/erase cycles of the flash")
    group.add_argument("--start", type=_day, metavar="YYYY-MM-DD", help="first day of the warranty")
    group.add_argument(
        "--class", dest="drive_class", choices=("client", "enterprise"), help="JESD218 class, for retention"
    )


def of_arguments(args: argparse.Namespace, model: str | None, capacity_bytes: int | None) -> Limits:
    """The limits of a model, overridden by the command line. Raises UsageError."""
    limits = (limits_for(model, capacity_bytes) if model else None) or Limits()
    given = {
        "tbw_TB": args.tbw,
        "years": args.years,
        "dwpd": args.dwpd,
        "pe_cycles": args.pe_cycles,
        "drive_class": args.drive_class,
        "start": args.start,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if {"tbw_TB", "dwpd", "years"} & given.keys():
        # of TBW and DWPD only one may remain of the table, or the two would contradict
        stale: dict[str, Any] = {"dwpd": None} if "tbw_TB" in given or "dwpd" not in given else {"tbw_TB": None}
        limits = limits._replace(**stale, basis=None)
    if given.keys() - {"start"}:
        words = "command line: " + ", ".join(sorted(given.keys() - {"start"}))
        limits = limits._replace(source=f"{words}; otherwise {limits.source}" if limits.source else words)
    if "tbw_TB" in given or "dwpd" in given:
        limits = limits._replace(mileage=True if limits.mileage is None else limits.mileage)
    return completed(limits._replace(**given), capacity_bytes)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError
    return value


def _tbw(text: str) -> float:
    """ "72", "72TB", "72 TB" -> 72.0."""
    try:
        return _positive(text)
    except ValueError:
        terabytes = parse_bytes(text) / 1e12
    if not 1e-3 <= terabytes < 1e9:
        raise ValueError
    return terabytes


def _years(text: str) -> float:
    if _positive(text) > MOST_YEARS:
        raise ValueError
    return float(text)


def _day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise UsageError("a date such as 2024-05-01", repr(text), "give year, month and day") from None
    if day.year + MOST_YEARS >= date.max.year:  # else the end of the warranty would be no date
        raise ValueError
    return day
