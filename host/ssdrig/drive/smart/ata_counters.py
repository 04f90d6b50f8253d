"""Wear numbers of an ATA drive: its attributes, which mean what drive family and name say (ata_table.py), and its
device statistics, which mean the same on every drive (ACS-4, log 04h). Pure.

A unit that nobody states stays unknown: the same name counts sectors in one drive and GiB in the next. A calibration
(document["units"], "ata:<id>") fills it in. Two sources of a byte counter that differ by more than their units allow
are both named in `unknown`, and neither is used."""

import re
from typing import Any, NamedTuple

from ssdrig.drive.smart import plausible
from ssdrig.drive.smart.ata_table import BYTE_ROLES, PE_ROLES, SECOND_HALVES, Rows, rows_for
from ssdrig.drive.smart.json_numbers import inside, objects, refuse, text, whole
from ssdrig.words import exact_size, size

# a calibration of an attribute that no row knows: what the attributes of that id count where they count bytes
CALIBRATED = {
    225: "host_written",
    241: "host_written",
    246: "host_written",
    242: "host_read",
    233: "nand_written",
    243: "nand_written",
    249: "nand_written",
    251: "nand_written",
}
RAW_BYTES_MOST = 2**56 - 1  # smartctl takes up to 7 bytes of an attribute
COUNT_MOST = 2**32 - 1  # a count beyond this holds more than one number
ALL_ONES = {2**32 - 1, 2**48 - 1, RAW_BYTES_MOST}  # no count
TIMED_UNKNOWN = 0xFFFF  # workload values in the first 60 minutes
DISAGREEMENT = 0.05
PERCENT_DISAGREEMENT = 5
GUESS = "smartctl's guess from a normalised value"
STATISTICS_SOURCE = "device statistics"

# ACS-4: (page, offset of the statistic): role
STATISTICS: dict[tuple[int | None, int | None], str] = {
    (1, 0x08): "power_cycles",
    (1, 0x10): "power_on_hours",
    (1, 0x18): "host_written",
    (1, 0x28): "host_read",
    (3, 0x20): "reallocated",
    (4, 0x08): "media_errors",
    (5, 0x20): "temperature_max_C",
    (7, 0x08): "percentage_used",
}
SECTORS_BITS = 48


class Found(NamedTuple):
    """One reading: value, and by less than what it can be off, in the same unit; rank: lower goes first."""

    value: int | float
    error: float
    source: str
    rank: int = 0


def reduce(document: dict, smartctl: dict, unknown: list[str]) -> dict:
    """Snapshot fields of an ATA drive, with "sources" and "compresses" (whether its controller may write less than the
    host sent). Raises UsageError for a table of the user's that cannot be read."""
    rows = rows_for(document, smartctl)
    hours = whole(smartctl.get("power_on_time"), "hours", [], "")
    found, units_missing = _of_attributes(document, smartctl, rows, unknown)
    statistics = _of_statistics(smartctl, unknown)
    if hours is None:
        best = _first(found, "power_on_hours") or statistics.get("power_on_hours")
        hours = best and int(best.value)
    block = whole(smartctl, "logical_block_size", unknown, "logical block size", at_least=1, at_most=1 << 20)
    for role in ("host_written", "host_read"):
        sectors = statistics.pop(role, None)
        if sectors is not None and block is not None:
            found.setdefault(role, []).append(Found(sectors.value * block, block, STATISTICS_SOURCE))
        elif sectors is not None:
            unknown.append(
                f"{_in_words(role)}: device statistics count sectors, and the file does not give the sector size"
            )
    out: dict = {"sources": {}, "compresses": rows.compresses}
    _bytes(out, found, hours, units_missing, smartctl, unknown)
    _pages(out, found)
    _cycles(out, found, unknown)
    _percent(out, found, statistics, smartctl, unknown)
    for role, readings in found.items():
        if role not in (
            *BYTE_ROLES,
            *PE_ROLES,
            "percentage_used",
            "available_spare_percent",
            "host_pages",
            "ftl_pages",
        ):
            _put(out, role, min(readings, key=lambda each: each.rank))
    for role, reading in statistics.items():
        if role not in out:
            _put(out, role, reading)
    highest = whole(
        smartctl.get("temperature"), "lifetime_max", unknown, "highest temperature", at_least=-100, at_most=300
    )
    if highest is not None and "temperature_max_C" not in out:
        _put(out, "temperature_max_C", Found(highest, 1, "smartctl's temperature"))
    # smartctl's own summary comes before the attributes that it is made of
    for name, where, field in (
        ("temperature_C", smartctl.get("temperature"), "current"),
        ("power_on_hours", smartctl.get("power_on_time"), "hours"),
        ("power_cycles", smartctl, "power_cycle_count"),
    ):
        if name in out and whole(where, field, [], "", at_least=-100) is not None:
            del out[name], out["sources"][name]
    return out


