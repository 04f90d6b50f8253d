"""How an SLC cache comes back: what it takes after a rest, over the length of that rest. Pure.

What is folded in a rest grows with its length from when the drive begins, until the cache is whole. So a straight line
through the rests in which a part came back has the folding rate as its slope, and the delay of the drive where it
crosses 0. A rest whose cache is known too vaguely, or that brought back less than a shorter one that brought back all,
was disturbed: it is left out. The energies of the same rests lie on a line, too, whose slope is the drive's power while
it folds. Less its power at rest, which is the slope between rests that ended before it began (or, without two of those,
between the two shortest that brought back all), and divided by the rate, that is the energy of folding. A power state
that the drive enters later, in a long rest, has no part in it."""

from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.base.uncertain import FEWEST, Uncertain, difference, line, ratio

NONE = "no load with a rest before it whose cache is known"
WHOLE = 0.95  # of the largest
SOME = 0.05
VAGUE = 0.05  # of the largest: a cache that is known no better is none


class Rest(NamedTuple):
    """A rest of so many s, J behind its tail (None: not known), and what the cache took behind it. What the drive still
    does in the tail differs from rest to rest, and has no part in a slope."""

    rest_s: float
    cache_bytes: float
    rest_J: float | None = None
    rest_error_J: float | None = None
    cache_error_bytes: float | None = None


class Recovery(NamedTuple):
    """`whole_bytes`: what came back at most; `whole_s`: the shortest rest for it. `rate_Bps` and `delay_s` by `used`
    rests, `disturbed` ones left out; `folding_W` in them, of which `floor_W` is the drive's at rest;
    `energy_J_per_GB` of folding above that. None: `why`, `energy_why`. Each with its error."""

    whole_bytes: float | None
    whole_s: float | None
    rate_Bps: float | None = None
    rate_error_Bps: float | None = None
    delay_s: float | None = None
    delay_error_s: float | None = None
    used: int = 0
    disturbed: int = 0
    why: str | None = None
    folding_W: float | None = None
    folding_error_W: float | None = None
    floor_W: float | None = None
    floor_error_W: float | None = None
    energy_J_per_GB: float | None = None
    energy_error_J_per_GB: float | None = None
    energy_why: str | None = None


def of(rests: Sequence[Rest]) -> Recovery:
    """What these rests have in common; nothing but the reason without any."""
    most = max((each.cache_bytes for each in rests), default=0.0)
    clear = [each for each in rests if (each.cache_error_bytes or 0.0) <= VAGUE * most]
    if not clear:
        return Recovery(None, None, disturbed=len(rests), why=NONE, energy_why=NONE)
    ordered = sorted(clear, key=lambda each: each.rest_s)
    most = max(each.cache_bytes for each in ordered)
    if not most:
        none = "no rest brought back any of it"
        return Recovery(None, None, disturbed=len(rests) - len(clear), why=none, energy_why=none)
    whole = [each for each in ordered if each.cache_bytes >= WHOLE * most]
    ordered = [each for each in ordered if each.rest_s < whole[0].rest_s or each in whole]
    part = [each for each in ordered if SOME * most < each.cache_bytes < WHOLE * most]
    out = Recovery(most, whole[0].rest_s, used=len(part), energy_why="the rate is not known")
    out = out._replace(disturbed=len(rests) - len(ordered))
    if len({each.rest_s for each in part}) < FEWEST:
        why = f"{len(part)} rests brought back a part, the rate and its error need {FEWEST}; rest for other times"
        return out._replace(why=why)
    lengths, sizes, errors = zip(
        *((each.rest_s, each.cache_bytes, each.cache_error_bytes) for each in part), strict=True
    )
    found = line(lengths, sizes, errors)
    rate = found.slope
    if rate.value is None or rate.error is None or not rate.value > max(0.0, rate.error):
        return out._replace(why="what came back did not grow with the rest, or no more than it scatters")
    begun = found.zero
    delay_s = None if begun.value is None else max(0.0, begun.value)
    none = [each for each in ordered if each.cache_bytes <= SOME * most and each.rest_s <= (delay_s or 0.0)]
    out = out._replace(rate_Bps=rate.value, rate_error_Bps=rate.error, delay_s=delay_s, delay_error_s=begun.error)
    return _energy(out, rate, part, (none, whole[:2]))


def _watts(rests: Sequence[Rest]) -> Uncertain:
    """By how much the energy grows with the rest."""
    known = [(each, each.rest_J) for each in rests if each.rest_J is not None]
    errors = [one.rest_error_J for one, _ in known] if len(known) < FEWEST else []
    return line([one.rest_s for one, _ in known], [J for _, J in known], errors).slope


def _energy(out: Recovery, rate: Uncertain, part: Sequence[Rest], idle: Sequence[Sequence[Rest]]) -> Recovery:
    """`idle`: rests between whose lengths the drive does nothing; the first that say so are taken."""
    folding = _watts(part)
    floors = [_watts(rests) for rests in idle]
    floor = next((watts for watts in floors if watts.value is not None), floors[0])
    out = out._replace(
        folding_W=folding.value,
        folding_error_W=folding.error,
        floor_W=floor.value if folding.value is not None else None,
        floor_error_W=floor.error if folding.value is not None else None,
    )
    if folding.value is None or floor.value is None:
        words = "two of different length in which a part came back, and two in which the drive does nothing more"
        return out._replace(energy_why=f"it needs the energy of rests: {words}")
    more = difference(folding, floor)
    if more.value is None or more.error is None or not more.value > more.error or not floor.value > 0:
        return out._replace(energy_why="the drive took no more while it folded than at rest: something else did work")
    cost = ratio(more, rate).scaled(1e9)
    return out._replace(energy_J_per_GB=cost.value, energy_error_J_per_GB=cost.error, energy_why=cost.why or None)
