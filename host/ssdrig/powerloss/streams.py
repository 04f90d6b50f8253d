"""What is written: streams of commands, each aimed at something that drives get wrong. Pure; a stream is a function of
seed and session.

Each has a region of its own in every piece of the window, so that what one does to a block tells what it did; commands
of one stream may overlap, which the verdict wants."""

from collections.abc import Callable

import numpy as np

from ssdrig.powerloss import layout as layouts
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE
from ssdrig.powerloss.layout import Layout
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.slots import SLOT_BYTES

# percent of all commands
SHARES = {
    "random": 55,  # 4 KiB anywhere
    "log-fua": 8,  # 4 KiB appended with FUA, one after the other
    "log-flush": 8,  # 4 to 16 KiB appended, a FLUSH after each eight
    "hot": 8,  # 64 places written all the time, several versions under way
    "atomic": 4,  # as long as the drive keeps whole, at its boundaries; and one block longer
    "rmw": 4,  # 512 bytes into 4 KiB of which the rest is old; 4 KiB where a logical block is that long
    "sequential": 8,  # 128 KiB
    "trim": 3,  # 64 KiB to 4 MiB are written in part, trimmed, then read or written again or left
    "flush": 2,
}
NAMES = tuple(SHARES)
BEHIND = ("trim",)  # may fall behind its share on a slow drive; for another, the rest waits
# commands under way at most; of "random" this is drawn for each session, a power of two up to 64
DEPTH = {
    "random": 64,
    "log-fua": 1,
    "log-flush": 1,
    "hot": 8,
    "atomic": 4,
    "rmw": 4,
    "sequential": 2,
    "trim": 1,
    "flush": 1,
}
# sixteenths of a piece: first, how many
REGIONS = {
    "log-fua": (0, 1),
    "log-flush": (1, 1),
    "hot": (2, 1),
    "atomic": (3, 1),
    "rmw": (4, 1),
    "sequential": (5, 2),
    "trim": (7, 2),
    "random": (9, 7),
}
CHUNK = 256  # commands that are drawn at once
HOT_PLACES = 64
FLUSH_EVERY = 8
LONG_UNITS = SLOT_BYTES // layouts.UNIT_BYTES  # of a sequential write
TRIM_BYTES, TRIM_DOUBLED = 64 << 10, 7  # 64 KiB, doubled 0 to 6 times
MOST_TRIM_BYTES = TRIM_BYTES << TRIM_DOUBLED - 1
KIND, FLAGS, N, LBA, AT = range(5)  # columns of a command: history's, and where in the base it begins


def depth(seed: int, session: int) -> dict[str, int]:
    """DEPTH of one session."""
    return DEPTH | {"random": 1 << int(np.random.default_rng([seed, session]).integers(7))}


