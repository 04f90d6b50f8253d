"""SMART figures that could mislead: counters that wrap or differ by firmware, what is not there, names and units."""

import pytest
from no_tables import no_table_of_the_user  # noqa: F401  autouse
from smart_truths import GIB, MIB, PHISON, SMI, ata, is_unknown, nvme, screen_of, snap

from ssdrig.drive.smart import counters

# ---- 4: counters that wrap, or differ by firmware


def test_statistics_that_wrap_at_32_bits():
    """71 572 x 32 MiB in the attribute; the same modulo 2^32 sectors in device statistics."""
    sectors = 71_572 * 32 * MIB // 512 + 777
    attribute = (241, "Host_Writes_32MiB", 71_572)
    got = snap("StorFly CFast SATA 6Gbps SSDs", attribute, statistics=[(1, 0x18, sectors % 2**32)])
    assert got["host_written_bytes"] == 71_572 * 32 * MIB and got["host_written_source"] == "attribute 241 (32 MiB)"
    assert got["host_written_wrap_bytes"] is None and is_unknown(got, "they have wrapped")


def test_apacer_counts_by_firmware():
    row, raw = "Apacer AS340/350 SSDs", 2_000_000_000
    assert snap(row, (241, "Total_LBAs_Written", raw), firmware_version="AP613PE0")["host_written_bytes"] == raw * 512
    got = snap(row, (241, "Total_LBAs_Written", 3000), firmware_version="V4.25.0")
    assert got["host_written_bytes"] is None and is_unknown(got, "unknown unit")


def test_ssstc_er2_counts_gb_of_the_host_and_gib_of_the_nand():
    for family, name in (
        ("SSSTC ER2 GD/CD Series SSDs", "NAND_Writes_GiB"),
        ("SSSTC ERX GD/CD Series SSDs", "Total_NAND_Written"),
    ):
        got = snap(family, (241, "Total_LBAs_Written", 50_000), (243, name, 60_000), model_name="SSSTC ER2-GD480")
        assert (got["host_written_bytes"], got["nand_written_bytes"]) == (50_000 * 10**9, 60_000 * GIB)
    got = snap("SSSTC ERX GD/CD Series SSDs", (241, "Total_LBAs_Written", 50_000), model_name="SSSTC ER4-CD7680A")
    assert got["host_written_bytes"] is None


def test_tlc_alone_is_no_total():
    got = snap(SMI, (241, "Host_Writes_32MiB", 100_000), (245, "TLC_Writes_32MiB", 150_000))
    assert got["nand_written_bytes"] is None and got["nand_written_tlc_bytes"] == 150_000 * 32 * MIB
    assert is_unknown(got, "NAND bytes written", "TLC alone")


def test_a_173_of_0_does_not_win():
    got = snap(PHISON, (173, "MaxAvgErase_Ct", 0), (244, "Average_Erase_Count", 41), (245, "Max_Erase_Count", 60))
    assert (got["pe_cycles_mean"], got["pe_cycles_max"], got["pe_cycles_source"]) == (41, 60, "attribute 244")


# ---- 5: what is not there is not 0


def test_no_sensor_is_not_0_degrees():
    got = snap(PHISON, (194, "Temperature_Celsius", 0), temperature={"current": 0})
    assert got["temperature_C"] is None and is_unknown(got, "temperature", "without a sensor")
    got = snap(PHISON, (194, "Temperature_Celsius", 0), temperature={"current": 0, "lifetime_max": 0})
    assert got["temperature_C"] is None and got["temperature_max_C"] is None
    assert snap(PHISON, temperature={"current": 0, "lifetime_max": 44})["temperature_C"] == 0
    assert nvme(temperature=0)["temperature_C"] is None


def test_start_stop_cycles_of_0_after_thousands_of_hours():
    sas = {
        "device": {"protocol": "SCSI"},
        "scsi_start_stop_cycle_counter": {"accumulated_start_stop_cycles": 0},
        "power_on_time": {"hours": 8000},
    }
    got = counters.snapshot({"smartctl": sas})
    assert got["power_cycles"] is None and is_unknown(got, "power cycles", "8000")
    sas["power_on_time"]["hours"] = 3
    assert counters.snapshot({"smartctl": sas})["power_cycles"] == 0


def test_a_capacity_of_0_is_not_known():
    assert snap(PHISON, capacity=0)["capacity_bytes"] is None
    document = {"smartctl": ata(PHISON, capacity=0), "drive": {"capacity_bytes": 10**9}}
    assert counters.snapshot(document)["capacity_bytes"] == 10**9


