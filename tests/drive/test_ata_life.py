"""ATA drives: percentage used, cycles, and other counts that are not bytes."""

import pytest
from ata_documents import FAMILIES, GIB, snap
from no_tables import no_table_of_the_user  # noqa: F401  autouse

from ssdrig.drive.smart import counters


@pytest.mark.parametrize(
    "family, attribute, used",
    [
        (
            "Intel 320 Series SSDs",
            (233, "Media_Wearout_Indicator", 0, 95),
            5,
        ),  # normalised counts down; 95 would be the inverted figure
        ("Samsung based SSDs", (177, "Wear_Leveling_Count", 1661, 91), 9),
        (
            "Crucial/Micron Client SSDs",
            (202, "Percent_Lifetime_Remain", 23, 77),
            23,
        ),  # raw is "used", in spite of the name
        ("Crucial/Micron Client SSDs", (202, "Percent_Lifetime_Remain", 131, 0), 131),  # past the rating
        ("Crucial/Micron Client SSDs", (202, "Percent_Lifetime_Remain", 77, 77), 23),  # a firmware with "remain" in raw
        ("Phison Driven SSDs", (231, "SSD_Life_Left", 88, 88), 12),
        (
            "WD Blue / Red / Green SSDs",
            (230, "Media_Wearout_Indicator", 3461733745159, 7),
            None,
        ),  # packed, not published
        ("Toshiba HK4R Series SSD", (233, "Media_Wearout_Indicator", 0, 95), None),  # a family of which it is not known
        (None, (233, "Media_Wearout_Indicator", 0, 95), None),
        ("Intel 320 Series SSDs", (233, "Media_Wearout_Indicator", 0, 253), None),  # no percentage
    ],
)
def test_percentage_used(family, attribute, used):
    got = snap(family, attribute)
    assert got["percentage_used"] == used
    if used is None:
        assert any("ercentage" in words for words in got["unknown"])


def test_pages_of_unknown_size():
    """Micron F7 = 800, F8 = 1200: WA 2.5 as a ratio; how many bytes that is, is not known."""
    got = snap(
        "Crucial/Micron Client SSDs",
        (246, "Total_LBAs_Written", 1000),
        (247, "Host_Program_Page_Count", 800),
        (248, "FTL_Program_Page_Count", 1200),
    )
    assert (got["host_program_pages"], got["nand_program_pages"]) == (800, 2000) and got["nand_written_bytes"] is None
    assert got["nand_program_pages"] / got["host_program_pages"] == 2.5 and any(
        "pages without reporting their size" in w for w in got["unknown"]
    )
    half = snap("Crucial/Micron Client SSDs", (247, "Host_Program_Page_Count", 800))
    assert half["host_program_pages"] is None and half["nand_program_pages"] is None


def test_slc_cache():
    """TLC + SLC counts data that passes through the cache twice: both figures are given."""
    got = snap(*FAMILIES[8][:1], *FAMILIES[8][1])
    assert (got["nand_written_bytes"], got["nand_written_tlc_bytes"]) == (15 * GIB, 12 * GIB)
    got = snap("WD Blue / Red / Green SSDs", (233, "NAND_GB_Written_TLC", 12))
    assert (got["nand_written_bytes"], got["nand_written_tlc_bytes"]) == (None, 12 * GIB)
    assert any("TLC alone" in words for words in got["unknown"])


@pytest.mark.parametrize(
    "family, attributes, mean, least, most",
    [
        ("Samsung based SSDs", [(177, "Wear_Leveling_Count", 112, 93)], 112, None, None),
        (
            "Samsung based SSDs",
            [(177, "Wear_Leveling_Count", 95, 95)],
            None,
            None,
            None,
        ),  # PM851: raw repeats the normalised value
        ("Phison Driven SSDs", [(173, "MaxAvgErase_Ct", 37 << 16 | 52)], 37, None, 52),
        ("Seagate IronWolf Pro 125 SSDs", [(173, "Max/Avg/Min_Erase_Ct", 90 << 32 | 60 << 16 | 30)], 60, 30, 90),
        (
            "WD Blue / Red / Green SSDs",
            [(166, "Minimum_PE_Cycles_TLC", 2), (168, "Maximum_PE_Cycles_TLC", 9), (173, "Average_PE_Cycles_TLC", 5)],
            5,
            2,
            9,
        ),
        ("Crucial/Micron Client SSDs", [(173, "Ave_Block-Erase_Count", 355)], 355, None, None),
        (None, [(177, "Wear_Leveling_Count", 112, 93), (173, "Ave_Block-Erase_Count", 3)], None, None, None),
        (
            "Crucial/Micron Client SSDs",
            [(173, "Ave_Block-Erase_Count", 3 << 32 | 355)],
            None,
            None,
            None,
        ),  # packed: no count
    ],
)
def test_pe_cycles(family, attributes, mean, least, most):
    got = snap(family, *attributes)
    assert (got["pe_cycles_mean"], got["pe_cycles_min"], got["pe_cycles_max"]) == (mean, least, most)
    assert (got["pe_cycles_source"] is None) == (mean is None)


def test_timed_workload():
    got = snap(
        "Intel 320 Series SSDs",
        (226, "Workld_Media_Wear_Indic", 1536),
        (227, "Workld_Host_Reads_Perc", 41),
        (228, "Workload_Minutes", 120),
    )
    assert (got["workload_wear_percent"], got["workload_reads_percent"], got["workload_timer_min"]) == (1.5, 41, 120)
    got = snap("Intel 320 Series SSDs", (226, "Workld_Media_Wear_Indic", 0xFFFF), (228, "Workload_Minutes", 0xFFFF))
    assert got["workload_wear_percent"] is None and got["workload_timer_min"] is None


def test_a_second_half_of_a_counter():
    low, high = (241, "Total_LBAs_Written_Low", 4000), (243, "Total_LBAs_Written_High", 0)
    assert snap("Swissbit X-600m Series Industrial mSATA SSD", low, high)["host_written_bytes"] == 2_048_000
    got = snap("Swissbit X-600m Series Industrial mSATA SSD", low, (243, "Total_LBAs_Written_High", 1))
    assert got["host_written_bytes"] is None and any("second attribute" in words for words in got["unknown"])


def test_raw_values_that_pack_several():
    """smartctl's texts of real drives: 2725 h in the low 24 bits, 29 C in the low byte. Read whole they are
    167031278144165 h and 77309411357 C."""
    table = [
        {
            "id": 9,
            "name": "Power_On_Hours",
            "value": 97,
            "raw": {"value": 167031278144165, "string": "2725 (151 234 0)"},
        },
        {
            "id": 194,
            "name": "Temperature_Celsius",
            "value": 29,
            "raw": {"value": 77309411357, "string": "29 (0 18 0 0 0)"},
        },
    ]
    got = counters.snapshot({"smartctl": {"device": {"protocol": "ATA"}, "ata_smart_attributes": {"table": table}}})
    assert (got["power_on_hours"], got["temperature_C"]) == (2725, 29)
    table[0]["raw"]["string"] = "41h+13m"
    got = counters.snapshot({"smartctl": {"device": {"protocol": "ATA"}, "ata_smart_attributes": {"table": table}}})
    assert got["power_on_hours"] is None and any("Power_On_Hours" in words for words in got["unknown"])
    got = snap(
        None, (9, "Power_On_Hours", 5), (12, "Power_Cycle_Count", 6), power_on_time={"hours": 7}, power_cycle_count=8
    )
    assert (got["power_on_hours"], got["power_cycles"]) == (7, 8)  # smartctl's own come first
