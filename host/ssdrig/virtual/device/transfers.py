"""Data that a host sends after it was asked for: ready-to-transfer PDUs out, H2CData PDUs in, for one connection."""

import struct
from collections import deque

import numpy as np

from ssdrig.virtual.device import pdu
from ssdrig.virtual.device.pdu import ProtocolError

MAX_TRANSFERS = 8  # at a time; further commands wait for their turn


class Transfers:
    """The commands of one connection whose data is still to come."""

    def __init__(self):
        self._open: dict[int, tuple[bytes, np.ndarray, int]] = {}  # tag -> (command, data, bytes that have come)
        self._turns: deque[tuple[bytes, int]] = deque()  # (command, bytes)
        self._next_tag = 0

    @property
    def waiting(self) -> int:
        """Commands that wait for their turn."""
        return len(self._turns)

    def want(self, sqe: bytes, need: int) -> None:
        """A command that needs this many bytes."""
        self._turns.append((sqe, need))

    def grants(self) -> list[bytes]:
        """Ready-to-transfer PDUs for the commands whose turn it is."""
        out = []
        while self._turns and len(self._open) < MAX_TRANSFERS:
            sqe, need = self._turns.popleft()
            while self._next_tag in self._open:
                self._next_tag = (self._next_tag + 1) & 0xFFFF
            tag, self._next_tag = self._next_tag, (self._next_tag + 1) & 0xFFFF
            self._open[tag] = (sqe, np.empty(need, dtype=np.uint8), 0)
            out.append(pdu.r2t(struct.unpack_from("<H", sqe, 2)[0], tag, need))
        return out

    def take(self, head: bytes, content: np.ndarray) -> tuple[bytes, np.ndarray] | None:
        """An H2CData PDU. Returns the command with its data when that has come whole. Raises ProtocolError."""
        cid, tag, offset, length = struct.unpack_from("<HHII", head, 8)
        if tag not in self._open:
            raise ProtocolError(pdu.FES_HEADER_FIELD, 10)
        sqe, data, came = self._open[tag]
        if cid != struct.unpack_from("<H", sqe, 2)[0]:
            raise ProtocolError(pdu.FES_HEADER_FIELD, 8)
        if length != len(content):
            raise ProtocolError(pdu.FES_HEADER_FIELD, 16)
        if offset != came or offset + length > len(data):
            raise ProtocolError(pdu.FES_RANGE, 12)
        came += length
        if bool(head[1] & pdu.LAST) != (came == len(data)):
            raise ProtocolError(pdu.FES_HEADER_FIELD, 1)
        data[offset:came] = content
        self._open[tag] = (sqe, data, came)
        if came < len(data):
            return None
        del self._open[tag]
        return sqe, data
