"""Wear numbers of an NVMe drive: from its log pages, and from smartctl's JSON for missing pages. Pure."""

import re
from typing import Any

from ssdrig.base import nvme_fdp
from ssdrig.base.errors import DriveError
from ssdrig.base.words import size
from ssdrig.drive.smart import latency_monitor, makers, nvme_pages
from ssdrig.drive.smart.json_numbers import U64, U128, inside, refuse, text, whole

HEALTH = (
    "critical_warning",
    "percentage_used",
    "available_spare_percent",
    "available_spare_threshold_percent",
    "temperature_C",
    "temperature_sensors_C",
    "power_on_hours",
    "power_cycles",
    "unsafe_shutdowns",
    "media_errors",
    "error_log_entries",
    "warning_temp_min",
    "critical_temp_min",
    "throttle_1_count",
    "throttle_2_count",
    "throttle_1_s",
    "throttle_2_s",
    "host_written_bytes",
    "host_read_bytes",
    "lifetime_energy_Wh",
    "interval_power_W",
)
FROM_C0H = {
    "uncorrectable_reads": "uncorrectable_reads",
    "soft_ecc_errors": "soft_ecc_errors",
    "xor_recoveries": "xor_recoveries",
    "refreshes": "refreshes",
    "bad_user_blocks": "bad_user_blocks",
    "free_blocks_percent": "free_blocks_percent",
    "capacitor_health_percent": "capacitor_health_percent",
    "incomplete_shutdowns": "incomplete_shutdowns",
    "throttle_count": "throttle_events",
}
FROM_VENDOR = (
    "workload_wear_percent",
    "workload_reads_percent",
    "workload_timer_min",
    "program_fails",
    "erase_fails",
    "soft_ecc_errors",
    "bad_user_blocks",
    "uncorrectable_reads",
    "read_disturbs",
    "reallocated",
    "throttle_count",
)
UNPRINTED = re.compile(r"smartctl_\d{1,6}_u")  # a line of text that smartctl has no key for
THERMAL = {
    "1 Transition Count": "throttle_1_count",
    "2 Transition Count": "throttle_2_count",
    "1 Total Time": "throttle_1_s",
    "2 Total Time": "throttle_2_s",
}
THERMAL_LINE = re.compile(rf"Thermal Temp\. ({'|'.join(THERMAL)}): +(\d{{1,10}})")
ENOUGH_BYTES = 10**10  # from here on a host counter can prove or refute another one
# above this, or below a hundredth, the NAND bytes of an unmarked page come from another layout
WORST_LIFETIME_WA = 100
UNIT_DOUBT = "its unit"
GROUPS = ("host_written_", "nand_written_", "pe_cycles_")
GB = 10**9
BLANK = (0, U128)


def reduce(document: dict, smartctl: dict, unknown: list[str]) -> dict:
    """Snapshot fields of an NVMe drive.

    Health: log 02h, otherwise smartctl. NAND bytes, the first of: log C0h (bytes, drive's life), 22h (bytes, one
    endurance group, since Flexible Data Placement was switched on), the maker's CAh or D0h, 09h (steps of 1e9
    bytes)."""
    out, host = _health(document, smartctl, unknown)
    out["namespace"] = namespace_of(document, smartctl)
    out["fdp_events"] = _fdp_events(document, unknown)
    out["latency_monitor"] = _page(document, "C3h", latency_monitor.decode, unknown) or None
    sources = [
        _from_c0h(document, unknown),
        _from_22h(document, unknown),
        _from_vendor(document, smartctl, host, unknown),
        _from_09h(document, unknown),
    ]
    for source in sources:
        nand = source.get("nand_written_bytes")
        if nand == 0 and host is not None and host > GB:
            unknown.append(
                f"NAND bytes written: {source['nand_written_source']} reports 0, the host has written {size(host)}:"
                " the drive does not count"
            )
            nand = source["nand_written_bytes"] = None
        taken = tuple(
            group for group in GROUPS if any(value is not None for name, value in out.items() if name.startswith(group))
        )
        for name, value in source.items():  # what belongs together comes from one source
            if (
                out.get(name) is None
                and not name.startswith(taken)
                and not (name.startswith("nand_written_") and nand is None)
            ):
                out[name] = value
    if out.get("nand_written_bytes") is None:
        asked = any(
            name in document
            for name in ("log_c0h", "log_22h", "log_09h", *(f"log_{log_id:02x}h" for log_id in makers.DECODED))
        )
        unknown.append(
            "NAND bytes written: "
            + (
                "none of the log pages that could have them (C0h, 22h, 09h, the maker's) does"
                if asked
                else "not in smartctl's JSON of NVMe; log page C0h, 22h, 09h or the maker's may have them"
            )
        )
    return out


