"""Wear numbers of an ATA drive: its attributes, whose meaning depends on drive family and name (ata_table.py), and its
device statistics, which mean the same on every drive (ACS-4, log 04h). Pure.

An unstated unit stays unknown: the same name counts sectors in one drive and GiB in the next. A calibration
(document["units"], "ata:<id>") fills it in, and so does the drive's own evidence (ata_evidence.py). Two
sources of a byte counter that differ by more than their units allow are both named in `unknown`, and neither is
used.

Settle the unit of an ATA byte counter by what the same document shows. Pure.

Device statistics count sectors by their standard: a counter that equals theirs divided by an exact unit has that unit,
whatever its name. Two kinds of firmware break the standard. Some count sectors in 32 bits: whole turns of 2^32 sectors
are then missing, and the attribute shows how many. Some repeat an attribute that counts GiB: hours and wear decide
which of the two the number is. Power-on hours, P/E cycles x capacity and percentage used x capacity refute a unit;
among several in a table the remaining one is used."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.base.words import exact_size, size
from ssdrig.drive.smart import plausible
from ssdrig.drive.smart.ata_readings import (
    CALIBRATED,
    SECTORS_BITS,
    STATISTICS_SOURCE,
    Counter,
    Reading,
    in_words,
    of_attributes,
    of_statistics,
)
from ssdrig.drive.smart.ata_table import BYTE_ROLES, PE_ROLES, rows_for
from ssdrig.drive.smart.json_numbers import inside, objects, text, whole

MIB = 1 << 20
UNITS = (
    512,
    1000,
    4096,
    16384,
    MIB,
    10**6,
    *(MIB * count for count in (16, 32, 64, 128, 256)),
    10**9,
    1 << 30,
)  # bytes a count that drives are known to use, and 1000
FEWEST_COUNTS = 50  # GB and GiB differ by 7.4 %, so that one count in 50 cannot turn one into the other
MATCH = 0.01  # counters that the drive does not save at the same time


class Life(NamedTuple):
    """What bounds the bytes that a drive can have written. used_percent: of its rated life."""

    hours: int | None
    capacity_bytes: int | None
    pe_mean: float | None
    used_percent: float | None
    compresses: bool = False


def settle(
    by_role: dict[str, list[Reading]], counters: dict[str, list[Counter]], life: Life
) -> tuple[list[tuple[str, str]], list[dict]]:
    """Add the readings of `counters` to `by_role`.

    by_role: {role: [Reading]}, device statistics in bytes. Returns ([(byte role, words)] of the counters whose unit
    stays unknown, [{"attribute", "name", "unit_bytes", "evidence"}] of the others)."""
    missing, settled = [], []
    for counter in counters.get("host_written", ()):
        if (words := _repeated(counter, by_role.get("host_written", ()), life)) is not None:
            missing += [(role, words) for role in ("host_written", "host_read") if words]
            for role in ("host_written", "host_read"):
                by_role[role] = [counter for counter in by_role.get(role, ()) if counter.source != STATISTICS_SOURCE]
                if words:
                    counters.pop(role, None)
            break
    corrected: dict[tuple[int, ...], int] = {}  # units of the table: the unit that the statistics name
    for role in sorted(counters, key=lambda role: role != "host_written"):
        statistics = next((reading for reading in by_role.get(role, ()) if reading.source == STATISTICS_SOURCE), None)
        readings = []
        for counter in counters[role]:
            unit, evidence, words = _unit(counter, role, statistics, corrected, life)
            if unit is None:
                missing.append((role, words))
                continue
            if evidence == STATISTICS_SOURCE and role.startswith("host"):
                corrected[counter.units] = unit
            label = f"{counter.label} ({exact_size(unit)}{words})"
            readings.append(Reading(counter.raw * unit, unit, label, counter.rank))
            number = counter.label.removeprefix("attribute ").partition(",")[0]
            settled.append({"attribute": int(number), "name": counter.name, "unit_bytes": unit, "evidence": evidence})
        if readings:
            by_role[role] = [*readings, *by_role.get(role, ())]
    return missing, settled


def _unit(
    counter: Counter, role: str, statistics: Reading | None, corrected: dict, life: Life
) -> tuple[int | None, str, str]:
    """(unit or None, its evidence, words for the label or the reason for None)."""
    if counter.calibrated:
        return counter.units[0], "calibration", ""
    unit = unit_of_statistics(counter, statistics) if statistics is not None else None
    if unit is not None:
        return unit, STATISTICS_SOURCE, "" if counter.units == (unit,) else " by device statistics"
    if role == "host_read" and counter.units in corrected:  # a drive counts both in one unit
        unit = corrected[counter.units]
        return unit, "device statistics of the writes", "" if counter.units == (unit,) else " by device statistics"
    unit, words = _of_table(counter, role, life)
    return unit, "table" if len(counter.units) == 1 else "hours and wear", words


def unit_of_statistics(counter: Counter, statistics: Reading) -> int | None:
    """The unit that makes a counter what device statistics count, also where these have wrapped at 32 bits; None where
    no known unit or more than one does."""

    def matches(unit: int) -> bool:
        off = abs(counter.raw * unit - statistics.value)
        if unit in counter.units:
            off = min(off, off_by_turns(unit))
        return off <= unit + statistics.error + MATCH * statistics.value

    def off_by_turns(unit: int) -> float:
        turn = 2**32 * statistics.error
        if not statistics.value < turn <= counter.raw * unit:
            return math.inf
        off = (counter.raw * unit - statistics.value) % turn
        return min(off, turn - off)

    units = dict.fromkeys((*counter.units, *UNITS))
    fits = [unit for unit in units if matches(unit)]
    if fits and fits[0] in counter.units:
        return fits[0] if len([unit for unit in fits if unit in counter.units]) == 1 else None
    # a unit that no table names must fit within one count: 1 GiB does so by chance once in 1024 times
    fits = fits or [unit for unit in units if off_by_turns(unit) <= unit]
    return fits[0] if len(fits) == 1 and counter.raw >= FEWEST_COUNTS else None


def _repeated(counter: Counter, readings: Sequence[Reading], life: Life) -> str | None:
    """Whether device statistics repeat an attribute of another unit than sectors: None if not, "" if they do, words if
    nothing decides between the two."""
    statistics = next((reading for reading in readings if reading.source == STATISTICS_SOURCE), None)
    if statistics is None or counter.calibrated or not counter.raw or not counter.units:
        return None
    sector = round(statistics.error)
    if sector in counter.units or abs(counter.raw - statistics.value / sector) > 1:
        return None
    if not _fits(statistics.value, sector, "host_written", life):
        return ""
    units = [unit for unit in counter.units if _fits(counter.raw * unit, unit, "host_written", life)]
    if not units:
        return None
    offered = " or ".join(exact_size(unit) for unit in (sector, *units))
    return (
        f"{counter.label} {counter.name} and device statistics both count {counter.raw} of {offered}, and its hours and"
        " wear do not decide"
    )


def fault(reading: Reading, role: str, life: Life) -> str | None:
    """Why a reading of the host's bytes cannot be; None if it can. Device statistics have a unit of a standard, so the
    drive's wear does not judge it."""
    own = reading.source == STATISTICS_SOURCE
    why = plausible.bytes_fault(reading.value, life.hours, "ATA", role == "host_written" or not own)
    if why or own or role != "host_written" or not life.capacity_bytes or life.used_percent is None:
        return why
    if reading.value <= plausible.bytes_of_percent(life.used_percent, life.capacity_bytes, life.compresses):
        return None
    fills = reading.value / life.capacity_bytes
    return f"{size(reading.value)}, {fills:.0f} drive writes at {life.used_percent:g} % used: another unit, or no count"


