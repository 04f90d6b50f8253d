"""What power's return costs a drive: the energy of its start, and the charge of its capacitors.

From outside, the capacitors that protect a drive's cache cannot be seen while they work: they are after its input.
Only their charge when power is back can be seen, so a start after a cut needs more energy than one after an
announced shutdown, which leaves them full. As they age the difference falls."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

COVERAGE = 2.0  # standard deviations, about 95 %


class Recharge(NamedTuple):
    """What a start took more than one after an announced shutdown, J, and the bound (95 %) that the scatter of those
    leaves; None where it is not known, `why`."""

    energy_J: float | None
    bound_J: float | None
    why: str = ""


class Health(NamedTuple):
    """Capacitance at each cut, in % of that at the first one, by a line through the recharge energies; the standard
    error of the last one, in points."""

    percent: list[float]
    error_percent: float


def recharge(energy_J: float | None, announced_J: Sequence[float]) -> Recharge:
    """energy_J: of a start after a cut; announced_J: of starts after announced shutdowns, over the same time."""
    if energy_J is None:
        return Recharge(None, None, "the energy of this start is not known")
    if not announced_J:
        return Recharge(None, None, "no start after an announced shutdown to compare with")
    more = energy_J - float(np.mean(announced_J))
    if len(announced_J) < 2:
        return Recharge(more, None, "one start after an announced shutdown shows no scatter")
    return Recharge(more, COVERAGE * float(np.std(announced_J, ddof=1)) * math.sqrt(1 + 1 / len(announced_J)))


def health(numbers: Sequence[int], recharge_J: Sequence[float | None]) -> Health | None:
    """Trend of the capacitors over a campaign. numbers: of the cuts. None where fewer than three recharges are known,
    or none was seen."""
    known = [(n, e) for n, e in zip(numbers, recharge_J, strict=True) if e is not None]
    if len(known) < 3:
        return None
    x, y = (np.array(values, float) for values in zip(*known))
    slope, at = np.polyfit(x - x.mean(), y, 1)
    line = at + slope * (np.asarray(numbers, float) - x.mean())
    if line[0] <= 0:
        return None
    rest = y - (at + slope * (x - x.mean()))
    scatter = math.sqrt(float((rest**2).sum()) / max(1, len(x) - 2))
    spread = float(((x - x.mean()) ** 2).sum())
    ratio, begin, end = float(line[-1] / line[0]), float(numbers[0] - x.mean()), float(numbers[-1] - x.mean())
    variance = (1 - ratio) ** 2 / len(x) + (end - ratio * begin) ** 2 / spread if spread else 2.0
    return Health(
        [100 * float(value / line[0]) for value in line], 100 * scatter * math.sqrt(variance) / float(line[0])
    )
