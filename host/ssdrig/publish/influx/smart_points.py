"""The points of one SMART document (schemas/journal.md): smart_device and smart_attribute as Telegraf's inputs.smart
names them, ssd_wear as we do. Pure. An unknown figure is absent; what Telegraf would write as a silent 0 is absent too.

Names and rules are those of Telegraf's plugins/inputs/smart/smart.go (master of 2026), which reads smartctl's text;
here they are taken from smartctl's JSON, whose raw.string is that text, or from the NVMe page 02h itself."""

import re

from ssdrig.base.errors import DriveError
from ssdrig.drive.smart import counters, health
from ssdrig.drive.smart.json_numbers import U128, inside, objects, text, whole
from ssdrig.drive.smart.nvme_pages import decode_02h
from ssdrig.drive.wear import wa

Point = tuple[str, dict, dict]  # measurement, tags, fields
ZERO_C_K = 273  # as smartctl

# ATA attribute id -> field of smart_device, its raw value; where two give one field the later attribute wins
ATA_RAW = {
    1: "read_error_rate",
    5: "reallocated_sectors_count",
    7: "seek_error_rate",
    9: "power_on_hours",
    10: "spin_retry_count",
    12: "power_cycle_count",
    184: "end_to_end_error",
    187: "uncorrectable_errors",
    188: "command_timeout",
    190: "temp_c",
    194: "temp_c",
    196: "realloc_event_count",
    197: "pending_sector_count",
    198: "uncorrectable_sector_count",
    199: "udma_crc_errors",
    201: "soft_read_error_rate",
}
# ATA attribute name -> field of smart_device, its normalised value
ATA_NORMALISED = {
    "Wear_Leveling_Count": "wear_leveling_count",
    "Media_Wearout_Indicator": "media_wearout_indicator",
    "Percent_Lifetime_Remain": "percent_lifetime_remain",
}
# name and id of smart_attribute, key of decode_02h, key of smartctl's health log
NVME = [
    ("Critical_Warning", "", "critical_warning", "critical_warning"),
    ("Temperature_Celsius", "194", "temperature_C", "temperature"),
    ("Available_Spare", "", "available_spare_percent", "available_spare"),
    ("Available_Spare_Threshold", "", "available_spare_threshold_percent", "available_spare_threshold"),
    ("Percentage_Used", "", "percentage_used", "percentage_used"),
    ("Data_Units_Read", "", "data_units_read", "data_units_read"),
    ("Data_Units_Written", "", "data_units_written", "data_units_written"),
    ("Host_Read_Commands", "", "host_reads", "host_reads"),
    ("Host_Write_Commands", "", "host_writes", "host_writes"),
    ("Controller_Busy_Time", "", "controller_busy_min", "controller_busy_time"),
    ("Power_Cycle_Count", "12", "power_cycles", "power_cycles"),
    ("Power_On_Hours", "9", "power_on_hours", "power_on_hours"),
    ("Unsafe_Shutdowns", "", "unsafe_shutdowns", "unsafe_shutdowns"),
    ("Media_and_Data_Integrity_Errors", "", "media_errors", "media_errors"),
    ("Error_Information_Log_Entries", "", "error_log_entries", "num_err_log_entries"),
    ("Warning_Temperature_Time", "", "warning_temp_min", "warning_temp_time"),
    ("Critical_Temperature_Time", "", "critical_temp_min", "critical_comp_time"),
]
THERMAL_02H = {  # first byte in page 02h, u32; smartctl 7.3 does not have them in its JSON
    "Thermal_Management_T1_Trans_Count": 216,
    "Thermal_Management_T2_Trans_Count": 220,
    "Thermal_Management_T1_Total_Time": 224,
    "Thermal_Management_T2_Total_Time": 228,
}
SENSORS_02H = range(200, 216, 2)  # u16 K each, 0: absent
# name and id of smart_attribute, path in smartctl's JSON of a SAS drive (smartctl 7.3 and later)
SCSI = [
    ("Temperature_Celsius", "194", ("temperature", "current")),
    ("Start_Stop_Count", "4", ("scsi_start_stop_cycle_counter", "accumulated_start_stop_cycles")),
    ("Load_Cycle_Count", "193", ("scsi_start_stop_cycle_counter", "accumulated_load_unload_cycles")),
    ("Percentage_Used", "", ("scsi_percentage_used_endurance_indicator",)),
]
FAIL = {"": "-", "past": "Past", "now": "NOW"}  # when_failed -> what smartctl's brief table prints
# field of smart_device, key of counters.snapshot
FROM_SNAPSHOT = {
    "exit_status": "exit_status",
    "temp_c": "temperature_C",
    "power_on_hours": "power_on_hours",
    "power_cycle_count": "power_cycles",
    "percentage_used": "percentage_used",
    "available_spare": "available_spare_percent",
    "available_spare_threshold": "available_spare_threshold_percent",
    "critical_warning": "critical_warning",
    "media_errors": "media_errors",
    "error_log_entries": "error_log_entries",
    "unsafe_shutdowns": "unsafe_shutdowns",
    "warning_temperature_time": "warning_temp_min",
    "critical_temperature_time": "critical_temp_min",
}
WEAR_INTEGERS = (
    "host_written_bytes",
    "host_read_bytes",
    "nand_written_bytes",
    "power_on_hours",
    "power_cycles",
    "unsafe_shutdowns",
    "media_errors",
)
WEAR_FLOATS = ("percentage_used", "available_spare_percent", "temperature_C", "pe_cycles_mean", "pe_cycles_max")


