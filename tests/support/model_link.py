"""The faulty drive as a transport of power-loss tests, in model time: no socket, no clock but its own."""

import errno
import heapq
import random

import numpy as np
from support import faulty_drive
from support.faulty_drive import Command, Drive

from ssdrig.blockio.slots import Slots
from ssdrig.powerloss import kinds

OPS = {
    kinds.WRITE: faulty_drive.WRITE,
    kinds.FLUSH: faulty_drive.FLUSH,
    kinds.TRIM: faulty_drive.TRIM,
    kinds.BLANK: faulty_drive.READ,
}
CALL_NS = 500
WRITE_NS, FLUSH_NS = (100_000, 900_000), (500_000, 4_000_000)
LATE_NS = 20_000  # by which the host may see an answer late
NONE_NS = 1 << 62


class ModelLink:
    """`cut_at_ns`: when the power goes; from then on a command may fail, never return, or, where a kernel repeats it,
    succeed once power is back. The host sees an answer a little later than the drive gives it, and the drive owes what
    the host has seen, or will see. `slow`: by which factor commands take longer than usual. `queues`: each
    command comes by the next one."""

    def __init__(self, drive: Drive, seed: int, queues: int = 1):
        self.drive, self.slots = drive, Slots()
        self.t_ns, self.cut_at_ns, self.gone, self.under_way, self.can_trim = 0, NONE_NS, "", 0, True
        self.can_zero = True
        self.slow, self.queues = 1, queues
        self._chance = random.Random(f"{seed} link")
        self._answers: list[tuple[int, int, int, Command]] = []  # answered at, number, slot, command
        self._seen: list[tuple[int, int, Command | None]] = []  # seen by the host at, slot, an answered command
        self._repeated: list[int] = []
        self._number = 0

    @property
    def size_bytes(self) -> int:
        return self.drive.capacity

    def now_ns(self) -> int:
        self._advance(self.t_ns + CALL_NS)
        return self.t_ns

    def submit(self, order: np.ndarray, n: int) -> None:
        slots = self.slots
        for slot in order[:n].tolist():
            self.under_way += 1
            if self.gone:
                self._lose(slot)
                continue
            op, offset, length = OPS[int(slots.kind[slot])], int(slots.offset[slot]), int(slots.length[slot])
            if op == faulty_drive.WRITE and slots.flags[slot] & kinds.ZEROS:
                op = faulty_drive.ZEROES
            begin = slot * slots.bytes_each
            data = slots.data[begin : begin + length].tobytes() if op == faulty_drive.WRITE else None
            command = self.drive.begin(op, offset, length, bool(slots.flags[slot] & kinds.FUA), data)
            took_ns = self.slow * self._chance.randint(*(FLUSH_NS if op == faulty_drive.FLUSH else WRITE_NS))
            self._number += 1
            command.queue = self._number % self.queues
            heapq.heappush(self._answers, (self.t_ns + took_ns, self._number, slot, command))

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        until_ns = self.t_ns + timeout_ns
        while len(self._seen) < least or self._seen[0][0] > self.t_ns:
            next_ns = min(
                self._answers[0][0] if self._answers else NONE_NS, self._seen[0][0] if self._seen else NONE_NS
            )
            if next_ns > until_ns or next_ns <= self.t_ns:
                break
            self._advance(next_ns)
        if not (self._seen and self._seen[0][0] <= self.t_ns):
            self._advance(until_ns)
        n = 0
        while self._seen and self._seen[0][0] <= self.t_ns:
            _, ended[n], command = heapq.heappop(self._seen)
            if command is not None:
                self._answer(int(ended[n]), command)
            n += 1
        self.under_way -= n
        return n

    def _advance(self, t_ns: int) -> None:
        """To that time, with the cut in between."""
        while True:
            answered_ns = self._answers[0][0] if self._answers else NONE_NS
            if min(answered_ns, self.cut_at_ns) > t_ns:
                break
            if self.cut_at_ns < answered_ns:
                self._cut()
                continue
            self.t_ns = max(self.t_ns, answered_ns)
            _, _, slot, command = heapq.heappop(self._answers)
            heapq.heappush(self._seen, (self.t_ns + self._chance.randint(0, LATE_NS), slot, command))
        self.t_ns = max(self.t_ns, t_ns)
        self.drive.t_ns = self.t_ns

    def _answer(self, slot: int, command: Command) -> None:
        slots, status = self.slots, 0
        if command.op == faulty_drive.READ:
            content = self.drive.read(command.offset, command.length)
            if isinstance(content, int):
                status = content
            else:
                begin = slot * slots.bytes_each
                slots.data[begin : begin + len(content)] = np.frombuffer(content, np.uint8)
        slots.status[slot] = -(self.drive.end(command) or status)

    def _cut(self) -> None:
        self.t_ns, self.cut_at_ns, self.gone = max(self.t_ns, self.cut_at_ns), NONE_NS, "the power has gone"
        lost, self._answers = [slot for _, _, slot, _ in self._answers], []
        for _, slot, command in sorted(self._seen, key=lambda entry: entry[:2]):
            if command is not None:
                self._answer(slot, command)
        self._seen = [(seen_ns, slot, None) for seen_ns, slot, _ in self._seen]
        heapq.heapify(self._seen)
        self.drive.cut()
        for slot in lost:
            self._lose(slot)

    def _lose(self, slot: int) -> None:
        """What the host sees of a command that the drive has not answered."""
        kind = self._chance.random()
        self.slots.status[slot] = 0
        if kind < 0.3:
            self.slots.status[slot] = -errno.ENODEV
            heapq.heappush(self._seen, (self.t_ns + self._chance.randint(0, 1_000_000), slot, None))
        elif kind < 0.5:
            self._repeated.append(slot)
        else:
            self.under_way -= 1  # it never returns, and nobody waits for it any more

    def power_on(self, t_ns: int) -> float | None:
        """Power returns. The seconds until the drive answers, which it now does; None: it does not."""
        self._advance(t_ns)
        ready_s = self.drive.power_on()
        if ready_s is None:
            return None
        self.gone = ""
        for slot in self._repeated:  # a success that says nothing of what the cut took
            heapq.heappush(self._seen, (self.t_ns + self._chance.randint(1, 1_000_000), slot, None))
        self._repeated = []
        self._advance(self.t_ns + round(ready_s * 1e9))
        return ready_s

    def dip(self) -> None:
        self.drive.dip()

    def pause(self, ns: int) -> None:
        self._advance(self.t_ns + ns)

    def close(self) -> None:
        """The drive stays its owner's."""
