"""nvme_power.py, against pages laid out by hand."""

import pytest

from ssdrig.base import nvme_power
from ssdrig.base.errors import DriveError


def test_log_25h_by_the_offsets_of_libnvme():
    """ver, pmgn, pma, sze, pmc, nphd, smtr, smts, phds, phbs, nphds, vss, phdoc, aipwr, mipwr, mipwrt, ipwrpe of
    libnvme's nvme_power_meas_log."""
    page = bytearray(72)
    page[0:16] = (
        bytes([0, 7]) + (0b0111).to_bytes(2, "little") + (72).to_bytes(4, "little") + bytes([9, 1, 0, 0, 1, 0, 5, 0])
    )
    page[40:44] = (2 << 16 | 512).to_bytes(4, "little")
    page[44:48] = (1 << 16 | 61_234).to_bytes(4, "little")
    page[56] = 12
    out = nvme_power.measurement(bytes(page))
    assert (out["generation"], out["count"], out["error_percent"]) == (7, 265, 12)
    assert out["measuring"] and out["estimated"] and not out["contiguous"]
    assert out["average_power_W"] == pytest.approx(5.12) and out["maximum_power_W"] == pytest.approx(6.1234)
    page[56] = 255
    page[42] = 0
    out = nvme_power.measurement(bytes(page))
    assert out["error_percent"] is None and out["average_power_W"] is None
    with pytest.raises(DriveError):
        nvme_power.measurement(bytes(63))


def test_the_interval_power_of_log_02h():
    page = bytearray(512)
    assert nvme_power.interval_W(bytes(page)) is None
    page[240:244] = (2 << 16 | 416).to_bytes(4, "little")
    assert nvme_power.interval_W(bytes(page)) == pytest.approx(4.16)
