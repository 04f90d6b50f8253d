"""SMART documents as Telegraf's points. Expected values are worked out by hand from smartctl's output, and from what
Telegraf's own tests (plugins/inputs/smart/smart_test.go) expect of the same lines."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.drive.smart import counters
from ssdrig.influx import line_protocol, smart_points

SCHEMA = line_protocol.read_schema()


def row(number, name, raw, value=100, worst=100, thresh=0, flags="-O--CK ", failed=""):
    """A line of smartctl 7.3's ata_smart_attributes.table."""
    whole = raw if isinstance(raw, int) else 0
    out = {
        "id": number,
        "name": name,
        "value": value,
        "worst": worst,
        "thresh": thresh,
        "when_failed": failed,
        "flags": {"value": 50, "string": flags},
        "raw": {"value": whole, "string": str(raw)},
    }
    return {key: item for key, item in out.items() if item is not None}


def ata(*rows, exit_status=0, **more):
    return {
        "smartctl": {
            "json_format_version": [1, 0],
            "smartctl": {"version": [7, 3], "exit_status": exit_status},
            "device": {"name": "/dev/sdb", "info_name": "/dev/sdb [SAT]", "type": "sat", "protocol": "ATA"},
            "model_name": "APPLE SSD SM256E",
            "serial_number": "S0X5NZBC422720",
            "wwn": {"naa": 5, "oui": 9528, "id": 1124617520},
            "user_capacity": {"blocks": 490234752, "bytes": 251000193024},
            "smart_support": {"available": True, "enabled": True},
            "smart_status": {"passed": True},
            "ata_smart_attributes": {"revision": 1, "table": list(rows)},
            **more,
        }
    }


NVME_LOG = {
    "critical_warning": 9,
    "temperature": 38,
    "available_spare": 100,
    "available_spare_threshold": 10,
    "percentage_used": 16,
    "data_units_read": 7193048,
    "data_units_written": 113662783,
    "host_reads": 60131549,
    "host_writes": 2219922465,
    "controller_busy_time": 35754,
    "power_cycles": 472,
    "power_on_hours": 6038,
    "unsafe_shutdowns": 355,
    "media_errors": 0,
    "num_err_log_entries": 119699,
    "warning_temp_time": 11,
    "critical_comp_time": 7,
    "temperature_sensors": [29, 30],
}


def nvme(**log):
    return {
        "drive": {
            "model": "TS128GMTE850",
            "serial": "D704940282",
            "node": "/dev/nvme0n1",
            "capacity_bytes": 128035676160,
        },
        "smartctl": {
            "smartctl": {"version": [7, 3], "exit_status": 8},
            "device": {"name": "/dev/nvme0", "type": "nvme", "protocol": "NVMe"},
            "model_name": "TS128GMTE850",
            "serial_number": "D704940282",
            "smart_status": {"passed": False, "nvme": {"value": 9}},
            "nvme_smart_health_information_log": NVME_LOG | log,
        },
    }


def page_02h(sensors=(38,), thermal=(0, 0, 0, 0)):
    page = bytearray(512)
    page[0], page[1:3], page[3], page[4], page[5] = 9, (38 + 273).to_bytes(2, "little"), 100, 10, 16
    order = (
        "data_units_read",
        "data_units_written",
        "host_reads",
        "host_writes",
        "controller_busy_time",
        "power_cycles",
        "power_on_hours",
        "unsafe_shutdowns",
        "media_errors",
        "num_err_log_entries",
    )
    for i, name in enumerate(order):
        page[32 + 16 * i : 48 + 16 * i] = NVME_LOG[name].to_bytes(16, "little")
    page[192:196], page[196:200] = (11).to_bytes(4, "little"), (7).to_bytes(4, "little")
    for i, celsius in enumerate(sensors):
        page[200 + 2 * i : 202 + 2 * i] = (celsius + 273 if celsius is not None else 0).to_bytes(2, "little")
    for i, value in enumerate(thermal):
        page[216 + 4 * i : 220 + 4 * i] = value.to_bytes(4, "little")
    return bytes(page).hex()


def attributes(document):
    points = smart_points.attribute_points(document, smart_points.identity(document))
    return {tags["name"]: (tags, fields) for tags, fields in points}


