"""How an SLC cache comes back: what it takes after a rest, over the length of that rest. Pure.

What is folded in a rest grows with its length from when the drive begins, until the cache is whole. So a straight line
through the rests in which a part came back has the folding rate as its slope, and the delay of the drive where it
crosses 0. The energies of the same rests lie on a line, too, whose slope is the drive's power while it folds. Less its
power at rest, which is the slope between rests that ended before it began (or, without two of those, between the
two shortest that brought back all), and divided by the rate, that is the energy of folding. A power state that the
drive enters later, in a long rest, has no part in it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NONE = "no load with a rest before it whose cache is known"
WHOLE = 0.95  # of the largest
SOME = 0.05


class Rest(NamedTuple):
    """A rest of so many s and J (None: not known), and what the cache took behind it."""

    rest_s: float
    cache_bytes: float
    rest_J: float | None = None


class Recovery(NamedTuple):
    """`whole_bytes`: what came back at most; `whole_s`: the shortest rest for it. `rate_Bps` and `delay_s` by `used`
    rests; `folding_W` in them, of which `floor_W` is the drive's at rest; `energy_J_per_GB` of folding above that.
    None: `why`, `energy_why`."""

    whole_bytes: float | None
    whole_s: float | None
    rate_Bps: float | None = None
    delay_s: float | None = None
    used: int = 0
    why: str | None = None
    folding_W: float | None = None
    floor_W: float | None = None
    energy_J_per_GB: float | None = None
    energy_why: str | None = None


def of(rests: Sequence[Rest]) -> Recovery:
    """What these rests have in common; nothing but the reason without any."""
    if not rests:
        return Recovery(None, None, why=NONE, energy_why=NONE)
    ordered = sorted(rests, key=lambda each: each.rest_s)
    most = max(each.cache_bytes for each in ordered)
    whole = [each for each in ordered if each.cache_bytes >= WHOLE * most]
    part = [each for each in ordered if SOME * most < each.cache_bytes < WHOLE * most]
    out = Recovery(most, whole[0].rest_s, used=len(part))
    line = _line(part, [each.cache_bytes for each in part])
    if line is None:
        why = f"{len(part)} rests brought back a part, the rate needs two; rest for other times"
    elif line[0] <= 0:
        why = "what came back did not grow with the rest"
    else:
        rate, at_0 = line
        delay_s = max(0.0, -at_0 / rate)
        none = [each for each in ordered if each.cache_bytes <= SOME * most and each.rest_s <= delay_s]
        return _energy(out._replace(rate_Bps=rate, delay_s=delay_s), rate, part, (none, whole[:2]))
    return out._replace(why=why, energy_why="the rate is not known")


def _line(rests: Sequence[Rest], values: Sequence[float]) -> tuple[float, float] | None:
    """(slope, value at 0) over the length of the rests; None where all are of one length."""
    lengths = [each.rest_s for each in rests]
    if len(set(lengths)) < 2:
        return None
    slope, at_0 = np.polyfit(lengths, values, 1)
    return float(slope), float(at_0)


def _watts(rests: Sequence[Rest]) -> float | None:
    """By how much the energy grows with the rest."""
    known = [(each, each.rest_J) for each in rests if each.rest_J is not None]
    line = _line([each for each, _ in known], [joules for _, joules in known])
    return None if line is None else line[0]


def _energy(out: Recovery, rate: float, part: Sequence[Rest], idle: Sequence[Sequence[Rest]]) -> Recovery:
    """`idle`: rests between whose lengths the drive does nothing; the first that say so are taken."""
    folding = _watts(part)
    floor = next((watts for rests in idle if (watts := _watts(rests)) is not None), None)
    if folding is None or floor is None:
        words = "two of different length in which a part came back, and two in which the drive does nothing more"
        return out._replace(folding_W=folding, energy_why=f"it needs the energy of rests: {words}")
    out = out._replace(folding_W=folding, floor_W=floor)
    if not folding > floor > 0:
        return out._replace(energy_why="the drive took no more while it folded than at rest: something else did work")
    return out._replace(energy_J_per_GB=1e9 * (folding - floor) / rate)
