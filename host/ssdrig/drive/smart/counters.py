"""Reduce a SMART document, as smart/<nnn>.json keeps it, to the wear numbers of one moment: one flat dict, the same
keys for every drive. Pure.

NVMe, ATA and SCSI drives count in units of their own; nvme_counters.py, ata_counters.py and scsi_counters.py bring them
to bytes, plausible.py refuses what no drive can have done. A figure that a drive does not report, or that is not
plausible, is None; `unknown` has the reasons, for figures that a user would look for, and the contradictions between
two sources."""

import re
from typing import Any

from ssdrig.base.words import BYTES
from ssdrig.drive.smart import ata_counters, health, nvme_counters, plausible, scsi_counters
from ssdrig.drive.smart.json_numbers import U128, inside, objects, text, whole

KEYS = (
    "t_ns",
    "t_start_ns",
    "t_end_ns",
    "reason",
    "simulated",
    "model",
    "serial",
    "firmware",
    "family",
    "family_source",  # "smartctl", or what ssdrig recognised it by
    "in_database",
    "protocol",
    "capacity_bytes",  # of the drive, of which a namespace may be a part
    "namespace_bytes",
    "namespace",  # whose log it is; None: the whole drive's
    "namespace_written_bytes",  # from the log of one namespace, so not a figure of the drive
    "namespace_read_bytes",
    "exit_status",
    "exit_status_bits",
    "health",  # "ok", "warning", "failing" or "unknown": health.py
    "health_reasons",  # {"kind", "state", "words"}
    "health_ok",  # the drive's own overall word
    "critical_warning",
    # bytes, the counter's resolution (a difference of two readings is off by less than one unit), and where they are
    # from
    "host_written_bytes",
    "host_written_unit_bytes",
    "host_written_source",
    "host_written_wrap_bytes",
    "host_read_bytes",
    "nand_written_bytes",
    "nand_written_unit_bytes",
    "nand_written_source",
    "nand_written_wrap_bytes",
    # in bytes: what NAND bytes of log 22h are to be held against, of one endurance group since FDP was switched on
    "fdp_host_written_bytes",
    "fdp_erased_bytes",  # of the media of that group
    "fdp_events",  # nvme_fdp.decode_23h; the last 63 of the host and of the controller
    "latency_monitor",  # latency_monitor.decode, of OCP's log C3h
    "nand_written_tlc_bytes",  # without the SLC cache's share, if the drive reports both
    "host_program_pages",
    "nand_program_pages",  # NAND pages of unstated size: only the ratio of differences means something
    "percentage_used",
    "available_spare_percent",
    "available_spare_threshold_percent",
    "pe_cycles_mean",
    "pe_cycles_min",
    "pe_cycles_max",
    "pe_cycles_rated",  # the rating, where the drive itself reports it
    "pe_cycles_source",
    "workload_wear_percent",
    "workload_reads_percent",
    "workload_timer_min",  # since the timer was reset (Intel E2h, E3h, E4h)
    "temperature_C",
    "temperature_max_C",
    "temperature_sensors_C",  # NVMe: of sensor 1 to the last that it has, None of one it lacks
    "power_on_hours",
    "power_cycles",
    "unsafe_shutdowns",
    "media_errors",
    "error_log_entries",
    "warning_temp_min",
    "critical_temp_min",
    "throttle_1_count",  # how often it slowed down by thermal management, 1 light and 2 heavy, and for how long
    "throttle_2_count",
    "throttle_1_s",
    "throttle_2_s",
    "throttle_count",  # as its maker or OCP counts
    "lifetime_energy_Wh",
    "interval_power_W",  # its own mean power of the last interval
    *plausible.ERROR_COUNTERS,
    "free_blocks_percent",
    "capacitor_health_percent",  # of power-loss protection: the margin of its energy, a new one may exceed 100
    "incomplete_shutdowns",  # at which it did not save everything
    "hard_disk",  # True: no wear figure of flash applies; None: unknown
    "counter_units",  # of ATA byte counters: {"attribute", "name", "unit_bytes", "evidence"}
    "sources",
    "unknown",
)
NOT_FIGURES = {
    *KEYS[: KEYS.index("host_written_bytes")],
    "host_written_unit_bytes",
    "host_written_source",
    "host_written_wrap_bytes",
    "nand_written_unit_bytes",
    "nand_written_source",
    "nand_written_wrap_bytes",
    "pe_cycles_source",
    "fdp_events",
    "latency_monitor",
    "temperature_sensors_C",
    "hard_disk",
    "counter_units",
    "sources",
    "unknown",
}
FIGURES = tuple(name for name in KEYS if name not in NOT_FIGURES)
OF_FLASH = tuple(
    name
    for name in KEYS
    if name.startswith(("nand_", "pe_cycles", "workload", "fdp_", "host_program", "available_spare", "free_blocks"))
    or name
    in (
        "percentage_used",
        "refreshes",
        "read_disturbs",
        "xor_recoveries",
        "program_fails",
        "erase_fails",
        "bad_user_blocks",
    )
)
# attribute names of drives with platters, for files without a rotation rate
OF_PLATTERS = {
    "Seek_Error_Rate",
    "Spin_Retry_Count",
    "Calibration_Retry_Count",
    "Head_Flying_Hours",
    "Load_Cycle_Count",
    "Multi_Zone_Error_Rate",
    "Helium_Level",
}
# by less than what a figure can be off, where the drive counts whole units and its reducer knows no better
ROUNDED = {"power_on_hours", "temperature_C", "temperature_max_C", "percentage_used", "available_spare_percent"}
# what begins the words on a refused counter of the host's bytes; the parts of smartctl's JSON that have it
OF_HOST_COUNTER = {
    "NVMe": ("smartctl's data_units_written", "host_written_bytes", "health: "),
    "SCSI": ("gigabytes processed, write",),
}
HOLDS_HOST_COUNTER = {
    "NVMe": ("nvme_smart_health_information_log",),
    "ATA": ("ata_smart_attributes", "ata_device_statistics"),
    "SCSI": ("scsi_error_counter_log",),
}
UNITS = (("_bytes", "B"), ("_s", "s"), ("_percent", "%"), ("_hours", "h"), ("_min", "min"), ("_C", "°C"), ("_Wh", "Wh"))
NS_MOST = 2**63 - 1


