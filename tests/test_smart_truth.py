"""What several hundred real drives taught, as hand-made examples: which of raw and normalised value counts, which
source wins, what no drive can have done, counters that wrap, sensors that are not there, names that change. The figures
are synthetic; families and facts are real."""

import json
import re
from pathlib import Path

import pytest

from ssdrig.drive.smart import ata_table, counters, plausible
from ssdrig.drive.wear import command as wear_command

MIB, GIB, TB = 1 << 20, 1 << 30, 10**12
PHISON, SMI, MICRON = "Phison Driven SSDs", "Silicon Motion based SSDs", "Crucial/Micron Client SSDs"


@pytest.fixture(autouse=True)
def no_table_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ata_table.forget()
    yield
    ata_table.forget()


def ata(family, *attributes, statistics=(), hours=10_000, capacity=240 * 10**9, **more) -> dict:
    """smartctl's JSON of attributes (id, name, raw[, normalised]) and statistics (page, offset, value)."""
    table = [
        {"id": a[0], "name": a[1], "value": a[3] if len(a) > 3 else 100, "raw": {"value": a[2], "string": str(a[2])}}
        for a in attributes
    ]
    out = {"device": {"protocol": "ATA"}, "logical_block_size": 512, "ata_smart_attributes": {"table": table}}
    out |= {"smartctl": {"exit_status": 0}, "model_name": "X", "user_capacity": {"bytes": capacity}}
    out |= {"power_on_time": {"hours": hours}} if hours is not None else {}
    out |= {"model_family": family, "in_smartctl_database": True} if family else {"in_smartctl_database": False}
    pages = [
        {"number": p, "table": [{"offset": o, "value": v, "flags": {"valid": True, "normalized": p == 7}}]}
        for p, o, v in statistics
    ]
    return out | ({"ata_device_statistics": {"pages": pages}} if pages else {}) | more


def snap(*args, **more) -> dict:
    return counters.snapshot({"smartctl": ata(*args, **more)})


def nvme(**log) -> dict:
    health = {
        "critical_warning": 0,
        "temperature": 35,
        "available_spare": 100,
        "available_spare_threshold": 10,
        "percentage_used": 3,
        "data_units_written": 40_000_000,
        "data_units_read": 40_000_000,
        "host_writes": 10**9,
        "host_reads": 10**9,
        "power_cycles": 20,
        "power_on_hours": 9000,
        "unsafe_shutdowns": 1,
        "media_errors": 0,
    } | log
    smartctl = {"device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": health}
    return counters.snapshot({"smartctl": smartctl | {"power_on_time": {"hours": health["power_on_hours"]}}})


def said(got: dict, *parts: str) -> bool:
    """Whether one line of `unknown` holds all parts."""
    return any(all(part in words for part in parts) for words in got["unknown"])


# ---- 1: remaining life, raw or normalised


@pytest.mark.parametrize(
    "family, attributes, used",
    [
        (PHISON, [(231, "SSD_Life_Left", 74, 100), (244, "Average_Erase_Count", 808)], 26),  # KC400
        (SMI, [(169, "Remaining_Lifetime_Perc", 96, 100), (167, "Average_Erase_Count", 132)], 4),  # Transcend
        ("Innodisk 3IE2/3ME2/3MG2/3SE2/3TG6 SSDs", [(169, "Remaining_Lifetime_Perc", 98, 100)], 2),
        ("Seagate BarraCuda series SSD", [(231, "SSD_Life_Left", 98, 100)], 2),
        ("Apacer AS340/350 SSDs", [(231, "Lifetime_Left", 97, 100)], 3),
        ("Kingston SSDNow UV400/500", [(231, "SSD_Life_Left", 9, 91)], 9),  # raw is what is used
        ("Kingston SSDNow UV400", [(231, "SSD_Life_Left", 0, 100)], 0),
        (PHISON, [(231, "SSD_Life_Left", 88, 88)], 12),
        (PHISON, [(231, "SSD_Life_Left", 0, 93)], 7),  # raw 0 says nothing
        (PHISON, [(231, "SSD_Life_Left", 55, 93)], 7),  # raw is something else here
        (PHISON, [(231, "SSD_Life_Left", 5 << 32 | 93, 93)], 7),
        ("SandForce Driven SSDs", [(231, "SSD_Life_Left", 1, 100)], 0),  # raw is not life: not a named family
    ],
)
def test_remaining_life(family, attributes, used):
    got = snap(family, *attributes)
    assert got["percentage_used"] == used and got["sources"]["percentage_used"]["source"].startswith("attribute")


