"""Wear numbers of an ATA drive: its attributes, which mean what drive family and name say (ata_units.toml), and its
device statistics, which mean the same on every drive (ACS-4, log 04h).

Roles of ata_units.toml: host_written, host_read, nand_written, nand_written_tlc, nand_written_slc (bytes; how = unit in
bytes, "?" = not known), host_read_high, host_written_high, nand_written_high (a second half of a counter, which must be
0), host_pages and ftl_pages (pages of unknown size), pe_mean, pe_max, pe_min, and the names of snapshot fields. Hows:
"raw", "word 0" … "word 2" (16 bits each of raw, word 0 the lowest), "low 8 bits", "low 24 bits", "raw / 1024",
"normalised", "100 - normalised", "raw, 100 - normalised" (raw where the two agree), "raw unless normalised" (raw, but
unknown where it only repeats the normalised value).

A unit that nobody states stays unknown: the same name counts sectors in one drive and GiB in the next. A calibration
(document["units"], "ata:<id>") fills it in."""

import functools
import os
import re
import tomllib
from pathlib import Path

from ssdrig.drive.json_numbers import inside, objects, refuse, text, whole
from ssdrig.errors import UsageError
from ssdrig.words import unit as unit_words

BYTE_ROLES = ("host_written", "host_read", "nand_written", "nand_written_tlc", "nand_written_slc")
SECOND_HALVES = {
    "host_written_high": "host_written",
    "host_read_high": "host_read",
    "nand_written_high": "nand_written",
}
OTHER_ROLES = (
    "host_pages",
    "ftl_pages",
    "pe_mean",
    "pe_max",
    "pe_min",
    "percentage_used",
    "available_spare_percent",
    "workload_wear_percent",
    "workload_reads_percent",
    "workload_timer_min",
    "temperature_C",
    "power_on_hours",
    "power_cycles",
    "unsafe_shutdowns",
    "media_errors",
    "uncorrectable_reads",
    "soft_ecc_errors",
    "xor_recoveries",
    "refreshes",
    "read_disturbs",
    "program_fails",
    "erase_fails",
    "reallocated",
    "bad_user_blocks",
)
HOWS = {
    "raw",
    "word 0",
    "word 1",
    "word 2",
    "low 8 bits",
    "low 24 bits",
    "raw / 1024",
    "normalised",
    "100 - normalised",
    "raw, 100 - normalised",
    "raw unless normalised",
}
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
TIMED_UNKNOWN = 0xFFFF  # workload values in the first 60 minutes
SATA_BYTES_PER_H = 3600 * 600_000_000  # what the link carries at most
DISAGREEMENT = 0.05

