"""The highest mean of 100 us of a window, by the rig's fast current channel (meter/fast.py)."""

import numpy as np

from ssdrig.meter import fast
from ssdrig.plan.rules.windows import Window
from ssdrig.reading.rundata import SECOND_NS, RunData

NOTHING = 0.02  # of a peak: what another rail, which has no such channel, may draw at most
NO_CHANNEL = "peak_100us_W: the rig has no fast current channel"


def of(data: RunData, window: Window, notes: list[str]) -> dict:
    """peak_100us_W and its uncertainty; {} where it is not known, and why in `notes` (of a rig without the channel the
    run says it once). Nobody sees the peaks of other rails: beside one that draws anything there is none of the
    drive."""
    with_it = [rail for rail in data.rails if rail.fast is not None]
    if data.t0_ns is None or not with_it:
        return {}
    rail, cut = with_it[0], slice(window.t0_s, window.t1_s)
    assert rail.fast
    begin_ns, end_ns = (data.t0_ns + round(t_s * data.k * SECOND_NS) for t_s in (window.t0_s, window.t1_s))
    best, why = fast.highest(rail.fast, begin_ns, end_ns)
    if best is None or rail.facts is None or rail.volts_V is None:
        notes.append(f"peak_100us_W: {why or 'the sensor of its rail was silent'}")
        return {}
    watts, u_W = fast.power_W(rail.fast, best, rail.facts, rail.volts_V)
    for other in data.rails:
        highest_W = float(np.nan_to_num(other.power_max_W[cut], nan=np.inf).max())
        if other is not rail and highest_W > NOTHING * watts:
            said = f"{watts:.2f} W ± {u_W:.2f} W of rail {rail.rail} ({rail.name})"
            notes.append(
                f"peak_100us_W: {said}; rail {other.rail} ({other.name}), which draws too, has no such channel"
            )
            return {}
    return {"peak_100us_W": watts, "peak_100us_uncertainty_W": u_W}
