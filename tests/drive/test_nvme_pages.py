"""NVMe health pages: against pages laid out by hand, and any bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import PAGE_02H, PAGE_09H, PAGE_22H, PAGE_C0H, page, page_c0h

from ssdrig.base.errors import DriveError
from ssdrig.drive.smart import nvme_pages


def test_02h():
    got = nvme_pages.decode_02h(PAGE_02H)
    assert (
        got["temperature_K"] == 313 and got["temperature_C"] == 40 and got["temperature_sensors_C"] == [41, None, -13]
    )
    assert got["host_read_bytes"] == 15_794_760 * 512_000 and got["host_written_bytes"] == 2**70 * 512_000
    assert (
        got["critical_warning"],
        got["available_spare_percent"],
        got["available_spare_threshold_percent"],
        got["percentage_used"],
    ) == (4, 97, 10, 101)
    assert (got["host_reads"], got["host_writes"], got["controller_busy_min"], got["power_cycles"]) == (97, 98, 463, 12)
    assert (got["power_on_hours"], got["unsafe_shutdowns"], got["media_errors"], got["error_log_entries"]) == (
        4321,
        5,
        6,
        7,
    )
    assert (got["warning_temp_min"], got["critical_temp_min"]) == (8, 9)
    assert (got["throttle_1_count"], got["throttle_2_count"], got["throttle_1_s"], got["throttle_2_s"]) == (
        11,
        12,
        13,
        14,
    )


def test_02h_sensors_keep_their_numbers():
    at_C = {200: (2, 273 + 41), 206: (2, 273 + 60)}
    assert nvme_pages.decode_02h(page({1: (2, 300)} | at_C))["temperature_sensors_C"] == [41, None, None, 60]


def test_02h_units_are_thousands_of_512_bytes():
    """1 TB of writes is 1 953 125 units: 512 000 B each, not 512 B and not 512 KiB."""
    got = nvme_pages.decode_02h(page({1: (2, 300), 48: (16, 1_953_125)}))
    assert got["host_written_bytes"] == 10**12
    assert got["host_written_bytes"] not in (1_953_125 * 512, 1_953_125 * 512 * 1024)


@pytest.mark.parametrize(
    "raw, watts", [(0x10000 | 45_000, 4.5), (0x20000 | 450, 4.5), (45_000, None), (0x30000 | 45_000, None), (0, None)]
)
def test_interval_power(raw, watts):
    """Scale 1 is 0.1 mW, 2 is 10 mW; 0 is "not reported", 3 is not defined."""
    got = nvme_pages.decode_02h(page({1: (2, 300), 240: (4, raw)}))["interval_power_W"]
    assert got is None if watts is None else got == pytest.approx(watts)


def test_lifetime_energy():
    assert nvme_pages.decode_02h(PAGE_02H)["lifetime_energy_Wh"] == 1500
    assert nvme_pages.decode_02h(page({1: (2, 300)}))["lifetime_energy_Wh"] is None  # 0 is "not reported"


def test_temperature_that_is_not_reported():
    assert nvme_pages.decode_02h(page({3: (1, 100)}))["temperature_C"] is None


def test_c0h():
    got = nvme_pages.decode_c0h(PAGE_C0H)
    assert got["nand_written_bytes"] == 3 * 2**65 and got["nand_read_bytes"] == 17
    assert (got["bad_user_blocks"], got["bad_user_blocks_normalised"], got["uncorrectable_reads"]) == (2**40, 99, 3)
    assert (got["xor_recoveries"], got["soft_ecc_errors"], got["refreshes"]) == (21, 22, 23)
    assert (got["erases_max"], got["erases_min"], got["throttle_events"], got["incomplete_shutdowns"]) == (
        321,
        123,
        2,
        4,
    )
    assert (got["free_blocks_percent"], got["capacitor_health_percent"], got["unaligned_io"], got["plp_starts"]) == (
        77,
        100,
        55,
        1,
    )
    assert got["endurance_estimate"] == 10**15 and "erases_mean" not in got


def test_c0h_of_version_5():
    got = nvme_pages.decode_c0h(PAGE_C0H[:494] + b"\x05\x00" + PAGE_C0H[496:])
    assert (got["erases_mean"], got["media_dies"], got["temperature_max_recorded"], got["command_timeouts"]) == (
        222,
        64,
        81,
        31,
    )
    assert (got["system_program_fails"], got["system_program_fails_normalised"], got["system_uncorrectable_reads"]) == (
        32,
        33,
        34,
    )
    assert (
        got["system_erase_fails"],
        got["peak_power_capability"],
        got["average_power_max"],
        got["lifetime_power"],
    ) == (35, 25, 18, 2**33)


def test_c0h_counts_bytes():
    """OCP's physical media units are bytes: 2 TB, which the host wrote 1 TB for, are 2 and not 2 x 512 000."""
    got = nvme_pages.decode_c0h(page_c0h(2 * 10**12))
    assert got["nand_written_bytes"] / 10**12 == 2