def _of_table(counter: Counter, role: str, life: Life) -> tuple[int | None, str]:
    """(unit, words for it) by the table; (None, why not)."""
    named = f"{counter.label} {counter.name} counts {counter.raw} of an unknown unit"
    if len(counter.units) <= 1:
        return (counter.units[0], "") if counter.units else (None, named)
    fits = [unit for unit in counter.units if _fits(counter.raw * unit, unit, role, life)]
    offered = " or ".join(exact_size(unit) for unit in counter.units)
    if len(fits) == 1:
        return fits[0], f", the only one of {offered} that fits its hours and wear"
    return None, f"{counter.label} {counter.name} counts {counter.raw} of {offered}, and " + (
        "too little was written to decide" if fits else "neither fits its hours and wear"
    )


def _fits(count: float, unit: int, role: str, life: Life) -> bool:
    if role.startswith("host"):
        if fault(Reading(count, unit, ""), role, life):
            return False
        if role == "host_written" and life.pe_mean is not None and life.capacity_bytes:
            low, high = plausible.host_of_cycles(life.pe_mean, life.capacity_bytes)
            return low <= count + unit and count <= high
        return True
    if life.pe_mean is None or not life.capacity_bytes:
        return False
    return plausible.nand_fits(count, life.pe_mean, life.capacity_bytes)


