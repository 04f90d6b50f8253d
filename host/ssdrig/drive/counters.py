"""Reduce a SMART document, as smart/<nnn>.json keeps it, to the wear numbers of one moment. Pure."""

from ssdrig.drive.nvme_pages import GROUP_UNIT_BYTES, HOST_UNIT_BYTES, decode_02h, decode_09h, decode_c0h
from ssdrig.errors import DriveError


def snapshot(document: dict) -> dict:
    """The wear numbers of one SMART document, flat; None where the drive does not say.

    {"t_ns", "t_start_ns", "t_end_ns", "reason", "simulated", "host_written_bytes", "host_read_bytes", "host_unit_bytes",
    "nand_written_bytes", "nand_unit_bytes", "nand_source": "c0h", "09h" or None, "percentage_used", "available_spare_percent", "temperature_C",
    "power_on_hours", "power_cycles", "unsafe_shutdowns", "media_errors"}. *_unit_bytes is the counter's resolution: a
    difference of two readings is off by less than one unit. t_ns is the middle of the poll (None without times).

    Pages win over smartctl's JSON, which has the same numbers but may be rounded by what wrote it."""
    start, end = document.get("t_start_ns"), document.get("t_end_ns")
    out = {
        "t_ns": (start + end) // 2 if start is not None and end is not None else None,
        "t_start_ns": start,
        "t_end_ns": end,
        "reason": document.get("reason"),
        "simulated": bool(document.get("simulated", False)),
        "nand_written_bytes": None,
        "nand_unit_bytes": None,
        "nand_source": None,
    }
    page = document.get("log_02h")
    health = decode_02h(bytes.fromhex(page)) if page else _health_of_smartctl(document.get("smartctl") or {})
    for name in ("host_written_bytes", "host_read_bytes", "percentage_used", "available_spare_percent", "temperature_C", "power_on_hours",
                 "power_cycles", "unsafe_shutdowns", "media_errors"):  # fmt: skip
        out[name] = health.get(name)
    out["host_unit_bytes"] = None if out["host_written_bytes"] is None else HOST_UNIT_BYTES
    for name, decode, unit in (("c0h", decode_c0h, 1), ("09h", decode_09h, GROUP_UNIT_BYTES)):
        page = document.get(f"log_{name}")
        if page and out["nand_source"] is None:
            try:
                nand = decode(bytes.fromhex(page))["nand_written_bytes"]
            except DriveError:
                continue  # a vendor's own layout: its numbers mean nothing to us
            out |= {"nand_written_bytes": nand, "nand_unit_bytes": unit, "nand_source": name}
    return out


def _health_of_smartctl(smartctl: dict) -> dict:
    """The same names from `smartctl --json` of an NVMe drive; empty for other drives. Integers past 2^53 are taken from
    the *_s strings that --json=v adds."""
    log = smartctl.get("nvme_smart_health_information_log")
    if not isinstance(log, dict):
        return {}

    def number(name):
        value = log.get(f"{name}_s", log.get(name))
        return None if value is None else int(value)

    def units(name):
        value = number(name)
        return None if value is None else value * HOST_UNIT_BYTES

    return {
        "host_written_bytes": units("data_units_written"),
        "host_read_bytes": units("data_units_read"),
        "percentage_used": number("percentage_used"),
        "available_spare_percent": number("available_spare"),
        "temperature_C": number("temperature"),
        "power_on_hours": number("power_on_hours"),
        "power_cycles": number("power_cycles"),
        "unsafe_shutdowns": number("unsafe_shutdowns"),
        "media_errors": number("media_errors"),
    }
