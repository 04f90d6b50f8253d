"""Convert the text output of `smartctl -a` or `-x` into the form of its JSON, for the keys that counters and health
need. Pure.

Text has neither the exit status nor the raw value of an attribute: raw values are put together again from the formats
that smartctl prints them in, and an attribute whose format is not known has none."""

import re
from datetime import UTC, datetime, timedelta, timezone

BANNER = re.compile(r"^smartctl (\d{1,3})\.(\d{1,3})\b", re.MULTILINE)
SECTION = re.compile(r"^=== START OF ", re.MULTILINE)
FIELD = re.compile(r"^([A-Z][A-Za-z0-9 .,/()#-]*?)(?::| is:) +(.*\S) *$", re.MULTILINE)
ATTRIBUTE = re.compile(
    r"^ *(?P<id>\d{1,3}) (?P<name>\S+) +(?:0x(?P<flags>[0-9a-f]{4})|(?P<brief>[POSRCK-]{6})) +(?P<value>\d{3}|---)"
    r" +(?P<worst>\d{3}|---) +(?P<thresh>\d{3}|---) +(?:(?P<type>Pre-fail|Old_age) +(?:Always|Offline) +)?"
    r"(?P<failed>-|NOW|Past|FAILING_NOW|In_the_past) +(?P<raw>\S.*?) *$",
    re.MULTILINE,
)
STATISTIC = re.compile(
    r"^0x(?P<page>[0-9a-f]{2}) +0x(?P<offset>[0-9a-f]{3}) +(?P<size>\d) +(?P<value>-?\d+|-) +(?P<flags>\S{2,5}) +\S",
    re.MULTILINE,
)
SELF_TEST = re.compile(
    r"^# ?\d+ +(?P<type>.+?)  +(?P<status>Completed[^%]*?|Fatal[^%]*?|Aborted[^%]*?|Interrupted[^%]*?|Self-test[^%]*?)"
    r" +\d\d% +(?P<hours>\d+)",
    re.MULTILINE,
)
NVME_TEST = re.compile(r"^ *\d+ +(?:Short|Extended|Vendor\S*) +(?P<status>(?:Completed|Aborted|Fatal).*?)  +", re.M)
SCSI_ERRORS = re.compile(r"^(read|write|verify): +((?:[\d.,]+ +){6}\d+) *$", re.MULTILINE)
NVME = {  # label: key of nvme_smart_health_information_log
    "Critical Warning": "critical_warning",
    "Temperature": "temperature",
    "Available Spare": "available_spare",
    "Available Spare Threshold": "available_spare_threshold",
    "Percentage Used": "percentage_used",
    "Data Units Read": "data_units_read",
    "Data Units Written": "data_units_written",
    "Host Read Commands": "host_reads",
    "Host Write Commands": "host_writes",
    "Controller Busy Time": "controller_busy_time",
    "Power Cycles": "power_cycles",
    "Power On Hours": "power_on_hours",
    "Unsafe Shutdowns": "unsafe_shutdowns",
    "Media and Data Integrity Errors": "media_errors",
    "Error Information Log Entries": "num_err_log_entries",
    "Warning Comp. Temperature Time": "warning_temp_time",
    "Critical Comp. Temperature Time": "critical_comp_time",
    "Thermal Temp. 1 Transition Count": "thermal_mgmt_temperature_1_transition_count",
    "Thermal Temp. 2 Transition Count": "thermal_mgmt_temperature_2_transition_count",
    "Thermal Temp. 1 Total Time": "thermal_mgmt_temperature_1_total_time",
    "Thermal Temp. 2 Total Time": "thermal_mgmt_temperature_2_total_time",
}
WHEN = {"-": "", "NOW": "now", "FAILING_NOW": "now", "Past": "past", "In_the_past": "past"}
ZONES_H = {"UTC": 0, "GMT": 0, "CET": 1, "CEST": 2, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6}
ZONES_H |= {"PST": -8, "PDT": -7, "BST": 1, "JST": 9, "MSK": 3}


def parse(text: str) -> dict | None:
    """The document that `smartctl --json` would have printed, without what text does not have; None where this is not
    smartctl's output of a drive."""
    banner = BANNER.search(text)
    if banner is None or not SECTION.search(text):
        return None
    fields: dict[str, str] = {}
    for match in FIELD.finditer(text):
        fields.setdefault(re.sub(" +", " ", match[1]), match[2])
    out = {"smartctl": {"version": [int(banner[1]), int(banner[2])]}} | _identity(fields)
    if "SMART/Health Information (NVMe Log" in text or "Total NVM Capacity" in fields or "NVMe Version" in fields:
        out["device"] = {"protocol": "NVMe"}
        out |= _nvme(text, fields)
    elif "Transport protocol" in fields or "Logical Unit id" in fields:
        out["device"] = {"protocol": "SCSI"}
        out |= _scsi(text, fields)
    else:
        out["device"] = {"protocol": "ATA"}
        out |= _ata(text, fields)
    health = fields.get("SMART overall-health self-assessment test result") or fields.get("SMART Health Status")
    if health is not None:
        out["smart_status"] = {"passed": health in ("PASSED", "OK")}
    has_drive = any(name in out for name in ("model_name", "scsi_model_name", "ata_smart_attributes"))
    return out if has_drive or "nvme_smart_health_information_log" in out else None