# ACS-4: (page, offset of the statistic): role
STATISTICS = {
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


def reduce(document: dict, smartctl: dict, unknown: list[str]) -> dict:
    """Snapshot fields of an ATA drive. Of several sources of a byte counter the one with the finest unit is taken; that
    two differ by more than 5 % is said in unknown. Raises UsageError for a table of the user's that cannot be read."""
    written, values, seen = _of_attributes(document, smartctl, unknown)
    statistics = _of_statistics(smartctl, unknown)
    block = whole(smartctl, "logical_block_size", unknown, "logical block size", at_least=1, at_most=1 << 20)
    for role in ("host_written", "host_read"):
        sectors = statistics.pop(role, None)
        if sectors is not None and block is not None:
            written.setdefault(role, []).append((sectors * block, block, "device statistics"))
        elif sectors is not None:
            unknown.append(f"{role}_bytes: device statistics count sectors, and the sector size is not known")
    hours = whole(smartctl.get("power_on_time"), "hours", [], "")
    if hours is None:
        hours = values.get("power_on_hours", statistics.get("power_on_hours"))
    out = _bytes(written, hours, unknown)

    # SMART and smartctl's own words come before statistics in what both count, but for wear: there the standard's
    # figure comes first
    pages = values.pop("host_pages", None), values.pop("ftl_pages", None)
    if None not in pages:
        out |= {"host_program_pages": pages[0], "nand_program_pages": pages[0] + pages[1]}
    for role in ("pe_mean", "pe_max", "pe_min"):
        value = values.pop(role, None)
        if value is not None:
            out |= {f"pe_cycles_{role[3:]}": value}
            out.setdefault("pe_cycles_source", seen[role])
    used = statistics.pop("percentage_used", None)
    by_attribute = values.pop("percentage_used", None)
    if used is not None and by_attribute is not None and abs(used - by_attribute) > 5:
        unknown.append(f"percentage used: device statistics say {used} %, {seen['percentage_used']} {by_attribute} %")
    if used is None and whole(smartctl.get("endurance_used"), "current_percent", [], "", at_most=255) is None:
        used = by_attribute
    for name, where, field in (
        ("temperature_C", "temperature", "current"),
        ("power_on_hours", "power_on_time", "hours"),
    ):
        if whole(smartctl.get(where), field, [], "", at_least=-100) is not None:
            values.pop(name, None), statistics.pop(name, None)
    if whole(smartctl, "power_cycle_count", [], "") is not None:
        values.pop("power_cycles", None), statistics.pop("power_cycles", None)
    highest = whole(
        smartctl.get("temperature"), "lifetime_max", unknown, "highest temperature", at_least=-100, at_most=300
    )
    out |= {"temperature_max_C": highest} | statistics | values | {"percentage_used": used}
    _say_what_is_missing(out, smartctl, unknown)
    return out


def _say_what_is_missing(out: dict, smartctl: dict, unknown: list[str]) -> None:
    if whole(smartctl, "rotation_rate", [], "", at_least=1) is not None:
        unknown.append("flash wear: a hard disk has none")
        return
    if out["percentage_used"] is None and not inside(smartctl, "endurance_used", "current_percent"):
        unknown.append("percentage used: no attribute or statistic of this drive is known to tell it")
    if out.get("nand_written_bytes") is None and not any(words.startswith("NAND bytes written") for words in unknown):
        if out.get("nand_program_pages") is not None:
            unknown.append(
                "NAND bytes written: the drive counts pages without telling their size; write amplification comes from"
                " their ratio"
            )
        else:
            unknown.append("NAND bytes written: no attribute of this drive is known to count them")


def _bytes(written: dict, hours: int | None, unknown: list[str]) -> dict:
    """The *_bytes fields from {role: [(bytes, unit, source), …]}."""
    out = {}
    most = None if hours is None or hours < 24 else (hours + 1) * SATA_BYTES_PER_H
    for role in ("host_written", "host_read"):
        name = "host bytes " + role[5:]
        good = [each for each in written.get(role, []) if most is None or each[0] <= most]
        for value, _, source in written.get(role, []):
            if most is not None and value > most:
                unknown.append(
                    f"{name}: {source} makes {value / 1e12:.0f} TB, more than SATA carries in {hours} power-on hours:"
                    " another unit"
                )
        best = _finest(good, name, unknown)
        if best:
            out[f"{role}_bytes"] = best[0]
            if role == "host_written":
                out |= {"host_written_unit_bytes": best[1], "host_written_source": best[2]}
                if best[2] == "device statistics":
                    out["host_written_wrap_bytes"] = 2**SECTORS_BITS * best[1]
    tlc, slc = (
        _finest(written.get(f"nand_written_{kind}", []), f"NAND bytes written ({kind})", unknown)
        for kind in ("tlc", "slc")
    )
    best = _finest(written.get("nand_written", []), "NAND bytes written", unknown)
    if tlc:
        out["nand_written_tlc_bytes"] = tlc[0]
        if not best:
            # each of the two counters rounds, so the sum is off by less than both units together
            best = (
                (tlc[0] + slc[0], tlc[1] + slc[1], f"{tlc[2]} TLC + {slc[2]} SLC")
                if slc
                else (tlc[0], tlc[1], f"{tlc[2]} TLC")
            )
    if best:
        out |= {"nand_written_bytes": best[0], "nand_written_unit_bytes": best[1], "nand_written_source": best[2]}
    return out


def _finest(candidates: list, name: str, unknown: list[str]):
    best = min(candidates, key=lambda each: each[1], default=None)
    for value, unit, source in candidates:
        if abs(value - best[0]) > DISAGREEMENT * max(value, best[0]) + 2 * unit:
            unknown.append(f"{name}: {best[2]} says {best[0] / 1e9:.1f} GB, {source} {value / 1e9:.1f} GB")
    return best


def _of_attributes(document: dict, smartctl: dict, unknown: list[str]) -> tuple[dict, dict, dict]:
    """({byte role: [(bytes, unit, source)]}, {other role: value}, {other role: source})."""
    rows = _rows_for(smartctl, text(inside(document, "drive", "model")))
    listed = smartctl.get("in_smartctl_database") is True or text(smartctl.get("model_family")) is not None
    calibrated = document.get("units") if isinstance(document.get("units"), dict) else {}
    written, values, seen, halves, units_missing = {}, {}, {}, {}, []
    for attribute in objects(inside(smartctl, "ata_smart_attributes", "table")):
        key, name = whole(attribute, "id", unknown, "attribute id", at_most=255), attribute.get("name")
        if key is None or not isinstance(name, str):
            continue
        label = f"attribute {key}"
        mine = {}
        for _, _, role, how in (row for row in rows if row[0] in (0, key) and row[1] in ("", name)):
            mine.setdefault(role, how)
        unit = whole(calibrated, f"ata:{key}", unknown, f"calibrated unit of {label}", at_least=1, at_most=1 << 40)
        if unit is not None:
            role = next((role for role in mine if role in BYTE_ROLES), CALIBRATED.get(key))
            if role and mine.get(role, "?") == "?":
                mine[role] = unit
                label += ", calibrated"
        for role, how in mine.items():
            if role in BYTE_ROLES:
                raw = whole(inside(attribute, "raw"), "value", unknown, f"{label} {name}", at_most=RAW_BYTES_MOST)
                if raw is None:
                    continue
                if raw in (2**48 - 1, RAW_BYTES_MOST):
                    refuse(unknown, f"{label} {name}", "all ones", "no count")
                elif how == "?":
                    units_missing.append((role, f"{label} {name} counts {raw} of a unit that is not known"))
                else:
                    written.setdefault(role, []).append((raw * how, how, f"{label} ({unit_words(how)})"))
            else:
                value = _value(attribute, role, how, f"{label} {name}", unknown)
                if value is None:
                    continue
                if role in SECOND_HALVES:
                    halves[SECOND_HALVES[role]] = value
                elif role not in values:
                    values[role], seen[role] = value, label
                    if role == "available_spare_percent":
                        values["available_spare_threshold_percent"] = whole(
                            attribute, "thresh", unknown, f"{label} threshold", at_most=100
                        )
    for role, value in halves.items():
        if value and written.pop(role, None):
            unknown.append(
                f"{_in_words(role)}: the counter has gone on into its second attribute, and how to join the two is not"
                " known"
            )
    where = "" if listed else " (the drive is not in smartctl's database)"
    for role, words in units_missing:
        if role not in written and role != "host_read":
            unknown.append(f"{_in_words(role)}: {words}{where}; calibrate it: ./ssdrig calibrate")
    return written, values, seen


def _in_words(role: str) -> str:
    return {"host_written": "host bytes written", "host_read": "host bytes read"}.get(role, "NAND bytes written")


def _value(attribute: dict, role: str, how: str, label: str, unknown: list[str]) -> int | float | None:
    """The value of a row that is not in bytes."""
    normalised = raw = None
    if "normalised" in how:
        normalised = whole(attribute, "value", unknown, f"{label}, normalised", at_most=255)
        if normalised is None or normalised > 100:
            return None if normalised is None else refuse(unknown, f"{label}, normalised", normalised, "no percentage")
    if "raw" in how or "word" in how or "low" in how:
        raw = whole(attribute.get("raw"), "value", unknown, label, at_most=2**64 - 1)
        if raw is None and how != "raw, 100 - normalised":
            return None
    if how == "normalised":
        return normalised
    if how == "raw, 100 - normalised":
        return raw if raw is not None and raw <= 255 and max(100 - raw, 0) == normalised else 100 - normalised
    if how == "100 - normalised":
        return 100 - normalised
    if how == "raw unless normalised" and raw == normalised:
        return refuse(unknown, label, raw, "no count of cycles: it repeats the normalised value")
    if how.startswith("word"):
        return raw >> 16 * int(how[5:]) & 0xFFFF
    if how.startswith("low"):
        return _low(raw, int(how.split()[1]), attribute, label, unknown)
    if role.startswith("workload") and raw in (TIMED_UNKNOWN, COUNT_MOST, 2**48 - 1):
        return None  # within 60 minutes of the reset
    if role not in ("host_pages", "ftl_pages") and raw > COUNT_MOST:
        return refuse(unknown, label, raw, "no plain count: more than one number is packed into it")
    return raw / 1024 if how == "raw / 1024" else raw


def _low(raw: int, bits: int, attribute: dict, label: str, unknown: list[str]) -> int | None:
    """The low bits of a raw value that packs several, if smartctl's text of it begins with the same number."""
    value, shown = raw & (1 << bits) - 1, inside(attribute, "raw", "string")
    if isinstance(shown, str) and not re.match(rf"{value}(?!\d)", shown):
        return refuse(unknown, label, shown, f"not {value}, which its raw value packs")
    return value


def _of_statistics(smartctl: dict, unknown: list[str]) -> dict:
    """{role: value} of the valid device statistics."""
    out = {}
    for page in objects(inside(smartctl, "ata_device_statistics", "pages")):
        number = whole(page, "number", unknown, "device statistics page", at_most=255)
        for entry in objects(page.get("table")):
            role = STATISTICS.get((number, whole(entry, "offset", unknown, "device statistics offset", at_most=511)))
            if role is None or inside(entry, "flags", "valid") is not True:
                continue
            label, temperature = f"device statistics, {role}", role.startswith("temperature")
            if inside(entry, "flags", "normalized") is True and role != "percentage_used":
                refuse(unknown, label, entry.get("value"), "normalised, no count")
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
            if value is not None:
                out.setdefault(role, value)
    return out


def _rows_for(smartctl: dict, model: str | None) -> list:
    family = text(smartctl.get("model_family"))
    in_database = smartctl.get("in_smartctl_database") is True or family is not None
    model = text(smartctl.get("model_name")) or model or ""
    out = []
    for kind, pattern, rows in _tables():
        if pattern.search(model) if kind == "model" else in_database and pattern.search(family or ""):
            out += rows
    return out


@functools.cache
def _tables() -> list[tuple[str, re.Pattern, list]]:
    """[("family" or "model", pattern, rows)], the user's file first; read once. Raises UsageError for a file that
    cannot be used."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    paths = [Path(home) / "ssdrig" / "ata_units.toml", Path(__file__).with_name("ata_units.toml")]
    out = []
    for path in paths:
        try:
            document = tomllib.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise UsageError(f"a table of attributes in {path}", str(error), "mend the file, or move it away") from None
        drives = document.get("drives")
        for entry in drives if isinstance(drives, list) else []:
            out.append(_checked(entry, path))
        if not isinstance(drives, list):
            raise UsageError(
                f"[[drives]] in {path}", ", ".join(document) or "nothing", "write it as ata_units.toml of ssdrig is"
            )
    return out


def _checked(entry: dict, path: Path) -> tuple[str, re.Pattern, list]:
    kind = "family" if "family" in entry else "model"
    try:
        pattern = re.compile(entry[kind])
    except (KeyError, TypeError, re.error) as error:
        raise UsageError(f"family or model, a regular expression, in {path}", repr(error), "mend it") from None
    for row in entry.get("rows", ()):
        good = isinstance(row, list) and len(row) == 4 and isinstance(row[0], int) and isinstance(row[1], str)
        if good:
            how = row[3]
            if row[2] in BYTE_ROLES:
                good = how == "?" or isinstance(how, int) and not isinstance(how, bool) and how > 0
            else:
                good = (row[2] in OTHER_ROLES or row[2] in SECOND_HALVES) and how in HOWS
        if not good:
            raise UsageError(
                f'[id, "name", "role", how] in {path}',
                repr(row),
                "see the head of ssdrig's ata_units.toml for roles and hows",
            )
    return kind, pattern, list(entry.get("rows", ()))