def snapshot(document: dict) -> dict:
    """The wear numbers of one SMART document: all of KEYS, None where not known.

    t_ns is the middle of the poll; times in ns, temperatures in Celsius, percentages 0 … 100 and more where a rating is
    passed. Never raises on any content from a drive, a tool or a file."""
    unknown: list[str] = []
    out = dict.fromkeys(KEYS) | {"simulated": False, "unknown": unknown}
    out |= {"exit_status_bits": [], "counter_units": [], "sources": {}, "health": health.UNKNOWN, "health_reasons": []}
    if not isinstance(document, dict):
        unknown.append("everything: the SMART document is not a JSON object")
        return out
    smartctl = document.get("smartctl")
    if not isinstance(smartctl, dict):
        smartctl = {}
    out["t_start_ns"] = start = whole(document, "t_start_ns", unknown, "start of the poll", at_most=NS_MOST)
    out["t_end_ns"] = end = whole(document, "t_end_ns", unknown, "end of the poll", at_most=NS_MOST)
    out["t_ns"] = (start + end) // 2 if start is not None and end is not None else None
    out["reason"] = text(document.get("reason"))
    out["simulated"] = document.get("simulated") is True
    out |= _exit_status(document, smartctl, unknown)
    out |= _identity(document, smartctl, unknown)
    out["hard_disk"] = is_hard_disk(smartctl)
    if out["protocol"] != "NVMe" or not nvme_counters.is_unfilled(smartctl):
        out |= _common(smartctl, unknown, out["protocol"])
    reducers = {"NVMe": nvme_counters.reduce, "ATA": ata_counters.reduce, "SCSI": scsi_counters.reduce}
    reduce = reducers.get(out["protocol"] or "")
    readings = {}
    if reduce:
        # a protocol's own tables take precedence over smartctl's summary of them
        readings = reduce(document, smartctl, unknown)
        out["sources"] = readings.pop("sources", {})
        compresses, refused = readings.pop("compresses", False), readings.pop("refused", {})
        out |= {name: value for name, value in readings.items() if value is not None}
    else:
        unknown.append("everything: neither smartctl nor a log page identifies the kind of drive")
    if out["host_written_bytes"] is None and not _mentions(unknown, "host bytes written"):
        out |= _host_of_smartctl_8(smartctl, unknown)
    if out["namespace"] is not None:
        _of_namespace(out, unknown)
    if out["hard_disk"]:
        for name in OF_FLASH:
            out[name] = None
    _sources(out, readings)
    plausible.check(out, unknown, bool(reduce and compresses))
    if reduce:
        _say_what_is_missing(out, smartctl, refused, unknown)
    out["health"], out["health_reasons"] = health.verdict(out, smartctl)
    return out


