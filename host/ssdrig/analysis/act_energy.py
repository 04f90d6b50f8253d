"""When an act begins and ends by the host's clock, and the energy of all of it."""

from collections.abc import Sequence

import numpy as np

from ssdrig.analysis import power
from ssdrig.analysis.rundata import SECOND_NS, RunData
from ssdrig.meter import rails
from ssdrig.meter.reduced import Reduced


def end_ns(data: RunData) -> int:
    """The end of an act of which the begin is known."""
    assert data.t0_ns is not None
    return data.t0_ns + round(data.load_s * SECOND_NS * data.k)


def edges_ns(data: RunData | None) -> np.ndarray:
    """The host times of which the energy is needed: begin and end of the act, and its seconds."""
    if data is None or data.t0_ns is None:
        return np.empty(0, np.int64)
    return np.append(power.grid_ns(data), [data.t0_ns, end_ns(data)])


def whole_J(acts: Sequence[RunData | None], powers: list[Reduced]) -> list[float | None]:
    """Energy of each whole act (drive time); None where a rail is not known throughout."""
    found: list[float | None] = []
    for data in acts:
        timed = powers and data is not None and data.t0_ns is not None
        joules = rails.energy_J(powers, data.t0_ns or 0, end_ns(data)) if timed and data else None
        found.append(joules / data.k if joules is not None and data else None)
    return found