def test_device_statistics_win_over_raw_and_normalised():
    got = snap(PHISON, (231, "SSD_Life_Left", 74, 100), statistics=[(7, 8, 31)])
    assert got["percentage_used"] == 31 and not said(got, "percentage used")
    got = snap(PHISON, (231, "SSD_Life_Left", 0, 100), statistics=[(7, 8, 31)])
    assert got["percentage_used"] == 31 and said(got, "device statistics say 31 %", "attribute 231 0 %")
    assert got["sources"]["percentage_used"] == {"source": "device statistics", "error": 1, "unit": "%"}


# ---- 2: smartctl 7.5 guesses


def test_a_guess_of_smartctl_ranks_below_our_table():
    guess = {"endurance_used": {"current_percent": 0}, "spare_available": {"current_percent": 100}}
    got = snap(PHISON, (231, "SSD_Life_Left", 74, 100), **guess)
    assert got["percentage_used"] == 26 and got["sources"]["percentage_used"]["source"] == "attribute 231"
    guess = {"endurance_used": {"current_percent": 41}, "spare_available": {"current_percent": 99}}
    got = snap("Intel 320 Series SSDs", (233, "Media_Wearout_Indicator", 0, 60), **guess)
    assert (got["percentage_used"], got["available_spare_percent"]) == (40, 99)
    assert got["sources"]["available_spare_percent"]["source"] == "smartctl's guess from a normalised value"


def test_a_guess_is_used_where_there_is_nothing_else_unless_it_is_0():
    got = snap("Nobody SSDs", endurance_used={"current_percent": 12})
    assert got["percentage_used"] == 12 and got["sources"]["percentage_used"]["source"].startswith("smartctl's guess")
    got = snap("Nobody SSDs", endurance_used={"current_percent": 0}, spare_available={"current_percent": 100})
    assert got["percentage_used"] is None and got["available_spare_percent"] is None and said(got, "percentage used")


def screen_of(smartctl: dict, tmp_path: Path, capsys, *more: str) -> str:
    """What `wear` prints, with each paragraph on one line."""
    import argparse

    path = tmp_path / "saved.json"
    path.write_text(json.dumps(smartctl))
    parser = argparse.ArgumentParser()
    wear_command.add_arguments(parser)
    assert wear_command.command(parser.parse_args(["--smartctl", str(path), *more])) == 0
    return " ".join(capsys.readouterr().out.split())


def test_as_the_drive_says_is_written_only_where_it_does(tmp_path, capsys):
    table = ata("Samsung based SSDs", (177, "Wear_Leveling_Count", 112, 93))
    assert "as the drive says" not in screen_of(table, tmp_path, capsys)
    guess = ata("Nobody SSDs", endurance_used={"current_percent": 12})
    text = screen_of(guess, tmp_path, capsys)
    assert "12 % smartctl's guess" in text and "as the drive says" not in text
    statistics = ata("Samsung based SSDs", statistics=[(7, 8, 5)])
    assert "5 % as the drive says" in screen_of(statistics, tmp_path, capsys)


# ---- 3: plausibility


@pytest.mark.parametrize("factor", [0.2, 150])
def test_a_lifetime_write_amplification_that_cannot_be(factor):
    host, nand = 300_000, int(300_000 * factor)  # of 32 MiB each: 10 TB
    got = snap("Intel 545s Series SSDs", (241, "Host_Writes_32MiB", host), (243, "NAND_Writes_32MiB", nand))
    assert got["nand_written_bytes"] is None and got["nand_written_unit_bytes"] is None
    assert got["host_written_bytes"] == host * 32 * MIB and said(got, "NAND bytes written", "write amplification")


def test_only_controllers_that_compress_write_less_than_the_host_sent():
    attributes = [(241, "Lifetime_Writes_GiB", 10_000), (233, "SandForce_Internal", 6_000)]
    assert snap("SandForce Driven SSDs", *attributes)["nand_written_bytes"] == 6_000 * GIB
    got = snap(PHISON, (241, "Lifetime_Writes_GiB", 10_000), (233, "Flash_Writes_GiB", 6_000))
    assert got["nand_written_bytes"] is None and said(got, "NAND bytes written", "0.6")