def commands(name: str, layout: Layout, promise: Promise, seed: int, session: int, chunk: int) -> np.ndarray:
    """int64[about CHUNK, 5]: the commands of chunk 0, 1, ... of a stream. None is longer than slots.SLOT_BYTES but
    trims, and none leaves its region."""
    number = NAMES.index(name)
    chance = np.random.default_rng([seed, session, number, chunk])
    out = np.zeros((CHUNK, 5), np.int64)
    out[:, KIND] = WRITE
    if name == "flush":
        out[:, KIND] = FLUSH
        return out
    region = _Region(name, layout)
    begin = int(np.random.default_rng([seed, session, number]).integers(region.blocks // region.unit))
    out = _MADE[name](out, region, promise, chance, begin + chunk * CHUNK * LONG_UNITS)
    flush = out[:, KIND] == FLUSH
    out[flush, N:] = 0
    out[~flush, LBA] = region.lba(out[~flush, AT])
    out[~flush, AT] = layouts.index(layout, out[~flush, LBA])
    return out


class _Region:
    """The stream's part of each piece, as one space of blocks from 0 on."""

    def __init__(self, name: str, layout: Layout):
        first, many = REGIONS[name]
        self.layout, self.unit = layout, layout.unit
        self.first, self.each = first * layout.piece_blocks // 16, many * layout.piece_blocks // 16
        self.blocks = self.each * len(layout.starts)

    def lba(self, at):
        piece, within = np.divmod(at % self.blocks, self.each)
        return self.layout.starts[piece] + self.first + within

    def room(self, at):
        """Blocks from there to the end of the part."""
        return self.each - at % self.each

    def drawn(self, chance, n: int, unit: int):
        """n places at random, each a multiple of `unit` in its part."""
        per_part = max(self.each // unit, 1)
        place = chance.integers(0, per_part * len(self.layout.starts), n)
        return place // per_part * self.each + place % per_part * unit


def _random(out, region: _Region, promise: Promise, chance, begin: int):
    out[:, AT], out[:, N] = region.drawn(chance, len(out), region.unit), region.unit
    return out


def _appended(out, region: _Region, begin: int, units):
    """One behind the other; shorter where a part ends."""
    out[:, AT] = (begin + np.cumsum(units) - units) * region.unit
    out[:, N] = np.minimum(units * region.unit, region.room(out[:, AT]))
    return out


def _log_fua(out, region: _Region, promise: Promise, chance, begin: int):
    out[:, FLAGS] = FUA
    return _appended(out, region, begin, np.ones(len(out), np.int64))


def _log_flush(out, region: _Region, promise: Promise, chance, begin: int):
    units = chance.integers(1, 5, len(out))
    out[FLUSH_EVERY :: FLUSH_EVERY + 1, KIND] = FLUSH
    units[out[:, KIND] == FLUSH] = 0
    return _appended(out, region, begin, units)


def _hot(out, region: _Region, promise: Promise, chance, begin: int):
    places = region.blocks // region.unit
    step = max(places // HOT_PLACES, 1)
    out[:, AT] = chance.integers(0, min(HOT_PLACES, places), len(out)) * step * region.unit
    out[:, N] = region.unit
    return out


def _atomic(out, region: _Region, promise: Promise, chance, begin: int):
    most = SLOT_BYTES // promise.block_bytes - 1
    limit = min(max(1, promise.atomic_blocks), promise.boundary_blocks or most, most, region.each - 1)
    out[:, N] = limit + (chance.random(len(out)) < 0.3)  # a control: nobody promises that it is whole
    out[:, AT] = region.drawn(chance, len(out), limit)
    if promise.boundary_blocks:
        lba = region.lba(out[:, AT])
        over = (lba - promise.boundary_offset) % promise.boundary_blocks
        late = np.where(chance.random(len(out)) < 0.5, promise.boundary_blocks - limit, 0)  # up to the next boundary
        out[:, AT] = np.maximum(out[:, AT] - over + late, out[:, AT] // region.each * region.each)
    out[:, AT] -= np.maximum(out[:, N] - region.room(out[:, AT]), 0)
    return out


def _rmw(out, region: _Region, promise: Promise, chance, begin: int):
    out[:, AT], out[:, N] = region.drawn(chance, len(out), 1), 1
    return out


def _sequential(out, region: _Region, promise: Promise, chance, begin: int):
    return _appended(out, region, begin // LONG_UNITS * LONG_UNITS, np.full(len(out), LONG_UNITS))


def _trim(out, region: _Region, promise: Promise, chance, begin: int):
    """Four commands each time: write a part, trim, read it back, write a part again; the last two by chance."""
    groups = len(out) // 4
    first = TRIM_BYTES // promise.block_bytes
    n = np.minimum(first << chance.integers(0, TRIM_DOUBLED, groups), region.each // first * first)
    at = region.drawn(chance, groups, first)
    at -= np.maximum(n - region.room(at), 0)
    before, again = (chance.integers(1, first // region.unit + 1, groups) * region.unit for _ in range(2))
    read = chance.random(groups) < (0.5 if promise.after_trim else 0)
    write = chance.random(groups) < 0.4
    out = np.zeros((groups, 4, 5), np.int64)
    out[:, :, AT] = at[:, None]
    out[:, :, KIND] = WRITE, TRIM, BLANK, WRITE
    out[:, 0, N], out[:, 1, N], out[:, 2, N], out[:, 3, N] = before, n, before, again
    kept = np.ones((groups, 4), bool)
    kept[:, 2], kept[:, 3] = read, write
    return out[kept]


_MADE: dict[str, Callable] = {
    "random": _random,
    "log-fua": _log_fua,
    "log-flush": _log_flush,
    "hot": _hot,
    "atomic": _atomic,
    "rmw": _rmw,
    "sequential": _sequential,
    "trim": _trim,
}