def _of_namespace(out: dict, unknown: list[str]) -> None:
    """Move the bytes of a single namespace's log to keys that name it: they are not figures of the drive."""
    for kind in ("written", "read"):
        out[f"namespace_{kind}_bytes"], out[f"host_{kind}_bytes"] = out[f"host_{kind}_bytes"], None
    for what in ("unit_bytes", "source", "wrap_bytes"):
        out[f"host_written_{what}"] = None
    unknown.append(
        f"host bytes written: the SMART log covers only namespace {out['namespace']}; for the drive's: smartctl -d nvme"
    )


def is_hard_disk(smartctl: dict) -> bool | None:
    """smartctl's rotation_rate: 0 is an SSD, more is a disk that turns. Where a file does not have it, two attributes
    of platters are proof; None: not known."""
    turns = whole(smartctl, "rotation_rate", [], "")
    if turns is not None:
        return turns > 0
    names = {row.get("name") for row in objects(inside(smartctl, "ata_smart_attributes", "table")) if _is_name(row)}
    return True if len(names & OF_PLATTERS) >= 2 else None


def _is_name(row: dict) -> bool:
    return isinstance(row.get("name"), str)


def _mentions(unknown: list[str], start: str) -> bool:
    return any(words.startswith(start) for words in unknown)


def _say_what_is_missing(out: dict, smartctl: dict, refused: dict[str, str], unknown: list[str]) -> None:
    if out["host_written_bytes"] is None and not _mentions(unknown, "host bytes written"):
        why = refused.get("host_written") or _why_no_host_bytes(out, smartctl, unknown)
        unknown.append(f"host bytes written: {why}")
    if out["hard_disk"]:
        unknown[:] = [words for words in unknown if not words.startswith("NAND ")]
    elif out["protocol"] == "ATA":
        ata_counters.say_what_is_missing(out, refused, unknown)


def _why_no_host_bytes(out: dict, smartctl: dict, unknown: list[str]) -> str:
    """Why its counter is refused, which part of the document is missing, or that the drive has no such counter."""
    for words in unknown:
        if words.startswith(OF_HOST_COUNTER.get(out["protocol"], ())):
            return words.removeprefix("health: ")
    if out["protocol"] == "ATA" and not out["hard_disk"] and (unnamed := ata_counters.unnamed_counters(smartctl)):
        return unnamed
    if not any(smartctl.get(name) for name in HOLDS_HOST_COUNTER[out["protocol"]]):
        return f"the document has no {' and no '.join(HOLDS_HOST_COUNTER[out['protocol']])}"
    return "the drive reports no such counter"


