"""Write amplification from erase counts, where nothing better is, and mean P/E cycles on the screen."""

from dataclasses import replace

import pytest
from ata_documents import snap

from ssdrig.drive.wear import endurance, standing, wa
from ssdrig.drive.wear import screen as wear_screen
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import SATA_TLC

GB = 10**9


def samsung(cycles: int, sectors: int, **more) -> dict:
    attributes = ((177, "Wear_Leveling_Count", cycles, 2), (241, "Total_LBAs_Written", sectors))
    return snap("Samsung based SSDs", *attributes, user_capacity={"bytes": 128_035_676_160}, **more) | {"utc_ns": None}


def test_estimate_holds_capacity_and_raw_nand():
    got = wa.estimate(samsung(5800, 62 * 10**9))
    for raw in (128_035_676_160, 128 << 30):
        assert abs(5800 * raw / (62 * 10**9 * 512) - got.value) <= got.error
    assert got.flags == ("estimated",) and got.relative_error < 0.05


@pytest.mark.parametrize("op", [0.12, 0.25])
@pytest.mark.parametrize("passes", [1, 3])
def test_estimate_of_the_virtual_drive_is_within_its_error(op, passes):
    """At each whole cycle from 1 on, after random writes: error at most 5 % from 20 cycles on."""
    preset = replace(SATA_TLC, block_pages=64, op=op)
    drive = VirtualDrive(preset, capacity_bytes=4096 * 20_000, latency=False)
    raw_bytes = len(drive.pe_counts()) * preset.block_pages * 4096
    drive.precondition("seq", passes)
    checked, at_20 = 0, 0
    for _ in range(60):
        drive.precondition("random", 0.5, passes)
        ledger = drive.ledger()
        host, mean = ledger["host_write_bytes"], int(ledger["pe_mean"])
        snapshot = {"pe_cycles_mean": mean, "pe_cycles_source": "P/E", "host_written_bytes": host}
        snapshot |= {"host_written_unit_bytes": 1, "host_written_source": "host", "capacity_bytes": 4096 * 20_000}
        got = wa.estimate(snapshot, raw_bytes)
        if got is not None and got.value is not None:
            checked += 1
            assert abs(got.value - ledger["wa"]) <= got.error
            if mean >= 20:
                at_20 += 1
                assert got.relative_error <= 0.05
    assert checked > 20 and at_20 > 0


@pytest.mark.parametrize("op", [0.12, 0.25])
def test_estimate_of_a_window_is_within_its_error(op):
    """Between any two of 40 readings of the virtual drive, from 12 cycles on: within 5 % from 40 cycles on."""
    preset = replace(SATA_TLC, block_pages=64, op=op)
    drive = VirtualDrive(preset, capacity_bytes=4096 * 20_000, latency=False)
    raw_bytes = len(drive.pe_counts()) * preset.block_pages * 4096
    drive.precondition("seq", 1)
    readings = []
    for n in range(40):
        drive.precondition("random", 0.5, n + 1)
        ledger = drive.ledger()
        reading = {"pe_cycles_mean": int(ledger["pe_mean"]), "host_written_bytes": ledger["host_write_bytes"]}
        reading |= {"host_written_unit_bytes": 1, "host_written_source": "host", "raw_nand_bytes": raw_bytes}
        readings.append((reading, ledger))
    checked = 0
    for n, (before, first) in enumerate(readings):
        for after, last in readings[n + 1 :]:
            got = wa.between(before, after)
            if got.value is None:
                assert got.why
                continue
            host, nand = (last[key] - first[key] for key in ("host_write_bytes", "nand_write_bytes"))
            assert abs(got.value - nand / host) <= got.error and "estimated" in got.flags
            checked += 1
            if after["pe_cycles_mean"] - before["pe_cycles_mean"] >= 40:
                assert got.relative_error <= 0.05 + 1e-6
    assert checked > 100


def test_window_of_few_cycles_has_no_estimate():
    got = wa.between(samsung(100, 2 * 10**9), samsung(105, 3 * 10**9))
    assert got.value is None and got.host_bytes == 512 * 10**9


@pytest.mark.parametrize("missing", ["pe_cycles_mean", "host_written_bytes", "capacity_bytes"])
def test_estimate_needs_all_three(missing):
    assert wa.estimate(samsung(5800, 62 * 10**9) | {missing: None}) is None
    assert wa.estimate(samsung(2, 2 * 10**9)) is None  # 2 +- 1 cycles


def test_estimate_stands_only_where_nothing_better_is():
    report = standing.report(samsung(5800, 62 * 10**9), {"smartctl": {}}, endurance.Limits(), [], None, 25.0)
    assert report["wa"]["flags"] == ("estimated",)
    counted = samsung(5800, 62 * 10**9) | {"nand_written_bytes": 200 * 10**12, "nand_written_unit_bytes": 1 << 30}
    report = standing.report(counted, {"smartctl": {}}, endurance.Limits(), [], None, 25.0)
    assert report["wa"]["value"] == pytest.approx(200e12 / (62e9 * 512)) and "estimated" not in report["wa"]["flags"]


def test_mean_cycles_are_on_the_screen_without_a_rating():
    report = standing.report(samsung(5800, 62 * 10**9), {"smartctl": {}}, endurance.Limits(), [], None, 25.0)
    assert "Mean P/E cycles 5800" in wear_screen.screen(report, 100, False)


@pytest.mark.parametrize(("sensors", "words"), [([41, None, 60], "sensors 41, –, 60 °C"), ([41], None), (None, None)])
def test_sensors_are_beside_the_temperature(sensors, words):
    snapshot = samsung(5800, 62 * 10**9) | {"temperature_C": 41, "temperature_sensors_C": sensors}
    report = standing.report(snapshot, {"smartctl": {}}, endurance.Limits(), [], None, 25.0)
    text = " ".join(wear_screen.screen(report, 100, False).split())
    assert "41 °C" in text and (words in text if words else "sensors" not in text)