# ---- 6: names and locales


@pytest.mark.parametrize(
    "family", ["Intel S4510/S4610/S4500/S4600 Series SSDs", "Intel/Solidigm S46x0/S45x0 Series SSDs"]
)
def test_intel_under_both_names(family):
    attributes = [
        (233, "Media_Wearout_Indicator", 0, 91),
        (170, "Available_Reservd_Space", 0, 97),
        (226, "Workld_Media_Wear_Indic", 1536),
        (228, "Workload_Minutes", 600),
    ]
    got = snap(family, *attributes)
    assert (got["percentage_used"], got["available_spare_percent"], got["workload_wear_percent"]) == (9, 97, 1.5)


def test_a_decimal_comma():
    log = {"write": {"gigabytes_processed": "2124,590"}, "read": {"gigabytes_processed": "98765.432"}}
    got = counters.snapshot({"smartctl": {"device": {"protocol": "SCSI"}, "scsi_error_counter_log": log}})
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (2_124_590_000_000, 98_765_432_000_000)


def test_names_of_smartctl_7_0():
    family = "Crucial/Micron BX/MX1/2/3/500, M5/600, 1100 SSDs"
    got = snap(family, (246, "Total_Host_Sector_Write", 2 * 10**9))
    assert (got["host_written_bytes"], got["host_written_unit_bytes"]) == (1_024 * 10**9, 512)
    got = snap("WD Blue and Green SSDs", (241, "Total_Host_GB_Written", 900), (242, "Total_Host_GB_Read", 7))
    assert (got["host_written_bytes"], got["host_read_bytes"]) == (900 * GIB, 7 * GIB)
    assert snap("SiliconMotion based SSDs", (169, "Remaining_Lifetime_Perc", 96, 100))["percentage_used"] == 4


def test_a_file_of_smartctl_A_has_no_family_but_names_that_prove_one():
    def saved(*attributes):
        document = ata("-", *attributes)
        for name in ("model_family", "in_smartctl_database", "model_name", "user_capacity"):
            del document[name]
        return counters.snapshot({"smartctl": document})

    assert saved((241, "Host_Writes_32MiB", 90_000))["host_written_bytes"] == 90_000 * 32 * MIB
    assert saved((241, "Lifetime_Writes_GiB", 9_000))["host_written_bytes"] == 9_000 * GIB
    assert saved((241, "Total_LBAs_Written", 9 * 10**9))["host_written_bytes"] is None  # smartctl's default name
    got = saved((226, "Workld_Media_Wear_Indic", 1536), (233, "Media_Wearout_Indicator", 0, 91))
    assert got["percentage_used"] == 9
    assert saved((233, "Media_Wearout_Indicator", 0, 91))["percentage_used"] is None
    got = saved((241, "Total_Writes_GB", 9 * 10**9), (243, "Total_Media_Writes", 1))
    assert got["host_written_bytes"] == 9 * 10**9 * 512  # SK hynix


@pytest.mark.parametrize("name", ["Max/Avg/Min_Erase_Ct", "Max/Avg/Min_Erase_Count"])
def test_seagate_spells_173_in_two_ways(name):
    got = snap("Seagate IronWolf (Pro) 125 SSDs", (173, name, 90 << 32 | 60 << 16 | 30))
    assert (got["pe_cycles_max"], got["pe_cycles_mean"], got["pe_cycles_min"]) == (90, 60, 30)


# ---- 7: units that are known after all


@pytest.mark.parametrize(
    "family, name, raw, used",
    [
        ("WD Blue / Red / Green SSDs", "Media_Wearout_Indicator", 0x2F2423142F24, 47.36),
        ("WD Blue / Red / Green SSDs", "Media_Wearout_Indicator", 0x2506, 37.06),
        ("Marvell based SanDisk SSDs", "Perc_Write/Erase_Count", 0x0A08000F0A08, 10.08),
        ("WD Blue / Red / Green SSDs", "Media_Wearout_Indicator", 0x25AA, None),  # no hundredths
        ("WD Blue / Red / Green SSDs", "Media_Wearout_Indicator", 0x2F2423142E24, None),  # its two copies differ
    ],
)
def test_wd_and_sandisk_230(family, name, raw, used):
    got = snap(family, (230, name, raw, 100))
    assert got["percentage_used"] == used
    if used is not None:
        assert got["sources"]["percentage_used"] == {"source": "attribute 230", "error": 0.01, "unit": "%"}


