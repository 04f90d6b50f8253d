"""How an SLC cache comes back: what it takes after a rest, over the length of that rest. Pure.

What is folded in a rest grows with its length from when the drive begins, until the cache is whole. So a straight line
through the rests in which a part came back has the folding rate as its slope, and the delay of the drive where it
crosses 0. The energies of the same rests lie on a line, too, whose slope is the drive's power while it folds. Less its
power at rest, which is the slope between rests that ended before it began (or, without two of those, between the
two shortest that brought back all), and divided by the rate, that is the energy of folding. A power state that the
drive enters later, in a long rest, has no part in it."""

from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.base.uncertain import FEWEST, Uncertain, difference, line, ratio

NONE = "no load with a rest before it whose cache is known"
WHOLE = 0.95  # of the largest
SOME = 0.05


class Rest(NamedTuple):
    """A rest of so many s and J (None: not known), and what the cache took behind it."""

    rest_s: float
    cache_bytes: float
    rest_J: float | None = None
    rest_error_J: float | None = None


class Recovery(NamedTuple):
    """`whole_bytes`: what came back at most; `whole_s`: the shortest rest for it. `rate_Bps` and `delay_s` by `used`
    rests; `folding_W` in them, of which `floor_W` is the drive's at rest; `energy_J_per_GB` of folding above that.
    None: `why`, `energy_why`. Each with its error."""

    whole_bytes: float | None
    whole_s: float | None
    rate_Bps: float | None = None
    rate_error_Bps: float | None = None
    delay_s: float | None = None
    delay_error_s: float | None = None
    used: int = 0
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
    if not rests:
        return Recovery(None, None, why=NONE, energy_why=NONE)
    ordered = sorted(rests, key=lambda each: each.rest_s)
    most = max(each.cache_bytes for each in ordered)
    whole = [each for each in ordered if each.cache_bytes >= WHOLE * most]
    part = [each for each in ordered if SOME * most < each.cache_bytes < WHOLE * most]
    out = Recovery(most, whole[0].rest_s, used=len(part), energy_why="the rate is not known")
    if len({each.rest_s for each in part}) < FEWEST:
        why = f"{len(part)} rests brought back a part, the rate and its error need {FEWEST}; rest for other times"
        return out._replace(why=why)
    found = line([each.rest_s for each in part], [each.cache_bytes for each in part])
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
    return line([one.rest_s for one, _ in known], [J for _, J in known], [one.rest_error_J for one, _ in known]).slope


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
