"""Flexible Data Placement of the virtual drive: one reclaim group with some reclaim unit handles, each a placement
handle of namespace 1. SIMULATED.

It is always on, and its statistics begin with the drive. The flash has one open block for all writes (ftl.py): handles
are counted and their units filled, but no data is kept apart, so write amplification is the same by one handle as by
several. A write that names no handle, or one that there is not, belongs to the first.

Sources: NVM Express Base Specification 2.1 (logs 20h to 23h, features 1Dh and 1Eh); NVM Command Set Specification 1.1
(I/O Management Receive and Send). Little endian."""

import struct
from collections import deque
from collections.abc import Mapping, Sequence

from ssdrig.base.nvme_fdp import CONFIGURATIONS, DESCRIPTOR_BYTES, EVENT_BYTES, EVENTS, HEAD_BYTES, STATISTICS, USAGE
from ssdrig.virtual.flash.constants import PAGE

GROUP = 1  # the endurance group
MOST_EVENTS = 63  # of a page of 4 KiB
HOST_EVENTS = 1  # log specific parameter of log 23h; 0 asks for the controller's, and it has none
INITIALLY_ISOLATED, OF_HOST, VALID = 1, 1, 1 << 7
NOT_FILLED, INVALID_ID = 0x00, 0x03  # events
HAS_ID, HAS_NAMESPACE, HAS_PLACE = 1, 2, 4  # flags of an event
STATUS, UPDATE = 1, 1  # operations of I/O Management Receive and Send
DIRECTIVE = 2  # type of a write that names a placement identifier


class Placement:
    """`events`: the last of the host's, as in log 23h."""

    def __init__(self, handles: int, block_pages: int):
        self._unit_bytes = block_pages * PAGE
        self._filled_bytes = [0] * handles  # of the unit that each handle writes to
        self._asked: list[set[int]] = [set() for _ in range(handles)]  # events that a host has switched on
        self.events: deque[bytes] = deque(maxlen=MOST_EVENTS)

    def wrote(self, placement_id: int, size: int, t_ms: int) -> None:
        """A host wrote `size` bytes by this identifier."""
        handle = placement_id if placement_id < len(self._filled_bytes) else 0
        if handle != placement_id:
            self._event(INVALID_ID, placement_id, handle, t_ms)
        self._filled_bytes[handle] = (self._filled_bytes[handle] + size) % self._unit_bytes

    def update(self, ids: Sequence[int], t_ms: int) -> None:
        """Have these handles go on with an empty unit. Raises ValueError, nothing changed, for one that there is
        not."""
        if any(placement_id >= len(self._filled_bytes) for placement_id in ids):
            raise ValueError(f"placement handles below {len(self._filled_bytes)}")
        for placement_id in ids:
            if self._filled_bytes[placement_id]:
                self._event(NOT_FILLED, placement_id, placement_id, t_ms)
            self._filled_bytes[placement_id] = 0

    def emptied(self) -> None:
        """The drive was purged: every handle has an empty unit."""
        self._filled_bytes = [0] * len(self._filled_bytes)

    def ask(self, handle: int, kinds: Sequence[int], on: bool) -> None:
        """Switch these events of a handle on or off. Raises ValueError for a handle that there is not."""
        if handle >= len(self._asked):
            raise ValueError(f"a placement handle below {len(self._asked)}")
        self._asked[handle] = self._asked[handle] | set(kinds) if on else self._asked[handle] - set(kinds)

    def _event(self, kind: int, placement_id: int, handle: int, t_ms: int) -> None:
        if kind not in self._asked[handle]:
            return
        row = bytearray(EVENT_BYTES)
        row[0], row[1] = kind, HAS_ID | HAS_NAMESPACE | HAS_PLACE
        struct.pack_into("<HQ", row, 2, placement_id, t_ms & (1 << 48) - 1)
        struct.pack_into("<I", row, 12, 1)
        struct.pack_into("<HH", row, 32, 0, handle)
        self.events.append(bytes(row))

    def page(self, lid: int, parameter: int, ledger: Mapping) -> bytes:
        """Log 20h, 21h, 22h or 23h.

        parameter: the log specific one of the command.
        ledger: of the drive."""
        handles = len(self._filled_bytes)
        if lid == CONFIGURATIONS:
            size = DESCRIPTOR_BYTES + 4 * handles
            head = struct.pack("<HBBI8x", 0, 0, 0, HEAD_BYTES + size)
            row = struct.pack("<HBBIHHIQI", size, VALID, 0, 1, handles, handles - 1, 1, self._unit_bytes, 0)
            return head + row.ljust(DESCRIPTOR_BYTES, b"\0") + bytes([INITIALLY_ISOLATED, 0, 0, 0]) * handles
        if lid == USAGE:
            return struct.pack("<H6x", handles) + bytes([OF_HOST, *bytes(7)]) * handles
        if lid == STATISTICS:
            counts = (ledger["host_write_bytes"], ledger["nand_write_bytes"], ledger["erases"] * self._unit_bytes)
            return b"".join(int(count).to_bytes(16, "little") for count in counts).ljust(64, b"\0")
        assert lid == EVENTS
        listed = list(self.events) if parameter & HOST_EVENTS else []
        return struct.pack("<I60x", len(listed)) + b"".join(listed)

    def asked(self, handle: int) -> bytes:
        """The events of a handle that there are, each with whether it is on: feature 1Eh. Raises ValueError."""
        if handle >= len(self._asked):
            raise ValueError(f"a placement handle below {len(self._asked)}")
        return b"".join(bytes([kind, kind in self._asked[handle]]) for kind in (NOT_FILLED, INVALID_ID))

    def status(self, lba_shift: int) -> bytes:
        """What I/O Management Receive answers: of each handle, what can still be written to its unit."""
        rows = (
            struct.pack("<HHIQ16x", handle, handle, 0, self._unit_bytes - filled_bytes >> lba_shift)
            for handle, filled_bytes in enumerate(self._filled_bytes)
        )
        return struct.pack("<14xH", len(self._filled_bytes)) + b"".join(rows)