def _page(document: dict, name: str, decode, unknown: list[str]) -> dict:
    """Log page `name`, decoded by `decode`; {} without the page; {} with words in `unknown` if it cannot be decoded."""
    value = document.get(f"log_{name.lower()}")
    if value is None:
        return {}
    try:
        return decode(bytes.fromhex(value)) or {}
    except (TypeError, ValueError):  # ValueError: not hexadecimal
        refuse(unknown, f"log {name}", value, "not hexadecimal text")
        return {}
    except DriveError as error:
        unknown.append(f"log {name}: {error.seen} instead of {error.expected}")
        return {}


def _health(document: dict, smartctl: dict, unknown: list[str]) -> tuple[dict, int | None]:
    """(health fields, host bytes written)."""
    health = _page(document, "02h", nvme_pages.decode_02h, unknown) or _health_of_smartctl(smartctl, unknown)
    if not health and not any(words.startswith("health:") for words in unknown):
        unknown.append("health: neither log 02h nor smartctl's copy of it is there")
    ones = [name for name, value in health.items() if value in (U128, U64)]
    for name in ones:
        health[name] = refuse(unknown, name, "all ones", "not a count")
    if len(ones) >= 2:  # then the percentages and flags are the page's ones, too
        for name in ("percentage_used", "critical_warning"):
            if health.get(name) == 255:
                health[name] = refuse(unknown, name, 255, "all ones, as the counters of the page")
    if health.get("percentage_used") == health.get("available_spare_threshold_percent") == 255:
        health["percentage_used"] = refuse(unknown, "percentage_used", 255, "all ones, as the spare's threshold")
    out: dict[str, Any] = {name: health.get(name) for name in HEALTH}
    if out["critical_warning"] is not None:
        out["health_ok"] = out["critical_warning"] == 0  # as smartctl judges it
    if out["temperature_C"] is not None and not -100 <= out["temperature_C"] <= 300:
        out["temperature_C"] = refuse(unknown, "temperature", out["temperature_C"], "out of its range")
    sensors = out["temperature_sensors_C"] or []
    for i, celsius in enumerate(sensors):
        if celsius is not None and not -100 <= celsius <= 300:
            sensors[i] = refuse(unknown, f"temperature of sensor {i + 1}", celsius, "out of its range")
    for name in ("available_spare_percent", "available_spare_threshold_percent"):
        percent = out[name]
        if percent is not None and percent > 100:
            out[name] = refuse(unknown, name, percent, "not a percentage")
    for units, commands, name in (
        ("data_units_written", "host_writes", "host_written_bytes"),
        ("data_units_read", "host_reads", "host_read_bytes"),
    ):
        if health and health.get(units) is None:
            out[name] = None
        elif health.get(units) == 0 and (health.get(commands) or 0) > 0:
            # NVMe: 0 is "not reported". A drive that never wrote has 0 commands too
            out[name] = refuse(unknown, name, 0, f"not a count: {health[commands]} commands were counted")
    if out["host_written_bytes"] is not None:
        out |= {"host_written_unit_bytes": nvme_pages.HOST_UNIT_BYTES, "host_written_source": "log 02h"}
    return out, out["host_written_bytes"]


def _from_c0h(document: dict, unknown: list[str]) -> dict:
    got = _page(document, "C0h", nvme_pages.decode_c0h, unknown)
    if not got:
        return {}
    out = {name: got[field] for name, field in FROM_C0H.items()}
    if out["free_blocks_percent"] > 100:
        out["free_blocks_percent"] = refuse(unknown, "free blocks", out["free_blocks_percent"], "not a percentage")
    out |= {
        "pe_cycles_mean": got.get("erases_mean"),
        "pe_cycles_min": got["erases_min"],
        "pe_cycles_max": got["erases_max"],
    }
    return out | {"pe_cycles_source": "log C0h"} | _nand(got["nand_written_bytes"], 1, "log C0h")


def _from_22h(document: dict, unknown: list[str]) -> dict:
    got = _page(document, "22h", nvme_pages.decode_22h, unknown)
    if not got or got["nand_written_bytes"] in BLANK and got["host_written_bytes"] in BLANK:
        return {}  # no FDP in this group
    out = _nand(got["nand_written_bytes"], 1, "log 22h")
    host, erased = got["host_written_bytes"], got["media_erased_bytes"]
    out |= {"fdp_erased_bytes": erased} if erased != U128 else {}
    if host == U128:
        return out
    return out | {
        "host_written_bytes": host,
        "host_written_unit_bytes": 1,
        "host_written_source": "log 22h",
        "fdp_host_written_bytes": host,
    }


