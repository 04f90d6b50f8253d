"""Zones of a zoned drive (NVMe ZNS, host-managed SMR): reported, and reset. A `node` is what guard.Held.path gives, as
in block.py.

Source: linux/blkzoned.h (BLKREPORTZONE, BLKRESETZONE; sectors of 512 bytes; `struct blk_zone` has 64 bytes, `capacity`
since Linux 5.9), zone conditions as in the NVMe Zoned Namespace Command Set Specification, 2.1.1.2.
"""

import fcntl
import os
import struct
from collections.abc import Callable
from typing import NamedTuple

from ssdrig.base.errors import DriveError
from ssdrig.drive.block import Opened

BLKREPORTZONE, BLKRESETZONE = 0xC0101282, 0x40101283
SECTOR_BYTES = 512
HEADER = struct.Struct("=QII")  # first sector, zones asked for (then returned), flags
ZONE = struct.Struct("=QQQBBBB4xQ24x")  # start, length, write pointer, type, condition, -, -, capacity
RANGE = struct.Struct("=QQ")
HAS_CAPACITY = 1  # of the flags
MOST_ZONES = 1024  # of one report
CONVENTIONAL = 1  # type of a zone that is written anywhere
EMPTY, OPEN, FULL = 1, (2, 3), 14  # conditions; open implicitly, open explicitly


class Zone(NamedTuple):
    """`capacity_bytes` of `length_bytes` can be written; `pointer`: where the next write must begin (bytes of the
    drive)."""

    start: int
    length_bytes: int
    capacity_bytes: int
    pointer: int
    condition: int
    conventional: bool


def report(node: str) -> list[Zone]:
    """All zones, in order. Raises DriveError where the drive has none, or cannot be asked."""
    zones: list[Zone] = []
    with Opened(node, os.O_RDONLY) as fd:
        end = os.lseek(fd, 0, os.SEEK_END)
        at = 0
        while at < end:
            buffer = bytearray(HEADER.size + MOST_ZONES * ZONE.size)
            HEADER.pack_into(buffer, 0, at // SECTOR_BYTES, MOST_ZONES, 0)
            fcntl.ioctl(fd, BLKREPORTZONE, buffer)
            some = unpacked(bytes(buffer))
            reached = some[-1].start + some[-1].length_bytes if some else at
            if reached <= at:
                break
            zones, at = zones + some, reached
    if not zones:
        raise DriveError(f"zones of {node}", "none", "use a plan for drives without zones")
    if at < end:
        raise DriveError(f"zones of {node} up to byte {end}", f"none from byte {at} on", "see the kernel's log (dmesg)")
    return zones


def unpacked(answer: bytes) -> list[Zone]:
    """The zones of one answer to BLKREPORTZONE."""
    _, count, flags = HEADER.unpack_from(answer)
    zones = []
    for index in range(count):
        start, length, pointer, kind, condition, _, _, capacity = ZONE.unpack_from(
            answer, HEADER.size + index * ZONE.size
        )
        start, length, pointer, capacity = (
            sectors * SECTOR_BYTES for sectors in (start, length, pointer, capacity if flags & HAS_CAPACITY else length)
        )
        zones.append(Zone(start, length, capacity, pointer, condition, kind == CONVENTIONAL))
    return zones


def reset(node: str, on_zone: Callable[[int], None] = lambda done: None) -> list[Zone]:
    """Reset each zone that holds data, and see that all are empty: their data is lost. on_zone gets the number of zones
    done. Returns the zones as they are then. Raises DriveError."""
    used = [zone for zone in report(node) if not zone.conventional and zone.condition != EMPTY]
    with Opened(node, os.O_RDWR) as fd:
        for done, zone in enumerate(used, 1):
            where = RANGE.pack(zone.start // SECTOR_BYTES, zone.length_bytes // SECTOR_BYTES)
            fcntl.ioctl(fd, BLKRESETZONE, where)
            on_zone(done)
    zones = report(node)
    left = [zone for zone in zones if not zone.conventional and zone.condition != EMPTY]
    if left:
        seen = f"{len(left)} of {len(zones)} that are not, the first at byte {left[0].start}"
        raise DriveError("each zone to be empty after its reset", seen, "read-only and offline zones cannot be used")
    return zones


def as_json(zones: list[Zone]) -> dict:
    """{"zones", "conventional", "zone_bytes", "capacity_bytes"}: how many, and what one of them holds."""
    of_pointer = [zone for zone in zones if not zone.conventional] or zones
    return {
        "zones": len(zones),
        "conventional": sum(zone.conventional for zone in zones),
        "zone_bytes": of_pointer[0].length_bytes,
        "capacity_bytes": of_pointer[0].capacity_bytes,
    }