def device(document):
    return smart_points.device_point(document, smart_points.identity(document))


APPLE = ata(  # the drive of Telegraf's TestGatherAttributes
    row(1, "Raw_Read_Error_Rate", 0, 200, 200, 0, "-O-RC- "),
    row(5, "Reallocated_Sector_Ct", 0, flags="PO--CK "),
    row(9, "Power_On_Hours", 2988, 99, 99),
    row(12, "Power_Cycle_Count", 14879, 85, 85),
    row(169, "Unknown_Attribute", 2044932921600, 253, 253, 10, "PO--C- "),
    row(173, "Wear_Leveling_Count", 957808640337, 185, 185, 100),
    row(190, "Airflow_Temperature_Cel", "45 (Min/Max 43/57 #2689)", 55, 40, 45, "-O---K ", "past"),
    row(194, "Temperature_Celsius", "34 (Min/Max 14/79)", 66, 21, 0, "-O---K "),
    row(197, "Current_Pending_Sector", 0, flags="-O---K "),
    row(199, "UDMA_CRC_Error_Count", 0, 200, 200, 0, "-O-RC- "),
    row(240, "Head_Flying_Hours", "6585h+55m+23.234s", 100, 253, 0, "------ "),
)


def test_ata_device_as_telegraf_has_it():
    tags, fields = device(APPLE)
    assert tags == {
        "device": "sdb",
        "model": "APPLE SSD SM256E",
        "serial_no": "S0X5NZBC422720",
        "wwn": "5002538043084d30",
        "capacity": "251000193024",
        "enabled": "Enabled",
    }
    expected = {
        "exit_status": 0,
        "health_ok": True,
        "read_error_rate": 0,
        "temp_c": 34,
        "udma_crc_errors": 0,
        "power_on_hours": 2988,
        "power_cycle_count": 14879,
        "reallocated_sectors_count": 0,
        "pending_sector_count": 0,
        "wear_leveling_count": 185,
    }
    assert {key: fields[key] for key in expected} == expected
    assert not {"media_wearout_indicator", "percent_lifetime_remain", "critical_warning", "seek_error_rate"} & set(
        fields
    ), "unknown is absent"


def test_ata_attributes_as_telegraf_has_them():
    got = attributes(APPLE)
    assert len(got) == 11
    for name, number, flags, fail, fields in [
        ("Raw_Read_Error_Rate", "1", "-O-RC-", "-", (0, 200, 200, 0)),
        ("Power_Cycle_Count", "12", "-O--CK", "-", (14879, 85, 85, 0)),
        ("Unknown_Attribute", "169", "PO--C-", "-", (2044932921600, 253, 253, 10)),
        ("Airflow_Temperature_Cel", "190", "-O---K", "Past", (45, 55, 40, 45)),
        ("Temperature_Celsius", "194", "-O---K", "-", (34, 66, 21, 0)),
        ("Head_Flying_Hours", "240", "------", "-", (6585 * 3600 + 55 * 60 + 23, 100, 253, 0)),
    ]:
        tags, found = got[name]
        assert (tags["id"], tags["flags"], tags["fail"]) == (number, flags, fail) and tags[
            "serial_no"
        ] == "S0X5NZBC422720"
        assert found == dict(zip(("raw_value", "value", "worst", "threshold"), fields, strict=True)) | {
            "exit_status": 0
        }


def test_ata_oddities():
    """smartctl leaves the threshold out where the drive has none; more flags than six show as "+"."""
    document = ata(
        row(5, "Reallocated_Sector_Ct", 3, thresh=None, flags="PO-RC-+", failed="now"),
        row(9, "Power_On_Hours", "182h+39m+24.879s"),
        row(1, "Raw_Read_Error_Rate", "0/12345"),
        row(7, "Seek_Error_Rate", "n/a"),
        row(177, "Wear_Leveling_Count", 812, 0, 0),
        row(233, "Media_Wearout_Indicator", 3129, 94),
        row(202, "Percent_Lifetime_Remain", 6, 94),
        exit_status=40,
        smart_status={"passed": False},
    )
    got = attributes(document)
    assert got["Reallocated_Sector_Ct"][1] == {"raw_value": 3, "value": 100, "worst": 100, "exit_status": 40}
    assert (got["Reallocated_Sector_Ct"][0]["flags"], got["Reallocated_Sector_Ct"][0]["fail"]) == ("PO-RC-", "NOW")
    assert got["Power_On_Hours"][1]["raw_value"] == 182 * 3600 + 39 * 60 + 24
    assert "raw_value" not in got["Raw_Read_Error_Rate"][1] and "raw_value" not in got["Seek_Error_Rate"][1]
    fields = device(document)[1]
    assert fields["power_on_hours"] == 182 and fields["exit_status"] == 40 and fields["health_ok"] is False
    assert "read_error_rate" not in fields and "seek_error_rate" not in fields, "not a silent 0"
    assert (fields["wear_leveling_count"], fields["media_wearout_indicator"], fields["percent_lifetime_remain"]) == (
        0,
        94,
        94,
    )


