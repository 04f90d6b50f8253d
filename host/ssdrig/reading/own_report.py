"""The meter against the drive: the rig's energy, divided by the energy that the drive itself reports.

A drive may report both in NVMe log 02h (Base Specification 2.3): the energy of its life, in whole Wh rounded up, and
its mean power over the last interval, here taken as INTERVAL_S (the log does not state it) that ended up to one
interval before the drive answered, at any moment of the poll. The one with the smaller error is used.

Error (expanded, k = 2, GUM 5.1.2), in squares: the rig's own uncertainty; for the energy the rounding of two counts,
a triangle of +-1 Wh, the rig's energy over the time that each count may be of, and by how much the clock's error may
move it between the readings; for the power its last digit, by how much the clock's error may move the rig's means, and
the place of the interval: the scatter of the rig's mean over all intervals that it can have been, twice, because polls
may come in step with the drive's intervals or not: of each reading alone, and of the readings' sum with all intervals
at the same place (a limit, since it is not known which)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ssdrig.meter import rails
from ssdrig.meter.reduced import Asked
from ssdrig.reading.rundata import SECOND_NS, RunData

INTERVAL_S = 1.0
PLACES = 17  # possible ends of an interval, evenly from one interval before the poll to its end
WIDTH_NS = round(INTERVAL_S * SECOND_NS)
LONGEST_NS = 20 * SECOND_NS  # of a poll; what a longer one reports is of a moment that is not known
COARSEST_PERCENT = 20.0  # a larger error makes the figure useless
J_PER_WH = 3600.0
COVERAGE = 2.0
NOTHING = "the drive does not report its own energy or power"


class Comparison(NamedTuple):
    """`ratio`: rig / drive; `error` of it; `of`: "power" or "energy", `readings` that it is made of. None: `why`."""

    ratio: float | None
    error: float | None = None
    of: str | None = None
    readings: int = 0
    why: str | None = None


def readings(data: RunData) -> list[dict]:
    """The polls in which the drive reported any."""
    reported = [s for s in data.snapshots if s.get("interval_power_W") is not None or s.get("lifetime_energy_Wh")]
    return [s for s in reported if 0 <= s["t_end_ns"] - s["t_start_ns"] <= LONGEST_NS]


def timed(data: RunData) -> Asked:
    """The host times at which place() needs the rig's energy."""
    return Asked.of([ns for s in readings(data) for ns in (s["t_ns"], *_around_ns(s).tolist())])


def _around_ns(snapshot: dict) -> np.ndarray:
    """Begins of all intervals that a poll's report can be of, then their ends."""
    ends_ns = np.linspace(snapshot["t_start_ns"] - WIDTH_NS, snapshot["t_end_ns"], PLACES).astype(np.int64)
    return np.concatenate([ends_ns - WIDTH_NS, ends_ns])


def place(data: RunData, powers: Sequence[rails.Rail]) -> None:
    """Give the run the drive's report at each reading, and the rig's measurement then (data.own_*). A drive without a
    report has one line in `notes`, not one a window."""
    reported = readings(data)
    if data.snapshots and not reported and data.header.get("rig") is not None:
        data.notes.append(f"own_power_ratio: {NOTHING}")
    data.own_ns = np.array([(s["t_start_ns"], s["t_end_ns"]) for s in reported], np.int64).reshape(-1, 2)
    data.own_W, data.own_Wh = (
        np.array([np.nan if s.get(key) is None else s[key] for s in reported], float)
        for key in ("interval_power_W", "lifetime_energy_Wh")
    )
    n = len(reported)
    data.rig_W = np.full((n, PLACES), np.nan)
    data.rig_open_W, data.rig_around_J, data.rig_J = (np.full(n, np.nan) for _ in range(3))
    for i, snapshot in enumerate(reported):
        at_ns = _around_ns(snapshot)
        sorted_ns, index = np.unique(at_ns, return_inverse=True)
        running_J = np.concatenate([[0.0], np.cumsum(rails.steps_J(powers, sorted_ns))])
        begins_J, ends_J = running_J[index].reshape(2, PLACES)
        if np.isfinite(running_J[-1]):
            data.rig_W[i] = (ends_J - begins_J) / INTERVAL_S
            data.rig_around_J[i] = (ends_J[-1] - ends_J[0]) / data.k
        edges = [power.edges(at_ns) for power in powers]
        open_J = [sum(of.time_J(j, j + PLACES) for of in edges) for j in range(PLACES)]
        data.rig_open_W[i] = max(open_J) / INTERVAL_S
    if n:
        middles_ns = np.array([s["t_ns"] for s in reported], np.int64)
        data.rig_edges = [power.edges(middles_ns) for power in powers]
        known_J = rails.steps_J(powers, middles_ns)
        data.rig_J = np.concatenate([[0.0], np.cumsum(known_J)]) / data.k if n > 1 else np.zeros(1)


