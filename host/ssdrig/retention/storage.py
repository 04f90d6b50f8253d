"""How a drive was stored: a log of temperatures, or one temperature for a time, and its effect on retention. Pure.

The result is never a number of years: the activation energy that turns storage at one temperature into hours at
another is an unknown property of the flash, so a range is always shown besides the standard's 1.1 eV."""

import csv
import io
from datetime import UTC, datetime
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.base.words import digits, period
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
LEAST_COVER = 0.95  # share of the time without power that a log should cover


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
    """Rows `time,°C`: the time as ISO 8601 (UTC by default), as seconds since 1970, or as hours since the
    first row; each temperature holds until the next row. Other columns, one line of headings and lines that begin with
    # are left alone. Raises UsageError."""
    if text.strip() and not text.endswith("\n"):
        seen = f"{text[text.rfind(chr(10)) + 1 :][:80]!r}, which may be cut"
        raise UsageError(f"a last row of {name} that is whole", seen, "end it with a new line")
    rows = [row for row in csv.reader(io.StringIO(text)) if row and not row[0].lstrip().startswith("#")]
    if rows and _time(rows[0][0]) is None:
        rows = rows[1:]
    rows_s: list[tuple[float, float]] = []
    dated = bool(rows) and _dated(rows[0][0])
    for number, row in enumerate(rows, 1):
        t_s, celsius = _time(row[0]), _number(row[1]) if len(row) > 1 else None
        whole = t_s is not None and celsius is not None and COLDEST_C <= celsius <= HOTTEST_C
        if not whole or _dated(row[0]) != dated:
            do = "write rows such as 2026-11-22T12:00:00,23.5"
            raise UsageError(f"a time and a temperature in °C in row {number} of {name}", ",".join(row)[:80], do)
        assert t_s is not None and celsius is not None
        if rows_s and t_s <= rows_s[-1][0]:
            raise UsageError(f"times that rise in {name}", f"row {number}: {row[0]}", "sort the rows by time")
        rows_s.append((t_s, celsius))
    if len(rows_s) < 2:
        raise UsageError(
            f"at least two rows in {name}", f"{len(rows_s)}", "the last row ends the time of the one before"
        )
    steps = zip(rows_s, rows_s[1:], strict=False)
    profile = tuple(((after - at) / 3600, celsius) for (at, celsius), (after, _) in steps)
    return Log(profile, rows_s[0][0], rows_s[-1][0]) if dated else Log(profile)


def within(log: Log | None, begin_s: float, end_s: float) -> Log | None:
    """The part of a log between two times, UTC, because a logger may have run before the drive was stored. A log with
    hours only is returned unchanged. Raises UsageError if no part is between them."""
    if log is None or log.begin_s is None:
        return log
    at, stretches = log.begin_s, []
    for hours, celsius in log.profile:
        left_s = min(end_s, at + 3600 * hours) - max(begin_s, at)
        stretches += [(left_s / 3600, celsius)] if left_s > 0 else []
        at += 3600 * hours
    if not stretches:
        begin, end = (datetime.fromtimestamp(at_s, UTC).isoformat(" ", "seconds") for at_s in (begin_s, end_s))
        raise UsageError(f"temperatures from {begin} to {end}", "none of then in the log", "correct --storage")
    return Log(tuple(stretches), max(begin_s, log.begin_s), min(end_s, at))


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


def effect(log: Log | None, off_hours: float | None = None) -> dict:
    """The effect of the storage: {"hours", "mean_C", "effective_C", "equivalent_h": {°C: {eV: hours}}, "why", "words",
    "covers"}; without a log all but `why` are None. off_hours: between seal and verify, by the calendar."""
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
        parts = ", ".join(f"{digits(by[key], 4)} h with {key} eV" for key in reversed(by))
        out.append(f"Charge loss as of {parts} at {celsius} °C.")
    if off_hours and log.hours < LEAST_COVER * off_hours:
        share = 100 * log.hours / off_hours
        out.append(f"The log covers {share:.0f} % of the time between seal and verify; the rest is not in it.")
    if off_hours is not None and LEAST_COVER * log.hours > off_hours + SLACK_HOURS:
        passed = period(off_hours / 24)
        out.append(f"Only {passed} passed between seal and verify by this host's clock: the log does not fit that.")
    return [*out, WHY_RANGE]


def to_csv(log: Log) -> str:
    """The log as it was used, for the run folder, in the form that parse() reads."""
    at, rows = 0.0, ["hours,celsius"]
    for hours, celsius in log.profile:
        rows.append(f"{at!r},{celsius!r}")
        at += hours
    return "\n".join([*rows, f"{at!r},{log.profile[-1][1]!r}", ""])
