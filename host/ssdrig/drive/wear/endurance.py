"""Wear against limits: how much of a drive's rated endurance and warranty is used, and when which limit is reached.
Pure.

Formulas: TBW = DWPD x capacity x 365 x years / 1e12; TBW of my workload = rated TBW x WA of the rating / WA of mine;
projected TBW = host bytes x 100 / percentage used. TB is 1e12 bytes
written by the host. A figure is None when one of its inputs is unknown.
"""

import bisect
import math
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from ssdrig.base import words
from ssdrig.base.errors import UsageError
from ssdrig.base.words import DAYS_PER
from ssdrig.drive.wear.wa import WriteAmplification

TB = 1e12
DAY_NS = 86_400_000_000_000
FEWEST_PERCENT = 5  # percentage used, whole percents: below this a projection is off by more than a fifth
MOST_PERCENT = 255  # NVMe, ACS and SPC: as well whatever is more
FEWEST_CYCLES = 5  # likewise for a mean erase count
LEAST_DAYS = 1 / 24  # of a history: a shorter one gives no rate per day
WINDOWS = 12  # most windows of a history, for the spread of its rate


class Limits(NamedTuple):
    """What the maker rates and warrants. tbw_TB: 1e12 host bytes; mileage: the warranty ends at tbw_TB or after
    `years`, whichever comes first (False: the TBW is a rating only, None: not known); pe_cycles: rated program/erase
    cycles; drive_class: "client" or "enterprise" in the sense of JESD218; start: first day of the warranty; source:
    where the figures are from; basis: what workload they are for, and which of them were computed from others."""

    tbw_TB: float | None = None
    years: float | None = None
    dwpd: float | None = None
    pe_cycles: float | None = None
    mileage: bool | None = None
    drive_class: str | None = None
    start: date | None = None
    source: str | None = None
    basis: str | None = None


class Rate(NamedTuple):
    """Host bytes written per day, with its range. calendar False: per day of power-on time."""

    bytes_per_day: float
    low: float
    high: float
    source: str
    calendar: bool = True


def tbw_of_dwpd(dwpd: float, capacity_bytes: int, years: float) -> float:
    """TB that may be written at `dwpd` drive writes per day for `years` of 365 days."""
    return dwpd * capacity_bytes * 365 * years / TB


def dwpd_of_tbw(tbw_TB: float, capacity_bytes: int, years: float) -> float:
    """Drive writes per day that use tbw_TB up in `years` of 365 days."""
    return tbw_TB * TB / (capacity_bytes * 365 * years)


def tbw_of_cycles(capacity_bytes: int, pe_cycles: float, wa: float, wear_levelling: float = 1.0) -> float:
    """TB of the host that the flash takes: capacity (of the NAND) x cycles x wear levelling efficiency (0..1) / WA."""
    return capacity_bytes * pe_cycles * wear_levelling / (wa * TB)


def drive_life_minutes(wear_percent: float | None, timer_min: float | None) -> float | None:
    """Intel/Solidigm: minutes that the flash lasts under the workload since the timed counters were reset: E4 x 100 /
    E2, E4 in minutes, E2 in percent (the drive counts 1/1024 %). None in the drive's first hour, before it reports
    them, and without wear."""
    if not wear_percent or not timer_min:
        return None
    return timer_min * 100 / wear_percent