def say_what_is_missing(out: dict, smartctl: dict, unknown: list[str]) -> None:
    """Words for what a person would look for and nothing of the drive is known to report."""
    if out["percentage_used"] is None and not _said(unknown, "percentage used"):
        unknown.append("percentage used: no attribute or statistic of this drive is known to report it")
    if out["nand_written_bytes"] is None and not _said(unknown, "NAND "):
        if out["nand_program_pages"] is not None:
            unknown.append(
                "NAND bytes written: the drive counts pages without reporting their size; write amplification comes"
                " from their ratio"
            )
        else:
            unknown.append("NAND bytes written: no attribute of this drive is known to count them")


def _said(unknown: list[str], start: str) -> bool:
    return any(words.startswith(start) for words in unknown)


def _first(found: dict[str, list[Found]], role: str) -> Found | None:
    """The reading of a role that goes first."""
    return min(found.get(role, ()), key=lambda each: each.rank, default=None)


def _put(out: dict, name: str, reading: Found) -> None:
    out[name] = reading.value
    out["sources"][name] = {"source": reading.source, "error": reading.error}


# ---- from several readings to one figure


def _bytes(out: dict, found: dict, hours: int | None, units_missing: list, smartctl: dict, unknown: list[str]) -> None:
    """The *_bytes fields."""
    for role in ("host_written", "host_read"):
        good = []
        for reading in found.get(role, ()):
            why = plausible.bytes_fault(reading.value, hours, "ATA", role == "host_written")
            if why:
                unknown.append(f"{_in_words(role)}: {reading.source} gives {why}")
            else:
                good.append(reading)
        best = _finest(_without_wrapped(good, _in_words(role), unknown), _in_words(role), unknown)
        if best:
            _put(out, f"{role}_bytes", best)
            if role == "host_written":
                out |= {"host_written_unit_bytes": best.error, "host_written_source": best.source}
                if best.source == STATISTICS_SOURCE:
                    out["host_written_wrap_bytes"] = 2**SECTORS_BITS * best.error
    name = "NAND bytes written"
    best = _finest(found.get("nand_written", []), name, unknown)
    tlc, slc = (_finest(found.get(f"nand_written_{kind}", []), f"{name} ({kind})", unknown) for kind in ("tlc", "slc"))
    if tlc:
        _put(out, "nand_written_tlc_bytes", tlc)
        if not best and slc:
            # each of the two counters rounds, so the sum is off by less than both units together
            best = Found(tlc.value + slc.value, tlc.error + slc.error, f"{tlc.source} TLC + {slc.source} SLC")
        elif not best:
            unknown.append(f"{name}: {tlc.source} counts TLC alone; without the writes of the SLC cache it is no total")
    if best:
        _put(out, "nand_written_bytes", best)
        out |= {"nand_written_unit_bytes": best.error, "nand_written_source": best.source}
    listed = smartctl.get("in_smartctl_database") is True or text(smartctl.get("model_family")) is not None
    where = "" if listed else " (smartctl's database does not have the drive)"
    for role, words in units_missing:
        kind = "nand_written" if role.startswith("nand") else role
        if out.get(f"{kind}_bytes") is None and role != "host_read" and not _said(unknown, _in_words(role)):
            unknown.append(f"{_in_words(role)}: {words}{where}; to find it: ./ssdrig calibrate")


