"""An NBD server for the writer. The cookie of a request is used once."""

import time

import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio import nbd_numbers as nbd
from ssdrig.blockio.nbd import address
from ssdrig.blockio.nbd_pipe import Pipe, Requests
from ssdrig.blockio.slots import Slots
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS

GREETING_S = 10.0  # for a server's greeting: a caller that waits for a drive tries again
WORDS = np.zeros((4, 5), np.int64)  # [flags, kind]
WORDS[:, [WRITE, FLUSH, TRIM, BLANK]] = nbd.WRITE, nbd.FLUSH, nbd.TRIM, nbd.READ
WORDS[ZEROS:, WRITE] = nbd.WRITE_ZEROES
WORDS[[FUA, FUA | ZEROS]] |= nbd.FUA << 16


class Nbd(Pipe):
    """A transport (slots.Transport) to nbd+unix:///EXPORT?socket=PATH or nbd://HOST[:PORT]/EXPORT. Raises DriveError
    where no drive is there, or none that takes FLUSH and FUA; UsageError for another address. `slots`: of a connection
    to the same server; None: its own."""

    def __init__(self, uri: str, slots: Slots | None = None):
        path, export = address(uri)
        self.slots, self._count = slots or Slots(), 0
        super().__init__(path, GREETING_S, export, requests_of(self.slots), WORDS)
        needed = (("FLUSH", nbd.SEND_FLUSH), ("FUA", nbd.SEND_FUA))
        missing = [name for name, bit in needed if not self.flags & bit]
        if missing:
            self.disconnect()
            raise DriveError(
                f"an NBD server at {uri} that takes FLUSH and FUA",
                f"no {', '.join(missing)}",
                "offer them (nbdkit: a plugin or filter that has them): without them nothing can be promised",
            )
        self.can_trim = bool(self.flags & nbd.SEND_TRIM)
        self.can_zero = bool(self.flags & nbd.SEND_WRITE_ZEROES)
        self.flush_is_of_all = bool(self.flags & nbd.CAN_MULTI_CONN)

    now_ns = staticmethod(time.monotonic_ns)

    def submit(self, order: np.ndarray, n: int) -> None:
        self.post(order, n, self._count + 1, 1)
        self._count += n

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        """As slots.Transport; `least` is not waited for."""
        return self.take(ended, timeout_ns)

    def pause(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def close(self) -> None:
        """Disconnect and close. Safe to call twice."""
        self.disconnect()


def requests_of(slots: Slots) -> Requests:
    at = np.arange(slots.n) * slots.bytes_each
    fields = slots.kind, slots.flags, slots.offset, slots.length, slots.status
    return Requests(*fields, at, memoryview(slots.memory), slots.data)