def test_nand_of_0_is_no_count():
    got = snap(PHISON, (241, "Lifetime_Writes_GiB", 10_000), (233, "Flash_Writes_GiB", 0))
    assert got["nand_written_bytes"] is None and said(got, "does not count")


def test_host_bytes_against_the_link():
    """71 572 x 32 MiB are 2.4 TB; taken for GiB in an hour of life, no link carries them."""
    assert snap(PHISON, (241, "Lifetime_Writes_GiB", 71_572), hours=1)["host_written_bytes"] is None
    for key, rate in plausible.RATE.items():
        assert plausible.bytes_fault(rate * 3600 * 1002, 1000, key) and not plausible.bytes_fault(
            rate * 3600e3, 1000, key
        )
    got = nvme(data_units_written=2**50)
    assert got["host_written_bytes"] is None and said(got, "host bytes written", "9000 power-on hours")
    log = {"write": {"gigabytes_processed": "900000000000.000"}, "read": {"gigabytes_processed": "1.000"}}
    sas = {"device": {"protocol": "SCSI"}, "scsi_error_counter_log": log, "power_on_time": {"hours": 5000}}
    got = counters.snapshot({"smartctl": sas})
    assert got["host_written_bytes"] is None and got["host_read_bytes"] == 10**9


def test_too_little_is_another_unit():
    """4 096 counts in 3 500 hours: 2 MB as sectors. The drive counts something larger."""
    got = snap(MICRON, (246, "Total_LBAs_Written", 4096), hours=3500)
    assert got["host_written_bytes"] is None and said(got, "host bytes written", "too little")
    assert snap(MICRON, (246, "Total_LBAs_Written", 4096), hours=5)["host_written_bytes"] == 4096 * 512


def test_host_bytes_against_cycles():
    got = snap(SMI, (241, "Host_Writes_32MiB", 3_000_000), (167, "Average_Erase_Count", 2), hours=60_000)  # 100 TB
    assert got["host_written_bytes"] is None and got["pe_cycles_mean"] is None and said(got, "neither is used")
    got = snap(SMI, (241, "Host_Writes_32MiB", 30), (167, "Average_Erase_Count", 2000), hours=100)
    assert got["host_written_bytes"] is None and got["pe_cycles_mean"] is None
    got = snap(SMI, (241, "Host_Writes_32MiB", 3_000_000), (167, "Average_Erase_Count", 500), hours=60_000)
    assert (got["host_written_bytes"], got["pe_cycles_mean"]) == (3_000_000 * 32 * MIB, 500)
    # of device statistics the unit is a standard's, so the attribute is wrong
    sectors = 100 * TB // 512
    got = snap(SMI, (167, "Average_Erase_Count", 2), statistics=[(1, 0x18, sectors)], hours=60_000)
    assert got["host_written_bytes"] == sectors * 512 and got["pe_cycles_mean"] is None


def test_more_cycles_than_any_flash_takes():
    got = snap(SMI, (167, "Average_Erase_Count", 100_001))
    assert got["pe_cycles_mean"] is None and said(got, "mean P/E cycles", "100001")


def test_cycles_out_of_order():
    cycles = [(165, "Max_Erase_Count", 10), (166, "Min_Erase_Count", 40), (167, "Average_Erase_Count", 30)]
    got = snap(SMI, *cycles)
    assert got["pe_cycles_mean"] is got["pe_cycles_max"] is got["pe_cycles_min"] is got["pe_cycles_source"] is None
    assert said(got, "contradict each other")


def test_a_timer_longer_than_the_power_on_time():
    timed = [(226, "Workld_Media_Wear_Indic", 1536), (228, "Workload_Minutes", 700_000)]
    got = snap("Intel 320 Series SSDs", *timed, hours=100)
    assert got["workload_timer_min"] is None and got["workload_wear_percent"] is None and said(got, "longer than")
    assert snap("Intel 320 Series SSDs", *timed, hours=12_000)["workload_timer_min"] == 700_000
    assert nvme(warning_temp_time=9000 * 60 * 2)["warning_temp_min"] is None


