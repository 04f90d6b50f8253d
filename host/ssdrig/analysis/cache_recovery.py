"""How an SLC cache comes back: what it takes after a rest, over the length of that rest. Pure.

What is folded in a rest grows with its length from when the drive begins, until the cache is whole. So a straight line
through the rests in which a part came back has the folding rate as its slope, and the delay of the drive where it
crosses 0. Energy of folding: what the longest rest took above the drive's floor, which is the mean power between the
ends of the two longest rests; it is only known where both brought back all."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

WHOLE = 0.95  # of the largest
SOME = 0.05


class Rest(NamedTuple):
    """A rest of so many s and J (None: not known), and what the cache took behind it."""

    rest_s: float
    cache_bytes: float
    rest_J: float | None = None


class Recovery(NamedTuple):
    """`whole_bytes`: what came back at most; `whole_s`: the shortest rest for it. `rate_Bps` and `delay_s` by `used`
    rests, `energy_J_per_GB` of folding above `floor_W`. None: `why`, `energy_why`."""

    whole_bytes: float
    whole_s: float
    rate_Bps: float | None = None
    delay_s: float | None = None
    used: int = 0
    why: str | None = None
    floor_W: float | None = None
    energy_J_per_GB: float | None = None
    energy_why: str | None = None


def of(rests: Sequence[Rest]) -> Recovery | None:
    """None without any."""
    if not rests:
        return None
    ordered = sorted(rests)
    most = max(each.cache_bytes for each in ordered)
    whole = [each for each in ordered if each.cache_bytes >= WHOLE * most]
    part = [each for each in ordered if SOME * most < each.cache_bytes < WHOLE * most]
    out = Recovery(most, whole[0].rest_s, used=len(part))
    if len({each.rest_s for each in part}) < 2:
        out = out._replace(why=f"{len(part)} rests brought back a part, the rate needs two; rest for other times")
    else:
        slope, at_0 = np.polyfit([each.rest_s for each in part], [each.cache_bytes for each in part], 1)
        if slope > 0:
            out = out._replace(rate_Bps=float(slope), delay_s=max(0.0, float(-at_0 / slope)))
        else:
            out = out._replace(why="what came back did not grow with the rest")
    return _energy(out, whole, most)


def _energy(out: Recovery, whole: Sequence[Rest], most: float) -> Recovery:
    known = [(each.rest_s, each.rest_J) for each in whole if each.rest_J is not None]
    if len(known) < 2 or known[-1][0] <= known[-2][0] or not most:
        return out._replace(energy_why="it needs the energy of two rests of different length that brought back all")
    (less_s, less_J), (longest_s, longest_J) = known[-2:]
    floor_W = (longest_J - less_J) / (longest_s - less_s)
    above_J = longest_J - floor_W * longest_s
    if floor_W <= 0 or above_J <= 0:
        return out._replace(energy_why="the longest rest took no more than the drive's floor: something else did work")
    return out._replace(floor_W=floor_W, energy_J_per_GB=1e9 * above_J / most)