DISAGREEMENT = 0.05
PERCENT_DISAGREEMENT = 5
SKEW = 0.001  # of 2^32 sectors: counters that the drive does not save at the same time
GUESS = "smartctl's guess from a normalised value"


def reduce(document: dict, smartctl: dict, unknown: list[str]) -> dict:
    """Snapshot fields of an ATA drive, with "sources", "compresses" (whether its controller may write less than the
    host sent) and "refused" ({role: why its source is not believed}). Raises UsageError for a table of the user's that
    cannot be read."""
    rows = rows_for(document, smartctl)
    hours = whole(smartctl.get("power_on_time"), "hours", [], "")
    refused: dict[str, str] = {}
    by_role, counters = of_attributes(document, smartctl, rows, unknown, refused)
    statistics = of_statistics(smartctl, unknown, refused)
    if hours is None:
        best = _first(by_role, "power_on_hours") or statistics.get("power_on_hours")
        hours = int(best.value) if best else None
    block = whole(smartctl, "logical_block_size", unknown, "logical block size", at_least=1, at_most=1 << 20)
    for role in ("host_written", "host_read"):
        sectors = statistics.pop(role, None)
        if sectors is not None and block is not None:
            by_role.setdefault(role, []).append(Reading(sectors.value * block, block, STATISTICS_SOURCE))
        elif sectors is not None:
            unknown.append(
                f"{in_words(role)}: device statistics count sectors, and the file does not give the sector size"
            )
    out: dict = {"sources": {}, "compresses": rows.compresses, "refused": refused}
    if rows.family is not None:
        out |= {"family": rows.family.name, "family_source": f"ssdrig's own table: {rows.family.evidence}"}
    mean, used = _first(by_role, "pe_mean"), statistics.get("percentage_used") or _first(by_role, "percentage_used")
    life = Life(
        hours,
        whole(smartctl.get("user_capacity"), "bytes", [], "") or whole(document.get("drive"), "capacity_bytes", [], ""),
        mean.value if mean else None,
        used.value if used else None,
        rows.compresses,
    )
    units_missing, out["counter_units"] = settle(by_role, counters, life)
    _bytes(out, by_role, life, units_missing, smartctl, unknown)
    _pages(out, by_role)
    _cycles(out, by_role, unknown)
    _percent(out, by_role, statistics, smartctl, unknown)
    for role, readings in by_role.items():
        if role not in (
            *BYTE_ROLES,
            *PE_ROLES,
            "percentage_used",
            "available_spare_percent",
            "host_pages",
            "ftl_pages",
        ):
            _put(out, role, min(readings, key=lambda reading: reading.rank))
    for role, reading in statistics.items():
        if role not in out:
            _put(out, role, reading)
        elif role == "media_errors" and reading.value != out[role]:
            unknown.append(
                f"media errors: {out['sources'][role]['source']} reports {out[role]}, {reading.source} {reading.value}:"
                " neither is used"
            )
            del out[role], out["sources"][role]
    highest = whole(
        smartctl.get("temperature"), "lifetime_max", unknown, "highest temperature", at_least=-100, at_most=300
    )
    if highest is not None and "temperature_max_C" not in out:
        _put(out, "temperature_max_C", Reading(highest, 1, "smartctl's temperature"))
    # smartctl's own summary comes before the attributes that it is made of
    for name, where, field in (
        ("temperature_C", smartctl.get("temperature"), "current"),
        ("power_on_hours", smartctl.get("power_on_time"), "hours"),
        ("power_cycles", smartctl, "power_cycle_count"),
    ):
        if name in out and whole(where, field, [], "", at_least=-100) is not None:
            del out[name], out["sources"][name]
    return out


