"""SMART documents reduced to wear numbers: hand-made documents, real smartctl output."""

import json
import os
from pathlib import Path

import pytest
from pages import PAGE_02H, PAGE_09H, PAGE_C0H

from ssdrig.drive import counters


def document(**more) -> dict:
    return {"n": 3, "reason": "poll", "t_start_ns": 1_000, "t_end_ns": 3_000, "simulated": True, "smartctl": {}, "log_02h": PAGE_02H.hex(),
            "log_c0h": PAGE_C0H.hex(), "log_09h": PAGE_09H.hex()} | more  # fmt: skip


def test_snapshot_from_pages():
    assert counters.snapshot(document()) == {
        "t_ns": 2_000, "t_start_ns": 1_000, "t_end_ns": 3_000, "reason": "poll", "simulated": True,
        "host_written_bytes": 2**70 * 512_000, "host_read_bytes": 15_794_760 * 512_000, "host_unit_bytes": 512_000,
        "nand_written_bytes": 3 * 2**65, "nand_unit_bytes": 1, "nand_source": "c0h", "percentage_used": 101, "available_spare_percent": 97,
        "temperature_C": 40, "power_on_hours": 4321, "power_cycles": 12, "unsafe_shutdowns": 5, "media_errors": 6,
    }  # fmt: skip


def test_snapshot_takes_the_best_nand_counter():
    got = counters.snapshot(document(log_c0h=None))
    assert (got["nand_written_bytes"], got["nand_unit_bytes"], got["nand_source"]) == (120 * 10**9, 10**9, "09h")
    got = counters.snapshot(document(log_c0h=bytes(512).hex()))  # a layout that is not OCP's
    assert got["nand_source"] == "09h"
    got = counters.snapshot(document(log_c0h=None, log_09h=None))
    assert (got["nand_written_bytes"], got["nand_unit_bytes"], got["nand_source"]) == (None, None, None)


def test_snapshot_of_a_drive_that_says_nothing():
    got = counters.snapshot({"smartctl": {"ata_smart_attributes": {"table": []}}})
    assert got["host_written_bytes"] is None and got["host_unit_bytes"] is None and got["t_ns"] is None and got["simulated"] is False


def test_integers_past_2_53_come_from_their_strings():
    log = {"data_units_written": 2**63, "data_units_written_s": str(2**70 + 1), "percentage_used": 3}
    got = counters.snapshot({"smartctl": {"nvme_smart_health_information_log": log}})
    assert got["host_written_bytes"] == (2**70 + 1) * 512_000 and got["percentage_used"] == 3 and got["temperature_C"] is None


def samples() -> list[Path]:
    folder = os.environ.get("SSDRIG_SAMPLES")
    return sorted(Path(folder).rglob("*.json")) if folder else []


@pytest.mark.skipif(not samples(), reason="SSDRIG_SAMPLES names no folder with smartctl outputs of real drives")
def test_real_smartctl_outputs():
    """What smartctl itself says of the drive in other places must agree."""
    nvme = 0
    for path in samples():
        smartctl = json.loads(path.read_text())
        got = counters.snapshot({"smartctl": smartctl})
        log = smartctl.get("nvme_smart_health_information_log")
        if log is None:
            assert got["host_written_bytes"] is None
            continue
        nvme += 1
        assert got["host_written_bytes"] == log["data_units_written"] * 512_000 > 0, path.name
        assert got["host_read_bytes"] == log["data_units_read"] * 512_000
        assert got["power_on_hours"] == smartctl["power_on_time"]["hours"] and got["power_cycles"] == smartctl["power_cycle_count"]
        assert got["temperature_C"] == smartctl["temperature"]["current"] and 0 <= got["available_spare_percent"] <= 100
        assert got["nand_written_bytes"] is None and got["nand_source"] is None
    assert nvme > 0


def test_a_recorded_smartctl_output():
    """smartctl 7.3 of a 512 GB Toshiba KXG60ZNV512G; a public sample, serial number left out."""
    log = {"available_spare": 100, "available_spare_threshold": 10, "controller_busy_time": 463, "critical_comp_time": 0, "critical_warning": 0,
           "data_units_read": 15794760, "data_units_written": 3861802, "host_reads": 97929810, "host_writes": 99025670, "media_errors": 0,
           "num_err_log_entries": 0, "percentage_used": 1, "power_cycles": 30, "power_on_hours": 12173, "temperature": 37,
           "temperature_sensors": [37], "unsafe_shutdowns": 15, "warning_temp_time": 0}  # fmt: skip
    got = counters.snapshot({"smartctl": {"nvme_smart_health_information_log": log}})
    assert got["host_written_bytes"] == 1_977_242_624_000 and got["host_read_bytes"] == 8_086_917_120_000
    assert (got["temperature_C"], got["power_cycles"], got["available_spare_percent"], got["power_on_hours"]) == (37, 30, 100, 12173)
    assert (got["percentage_used"], got["unsafe_shutdowns"], got["media_errors"], got["nand_written_bytes"]) == (1, 15, 0, None)
