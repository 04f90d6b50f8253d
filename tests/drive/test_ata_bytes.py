"""Bytes of an ATA drive from several readings: which is taken, which are added, and what is said of those that are
missing."""

import pytest

from ssdrig.drive.smart import ata_counters as ata
from ssdrig.drive.smart import ata_readings
from ssdrig.drive.smart.ata_counters import Life, settle
from ssdrig.drive.smart.ata_readings import Reading

TLC, SLC, ALL = Reading(100, 10, "t"), Reading(50, 5, "s"), Reading(200, 1, "n")
NAND = ("nand_written_bytes", "nand_written_unit_bytes", "nand_written_source", "nand_written_tlc_bytes")


def bytes_of(missing=(), smartctl=None, hours=None, **readings) -> tuple[dict, list[str]]:
    out, unknown = {"sources": {}}, []
    life = Life(hours, None, None, None)
    ata._bytes(
        out, {role: list(readings) for role, readings in readings.items()}, life, missing, smartctl or {}, unknown
    )
    return out, unknown


@pytest.mark.parametrize(
    "readings, got, words",
    [
        ({"nand_written_tlc": [TLC], "nand_written_slc": [SLC]}, (150, 15, "t TLC + s SLC", 100), 0),
        ({"nand_written_tlc": [TLC], "nand_written_slc": [SLC], "nand_written": [ALL]}, (200, 1, "n", 100), 0),
        ({"nand_written_tlc": [TLC], "nand_written": [ALL]}, (200, 1, "n", 100), 0),
        ({"nand_written_tlc": [TLC]}, (None, None, None, 100), 1),
        ({"nand_written_slc": [SLC]}, (None, None, None, None), 0),
        ({"nand_written": [ALL]}, (200, 1, "n", None), 0),
        ({}, (None, None, None, None), 0),
    ],
)
def test_nand_bytes_of_a_drive_with_a_cache(readings, got, words):
    out, unknown = bytes_of(**readings)
    assert tuple(map(out.get, NAND)) == got and len(unknown) == words
    assert out["sources"].get("nand_written_tlc_bytes") == (None if got[3] is None else {"source": "t", "error": 10})
    assert out["sources"].get("nand_written_bytes") == (None if got[0] is None else {"source": got[2], "error": got[1]})


def test_of_equal_units_the_statistics_go_before_all_but_the_first_row_of_the_table():
    for rank, source in ((0, "attribute 241"), (1, ata_readings.STATISTICS_SOURCE)):
        readings = [Reading(10**12, 512, "attribute 241", rank), Reading(10**12, 512, ata_readings.STATISTICS_SOURCE)]
        out, _ = bytes_of(host_written=readings)
        assert out["host_written_source"] == source
        assert ("host_written_wrap_bytes" in out) == (source == ata_readings.STATISTICS_SOURCE)


def test_bytes_that_cannot_be_are_left_out():
    """SATA carries 54 TB in 25 h, and not a sector more."""
    good, bad = Reading(54 * 10**12, 512, "a"), Reading(54 * 10**12 + 512, 1, "b")
    for role in ("host_written", "host_read"):
        out, unknown = bytes_of(hours=24, **{role: [bad, good]})
        assert out[f"{role}_bytes"] == 54 * 10**12 and len(unknown) == 1 and " b gives 54.0 TB, more" in unknown[0]
    out, unknown = bytes_of(hours=1000, host_written=[Reading(9_999_999, 1, "a")], host_read=[Reading(5, 1, "b")])
    assert "host_written_bytes" not in out and "host_read_bytes" not in out and len(unknown) == 2
    out, _ = bytes_of(hours=1000, host_read=[Reading(5, 1, ata_readings.STATISTICS_SOURCE)])
    assert out["host_read_bytes"] == 5  # a standard's unit: the drive read next to nothing