def _number(value: str | None) -> int | None:
    """ "1,000,204,886,016 bytes [1.00 TB]", "100%", "0x00", "40 Celsius"; whatever parts the thousands."""
    if value is None:
        return None
    if re.match("0x[0-9a-fA-F]+", value):
        return int(value.split()[0], 16)
    match = re.match(r"-?\d{1,3}(?:[,.'\u00a0\u202f ]\d{3})+(?!\d)|-?\d+", value)
    return int(re.sub(r"[^\d-]", "", match[0])) if match else None


def _identity(fields: dict) -> dict:
    out: dict = {}
    for name, labels in (
        ("model_family", ("Model Family",)),
        ("model_name", ("Device Model", "Model Number")),
        ("serial_number", ("Serial Number", "Serial number")),
        ("firmware_version", ("Firmware Version", "Revision")),
    ):
        value = next((fields[label] for label in labels if label in fields), None)
        if value:
            out[name] = value
    if "model_name" not in out and ("Vendor" in fields or "Product" in fields):
        out["model_name"] = f"{fields.get('Vendor', '')} {fields.get('Product', '')}".strip()
    capacity = _number(fields.get("User Capacity") or fields.get("Namespace 1 Size/Capacity"))
    if capacity:
        out["user_capacity"] = {"bytes": capacity}
    for name, label in (
        ("nvme_total_capacity", "Total NVM Capacity"),
        ("nvme_unallocated_capacity", "Unallocated NVM Capacity"),
        ("nvme_number_of_namespaces", "Number of Namespaces"),
    ):
        if (value := _number(fields.get(label))) is not None:
            out[name] = value
    sectors = fields.get("Sector Size") or fields.get("Sector Sizes") or fields.get("Logical block size")
    if sectors:
        out["logical_block_size"] = _number(sectors)
    rotation = fields.get("Rotation Rate")
    if rotation:
        out["rotation_rate"] = 0 if rotation == "Solid State Device" else _number(rotation)
    listed = fields.get("Device")
    if listed:
        out["in_smartctl_database"] = listed.startswith("In smartctl database")
    seconds = _time(fields.get("Local Time"))
    if seconds:
        out["local_time"] = {"time_t": seconds}
    vendor = _number(fields.get("PCI Vendor/Subsystem ID"))
    return out | ({"nvme_pci_vendor": {"id": vendor}} if vendor is not None else {})


def _time(value: str | None) -> int | None:
    """ "Sat Nov 28 04:49:38 2026 UTC" in seconds; None if the zone's name does not define its offset."""
    words = (value or "").split()
    zone = words[5] if len(words) == 6 else ""
    offset = re.fullmatch(r"([+-]\d\d)(\d\d)?", zone)
    hours = int(offset[1]) if offset else ZONES_H.get(zone)
    if hours is None:
        return None
    try:
        local = datetime.strptime(" ".join(words[1:5]), "%b %d %H:%M:%S %Y")
    except ValueError:
        return None
    return int(local.replace(tzinfo=timezone(timedelta(hours=hours)) if hours else UTC).timestamp())


def _nvme(text: str, fields: dict) -> dict:
    log = {}
    for label, key in NVME.items():
        value = _number(fields.get(label))
        if value is not None:
            log[key] = value
    out: dict = {}
    head = re.search(r"SMART/Health Information \(NVMe Log 0x02(?:, NSID (0x[0-9a-f]+|\d+))?\)", text)
    if head and head[1]:
        number = int(head[1], 0)
        log["nsid"] = -1 if number == 2**32 - 1 else number
    if len(log) > 2:
        out["nvme_smart_health_information_log"] = log
    limits = {
        name.lower(): value
        for name in ("Warning", "Critical")
        if (value := _number(fields.get(f"{name} Comp. Temp. Threshold"))) is not None
    }
    if limits:
        out["nvme_composite_temperature_threshold"] = limits
    results = []
    for match in NVME_TEST.finditer(text):
        status = match["status"]
        value = 7 if "failed" in status else 5 if "Fatal" in status else 1 if "Aborted" in status else 0
        results.append({"self_test_result": {"value": value, "string": status}})
    if results:
        out["nvme_self_test_log"] = {"table": results}
    return out


