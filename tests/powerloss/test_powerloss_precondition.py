"""powerloss/precondition.py: what a drive has been through before the first cut."""

import errno

import numpy as np
import pytest
from memory_drive import MemoryDrive

from selfcheck.powerloss_cuts import Campaign
from ssdrig.base.errors import DriveError
from ssdrig.powerloss import precondition

MIB = 1 << 20


def test_all_is_written_in_order_and_then_at_random():
    drive, progress = MemoryDrive(5 * MIB), []
    made = precondition.write(drive, 4 * MIB + 8192, 2, 1, lambda done, of: progress.append((done, of)))
    size = 4 * MIB + 8192
    assert made.written_bytes == 3 * size and {of for _, of in progress} == {3 * size}
    assert drive.bytes[:size].reshape(-1, 4096).any(axis=1).all() and not drive.bytes[size:].any()
    units = [unit.tobytes() for unit in drive.bytes[:size].reshape(-1, 4096)]
    assert len(set(units)) == len(units)


def test_nothing_at_random_is_the_order_alone():
    drive = MemoryDrive(2 * MIB)
    assert precondition.write(drive, MIB, 0, 1) == (MIB, (0.0, 0.0)) and drive.bytes[MIB - 8 : MIB].any()


def test_a_drive_that_refuses_ends_it():
    drive = MemoryDrive(MIB)
    drive.refuses = True
    with pytest.raises(DriveError, match=str(errno.EIO)):
        precondition.write(drive, MIB, 1, 1)


@pytest.mark.slow
def test_a_preconditioned_drive_collects_garbage(tmp_path):
    """What it erases while 32 MiB are written at random: next to nothing of a fresh drive."""
    erased = []
    for times in (None, 1):
        one = Campaign("sata-tlc", tmp_path / str(times), capacity_bytes=256 * MIB)
        drive, chance = one.device.drive, np.random.default_rng(1)
        if times is not None:
            made = precondition.write(one.transport, drive.capacity_bytes, times, 1)
            assert made.iops[1] < made.iops[0]
        before = drive.pe_counts().sum()
        precondition.write(one.transport, 32 * MIB, 1, int(chance.integers(99)))
        erased.append(int(drive.pe_counts().sum() - before))
    assert erased[1] > erased[0] + 4