@pytest.mark.parametrize(
    "role, readings, smartctl, words",
    [
        ("host_written", {}, {}, "host bytes written: W (smartctl's database does not have the drive); to find it: "),
        ("host_written", {}, {"in_smartctl_database": True}, "host bytes written: W; to find it: ./ssdrig units"),
        ("host_written", {}, {"model_family": "F"}, "host bytes written: W; to find it: ./ssdrig units"),
        ("nand_written_slc", {}, {"model_family": "F"}, "NAND bytes written: W; to find it: ./ssdrig units"),
        ("host_read", {}, {}, None),
        ("host_written", {"host_written": [ALL]}, {}, None),
        ("nand_written_slc", {"nand_written": [ALL]}, {}, None),
        ("nand_written", {"host_written": [ALL]}, {}, "NAND bytes written: W (smartctl's database does not"),
    ],
)
def test_a_unit_that_is_missing_is_said_with_the_way_to_find_it(role, readings, smartctl, words):
    _, unknown = bytes_of([(role, "W")], smartctl, **readings)
    assert len(unknown) == (words is not None) and all(text.startswith(words) for text in unknown)


def test_of_two_units_that_are_missing_the_first_is_said():
    assert len(bytes_of([("nand_written", "W"), ("nand_written_tlc", "V")])[1]) == 1
    assert len(bytes_of([("nand_written", "W"), ("host_written", "V")])[1]) == 2


class Named:
    def name_of(self, key, name):
        return name


class TwoHalves(Named):
    """Rows of a drive that counts in two attributes."""

    def of(self, key, name):
        return {241: [(0, "host_written", 512)], 243: [(0, "host_written_high", "raw")]}[key]


@pytest.mark.parametrize(
    "low, high, counted, words", [(1000, 0, True, 0), (1000, 1, False, 1), (None, 0, False, 0), (None, 1, False, 0)]
)
def test_a_second_half_that_counts_spoils_the_first(low, high, counted, words):
    values = {243: high} | ({} if low is None else {241: low})
    table = [{"id": key, "name": "x", "value": 100, "raw": {"value": raw}} for key, raw in values.items()]
    unknown: list[str] = []
    _, counters = ata_readings.of_attributes({}, {"ata_smart_attributes": {"table": table}}, TwoHalves(), unknown, {})
    assert (("host_written" in counters), len(unknown)) == (counted, words)


def test_an_attribute_without_id_or_name_is_none():
    whole = {"id": 241, "name": "x", "value": 100, "raw": {"value": 7}}
    for missing, counted in (("id", False), ("name", False), ("value", True)):
        row = {key: value for key, value in whole.items() if key != missing}
        _, counters = ata_readings.of_attributes({}, {"ata_smart_attributes": {"table": [row]}}, AnyRow(), [], {})
        assert ("host_written" in counters) == counted


class AnyRow(Named):
    def of(self, key, name):
        return [(0, "host_written", 512)]


def test_a_calibrated_unit_replaces_the_one_that_is_not_known_and_nothing_else():
    class Unknown(Named):
        def of(self, key, name):
            return [(3, "host_written", "?"), (5, "pe_mean", "raw")]

    row = {"id": 241, "name": "x", "value": 100, "raw": {"value": 7}}
    smartctl = {"ata_smart_attributes": {"table": [row]}}

    def settled(document):
        by_role, counters = ata_readings.of_attributes(document, smartctl, Unknown(), [], {})
        missing, units = settle(by_role, counters, Life(None, None, None, None))
        return by_role, missing, units

    by_role, missing, units = settled({"units": {"ata:241": 1000}})
    assert [(unit["unit_bytes"], unit["evidence"]) for unit in units] == [(1000, "calibration")]
    assert by_role["host_written"] == [Reading(7000, 1000, "attribute 241, calibrated (1000 B)", 0)] and missing == []
    assert by_role["pe_mean"] == [Reading(7, 1, "attribute 241, calibrated", 5)]
    by_role, missing, units = settled({})
    assert list(by_role) == ["pe_mean"] and missing == [("host_written", "attribute 241 x counts 7 of an unknown unit")]


def test_the_threshold_of_the_spare_is_exact():
    row = {"id": 232, "name": "Available_Reservd_Space", "value": 99, "thresh": 10, "raw": {"value": 0}}
    out = ata.reduce({}, {"model_family": "Intel 320 Series SSDs", "ata_smart_attributes": {"table": [row]}}, [])
    assert out["sources"]["available_spare_threshold_percent"] == {"source": "attribute 232", "error": 0}