def say_what_is_missing(out: dict, refused: dict[str, str], unknown: list[str]) -> None:
    """Report the figures that a user would look for and that no source on the drive is known to report, or only one
    that is `refused` (see reduce())."""
    if out["percentage_used"] is None and not _mentions(unknown, "percentage used"):
        why = refused.get("percentage_used") or "no attribute or statistic of this drive is known to report it"
        unknown.append(f"percentage used: {why}")
    if out["nand_written_bytes"] is None and not _mentions(unknown, "NAND "):
        if out["nand_program_pages"] is not None:
            unknown.append(
                "NAND bytes written: the drive counts pages without reporting their size; write amplification comes"
                " from their ratio"
            )
        else:
            whys = (why for role, why in refused.items() if role.startswith("nand_written"))
            unknown.append(f"NAND bytes written: {next(whys, 'no attribute of this drive is known to count them')}")


def unnamed_counters(smartctl: dict) -> str:
    """Words for attributes that count the host's bytes on other drives and that smartctl does not name on this one; ""
    without such attributes."""
    table = objects(inside(smartctl, "ata_smart_attributes", "table"))
    rows = [row for row in table if type(row.get("id")) is int and CALIBRATED.get(row["id"]) == "host_written"]
    rows = [row for row in rows if inside(row, "raw", "value")]
    if not rows:
        return ""
    named = " and ".join(f"attribute {row['id']} ({row.get('name')})" for row in rows)
    return (
        f"what {named} counts on this model is unknown: neither smartctl's database nor ssdrig's has it; ./ssdrig units"
    )


def _mentions(unknown: list[str], start: str) -> bool:
    return any(words.startswith(start) for words in unknown)


def _first(readings: dict[str, list[Reading]], role: str) -> Reading | None:
    """The reading of a role that goes first."""
    return min(readings.get(role, ()), key=lambda reading: reading.rank, default=None)


def _put(out: dict, name: str, reading: Reading) -> None:
    out[name] = reading.value
    out["sources"][name] = {"source": reading.source, "error": reading.error}


# ---- from several readings to one figure


