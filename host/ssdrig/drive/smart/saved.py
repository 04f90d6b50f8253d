"""SMART documents that were saved to files.

The forms in which people have SMART documents, brought to the one that counters.py reads. Pure.

smartctl's JSON, smart/<nnn>.json of a run, `smartd -j` state, ceph's `get-health-metrics`, `nvme smart-log` and `nvme
id-ctrl` with `-o json`, arrays of these and several one after the other, and smartctl's text, also of several drives.

Convert the text output of `smartctl -a` or `-x` into the form of its JSON, for the keys that counters and health
need. Pure.

Text has neither the exit status nor the raw value of an attribute: raw values are put together again from the formats
that smartctl prints them in, and an attribute whose format is not known has none."""

import itertools
import json
import re
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from ssdrig.base.errors import UsageError
from ssdrig.drive.smart.json_numbers import text as words

NOT_BLANK = re.compile(r"\S")
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
NVME_TEST = re.compile(
    r"^ *\d+ +(?P<type>Short|Extended|Vendor\S*) +(?P<status>(?:Completed|Aborted|Fatal).*?)  +", re.M
)
SCSI_TEST = re.compile(
    r"^# ?\d+ +(?P<type>(?:Background|Foreground) (?:short|long)|Reserved\S*|Default) +(?P<status>[A-Z].*?)"
    r"  +(?:-|\d+) +(?:\d+|NOW|-) ",
    re.MULTILINE,
)
SCSI_RESULTS = {  # what smartctl prints for the self-test results of SPC-4, table 407
    "Completed": 0,
    "Aborted (by user command)": 1,
    "Aborted (device reset ?)": 2,
    "Unknown error, incomplete": 3,
    "Completed, segment failed": 4,
    "Failed in first segment": 5,
    "Failed in second segment": 6,
    "Failed in segment -->": 7,
    "Self test in progress ...": 15,
}
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
    if health is not None and not health.startswith("UNKNOWN"):
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
        code = {"string": match["type"]}
        results.append({"self_test_code": code, "self_test_result": {"value": value, "string": status}})
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
    for number, test in enumerate(SCSI_TEST.finditer(text)):
        result = SCSI_RESULTS.get(test["status"])
        if result is not None:
            row = {"code": {"string": test["type"]}, "result": {"value": result, "string": test["status"]}}
            out[f"scsi_self_test_{number}"] = row
    return out | ({"scsi_error_counter_log": log} if log else {})


EXPECTED = "a SMART document: smartctl's JSON or text, nvme-cli's JSON, or smart/<nnn>.json of a run"
DO = "save it with: smartctl --json=cv -x DEVICE > FILE"
CEPH_TIME = re.compile(r"\d{8}-\d{6}")
NVME_CLI = {  # key of `nvme smart-log -o json`: key of smartctl's log
    "critical_warning": "critical_warning",
    "avail_spare": "available_spare",
    "spare_thresh": "available_spare_threshold",
    "percent_used": "percentage_used",
    "percentage_used": "percentage_used",
    "data_units_read": "data_units_read",
    "data_units_written": "data_units_written",
    "host_read_commands": "host_reads",
    "host_write_commands": "host_writes",
    "controller_busy_time": "controller_busy_time",
    "power_cycles": "power_cycles",
    "power_on_hours": "power_on_hours",
    "unsafe_shutdowns": "unsafe_shutdowns",
    "media_errors": "media_errors",
    "num_err_log_entries": "num_err_log_entries",
    "warning_temp_time": "warning_temp_time",
    "critical_comp_time": "critical_comp_time",
    "thm_temp1_trans_count": "thermal_mgmt_temperature_1_transition_count",
    "thm_temp2_trans_count": "thermal_mgmt_temperature_2_transition_count",
    "thm_temp1_total_time": "thermal_mgmt_temperature_1_total_time",
    "thm_temp2_total_time": "thermal_mgmt_temperature_2_total_time",
}
ZERO_C_K = 273
LEAST_K = 200  # a number below it is in °C: no drive works at -73 °C, or at 200 °C
MOST_BEGINNINGS = 10  # places at which JSON may begin
IDENTITY = "identity"  # key of a document that is an Identify Controller only


def documents_of(content: bytes, name: str) -> list[dict]:
    """The SMART documents in a file's content, in its order; an Identify Controller is {IDENTITY: {...}}. `name`: for
    words. Raises UsageError for anything else, and without any."""
    documents_read = _documents(content, name)
    if not documents_read:
        raise UsageError(EXPECTED, f"an empty list: {name}", DO)
    return documents_read


