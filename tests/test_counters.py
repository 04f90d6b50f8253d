"""SMART documents reduced to wear numbers: hand-made documents, files written for this project, real smartctl
output."""

import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import PAGE_02H, PAGE_09H, PAGE_22H, PAGE_C0H, items, page, page_c0h

from ssdrig.drive.smart import ata_table, counters, json_numbers

DATA = Path(__file__).parent / "data" / "smartctl"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_table_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    ata_table.forget()


# as in the decoders' tests, with bytes that one drive can have written
DATA_UNITS, NAND_BYTES = 200_000, 3 * 2**36
LOG_02H = PAGE_02H[:48] + DATA_UNITS.to_bytes(16, "little") + PAGE_02H[64:]
LOG_C0H = NAND_BYTES.to_bytes(16, "little") + PAGE_C0H[16:]


def document(**more) -> dict:
    return {
        "n": 3,
        "reason": "poll",
        "t_start_ns": 1_000,
        "t_end_ns": 3_000,
        "simulated": True,
        "smartctl": {},
        "log_02h": LOG_02H.hex(),
        "log_c0h": LOG_C0H.hex(),
        "log_09h": PAGE_09H.hex(),
    } | more


def nand_of(got: dict) -> tuple:
    return got["nand_written_bytes"], got["nand_written_unit_bytes"], got["nand_written_source"]


def host_of(got: dict) -> tuple:
    return got["host_written_bytes"], got["host_written_unit_bytes"], got["host_written_source"]


def test_snapshot_from_pages():
    got = counters.snapshot(document())
    assert tuple(got) == counters.KEYS
    assert {name: value for name, value in got.items() if value is not None and name != "sources"} == {
        "t_ns": 2_000,
        "t_start_ns": 1_000,
        "t_end_ns": 3_000,
        "reason": "poll",
        "simulated": True,
        "protocol": "NVMe",
        "exit_status_bits": [],
        "health_ok": False,
        "critical_warning": 4,
        "host_written_bytes": DATA_UNITS * 512_000,
        "host_written_unit_bytes": 512_000,
        "host_written_source": "log 02h",
        "host_read_bytes": 15_794_760 * 512_000,
        "nand_written_bytes": NAND_BYTES,
        "nand_written_unit_bytes": 1,
        "nand_written_source": "log C0h",
        "percentage_used": 101,
        "available_spare_percent": 97,
        "available_spare_threshold_percent": 10,
        "pe_cycles_min": 123,
        "pe_cycles_max": 321,
        "pe_cycles_source": "log C0h",
        "temperature_C": 40,
        "power_on_hours": 4321,
        "power_cycles": 12,
        "unsafe_shutdowns": 5,
        "media_errors": 6,
        "error_log_entries": 7,
        "warning_temp_min": 8,
        "critical_temp_min": 9,
        "lifetime_energy_Wh": 1500,
        "uncorrectable_reads": 3,
        "soft_ecc_errors": 22,
        "xor_recoveries": 21,
        "refreshes": 23,
        "bad_user_blocks": 2**40,
        "free_blocks_percent": 77,
        "unknown": [],
    }


def test_snapshot_takes_the_best_nand_counter():
    assert nand_of(counters.snapshot(document(log_c0h=None))) == (120 * 10**9, 10**9, "log 09h")
    assert nand_of(counters.snapshot(document(log_c0h=None, log_22h=PAGE_22H.hex()))) == (3 * 10**12 + 2, 1, "log 22h")
    fdp = counters.snapshot(document(log_c0h=None, log_22h=PAGE_22H.hex()))
    # the drive's life, and this group's
    assert host_of(fdp) == (DATA_UNITS * 512_000, 512_000, "log 02h") and fdp["fdp_host_written_bytes"] == 10**12 + 1
    # HBMW stays at its end
    full = counters.snapshot(document(log_c0h=None, log_22h=(b"\xff" * 16 + PAGE_22H[16:]).hex()))
    assert nand_of(full) == nand_of(fdp) and full["fdp_host_written_bytes"] is None
    got = counters.snapshot(document(log_c0h=bytes(512).hex()))  # a layout that is not OCP's
    assert (
        got["nand_written_source"] == "log 09h"
        and got["xor_recoveries"] is None
        and any("log C0h" in words for words in got["unknown"])
    )
    got = counters.snapshot(document(log_c0h=None, log_09h=None))
    assert nand_of(got) == (None, None, None) and any(
        words.startswith("NAND bytes written") for words in got["unknown"]
    )