TELEGRAF_NVME = {  # as Telegraf's TestGatherNvme and its table of names
    "Critical_Warning": 9,
    "Temperature_Celsius": 38,
    "Available_Spare": 100,
    "Available_Spare_Threshold": 10,
    "Percentage_Used": 16,
    "Data_Units_Read": 7193048,
    "Data_Units_Written": 113662783,
    "Host_Read_Commands": 60131549,
    "Host_Write_Commands": 2219922465,
    "Controller_Busy_Time": 35754,
    "Power_Cycle_Count": 472,
    "Power_On_Hours": 6038,
    "Unsafe_Shutdowns": 355,
    "Media_and_Data_Integrity_Errors": 0,
    "Error_Information_Log_Entries": 119699,
    "Warning_Temperature_Time": 11,
    "Critical_Temperature_Time": 7,
}
IDS = {"Temperature_Celsius": "194", "Power_Cycle_Count": "12", "Power_On_Hours": "9"}


@pytest.mark.parametrize("source", ["smartctl", "page"])
def test_nvme_as_telegraf_has_it(source):
    document = nvme()
    extra = {"Temperature_Sensor_1": 29, "Temperature_Sensor_2": 30}
    if source == "page":
        document["smartctl"].pop("nvme_smart_health_information_log")
        document["log_02h"] = page_02h((29, None, 30), (1, 2, 3, 4))
        extra = {
            "Temperature_Sensor_1": 29,
            "Temperature_Sensor_3": 30,
            "Thermal_Management_T1_Trans_Count": 1,
            "Thermal_Management_T2_Trans_Count": 2,
            "Thermal_Management_T1_Total_Time": 3,
            "Thermal_Management_T2_Total_Time": 4,
        }
    tags, fields = device(document)
    assert tags == {
        "device": "nvme0",
        "model": "TS128GMTE850",
        "serial_no": "D704940282",
        "wwn": "",
        "capacity": "128035676160",
        "enabled": "",
    }
    assert fields == {
        "exit_status": 8,
        "health_ok": False,
        "temp_c": 38,
        "power_on_hours": 6038,
        "power_cycle_count": 472,
        "percentage_used": 16,
        "available_spare": 100,
        "available_spare_threshold": 10,
        "critical_warning": 9,
        "media_errors": 0,
        "error_log_entries": 119699,
        "unsafe_shutdowns": 355,
        "warning_temperature_time": 11,
        "critical_temperature_time": 7,
    }
    got = attributes(document)
    assert {name: found["raw_value"] for name, (_, found) in got.items()} == TELEGRAF_NVME | extra
    assert all(set(found) == {"raw_value"} for _, found in got.values())
    assert {name: tags["id"] for name, (tags, _) in got.items() if tags["id"]} == IDS


def test_nvme_integers_past_2_53_are_exact():
    got = attributes(nvme(data_units_written=9007199254740992, data_units_written_s="9007199254740993"))
    assert got["Data_Units_Written"][1]["raw_value"] == 9007199254740993


def test_a_page_that_is_damaged_gives_way_to_smartctl():
    assert attributes(nvme() | {"log_02h": "00ff"})["Percentage_Used"][1] == {"raw_value": 16}
    assert attributes(nvme() | {"log_02h": "zz"})["Percentage_Used"][1] == {"raw_value": 16}