def test_c0h_all_ones_are_not_supported():
    raw = bytearray(PAGE_C0H)
    raw[32:38], raw[56:64], raw[88:92] = b"\xff" * 6, b"\xff" * 8, b"\xff" * 4
    got = nvme_pages.decode_c0h(bytes(raw))
    assert (
        got["bad_user_blocks"] is None
        and got["uncorrectable_reads"] is None
        and got["erases_max"] is None
        and got["erases_min"] == 123
    )


def test_c0h_of_another_maker_is_refused():
    with pytest.raises(DriveError, match="GUID"):
        nvme_pages.decode_c0h(PAGE_C0H[:511] + b"\0")
    with pytest.raises(DriveError, match="GUID"):
        nvme_pages.decode_c0h(PAGE_C0H[:496] + nvme_pages.C0_GUID[::-1])


def test_09h():
    """Billions of bytes: 120 is 120 GB, not 120 data units."""
    got = nvme_pages.decode_09h(PAGE_09H)
    assert (got["host_read_bytes"], got["host_written_bytes"], got["nand_written_bytes"]) == (
        40 * 10**9,
        50 * 10**9,
        120 * 10**9,
    )
    assert got["nand_written_bytes"] != 120 * 512_000
    assert (got["available_spare_percent"], got["percentage_used"], got["media_errors"]) == (100, 2, 1)
    assert nvme_pages.decode_09h(page({3: (1, 100), 64: (16, 50)}))["nand_written_bytes"] is None  # 0 is "not reported"


def test_22h():
    for size in (64, 512):
        got = nvme_pages.decode_22h(PAGE_22H.ljust(size, b"\x55"))
        assert got == {
            "host_written_bytes": 10**12 + 1,
            "nand_written_bytes": 3 * 10**12 + 2,
            "media_erased_bytes": 2 * 10**12,
        }
    with pytest.raises(DriveError, match="63"):
        nvme_pages.decode_22h(PAGE_22H[:63])


@pytest.mark.parametrize("decode", [nvme_pages.decode_02h, nvme_pages.decode_c0h, nvme_pages.decode_09h])
@pytest.mark.parametrize("size", [0, 511, 513, 4096])
def test_length(decode, size):
    with pytest.raises(DriveError, match=f"{size}"):
        decode(bytes([1]) * size)


@pytest.mark.parametrize("decode", [nvme_pages.decode_02h, nvme_pages.decode_09h])
@pytest.mark.parametrize("fill", [b"\0", b"\xff"])
def test_blank_pages_say_nothing(decode, fill):
    with pytest.raises(DriveError, match="zeros or ones"):
        decode(fill * 512)


@settings(max_examples=50, deadline=None)
@given(st.binary(min_size=512, max_size=512).filter(lambda data: not nvme_pages.is_blank(data)))
def test_any_page_decodes(data):
    got = nvme_pages.decode_02h(data)
    assert got["data_units_written"] == sum(b << 8 * i for i, b in enumerate(data[48:64]))
    nvme_pages.decode_09h(data)
    nand = sum(b << 8 * i for i, b in enumerate(data[:16]))
    assert nvme_pages.decode_c0h(data[:496] + nvme_pages.C0_GUID)["nand_written_bytes"] == (
        None if nand == 2**128 - 1 else nand
    )
    assert nvme_pages.decode_22h(data)["host_written_bytes"] == nand


def test_fields_do_not_overlap():
    tables = (
        nvme_pages.FIELDS_02H,
        nvme_pages.FIELDS_C0H | nvme_pages.FIELDS_C0H_V5,
        nvme_pages.FIELDS_09H,
        nvme_pages.FIELDS_22H,
    )
    for table in tables:
        spans = sorted(table.values())
        assert all(a + size <= b for (a, size), (b, _) in zip(spans, spans[1:], strict=False))
        assert spans[-1][0] + spans[-1][1] <= 512