def test_numbers_that_cannot_be_are_refused_in_words():
    full = counters.snapshot(document(log_02h=(PAGE_02H[:48] + b"\xff" * 16 + PAGE_02H[64:]).hex(), log_09h=None))
    assert host_of(full) == (None, None, None) and any(
        words.startswith("data_units_written") for words in full["unknown"]
    )
    spare = counters.snapshot(document(log_c0h=(PAGE_C0H[:120] + b"\x65" + PAGE_C0H[121:]).hex()))
    assert spare["free_blocks_percent"] is None and any(words.startswith("free blocks") for words in spare["unknown"])
    assert (
        counters.snapshot(document(log_c0h=(PAGE_C0H[:120] + b"\x64" + PAGE_C0H[121:]).hex()))["free_blocks_percent"]
        == 100
    )


def test_a_page_22h_without_data_placement_is_passed_over():
    for blank in (bytes(64), b"\xff" * 64):
        got = counters.snapshot(document(log_c0h=None, log_22h=blank.hex()))
        assert nand_of(got) == (120 * 10**9, 10**9, "log 09h") and got["fdp_host_written_bytes"] is None
    begun = counters.snapshot(document(log_c0h=None, log_22h=page({0: (16, 4096), 16: (16, 8192)}, 64).hex()))
    assert nand_of(begun) == (8192, 1, "log 22h") and begun["fdp_host_written_bytes"] == 4096


def test_nand_counter_that_does_not_count():
    """0 bytes on the NAND for terabytes of the host is not 0."""
    blank = page_c0h(0)
    got = counters.snapshot(document(log_c0h=blank.hex()))
    assert nand_of(got)[2] == "log 09h" and any("log C0h says 0" in words for words in got["unknown"])
    new = counters.snapshot(document(log_02h=page({1: (2, 300), 3: (1, 100)}).hex(), log_c0h=blank.hex(), log_09h=None))
    assert (new["host_written_bytes"], new["nand_written_bytes"]) == (0, 0)  # a drive that never wrote


def test_data_units_of_0_are_not_reported():
    got = counters.snapshot(document(log_02h=page({1: (2, 300), 80: (16, 98)}).hex(), log_09h=None))
    assert host_of(got) == (None, None, None) and any("98 commands" in words for words in got["unknown"])
    got = counters.snapshot(document(log_02h=page({1: (2, 300), 80: (16, 98)}).hex()))
    assert host_of(got) == (50 * 10**9, 10**9, "log 09h")


@pytest.mark.parametrize("raw", ["", "zz", 17, ["00"], "00" * 511, "00" * 512, "ff" * 512])
def test_a_page_that_is_none(raw):
    """smartctl's copy takes its place; without one the gap is said."""
    log = {"data_units_written": 7, "percentage_used": 3}
    got = counters.snapshot(document(log_02h=raw, smartctl={"nvme_smart_health_information_log": log}))
    assert (got["host_written_bytes"], got["percentage_used"]) == (7 * 512_000, 3)
    got = counters.snapshot(document(log_02h=raw, log_c0h=None, log_09h=None))
    assert (
        got["host_written_bytes"] is None
        and got["power_cycles"] is None
        and any("log 02h" in words for words in got["unknown"])
    )