def placed(data: RunData) -> dict:
    """What place() has found, by the names of its fields."""
    names = "own_ns", "own_W", "own_Wh", "rig_W", "rig_open_W", "rig_around_J", "rig_J", "rig_edges"
    return {name: getattr(data, name) for name in names}


def compare(data: RunData, begin_ns: int, end_ns: int, rig_percent: float | None) -> Comparison:
    """The comparison of the readings between two host times. rig_percent: the rig's expanded uncertainty."""
    if not len(data.own_ns):
        return Comparison(None, why=NOTHING)
    if rig_percent is None:
        return Comparison(None, why="the uncertainty of the rig's power is not known")
    inside = (data.own_ns[:, 0] >= begin_ns) & (data.own_ns[:, 1] <= end_ns)
    whole = inside & (data.own_ns[:, 0] >= begin_ns + 2 * WIDTH_NS)
    estimates = [estimate for estimate in (_power(data, whole), _energy(data, inside)) if estimate]
    if not estimates:
        return Comparison(
            None, why="no reading of the drive's own power in it, or no power samples around the readings"
        )
    best = min(estimates, key=lambda estimate: estimate[1])
    ratio, relative, of, readings = best
    percent = 100 * float(np.hypot(relative, rig_percent / 100))
    if percent > COARSEST_PERCENT:
        limit = f"its error would be {percent:.0f} %, over {COARSEST_PERCENT:.0f} %"
        return Comparison(
            None, of=of, readings=readings, why=f"{limit}: too few readings, or power that changed too fast"
        )
    return Comparison(ratio, ratio * percent / 100, of, readings)


def _power(data: RunData, among: np.ndarray) -> tuple[float, float, str, int] | None:
    """(ratio, its relative error without the rig's, "power", readings)."""
    used = among & (data.own_W > 0) & np.isfinite(data.rig_W[:, 0])
    if not used.any():
        return None
    drive_W, places_W = data.own_W[used], data.rig_W[used]
    digit_W = np.where(np.abs(drive_W * 100 - np.round(drive_W * 100)) < 1e-6, 0.01, 1e-4)
    rig_W, sum_W = places_W.mean(axis=1).sum(), places_W.sum(axis=0)
    in_step_W, open_W = sum_W.max() - sum_W.min(), data.rig_open_W[used].sum()
    variance = places_W.var(axis=1).sum() + in_step_W**2 / 12 + open_W**2 / 3 + (digit_W**2).sum() / 12
    return float(rig_W / drive_W.sum()), float(COVERAGE * np.sqrt(variance) / rig_W), "power", int(used.sum())


def _energy(data: RunData, among: np.ndarray) -> tuple[float, float, str, int] | None:
    used = np.flatnonzero(among & np.isfinite(data.own_Wh))
    if len(used) < 2:
        return None
    first, last = used[0], used[-1]
    drive_J = (data.own_Wh[last] - data.own_Wh[first]) * J_PER_WH
    rig_J = data.rig_J[last] - data.rig_J[first]
    if not drive_J > 0 or not np.isfinite(rig_J + data.rig_around_J[[first, last]].sum()):
        return None
    open_J = sum(of.time_J(int(first), int(last)) for of in data.rig_edges) / data.k
    around_J = np.hypot(data.rig_around_J[first], data.rig_around_J[last])
    variance = J_PER_WH**2 / 6 + (open_J**2 + around_J**2) / 3
    error_J = COVERAGE * np.sqrt(variance)
    return float(rig_J / drive_J), float(error_J / drive_J), "energy", 2
