"""SMART points: wear fields, raw values, and whatever a document holds."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from smart_documents import APPLE, ata, attributes, device, nvme, row

from ssdrig.drive.smart import counters
from ssdrig.publish.influx import line_protocol, smart_points

SCHEMA = line_protocol.read_schema()


def test_every_field_of_the_schema_is_told_by_some_drive():
    every = ata(
        *(row(number, f"Attribute_{number}", number) for number in smart_points.ATA_RAW),
        *(row(200 + i, name, 0) for i, name in enumerate(smart_points.ATA_NORMALISED)),
    )
    known = set(device(every)[1]) | set(device(nvme())[1])
    assert known == set(SCHEMA["smart_device"].fields)
    assert {key for _, fields in attributes(every).values() for key in fields} == set(SCHEMA["smart_attribute"].fields)
    tags = {key for tags, _ in attributes(every).values() for key in tags} | {"drive", "host"}
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