def parse_rate(text: str) -> Rate:
    """ "50GB/day", "1.2 TB/month" -> Rate. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*(?:/| per )\s*([a-z]+)\s*", text)
    if not match or float(match[1]) <= 0 or match[2] not in words.BYTES or match[3] not in DAYS_PER:
        raise UsageError(
            "a rate such as 50GB/day or 1.2TB/month",
            repr(text),
            f"give a number, {' '.join(words.DECIMAL)}, and {' '.join(f'/{time}' for time in DAYS_PER)}",
        )
    value = float(match[1]) * words.BYTES[match[2]] / DAYS_PER[match[3]]
    return Rate(value, value, value, f"as given: {text.strip()}")


def rate_of_history(history: list[dict]) -> Rate | None:
    """The rate of a list of snapshots with "utc_ns" (host_written_bytes, _unit_bytes, _source), in any order.

    Only readings after the last time that the counter went back or changed its kind are used. The range is the
    counter's resolution plus twice the standard error of the mean over up to WINDOWS equal windows. None if there are
    less than LEAST_DAYS between the first and the last."""
    names = ("utc_ns", "host_written_bytes", "host_written_unit_bytes", "host_written_source")
    rows: list[tuple[Any, ...]] = [tuple(s.get(name) for name in names) for s in history]
    readings = sorted((row for row in rows if None not in row[:3]), key=lambda row: row[0])
    for i in range(len(readings) - 1, 0, -1):
        if readings[i][1] < readings[i - 1][1] or readings[i][2:] != readings[i - 1][2:]:
            readings = readings[i:]
            break
    if len(readings) < 2 or readings[-1][0] - readings[0][0] < LEAST_DAYS * DAY_NS:
        return None
    unit, days = readings[0][2], (readings[-1][0] - readings[0][0]) / DAY_NS
    rate = (readings[-1][1] - readings[0][1]) / days
    spread = _spread(readings)
    margin = unit / days + (spread or 0)
    source = f"{len(readings)} polls over {words.period(days)}" + (
        "" if spread is not None else ", too few for its spread"
    )
    return Rate(rate, max(0.0, rate - margin), rate + margin, source)


def _spread(readings: list[tuple]) -> float | None:
    """Twice the standard error of the mean rate over equal windows whose ends are the nearest readings; None below 4
    windows."""
    begin, end = readings[0][0], readings[-1][0]
    wanted = min(WINDOWS, len(readings) - 1)
    cuts = [begin + (end - begin) * k // wanted for k in range(wanted + 1)]
    times = [row[0] for row in readings]
    ends = [readings[i] for i in sorted({_nearest(times, cut) for cut in cuts})]
    rates = [(b[1] - a[1]) / ((b[0] - a[0]) / DAY_NS) for a, b in zip(ends, ends[1:]) if b[0] > a[0]]
    if len(rates) < 4:
        return None
    mean = sum(rates) / len(rates)
    return 2 * math.sqrt(sum((r - mean) ** 2 for r in rates) / (len(rates) - 1) / len(rates))


def _nearest(times: list[int], wanted: int) -> int:
    """Index of the time that is nearest, the earlier of two; times ascend."""
    at = bisect.bisect_left(times, wanted)
    if at == 0 or at < len(times) and times[at] - wanted < wanted - times[at - 1]:
        return at
    return bisect.bisect_left(times, times[at - 1])


def rate_of_life(snapshot: dict, start: date | None, today: date) -> Rate | None:
    """The mean over the drive's life: per calendar day since `start`, or per day of power-on time where that is not
    given, or where it was on for longer than that: then it wrote before. Days and hours are whole
    ones; the range covers the rest."""
    host, unit, hours = (snapshot.get(k) for k in ("host_written_bytes", "host_written_unit_bytes", "power_on_hours"))
    if host is None or unit is None:
        return None
    calendar = start is not None and not _in_use_before(snapshot, start, today)
    days, step = ((today - start).days, 1.0) if start and calendar else ((hours or 0) / 24, 1 / 24)
    if days <= 0 or start and today <= start:
        return None
    source = f"mean since {start}" if calendar else f"mean over {hours} power-on hours"
    return Rate(host / days, max(0, host - unit) / (days + step), (host + unit) / days, source, calendar)


def _in_use_before(snapshot: dict, start: date, today: date) -> bool:
    """Whether a drive was on for longer than there are days from the first to today, both counted."""
    return (snapshot.get("power_on_hours") or 0) / 24 > (today - start).days + 1


def project(
    snapshot: dict, limits: Limits, rate: Rate | None, wa: WriteAmplification | None = None, today: date | None = None
) -> dict:
    """Wear of one snapshot against its limits, and when which is reached at `rate`; a flat dict for JSON.

    *_used_percent are shares of the rating. "ahead": a list of {"limit", "left_bytes", "days", "days_low", "days_high",
      "date", "date_low", "date_high", "source"} in the order in which the limits are reached, also
      "first"; limit is "tbw", "pe_cycles", "percentage_used" or "warranty_time", dates are None where the rate counts
      power-on days, as do all figures of a day then. days 0: reached. "unknown": the reasons for None."""
    today = today or datetime.now(UTC).date()
    host, unit = snapshot.get("host_written_bytes"), snapshot.get("host_written_unit_bytes") or 0
    out: dict[str, Any] = {
        "host_written_bytes": host,
        "rate_bytes_per_day": rate and rate.bytes_per_day,
        "rate_low_bytes_per_day": rate and rate.low,
        "rate_high_bytes_per_day": rate and rate.high,
        "rate_source": rate and rate.source,
        "rate_calendar": rate and rate.calendar,
    }
    unknown, ahead = [], []
    out |= _warranty_time(snapshot, limits, today)
    rated = limits.tbw_TB * TB if limits.tbw_TB is not None else None
    out |= {
        "rated_tbw_bytes": rated,
        "tbw_used_percent": _share(host, rated),
        "tbw_left_bytes": None,
        "tbw_source": limits.source if rated else None,
    }
    if rated is None:
        unknown.append(
            "the rated TBW of this model: look it up in its data sheet and give --tbw, or add it to warranty.toml"
        )
    if host is not None and rated is not None:
        out["tbw_left_bytes"] = max(0, rated - host)
        ahead.append(_ahead("tbw", rated - host, unit, unit, rate, today, f"{words.size(rated)} rated"))
    life = drive_life_minutes(snapshot.get("workload_wear_percent"), snapshot.get("workload_timer_min"))
    out["workload_life_days"] = life / 1440 if life is not None else None
    left_days = out["warranty_days_left"]
    out["allowance_bytes_per_day"] = (
        out["tbw_left_bytes"] / left_days if left_days and out["tbw_left_bytes"] is not None else None
    )
    capacity = snapshot.get("capacity_bytes")
    out["drive_writes_per_day"] = rate.bytes_per_day / capacity if rate and capacity else None
    out |= _percentage(snapshot, host, rate, today, ahead, unknown)
    out |= _cycles(snapshot, limits, host, rate, wa, today, ahead, unknown)
    if out["warranty_days_left"] is not None and (rate is None or rate.calendar):
        days = out["warranty_days_left"]
        end = out["warranty_end"]
        ahead.append(
            {
                "limit": "warranty_time",
                "left_bytes": None,
                "days": days,
                "days_low": days,
                "days_high": days,
                "date": end,
                "date_low": end,
                "date_high": end,
                "source": f"{limits.years:g} years from {limits.start}",
            }
        )
    elif out["warranty_start"] and out["warranty_days_left"] is None:
        unknown.append(
            f"the time left of the warranty: the reading is of {today}, before its first day, {limits.start}"
        )
    elif limits.years is not None and limits.start is None and out["warranty_days_left_at_most"] != 0:
        unknown.append(f"when the {limits.years:g} years of warranty began: give --start YYYY-MM-DD")
    if limits.start and rate and not rate.calendar and _in_use_before(snapshot, limits.start, today):
        unknown.append(
            f"how much is written per calendar day: it was on for {snapshot['power_on_hours']} h, longer than since"
            f" {limits.start}, so it was in use before"
        )
    if rate is None:
        unknown.append(
            "how much is written per day: let `ssdrig watch` record it and give --history, or give --rate 50GB/day"
        )
    ahead = sorted((a for a in ahead if a["days"] is not None), key=lambda a: a["days"])
    return out | {"ahead": ahead, "first": ahead[0] if ahead else None, "unknown": unknown}


def _warranty_time(snapshot: dict, limits: Limits, today: date) -> dict:
    """Start, end and share of the warranty's years; without a start the power-on hours give the drive's least
    age."""
    names = ("start", "end", "used_percent", "days_left", "days_left_at_most")
    out: dict = {f"warranty_{name}": None for name in names}
    if limits.years is None:
        return out
    whole = limits.years * DAYS_PER["year"]
    if limits.start is not None:
        end = _later(limits.start, limits.years)
        if today < limits.start:  # a reading from before, or of a host whose clock was wrong
            return out | {"warranty_start": str(limits.start), "warranty_end": str(end)}
        left = max(0, (end - today).days)
        used = 100 * (today - limits.start).days / (end - limits.start).days
        return out | {
            "warranty_start": str(limits.start),
            "warranty_end": str(end),
            "warranty_used_percent": used,
            "warranty_days_left": left,
            "warranty_days_left_at_most": left,
        }
    hours = snapshot.get("power_on_hours")
    return out | {"warranty_days_left_at_most": None if hours is None else max(0.0, whole - hours / 24)}


def _percentage(snapshot: dict, host: int | None, rate: Rate | None, today: date, ahead: list, unknown: list) -> dict:
    """percentage_used p counts whole percents, or hundredths, and how it is rounded is unspecified: the truth is within
    p +- one of these."""
    p = snapshot.get("percentage_used")
    step = ((snapshot.get("sources") or {}).get("percentage_used") or {}).get("error") or 1
    out = {
        name: snapshot.get(name)
        for name in ("percentage_used", "available_spare_percent", "available_spare_threshold_percent")
    }
    out |= {"projected_tbw_TB": None, "projected_tbw_low_TB": None, "projected_tbw_high_TB": None}
    if p is None and any(text.startswith("percentage used") for text in snapshot.get("unknown") or ()):
        pass  # the snapshot's own words are more precise
    elif p is None:
        unknown.append("how worn the drive is by its own account: it reports no percentage used")
    elif p >= MOST_PERCENT:
        unknown.append(f"the TB that this drive endures, from its percentage used: it is at {p:g} %, its largest value")
    elif p < FEWEST_PERCENT * step:
        unknown.append(
            f"the TB that this drive endures, from its percentage used: it is at {p:g} %, a projection needs"
            f" {FEWEST_PERCENT * step:g} %"
        )
    elif host:
        value, low, high = (host * 100 / x for x in (p, p + step, p - step))
        out |= {"projected_tbw_TB": value / TB, "projected_tbw_low_TB": low / TB, "projected_tbw_high_TB": high / TB}
        source = f"percentage used {p:g} %, as so far in its life"
        ahead.append(_ahead("percentage_used", value - host, value - low, high - value, rate, today, source))
    if p is not None and p >= 100 and out["projected_tbw_TB"] is None:
        ahead.append(_ahead("percentage_used", 0, 0, 0, rate, today, f"percentage used {p:g} %"))
    return out


def _cycles(
    snapshot: dict,
    limits: Limits,
    host: int | None,
    rate: Rate | None,
    wa: WriteAmplification | None,
    today: date,
    ahead: list,
    unknown: list,
) -> dict:
    """Host bytes per cycle as so far in its life; corrected by WA over its life / WA of this workload where both are
    known."""
    mean, highest, rating = snapshot.get("pe_cycles_mean"), snapshot.get("pe_cycles_max"), limits.pe_cycles
    out = {
        "rated_pe_cycles": rating,
        "pe_mean_used_percent": _share(mean, rating),
        "pe_max_used_percent": _share(highest, rating),
        "pe_source": snapshot.get("pe_cycles_source"),
        "wa_of_life": None,
    }
    nand = snapshot.get("nand_written_bytes")
    # counts since data placement was switched on
    if nand is not None and host and snapshot.get("nand_written_source") != "log 22h":
        out["wa_of_life"] = nand / host
    if mean is not None and rating is None:
        unknown.append("the rated P/E cycles of its flash: give --pe-cycles if the maker states them")
    if mean is not None and rating is not None and mean >= rating:
        ahead.append(_ahead("pe_cycles", 0, 0, 0, rate, today, f"{mean:g} of {rating:g} P/E cycles"))
    elif mean is not None and rating is not None and host and mean >= FEWEST_CYCLES:
        factor, error = 1.0, 0.0
        source = f"{mean:g} of {rating:g} P/E cycles, as so far in its life"
        if wa is not None and wa.value is not None and out["wa_of_life"]:
            factor, error = out["wa_of_life"] / wa.value, wa.relative_error or 0.0
            source = (
                f"{mean:g} of {rating:g} P/E cycles, at this workload's WA {wa.value:.2f} (over its life"
                f" {out['wa_of_life']:.2f})"
            )
        cases = ((mean, factor), (mean + 1, factor / (1 + error)), (mean - 1, factor * (1 + error)))
        value, low, high = (max(0.0, rating - cycles) * host / cycles * f for cycles, f in cases)
        ahead.append(_ahead("pe_cycles", value, value - low, high - value, rate, today, source))
    return out


def _ahead(limit: str, left: float, less: float, more: float, rate: Rate | None, today: date, source: str) -> dict:
    """One limit that is `left` bytes away, or between left - less and left + more."""
    out = {
        "limit": limit,
        "left_bytes": max(0, left),
        "days": None,
        "days_low": None,
        "days_high": None,
        "date": None,
        "date_low": None,
        "date_high": None,
        "source": source,
    }
    if left <= 0:
        return out | {"days": 0.0, "days_low": 0.0, "days_high": 0.0}
    if rate is None or rate.bytes_per_day <= 0:
        return out
    days = {
        "days": left / rate.bytes_per_day,
        "days_low": max(0.0, left - less) / rate.high,
        "days_high": (left + more) / rate.low if rate.low > 0 else None,
    }
    dates = {name.replace("days", "date"): _date(today, value) for name, value in days.items()} if rate.calendar else {}
    return out | days | dates


def _date(today: date, days: float | None) -> str | None:
    try:
        return None if days is None else str(today + timedelta(days=days))
    except OverflowError:  # past the year 9999
        return None


def _later(start: date, years: float) -> date:
    """start + whole years by the calendar (29 February becomes 1 March), the rest of a year in days."""
    whole = int(years)
    try:
        end = start.replace(year=start.year + whole)
    except ValueError:
        end = date(start.year + whole, 3, 1)
    rest = round((years - whole) * DAYS_PER["year"])
    return end + timedelta(days=rest if whole else max(1, rest))


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def rate_words(rate: Rate) -> str:
    """The rate per month, or per day if that is what it counts: '1.20 TB/month'."""
    return f"{words.size(rate.bytes_per_day * DAYS_PER['month'])}/month" + (
        "" if rate.calendar else " of power-on time"
    )