def _sources(out: dict, readings: dict) -> None:
    """Complete out["sources"]: {"source", "error", "unit"} of each known figure. error: its bound, in its unit;
    0 for a count; None if unknown."""
    standard = {"NVMe": "log 02h", "SCSI": "SCSI log pages"}.get(out["protocol"], "smartctl")
    known = out["sources"]
    out["sources"] = {}
    for name in FIGURES:
        if out[name] is None:
            continue
        entry = known.get(name) or {}
        kind = name.rpartition("_")[0]
        if name in readings and out["namespace"] is not None and standard == "log 02h" and not entry:
            entry = {"source": f"log 02h of namespace {out['namespace']}"}
        source = entry.get("source") or out.get(f"{kind}_source")
        if source is None and name.startswith("pe_cycles"):
            source = out["pe_cycles_source"]
        if source is None and name not in readings and out["protocol"] != "NVMe":
            source = "smartctl"  # its summary of the drive's data
        unit_of = "host_written" if name == "host_read_bytes" else kind  # the drive counts both in the same unit
        error = entry.get("error", out.get(f"{unit_of}_unit_bytes"))
        if error is None:
            error = 1 if name in ROUNDED else 0
        unit = next((unit for end, unit in UNITS if name.endswith(end)), "%" if name == "percentage_used" else "1")
        out["sources"][name] = {"source": source or standard, "error": error, "unit": unit}


def _host_of_smartctl_8(smartctl: dict, unknown: list[str]) -> dict:
    """smartctl 8.0 brings the host's bytes of drives of all kinds to one place, with their unit."""
    out: dict[str, Any] = {}
    for role in ("write", "read"):
        table = smartctl.get(f"host_{role}s")
        count = whole(table, "units", unknown, f"smartctl's host_{role}s", at_most=U128)
        unit = whole(table, "bytes_per_unit", unknown, f"smartctl's unit of host_{role}s", at_least=1, at_most=1 << 40)
        if count is not None and unit is not None:
            out |= (
                {"host_read_bytes": count * unit}
                if role == "read"
                else {
                    "host_written_bytes": count * unit,
                    "host_written_unit_bytes": unit,
                    "host_written_source": "smartctl's host_writes",
                }
            )
    return out


def _exit_status(document: dict, smartctl: dict, unknown: list[str]) -> dict:
    status = whole(inside(smartctl, "smartctl"), "exit_status", unknown, "smartctl's exit status", at_most=255)
    if status is None:
        for tool in objects(document.get("tools")):
            argv = tool.get("argv")
            if (
                isinstance(argv, list)
                and argv
                and isinstance(argv[0], str)
                and argv[0].rpartition("/")[2] == "smartctl"
            ):
                status = whole(tool, "exit_code", unknown, "smartctl's exit code", at_most=255)
    bits = [] if status is None else [bit for bit in range(8) if status >> bit & 1]
    for message in objects(inside(smartctl, "smartctl", "messages")):
        if status is not None and status & 3 and (message_text := text(message.get("string"))):
            unknown.append(f"smartctl reports: {message_text[:200]}")
    return {"exit_status": status, "exit_status_bits": bits}


