"""How a drive was stored: a log of temperatures, or one temperature for a time, and what it costs. Pure.

The result is never a number of years: the activation energy that turns storage at one temperature into hours at
another is a property of the flash that nobody knows, so a range is always shown beside the standard's 1.1 eV."""

import csv
import io
from datetime import UTC, datetime
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.base.words import period
from ssdrig.drive.wear.retention import ACTIVATION_ENERGY_EV, effective_temperature, equivalent_hours

LOW_EV = 0.6  # of early loss in 3D charge-trap NAND
RANGE_EV = (LOW_EV, 0.8, ACTIVATION_ENERGY_EV)
AT_C = (30.0, 40.0)
COLDEST_C, HOTTEST_C = -60.0, 150.0
WHY_RANGE = (
    "No such figure is years of use: HotStorage '21 found the errors of baked 3D NAND and of NAND a year old very"
    " different, and TCAD '25 an activation energy that moves with wear and temperature."
)
SLACK_HOURS = 1.0  # of a log in whole hours
LEAST_COVER = 0.95  # of the time without power that a log should say something of


class Log(NamedTuple):
    """`profile`: (hours, °C) in order; begin and end in seconds UTC, None where the log has hours only."""

    profile: tuple[tuple[float, float], ...]
    begin_s: float | None = None
    end_s: float | None = None

    @property
    def hours(self) -> float:
        return sum(hours for hours, _ in self.profile)


def constant(celsius: float, hours: float) -> Log:
    """One temperature all the time. Raises UsageError."""
    if not COLDEST_C <= celsius <= HOTTEST_C or not 0 <= hours < 1e6:
        raise UsageError("a temperature of storage in °C, and hours", f"{celsius:g} °C for {hours:g} h", "correct it")
    return Log(((hours, celsius),))


def parse(text: str, name: str = "the log") -> Log:
    """Rows `time,°C`: the time as ISO 8601 (UTC where it says nothing), as seconds since 1970, or as hours since the
    first row; each temperature holds until the next row. Other columns, one line of headings and lines that begin with
    # are left alone. Raises UsageError."""
    rows = [row for row in csv.reader(io.StringIO(text)) if row and not row[0].lstrip().startswith("#")]
    if rows and _time(rows[0][0]) is None:
        rows = rows[1:]
    found: list[tuple[float, float]] = []
    dated = bool(rows) and _dated(rows[0][0])
    for number, row in enumerate(rows, 1):
        t_s, celsius = _time(row[0]), _number(row[1]) if len(row) > 1 else None
        whole = t_s is not None and celsius is not None and COLDEST_C <= celsius <= HOTTEST_C
        if not whole or _dated(row[0]) != dated:
            do = "write rows such as 2026-11-22T12:00:00,23.5"
            raise UsageError(f"a time and a temperature in °C in row {number} of {name}", ",".join(row)[:80], do)
        assert t_s is not None and celsius is not None
        if found and t_s <= found[-1][0]:
            raise UsageError(f"times that rise in {name}", f"row {number}: {row[0]}", "sort the rows by time")
        found.append((t_s, celsius))
    if len(found) < 2:
        raise UsageError(
            f"at least two rows in {name}", f"{len(found)}", "the last row ends the time of the one before"
        )
    steps = zip(found, found[1:], strict=False)
    profile = tuple(((after - at) / 3600, celsius) for (at, celsius), (after, _) in steps)
    return Log(profile, found[0][0], found[-1][0]) if dated else Log(profile)


def within(log: Log | None, begin_s: float, end_s: float) -> Log | None:
    """The part of a log with times that lies between these, UTC: a logger may have run before the drive lay there. One
    with hours only is as it is. Raises UsageError where nothing of it does."""
    if log is None or log.begin_s is None:
        return log
    at, kept = log.begin_s, []
    for hours, celsius in log.profile:
        left_s = min(end_s, at + 3600 * hours) - max(begin_s, at)
        kept += [(left_s / 3600, celsius)] if left_s > 0 else []
        at += 3600 * hours
    if not kept:
        begin, end = (datetime.fromtimestamp(each, UTC).isoformat(" ", "seconds") for each in (begin_s, end_s))
        raise UsageError(f"temperatures from {begin} to {end}", "none of then in the log", "correct --storage")
    return Log(tuple(kept), max(begin_s, log.begin_s), min(end_s, at))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e12 else None


SINCE_1970 = 1e8  # a number above it is a time of the clock, one below it hours


def _dated(text: str) -> bool:
    value = _number(text)
    return value is None or value >= SINCE_1970


def _time(text: str) -> float | None:
    """Seconds: since 1970, or since the log's own zero."""
    value = _number(text)
    if value is not None:
        return value if value >= SINCE_1970 else value * 3600
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def found(log: Log | None, off_hours: float | None = None) -> dict:
    """What the storage costs: {"hours", "mean_C", "effective_C", "equivalent_h": {°C: {eV: hours}}, "why", "words",
    "covers"}; without a log all is None but `why`. off_hours: between seal and verify, by the calendar."""
    if log is None or not log.hours:
        why = "how it was stored is not known (--storage LOG or --celsius T)" if log is None else "it was not stored"
        out: dict = dict.fromkeys(("mean_C", "effective_C", "equivalent_h", "words", "covers"))
        return out | {"hours": None if log is None else 0.0, "off_hours": off_hours, "why": why}
    profile = list(log.profile)
    at = {
        f"{celsius:g}": {f"{ea_eV:g}": equivalent_hours(profile, celsius, ea_eV) for ea_eV in RANGE_EV}
        for celsius in AT_C
    }
    covers = None if not off_hours else min(1.0, log.hours / off_hours)
    return {
        "hours": log.hours,
        "off_hours": off_hours,
        "mean_C": sum(hours * celsius for hours, celsius in profile) / log.hours,
        "effective_C": effective_temperature(profile),
        "equivalent_h": at,
        "covers": covers,
        "why": None,
        "words": words(log, at, off_hours),
    }


def words(log: Log, at: dict[str, dict[str, float]], off_hours: float | None) -> list[str]:
    """The same in sentences."""
    out = [
        f"Stored for {period(log.hours / 24)} by the log that was given: a constant"
        f" {effective_temperature(list(log.profile)):.1f} °C would have cost as much ({ACTIVATION_ENERGY_EV:g} eV)."
    ]
    for celsius, by in at.items():
        each = ", ".join(f"{by[key]:.4g} h with {key} eV" for key in reversed(by))
        out.append(f"Charge loss as of {each} at {celsius} °C.")
    if off_hours and log.hours < LEAST_COVER * off_hours:
        share = 100 * log.hours / off_hours
        out.append(f"The log covers {share:.0f} % of the time between seal and verify; the rest is not in it.")
    if off_hours is not None and LEAST_COVER * log.hours > off_hours + SLACK_HOURS:
        passed = period(off_hours / 24)
        out.append(f"Only {passed} passed between seal and verify by this host's clock: the log does not fit that.")
    return [*out, WHY_RANGE]


def to_csv(log: Log) -> str:
    """The log as it was used, for the run folder; parse() reads it."""
    at, rows = 0.0, ["hours,celsius"]
    for hours, celsius in log.profile:
        rows.append(f"{at!r},{celsius!r}")
        at += hours
    return "\n".join([*rows, f"{at!r},{log.profile[-1][1]!r}", ""])
