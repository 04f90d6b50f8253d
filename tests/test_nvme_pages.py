"""NVMe health pages: against pages laid out by hand, and any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import PAGE_02H, PAGE_09H, PAGE_C0H

from ssdrig.drive import nvme_pages
from ssdrig.errors import DriveError


def test_02h():
    got = nvme_pages.decode_02h(PAGE_02H)
    assert got["temperature_K"] == 313 and got["temperature_C"] == 40 and got["temperature_sensors_C"] == [41, -13]
    assert got["host_read_bytes"] == 15_794_760 * 512_000 and got["host_written_bytes"] == 2**70 * 512_000
    assert (got["critical_warning"], got["available_spare_percent"], got["available_spare_threshold_percent"], got["percentage_used"]) == (4, 97, 10, 101)
    assert (got["host_reads"], got["host_writes"], got["controller_busy_min"], got["power_cycles"]) == (97, 98, 463, 12)
    assert (got["power_on_hours"], got["unsafe_shutdowns"], got["media_errors"], got["error_log_entries"]) == (4321, 5, 6, 7)
    assert (got["warning_temp_min"], got["critical_temp_min"]) == (8, 9)


def test_temperature_that_is_not_reported():
    assert nvme_pages.decode_02h(bytes(512))["temperature_C"] is None


def test_c0h():
    got = nvme_pages.decode_c0h(PAGE_C0H)
    assert got["nand_written_bytes"] == 3 * 2**65 and got["nand_read_bytes"] == 17
    assert (got["bad_user_blocks"], got["bad_user_blocks_normalised"], got["uncorrectable_reads"]) == (2**40, 99, 3)
    assert (got["erases_max"], got["erases_min"], got["throttle_events"], got["incomplete_shutdowns"]) == (321, 123, 2, 4)
    assert (got["free_blocks_percent"], got["capacitor_health_percent"], got["unaligned_io"], got["plp_starts"]) == (77, 100, 55, 1)
    assert got["endurance_estimate"] == 10**15 and "erases_mean" not in got
    assert nvme_pages.decode_c0h(PAGE_C0H[:494] + b"\x05\x00" + PAGE_C0H[496:])["erases_mean"] == 222


def test_c0h_of_another_maker_is_refused():
    with pytest.raises(DriveError, match="GUID"):
        nvme_pages.decode_c0h(PAGE_C0H[:511] + b"\0")
    with pytest.raises(DriveError, match="GUID"):
        nvme_pages.decode_c0h(PAGE_C0H[:496] + nvme_pages.C0_GUID[::-1])


def test_09h():
    got = nvme_pages.decode_09h(PAGE_09H)
    assert (got["host_read_bytes"], got["host_written_bytes"], got["nand_written_bytes"]) == (40 * 10**9, 50 * 10**9, 120 * 10**9)
    assert (got["available_spare_percent"], got["percentage_used"], got["media_errors"]) == (100, 2, 1)


@pytest.mark.parametrize("decode", [nvme_pages.decode_02h, nvme_pages.decode_c0h, nvme_pages.decode_09h])
@pytest.mark.parametrize("size", [0, 511, 513, 4096])
def test_length(decode, size):
    with pytest.raises(DriveError, match=f"{size}"):
        decode(bytes(size))


@given(st.binary(min_size=512, max_size=512))
def test_any_page_decodes(data):
    got = nvme_pages.decode_02h(data)
    assert got["data_units_written"] == sum(b << 8 * i for i, b in enumerate(data[48:64]))
    nvme_pages.decode_09h(data)
    assert nvme_pages.decode_c0h(data[:496] + nvme_pages.C0_GUID)["nand_written_bytes"] == sum(b << 8 * i for i, b in enumerate(data[:16]))


def test_fields_do_not_overlap():
    for fields in (nvme_pages.FIELDS_02H, nvme_pages.FIELDS_C0H | nvme_pages.FIELDS_C0H_V5, nvme_pages.FIELDS_09H):
        spans = sorted(fields.values())
        assert all(a + size <= b for (a, size), (b, _) in zip(spans, spans[1:], strict=False))
        assert spans[-1][0] + spans[-1][1] <= 512
