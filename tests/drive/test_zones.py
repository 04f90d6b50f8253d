"""Zones as the kernel reports them, and their reset."""

import struct

import pytest

from ssdrig.base.errors import DriveError
from ssdrig.drive import zones

MIB = 1 << 20
SECTORS = MIB // 512


def answer(*of, capacity=True):
    """The bytes of an answer to BLKREPORTZONE; `of`: (start, length, pointer, type, condition, capacity) in MiB."""
    head = struct.pack("=QII", 0, len(of), int(capacity))
    rows = []
    for start, length, pointer, kind, condition, holds in of:
        sectors = [int(size * SECTORS) for size in (start, length, pointer)]
        row = struct.pack("=QQQBBBB", *sectors, kind, condition, 0, 0)
        rows.append(row + bytes(4) + struct.pack("=Q", int(holds * SECTORS) if capacity else 0) + bytes(24))
    return head + b"".join(rows)


class Kernel:
    """Answers the two ioctls for a drive of two zones of 4 MiB, of which 3 MiB can be written."""

    def __init__(self, *conditions, resets=True):
        self.conditions, self.resets, self.reset = list(conditions), resets, []

    def ioctl(self, fd, request, argument):
        if request == zones.BLKREPORTZONE:
            first = zones.HEADER.unpack_from(argument)[0] // (4 * SECTORS)
            rows = [(4 * i, 4, 4 * i + (1 if c != zones.EMPTY else 0), 2, c, 3) for i, c in enumerate(self.conditions)]
            content = answer(*rows[first:])
            argument[: len(content)] = content
        else:
            assert request == zones.BLKRESETZONE
            start, length = zones.RANGE.unpack(argument)
            self.reset.append((start * 512, length * 512))
            if self.resets:
                self.conditions[start // (4 * SECTORS)] = zones.EMPTY


@pytest.fixture
def node(tmp_path):
    path = tmp_path / "drive"
    with open(path, "wb") as file:
        file.truncate(8 * MIB)
    return str(path)


def use(monkeypatch, kernel):
    monkeypatch.setattr(zones.fcntl, "ioctl", kernel.ioctl)
    return kernel


def test_struct_of_the_kernel_has_64_bytes():
    assert (zones.HEADER.size, zones.ZONE.size, zones.RANGE.size) == (16, 64, 16)


@pytest.mark.parametrize(("capacity", "holds"), [(True, 3 * MIB), (False, 4 * MIB)])
def test_zone_holds_its_capacity_where_the_kernel_reports_one(capacity, holds):
    zones_ = zones.unpacked(answer((0, 4, 1, 2, 2, 3), (4, 4, 4, 1, 0, 4), capacity=capacity))
    assert zones_ == [
        zones.Zone(0, 4 * MIB, holds, MIB, 2, False),
        zones.Zone(4 * MIB, 4 * MIB, 4 * MIB, 4 * MIB, 0, True),
    ]


def test_only_zones_with_data_are_reset(node, monkeypatch):
    kernel = use(monkeypatch, Kernel(zones.EMPTY, zones.FULL))
    reset = zones.reset(node)
    assert kernel.reset == [(4 * MIB, 4 * MIB)] and [zone.condition for zone in reset] == [zones.EMPTY] * 2
    assert zones.as_json(reset) == {"zones": 2, "conventional": 0, "zone_bytes": 4 * MIB, "capacity_bytes": 3 * MIB}


def test_zone_that_stays_as_it_was_is_a_fault(node, monkeypatch):
    use(monkeypatch, Kernel(zones.EMPTY, zones.FULL, resets=False))
    with pytest.raises(DriveError) as error:
        zones.reset(node)
    assert "1 of 2" in error.value.seen and str(4 * MIB) in error.value.seen


def test_report_that_ends_early_is_refused(node, monkeypatch):
    """A zone without a length would be asked for again and again."""
    kernel = use(monkeypatch, Kernel(zones.EMPTY))
    with pytest.raises(DriveError) as error:
        zones.reset(node)
    assert str(8 * MIB) in error.value.expected and str(4 * MIB) in error.value.seen and kernel.reset == []


def test_drive_without_zones_is_refused(node, monkeypatch):
    use(monkeypatch, Kernel())
    with pytest.raises(DriveError):
        zones.report(node)
