"""SMART points as Telegraf names them: what each kind of drive says."""

import pytest
from smart_documents import APPLE, NVME_LOG, ata, attributes, device, nvme, row


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
        tags, values = got[name]
        assert (tags["id"], tags["flags"], tags["fail"]) == (number, flags, fail) and tags[
            "serial_no"
        ] == "S0X5NZBC422720"
        assert values == dict(zip(("raw_value", "value", "worst", "threshold"), fields, strict=True)) | {
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
    assert {name: fields["raw_value"] for name, (_, fields) in got.items()} == TELEGRAF_NVME | extra
    assert all(set(fields) == {"raw_value"} for _, fields in got.values())
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
    assert {name: (tags["id"], fields["raw_value"]) for name, (tags, fields) in got.items()} == {
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
