"""Bursts and pauses of a load with pauses, each for itself: what its bursts do a second, and what its pauses draw."""

import math

import numpy as np

from ssdrig.base.uncertain import mean_error
from ssdrig.load import fiojob
from ssdrig.meter import uncertainty
from ssdrig.reading import errors
from ssdrig.reading.rundata import RunData

KEYS = ("burst_iops", "pause_mean_W", "cycles")
NONE = "it is not a load with pauses"
EDGE_S = 1  # of a pause, at each end: I/O that drains or is late


def end_s(lasted_s: int, first_s: int, period_s: float) -> int:
    """Where the last whole cycle ends: fio that is late for the end of its time pauses once more."""
    period = round(period_s)
    whole = period == period_s and lasted_s - first_s >= period
    return first_s + (lasted_s - first_s) // period * period if whole else lasted_s


def whole(on_s: float, off_s: float, begin_s: int, end_s: int) -> tuple[int, int]:
    """The whole cycles within a stretch, from its begin to its end; the stretch itself where it holds none, or where
    they are not of whole seconds."""
    first, period = math.ceil(fiojob.first_burst_s(on_s, off_s)), round(on_s + off_s)
    begin = first + -(-max(0, begin_s - first) // period) * period
    count = (end_s - begin) // period
    return (begin, begin + count * period) if period == on_s + off_s and count > 0 else (begin_s, end_s)


def _untimed(data: RunData, begin_s: int, still: np.ndarray, period: int, joules: float) -> str | None:
    """Why the energy of these seconds of pauses is not known for the clock's sake."""
    cycle, second = np.nonzero(still)
    seconds = begin_s + cycle * period + EDGE_S + second
    edges_of = [rail.edges for rail in data.rails if rail.edges is not None]
    error_ns = max((float(edges.error_ns[seconds].max()) for edges in edges_of), default=0.0)
    return uncertainty.untimed(sum(edges.seconds_J(seconds) for edges in edges_of) / data.k, joules, error_ns)


def of(data: RunData, first_s: int, begin_s: int, end_s: int, on_s: float, off_s: float) -> tuple[dict, str | None]:
    """KEYS, with `errors`, of the whole cycles within [begin_s, end_s), and the reason of a None. A cycle is a pause of
    `off_s` and the burst of `on_s` after it; the first one begins `first_s` after the first I/O. Times in whole
    seconds of the drive; I/Os of a cycle count for its burst, also those that complete late; a pause is where none do.
    `data` has its power on the grid."""
    out: dict = dict.fromkeys(KEYS)
    on, off = round(on_s), round(off_s)
    if on != on_s or off != off_s:
        return out, "bursts and pauses are not of whole seconds"
    period = on + off
    begin = first_s + -(-max(0, begin_s - first_s) // period) * period
    count = max(0, end_s - begin) // period
    if not count:
        return out, "no complete pause followed by a burst"
    end = begin + count * period
    rates = data.iops[begin:end].reshape(count, period).sum(axis=1) / on
    out |= {"cycles": count, "burst_iops": float(rates.mean()), "errors": {}}
    seconds = data.iops[begin:end].reshape(count, period)[:, off:]
    long_enough = end - begin >= errors.LEAST_S
    if long_enough and (error := mean_error(rates if count > 1 else seconds[0])) is not None:
        out["errors"] = {"burst_iops": error}
    if off <= 2 * EDGE_S:
        return out, f"pauses of {off} s: {EDGE_S} s at each end does not count"
    still = data.iops[begin:end].reshape(count, period)[:, EDGE_S : off - EDGE_S] == 0
    if not still.any():
        return out, "the cycles came so late that there is I/O where the pauses should be"
    # a host that was late makes all later cycles late: a second with I/O is not part of a pause
    watts = data.power_mean_W[begin:end].reshape(count, period)[:, EDGE_S : off - EDGE_S][still]
    if not np.isfinite(watts).all():
        return out, "power samples do not cover all pauses"
    if why := _untimed(data, begin, still, period, float(watts.sum())):
        return out, why
    cycle, second = np.nonzero(still)
    seconds = begin + cycle * period + EDGE_S + second
    budget_W = errors.budget_W(data.rails, [float(rail.power_mean_W[seconds].mean()) for rail in data.rails], seconds)
    by_pause = [watts[cycle == at].mean() for at in np.unique(cycle)]  # seconds of one pause are alike
    scatter_W = mean_error(by_pause if len(by_pause) > 1 else watts) if long_enough else None
    if budget_W is not None and scatter_W is not None:
        out["errors"]["pause_mean_W"] = math.hypot(budget_W, scatter_W)
    return out | {"pause_mean_W": float(watts.mean())}, None
