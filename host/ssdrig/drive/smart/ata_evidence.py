"""Settle the unit of an ATA byte counter by what the same document shows. Pure.

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
from ssdrig.drive.smart.ata_readings import STATISTICS_SOURCE, Counter, Found

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
    by_role: dict[str, list[Found]], counters: dict[str, list[Counter]], life: Life
) -> tuple[list[tuple[str, str]], list[dict]]:
    """Add the readings of `counters` to `found`.

    found: {role: [Found]}, with device statistics in bytes. Returns ([(byte role, words)] of the counters whose unit
    stays unknown, [{"attribute", "name", "unit_bytes", "evidence"}] of the others)."""
    missing, settled = [], []
    for counter in counters.get("host_written", ()):
        if (words := _repeated(counter, by_role.get("host_written", ()), life)) is not None:
            missing += [(role, words) for role in ("host_written", "host_read") if words]
            for role in ("host_written", "host_read"):
                by_role[role] = [each for each in by_role.get(role, ()) if each.source != STATISTICS_SOURCE]
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
            readings.append(Found(counter.raw * unit, unit, label, counter.rank))
            number = counter.label.removeprefix("attribute ").partition(",")[0]
            settled.append({"attribute": int(number), "name": counter.name, "unit_bytes": unit, "evidence": evidence})
        if readings:
            by_role[role] = [*readings, *by_role.get(role, ())]
    return missing, settled


def _unit(
    counter: Counter, role: str, statistics: Found | None, corrected: dict, life: Life
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


def unit_of_statistics(counter: Counter, statistics: Found) -> int | None:
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


def _repeated(counter: Counter, readings: Sequence[Found], life: Life) -> str | None:
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


def fault(reading: Found, role: str, life: Life) -> str | None:
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
        if fault(Found(count, unit, ""), role, life):
            return False
        if role == "host_written" and life.pe_mean is not None and life.capacity_bytes:
            low, high = plausible.host_of_cycles(life.pe_mean, life.capacity_bytes)
            return low <= count + unit and count <= high
        return True
    if life.pe_mean is None or not life.capacity_bytes:
        return False
    return plausible.nand_fits(count, life.pe_mean, life.capacity_bytes)