@pytest.mark.parametrize("product", ["product", "scsi_product"])
def test_sas_as_telegraf_has_it(product):
    """Keys as smartctl 7.3 (vendor, product) and 7.4 (scsi_…) print them; the drive of Telegraf's TestGatherHtSAS, with
    wear."""
    document = {
        "smartctl": {
            "smartctl": {"version": [7, 3], "exit_status": 0},
            "device": {"name": "/dev/sdg", "type": "scsi", "protocol": "SCSI"},
            product: "HUC103030CSS600",
            "model_name": "HITACHI HUC103030CSS600",
            "serial_number": "PDWAR9GE",
            "user_capacity": {"bytes": 300000000000},
            "smart_support": {"available": True, "enabled": True},
            "smart_status": {"passed": True},
            "temperature": {"current": 36, "drive_trip": 85},
            "power_on_time": {"hours": 43549, "minutes": 33},
            "scsi_percentage_used_endurance_indicator": 3,
            "scsi_start_stop_cycle_counter": {
                "accumulated_start_stop_cycles": 47,
                "accumulated_load_unload_cycles": 39,
            },
        }
    }
    got = attributes(document)
    assert {name: (tags["id"], found["raw_value"]) for name, (tags, found) in got.items()} == {
        "Temperature_Celsius": ("194", 36),
        "Start_Stop_Count": ("4", 47),
        "Load_Cycle_Count": ("193", 39),
        "Percentage_Used": ("", 3),
    }
    tags, fields = device(document)
    assert tags["model"] == "HUC103030CSS600" and tags["device"] == "sdg" and tags["wwn"] == ""
    expected = {"exit_status": 0, "health_ok": True, "temp_c": 36, "percentage_used": 3, "power_on_hours": 43549}
    assert {key: fields.get(key) for key in expected} == expected


def test_a_drive_without_smartctl_is_named_by_the_inventory():
    document = nvme() | {"smartctl": None, "log_02h": page_02h()}
    tags, fields = device(document)
    assert (tags["device"], tags["model"], tags["serial_no"]) == ("nvme0n1", "TS128GMTE850", "D704940282")
    assert fields["percentage_used"] == 16 and fields["health_ok"] is False and "exit_status" not in fields
    assert attributes(document)["Percentage_Used"][1] == {"raw_value": 16}


def test_every_field_of_the_schema_is_told_by_some_drive():
    every = ata(
        *(row(number, f"Attribute_{number}", number) for number in smart_points.ATA_RAW),
        *(row(200 + i, name, 0) for i, name in enumerate(smart_points.ATA_NORMALISED)),
    )
    told = set(device(every)[1]) | set(device(nvme())[1])
    assert told == set(SCHEMA["smart_device"].fields)
    assert {key for _, fields in attributes(every).values() for key in fields} == set(SCHEMA["smart_attribute"].fields)
    tags = {key for tags, _ in attributes(every).values() for key in tags} | {"run", "host"}
    assert tags == set(SCHEMA["smart_attribute"].tags)


def test_wear_fields():
    before, after = (
        counters.snapshot(nvme(data_units_written=units) | {"t_start_ns": t, "t_end_ns": t + 31_200_000})
        for units, t in ((1000, 0), (3000, 10**9))
    )
    fields = smart_points.wear_fields(after, before)
    assert fields["host_written_bytes"] == 3000 * 512_000 and fields["poll_ms"] == pytest.approx(31.2)
    assert (
        fields["percentage_used"] == 16 and fields["available_spare_percent"] == 100 and fields["temperature_C"] == 38
    )
    assert not {"wa", "wa_error", "nand_written_bytes", "pe_cycles_mean"} & set(fields), "no NAND counter, no figure"
    before |= {"nand_written_bytes": 10**9, "nand_written_unit_bytes": 1, "nand_written_source": "log C0h"}
    after |= {
        "nand_written_bytes": 10**9 + 2048 * 10**6,
        "nand_written_unit_bytes": 1,
        "nand_written_source": "log C0h",
    }
    fields = smart_points.wear_fields(after, before)
    assert fields["wa"] == pytest.approx(2.0) and 0 < fields["wa_error"] < 0.01
    assert "wa" not in smart_points.wear_fields(after, None)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