def _without_wrapped(readings: list[Found], name: str, unknown: list[str]) -> list[Found]:
    """Without device statistics that count sectors in 32 bits where ACS has 48: an attribute is then larger by whole
    turns of 2^32 sectors."""
    statistics = next((each for each in readings if each.source == STATISTICS_SOURCE), None)
    if statistics is None:
        return readings
    turn = 2**32 * statistics.error
    if statistics.value >= turn:
        return readings
    for other in readings:
        off = (other.value - statistics.value) % turn
        if other.value > turn and min(off, turn - off) <= max(2 * other.error, 0.001 * other.value):
            unknown.append(
                f"{name}, {STATISTICS_SOURCE}: {size(statistics.value)} is what 32 bits hold of the"
                f" {size(other.value)} of {other.source}: they have wrapped, and are not used"
            )
            return [each for each in readings if each is not statistics]
    return readings


def _finest(readings: list[Found], name: str, unknown: list[str]) -> Found | None:
    """The reading of the finest unit; None if another differs from it by more than both units allow."""
    if not readings:
        return None
    best = min(readings, key=lambda each: (each.error, each.rank))
    for other in readings:
        if abs(other.value - best.value) > DISAGREEMENT * max(other.value, best.value) + 2 * other.error:
            unknown.append(
                f"{name}: {best.source} says {size(best.value)}, {other.source} {size(other.value)}: neither is used"
            )
            return None
    return best


def _pages(out: dict, found: dict) -> None:
    host, ftl = (_first(found, role) for role in ("host_pages", "ftl_pages"))
    if host and ftl:
        _put(out, "host_program_pages", host)
        _put(out, "nand_program_pages", Found(host.value + ftl.value, 0, f"{host.source} + {ftl.source}"))


def _cycles(out: dict, found: dict, unknown: list[str]) -> None:
    for role in PE_ROLES:
        name = f"pe_cycles_{role[3:]}"
        readings = sorted(found.get(role, ()), key=lambda each: each.rank)
        for each in [each for each in readings if each.value > plausible.PE_MOST]:
            unknown.append(f"{plausible.in_words(name)}: {each.source} says {each.value}: no flash takes so many")
            readings.remove(each)
        counted = [each for each in readings if each.value] or readings  # 0 beside a count: the drive does not count it
        if not counted:
            continue
        other = next((e for e in counted if abs(e.value - counted[0].value) > 1 + DISAGREEMENT * e.value), None)
        if other:
            unknown.append(
                f"{plausible.in_words(name)}: {counted[0].source} says {counted[0].value}, {other.source}"
                f" {other.value}: neither is used"
            )
            continue
        _put(out, name, counted[0])
        if role != "pe_rated":
            out.setdefault("pe_cycles_source", counted[0].source)


def _percent(out: dict, found: dict, statistics: dict, smartctl: dict, unknown: list[str]) -> None:
    """Percentage used and spare: device statistics, the drive's own word, before attributes, and these before what
    smartctl 7.5 guesses from a normalised value. A guess of 0 % used is none: on many controllers that value stands at
    100 for ever."""
    readings = sorted(found.get("percentage_used", ()), key=lambda each: each.rank)
    own = statistics.pop("percentage_used", None)
    guess = whole(smartctl.get("endurance_used"), "current_percent", unknown, "endurance used", at_most=255)
    first = readings[0] if readings else None
    other = next((e for e in readings if first and abs(e.value - first.value) > PERCENT_DISAGREEMENT), None)
    if own is not None:
        _put(out, "percentage_used", own)
        if first and abs(own.value - first.value) > PERCENT_DISAGREEMENT:
            unknown.append(
                f"percentage used: device statistics say {own.value} %, {first.source} {first.value:g} %: the"
                " statistics are used, whose meaning is a standard's"
            )
    elif first and other:
        unknown.append(
            f"percentage used: {first.source} says {first.value:g} %, {other.source} {other.value:g} %: neither is used"
        )
    elif first:
        _put(out, "percentage_used", first)
    elif guess and not _said(unknown, "percentage used"):
        _put(out, "percentage_used", Found(guess, 1, GUESS))
    spare = _first(found, "available_spare_percent")
    table = smartctl.get("spare_available")
    guess = whole(table, "current_percent", unknown, "spare available", at_most=100)
    if spare is not None:
        _put(out, "available_spare_percent", spare)
        for threshold in found.get("available_spare_threshold_percent", ()):
            if threshold.source == spare.source:
                _put(out, "available_spare_threshold_percent", threshold)
    elif guess is not None and guess < 100:
        _put(out, "available_spare_percent", Found(guess, 1, GUESS))
        guess = whole(table, "threshold_percent", unknown, "spare threshold", at_most=100)
        if guess is not None:
            _put(out, "available_spare_threshold_percent", Found(guess, 0, GUESS))
    found.pop("available_spare_threshold_percent", None)


