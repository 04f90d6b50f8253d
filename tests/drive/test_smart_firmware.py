"""Firmware that breaks a standard or its own names, as public smartctl outputs of real drives show it: the numbers are
those of one drive each, serials are left out."""

import pytest
from ata_documents import GIB, MIB, drive, snap
from smart_truths import is_unknown, nvme

from ssdrig.drive.smart import ata_counters, counters
from ssdrig.drive.smart.ata_readings import STATISTICS_SOURCE, Counter, Reading

TURN = 2**32  # sectors after which a 32-bit statistic begins again at 0
LBAS = ("Total_LBAs_Written", "Total_LBAs_Read")
UNLISTED = [  # model, firmware, capacity, raw of 241 and 242, sectors in the statistics, unit
    ("ADATA_IM2S3338-128GD2", "R0427ANR", 128_035_676_160, (84_155, 88_881), (1_220_270_441, 1_529_952_387), 32 * MIB),
    ("HyperX Fury 3D 240GB", "R0105A", 240_057_409_536, (14_198, 13_001), (4_005_805_033, 1_495_739_467), GIB),
    ("LITEON CV1-8B256", "G881201", 256_060_514_304, (609_441, 503_272), (1_285_634_669, 2_917_714_442), 32 * MIB),
]


@pytest.mark.parametrize("model, firmware, capacity, raw, sectors, unit", UNLISTED)
def test_unlisted_drive_whose_statistics_wrapped(model, firmware, capacity, raw, sectors, unit):
    rows = [(key, name, value) for key, name, value in zip((241, 242), LBAS, raw)]
    statistics = [(1, 0x18, sectors[0]), (1, 0x28, sectors[1])]
    got = snap(
        None,
        *rows,
        statistics=statistics,
        model_name=model,
        firmware_version=firmware,
        user_capacity={"bytes": capacity},
    )
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (raw[0] * unit, raw[1] * unit)
    assert {(row["unit_bytes"], row["evidence"]) for row in got["counter_units"]} == {(unit, STATISTICS_SOURCE)}
    assert is_unknown(got, "they have wrapped")


