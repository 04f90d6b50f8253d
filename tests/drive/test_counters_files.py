"""SMART documents reduced to wear numbers: files written for this project, and outputs of smartctl on real drives."""

import json
import os
from pathlib import Path

import pytest
from no_tables import no_table_of_the_user  # noqa: F401  autouse

from ssdrig.drive.smart import counters

DATA = Path(__file__).parents[1] / "data" / "smartctl"
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