def _documents(content: bytes, name: str) -> list[dict]:
    text = _decoded(content)
    if not text.strip():
        raise UsageError(EXPECTED, f"an empty file: {name}", DO)
    of_text = [parse(part) for part in _printed(text)]
    if any(of_text):
        return [{"smartctl": document} for document in of_text if document]
    first = text.find("{")
    # words of sudo or ssh before the document may have a "[", but no "{"
    brackets = [match.start() for match in re.finditer(r"\[", text[: max(0, first)])][:MOST_BEGINNINGS]
    fault = "no object in it"
    for begin in [*brackets, first] if first >= 0 else []:
        try:
            rows = _in_a_row(text, begin)
        except RecursionError as error:
            raise UsageError(EXPECTED, f"{name}: nested too deeply", DO) from error
        except ValueError as error:
            fault = str(error)
            continue
        if begin != first and not all(_holds_objects(row) for _, row in rows):
            continue  # such as a shell's "[1] 4711"
        several = len(rows) > 1
        return [one for line, row in rows for one in _classified(row, f"{name}, line {line}" if several else name)]
    raise UsageError(EXPECTED, f"a document that is cut off or not JSON: {name}: {fault}", DO)


def _printed(text: str) -> list[str]:
    """Each output of smartctl in a text that may hold those of several drives."""
    begins = [match.start() for match in BANNER.finditer(text)]
    return [text[begin:end] for begin, end in itertools.pairwise([*begins, len(text)])]


def _in_a_row(text: str, begin: int) -> list[tuple[int, Any]]:
    """(line number, content) of each JSON document from `begin` on, with blanks alone between them. Raises ValueError
    for anything else, RecursionError."""
    decoder, rows, at = json.JSONDecoder(), [], begin
    while at < len(text):
        row, end = decoder.raw_decode(text, at)
        rows.append((text.count("\n", 0, at) + 1, row))
        following = NOT_BLANK.search(text, end)
        at = following.start() if following else len(text)
    return rows


def _holds_objects(row) -> bool:
    return all(map(_holds_objects, row)) if isinstance(row, list) else isinstance(row, dict)


def with_identity(documents: list[tuple[str, dict]]) -> list[tuple[str, dict]]:
    """The documents without the Identify Controllers among them. One alone names the drive of those that have no
    identity of their own (`nvme smart-log`). Raises UsageError for an Identify Controller without a log next to it."""
    identities = [(name, document[IDENTITY]) for name, document in documents if IDENTITY in document]
    rest = [(name, document) for name, document in documents if IDENTITY not in document]
    if not identities:
        return rest
    bare = [document for _, document in rest if not document.get("drive") and _nameless(document.get("smartctl"))]
    if not bare or len(identities) > 1:
        what = "an Identify Controller without a SMART log" if not bare else f"{len(identities)} Identify Controllers"
        raise UsageError(EXPECTED, f"{what}: {identities[0][0]}", "give one, and: nvme smart-log -o json DEVICE > FILE")
    for document in bare:
        document["smartctl"] |= identities[0][1]
    return rest


def _nameless(smartctl) -> bool:
    return isinstance(smartctl, dict) and not any(smartctl.get(key) for key in ("model_name", "serial_number"))


def _decoded(content: bytes) -> str:
    """Its text, with the ends of lines of Linux and without the marks of UTF that each of several files begins with."""
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = content.decode("utf-16" if wide else "utf-8", "replace")
    return text.replace("\ufeff", "").replace("\r\n", "\n")


def _classified(content, name: str) -> list[dict]:
    if isinstance(content, list):
        return [document for index, one in enumerate(content) for document in _classified(one, f"{name}[{index}]")]
    if not isinstance(content, dict):
        raise UsageError(EXPECTED, f"other JSON in {name}", DO)
    if "tools" in content or "t_start_ns" in content:
        return [content]
    if isinstance(content.get("devices"), list) and not isinstance(content.get("device"), dict):
        raise UsageError(EXPECTED, f"a list of devices, as smartctl --scan prints it: {name}", DO)
    if content and all(CEPH_TIME.fullmatch(key) for key in content):
        return _of_ceph(content, name)
    head = content.get("smartctl")
    if isinstance(head, dict) and "exit_status" in head or isinstance(content.get("device"), dict):
        return [{"smartctl": content}]
    if "data_units_written" in content and ("percent_used" in content or "percentage_used" in content):
        return [{"smartctl": _of_nvme_cli(content)}]
    if all(isinstance(content.get(key), str) for key in ("mn", "sn", "fr")):
        return [{IDENTITY: _of_id_ctrl(content)}]
    raise UsageError(EXPECTED, f"other JSON in {name}", DO)