def _ata(text: str, fields: dict) -> dict:
    out: dict = {}
    table = [_attribute(match) for match in ATTRIBUTE.finditer(text)]
    if table:
        out["ata_smart_attributes"] = {"table": table}
    pages: dict[int, list] = {}
    for match in STATISTIC.finditer(text):
        valid = match["value"] != "-"
        flags = {"valid": valid, "normalized": "N" in match["flags"]}
        entry = {"offset": int(match["offset"], 16), "size": int(match["size"]), "flags": flags}
        pages.setdefault(int(match["page"], 16), []).append(entry | ({"value": int(match["value"])} if valid else {}))
    if pages:
        out["ata_device_statistics"] = {"pages": [{"number": page, "table": rows} for page, rows in pages.items()]}
    counts = [_number(fields[label]) for label in ("Device Error Count", "ATA Error Count") if label in fields]
    counts += [int(count) for count in re.findall(r"^ATA Error Count: (\d+)", text, re.MULTILINE)]
    if any(counts):
        out["ata_smart_error_log"] = {"summary": {"count": max(count for count in counts if count)}}
    tests = [_self_test(match) for match in SELF_TEST.finditer(text)]
    if tests:
        out["ata_smart_self_test_log"] = {"standard": {"table": tests}}
    temperature = re.search(r"^Current Temperature: +(-?\d+) Celsius", text, re.MULTILINE)
    if temperature:
        out["temperature"] = {"current": int(temperature[1])}
    return out


def _attribute(match: re.Match) -> dict:
    out = {"id": int(match["id"]), "name": match["name"], "when_failed": WHEN[match["failed"]]}
    out |= {name: int(match[name]) for name in ("value", "worst", "thresh") if match[name] != "---"}
    prefail = int(match["flags"], 16) & 1 == 1 if match["flags"] else match["brief"].startswith("P")
    raw, value = match["raw"], _raw(match["raw"])
    return out | {
        "flags": {"string": match["brief"] or "", "prefailure": prefail},
        "raw": {"string": raw} | ({} if value is None else {"value": value}),
    }


def _raw(shown: str) -> int | None:
    """The raw value that is printed so: a number, "66 (Average 530)", "0/5" (percent, count), three words from the
    highest, hours of "65h+33m+09.259s", a number with its extremes. None for any other text."""
    if re.fullmatch(r"\d{1,20}", shown):
        return int(shown)
    if re.fullmatch(r"0x[0-9a-fA-F]{1,14}", shown):
        return int(shown, 16)
    if match := re.fullmatch(r"(\d{1,5}) \(Average (\d{1,5})\)", shown):
        return int(match[1]) | int(match[2]) << 16
    if match := re.fullmatch(r"(\d{1,5})/(\d{1,10})", shown):
        return int(match[1]) << 32 | int(match[2])
    if match := re.fullmatch(r"(\d{1,5}) (\d{1,5}) (\d{1,5})", shown):
        return int(match[1]) << 32 | int(match[2]) << 16 | int(match[3])
    match = re.match(r"(\d{1,12})(?:h\+\d+m|h$| \()", shown)
    return int(match[1]) if match else None


def _self_test(match: re.Match) -> dict:
    status = match["status"].strip()
    passed = status.startswith("Completed without error")
    by_host = status.startswith(("Aborted", "Interrupted", "Self-test"))
    value = 0 if passed else 16 if by_host else 3 << 4 if status.startswith("Fatal") else 7 << 4
    state = {"value": value, "string": status, "passed": passed or by_host}
    return {"type": {"string": match["type"].strip()}, "status": state, "lifetime_hours": int(match["hours"])}


def _scsi(text: str, fields: dict) -> dict:
    out: dict = {}
    for name, label in (
        ("scsi_percentage_used_endurance_indicator", "Percentage used endurance indicator"),
        ("scsi_grown_defect_list", "Elements in grown defect list"),
    ):
        if (value := _number(fields.get(label))) is not None:
            out[name] = value
    temperature = {
        name: value
        for name, label in (("current", "Current Drive Temperature"), ("drive_trip", "Drive Trip Temperature"))
        if (value := _number(fields.get(label))) is not None
    }
    if temperature:
        out["temperature"] = temperature
    hours = re.search(r"(?:power on time, hours:minutes |number of hours powered up = )(\d+)", text)
    if hours:
        out["power_on_time"] = {"hours": int(hours[1])}
    cycles = _number(fields.get("Accumulated start-stop cycles"))
    if cycles is not None:
        out["scsi_start_stop_cycle_counter"] = {"accumulated_start_stop_cycles": cycles}
    log = {}
    for kind, numbers in SCSI_ERRORS.findall(text):
        *_, gigabytes, uncorrected = numbers.split()
        log[kind] = {"gigabytes_processed": gigabytes, "total_uncorrected_errors": int(uncorrected)}
    return out | ({"scsi_error_counter_log": log} if log else {})