@pytest.mark.parametrize("name", ["Total_Writes_GB", "Total_Writes_GiB", "Lifetime_Writes_GiB"])
def test_hynix_241_is_sectors(name):
    assert snap("SK hynix SATA SSDs", (241, name, 9 * 10**9))["host_written_bytes"] == 9 * 10**9 * 512


def test_hynix_180_is_not_erase_fails():
    fails = [(176, "Unused_Rsvd_Blk_Cnt_Tot", 1), (180, "Erase_Fail_Count", 900), (182, "Erase_Fail_Count_Total", 3)]
    assert snap("SK hynix SATA SSDs", (172, "Erase_Fail_Count", 2), *fails)["erase_fails"] == 3
    assert snap("SK hynix SATA SSDs", *fails[:2])["erase_fails"] is None


@pytest.mark.parametrize(
    "family, attribute",
    [
        (SMI, (168, "Max_Erase_Count_of_Spec", 3000)),
        ("Innodisk 3IE2/3ME2/3MG2/3SE2/3TG6 SSDs", (168, "Max_Erase_Count_of_Spec", 3000)),
        ("Indilinx Barefoot 3 based SSDs", (205, "Max_Rated_PE_Count", 3000)),
        ("Swissbit X-7x Family SATA SSD", (168, "Rated_Erase_Count", 3000)),
    ],
)
def test_the_rated_cycles_that_a_drive_reports_are_the_rating(family, attribute, tmp_path, capsys):
    assert snap(family, attribute)["pe_cycles_rated"] == 3000 and snap(family, attribute)["pe_cycles_max"] is None
    cycles = [(167, "Average_Erase_Count", 132), (208, "Average_Erase_Count", 132)]
    assert "132 of 3000" in screen_of(ata(family, attribute, *cycles), tmp_path, capsys)
    assert "132 of 1000" in screen_of(ata(family, attribute, *cycles), tmp_path, capsys, "--pe-cycles", "1000")


def test_barefoot_counts_pages_and_sectors():
    got = snap(
        "Indilinx Barefoot 3 based SSDs",
        (199, "Host_Writes_GiB", 9 * 10**9),
        (249, "Total_NAND_Prog_Ct_GiB", 400_000_000),
    )
    assert (got["host_written_bytes"], got["nand_written_bytes"]) == (9 * 10**9 * 512, 400_000_000 * 16384)


def test_swissbit_halves_and_atp_sectors():
    low = (241, "Total_LBAs_Written", 9 * 10**9)
    x7 = "Swissbit X-7x Family SATA SSD"
    assert snap(x7, low, (243, "Host_LBA_Write_Exp", 0))["host_written_bytes"] == 9 * 10**9 * 512
    got = snap(x7, low, (243, "Host_LBA_Write_Exp", 1))
    assert got["host_written_bytes"] is None and is_unknown(got, "second attribute")
    x8 = snap("Swissbit X-8x Family SATA SSD", (241, "Total_Host_LBA_Written", 9 * 10**9))
    assert x8["host_written_bytes"] == 9 * 10**9 * 512
    atp = [(235, "Sectors_Written_to_SSD", 9 * 10**9), (241, "Sectors_Written_to_NAND", 12 * 10**9)]
    got = snap("ATP SATA III Superior Line SSDs", *atp)
    assert (got["host_written_bytes"], got["nand_written_bytes"]) == (9 * 10**9 * 512, 12 * 10**9 * 512)


def test_maxio_sandforce_and_dell():
    got = snap(
        "Maxio based SSDs (variant 1)",
        (206, "Min_Erase_Count", 20),
        (207, "Max_Erase_Count", 60),
        (208, "Avg_Erase_Count", 40),
        (233, "NAND_Write_Sector_Cnt", 9 * 10**9),
    )
    assert (got["pe_cycles_min"], got["pe_cycles_mean"], got["pe_cycles_max"]) == (20, 40, 60)
    assert got["nand_written_bytes"] == 9 * 10**9 * 512
    assert snap("SandForce Driven SSDs", (233, "NAND_GiB_Written", 600))["nand_written_bytes"] == 600 * GIB
    got = snap("Dell Certified Intel S3520 Series SSDs", (242, "Total_LBAs_Read", 90_000))
    assert got["host_read_bytes"] == 90_000 * 32 * MIB


def test_spare():
    assert (
        snap("Micron 5100 / 52x0 / 5300 / 5400 SSDs", (170, "Reserved_Block_Pct", 0, 98))["available_spare_percent"]
        == 98
    )
    assert snap("SanDisk based SSDs", (232, "Perc_Avail_Resrvd_Space", 0, 97))["available_spare_percent"] == 97