def _of_ceph(listing: dict, name: str) -> list[dict]:
    """The readings of `ceph device get-health-metrics`, whose keys are their UTC. One that holds an error instead of a
    reading is left out. Raises UsageError where that is all of them."""
    out, faults = [], []
    for key, one in sorted(listing.items()):
        try:
            (document,) = _classified(one, f"{name}, {key}")
            utc = datetime.strptime(key, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
        except UsageError as error:
            faults.append(error)
            continue
        except ValueError:  # no such day, or several documents in one
            continue
        if "local_time" not in document.get("smartctl", {}):
            document["utc_ns"] = int(utc.timestamp()) * 10**9
        out.append(document)
    if not out and faults:
        raise faults[0]
    return out


def _of_nvme_cli(page: dict) -> dict:
    """smartctl's form of `nvme smart-log -o json`: temperatures there are in kelvin, 0 without a sensor; later versions
    write 128-bit counts as text and the critical warning as an object."""
    log = {}
    for key, name in NVME_CLI.items():
        value = page.get(key)
        if isinstance(value, dict):
            value = value.get("value")
        if isinstance(value, str) and re.fullmatch(r"\d{1,39}", value.replace(",", "")):
            value = int(value.replace(",", ""))
        if value is not None:
            log[name] = value
    shown = page.get("temperature")
    if type(shown) is int:
        log["temperature"] = shown - ZERO_C_K if shown >= LEAST_K or shown == 0 else shown
    return {"device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": log}


def _of_id_ctrl(id_ctrl: dict) -> dict:
    """The drive's identity from `nvme id-ctrl -o json`, in smartctl's keys."""
    out: dict = {
        "model_name": words(id_ctrl["mn"]),
        "serial_number": words(id_ctrl["sn"]),
        "firmware_version": words(id_ctrl["fr"]),
    }
    for key, name in (("tnvmcap", "nvme_total_capacity"), ("unvmcap", "nvme_unallocated_capacity")):
        value = id_ctrl.get(key)
        if isinstance(value, str) and value.isdecimal() and len(value) < 40:
            value = int(value)
        if type(value) is int and value:
            out[name] = value
    if type(id_ctrl.get("vid")) is int:
        out["nvme_pci_vendor"] = {"id": id_ctrl["vid"]}
    return {key: value for key, value in out.items() if value}


LARGEST_BYTES = 64 << 20  # a hundred times what smartctl prints


def read(names: list[str]) -> list[tuple[str, dict]]:
    """[(label, document)] of files, folders (their *.json, at any depth) and "-" for stdin. A file in a folder that
    is not a SMART document is left out, with a line on stderr. Raises UsageError for a file that was named and cannot
    be used, and where nothing is left."""
    out: list[tuple[str, dict]] = []
    for name in names:
        path = Path(name)
        try:
            is_folder = name != "-" and path.is_dir()
        except PermissionError:  # reading it reports the error
            is_folder = False
        if not is_folder:
            out += read_file(name)
            continue
        before = len(out)
        for file in sorted(path.rglob("*.json")):
            if not file.is_file():  # a pipe would be waited for
                print(f"ssdrig wear: {file} left out: no file", file=sys.stderr)
                continue
            try:
                out += read_file(str(file))
            except UsageError as error:
                print(f"ssdrig wear: {file} left out: {error.seen}", file=sys.stderr)
        if len(out) == before:
            raise UsageError("SMART documents, *.json", f"a folder with none: {name}", DO)
    return with_identity(out)


def read_file(name: str) -> list[tuple[str, dict]]:
    """[(label, SMART document)] of a file; the label is its name, with a number where it has several. Raises
    UsageError."""
    try:
        if name == "-":
            content = sys.stdin.buffer.read(LARGEST_BYTES + 1)
        else:
            with open(name, "rb") as file:
                content = file.read(LARGEST_BYTES + 1)
        if len(content) > LARGEST_BYTES:
            raise UsageError("JSON that smartctl printed", f"more than {LARGEST_BYTES >> 20} MiB: {name}", DO)
    except OSError as error:
        raise UsageError(f"to read {name}", error.strerror or str(error), "correct the path") from error
    documents = documents_of(content, name)
    return [(name if len(documents) == 1 else f"{name}, {number}", one) for number, one in enumerate(documents, 1)]


FIRST_S = 1_000_000_000  # 2001: smartctl began in 2002; a host with an earlier time has lost its clock


def utc_ns(document: dict) -> int | None:
    """When a document was made: utc_ns of `ssdrig watch`, else smartctl's local_time; None where the host's clock was
    not set."""
    inner = document.get("smartctl")
    local = inner.get("local_time") if isinstance(inner, dict) else None
    seconds = local.get("time_t") if isinstance(local, dict) else None
    for value, factor in ((document.get("utc_ns"), 1), (seconds, 10**9)):
        if isinstance(value, int) and not isinstance(value, bool) and FIRST_S * 10**9 <= value * factor < 2**62:
            return value * factor
    return None
