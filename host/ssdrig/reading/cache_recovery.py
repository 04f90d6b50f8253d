"""How an SLC cache recovers: its capacity after a rest, over the length of that rest. Pure.

The amount folded in a rest grows with its length once the drive begins, until the cache is whole. So a straight line
through the rests in which a part came back has the folding rate as its slope, and the delay of the drive where it
crosses 0. A rest whose cache is known too vaguely, or that brought back less than a shorter one that brought back all,
was disturbed: it is left out. The energies of the same rests lie on a line, too, whose slope is the drive's power while
it folds. Less its power at rest, which is the slope between rests that ended before it began, and divided by the rate,
that is the energy of folding. A power state that the drive enters later, in a long rest, has no part in it. Without two
rests that ended before, the two shortest that brought back all stand for them; the drive may sleep by then, so by as
much as its power right after folding differs from theirs the figure is uncertain."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from ssdrig.base.uncertain import FEWEST, NO_ERROR, Uncertain, difference, line, ratio

NONE = "no load with a rest before it whose cache is known"
WHOLE = 0.95  # of the largest
SOME = 0.05
VAGUE = 0.05  # of the largest: a cache with a larger error is not used


class Rest(NamedTuple):
    """A rest (s), its energy after its tail (J; None: not known), and the bytes that the cache took after it. The
    drive's work in the tail differs from rest to rest, and has no part in a slope."""

    rest_s: float
    cache_bytes: float
    rest_J: float | None = None
    rest_error_J: float | None = None
    cache_error_bytes: float | None = None


class Recovery(NamedTuple):
    """`whole_bytes`: the largest recovered size; `whole_s`: the shortest rest for it. `rate_Bps` and `delay_s` by
    `used` rests, `disturbed` ones left out; `folding_W` in them, including `floor_W`, the drive's at rest;
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
    most = max((rest.cache_bytes for rest in rests), default=0.0)
    clear = [rest for rest in rests if (rest.cache_error_bytes or 0.0) <= VAGUE * most]
    if not clear:
        return Recovery(None, None, disturbed=len(rests), why=NONE, energy_why=NONE)
    ordered = sorted(clear, key=lambda rest: rest.rest_s)
    most = max(rest.cache_bytes for rest in ordered)
    if not most:
        none = "no rest brought back any of it"
        return Recovery(None, None, disturbed=len(rests) - len(clear), why=none, energy_why=none)
    whole = [rest for rest in ordered if rest.cache_bytes >= WHOLE * most]
    ordered = [rest for rest in ordered if rest.rest_s < whole[0].rest_s or rest in whole]
    part = [rest for rest in ordered if SOME * most < rest.cache_bytes < WHOLE * most]
    out = Recovery(most, whole[0].rest_s, used=len(part), energy_why="the rate is not known")
    out = out._replace(disturbed=len(rests) - len(ordered))
    if len({rest.rest_s for rest in part}) < FEWEST:
        why = f"{len(part)} rests brought back a part, the rate and its error need {FEWEST}; rest for other times"
        return out._replace(why=why)
    lengths, sizes, errors = zip(
        *((rest.rest_s, rest.cache_bytes, rest.cache_error_bytes) for rest in part), strict=True
    )
    fitted = line(lengths, sizes, errors)
    rate = fitted.slope
    if rate.value is None or rate.error is None or not rate.value > max(0.0, rate.error):
        return out._replace(why="what came back did not grow with the rest, or no more than it scatters")
    begun = fitted.zero
    delay_s = None if begun.value is None else max(0.0, begun.value)
    none = [rest for rest in ordered if rest.cache_bytes <= SOME * most and rest.rest_s <= (delay_s or 0.0)]
    out = out._replace(rate_Bps=rate.value, rate_error_Bps=rate.error, delay_s=delay_s, delay_error_s=begun.error)
    return _energy(out, rate, part, none, whole[:2])


def _watts(rests: Sequence[Rest]) -> Uncertain:
    """By how much the energy grows with the rest."""
    known = [(rest, rest.rest_J) for rest in rests if rest.rest_J is not None]
    errors = [one.rest_error_J for one, _ in known] if len(known) < FEWEST else []
    return line([one.rest_s for one, _ in known], [J for _, J in known], errors).slope


def _after_folding(part: Sequence[Rest], first: Rest, rate: Uncertain, delay_s: float) -> Uncertain:
    """Power (W) between the end of folding and the end of `first`, the shortest rest that brought back all. The energy
    and the time at that end are those of the line through `part`, with the error of the folding rate."""
    none = Uncertain(None, None, NO_ERROR, "the energies of the rests do not lie on a line")
    lengths, joules = [rest.rest_s for rest in part], [rest.rest_J for rest in part if rest.rest_J is not None]
    if (whole_J := first.rest_J) is None or len(joules) < len(part):
        return none
    folding, folds_s = line(lengths, joules).slope, ratio(Uncertain(first.cache_bytes, 0.0), rate)
    if folding.value is None or folding.error is None or folds_s.value is None or folds_s.error is None:
        return none
    on_s, left_s = delay_s + folds_s.value - fmean(lengths), first.rest_s - delay_s - folds_s.value
    if left_s <= 0:
        return none
    error_J = math.hypot(folding.error * on_s, folding.value * folds_s.error, first.rest_error_J or 0.0)
    left_J = whole_J - fmean(joules) - folding.value * on_s
    return ratio(Uncertain(left_J, error_J), Uncertain(left_s, 0.0))


def _energy(
    out: Recovery, rate: Uncertain, part: Sequence[Rest], none: Sequence[Rest], whole: Sequence[Rest]
) -> Recovery:
    """`none`: rests that ended before the drive folded; `whole`: the two shortest that brought back all."""
    folding, floor = _watts(part), _watts(none)
    late = _watts(whole)
    if floor.value is None and late.value is not None and late.error is not None:
        after = _after_folding(part, whole[0], rate, out.delay_s or 0.0)
        if after.value is None or after.error is None:
            words = "no rest ended before the drive folded, and its power right after folding is not known"
            return out._replace(folding_W=folding.value, folding_error_W=folding.error, energy_why=words)
        floor = Uncertain(late.value, late.error + after.error + abs(after.value - late.value))
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
