"""When an act begins and ends by the host's clock, and the energy of all of it."""

from typing import NamedTuple

import numpy as np

from ssdrig.meter import rails
from ssdrig.meter.reduced import Asked, Reduced
from ssdrig.reading import power
from ssdrig.reading.rundata import SECOND_NS, RunData


class Energy(NamedTuple):
    """Of an act, in J of drive time, with its expanded uncertainty (k = 2; None: not known). None: `why`."""

    J: float | None = None
    uncertainty_percent: float | None = None
    why: str | None = None


def end_ns(data: RunData) -> int:
    """The end of an act of which the begin is known."""
    assert data.t0_ns is not None
    return data.t0_ns + round(data.load_s * SECOND_NS * data.k)


def edges_ns(data: RunData | None) -> np.ndarray:
    """The host times of which the energy is needed: begin and end of the act, and its seconds."""
    if data is None or data.t0_ns is None:
        return np.empty(0, np.int64)
    return np.append(power.grid_ns(data), [data.t0_ns, end_ns(data)])


def asked(data: RunData | None) -> Asked:
    """The same, as edges of windows."""
    return Asked.of(edges_ns(data), data.t0_error_ns if data else 0.0)


def whole(data: RunData | None, powers: list[Reduced]) -> Energy | None:
    """Energy of a whole act, with how well it is known; None of one that has no time or in a run without samples."""
    if not powers or data is None or data.t0_ns is None:
        return None
    span_ns = data.t0_ns, end_ns(data)
    if span_ns[1] <= span_ns[0]:
        return Energy(why=rails.NO_POWER)
    timed = rails.timed_J(powers, *span_ns)
    if timed.why:
        return Energy(why=timed.why)
    seconds, percent = (span_ns[1] - span_ns[0]) / SECOND_NS, None
    if not any(power.clipped_in(*span_ns)[0] for power in powers) and all(power.facts for power in powers):
        watts = [float(np.diff(power.integral_J(span_ns))[0]) / seconds for power in powers]
        uncertain_W = rails.uncertainty_W(powers, span_ns, watts)
        percent = 100 * uncertain_W / sum(watts) if sum(watts) > 0 and np.isfinite(uncertain_W) else None
    return Energy(timed.J / data.k, percent)
