"""SMART figures that could mislead: remaining life, guesses, and what cannot be."""

import pytest
from no_tables import no_table_of_the_user  # noqa: F401  autouse
from smart_truths import GIB, MIB, MICRON, PHISON, SMI, TB, is_unknown, nvme, snap

from ssdrig.drive.smart import counters, plausible

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
    assert got["percentage_used"] == 31 and not is_unknown(got, "percentage used")
    got = snap(PHISON, (231, "SSD_Life_Left", 0, 100), statistics=[(7, 8, 31)])
    assert got["percentage_used"] == 31 and is_unknown(got, "31 %", "attribute 231 0 %")
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
    assert (
        got["percentage_used"] is None and got["available_spare_percent"] is None and is_unknown(got, "percentage used")
    )


# ---- 3: plausibility


@pytest.mark.parametrize("factor", [0.2, 150])
def test_a_lifetime_write_amplification_that_cannot_be(factor):
    host, nand = 300_000, int(300_000 * factor)  # of 32 MiB each: 10 TB
    got = snap("Intel 545s Series SSDs", (241, "Host_Writes_32MiB", host), (243, "NAND_Writes_32MiB", nand))
    assert got["nand_written_bytes"] is None and got["nand_written_unit_bytes"] is None
    assert got["host_written_bytes"] == host * 32 * MIB and is_unknown(got, "NAND bytes written", "write amplification")


def test_only_controllers_that_compress_write_less_than_the_host_sent():
    attributes = [(241, "Lifetime_Writes_GiB", 10_000), (233, "SandForce_Internal", 6_000)]
    assert snap("SandForce Driven SSDs", *attributes)["nand_written_bytes"] == 6_000 * GIB
    got = snap(PHISON, (241, "Lifetime_Writes_GiB", 10_000), (233, "Flash_Writes_GiB", 6_000))
    assert got["nand_written_bytes"] is None and is_unknown(got, "NAND bytes written", "0.6")


def test_nand_of_0_is_no_count():
    got = snap(PHISON, (241, "Lifetime_Writes_GiB", 10_000), (233, "Flash_Writes_GiB", 0))
    assert got["nand_written_bytes"] is None and is_unknown(got, "does not count")


def test_host_bytes_against_the_link():
    """71 572 x 32 MiB are 2.4 TB; taken for GiB in an hour of life, no link carries them."""
    assert snap(PHISON, (241, "Lifetime_Writes_GiB", 71_572), hours=1)["host_written_bytes"] is None
    for key, rate in plausible.RATE.items():
        assert plausible.bytes_fault(rate * 3600 * 1002, 1000, key) and not plausible.bytes_fault(
            rate * 3600e3, 1000, key
        )
    got = nvme(data_units_written=2**50)
    assert got["host_written_bytes"] is None and is_unknown(got, "host bytes written", "9000 power-on hours")
    log = {"write": {"gigabytes_processed": "900000000000.000"}, "read": {"gigabytes_processed": "1.000"}}
    sas = {"device": {"protocol": "SCSI"}, "scsi_error_counter_log": log, "power_on_time": {"hours": 5000}}
    got = counters.snapshot({"smartctl": sas})
    assert got["host_written_bytes"] is None and got["host_read_bytes"] == 10**9


def test_too_little_is_another_unit():
    """4 096 counts in 3 500 hours: 2 MB as sectors. The drive counts something larger."""
    got = snap(MICRON, (246, "Total_LBAs_Written", 4096), hours=3500)
    assert got["host_written_bytes"] is None and is_unknown(got, "host bytes written", "too little")
    assert snap(MICRON, (246, "Total_LBAs_Written", 4096), hours=5)["host_written_bytes"] == 4096 * 512


def test_host_bytes_against_cycles():
    got = snap(SMI, (241, "Host_Writes_32MiB", 3_000_000), (167, "Average_Erase_Count", 2), hours=60_000)  # 100 TB
    assert got["host_written_bytes"] is None and got["pe_cycles_mean"] is None and is_unknown(got, "neither is used")
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
    assert got["pe_cycles_mean"] is None and is_unknown(got, "mean P/E cycles", "100001")


def test_cycles_out_of_order():
    cycles = [(165, "Max_Erase_Count", 10), (166, "Min_Erase_Count", 40), (167, "Average_Erase_Count", 30)]
    got = snap(SMI, *cycles)
    assert got["pe_cycles_mean"] is got["pe_cycles_max"] is got["pe_cycles_min"] is got["pe_cycles_source"] is None
    assert is_unknown(got, "contradict each other")


def test_a_timer_longer_than_the_power_on_time():
    timed = [(226, "Workld_Media_Wear_Indic", 1536), (228, "Workload_Minutes", 700_000)]
    got = snap("Intel 320 Series SSDs", *timed, hours=100)
    assert got["workload_timer_min"] is None and got["workload_wear_percent"] is None and is_unknown(got, "longer than")
    assert snap("Intel 320 Series SSDs", *timed, hours=12_000)["workload_timer_min"] == 700_000
    assert nvme(warning_temp_time=9000 * 60 * 2)["warning_temp_min"] is None


def test_a_rate_is_not_a_count():
    got = snap("SandForce Driven SSDs", (187, "Reported_Uncorrect", 1234, 120))
    assert got["media_errors"] is None and is_unknown(got, "a rate")
    assert snap("SandForce Driven SSDs", (187, "Reported_Uncorrect", 2, 100))["media_errors"] == 2


@pytest.mark.parametrize("ones", [2**48 - 1, 2**32 - 1])
def test_all_ones_in_device_statistics(ones):
    got = snap(None, statistics=[(1, 0x18, ones), (1, 0x08, ones), (7, 8, 4)], hours=90_000)
    assert got["host_written_bytes"] is None and got["power_cycles"] is None and got["percentage_used"] == 4


def test_two_sources_that_disagree_are_both_shown_and_neither_is_used():
    attribute = (241, "Host_Writes_32MiB", 100_000)  # 3.36 TB
    got = snap("Intel 320 Series SSDs", attribute, statistics=[(1, 0x18, 5 * TB // 512)])
    assert got["host_written_bytes"] is None and got["host_written_source"] is None
    assert is_unknown(got, "5.00 TB", "attribute 241 (32 MiB) 3.36 TB", "neither is used")
    got = snap(PHISON, (173, "MaxAvgErase_Ct", 37 << 16 | 52), (244, "Average_Erase_Count", 90))
    assert got["pe_cycles_mean"] is None and is_unknown(got, "attribute 173 reports 37", "attribute 244 90")


def test_a_percentage_that_the_cycles_refute():
    """99 % used after 30 cycles would be flash for 30 cycles."""
    got = snap(PHISON, (231, "SSD_Life_Left", 1, 100), (244, "Average_Erase_Count", 30))
    assert got["percentage_used"] is None and got["pe_cycles_mean"] == 30 and is_unknown(got, "99 %", "30 P/E cycles")
    cycles = [(167, "Average_Erase_Count", 800), (168, "Max_Erase_Count_of_Spec", 3000)]
    got = snap(SMI, (169, "Remaining_Lifetime_Perc", 0, 100), *cycles)
    assert got["percentage_used"] is None and is_unknown(got, "0 %", "27 %")