# ---- the readings


def _of_attributes(document: dict, smartctl: dict, rows: Rows, unknown: list[str]) -> tuple[dict, list]:
    """({role: [Found]}, [(byte role, words for a counter of unknown unit)])."""
    calibrated = document.get("units") if isinstance(document.get("units"), dict) else {}
    found: dict[str, list[Found]] = {}
    halves, units_missing = {}, []
    for attribute in objects(inside(smartctl, "ata_smart_attributes", "table")):
        key, name = whole(attribute, "id", unknown, "attribute id", at_most=255), attribute.get("name")
        if key is None or not isinstance(name, str):
            continue
        label, mine = f"attribute {key}", rows.of(key, name)
        unit = whole(calibrated, f"ata:{key}", unknown, f"calibrated unit of {label}", at_least=1, at_most=1 << 40)
        if unit is not None:
            role, how = next(((r, h) for _, r, h in mine if r in BYTE_ROLES), (CALIBRATED.get(key), "?"))
            if role and how == "?":
                mine = [row for row in mine if row[1] != role] + [(0, role, unit)]
                label += ", calibrated"
        for rank, role, how in mine:
            if role in BYTE_ROLES:
                raw = whole(inside(attribute, "raw"), "value", unknown, f"{label} {name}", at_most=RAW_BYTES_MOST)
                if raw is None:
                    continue
                if raw in ALL_ONES:
                    refuse(unknown, f"{label} {name}", raw, "all ones, not a count")
                elif not isinstance(how, int):  # "?"
                    units_missing.append((role, f"{label} {name} counts {raw} of an unknown unit"))
                else:
                    found.setdefault(role, []).append(Found(raw * how, how, f"{label} ({exact_size(how)})", rank))
                continue
            how = str(how)
            value = _value(attribute, role, how, f"{label} {name}", unknown)
            if value is None:
                continue
            if role in SECOND_HALVES:
                halves[SECOND_HALVES[role]] = value
                continue
            found.setdefault(role, []).append(Found(value, _error(role, how), label, rank))
            if role == "available_spare_percent":
                threshold = whole(attribute, "thresh", unknown, f"{label} threshold", at_most=100)
                if threshold is not None:
                    found.setdefault("available_spare_threshold_percent", []).append(Found(threshold, 0, label, rank))
    for role, value in halves.items():
        if value and role in found:
            del found[role]
            unknown.append(
                f"{_in_words(role)}: the counter continues in a second attribute, and how the two join is unknown"
            )
    return found, units_missing


def _in_words(role: str) -> str:
    return {"host_written": "host bytes written", "host_read": "host bytes read"}.get(role, "NAND bytes written")


def _error(role: str, how: str) -> float:
    if how in ("percent word 0", "raw / 1024"):
        return 0.01 if how == "percent word 0" else 1 / 1024
    rounds = ("percentage_used", "available_spare_percent", "pe_mean", "power_on_hours", "temperature_C")
    return 1 if role in rounds or role.startswith("workload") else 0