def _fdp_events(document: dict, unknown: list[str]) -> list[dict] | None:
    """The events of Flexible Data Placement, of host and controller, by the drive's time; None: no such page."""
    lists = []
    for name in ("23h", "23h_host"):
        events = _page(document, name, lambda page: {"events": nvme_fdp.decode_23h(page)}, unknown)
        lists += [events["events"]] if events else []
    return sorted((event for events in lists for event in events), key=lambda event: event["t_ms"]) if lists else None


def _from_09h(document: dict, unknown: list[str]) -> dict:
    got = _page(document, "09h", nvme_pages.decode_09h, unknown)
    if not got:
        return {}
    unit = nvme_pages.GROUP_UNIT_BYTES
    out = _nand(got["nand_written_bytes"], unit, "log 09h") | {"percentage_used": got["percentage_used"]}
    if got["host_written_bytes"] is not None:
        out |= {
            "host_written_bytes": got["host_written_bytes"],
            "host_written_unit_bytes": unit,
            "host_written_source": "log 09h",
        }
        out |= {"host_read_bytes": got["host_read_bytes"]}
    return out


def _from_vendor(document: dict, smartctl: dict, host: int | None, unknown: list[str]) -> dict:
    """The maker's own pages. They do not name their maker, so their bytes are checked against the host counter."""
    made_by = _maker(document, smartctl, unknown)
    out: dict[str, Any] = {}
    for log_id in made_by.pages if made_by else makers.DECODED:
        name = f"{log_id:02X}h"
        got = _page(document, name, lambda page, log_id=log_id: makers.decode(log_id, page, made_by), unknown)
        if not got:
            if document.get(f"log_{name.lower()}") and made_by is None:
                unknown.append(f"log {name}: of a maker whose layout is not known")
            continue
        assert made_by  # else nothing would be decoded
        for field in ("nand_written_bytes", "host_written_bytes"):
            if got.get(field) == 0 and (host or 0) >= ENOUGH_BYTES:
                got[field] = None  # the item is there and does not count
        source, own = f"log {name}", got.get("host_written_bytes")
        unit, wrap = made_by.unit_bytes, made_by.wraps_at
        why = _contradiction(got.get("nand_written_bytes"), own, host, made_by)
        if why:
            unknown.append(f"NAND bytes written: {source} is not believed: {why}")
            if not why.startswith(UNIT_DOUBT):
                continue
            own = None
            got |= {"nand_written_bytes": None}  # its other items are named by their ids and have no unit
        out |= {field: got[field] for field in FROM_VENDOR if got.get(field) is not None and out.get(field) is None}
        if got.get("nand_written_bytes") is not None and out.get("nand_written_bytes") is None:
            out |= _nand(got["nand_written_bytes"], unit, source)
            if wrap:
                out["nand_written_wrap_bytes"] = wrap * unit
        if own is not None and host is None:
            out |= {"host_written_bytes": own, "host_written_unit_bytes": unit, "host_written_source": source}
            if wrap:
                out["host_written_wrap_bytes"] = wrap * unit
        if got.get("pe_cycles_mean") is not None:
            out |= {field: got[field] for field in ("pe_cycles_mean", "pe_cycles_min", "pe_cycles_max")} | {
                "pe_cycles_source": source
            }
    return out


def _contradiction(nand: int | None, own: int | None, host: int | None, made_by: makers.Maker) -> str | None:
    """Why the bytes of a maker's page are implausible, or None."""
    if own is not None and host is not None:
        if max(own, host) >= ENOUGH_BYTES and abs(own - host) > 0.05 * host + 2 * made_by.unit_bytes:
            return f"its own count of host bytes is {size(own)}, that of log 02h {size(host)}: another layout or unit"
    elif not made_by.unit_checked and nand is not None:
        return f"{UNIT_DOUBT} is known for Intel's drives and could not be checked against the host's bytes"
    if not made_by.unit_checked and nand is not None and max(own or 0, host or 0) < ENOUGH_BYTES:
        return f"{UNIT_DOUBT} is known for Intel's drives, and so far too little was written to check it"
    if nand and host and host >= ENOUGH_BYTES and not 1 / WORST_LIFETIME_WA < nand / host < WORST_LIFETIME_WA:
        return f"{size(nand)} on the NAND for {size(host)} of the host"
    return None


def _maker(document: dict, smartctl: dict, unknown: list[str]) -> makers.Maker | None:
    vendor = whole(inside(smartctl, "nvme_pci_vendor"), "id", unknown, "PCI vendor id", at_most=0xFFFF)
    vendor_id = text(inside(document, "drive", "pci_vendor_id"))  # four hexadecimal digits
    if vendor is None and vendor_id:
        try:
            vendor = int(vendor_id, 16)
        except ValueError:
            refuse(unknown, "PCI vendor id", vendor_id, "not a hexadecimal number")
    return makers.maker_of(vendor, text(smartctl.get("model_name")) or text(inside(document, "drive", "model")))