@pytest.mark.parametrize("unit", [16 * MIB, 32 * MIB, 128 * MIB, 10**9, GIB])
@pytest.mark.parametrize("turns", [1, 3, 40])
def test_unit_through_turns_of_the_statistics(unit, turns):
    raw = (turns * TURN * 512 + 300 * GIB) // unit
    for within in (0, unit // 2 // 512 * 512, (unit - 512) // 512 * 512):
        statistics = Reading((raw * unit + within) // 512 % TURN * 512, 512, STATISTICS_SOURCE)
        assert ata_counters.unit_of_statistics(Counter(raw, (), "attribute 241", "n", 0), statistics) == unit


def test_counter_that_fits_no_turn_has_no_unit():
    raw = (3 * TURN * 512 + 300 * GIB) // (32 * MIB)
    statistics = Reading(raw * 32 * MIB % (TURN * 512) + 5 * GIB, 512, STATISTICS_SOURCE)
    assert ata_counters.unit_of_statistics(Counter(raw, (), "attribute 241", "n", 0), statistics) is None


SSD_PLUS = [
    (166, "Unknown_Attribute", 57),
    (168, "Unknown_Attribute", 105),
    (173, "Unknown_SandForce_Attr", 89),
    (233, "SandForce_Internal", 9146),
    (241, "Lifetime_Writes_GiB", 6287, 253),
    (242, "Lifetime_Reads_GiB", 14_077, 253),
]
REPEATED = [(1, 0x18, 6287), (1, 0x28, 14_077), (7, 8, 2)]


@pytest.mark.parametrize("hours", [1598, 40])
def test_statistics_that_repeat_a_count_of_gib_are_no_sectors(hours):
    more = {"power_on_time": {"hours": hours}, "user_capacity": {"bytes": 120_034_123_776}}
    got = snap("SandForce Driven SSDs", *SSD_PLUS, statistics=REPEATED, model_name="SanDisk SDSSDA120G", **more)
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (6287 * GIB, 14_077 * GIB)
    assert got["nand_written_bytes"] == 9146 * GIB and got["percentage_used"] == 2
    assert tuple(got[f"pe_cycles_{end}"] for end in ("min", "mean", "max")) == (57, 89, 105)


def test_repeated_count_that_is_of_sectors_stays_one():
    raw = 7_049_940_588
    more = {"power_on_time": {"hours": 9000}, "user_capacity": {"bytes": 128_035_676_160}}
    attributes = ((241, "Lifetime_Writes_GiB", raw), (242, "Lifetime_Reads_GiB", 8_634_640_999))
    got = snap(
        "Phison Driven SSDs", *attributes, statistics=[(1, 0x18, raw), (1, 0x28, 8_634_640_999)], model_name="A", **more
    )
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (raw * 512, 8_634_640_999 * 512)


def test_repeated_count_that_nothing_decides_is_null():
    attributes = ((241, "Lifetime_Writes_GiB", 3000), (242, "Lifetime_Reads_GiB", 2000))
    got = snap("Phison Driven SSDs", *attributes, statistics=[(1, 0x18, 3000), (1, 0x28, 2000)], model_name="A")
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (None, None)
    assert is_unknown(got, "host bytes written", "512 B or 1 GiB")


def test_life_left_and_used_that_make_100_are_not_told_apart():
    """SA400 of firmware SBFKB1H5: value 14, raw 86 after 131 cycles; its maker's tool reports 86 % left."""
    attributes = ((231, "SSD_Life_Left", 86, 14), (244, "Average_Erase_Count", 131))
    got = snap("Phison Driven SSDs", *attributes, endurance_used={"current_percent": 86})
    assert got["percentage_used"] is None and got["pe_cycles_mean"] == 131
    assert sum(words.startswith("percentage used") for words in got["unknown"]) == 1
    got = snap("Phison Driven SSDs", *attributes, statistics=[(7, 8, 14)])
    assert got["percentage_used"] == 14


def test_media_errors_of_two_sources_that_differ_are_null():
    """RBU-SC152: attribute 187 is 0, the statistics have 447 797."""
    got = snap("Phison Driven SSDs", (187, "Reported_Uncorrect", 0), statistics=[(4, 8, 447_797)])
    assert got["media_errors"] is None and is_unknown(got, "media errors", "447797")
    assert snap("Phison Driven SSDs", (187, "Reported_Uncorrect", 8), statistics=[(4, 8, 8)])["media_errors"] == 8


def test_life_of_a_dell_intel_is_that_of_245():
    rows = ((233, "Media_Wearout_Indicator", 1_234_567, 100), (245, "Percent_Life_Remaining", 99, 99))
    assert snap("Dell Certified Intel S3x00 Series SSDs", *rows)["percentage_used"] == 1


def test_cycles_of_an_sc311():
    rows = ((177, "Wear_Leveling_Count", 25, 98), (241, "Total_Writes_GB", 7_049_940_588))
    got = snap("SK hynix SATA SSDs", *rows, model_name="SK hynix SC311 SATA 128GB")
    assert (got["pe_cycles_mean"], got["host_written_bytes"]) == (25, 7_049_940_588 * 512)


def test_used_and_threshold_of_255_are_bytes_of_ones():
    got = nvme(percentage_used=255, available_spare=64, available_spare_threshold=255)
    assert (got["percentage_used"], got["available_spare_threshold_percent"]) == (None, None)
    assert got["available_spare_percent"] == 64
    got = nvme(percentage_used=255, available_spare_threshold=10)
    assert got["percentage_used"] == 255


def test_health_of_a_drive_without_figures_is_not_their_absence():
    got = counters.snapshot(drive("Phison Driven SSDs", (187, "Reported_Uncorrect", 0), statistics=[(4, 8, 447_797)]))
    assert got["health"] == "unknown"
