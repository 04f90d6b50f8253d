"""Two meters of one supply: the energy by the one over that by the other, with what both state of themselves. Pure."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.meter import rails

LEAST_S = 1.0


class Ratio(NamedTuple):
    """`ratio`: first / second; `error`: of it, expanded (k = 2); None, and `why`, where it is not known."""

    ratio: float | None
    error: float | None = None
    why: str | None = None

    @property
    def agree(self) -> bool | None:
        """Whether 1 is within the error."""
        if self.ratio is None or self.error is None:
            return None
        return abs(self.ratio - 1) <= self.error


def compare(first: Sequence[rails.Rail], second: Sequence[rails.Rail], begin_ns: int, end_ns: int) -> Ratio:
    """The comparison of the energies between two host times, the rails of each meter together.

    The error has the uncertainty of both, which have nothing in common, with the time terms of both. A ratio whose
    error is not known has none."""
    if end_ns - begin_ns < LEAST_S * 1e9:
        return Ratio(None, why=f"a stretch of less than {LEAST_S:g} s")
    energies, relative, whys = [], [], []
    for name, powers in (("first", first), ("second", second)):
        timed = rails.timed_J(powers, begin_ns, end_ns)
        if timed.why or not timed.J > 0:
            return Ratio(None, why=f"the {name} meter: {timed.why or 'no energy'}")
        seconds = (end_ns - begin_ns) / 1e9
        watts = [(rails.energy_J([power], begin_ns, end_ns) or 0.0) / seconds for power in powers]
        error_W = rails.uncertainty_W(powers, (begin_ns, end_ns), watts)
        energies.append(timed.J)
        relative.append(error_W * seconds / timed.J)
        if not math.isfinite(error_W):
            whys.append(f"the uncertainty of the {name} meter is not known")
    ratio = energies[0] / energies[1]
    if whys:
        return Ratio(ratio, why="; ".join(whys))
    return Ratio(ratio, ratio * math.hypot(*relative))