def _value(attribute: dict, role: str, how: str, label: str, unknown: list[str]) -> int | float | None:
    """The value of a row that is not in bytes."""
    normalised: Any = None  # a number wherever the conversion asks for it
    if "normalised" in how or "life left" in how:
        found = whole(attribute, "value", unknown, f"{label}, normalised", at_most=255)
        if found is None:
            return None
        if found > 100:
            return refuse(unknown, f"{label}, normalised", found, "not a percentage")
        normalised = found
    if how == "normalised":
        return normalised
    if how == "100 - normalised":
        return 100 - normalised
    raw = whole(attribute.get("raw"), "value", unknown, label, at_most=2**64 - 1)
    if how == "raw, 100 - normalised":
        return raw if raw is not None and raw <= 255 and max(100 - raw, 0) == normalised else 100 - normalised
    if how == "100 - life left":
        return 100 - (raw if raw is not None and 0 < raw <= 100 and normalised in (100, raw) else normalised)
    if raw is None:
        return None
    if how == "raw unless normalised" and raw == normalised:
        return refuse(unknown, label, raw, "not a count of cycles: it repeats the normalised value")
    if how == "raw unless a rate" and isinstance(attribute.get("value"), int) and attribute["value"] > 100:
        return refuse(unknown, label, raw, f"a rate, not a count: its normalised value is {attribute['value']}")
    if how == "percent word 0":
        return _percent_word(raw, label, unknown)
    if how.startswith("word"):
        return raw >> 16 * int(how[5:]) & 0xFFFF
    if how.startswith("low"):
        return _low(raw, int(how.split()[1]), attribute, label, unknown)
    if role.startswith("workload") and raw in (TIMED_UNKNOWN, *ALL_ONES):
        return None  # within 60 minutes of the reset
    if role not in ("host_pages", "ftl_pages") and raw >= COUNT_MOST:
        return refuse(unknown, label, raw, "not a plain count: all ones, or several numbers in one")
    return raw / 1024 if how == "raw / 1024" else raw


def _percent_word(raw: int, label: str, unknown: list[str]) -> float | None:
    """0x2f24 -> 47.36. Bits 32 to 47 repeat the word where they are not 0."""
    word, again = raw & 0xFFFF, raw >> 32 & 0xFFFF
    if word & 0xFF > 99 or again not in (0, word):
        return refuse(unknown, label, hex(raw), "not packed as in the drives whose format is known")
    return (word >> 8) + (word & 0xFF) / 100


def _low(raw: int, bits: int, attribute: dict, label: str, unknown: list[str]) -> int | None:
    """The low bits of a raw value that packs several, if smartctl's text of it begins with the same number."""
    value, shown = raw & (1 << bits) - 1, inside(attribute, "raw", "string")
    if isinstance(shown, str) and not re.match(rf"{value}(?!\d)", shown):
        return refuse(unknown, label, shown, f"not {value}, which its raw value packs")
    return value


def _of_statistics(smartctl: dict, unknown: list[str]) -> dict[str, Found]:
    """{role: reading} of the valid device statistics; sectors are not yet bytes."""
    out: dict[str, Found] = {}
    for page in objects(inside(smartctl, "ata_device_statistics", "pages")):
        number = whole(page, "number", unknown, "device statistics page", at_most=255)
        for entry in objects(page.get("table")):
            offset = whole(entry, "offset", unknown, "device statistics offset", at_most=511)
            role = STATISTICS.get((number, offset))
            if role is None or inside(entry, "flags", "valid") is not True:
                continue
            label, temperature = f"device statistics, {role}", role.startswith("temperature")
            if inside(entry, "flags", "normalized") is True and role != "percentage_used":
                refuse(unknown, label, entry.get("value"), "normalised, not a count")
                continue
            most = {
                "percentage_used": 255,
                "temperature_max_C": 300,
                "host_written": 2**SECTORS_BITS - 1,
                "host_read": 2**SECTORS_BITS - 1,
            }
            value = whole(
                entry, "value", unknown, label, at_least=-100 if temperature else 0, at_most=most.get(role, COUNT_MOST)
            )
            if value in ALL_ONES:
                refuse(unknown, label, value, "all ones, not a count")
            elif value is not None:
                rounds = role in ("percentage_used", "power_on_hours", "temperature_max_C")
                out.setdefault(role, Found(value, int(rounds), STATISTICS_SOURCE))
    return out
