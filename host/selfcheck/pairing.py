"""Whether a rig and a drive that belong together are found to, and all others not: signatures in model time, the drives
those of the virtual bench, the sensor's noise and a host that stands still now and then added."""

import functools
import itertools
import random
from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn

import numpy as np

from selfcheck import Figure, at_most, exactly
from ssdrig.base.errors import UsageError
from ssdrig.meter import pairing
from ssdrig.meter.pairing import LOOKS, NOT_PAIRED, PAIRED, SLOT_S, SLOTS, TRIES, UNKNOWN, Look
from ssdrig.run import matching
from ssdrig.run.bursts import IO_BYTES
from ssdrig.virtual.flash.constants import PAGE
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import PRESETS

SOUND, OTHERS, EXCHANGED = 100, 20, 20
DRIVES = ("sata-mlc", "sata-tlc", "nvme-tlc", "enterprise-plp")
QUEUE = 4
HOST_NS = 1_500_000  # between two commands of one thread, on a busy host
SAMPLE_NS = 1_000_000
NOISE_W, DIGIT_W = 1e-3, 2e-5  # of one sample: three times an INA228's at 1 ms
STILL = 0.2  # of signatures, in which the host stands still for a while
READ, WRITE = 0, 1
LEAD_NS = 200_000_000


class Rail(NamedTuple):
    """What a rail carried in each sample of a signature, W, before the noise."""

    watts: np.ndarray


class Load(NamedTuple):
    slots: tuple[bool, ...]
    done_bytes: tuple[int, ...]


def _drive(preset: str, full: bool) -> VirtualDrive:
    drive = VirtualDrive(PRESETS[preset], capacity_bytes=512 << 20)
    if full:
        drive.precondition("seq", 1)
    return drive


