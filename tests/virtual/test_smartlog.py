"""The drive's health pages: each field where the standards put it, with its real granularity.

Offsets are those of libnvme's nvme_smart_log, nvme-cli's ocp-smart-extended-log.h and the NVMe endurance group log."""

import pytest

from ssdrig.drive.smart import nvme_pages
from ssdrig.virtual.device import smartlog

HEALTH = {
    "temperature_C": 41.4,
    "available_spare_percent": 98,
    "percentage_used": 11,
    "host_read_bytes": 512_000 * 7,
    "host_write_bytes": 512_000 * 9 + 1,
    "host_read_commands": 1234,
    "host_write_commands": 1 << 70,
    "nand_write_bytes": (1 << 66) + 5,
    "nand_read_bytes": 77,
    "busy_s": 125,
    "power_cycles": 12,
    "power_on_s": 7200,
    "unsafe_shutdowns": 3,
    "media_errors": 4,
    "soft_ecc_errors": 1 << 40,
    "refreshes": (1 << 48) + 3,
    "error_log_entries": 44,
    "over_C": 70,
    "under_C": None,
    "warm_s": 180,
    "hot_s": 60,
    "pe_min": 2,
    "pe_max": 9,
    "free_blocks_percent": 7,
    "plp": True,
    "plp_starts": 6,
    "capacitor_percent": 87,
    "incomplete_dumps": 2,
    "read_only": False,
    "unaligned_commands": 8,
    "used_lbas": 800,
    "rated_write_bytes": 75 * 10**12,
    "level": 1,
    "throttled_count": 258,
    "tmt1_count": 5,
    "tmt2_count": 6,
    "tmt1_s": 70.9,
    "tmt2_s": 80.0,
    "energy_Wh": 1 << 33,
    "interval_W": 1.2345,
    "power_log": None,
    "latency_monitor": None,
}
IDENTITY = {"model": "SIMULATED X", "serial": "S1", "firmware": "F1", "capacity_bytes": 1 << 30, "drive_bytes": 1 << 31}


def field(page: bytes, first: int, last: int) -> int:
    return int.from_bytes(page[first : last + 1], "little")


def test_log_02h():
    page = smartlog.log_02h(HEALTH)
    assert len(page) == 512
    assert page[0] == 0
    assert field(page, 1, 2) == 273 + 41
    assert (page[3], page[4], page[5]) == (98, 10, 11)
    assert field(page, 32, 47) == 7
    assert field(page, 48, 63) == 10  # one byte into the tenth unit: rounded up
    assert field(page, 64, 79) == 1234
    assert field(page, 80, 95) == 1 << 70
    assert field(page, 96, 111) == 2  # whole minutes
    assert field(page, 112, 127) == 12
    assert field(page, 128, 143) == 2
    assert field(page, 144, 159) == 3
    assert (field(page, 160, 175), field(page, 176, 191)) == (4, 44)
    assert (field(page, 192, 195), field(page, 196, 199)) == (3, 1)
    assert field(page, 200, 201) == 273 + 41
    assert page[202:216] == bytes(14) and page[244:] == bytes(268) and page[6:32] == bytes(26)
    assert [field(page, at, at + 3) for at in (216, 220, 224, 228)] == [5, 6, 70, 80]
    assert (field(page, 232, 239), field(page, 240, 243)) == (1 << 33, 1 << 16 | 12345)
    assert nvme_pages.decode_02h(page)["interval_power_W"] == pytest.approx(1.2345)
    coarse = nvme_pages.decode_02h(smartlog.log_02h(HEALTH | {"interval_W": 8.123}))
    assert coarse["interval_power_W"] == pytest.approx(8.12)


@pytest.mark.parametrize(
    "change,bits",
    [
        ({"available_spare_percent": 9}, 1),
        ({"temperature_C": 70.0}, 2),
        ({"over_C": 41}, 2),
        ({"under_C": 42}, 2),
        ({"under_C": 41}, 0),
        ({"percentage_used": 101}, 4),
        ({"percentage_used": 100}, 0),
    ],
)
def test_critical_warning(change, bits):
    assert smartlog.log_02h(HEALTH | change)[0] == bits
    document = smartlog.smartctl_document(IDENTITY, HEALTH | change, 0)
    assert document["smart_status"]["passed"] == (bits == 0)
    assert document["smartctl"]["exit_status"] == (8 if bits else 0)


def test_log_c0h():
    page = smartlog.log_c0h(HEALTH)
    assert len(page) == 512
    assert page[496:].hex(" ") == "c5 af 10 28 ea bf f2 a4 9c 4f 6f 7c c9 14 d5 af"
    assert field(page, 494, 495) == 3
    assert field(page, 0, 15) == (1 << 66) + 5  # bytes, to the byte
    assert field(page, 16, 31) == 77
    assert (field(page, 48, 55), field(page, 56, 63), field(page, 64, 71)) == (0, 4, 1 << 40)
    assert field(page, 81, 87) == (1 << 48) + 3
    assert (field(page, 88, 91), field(page, 92, 95)) == (9, 2)
    assert field(page, 112, 115) == 2
    assert page[120] == 7
    assert field(page, 128, 129) == 87
    assert field(page, 136, 143) == 8
    assert field(page, 152, 159) == 800
    assert field(page, 160, 175) == 6
    assert field(page, 176, 191) == 75 * 10**12


def test_log_09h():
    page = smartlog.log_09h(HEALTH | {"nand_write_bytes": 10**9 + 1})
    assert len(page) == 512
    assert field(page, 32, 47) == 75_000
    assert field(page, 48, 63) == 1
    assert field(page, 80, 95) == 2  # rounded up
    assert field(page, 112, 127) == 1 << 70


def test_smartctl_document_says_what_the_page_says():
    document = smartlog.smartctl_document(IDENTITY, HEALTH, 1_700_000_000)
    log = document["nvme_smart_health_information_log"]
    assert log["data_units_written"] == 10 and log["host_writes"] == 1 << 70 and log["percentage_used"] == 11
    assert document["simulated"] is True and document["model_name"] == "SIMULATED X"
    assert document["user_capacity"] == {"blocks": 1 << 21, "bytes": 1 << 30}
    assert document["temperature"]["current"] == 41
    assert document["power_on_time"] == {"hours": 2} and document["power_cycle_count"] == 12
    assert document["local_time"]["time_t"] == 1_700_000_000


@pytest.mark.parametrize("mean,expected", [(0, 0), (0.5, 1), (10, 1), (10.1, 2), (1000, 100), (1e6, 255)])
def test_percentage_used(mean, expected):
    assert smartlog.percentage_used(mean, 1000) == expected