PATHS = [
    ("smartctl",),
    ("drive",),
    ("log_02h",),
    ("smartctl", "smartctl"),
    ("smartctl", "device"),
    ("smartctl", "device", "name"),
    ("smartctl", "model_name"),
    ("smartctl", "wwn"),
    ("smartctl", "wwn", "oui"),
    ("smartctl", "user_capacity"),
    ("smartctl", "smart_support"),
    ("smartctl", "smart_support", "enabled"),
    ("smartctl", "smart_status", "passed"),
    ("smartctl", "temperature"),
    ("smartctl", "nvme_smart_health_information_log"),
    ("smartctl", "nvme_smart_health_information_log", "percentage_used"),
    ("smartctl", "nvme_smart_health_information_log", "temperature_sensors"),
    ("smartctl", "ata_smart_attributes"),
    ("smartctl", "ata_smart_attributes", "table"),
    ("smartctl", "scsi_start_stop_cycle_counter"),
]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([json.dumps(APPLE), json.dumps(nvme())]),
    st.lists(st.tuples(st.sampled_from(PATHS), JUNK), max_size=3),
    JUNK,
)
def test_whatever_a_document_holds_its_points_can_be_written(text, changes, in_row):
    document = json.loads(text)
    table = document["smartctl"].get("ata_smart_attributes", {}).get("table")
    if table:
        for key in ("id", "name", "value", "when_failed", "flags", "raw"):
            table.append({**table[0], key: in_row})
    for path, junk in changes:
        at = document
        for key in path[:-1]:
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, dict):
            at[path[-1]] = junk
    snapshot = counters.snapshot(document)
    for measurement, tags, fields in smart_points.of_poll(
        document, smart_points.identity(document), snapshot, snapshot
    ):
        # PointError: a value of another type than the schema says
        line = line_protocol.encode(SCHEMA[measurement], tags, fields, 1).line
        assert line.startswith(measurement.encode()) and line.endswith(b" 1") and b"\n" not in line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("34 (Min/Max 14/79)", 34),
        ("65h+33m+09.259s", 65 * 3600 + 33 * 60 + 9),
        ("12h", 43200),
        ("33m+09s", 33 * 60 + 9),
        ("", None),
        ("   ", None),
        ("3/12345", None),
        ("0x1f", None),
        ("n/a", None),
        ("-1", None),
        ("+", None),
        ("h", None),
        ("12h+", None),
    ],
)
def test_raw_value(text, value):
    assert smart_points.raw_value(text) == value


SAMPLES = os.environ.get("SSDRIG_SAMPLES")


def sample(name):
    if not SAMPLES:
        pytest.skip("SSDRIG_SAMPLES names no folder with smartctl's JSON of real drives")
    return {"smartctl": json.loads((Path(SAMPLES) / name).read_bytes())}


def test_real_drives():
    """Figures read off the files by eye."""
    tags, fields = device(sample("SAMSUNG_MZ7WD240HAFV-00003_21.json"))
    assert (
        tags["model"] == "SAMSUNG MZ7WD240HAFV-00003"
        and tags["device"] == "sda"
        and tags["wwn"] == "5002538" + f"{1234567890:09x}"
    )
    assert fields["temp_c"] == 27 and fields["health_ok"] is True and fields["reallocated_sectors_count"] == 0
    got = attributes(sample("SAMSUNG_MZ7WD240HAFV-00003_21.json"))
    assert (
        got["Total_LBAs_Written"][1]["raw_value"] == 216456537880 and got["Total_LBAs_Written"][0]["flags"] == "-O--CK"
    )
    tags, fields = device(sample("SAMSUNG_MZVL21T0HCLR-00B00_23.json"))
    assert (
        tags["device"] == "nvme0"
        and fields["percentage_used"] == 16
        and fields["unsafe_shutdowns"] == 1
        and fields["temp_c"] == 29
    )
    assert attributes(sample("SAMSUNG_MZVL21T0HCLR-00B00_23.json"))["Host_Write_Commands"][1] == {
        "raw_value": 2219922465
    }
    tags, fields = device(sample("scrutiny-smart-scsi.json"))
    assert tags["model"] == "ST4000NM0043" and fields["temp_c"] == 34 and fields["health_ok"] is True
    got = attributes(sample("scrutiny-smart-fail.json"))
    assert got == {}