def _played(drive: VirtualDrive, rng: np.random.Generator, source: random.Random, op: int) -> tuple[Load, Rail]:
    """A signature on a drive."""
    slots = pairing.pattern(source)
    slot_ns = round(SLOT_S * 1e9)
    begin_ns = drive._t + LEAD_NS
    drive.advance(begin_ns)
    done = [0] * SLOTS
    pages = IO_BYTES // PAGE
    free = [begin_ns] * QUEUE
    still_ns = int(rng.integers(SLOTS)) * slot_ns if rng.random() < STILL else None
    end_ns = begin_ns + SLOTS * slot_ns
    while (t_ns := min(free)) < end_ns:
        at, slot = free.index(t_ns), int((t_ns - begin_ns) // slot_ns)
        if still_ns is not None and still_ns <= t_ns - begin_ns < still_ns + slot_ns // 2:
            free[at] = begin_ns + still_ns + slot_ns // 2
            continue
        if not slots[slot]:
            free[at] = begin_ns + (slot + 1) * slot_ns
            drive.advance(min(free[at], end_ns))
            continue
        page = int(rng.integers(drive.pages // pages)) * pages
        ends_ns = int(drive.submit([op], [page], [pages], [0], t_ns)[0])
        done[min(SLOTS - 1, int((max(ends_ns, t_ns) - begin_ns) // slot_ns))] += IO_BYTES
        free[at] = max(ends_ns, t_ns) + int(HOST_NS * rng.uniform(0.7, 2.0))
    drive.advance(end_ns + LEAD_NS)
    return Load(slots, tuple(done)), Rail(_watts(drive, begin_ns, end_ns))


def _watts(drive: VirtualDrive, begin_ns: int, end_ns: int) -> np.ndarray:
    edges = np.arange(begin_ns, end_ns + 1, SAMPLE_NS)
    joules = np.array([drive.energy_between(int(a), int(z)) for a, z in zip(edges[:-1], edges[1:], strict=True)])
    return joules / (SAMPLE_NS / 1e9)


def _looked(load: Load, rail: Rail, rng: np.random.Generator, write: bool) -> Look:
    n = len(rail.watts)
    watts = rail.watts + NOISE_W * rng.standard_normal(n)
    edges_ns = np.arange(SLOTS + 1, dtype=np.int64) * round(SLOT_S * 1e9)
    slots = pairing.slots_of(np.arange(n, dtype=np.int64) * SAMPLE_NS + SAMPLE_NS // 2, watts, edges_ns, DIGIT_W)
    return pairing.look(load.slots, load.done_bytes, SLOT_S, slots, write)


def _asleep(rng: np.random.Generator) -> np.ndarray:
    return np.full(SLOTS * 250, 0.005)


def _idle(rng: np.random.Generator) -> np.ndarray:
    return np.full(SLOTS * 250, 0.5) + 0.01 * np.linspace(0, rng.uniform(-1, 1), SLOTS * 250)  # it warms, or cools


def _constant(rng: np.random.Generator) -> np.ndarray:
    return 2.0 + 0.3 * rng.standard_normal(SLOTS * 250)


def _random(rng: np.random.Generator) -> np.ndarray:
    """A load of its own, on and off at random, for 50 ms to 1 s."""
    watts, at = np.empty(SLOTS * 250), 0
    while at < len(watts):
        lasts = int(rng.uniform(50, 1000))
        watts[at : at + lasts] = 0.5 + rng.integers(2) * rng.uniform(0.5, 4.0)
        at += lasts
    return watts


OTHER: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "idle": _idle,
    "asleep": _asleep,
    "under a constant load": _constant,
    "under a random load": _random,
}


def _verdict(look_at: Callable[[bool], Look]) -> tuple[str, int]:
    """(verdict, tries), by the tries that a run makes; `look_at`: takes whether the try writes."""
    looks: list[list[Look]] = []
    ruling, wrote = UNKNOWN, False
    while len(looks) < TRIES and ruling != PAIRED and (counted := sum(not pairing.few(one) for one in looks)) < LOOKS:
        write = bool(counted and not wrote)
        wrote |= write
        looks.append([look_at(write)])
        ruling, _ = pairing.verdict(looks)
    return ruling, len(looks)


def _run(
    seed: int, preset: str, full: bool, other: Callable[[np.random.Generator], np.ndarray] | None
) -> tuple[str, int]:
    """(verdict, tries) of one run; `other`: what the rig is on instead."""
    rng, source = np.random.default_rng(seed), random.Random(seed)
    drive = _drive(preset, full)

    def look_at(write: bool) -> Look:
        load, rail = _played(drive, rng, source, WRITE if write else READ)
        return _looked(load, Rail(other(rng)) if other else rail, rng, write)

    return _verdict(look_at)


def _exchanged(seed: int) -> tuple[str, str]:
    """Verdicts of two runs, each with the rig of the other, which has a signature of its own meanwhile."""
    rng, source = np.random.default_rng(seed), random.Random(seed)
    drives = [_drive(DRIVES[(seed + n) % len(DRIVES)], bool(seed & 1)) for n in range(2)]

    def verdict(n: int) -> str:
        def look_at(write: bool) -> Look:
            played = [_played(drive, rng, source, WRITE if write else READ) for drive in drives]
            return _looked(played[n][0], played[1 - n][1], rng, write)

        return _verdict(look_at)[0]

    return verdict(0), verdict(1)


FLEETS = {  # fleets of the drives A and B with the rigs P of A and Q of B: whose power each rig has
    "crossed": {"P": "B", "Q": "A"},
    "as given": {"P": "A", "Q": "B"},
    "one rig on neither": {"P": "A", "Q": ""},
    "both rigs on neither": {"P": "", "Q": ""},
    "A's rig on B, B's on neither": {"P": "B", "Q": ""},
    "B shows a try later": {"P": "B", "Q": "A"},
}
REFUSED = "refused"


def _no_link(write: bool) -> NoReturn:
    raise AssertionError("a drive in model time has its bursts by _played()")


def _fleet(seed: int, feeds: Mapping[str, str], late: str = "") -> tuple[str | dict[str, str], int]:
    """(which rig was found to feed which drive or REFUSED, tries); `late`: the drive that no rig shows at first."""
    rng, source = np.random.default_rng(seed), random.Random(seed)
    drives = {name: _drive(DRIVES[(seed + n) % len(DRIVES)], bool(seed & 1)) for n, name in enumerate("AB")}
    named = [matching.Named(name, _no_link, 1 << 29, rig) for name, rig in zip("AB", "PQ", strict=True)]
    tries = 0

    def look() -> dict[matching.Pair, Look]:
        nonlocal tries
        tries += 1
        played = {name: _played(drive, rng, source, READ) for name, drive in drives.items()}
        hidden = {"", late} if tries == 1 else {""}
        rails = {rig: Rail(_idle(rng)) if on in hidden else played[on][1] for rig, on in feeds.items()}
        pairs = itertools.product(drives, rails)
        return {(name, rig, "5V"): _looked(played[name][0], rails[rig], rng, False) for name, rig in pairs}

    try:
        return matching.matched_by(named, list(feeds), look).feeds, tries
    except UsageError:
        return REFUSED, tries


def matched() -> list[Figure]:
    figures = []
    for name, feeds in FLEETS.items():
        late = "B" if "later" in name else ""
        outcomes = [_fleet(3000 + seed, feeds, late) for seed in range(OTHERS)]
        right = {on: rig for rig, on in feeds.items() if on}
        if right == {"B": "P"}:
            right = REFUSED
        matches = sum(one == right for one, _ in outcomes)
        figures.append(exactly(f"of {OTHERS} fleets, {name}: matched or refused rightly", matches, "fleets", OTHERS))
    return figures


@functools.cache
def _sound() -> list[tuple[str, int]]:
    return [_run(seed, DRIVES[seed % len(DRIVES)], bool(seed & 4), None) for seed in range(SOUND)]


def paired() -> list[Figure]:
    sound = [verdict for verdict, _ in _sound()]
    figures = [
        exactly(f"of {SOUND} sound runs: not paired, a false alarm", sound.count(NOT_PAIRED), "runs", 0),
        exactly(f"of {SOUND} sound runs: paired", sound.count(PAIRED), "runs", SOUND),
    ]
    for name, other in OTHER.items():
        verdicts = [_run(1000 + seed, DRIVES[seed % len(DRIVES)], bool(seed & 4), other)[0] for seed in range(OTHERS)]
        figures.append(
            exactly(f"of {OTHERS} rigs on a drive {name}: noticed", verdicts.count(NOT_PAIRED), "runs", OTHERS)
        )
    exchanged = [_exchanged(2000 + seed) for seed in range(EXCHANGED)]
    both = exchanged.count((NOT_PAIRED, NOT_PAIRED))
    figures.append(exactly(f"of {EXCHANGED} pairs of exchanged rigs: noticed", both, "pairs", EXCHANGED))
    most = max(tries for _, tries in _sound())
    figures.append(at_most("longest signature of a sound run", most * SLOTS * SLOT_S, "s", 10))
    return [*figures, *matched()]


BENCHES = {"pairing": ("a rig that feeds another drive is noticed, a sound one never suspected", paired)}
