"""Wear numbers of a SCSI or SAS drive, from smartctl's JSON of its log pages. Pure.

smartctl prints "gigabytes processed" of the error counter logs (02h, 03h, 05h) as a text in units of 1e9 bytes with
three decimals, so the resolution is 1e6 bytes."""

import re
from typing import Any

from ssdrig.drive.smart.json_numbers import inside, refuse, whole

GIGABYTES = re.compile(r"(\d{1,30})(?:[.,](\d{1,9}))?")  # a comma where smartctl ran under such a locale
UNIT_BYTES = 1_000_000


def reduce(document: dict, smartctl: dict, unknown: list[str]) -> dict:
    """Snapshot fields of a SCSI drive. media_errors: the uncorrected errors of reading, writing and verifying together;
    reallocated: the grown defect list; power_cycles: the start-stop cycles, which is what SAS drives count of them."""
    log = smartctl.get("scsi_error_counter_log")
    out: dict[str, Any] = {
        "host_written_bytes": _bytes(log, "write", unknown),
        "host_read_bytes": _bytes(log, "read", unknown),
        "percentage_used": whole(
            smartctl, "scsi_percentage_used_endurance_indicator", unknown, "percentage used", at_most=255
        ),
        "reallocated": whole(smartctl, "scsi_grown_defect_list", unknown, "grown defect list"),
        "power_cycles": whole(
            smartctl.get("scsi_start_stop_cycle_counter"), "accumulated_start_stop_cycles", unknown, "start-stop cycles"
        ),
        "uncorrectable_reads": whole(
            inside(log, "read"), "total_uncorrected_errors", unknown, "uncorrected read errors"
        ),
    }
    if out["host_written_bytes"] is not None:
        out |= {"host_written_unit_bytes": UNIT_BYTES, "host_written_source": "error counter log"}
    kinds = [name for name in ("read", "write", "verify") if isinstance(inside(log, name), dict)]
    errors = [
        out["uncorrectable_reads"]
        if name == "read"
        else whole(inside(log, name), "total_uncorrected_errors", unknown, f"uncorrected {name} errors")
        for name in kinds
    ]
    counted = [number for number in errors if number is not None]
    out["media_errors"] = sum(counted) if errors and len(counted) == len(errors) else None
    out |= _environmental(smartctl, unknown)
    unknown.append("NAND bytes written: SCSI defines no such counter; a maker's own log may have one")
    return out


def _environmental(smartctl: dict, unknown: list[str]) -> dict:
    """Temperatures of the environmental reporting page (0Dh): that of now and the highest, of the hottest sensor. The
    drives that have it may answer 0 in the temperature page."""
    reports = smartctl.get("scsi_environmental_reports")
    sensors = (
        [value for name, value in sorted(reports.items()) if name.startswith("temperature")]
        if isinstance(reports, dict)
        else []
    )
    out = {}
    for name, field in (("temperature_C", "current"), ("temperature_max_C", "lifetime_maximum")):
        values = [
            whole(sensor, field, unknown, f"environmental {field}", at_least=-60, at_most=127) for sensor in sensors
        ]
        known = [value for value in values if value is not None]
        if known:
            out[name] = max(known)
    current = whole(smartctl.get("temperature"), "current", [], "", at_least=-100)
    if current:
        out.pop("temperature_C", None)  # the temperature page has it
    return out


def _bytes(log, direction: str, unknown: list[str]) -> int | None:
    value = inside(log, direction, "gigabytes_processed")
    if value is None:
        return None
    match = GIGABYTES.fullmatch(value) if isinstance(value, str) and value.isascii() else None
    if match is None:
        return refuse(unknown, f"gigabytes processed, {direction}", value, "not a number of gigabytes")
    return int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0"))
