"""The single readings of an ATA drive: its attributes and device statistics, each decoded by its row, or refused
with a reason. ata_counters.py chooses among several. Pure."""

import re
from typing import Any, NamedTuple

from ssdrig.drive.smart.ata_table import BYTE_ROLES, SECOND_HALVES, Rows
from ssdrig.drive.smart.json_numbers import inside, objects, refuse, whole

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
    (5, 0x50): "warning_temp_min",  # Time in Over-Temperature: above the highest at which it is specified to work
    (7, 0x08): "percentage_used",
}
SECTORS_BITS = 48


class Reading(NamedTuple):
    """One reading: value, and its bound of error, in the same unit; rank: lower goes first."""

    value: int | float
    error: float
    source: str
    rank: int = 0


class Counter(NamedTuple):
    """A byte counter before its unit is settled. units: the table's candidates, none, one or several;
    calibrated: measured on this model, so no other evidence is needed."""

    raw: int
    units: tuple[int, ...]
    label: str
    name: str
    rank: int
    calibrated: bool = False


def of_attributes(
    document: dict, smartctl: dict, rows: Rows, unknown: list[str], refused: dict[str, str]
) -> tuple[dict[str, list[Reading]], dict[str, list[Counter]]]:
    """({role: [Reading]}, {byte role: [Counter]}); adds to `refused`: {role: why its attribute is not believed}."""
    calibrated = document.get("units") if isinstance(document.get("units"), dict) else {}
    readings: dict[str, list[Reading]] = {}
    counters: dict[str, list[Counter]] = {}
    halves = {}
    for attribute in objects(inside(smartctl, "ata_smart_attributes", "table")):
        key, name = whole(attribute, "id", unknown, "attribute id", at_most=255), attribute.get("name")
        if key is None or not isinstance(name, str):
            continue
        name = rows.name_of(key, name)
        label, mine = f"attribute {key}", rows.of(key, name)
        unit = whole(calibrated, f"ata:{key}", unknown, f"calibrated unit of {label}", at_least=1, at_most=1 << 40)
        if unit is not None:
            role, how = next(((r, h) for _, r, h in mine if r in BYTE_ROLES), (CALIBRATED.get(key), "?"))
            if role and not isinstance(how, int):
                mine = [row for row in mine if row[1] != role] + [(0, role, unit)]
                label += ", calibrated"
        for rank, role, how in mine:
            words = len(unknown)
            if role in BYTE_ROLES:
                raw = whole(inside(attribute, "raw"), "value", unknown, f"{label} {name}", at_most=RAW_BYTES_MOST)
                if raw in ALL_ONES:
                    raw = refuse(unknown, f"{label} {name}", raw, "all ones, not a count")
                if len(unknown) > words:
                    refused[role] = unknown[-1]
                if raw is None:
                    continue
                units = (how,) if isinstance(how, int) else how if isinstance(how, tuple) else ()
                counters.setdefault(role, []).append(Counter(raw, units, label, name, rank, "calibrated" in label))
                continue
            how = str(how)
            value = _value(attribute, role, how, f"{label} {name}", unknown)
            if len(unknown) > words:
                refused[role] = unknown[-1]
            if value is None:
                continue
            if role in SECOND_HALVES:
                halves[SECOND_HALVES[role]] = value
                continue
            readings.setdefault(role, []).append(Reading(value, _error(role, how), label, rank))
            if role == "available_spare_percent":
                threshold = whole(attribute, "thresh", unknown, f"{label} threshold", at_most=100)
                if threshold is not None:
                    readings.setdefault("available_spare_threshold_percent", []).append(
                        Reading(threshold, 0, label, rank)
                    )
    for role, value in halves.items():
        if value and role in counters:
            del counters[role]
            unknown.append(
                f"{in_words(role)}: the counter continues in a second attribute, and how the two join is unknown"
            )
    return readings, counters


def in_words(role: str) -> str:
    """The name of a byte role in messages."""
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
        value = whole(attribute, "value", unknown, f"{label}, normalised", at_most=255)
        if value is None:
            return None
        if value > 100:
            return refuse(unknown, f"{label}, normalised", value, "not a percentage")
        normalised = value
    if how == "normalised":
        return normalised
    if how == "100 - normalised":
        return 100 - normalised
    raw = whole(attribute.get("raw"), "value", unknown, label, at_most=2**64 - 1)
    if how == "raw, 100 - normalised":
        return raw if raw is not None and raw <= 255 and max(100 - raw, 0) == normalised else 100 - normalised
    if how == "100 - life left":
        if raw and raw != normalised and raw + normalised == 100:
            unknown.append(
                f"percentage used: {label} has the value {normalised} and the raw value {raw}: firmware differs in"
                " which of them is the life left"
            )
            return None
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
    if how == "count behind percent":
        count, shown = raw & 2**32 - 1, inside(attribute, "raw", "string")
        plain = not isinstance(shown, str) or shown == f"{raw >> 32}/{count}"
        return count if plain else refuse(unknown, label, shown, f"not {raw >> 32}/{count}, which its raw value packs")
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


def of_statistics(smartctl: dict, unknown: list[str], refused: dict[str, str]) -> dict[str, Reading]:
    """{role: reading} of the valid device statistics; sectors are not yet bytes. Adds to `refused` as
    of_attributes()."""
    out: dict[str, Reading] = {}
    for page in objects(inside(smartctl, "ata_device_statistics", "pages")):
        number = whole(page, "number", unknown, "device statistics page", at_most=255)
        for entry in objects(page.get("table")):
            offset = whole(entry, "offset", unknown, "device statistics offset", at_most=511)
            role = STATISTICS.get((number, offset))
            if role is None or inside(entry, "flags", "valid") is not True:
                continue
            label, temperature = f"device statistics, {role}", role.startswith("temperature")
            words = len(unknown)
            if inside(entry, "flags", "normalized") is True and role != "percentage_used":
                refuse(unknown, label, entry.get("value"), "normalised, not a count")
                refused[role] = unknown[-1]
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
                value = refuse(unknown, label, value, "all ones, not a count")
            if len(unknown) > words:
                refused[role] = unknown[-1]
            if value is not None:
                rounds = role in ("percentage_used", "power_on_hours", "temperature_max_C")
                out.setdefault(role, Reading(value, int(rounds), STATISTICS_SOURCE))
    return out
