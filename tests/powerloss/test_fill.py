"""powerloss/fill.py: what a campaign begins with, and that a drive holds it before any power is cut."""

import errno
from types import SimpleNamespace

import pytest
from memory_drive import MemoryDrive

from ssdrig.base.errors import ControlFailed, DriveError
from ssdrig.powerloss import campaign, fill, layout, verdict
from ssdrig.powerloss.history import FLUSH

MIB = 1 << 20
RUN = 7


class Fake(MemoryDrive):
    """Says that it has four times its size, and writes over what it has."""

    def __init__(self, size_bytes):
        super().__init__(size_bytes)
        self.size_bytes = 4 * size_bytes

    def _do(self, slot):
        offset = self.slots.offset[slot]
        self.slots.offset[slot] %= len(self.bytes)
        try:
            return super()._do(slot)
        finally:
            self.slots.offset[slot] = offset


def filled(drive):
    it = object.__new__(campaign._Campaign)
    it.link, it.run, it.stage = drive, RUN, SimpleNamespace(seed=1)
    it.layout = layout.make(4096, drive.size_bytes, 4 * MIB, 64)
    it.contents = campaign.Contents(it.layout, verdict.known(it.layout.base_blocks, fill.SEQ))
    fill.fill(drive, it.layout, RUN)
    return it


def test_drive_that_holds_what_it_was_given_passes():
    filled(MemoryDrive(32 * MIB))._holds_the_fill()


def test_drive_with_a_false_capacity_is_refused_before_its_power_is_cut():
    with pytest.raises(ControlFailed, match="a false capacity"):
        filled(Fake(8 * MIB))._holds_the_fill()
    it = filled(MemoryDrive(32 * MIB))
    it.link.bytes[int(it.layout.canaries[3]) * 4096 + 70] ^= 1
    with pytest.raises(ControlFailed, match="1 of"):
        it._holds_the_fill()


def test_flush_that_is_refused_is_told_from_a_drive_that_goes_away(monkeypatch):
    drive = MemoryDrive(MIB)
    assert fill.flushed(drive)
    status = drive._do
    monkeypatch.setattr(drive, "_do", lambda slot: -errno.EIO if drive.slots.kind[slot] == FLUSH else status(slot))
    assert not fill.flushed(drive)
    drive.gone = "No such device"
    with pytest.raises(DriveError):
        fill.flushed(drive)
