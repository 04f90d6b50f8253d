"""SMART documents reduced to wear numbers: hand-made documents."""

import pytest
from counter_documents import CAH, DATA_UNITS, NAND_BYTES, document
from no_tables import no_table_of_the_user  # noqa: F401  autouse
from pages import PAGE_02H, PAGE_22H, PAGE_C0H, items, page, page_c0h

from ssdrig.drive.smart import counters, json_numbers

MIB = 1 << 20


def nand_of(got: dict) -> tuple:
    return got["nand_written_bytes"], got["nand_written_unit_bytes"], got["nand_written_source"]


def host_of(got: dict) -> tuple:
    return got["host_written_bytes"], got["host_written_unit_bytes"], got["host_written_source"]


def test_snapshot_from_pages():
    got = counters.snapshot(document())
    assert tuple(got) == counters.KEYS
    assert {name: value for name, value in got.items() if value is not None and name != "sources"} == {
        "health": "failing",
        "health_reasons": [
            {
                "kind": "reliability",
                "state": "failing",
                "words": "its reliability is degraded by media or internal errors",
            },
            {"kind": "media_errors", "state": "warning", "words": "6 media errors"},
            {"kind": "worn_out", "state": "warning", "words": "101 % of its rated life is used"},
        ],
        "counter_units": [],
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
        "temperature_sensors_C": [41, None, -13],
        "power_on_hours": 4321,
        "power_cycles": 12,
        "unsafe_shutdowns": 5,
        "media_errors": 6,
        "error_log_entries": 7,
        "warning_temp_min": 8,
        "critical_temp_min": 9,
        "throttle_1_count": 11,
        "throttle_2_count": 12,
        "throttle_1_s": 13,
        "throttle_2_s": 14,
        "throttle_count": 2,
        "lifetime_energy_Wh": 1500,
        "interval_power_W": 4.5,
        "uncorrectable_reads": 3,
        "soft_ecc_errors": 22,
        "xor_recoveries": 21,
        "refreshes": 23,
        "bad_user_blocks": 2**40,
        "free_blocks_percent": 77,
        "capacitor_health_percent": 100,
        "incomplete_shutdowns": 4,
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
    assert nand_of(got)[2] == "log 09h" and any("log C0h reports 0" in words for words in got["unknown"])
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


@pytest.mark.parametrize(
    ("sensors", "celsius"),
    [([29, 30], [29, 30]), ([29, None, 31], [29, None, 31]), ([29, "x", 5000], [29]), ("x", None), ([], None)],
)
def test_sensors_of_smartctls_copy_keep_their_numbers(sensors, celsius):
    log = {"temperature": 40, "temperature_sensors": sensors}
    got = counters.snapshot({"smartctl": {"nvme_smart_health_information_log": log}})
    assert got["temperature_sensors_C"] == celsius
    assert sum("of sensor" in words for words in got["unknown"]) == 2 * (sensors[1:2] == ["x"])


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
            left
            <= {"simulated", "exit_status_bits", "sources", "unknown", "protocol"}
            | {"health", "health_reasons", "counter_units"}
            and got["health"] == "unknown"
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