def _bytes(out: dict, by_role: dict, life: Life, units_missing: list, smartctl: dict, unknown: list[str]) -> None:
    """The *_bytes fields."""
    refuted: dict[float, str] = {}  # the units that the host's writes cannot have: reads are counted in the same
    for role in ("host_written", "host_read"):
        good = []
        for reading in by_role.get(role, ()):
            why = fault(reading, role, life)
            own = reading.source == STATISTICS_SOURCE
            if why is None and role == "host_read" and reading.error in refuted and not own:
                why = f"{size(reading.value)}, in the unit of the writes, which give {refuted[reading.error]}"
            if why:
                unknown.append(f"{in_words(role)}: {reading.source} gives {why}")
                if role == "host_written" and not own:
                    refuted[reading.error] = why
            else:
                good.append(reading)
        best = _finest(_without_wrapped(good, in_words(role), unknown), in_words(role), unknown)
        if best:
            _put(out, f"{role}_bytes", best)
            if role == "host_written":
                out |= {"host_written_unit_bytes": best.error, "host_written_source": best.source}
                if best.source == STATISTICS_SOURCE:
                    out["host_written_wrap_bytes"] = 2**SECTORS_BITS * best.error
    name = "NAND bytes written"
    best = _finest(by_role.get("nand_written", []), name, unknown)
    tlc, slc = (
        _finest(by_role.get(f"nand_written_{kind}", []), f"{name} ({kind})", unknown) for kind in ("tlc", "slc")
    )
    if tlc:
        _put(out, "nand_written_tlc_bytes", tlc)
        if not best and slc:
            # each of the two counters rounds, so the sum is off by less than both units together
            best = Reading(tlc.value + slc.value, tlc.error + slc.error, f"{tlc.source} TLC + {slc.source} SLC")
        elif not best:
            unknown.append(
                f"{name}: {tlc.source} counts TLC alone; without the writes of the SLC cache it is not a total"
            )
    if best:
        _put(out, "nand_written_bytes", best)
        out |= {"nand_written_unit_bytes": best.error, "nand_written_source": best.source}
    listed = smartctl.get("in_smartctl_database") is True or text(smartctl.get("model_family")) is not None
    where = "" if listed else " (smartctl's database does not have the drive)"
    for role, words in units_missing:
        kind = "nand_written" if role.startswith("nand") else role
        if out.get(f"{kind}_bytes") is None and role != "host_read" and not _mentions(unknown, in_words(role)):
            unknown.append(f"{in_words(role)}: {words}{where}; to find it: ./ssdrig units")


def _without_wrapped(readings: list[Reading], name: str, unknown: list[str]) -> list[Reading]:
    """Without device statistics that count sectors in 32 bits where ACS has 48: an attribute is then larger by whole
    turns of 2^32 sectors. And without an attribute that counts sectors in 32 bits, if the statistics are larger."""
    statistics = next((reading for reading in readings if reading.source == STATISTICS_SOURCE), None)
    if statistics is None:
        return readings
    if statistics.value == 0 and any(other.value > plausible.ENOUGH_BYTES for other in readings):
        unknown.append(f"{name}, {STATISTICS_SOURCE}: 0, while an attribute counts: the drive does not fill them")
        return [reading for reading in readings if reading is not statistics]
    turn = 2**32 * statistics.error
    if statistics.value >= turn:
        return [
            other for other in readings if other is statistics or not _has_wrapped(other, statistics, name, unknown)
        ]
    for other in readings:
        off = (other.value - statistics.value) % turn
        if other.value > turn and min(off, turn - off) <= max(2 * other.error, 0.001 * other.value):
            unknown.append(
                f"{name}, {STATISTICS_SOURCE}: {size(statistics.value)} is what 32 bits hold of the"
                f" {size(other.value)} of {other.source}: they have wrapped, and are not used"
            )
            return [reading for reading in readings if reading is not statistics]
    return readings


def _has_wrapped(other: Reading, statistics: Reading, name: str, unknown: list[str]) -> bool:
    """Whether an attribute is what 32 bits hold of the sectors of device statistics; the words on it."""
    turn = 2**32 * statistics.error
    off = (statistics.value - other.value) % turn
    if other.error > statistics.error or other.value >= turn or min(off, turn - off) > SKEW * turn:
        return False
    unknown.append(
        f"{name}, {other.source}: {size(other.value)} is what 32 bits hold of the {size(statistics.value)} of"
        " device statistics: it has wrapped, and is not used"
    )
    return True


