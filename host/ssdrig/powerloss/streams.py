"""The writes: streams of commands, each aimed at a known failure of drives. Pure; a stream is a function of
seed and session.

Each has its own region in every piece of the window, so that a damaged block identifies its stream; commands
of one stream may overlap, which the verdict wants."""

from collections.abc import Callable

import numpy as np

from ssdrig.blockio.slots import SLOT_BYTES
from ssdrig.plan.kinds.cut_mixes import NAMES
from ssdrig.powerloss import layout as layouts
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, TRIM, WRITE, ZEROS
from ssdrig.powerloss.layout import Layout
from ssdrig.powerloss.promise import Promise

PARTS = 32  # of a piece
# of these parts: first, how many
REGIONS = {
    "log-fua": (0, 2),
    "log-flush": (2, 2),
    "hot": (4, 1),
    "fua-over": (5, 1),
    "atomic": (6, 2),
    "rmw": (8, 2),
    "sequential": (10, 4),
    "trim": (14, 4),
    "trim-beside": (18, 2),
    "fua-long": (20, 2),
    "overlap": (22, 1),
    "large": (23, 2),
    "zeroes": (25, 1),
    "random": (26, 6),
}
CHUNK = 256  # commands drawn per batch
HOT_PLACES = 64
FLUSH_EVERY = 8
LONG_UNITS = (128 << 10) // layouts.UNIT_BYTES  # of a sequential write
LARGE_UNITS = SLOT_BYTES // layouts.UNIT_BYTES  # of the longest write
OVERLAPPED_UNITS = 48  # in which the commands of "overlap" are, at some places
BESIDE_UNITS = 16  # that "trim-beside" writes before it trims some of them
TRIM_BYTES, TRIM_DOUBLED = 64 << 10, 7  # 64 KiB, doubled 0 to 6 times
KIND, FLAGS, N, LBA, AT = range(5)  # columns of a command: history's, and where in the base it begins


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
        self.first, self.span = first * layout.piece_blocks // PARTS, many * layout.piece_blocks // PARTS
        self.blocks = self.span * len(layout.starts)

    def lba(self, at):
        piece, within = np.divmod(at % self.blocks, self.span)
        return self.layout.starts[piece] + self.first + within

    def room(self, at):
        """Blocks from there to the end of the part."""
        return self.span - at % self.span

    def drawn(self, chance, n: int, unit: int):
        """n places at random, each a multiple of `unit` in its part."""
        per_part = max(self.span // unit, 1)
        place = chance.integers(0, per_part * len(self.layout.starts), n)
        return place // per_part * self.span + place % per_part * unit


def _random(out, region: _Region, promise: Promise, chance, begin: int):
    out[:, AT], out[:, N] = region.drawn(chance, len(out), region.unit), region.unit
    return out


def _appended(out, region: _Region, begin: int, units):
    """One after the other; shorter where a part ends."""
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
    limit = min(max(1, promise.atomic_blocks), promise.boundary_blocks or most, most, region.span - 1)
    out[:, N] = limit + (chance.random(len(out)) < 0.3)  # a control: larger than any atomicity guarantee
    out[:, AT] = region.drawn(chance, len(out), limit)
    if promise.boundary_blocks:
        lba = region.lba(out[:, AT])
        over = (lba - promise.boundary_offset) % promise.boundary_blocks
        late = np.where(chance.random(len(out)) < 0.5, promise.boundary_blocks - limit, 0)  # up to the next boundary
        out[:, AT] = np.maximum(out[:, AT] - over + late, out[:, AT] // region.span * region.span)
    out[:, AT] -= np.maximum(out[:, N] - region.room(out[:, AT]), 0)
    return out


def _rmw(out, region: _Region, promise: Promise, chance, begin: int):
    out[:, AT], n = region.drawn(chance, len(out), 1), chance.integers(2, 3 * region.unit + 1, len(out))
    out[:, N] = np.minimum(np.where(chance.random(len(out)) < 0.5, 1, n), region.room(out[:, AT]))
    return out


def _sequential(out, region: _Region, promise: Promise, chance, begin: int):
    return _appended(out, region, begin // LONG_UNITS * LONG_UNITS, np.full(len(out), LONG_UNITS))


def _large(out, region: _Region, promise: Promise, chance, begin: int):
    units = chance.integers(LARGE_UNITS // 2, LARGE_UNITS + 1, len(out))
    out[:, AT], out[:, N] = region.drawn(chance, len(out), region.unit), units * region.unit
    out[:, N] = np.minimum(out[:, N], region.room(out[:, AT]))
    return out


def _fua_long(out, region: _Region, promise: Promise, chance, begin: int):
    """Half of them begin where a unit begins."""
    even = np.where(chance.random(len(out)) < 0.5, region.unit, 1)
    out[:, FLAGS] = FUA
    out[:, AT] = region.drawn(chance, len(out), 1) // even * even
    out[:, N] = chance.integers(1, LONG_UNITS * region.unit // even + 1, len(out)) * even
    out[:, N] = np.minimum(out[:, N], region.room(out[:, AT]))
    return out


def _fua_over(out, region: _Region, promise: Promise, chance, begin: int):
    """Three commands each time: a unit; all of it, or some of its blocks, with FUA; by chance the unit once more."""
    groups = len(out) // 3
    at = region.drawn(chance, groups, region.unit)
    first = np.where(chance.random(groups) < 0.5, 0, chance.integers(0, region.unit, groups))
    out = np.zeros((groups, 3, 5), np.int64)
    out[:, :, KIND], out[:, :, AT], out[:, :, N] = WRITE, at[:, None], region.unit
    out[:, 1, FLAGS] = FUA
    out[:, 1, AT] += first
    out[:, 1, N] = chance.integers(1, region.unit - first + 1)
    out[:, 1, N] = np.where(first, out[:, 1, N], region.unit)
    selected = np.ones((groups, 3), bool)
    selected[:, 2] = chance.random(groups) < 0.3
    return out[selected]


def _overlap(out, region: _Region, promise: Promise, chance, begin: int):
    """All commands of a chunk are at one place: 4 to 64 KiB, from any block on."""
    most = max(1, min(OVERLAPPED_UNITS * region.unit, region.span))
    place = int(region.drawn(chance, 1, region.unit)[0])
    place -= max(0, most - int(region.room(np.int64(place))))
    out[:, AT] = place + chance.integers(0, most, len(out))
    out[:, N] = chance.integers(1, 16 * region.unit + 1, len(out))
    out[:, N] = np.minimum(out[:, N], region.room(out[:, AT]))
    return out


def _trim_beside(out, region: _Region, promise: Promise, chance, begin: int):
    """Two commands each time: 64 KiB, then a trim of 1 to 8 units within them."""
    groups, units = len(out) // 2, min(BESIDE_UNITS, region.span // region.unit)
    at = region.drawn(chance, groups, units * region.unit)
    n = np.minimum(chance.integers(1, 9, groups), max(1, units - 2))
    first = chance.integers(1, np.maximum(units - n, 2))
    out = np.zeros((groups, 2, 5), np.int64)
    out[:, :, KIND], out[:, :, AT] = (WRITE, TRIM), at[:, None]
    out[:, 0, N], out[:, 1, N] = units * region.unit, n * region.unit
    out[:, 1, AT] += first * region.unit
    return out.reshape(-1, 5)


def _zeroes(out, region: _Region, promise: Promise, chance, begin: int):
    """Three commands each time: 64 KiB; zeros over some of their units, or all; by chance the first unit once more."""
    groups, units = len(out) // 3, min(BESIDE_UNITS, region.span // region.unit)
    at = region.drawn(chance, groups, units * region.unit)
    first = chance.integers(0, units, groups)
    out = np.zeros((groups, 3, 5), np.int64)
    out[:, :, KIND], out[:, :, AT], out[:, :, N] = WRITE, at[:, None], region.unit
    out[:, 0, N], out[:, 1, FLAGS] = units * region.unit, ZEROS
    out[:, 1:, AT] += first[:, None] * region.unit
    out[:, 1, N] = chance.integers(1, units - first + 1) * region.unit
    selected = np.ones((groups, 3), bool)
    selected[:, 2] = chance.random(groups) < 0.3
    return out[selected]


def _trim(out, region: _Region, promise: Promise, chance, begin: int):
    """Four commands each time: write a part, trim, read it back, write a part again; the last two by chance."""
    groups = len(out) // 4
    first = TRIM_BYTES // promise.block_bytes
    n = np.minimum(first << chance.integers(0, TRIM_DOUBLED, groups), region.span // first * first)
    at = region.drawn(chance, groups, first)
    at -= np.maximum(n - region.room(at), 0)
    before, again = (chance.integers(1, first // region.unit + 1, groups) * region.unit for _ in range(2))
    read = chance.random(groups) < (0.5 if promise.after_trim else 0)
    write = chance.random(groups) < 0.4
    out = np.zeros((groups, 4, 5), np.int64)
    out[:, :, AT] = at[:, None]
    out[:, :, KIND] = WRITE, TRIM, BLANK, WRITE
    out[:, 0, N], out[:, 1, N], out[:, 2, N], out[:, 3, N] = before, n, before, again
    selected = np.ones((groups, 4), bool)
    selected[:, 2], selected[:, 3] = read, write
    return out[selected]


_MADE: dict[str, Callable] = {
    "random": _random,
    "log-fua": _log_fua,
    "log-flush": _log_flush,
    "hot": _hot,
    "atomic": _atomic,
    "rmw": _rmw,
    "sequential": _sequential,
    "large": _large,
    "fua-over": _fua_over,
    "fua-long": _fua_long,
    "overlap": _overlap,
    "trim": _trim,
    "trim-beside": _trim_beside,
    "zeroes": _zeroes,
}
