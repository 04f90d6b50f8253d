"""Before the fill: the drive's range written once in order, then over and over at random, so that cuts come while it
collects garbage. A drive with free blocks to spare programs them one after the other and moves nothing."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import DriveError
from ssdrig.blockio.slots import SLOT_BYTES, Transport, carry_out
from ssdrig.powerloss import fill
from ssdrig.powerloss.history import WRITE
from ssdrig.powerloss.layout import UNIT_BYTES

IN_ORDER, AT_RANDOM = 32, 64  # commands under way
PARTS = 10  # of the random writes: the first and the last are compared


class Made(NamedTuple):
    """`iops`: of the first and of the last tenth of the random writes; a drive that collects garbage is slower in the
    last."""

    written_bytes: int
    iops: tuple[float, float]


def write(
    transport: Transport,
    size_bytes: int,
    times: int,
    seed: int,
    show: Callable[[int, int], None] = lambda done, of: None,
) -> Made:
    """All of `size_bytes` in order, then `times` as many bytes in random units of 4 KiB, then a FLUSH. Nothing can be
    compressed or is there twice. show(done, of): bytes; its exceptions end it. Raises DriveError."""
    slots, chance = transport.slots, np.random.default_rng([seed, 0x9C])
    slots.data[:] = chance.integers(0, 256, len(slots.data), np.uint8)
    units = size_bytes // UNIT_BYTES
    total, begun_ns = (1 + times) * units * UNIT_BYTES, []

    def put(numbers, at, first, length):
        slots.kind[at], slots.flags[at], slots.offset[at], slots.length[at] = WRITE, 0, first, length
        slots.words[at, :: UNIT_BYTES // 8] = np.asarray(first)[:, None]
        slots.words[at, 1 :: UNIT_BYTES // 8] = np.asarray(numbers)[:, None]

    def taken(written_bytes, at):
        bad = at[slots.status[at] != 0]
        if len(bad):
            where, error = int(slots.offset[bad[0]]), -int(slots.status[bad[0]])
            raise DriveError(f"the drive to take writes at {where}", f"error {error}", "see the kernel's log (dmesg)")
        show(written_bytes, total)

    def in_order(numbers, at):
        first = numbers * SLOT_BYTES
        put(numbers, at, first, np.minimum(SLOT_BYTES, units * UNIT_BYTES - first))

    pieces = -(-units * UNIT_BYTES // SLOT_BYTES)
    carry_out(transport, pieces, in_order, lambda n, at: taken(int(n.max() + 1) * SLOT_BYTES, at), IN_ORDER)
    of_part = max(1, times * units // PARTS)

    def at_random(numbers, at):
        while len(begun_ns) <= numbers[-1] // of_part:
            begun_ns.append(transport.now_ns())
        put(pieces + numbers, at, chance.integers(0, units, len(at)) * UNIT_BYTES, UNIT_BYTES)

    many = times * units
    carry_out(transport, many, at_random, lambda n, at: taken((units + int(n.max()) + 1) * UNIT_BYTES, at), AT_RANDOM)
    begun_ns = [*begun_ns[: many // of_part], transport.now_ns()]
    fill.flush(transport)
    rate = lambda first, last: of_part * 1e9 / max(1, last - first)
    return Made(total, (rate(*begun_ns[:2]), rate(*begun_ns[-2:])) if len(begun_ns) > 1 else (0.0, 0.0))
