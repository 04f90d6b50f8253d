"""Which rig feeds which drive, of several: all drives have their bursts simultaneously, each in its own random pattern,
while all rigs listen."""

import contextlib
import itertools
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ssdrig.base.errors import UsageError, words_of
from ssdrig.drive import block
from ssdrig.meter import pairing
from ssdrig.meter.pairing import ALPHA, LOOKS, SLOT_S, Look
from ssdrig.meter.pico.session import session
from ssdrig.meter.power import Power
from ssdrig.run import bursts
from ssdrig.run import pairing as signature


class Named(NamedTuple):
    """A drive: its name, how to reach it, the rig (port) that the user gave, None for none."""

    name: str
    connect: bursts.Connect
    capacity_bytes: int
    rig: str | None


class Matching(NamedTuple):
    """`feeds`: drive -> rig, as it was found. `moved`: drives whose rig is not the one that was given; `unseen`: drives
    that no rig shows."""

    feeds: dict[str, str]
    moved: tuple[str, ...]
    unseen: tuple[str, ...]


Powers = Callable[[], Mapping[str, Power]]  # rails of one rig so far, by name
Pair = tuple[str, str, str]  # drive, rig (port), rail


def connect_to(path: str) -> bursts.Connect:
    """Links to a drive that is held at this path, for reads."""
    return lambda write: block.Direct(path, False)


def found_by_ports(drives: Sequence[Named], ports: Sequence[str]) -> Matching:
    """match(), with the rigs at these ports, which are listened to and do nothing else. Raises UsageError, RigError."""
    with contextlib.ExitStack() as stack:
        rigs: dict[str, Powers] = {}
        for port in ports:
            one = stack.enter_context(session(port))
            rails = {int(row["rail"]): str(row.get("name")) for row in one.hello["rails"]}

            def powers(one=one, rails=rails) -> Mapping[str, Power]:
                one.rig.live()
                return {rails[number]: power for number, power in one.powers(list(rails)).items()}

            rigs[port] = powers
        return match(drives, rigs)


def match(drives: Sequence[Named], rigs: Mapping[str, Powers], source: random.Random | None = None) -> Matching:
    """Which rig feeds which drive. Raises UsageError where what the last try leaves is not one rig for each drive."""
    source = source or random.SystemRandom()
    return matched_by(drives, list(rigs), lambda: _looks(drives, rigs, source))


def matched_by(drives: Sequence[Named], ports: Sequence[str], look: Callable[[], Mapping[Pair, Look]]) -> Matching:
    """match(), by looks that others take.

    look: one try: all drives at once, its look at each (drive, rig, rail)."""
    looks: dict[Pair, list[Look]] = {}
    for tries in itertools.count(1):
        for pair, one in look().items():
            looks.setdefault(pair, []).append(one)
        enough = all(sum(one.p is not None for one in seen) >= LOOKS for seen in looks.values())
        last = tries == pairing.TRIES or enough
        try:
            matched = decided(drives, ports, looks)
        except UsageError:  # one drive may show its signature a try before the other
            if last:
                raise
            continue
        if last or not matched.unseen:
            return matched
    raise AssertionError("the last try returns or raises")


def _looks(drives: Sequence[Named], rigs: Mapping[str, Powers], source: random.Random) -> dict[Pair, Look]:
    looks = {}
    patterns = [pairing.pattern(source) for _ in drives]
    played = _played(drives, patterns)
    for one, slots in zip(drives, patterns, strict=True):
        for port, powers in rigs.items():
            rails = signature.rails(powers, played[one.name], lambda: None)
            for name, rail in rails.items():
                looks[one.name, port, name] = pairing.look(slots, played[one.name].done_bytes, SLOT_S, rail)
    return looks


def decided(drives: Sequence[Named], ports: Sequence[str], looks: Mapping[Pair, Sequence[Look]]) -> Matching:
    """What the looks at each (drive, rig, rail) come to; any false pair is found with at most ALPHA. Raises UsageError:
    two drives on one rig, or one drive on two."""
    shows = {(name, port) for (name, port, _), seen in looks.items() if pairing.fits(seen, ALPHA / len(looks))}
    for name, group in itertools.groupby(sorted(shows), key=lambda pair: pair[0]):
        if len(two := [port for _, port in group]) > 1:
            raise _unclear(f"{name} on {' and '.join(two)}")
    for port in ports:
        if len(two := sorted(name for name, on in shows if on == port)) > 1:
            raise _unclear(f"{' and '.join(two)} on {port}")
    feeds = dict(shows)
    moved = tuple(one.name for one in drives if one.name in feeds and feeds[one.name] != one.rig)
    unseen = tuple(one.name for one in drives if one.rig and one.name not in feeds)
    taken = {port: name for name, port in feeds.items()}
    for one in drives:
        if one.name in unseen and (other := taken.get(str(one.rig))):
            raise _unclear(f"{one.rig} on {other}, and no rig on {one.name}")
    return Matching(feeds, moved, unseen)


def _unclear(seen: str) -> UsageError:
    return UsageError("one rig for each drive", seen, "see which rig feeds which drive, or name one drive alone")


def _played(drives: Sequence[Named], patterns: Sequence[tuple[bool, ...]]) -> dict[str, bursts.Played]:
    played: dict[str, bursts.Played] = {}
    failed: dict[str, str] = {}

    def play(one: Named, slots: tuple[bool, ...]) -> None:
        try:
            played[one.name] = bursts.play(one.connect, slots, SLOT_S, one.capacity_bytes)
        except Exception as error:
            failed[one.name] = words_of(error)

    pairs = zip(drives, patterns, strict=True)
    threads = [threading.Thread(target=play, args=pair, daemon=True) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        name, why = next(iter(failed.items()))
        raise UsageError(f"{name} to be read", why, "see whether the drive is still there: ./ssdrig drives")
    return played