def identity(document: dict) -> dict:
    """The tags that identify a drive: device, model, serial_no, wwn, capacity, enabled; "" where not known. Take them
    from the first full poll for all later ones: a light poll has fewer, and a tag that changes begins another
    series."""
    drive, smartctl = document.get("drive"), document.get("smartctl")
    node = _word(smartctl, "device", "name") or _word(drive, "node") or _word(drive, "name")
    if _word(smartctl, "device", "protocol") == "SCSI":  # Telegraf takes the line "Product:"
        model = _word(smartctl, "scsi_product") or _word(smartctl, "product") or _word(smartctl, "model_name")
    else:
        model = _word(smartctl, "model_name")
    naa, oui, wwn_id = (_integer(inside(smartctl, "wwn"), key) for key in ("naa", "oui", "id"))
    capacity = _integer(inside(smartctl, "user_capacity"), "bytes") or _integer(drive, "capacity_bytes")
    enabled = inside(smartctl, "smart_support", "enabled")
    return {
        "device": node.rpartition("/")[2],
        "model": model or _word(drive, "model"),
        "serial_no": _word(smartctl, "serial_number") or _word(drive, "serial"),
        "wwn": "" if None in (naa, oui, wwn_id) else f"{naa:x}{oui:06x}{wwn_id:09x}",
        "capacity": str(capacity) if capacity else "",
        "enabled": ("Enabled" if enabled else "Disabled") if isinstance(enabled, bool) else "",
    }


def device_point(document: dict, drive: dict) -> tuple[dict, dict]:
    """Tags and fields of smart_device; `drive` is identity()'s."""
    snapshot = counters.snapshot(document)
    fields = {name: _cut(snapshot[key]) for name, key in FROM_SNAPSHOT.items()} | {"health_ok": snapshot["health_ok"]}
    for row in _ata_table(document):
        attribute = _integer(row, "id")
        name = None if attribute is None else ATA_RAW.get(attribute)
        if name:
            printed = _word(row, "raw", "string")
            raw = raw_value(printed)
            if raw is not None:
                fields[name] = raw // 3600 if name == "power_on_hours" and "h+" in printed else raw
        name = ATA_NORMALISED.get(_word(row, "name"))
        if name:
            fields[name] = _integer(row, "value")
    return dict(drive), _known(fields)


def attribute_points(document: dict, drive: dict) -> list[tuple[dict, dict]]:
    """Tags and fields of each smart_attribute in the document; `drive` is identity()'s."""
    out = []
    exit_status = _integer(inside(document.get("smartctl"), "smartctl"), "exit_status")
    for row in _ata_table(document):
        fail = _word(row, "when_failed")
        tags = {
            "id": str(_integer(row, "id") or ""),
            "name": _word(row, "name"),
            "flags": _word(row, "flags", "string")[:6],
            "fail": FAIL.get(fail, fail),
        }
        fields = {
            "raw_value": raw_value(_word(row, "raw", "string")),
            "value": _integer(row, "value"),
            "worst": _integer(row, "worst"),
            "threshold": _integer(row, "thresh"),
        }
        if _known(fields):
            out.append((drive | tags, _known(fields | {"exit_status": exit_status})))
    for name, number, value in [*_nvme(document), *_scsi(document)]:
        if value is not None:
            out.append((drive | {"name": name, "id": number}, {"raw_value": value}))
    return out


