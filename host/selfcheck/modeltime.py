"""The virtual drive in model time: no socket, no clock but its own, and the power falls at a given time. SIMULATED.

Beside the drive's own legal freedoms (Device.chances), what a host may do to the verdict's evidence is drawn here: an
answer seen late, a command that fails as the link goes, and the success of a command that a kernel repeated after power
was back."""

import errno
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.slots import Slots
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS
from ssdrig.virtual.device.device import Device

CALL_NS = 300  # what looking at the clock costs
_OPS = np.zeros(5, np.int64)
_OPS[[WRITE, FLUSH, TRIM, BLANK]] = nbd_protocol.WRITE, nbd_protocol.FLUSH, nbd_protocol.TRIM, nbd_protocol.READ
ADVANCE_NS = 1_000_000  # so often the drive works on by itself at least
MISSING_NS = 30_000_000_000  # after power-on, without an answer
OPEN = 1 << 62  # due time of a slot without a command


class Host(NamedTuple):
    """What becomes of the commands that are under way at a cut, by chance: `failed`, their error is seen before power
    is back; `repeated`, the kernel repeats them then, and they succeed; the others never return. late_ns: an answer is
    seen at most so much later than it was given."""

    failed: float = 0.2
    repeated: float = 0.2
    late_ns: int = 20_000


HOST = Host()


class Model:
    """A transport (slots.Transport) that belongs to one device. `cut_at_ns`: when the rail is to fall; `cut_ns`: when
    it did. write_through: as a host with the drive's write cache off. Times: as the device's."""

    def __init__(self, device: Device, seed: int, start_ns: int = 0, write_through: bool = False, host: Host = HOST):
        self.device, self.slots, self.size_bytes = device, Slots(), device.capacity_bytes
        self.t_ns, self.write_through, self.host = start_ns, write_through, host
        self.cut_at_ns: int | None = None
        self.cut_ns: int | None = None
        self.gone, self.under_way, self.can_trim, self.can_zero = "", 0, True, True
        self._chance = np.random.default_rng([seed, 0x4D])
        self._due_ns = np.full(self.slots.n, OPEN, np.int64)
        self._repeated = np.zeros(0, np.int64)
        self._advanced_ns = start_ns
        self._batch = np.zeros((self.slots.n, nbd_protocol.COLUMNS), np.int64)
        self._reads = np.zeros((self.slots.n, 3), np.int64)

    def now_ns(self) -> int:
        self.t_ns += CALL_NS
        if self.cut_at_ns is not None and self.t_ns >= self.cut_at_ns:
            self._cut()
        return self.t_ns

    def submit(self, order: np.ndarray, n: int) -> None:
        slots, rows, order = self.slots, self._batch[:n], order[:n]
        self.under_way += n
        if self.gone:
            self._lost(order)
            self.under_way = int((self._due_ns < OPEN).sum())
            return
        zeros = (slots.kind[order] == WRITE) & (slots.flags[order] & ZEROS > 0)
        rows[:, nbd_protocol.OP] = np.where(zeros, nbd_protocol.WRITE_ZEROES, _OPS[slots.kind[order]])
        rows[:, nbd_protocol.COOKIE] = order
        rows[:, nbd_protocol.FLAGS] = np.where(slots.flags[order] & FUA, nbd_protocol.FUA, 0)
        if self.write_through:
            rows[slots.kind[order] != BLANK, nbd_protocol.FLAGS] = nbd_protocol.FUA
        rows[:, nbd_protocol.OFFSET], rows[:, nbd_protocol.LENGTH] = slots.offset[order], slots.length[order]
        rows[:, nbd_protocol.AT], rows[:, nbd_protocol.ERROR] = order * slots.bytes_each, 0
        self.device.execute(slots.data, self._batch, n, self.t_ns)
        slots.status[order] = -rows[:, nbd_protocol.ERROR]
        self._due_ns[order] = rows[:, nbd_protocol.DUE]

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        """As slots.Transport; the time goes on to then, or to the power's end. The host looks up to late_ns late."""
        next_ns = np.partition(self._due_ns, least - 1)[least - 1] if least > 1 else self._due_ns.min()
        late_ns = int(self._chance.random() * self.host.late_ns)
        self._advance(min(int(next_ns) + late_ns, self.t_ns + timeout_ns))
        due = (self._due_ns <= self.t_ns).nonzero()[0]
        n = len(due)
        if n:
            self._due_ns[due] = OPEN
            self.under_way -= n
            ended[:n] = due
            self._read(due)
        return n

    def _read(self, due: np.ndarray) -> None:
        slots = self.slots
        reads = due[slots.kind[due] == BLANK]
        reads = reads[slots.status[reads] == 0] if len(reads) else reads
        if len(reads):
            rows = self._reads[: len(reads)]
            rows[:, 0], rows[:, 1], rows[:, 2] = reads * slots.bytes_each, slots.offset[reads], slots.length[reads]
            self.device.store.read(slots.data, rows, len(reads))

    def _advance(self, t_ns: int) -> None:
        """To t_ns, or to the cut before it."""
        cuts = self.cut_at_ns is not None and t_ns >= self.cut_at_ns
        self.t_ns = max(self.t_ns, self.cut_at_ns if cuts and self.cut_at_ns is not None else t_ns)
        if self.t_ns - self._advanced_ns >= ADVANCE_NS:
            self.device.advance(self.t_ns)
            self._advanced_ns = self.t_ns
        if cuts:
            self._cut()

    def _cut(self) -> None:
        assert self.cut_at_ns is not None
        self.cut_ns, self.cut_at_ns = self.cut_at_ns, None
        self.t_ns = max(self.t_ns, self.cut_ns)
        self.gone = "the power has gone"
        self.device.power_cut(self.cut_ns)
        self._lost(np.flatnonzero((self._due_ns < OPEN) & (self._due_ns > self.cut_ns)))
        self.under_way = int((self._due_ns < OPEN).sum())

    def _lost(self, slots: np.ndarray) -> None:
        """Commands that the drive has not answered: what the host sees of them."""
        drawn = self._chance.random(len(slots))
        failed = drawn < self.host.failed
        self.slots.status[slots] = np.where(failed, -errno.EIO, 0)
        self._due_ns[slots] = np.where(failed, self.t_ns + self._chance.integers(0, 1_000_000, len(slots)), OPEN)
        self._repeated = np.append(self._repeated, slots[drawn > 1 - self.host.repeated])

    def pause(self, ns: int) -> None:
        self._advance(self.t_ns + ns)

    def power_on(self, t_ns: int) -> int:
        """Power returns at t_ns. Returns the time at which the drive answers, which it now is. Raises DriveError where
        it does not within MISSING_NS; the power then stays on."""
        self.t_ns = max(self.t_ns, t_ns)
        ready_ns = self.device.power_on(self.t_ns)
        if ready_ns > self.t_ns + MISSING_NS:
            raise DriveError("the drive to come back", f"no answer in {MISSING_NS / 1e9:.0f} s", "see its faults")
        self.t_ns = max(self.t_ns, ready_ns)
        self.device.advance(self.t_ns)
        self.gone, self.cut_ns = "", None
        late = self._chance.integers(0, 1_000_000, len(self._repeated))
        self._due_ns[self._repeated], self._repeated = self.t_ns + late, self._repeated[:0]
        self.under_way = int((self._due_ns < OPEN).sum())
        return ready_ns

    def close(self) -> None:
        """The device stays its owner's."""
