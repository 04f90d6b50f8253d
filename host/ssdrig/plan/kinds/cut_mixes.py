"""Which streams a session has, their shares and depths, from the plan's weights and the session's seed. Pure; what each
stream writes is in streams.py."""

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

# percent of all commands
SHARES = {
    "random": 44,  # 4 KiB anywhere
    "log-fua": 6,  # 4 KiB appended with FUA, one after the other
    "log-flush": 8,  # 4 to 16 KiB appended, a FLUSH after each eight
    "hot": 8,  # 64 places written all the time, several versions under way
    "atomic": 4,  # the largest atomic write, at its boundaries; and one block more
    "rmw": 4,  # 1 block, or several that begin and end within 4 KiB whose rest is old
    "sequential": 6,  # 128 KiB
    "large": 1,  # 256 to 512 KiB
    "fua-over": 6,  # 4 KiB written, then a part or all of them with FUA, while the cache has the older version
    "fua-long": 2,  # 4 to 128 KiB with FUA, from any block on
    "overlap": 3,  # 4 to 64 KiB at few places, so that several under way overlap
    "trim": 2,  # 64 KiB to 4 MiB are written in part, trimmed, then read or written again or left
    "trim-beside": 2,  # 64 KiB written, 4 to 32 KiB in their middle trimmed: live data on both sides
    "zeroes": 2,  # 64 KiB written, then 4 to 64 KiB of them zeroed by Write Zeroes, and by chance written once more
    "flush": 2,
}
NAMES = tuple(SHARES)
BEHIND = ("trim", "trim-beside", "zeroes")  # may fall behind its share on a slow drive; for another, the rest waits
# commands under way at most; of "random" this is drawn for each session, a power of two up to 64
DEPTH = {
    "random": 64,
    "log-fua": 1,
    "log-flush": 1,
    "hot": 8,
    "atomic": 4,
    "rmw": 4,
    "sequential": 2,
    "large": 2,
    "fua-over": 1,
    "fua-long": 2,
    "overlap": 8,
    "trim": 1,
    "trim-beside": 1,
    "zeroes": 1,
    "flush": 1,
}
TRIMS, ZEROES, FUAS = ("trim", "trim-beside"), "zeroes", ("log-fua", "fua-over", "fua-long")
# What a session does with the streams, and what that is for:
USUAL = "usual"
UNFLUSHED = "unflushed"  # a FLUSH in some thousand commands: finds a cache that loses data beyond some size
DEEP = "deep"  # 64 random writes in flight, with FLUSHes: finds a FLUSH that does not wait for all of them
IDLE = "idle"  # a second of silence before each FLUSH: background work of an idle drive
MIXES = (USUAL, UNFLUSHED, DEEP, IDLE)
SELDOM = 0.03  # percent of FLUSHes
DEEP_FLUSHES = 0.5  # percent: with more of them the writes would have to wait for a FLUSH that takes some ms
IDLE_EVERY_NS, IDLE_NS = 1_500_000_000, 1_100_000_000


def depth(seed: int, session: int) -> dict[str, int]:
    """DEPTH of one session."""
    return DEPTH | {"random": 1 << int(np.random.default_rng([seed, session]).integers(7))}


class Mix(NamedTuple):
    """Shares and depths of a session's streams; `idle_ns`: the silence before each own FLUSH, 0: none."""

    shares: dict[str, float]
    depth: dict[str, int]
    idle_ns: int = 0


def mix(name: str, shares: Mapping[str, float], seed: int, session: int, flushes: bool = True) -> Mix:
    """What session `session` does of the plan's shares. Not `flushes`: it sends no FLUSH at all."""
    streams: dict[str, float] = {**shares}
    depths = depth(seed, session)
    if name in (UNFLUSHED, DEEP, IDLE) or not flushes:
        streams |= {"log-flush": 0, "flush": SELDOM * sum(shares.values()) / 100}
    if name == DEEP:
        streams = {"random": 100 - DEEP_FLUSHES, "flush": DEEP_FLUSHES}
        depths["random"] = DEPTH["random"]
    if name == IDLE or not flushes:  # another FLUSH would repair an omission of the one after the silence
        streams["flush"] = 0
    if not any(streams.values()):
        streams["random"] = 1
    return Mix(streams, depths, IDLE_NS if name == IDLE else 0)


def drawn(mixes: Mapping[str, int], seed: int, follows_again: bool = False) -> str:
    """The mix of the session with this seed, by the plan's weights. `follows_again`: IDLE where the plan has it, since
    it sends one FLUSH in 2.6 s: the first since power returned is then often the last before the cut."""
    if follows_again and mixes.get(IDLE):
        return IDLE
    return random.Random(f"mix {seed}").choices(list(mixes), list(mixes.values()))[0]