def test_a_rate_is_not_a_count():
    got = snap("SandForce Driven SSDs", (187, "Reported_Uncorrect", 1234, 120))
    assert got["media_errors"] is None and said(got, "a rate")
    assert snap("SandForce Driven SSDs", (187, "Reported_Uncorrect", 2, 100))["media_errors"] == 2


@pytest.mark.parametrize("ones", [2**48 - 1, 2**32 - 1])
def test_all_ones_in_device_statistics(ones):
    got = snap(None, statistics=[(1, 0x18, ones), (1, 0x08, ones), (7, 8, 4)], hours=90_000)
    assert got["host_written_bytes"] is None and got["power_cycles"] is None and got["percentage_used"] == 4


def test_two_sources_that_disagree_are_both_shown_and_neither_is_used():
    attribute = (241, "Host_Writes_32MiB", 100_000)  # 3.36 TB
    got = snap("Intel 320 Series SSDs", attribute, statistics=[(1, 0x18, 5 * TB // 512)])
    assert got["host_written_bytes"] is None and got["host_written_source"] is None
    assert said(got, "device statistics says 5.00 TB", "attribute 241 (32 MiB) 3.36 TB", "neither is used")
    got = snap(PHISON, (173, "MaxAvgErase_Ct", 37 << 16 | 52), (244, "Average_Erase_Count", 90))
    assert got["pe_cycles_mean"] is None and said(got, "attribute 173 says 37", "attribute 244 90")


def test_a_percentage_that_the_cycles_refute():
    """99 % used after 30 cycles would be flash for 30 cycles."""
    got = snap(PHISON, (231, "SSD_Life_Left", 1, 100), (244, "Average_Erase_Count", 30))
    assert got["percentage_used"] is None and got["pe_cycles_mean"] == 30 and said(got, "99 %", "30 P/E cycles")
    cycles = [(167, "Average_Erase_Count", 800), (168, "Max_Erase_Count_of_Spec", 3000)]
    got = snap(SMI, (169, "Remaining_Lifetime_Perc", 0, 100), *cycles)
    assert got["percentage_used"] is None and said(got, "still says 0 %", "27 %")


# ---- 4: counters that wrap, or differ by firmware


def test_statistics_that_wrap_at_32_bits():
    """71 572 x 32 MiB in the attribute; the same modulo 2^32 sectors in device statistics."""
    sectors = 71_572 * 32 * MIB // 512 + 777
    attribute = (241, "Host_Writes_32MiB", 71_572)
    got = snap("StorFly CFast SATA 6Gbps SSDs", attribute, statistics=[(1, 0x18, sectors % 2**32)])
    assert got["host_written_bytes"] == 71_572 * 32 * MIB and got["host_written_source"] == "attribute 241 (32 MiB)"
    assert got["host_written_wrap_bytes"] is None and said(got, "they have wrapped")


def test_apacer_counts_by_firmware():
    row, raw = "Apacer AS340/350 SSDs", 2_000_000_000
    assert snap(row, (241, "Total_LBAs_Written", raw), firmware_version="AP613PE0")["host_written_bytes"] == raw * 512
    got = snap(row, (241, "Total_LBAs_Written", 3000), firmware_version="V4.25.0")
    assert got["host_written_bytes"] is None and said(got, "unknown unit")


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
    assert said(got, "NAND bytes written", "it is no total")


def test_a_173_of_0_does_not_win():
    got = snap(PHISON, (173, "MaxAvgErase_Ct", 0), (244, "Average_Erase_Count", 41), (245, "Max_Erase_Count", 60))
    assert (got["pe_cycles_mean"], got["pe_cycles_max"], got["pe_cycles_source"]) == (41, 60, "attribute 244")


# ---- 5: what is not there is not 0


def test_no_sensor_is_not_0_degrees():
    got = snap(PHISON, (194, "Temperature_Celsius", 0), temperature={"current": 0})
    assert got["temperature_C"] is None and said(got, "temperature", "without a sensor")
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
    assert got["power_cycles"] is None and said(got, "power cycles", "8000")
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
    assert got["host_written_bytes"] is None and said(got, "second attribute")
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


# ---- 8: words


def test_a_figure_is_either_shown_or_not_known(tmp_path, capsys):
    guess = {"endurance_used": {"current_percent": 0}}
    for document in (ata("Nobody SSDs", **guess), ata("Samsung based SSDs", (177, "Wear_Leveling_Count", 1, 100))):
        text = screen_of(document, tmp_path, capsys)
        assert ("percentage used ····" in text) != ("- percentage used: " in text)


def test_no_calibration_is_asked_for_once_a_figure_is_there(tmp_path, capsys):
    text = screen_of(ata(None, (241, "Total_LBAs_Written", 77), statistics=[(1, 0x18, 9 * 10**9)]), tmp_path, capsys)
    assert "calibrate" not in text and "Host written 4.61 TB" in text
    # a NAND counter that is refused is not one whose unit is not known
    text = screen_of(ata(None, (241, "Total_LBAs_Written", 77)), tmp_path, capsys)
    assert text.count("calibrate") == 1


@pytest.mark.parametrize("turns", [{"rotation_rate": 7200}, {}])
def test_a_hard_disk_has_no_wear(turns, tmp_path, capsys):
    """A disk with platters: by its rotation rate, or by the attributes that only such a disk has."""
    attributes = [(7, "Seek_Error_Rate", 0), (10, "Spin_Retry_Count", 0), (231, "SSD_Life_Left", 74, 100)]
    more = {"endurance_used": {"current_percent": 12}, "spare_available": {"current_percent": 99}}
    disk = ata("Toshiba X", *attributes, statistics=[(1, 0x18, 9 * 10**9), (7, 8, 3)], **more, **turns)
    got = counters.snapshot({"smartctl": disk})
    assert got["hard_disk"] is True and got["host_written_bytes"] == 9 * 10**9 * 512
    assert all(got[name] is None and name not in got["sources"] for name in counters.OF_FLASH)
    text = screen_of(disk, tmp_path, capsys, "--tbw", "300", "--class", "client", "--rate", "50GB/day")
    for word in ("etention", "ndurance", "limit", "rated", "TBW", "NAND", "percentage used", "Without power"):
        assert word not in text, word


def test_beyond_100_years_is_said_so(tmp_path, capsys):
    document = ata("Samsung based SSDs", (241, "Total_LBAs_Written", 10**9))
    text = screen_of(document, tmp_path, capsys, "--tbw", "30000")
    assert "over 100 years" in text and "337" not in text
    document = ata("Samsung based SSDs", (241, "Total_LBAs_Written", 8 * 10**9), (177, "Wear_Leveling_Count", 112, 91))
    text = screen_of(document, tmp_path, capsys, "--rate", "1.05TB/year")
    assert re.search(r"\(\d+ to \d+\)", text) and "over" not in text
    text = screen_of(document, tmp_path, capsys, "--rate", "0.43TB/year")
    assert re.search(
        r"9\d years of power-on time \(\d+ years to over 100 years\)|9\d years \(\d+ years to over 100 years\)", text
    )


def test_a_bar_of_less_than_a_step_is_not_empty(tmp_path, capsys):
    document = ata("Samsung based SSDs", (241, "Total_LBAs_Written", 8 * 10**9))
    assert "TBW ▏··················· 1.4 %" in screen_of(document, tmp_path, capsys, "--tbw", "300")


def test_every_figure_says_its_source_and_error():
    for got in (
        nvme(),
        snap(
            MICRON,
            (246, "Total_LBAs_Written", 9 * 10**9),
            (202, "Percent_Lifetime_Remain", 4, 96),
            (173, "Ave_Block-Erase_Count", 60),
        ),
        snap(SMI, (241, "Host_Writes_32MiB", 90_000), (167, "Average_Erase_Count", 132)),
    ):
        known = {name for name in counters.FIGURES if got[name] is not None}
        assert known == set(got["sources"]) and len(known) >= 3
        for name in known:
            entry = got["sources"][name]
            assert set(entry) == {"source", "error", "unit"} and entry["source"] and entry["error"] >= 0
    for name in ("host_written_bytes", "host_read_bytes"):  # both in units of 512 000 B, rounded up
        assert nvme()["sources"][name] == {"source": "log 02h", "error": 512_000, "unit": "B"}