HOST = page({1: (2, 300), 48: (16, 60_000 * 32 * MIB // 512_000)})  # what 60 000 x 32 MiB are in data units
CAH = items({0xAD: (98, bytes([10, 0, 44, 0, 27, 0])), 0xE2: (100, 1536), 0xF4: (100, 90_000), 0xF5: (100, 60_000)})


def vendor(id_, **pages):
    return counters.snapshot(
        {
            "log_02h": HOST.hex(),
            "smartctl": {"nvme_pci_vendor": {"id": id_}},
            **{name: raw.hex() for name, raw in pages.items()},
        }
    )


def test_intel_cah():
    got = vendor(0x8086, log_cah=CAH)
    assert (
        nand_of(got) == (90_000 * 32 * MIB, 32 * MIB, "log CAh") and got["nand_written_wrap_bytes"] == 2**48 * 32 * MIB
    )
    assert (got["pe_cycles_min"], got["pe_cycles_max"], got["pe_cycles_mean"], got["pe_cycles_source"]) == (
        10,
        44,
        27,
        "log CAh",
    )
    assert got["workload_wear_percent"] == 1.5 and host_of(got)[2] == "log 02h"
    got = counters.snapshot({"drive": {"pci_vendor_id": "8086"}, "smartctl": None, "log_cah": CAH.hex()})
    assert host_of(got) == (60_000 * 32 * MIB, 32 * MIB, "log CAh") and got["protocol"] == "NVMe"


def test_the_same_format_of_another_maker_must_prove_its_unit():
    assert nand_of(vendor(0x1C5F, log_cah=CAH))[0] == 90_000 * 32 * MIB  # F5h x 32 MiB is what log 02h says
    for other in (
        {0xF4: (100, 90_000)},
        {0xF4: (100, 90_000 * 65536), 0xF5: (100, 60_000 * 65536)},
    ):  # no F5h; sectors of 512 B
        got = vendor(0x1C5F, log_cah=items(other))
        assert nand_of(got) == (None, None, None) and any(
            "log CAh is not believed" in words for words in got["unknown"]
        )
    few = counters.snapshot(
        {
            "smartctl": {"nvme_pci_vendor": {"id": 0x1C5F}},
            "log_02h": page({1: (2, 300), 48: (16, 9 * 65_536), 80: (16, 1)}).hex(),
            "log_cah": items({0xF4: (100, 9_900), 0xF5: (100, 9_000)}).hex(),
        }
    )
    assert nand_of(few) == (9_900 * 32 * MIB, 32 * MIB, "log CAh")
    few = counters.snapshot(
        {
            "smartctl": {"nvme_pci_vendor": {"id": 0x1C5F}},
            "log_02h": page({1: (2, 300), 48: (16, 656), 80: (16, 1)}).hex(),
            "log_cah": items({0xF4: (100, 11), 0xF5: (100, 10)}).hex(),
        }
    )
    assert nand_of(few) == (None, None, None) and any(
        "too little was written to check it" in words for words in few["unknown"]
    )
    # nothing to check against
    got = counters.snapshot({"smartctl": {"nvme_pci_vendor": {"id": 0x1C5F}}, "log_cah": CAH.hex()})
    assert nand_of(got) == (None, None, None)


def test_pages_of_another_layout_are_refused():
    wrong = items({0xF4: (100, 90_000), 0xF5: (100, 1_000)})
    got = vendor(0x8086, log_cah=wrong)
    assert got["nand_written_bytes"] is None and any("another layout or unit" in words for words in got["unknown"])
    got = vendor(0x15B7, log_cah=page({0: (16, 2**100)}))
    assert got["nand_written_bytes"] is None and any("log CAh is not believed" in words for words in got["unknown"])
    got = vendor(0x144D, log_cah=CAH)
    assert got["nand_written_bytes"] is None and any(
        "maker whose layout is not known" in words for words in got["unknown"]
    )


def test_micron_and_wdc():
    got = vendor(0x1344, log_d0h=page({12: (4, 3), 144: (16, 1), 176: (8, 5 * 10**12)}))
    assert nand_of(got) == (5 * 10**12, 1, "log D0h") and (
        got["bad_user_blocks"],
        got["program_fails"],
        got["erase_fails"],
    ) == (3, 1, 0)
    got = vendor(0x15B7, log_cah=page({0: (16, 4 * 10**12)}), log_d0h=page({0x14: (4, 210), 0x40: (4, 9)}))
    assert nand_of(got) == (4 * 10**12, 1, "log CAh") and got["read_disturbs"] == 9


def test_integers_past_2_53_come_from_their_exact_forms():
    for log in (
        {"data_units_written": 2**63, "data_units_written_s": str(2**70 + 1)},
        {
            "data_units_written": 1.1805916207174113e21,
            "data_units_written_le": list((2**70 + 1).to_bytes(16, "little")),
        },
    ):
        assert json_numbers.whole(log, "data_units_written", [], "", at_most=json_numbers.U128) == 2**70 + 1
        got = counters.snapshot({"smartctl": {"nvme_smart_health_information_log": log | {"percentage_used": 3}}})
        assert got["percentage_used"] == 3 and got["temperature_C"] is None
        # exact, and more than any drive can have written
        assert got["host_written_bytes"] is None and any("more than PCIe carries" in w for w in got["unknown"])
    log = {"host_writes": 2**53, "data_units_written": 2**45, "data_units_written_s": str(2**45 + 1)}
    got = counters.snapshot({"smartctl": {"nvme_smart_health_information_log": log}})
    assert got["host_written_bytes"] == (2**45 + 1) * 512_000
    got = counters.snapshot(
        {
            "smartctl": {
                "nvme_smart_health_information_log": {"data_units_written": 1.1805916207174113e21, "percentage_used": 3}
            }
        }
    )
    # rounded: no counter
    assert got["host_written_bytes"] is None and any("data_units_written" in words for words in got["unknown"])


def test_a_drive_that_says_nothing():
    for nothing in (
        {},
        {"smartctl": None},
        {"smartctl": {}},
        {"smartctl": {"ata_smart_attributes": {"table": []}}},
        [],
        None,
        3,
    ):
        got = counters.snapshot(nothing)
        assert tuple(got) == counters.KEYS and got["unknown"]
        left = {name for name, value in got.items() if value is not None}
        assert (
            left <= {"simulated", "exit_status_bits", "sources", "unknown", "protocol"}
            and got["simulated"] is False
            and got["exit_status_bits"] == []
        )


@pytest.mark.parametrize(
    "status, bits",
    [
        (0, []),
        (1, [0]),
        (2, [1]),
        (64, [6]),
        (212, [2, 4, 6, 7]),
        (255, list(range(8))),
        (256, []),
        ("2", []),
        (-1, []),
    ],
)
def test_exit_status(status, bits):
    got = counters.snapshot(
        {
            "smartctl": {
                "smartctl": {"exit_status": status, "messages": [{"string": "Open failed", "severity": "error"}, 3]}
            }
        }
    )
    assert got["exit_status_bits"] == bits and got["exit_status"] == (
        sum(1 << bit for bit in bits) if status in range(256) else None
    )
    assert any("Open failed" in words for words in got["unknown"]) == bool({0, 1} & set(bits))


def test_exit_status_of_a_tool_without_json():
    tools = [{"argv": ["nvme", "get-log"], "exit_code": 1}, {"argv": ["/usr/sbin/smartctl", "-x"], "exit_code": 2}]
    assert counters.snapshot({"smartctl": None, "tools": tools})["exit_status_bits"] == [1]


def test_smartctl_8_says_host_writes_itself():
    smartctl = {
        "device": {"protocol": "ATA"},
        "host_writes": {"units": 100, "bytes_per_unit": 33554432},
        "host_reads": {"units": 3, "bytes_per_unit": 512},
    }
    got = counters.snapshot({"smartctl": smartctl})
    assert host_of(got) == (100 * 32 * MIB, 32 * MIB, "smartctl's host_writes") and got["host_read_bytes"] == 1536
    got = counters.snapshot({"smartctl": smartctl | {"host_writes": {"units": 100}}})
    assert got["host_written_bytes"] is None  # a unit that is not told


@pytest.mark.parametrize(
    "value", ["98,765.432", "1e5", "-3.0", "", " 7", 98765.432, 7, True, None, ["1"], "1" * 400, "٣"]
)
def test_scsi_gigabytes_that_are_none(value):
    got = counters.snapshot({"smartctl": {"scsi_error_counter_log": {"write": {"gigabytes_processed": value}}}})
    assert got["host_written_bytes"] is None and any(
        "write" in words or "host bytes written" in words for words in got["unknown"]
    )


# Figures by hand from the files in data/smartctl, which were written for this project in the form that smartctl 7.3
# prints.
FILES = {
    "sata-samsung.json": {  # 97 656 250 000 x 512 B; 100 - 93; no NAND counter in consumer drives
        "model": "Samsung SSD 860 EVO 500GB",
        "serial": "SYNTHETIC0001",
        "protocol": "ATA",
        "host_written_bytes": 50 * 10**12,
        "host_read_bytes": None,
        "nand_written_bytes": None,
        "percentage_used": 7,
        "pe_cycles_mean": 112,
        "available_spare_percent": None,
        "power_on_hours": 9421,
        "power_cycles": 312,
        "unsafe_shutdowns": 41,
        "media_errors": 3,
        "temperature_C": 34,
        "exit_status_bits": [],
    },
    # statistics: 393 216 001 234 x 512 B (6 000 000 x 32 MiB says attribute 241); NAND 9 000 000 x 32 MiB; exit status
    # 64
    "sata-intel-dc.json": {
        "protocol": "ATA",
        "host_written_bytes": 201_326_592_631_808,
        "host_written_unit_bytes": 512,
        "host_read_bytes": 134_217_728_397_824,
        "nand_written_bytes": 301_989_888_000_000,
        "percentage_used": 5,
        "workload_wear_percent": 5.0,
        "workload_timer_min": 1_199_000,
        "available_spare_percent": 100,
        "available_spare_threshold_percent": 10,
        "unsafe_shutdowns": 12,
        "temperature_C": 31,
        "temperature_max_C": 58,
        "exit_status_bits": [6],
        "unknown": [],
    },
    "sata-micron.json": {  # 50 000 000 000 x 512 B; pages 800 000 000 and + 1 200 000 000
        "host_written_bytes": 25_600_000_000_000,
        "nand_written_bytes": None,
        "host_program_pages": 800_000_000,
        "nand_program_pages": 2_000_000_000,
        "percentage_used": 23,
        "pe_cycles_mean": 355,
        "reallocated": 4,
        "xor_recoveries": 1,
        "soft_ecc_errors": 17,
        "temperature_C": 40,
    },
    "nvme-big.json": {  # 2^70 + 1 and 2^53 + 1 units: read exactly, and more than PCIe carries in its hours
        "protocol": "NVMe",
        "host_written_bytes": None,
        "host_read_bytes": None,
        "nand_written_bytes": None,
        "percentage_used": 107,
        "available_spare_percent": 9,
        "available_spare_threshold_percent": 10,
        "critical_warning": 4,
        "health_ok": False,
        "power_on_hours": 40001,
        "power_cycles": 41,
        "unsafe_shutdowns": 11,
        "media_errors": 2,
        "error_log_entries": 63,
        "temperature_C": 61,
        "warning_temp_min": 17,
        "critical_temp_min": 3,
        "capacity_bytes": 15_362_991_415_296,
        "exit_status_bits": [3],
    },
    "sas.json": {  # 98 765.432 GB, 212 345.678 GB of 10^9 bytes; 1 + 2 + 4 uncorrected
        "protocol": "SCSI",
        "model": "SYNTH SAS SSD 960",
        "firmware": "0101",
        "host_written_bytes": 98_765_432_000_000,
        "host_written_unit_bytes": 10**6,
        "host_read_bytes": 212_345_678_000_000,
        "nand_written_bytes": None,
        "percentage_used": 12,
        "power_on_hours": 18000,
        "power_cycles": 91,
        "media_errors": 7,
        "uncorrectable_reads": 1,
        "reallocated": 6,
        "temperature_C": 38,
        "available_spare_percent": None,
    },
    # not in the database: 241 might be sectors, MiB, 32 MiB or GiB, 177 and 231 and 233 anything
    "sata-unknown.json": {
        "host_written_bytes": None,
        "host_read_bytes": None,
        "nand_written_bytes": None,
        "percentage_used": None,
        "pe_cycles_mean": None,
        "power_on_hours": 700,
        "power_cycles": 1210,
        "reallocated": 0,
        "temperature_C": 33,
        "in_database": False,
        "exit_status_bits": [2],
    },
    "usb-bridge.json": {  # a bridge that fills the health log with zeros: nothing of it is believed
        "model": "SYNTHETIC USB NVMe 1TB",
        "protocol": "NVMe",
        "host_written_bytes": None,
        "percentage_used": None,
        "available_spare_percent": None,
        "power_on_hours": None,
        "power_cycles": None,
        "temperature_C": None,
        "media_errors": None,
        "health_ok": None,
        "capacity_bytes": 1_000_204_886_016,
    },
    "sata-wd.json": {  # 14 800 GiB host; 18 500 + 21 000 GiB on the NAND, of these 18 500 past the SLC cache
        "host_written_bytes": 15_891_378_995_200,
        "host_read_bytes": 10_630_044_057_600,
        "nand_written_bytes": 42_412_802_048_000,
        "nand_written_tlc_bytes": 19_864_223_744_000,
        "percentage_used": None,
        "pe_cycles_min": 21,
        "pe_cycles_mean": 37,
        "pe_cycles_max": 74,
        "unsafe_shutdowns": 8,
        "available_spare_percent": 100,
    },
}


def test_a_scsi_drive_without_a_sensor_is_not_freezing():
    document = json.loads((DATA / "sas.json").read_text()) | {"temperature": {"current": 0, "drive_trip": 0}}
    got = counters.snapshot({"smartctl": document})
    assert got["temperature_C"] is None and any(words.startswith("temperature:") for words in got["unknown"])


@pytest.mark.parametrize("name", FILES)
def test_files_written_for_the_project(name):
    got = counters.snapshot({"smartctl": json.loads((DATA / name).read_text())})
    assert {key: got[key] for key in FILES[name]} == FILES[name]
    assert len(FILES) == len(list(DATA.glob("*.json")))


# The same for the folder of real outputs, by hand from their raw values; NVMe: data units x 512 000.
SAMPLES = {
    "INTEL_SSDPE2KX080T8_1.json": (94_678_652_928_000, 10_304_922_624_000, 0, 100, 12164, 22, 8, 0, 29),
    "KXG60ZNV512G_TOSHIBA_2.json": (1_977_242_624_000, 8_086_917_120_000, 1, 100, 12173, 30, 15, 0, 37),
    "SAMSUNG_MZ7WD240HAFV-00003_21.json": (110_825_747_394_560, None, 9, None, 84619, 6, 1, 0, 27),  # x 512
    "SAMSUNG_MZQLB1T9HAJR-00007_19.json": (23_022_280_704_000, 6_320_903_168_000, 0, 100, 20701, 6, 0, 0, 40),
    "SAMSUNG_MZVL21T0HCLR-00B00_23.json": (58_195_344_896_000, 3_682_840_576_000, 16, 100, 10423, 6, 1, 0, 29),
    "WDC_WD20EFRX-68EUZN0_17.json": (None, None, None, None, 47657, 3, None, None, 34),
    "nvme-null-CT250P2SSD8-nvme0.json": (513_484_800_000, 2_525_571_584_000, 0, 100, 10147, 8, 5, 0, 26),
    "nvme-null-INTEL_SSDPEDMD400G4-nvme0.json": (335_366_573_568_000, 13_924_994_560_000, 5, 100, 41951, 55, 4, 0, 28),
    "nvme-null-Micron_7300_MTFDHBE1T6TDG-nvme0.json": (173_109_248_000, 442_880_000, 0, 100, 5100, 16, 0, 0, 22),
    "scrutiny-smart-ata.json": (None, None, None, None, 1730, 9, None, None, 32),
    "scrutiny-smart-fail.json": (None, None, None, None, None, None, None, None, None),
    "scrutiny-smart-nvme.json": (3_979_996_672_000, 4_870_071_808_000, 0, 100, 2401, 266, 43, 0, 36),
    "scrutiny-smart-sat.json": (
        None,
        None,
        None,
        None,
        2725,
        354,
        None,
        0,
        29,
    ),  # hours: the low 24 bits of attribute 9
    "scrutiny-smart-scsi.json": (86_472_611_000_000, 176_987_332_000_000, None, None, 43549, None, None, 0, 34),
}
COLUMNS = (
    "host_written_bytes",
    "host_read_bytes",
    "percentage_used",
    "available_spare_percent",
    "power_on_hours",
    "power_cycles",
    "unsafe_shutdowns",
    "media_errors",
    "temperature_C",
)


@pytest.mark.skipif(
    not os.environ.get("SSDRIG_SAMPLES"), reason="SSDRIG_SAMPLES names no folder with smartctl outputs of real drives"
)
@pytest.mark.parametrize("name", SAMPLES)
def test_real_smartctl_outputs(name):
    path = Path(os.environ["SSDRIG_SAMPLES"]) / name
    if not path.exists():
        pytest.skip(f"no {name} in SSDRIG_SAMPLES")
    got = counters.snapshot({"smartctl": json.loads(path.read_text())})
    assert tuple(got[column] for column in COLUMNS) == SAMPLES[name]
    assert got["nand_written_bytes"] is None and got["exit_status_bits"] == ([1] if "fail" in name else [])


numbers = st.one_of(
    st.integers(-3, 300),
    st.integers(2**60, 2**130),
    st.just(10**400),
    st.builds(lambda: -(10**5000)),
    st.floats(),
    st.booleans(),
    st.none(),
)
junk = st.recursive(
    numbers | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "current",
                    "hours",
                    "bytes",
                    "exit_status",
                    "id",
                    "passed",
                    "protocol",
                    "units",
                    "bytes_per_unit",
                    "write",
                    "gigabytes_processed",
                    "data_units_written",
                    "data_units_written_s",
                    "data_units_written_le",
                    "temperature",
                    "power_cycles",
                    "critical_warning",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
TOP = [
    "smartctl",
    "device",
    "model_name",
    "model_family",
    "user_capacity",
    "temperature",
    "power_on_time",
    "power_cycle_count",
    "smart_status",
    "nvme_smart_health_information_log",
    "nvme_pci_vendor",
    "scsi_error_counter_log",
    "scsi_grown_defect_list",
    "endurance_used",
    "host_writes",
]


@settings(max_examples=120, deadline=None)
@given(
    st.dictionaries(st.sampled_from(TOP), junk, max_size=8) | junk,
    st.sampled_from(["NVMe", "ATA", "SCSI", None]),
    st.dictionaries(
        st.sampled_from(
            ["t_start_ns", "t_end_ns", "tools", "units", "drive", "reason", "log_02h", "log_c0h", "log_cah"]
        ),
        junk,
        max_size=4,
    ),
)
def test_any_document(smartctl, protocol, more):
    """Never an exception, always all keys, never a number that is negative or not finite."""
    if protocol and isinstance(smartctl, dict):
        smartctl = {**smartctl, "device": {"protocol": protocol}}
    got = counters.snapshot({"smartctl": smartctl, **more})
    assert tuple(got) == counters.KEYS
    for name, value in got.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and not name.startswith("temperature"):
            assert value >= 0 and (isinstance(value, int) or math.isfinite(value))
    assert all(isinstance(words, str) and len(words) < 400 for words in got["unknown"])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["log_02h", "log_c0h", "log_09h", "log_22h", "log_cah", "log_d0h"]),
    st.integers(0, 511),
    st.sampled_from([0x8086, 0x1344, 0x15B7]),
)
def test_a_page_that_is_cut_off(name, size, maker):
    """What was cut off is not there, and words say so, except for pages whose content ends before their cut."""
    pages = {
        "log_02h": PAGE_02H,
        "log_c0h": PAGE_C0H,
        "log_09h": PAGE_09H,
        "log_22h": PAGE_22H,
        "log_cah": CAH,
        "log_d0h": page({176: (8, 5 * 10**12)}),
    }
    got = counters.snapshot({"smartctl": {"nvme_pci_vendor": {"id": maker}}, name: pages[name][:size].hex()})
    needed = {"log_22h": 64, "log_cah": 32 if maker == 0x15B7 else 12, "log_d0h": 184 if maker == 0x1344 else 0x68}.get(
        name, 512
    )
    if size < needed:
        assert (
            got["nand_written_bytes"] is None and got["host_written_bytes"] is None and got["percentage_used"] is None
        )
        assert any(words.startswith(("log ", "NAND bytes", "health", "everything")) for words in got["unknown"])