def _nand(written: int | None, unit: int, source: str) -> dict:
    return (
        {}
        if written is None or written in (2**64 - 1, U128)
        else {"nand_written_bytes": written, "nand_written_unit_bytes": unit, "nand_written_source": source}
    )


def namespace_of(document: dict, smartctl: dict) -> int | None:
    """The namespace whose own SMART log smartctl's is (7.5 and later); None: the drive's, also of a drive that has one
    namespace only, or where the page itself is there."""
    if document.get("log_02h"):
        return None
    number = inside(smartctl, "nvme_smart_health_information_log", "nsid")
    if type(number) is not int or not 0 < number < 2**32 - 1 or smartctl.get("nvme_number_of_namespaces") == 1:
        return None
    return number


def is_unfilled(smartctl: dict) -> bool:
    """Whether all of smartctl's NVMe health log is zero (0 K is -273 C): a bridge, or a drive, that does not fill
    it."""
    log = inside(smartctl, "nvme_smart_health_information_log")
    if not isinstance(log, dict) or not log:
        return False
    return all(value in (0, -nvme_pages.ZERO_C_K, "0") for value in log.values() if not isinstance(value, list))


def _throttling_of_text(smartctl: dict) -> dict:
    """How often and how long the drive was throttled, from the lines of smartctl's text that a file made with
    `--json=o` or `--json=u` has: its JSON has no keys for these four (nvmeprint.cpp; 7.3 and the source of 2025). It
    prints them unless they are 0; {} without such text."""
    head = smartctl.get("smartctl")
    output = head.get("output") if isinstance(head, dict) else None
    output_lines = (
        output if isinstance(output, list) else [smartctl[key] for key in smartctl if UNPRINTED.fullmatch(key)]
    )
    lines = [line for line in output_lines if isinstance(line, str)]
    if not any(line.startswith("=== START OF") and "SMART DATA SECTION" in line for line in lines):
        return {}
    out = dict.fromkeys(THERMAL.values(), 0)
    for match in filter(None, map(THERMAL_LINE.fullmatch, lines)):
        out[THERMAL[match[1]]] = int(match[2])
    return out


def _health_of_smartctl(smartctl: dict, unknown: list[str]) -> dict:
    """The same names as decode_02h, from smartctl's JSON; {} where there is nothing."""
    log = inside(smartctl, "nvme_smart_health_information_log")
    if not isinstance(log, dict):
        return {}
    if is_unfilled(smartctl):
        unknown.append(
            "health: all of smartctl's NVMe health log is zero: the drive or its USB bridge does not fill it"
        )
        return {}

    def number(name, at_most=U128, at_least=0):
        return whole(log, name, unknown, f"smartctl's {name}", at_least=at_least, at_most=at_most)

    def temperature():
        value = number("temperature", 1000, -nvme_pages.ZERO_C_K)
        return None if value == -nvme_pages.ZERO_C_K else value  # 0 K: not reported

    def sensors():
        listed = log.get("temperature_sensors")
        numbered = {str(i): value for i, value in enumerate(listed[:8] if isinstance(listed, list) else [], 1)}
        celsius = (
            whole(numbered, i, unknown, f"smartctl's temperature of sensor {i}", at_least=-100, at_most=300)
            for i in numbered
        )
        return nvme_pages.sensors_C(celsius)

    def units(count):
        return None if count is None else count * nvme_pages.HOST_UNIT_BYTES

    out = {
        "data_units_written": number("data_units_written"),
        "data_units_read": number("data_units_read"),
        "host_writes": number("host_writes"),
        "host_reads": number("host_reads"),
        "critical_warning": number("critical_warning", 255),
        "percentage_used": number("percentage_used", 255),
        "available_spare_percent": number("available_spare", 255),
        "available_spare_threshold_percent": number("available_spare_threshold", 255),
        "temperature_C": temperature(),
        "temperature_sensors_C": sensors() or None,
        "power_on_hours": number("power_on_hours"),
        "power_cycles": number("power_cycles"),
        "unsafe_shutdowns": number("unsafe_shutdowns"),
        "media_errors": number("media_errors"),
        "error_log_entries": number("num_err_log_entries"),
        "warning_temp_min": number("warning_temp_time"),
        "critical_temp_min": number("critical_comp_time"),
    }
    if not any(value is not None for value in out.values()):
        return {}
    out |= _throttling_of_text(smartctl)
    for level in (1, 2):  # smartctl 8.0
        for field, key in (("count", "transition_count"), ("s", "total_time")):
            value = number(f"thermal_mgmt_temperature_{level}_{key}", 2**32 - 1)
            if value is not None:
                out[f"throttle_{level}_{field}"] = value
    return out | {
        "host_written_bytes": units(out["data_units_written"]),
        "host_read_bytes": units(out["data_units_read"]),
    }