def _identity(document: dict, smartctl: dict, unknown: list[str]) -> dict:
    drive = document.get("drive")
    protocol = text(inside(smartctl, "device", "protocol"))
    if protocol not in ("NVMe", "ATA", "SCSI"):
        pages = any(isinstance(name, str) and name.startswith("log_") and name.endswith("h") for name in document)
        kinds = {
            "nvme_smart_health_information_log": "NVMe",
            "ata_smart_attributes": "ATA",
            "ata_device_statistics": "ATA",
            "scsi_error_counter_log": "SCSI",
        }
        protocol = next((kind for name, kind in kinds.items() if name in smartctl), "NVMe" if pages else None)
    family, known = text(smartctl.get("model_family")), smartctl.get("in_smartctl_database")
    listed = _device_info(smartctl.get("device_info"))
    # 0: the drive has lost its capacity, or a bridge does not report it
    capacity = whole(smartctl.get("user_capacity"), "bytes", unknown, "capacity") or None
    capacity = capacity or whole(drive, "capacity_bytes", unknown, "capacity") or None
    namespace = None
    if protocol == "NVMe":
        total = whole(smartctl, "nvme_total_capacity", unknown, "total capacity") or 0
        free = whole(smartctl, "nvme_unallocated_capacity", unknown, "unallocated capacity") or 0
        namespace = capacity
        capacity = max(total, (capacity or 0) + free if free else capacity or 0) or None
    return {
        "model": text(smartctl.get("model_name"))
        or text(smartctl.get("scsi_model_name"))
        or text(inside(drive, "model"))
        or listed.get("model"),
        "serial": text(smartctl.get("serial_number")) or text(inside(drive, "serial")) or listed.get("serial"),
        "firmware": text(smartctl.get("firmware_version"))
        or text(smartctl.get("scsi_revision"))
        or text(smartctl.get("revision"))
        or text(inside(drive, "firmware"))
        or listed.get("firmware"),
        "family": family,
        "family_source": family and "smartctl",
        "in_database": known if isinstance(known, bool) else None,
        "protocol": protocol,
        "capacity_bytes": capacity or listed.get("capacity_bytes"),
        "namespace_bytes": namespace,
    }


DEVICE_INFO = re.compile(
    r"(?P<model>.+?), (?:.*?, )?S/N:(?P<serial>[^,]*), (?:WWN:[^,]*, )?FW:(?P<firmware>[^,]*)(?P<rest>.*)"
)
DEVICE_INFO_SCSI = re.compile(
    r"\[(?P<model>.+?) +(?P<firmware>\S+)\](?:, lu id: [^,]*)?, S/N: ?(?P<serial>[^,]*)(?P<rest>.*)"
)
DEVICE_SIZE = re.compile(r"(\d{1,4}(?:[.,]\d{1,3})?) (MB|GB|TB|PB)")


def _device_info(value) -> dict:
    """The identity that smartd writes into its state files: "MODEL, S/N:…, WWN:…, FW:…, 6.40 TB". The capacity has
    three digits, enough to find a model's row."""
    shown = value.strip() if isinstance(value, str) else ""
    match = DEVICE_INFO.fullmatch(shown) or DEVICE_INFO_SCSI.fullmatch(shown)
    if match is None:
        return {}
    identity: dict[str, Any] = {name: match[name].strip() or None for name in ("model", "serial", "firmware")}
    size = DEVICE_SIZE.search(match["rest"])
    if size:
        identity["capacity_bytes"] = round(float(size[1].replace(",", ".")) * BYTES[size[2]])
    return identity


def _common(smartctl: dict, unknown: list[str], protocol: str | None) -> dict:
    """What smartctl reports in one place for drives of all kinds. endurance_used and spare_available: smartctl 7.5 and
    newer."""
    passed = inside(smartctl, "smart_status", "passed")
    out = {
        "health_ok": passed if isinstance(passed, bool) else None,
        "temperature_C": whole(
            smartctl.get("temperature"), "current", unknown, "temperature", at_least=-100, at_most=300
        ),
        "power_on_hours": whole(smartctl.get("power_on_time"), "hours", unknown, "power-on hours"),
        "power_cycles": whole(smartctl, "power_cycle_count", unknown, "power cycles"),
    }
    if protocol == "ATA":  # there both are guesses: ata_counters ranks them
        return out
    endurance, spare = smartctl.get("endurance_used"), smartctl.get("spare_available")
    return out | {
        "percentage_used": whole(endurance, "current_percent", unknown, "endurance used", at_most=255),
        "available_spare_percent": whole(spare, "current_percent", unknown, "spare available", at_most=100),
        "available_spare_threshold_percent": whole(spare, "threshold_percent", unknown, "spare threshold", at_most=100),
    }