def _finest(readings: list[Reading], name: str, unknown: list[str]) -> Reading | None:
    """The reading of the finest unit; None if another differs from it by more than both units allow."""
    if not readings:
        return None
    best = min(readings, key=lambda reading: (reading.error, reading.rank))
    for other in readings:
        if abs(other.value - best.value) > DISAGREEMENT * max(other.value, best.value) + 2 * other.error:
            unknown.append(
                f"{name}: {best.source} reports {size(best.value)}, {other.source} {size(other.value)}: neither is used"
            )
            return None
    return best


def _pages(out: dict, by_role: dict) -> None:
    host, ftl = (_first(by_role, role) for role in ("host_pages", "ftl_pages"))
    if host and ftl:
        _put(out, "host_program_pages", host)
        _put(out, "nand_program_pages", Reading(host.value + ftl.value, 0, f"{host.source} + {ftl.source}"))


def _cycles(out: dict, by_role: dict, unknown: list[str]) -> None:
    for role in PE_ROLES:
        name = f"pe_cycles_{role[3:]}"
        readings = sorted(by_role.get(role, ()), key=lambda reading: reading.rank)
        for high in [reading for reading in readings if reading.value > plausible.PE_MOST]:
            unknown.append(
                f"{plausible.in_words(name)}: {high.source} reports {high.value}: no flash endures that many"
            )
            readings.remove(high)
        counted = [
            reading for reading in readings if reading.value
        ] or readings  # 0 next to a count: the drive does not count it
        if not counted:
            continue
        other = next((e for e in counted if abs(e.value - counted[0].value) > 1 + DISAGREEMENT * e.value), None)
        if other:
            unknown.append(
                f"{plausible.in_words(name)}: {counted[0].source} reports {counted[0].value}, {other.source}"
                f" {other.value}: neither is used"
            )
            continue
        _put(out, name, counted[0])
        if role != "pe_rated":
            out.setdefault("pe_cycles_source", counted[0].source)


def _percent(out: dict, by_role: dict, statistics: dict, smartctl: dict, unknown: list[str]) -> None:
    """Percentage used and spare: device statistics before attributes, and these before a guess of smartctl 7.5 from a
    normalised value. A guess of 0 % used is ignored: on many controllers the normalised value is always 100."""
    readings = sorted(by_role.get("percentage_used", ()), key=lambda reading: reading.rank)
    own = statistics.pop("percentage_used", None)
    guess = whole(smartctl.get("endurance_used"), "current_percent", unknown, "endurance used", at_most=255)
    first = readings[0] if readings else None
    other = next((e for e in readings if first and abs(e.value - first.value) > PERCENT_DISAGREEMENT), None)
    if own is not None:
        _put(out, "percentage_used", own)
        if first and abs(own.value - first.value) > PERCENT_DISAGREEMENT:
            unknown.append(
                f"percentage used: device statistics report {own.value} %, {first.source} {first.value:g} %: the"
                " statistics are used, because a standard defines them"
            )
    elif first and other:
        unknown.append(
            f"percentage used: {first.source} reports {first.value:g} %, {other.source} {other.value:g} %:"
            " neither is used"
        )
    elif first:
        _put(out, "percentage_used", first)
    elif guess and not _mentions(unknown, "percentage used"):
        _put(out, "percentage_used", Reading(guess, 1, GUESS))
    spare = _first(by_role, "available_spare_percent")
    table = smartctl.get("spare_available")
    guess = whole(table, "current_percent", unknown, "spare available", at_most=100)
    if spare is not None:
        _put(out, "available_spare_percent", spare)
        for threshold in by_role.get("available_spare_threshold_percent", ()):
            if threshold.source == spare.source:
                _put(out, "available_spare_threshold_percent", threshold)
    elif guess is not None and guess < 100:
        _put(out, "available_spare_percent", Reading(guess, 1, GUESS))
        guess = whole(table, "threshold_percent", unknown, "spare threshold", at_most=100)
        if guess is not None:
            _put(out, "available_spare_threshold_percent", Reading(guess, 0, GUESS))
    by_role.pop("available_spare_threshold_percent", None)
