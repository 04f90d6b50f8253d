"""A drive in memory as a transport of power-loss tests: each command is done at once, on a clock of its own."""

import errno

import numpy as np

from ssdrig.blockio.slots import Slots
from ssdrig.powerloss.history import BLANK, FLUSH, TRIM, WRITE, ZEROS


class MemoryDrive:
    """`bad`: offsets of 512 bytes that cannot be read; each is good again after `bad[offset]` tries. `mute`: answers
    nothing. `refuses`: answers every write with EIO."""

    def __init__(self, size_bytes: int):
        self.slots, self.size_bytes, self.gone, self.under_way = Slots(64), size_bytes, "", 0
        self.can_trim = self.can_zero = True
        self.bytes, self.t_ns, self.paused_ns = np.zeros(size_bytes, np.uint8), 0, 0
        self.bad: dict[int, int] = {}
        self.mute = self.refuses = False
        self.kinds: list[int] = []
        self._done: list[int] = []

    def now_ns(self) -> int:
        self.t_ns += 5000
        return self.t_ns

    def submit(self, order, n):
        self.under_way += n
        for slot in order[:n].tolist():
            if not self.mute:
                self._done.append(slot)
                self.slots.status[slot] = self._do(slot)

    def _do(self, slot) -> int:
        slots = self.slots
        kind, first, length = (int(field[slot]) for field in (slots.kind, slots.offset, slots.length))
        self.kinds.append(kind)
        own = slots.data[slot * slots.bytes_each :][: length if kind in (WRITE, BLANK) else 0]
        part = self.bytes[first : first + length]
        assert len(part) == length and kind in (WRITE, BLANK, TRIM, FLUSH)
        if kind == WRITE:
            if self.refuses:
                return -errno.EIO
            part[:] = 0 if slots.flags[slot] & ZEROS else own
        elif kind == TRIM:
            part[:] = 0
        elif kind == BLANK:
            hit = [at for at in self.bad if first <= at < first + length]
            for at in hit:
                self.bad[at] -= 1
                if self.bad[at] <= 0:
                    del self.bad[at]
            if hit:
                return -errno.EIO
            own[:] = part
        return 0

    def reap(self, ended, timeout_ns, least=1):
        n = len(self._done)
        ended[:n], self._done = self._done, []
        self.under_way -= n
        self.t_ns += 0 if n else timeout_ns
        return n

    def pause(self, ns):
        self.paused_ns += ns

    def close(self):
        pass