def wear_fields(snapshot: dict, base: dict | None) -> dict:
    """Fields of ssd_wear from counters.snapshot; wa and wa_error count from the snapshot `base`, none without one."""
    fields = {name: _cut(snapshot[name]) for name in WEAR_INTEGERS} | {name: snapshot[name] for name in WEAR_FLOATS}
    if snapshot["health"] != health.UNKNOWN:
        fields |= {"health": snapshot["health"], "health_reasons": health.sentence(snapshot["health_reasons"]) or None}
    amplification = wa.between(base, snapshot) if base else None
    if amplification is not None and amplification.value is not None:
        fields |= {"wa": amplification.value, "wa_error": amplification.error}
    if snapshot["t_ns"] is not None:
        fields["poll_ms"] = (snapshot["t_end_ns"] - snapshot["t_start_ns"]) / 1e6
    return _known(fields)


def of_poll(document: dict, drive: dict, snapshot: dict, base: dict | None) -> list[Point]:
    """All points of one answered poll, without the tags `run`, `host` and ssd_wear's `drive`, which the caller
    knows."""
    points = [("ssd_wear", {}, wear_fields(snapshot, base)), ("smart_device", *device_point(document, drive))]
    points += [("smart_attribute", tags, fields) for tags, fields in attribute_points(document, drive)]
    return [point for point in points if point[2]]


def raw_value(printed: str) -> int | None:
    """The raw value as Telegraf reads it: the first word, an integer, or a duration such as 65h+33m+09.259s in seconds.

    None for anything else. Of "3/12345" Telegraf makes a quotient, a float in a field of integers, which a database
    refuses; of words that it cannot read it makes 0."""
    first = printed.split()[0] if printed.split() else ""
    if re.fullmatch(r"[0-9]{1,19}", first):
        return int(first)
    parts = re.fullmatch(r"(?:([0-9]{1,9})h)?(?:(?:^|\+)([0-9]{1,9})m)?(?:(?:^|\+)([0-9]{1,9})(?:\.[0-9]+)?s)?", first)
    if not first or not parts:
        return None
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return hours * 3600 + minutes * 60 + seconds


def _nvme(document: dict) -> list[tuple[str, str, int | None]]:
    try:
        page = bytes.fromhex(document["log_02h"])
        health = decode_02h(page)
    except (KeyError, TypeError, ValueError, DriveError):
        log = inside(document.get("smartctl"), "nvme_smart_health_information_log")
        rows = [(name, number, _integer(log, key)) for name, number, _, key in NVME]
        sensors = inside(log, "temperature_sensors")
        numbered = dict(enumerate(sensors[:8], 1)) if isinstance(sensors, list) else {}
        return rows + [(f"Temperature_Sensor_{i}", "", _integer(numbered, i)) for i in numbered]
    rows = [(name, number, health.get(key)) for name, number, key, _ in NVME]
    rows += [(name, "", int.from_bytes(page[at : at + 4], "little")) for name, at in THERMAL_02H.items()]
    kelvin = [int.from_bytes(page[at : at + 2], "little") for at in SENSORS_02H]
    return rows + [(f"Temperature_Sensor_{i}", "", k - ZERO_C_K if k else None) for i, k in enumerate(kelvin, 1)]


def _scsi(document: dict) -> list[tuple[str, str, int | None]]:
    smartctl = document.get("smartctl")
    if _word(smartctl, "device", "protocol") != "SCSI":
        return []
    return [(name, number, _integer(inside(smartctl, *path[:-1]), path[-1])) for name, number, path in SCSI]


def _ata_table(document: dict) -> list[dict]:
    return objects(inside(document.get("smartctl"), "ata_smart_attributes", "table"))


def _word(value, *path: str) -> str:
    return text(inside(value, *path)) or ""


def _integer(table, name) -> int | None:
    """table[name] if it is an integer; down to -300, for temperatures."""
    return whole(table, name, [], str(name), at_least=-300, at_most=U128)


def _cut(value: float | None) -> int | None:
    return None if value is None else int(value)


def _known(fields: dict) -> dict:
    return {name: value for name, value in fields.items() if value is not None}
