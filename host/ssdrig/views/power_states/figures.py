"""Power of each power state of a drive, and the cost of going there and back: the view `power-states`.

A visit is an idle step of the view, with the `set` step before it and the one load after it, whose first I/O wakes the
drive. Awake is the visit with the highest mean power. With P_hi and P_lo, the powers awake and in the state:

    enter_J = integral of P - P_lo from the begin of `set` until the power has come down
    exit_J  = integral of P - P_hi from the first rise of the power until the I/O is done and the drive is back
    wake_J  = enter_J + exit_J + (P_hi - P_lo) exit_s: cost of one sleep on top of P_lo for all of its time
    break-even = wake_J / (P_hi - P_lo): a shorter sleep costs more than staying awake

The power has come down, or risen, where it passes the middle between P_hi and P_lo. Times are as fine as the samples;
entering includes the command that asks for the state."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ssdrig.base.uncertain import Uncertain, difference, ratio
from ssdrig.base.words import digits
from ssdrig.meter import rails
from ssdrig.meter.reduced import Asked, Reduced
from ssdrig.meter.uncertainty import UNTIMED
from ssdrig.plan.shows import listed
from ssdrig.reading import witness
from ssdrig.reading.power import end_ns
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import SECOND_NS, RunData

CUT = 0.5  # of a stay, left out at its begin: a drive that goes on its own takes its time
FINE_NS = 500_000  # of the host: less than the samples are apart
GROWTH = 0.002  # of the steps after `set`: the moment of entry is as fine as this share of it
MOST_CELLS = 20_000
TAIL_NS = 50_000_000  # of drive time after the I/O that wakes it
LEAST_ERRORS = 2  # entering must take longer than this many errors of its begin, or is not known
LEAST_W, LEAST_SHARE = 0.005, 0.02  # a state that saves less cannot be distinguished from being awake
LATE_SHARE = 0.1  # of the latency of the I/O that wakes the drive
AWAKE = "its power is that of the awake drive"


class Visit(NamedTuple):
    """`row` of the idle step; host times of the begin of `set` (None: no such step), of the stay's begin and end, and
    of the end of what follows the I/O that wakes the drive, which took `lat_ns` of the host (None: no such I/O); a
    SIMULATED drive was late by at most `late_ns`."""

    row: "Row"
    set_ns: int | None
    begin_ns: int
    end_ns: int
    over_ns: int | None
    lat_ns: float | None
    late_ns: float = 0.0

    @property
    def cut_ns(self) -> int:
        return self.begin_ns + round(CUT * (self.end_ns - self.begin_ns))

    @property
    def seconds_ns(self) -> np.ndarray:
        """Edges of the whole seconds after the cut."""
        step = SECOND_NS * self.row.k
        return np.arange(self.cut_ns, self.end_ns + 1, step, dtype=np.int64)

    @property
    def entry_ns(self) -> np.ndarray:
        """Edges from `set` on, closest at its begin."""
        if self.set_ns is None:
            return np.empty(0, np.int64)
        whole = self.end_ns - self.set_ns
        n = int(np.log1p(GROWTH * whole / FINE_NS) / np.log1p(GROWTH))
        return self.set_ns + (FINE_NS * ((1 + GROWTH) ** np.arange(n + 1) - 1) / GROWTH).astype(np.int64)

    @property
    def wake_ns(self) -> np.ndarray:
        """Edges from the end of the stay to the end of the wake."""
        if self.over_ns is None:
            return np.empty(0, np.int64)
        step = max(FINE_NS // 2, (self.over_ns - self.end_ns) // MOST_CELLS)
        return np.arange(self.end_ns, self.over_ns, step, dtype=np.int64)


class Visited(NamedTuple):
    """The visits of one view, and their figures from the samples."""

    visits: list[Visit]

    @property
    def edges_ns(self) -> np.ndarray:
        """Host times between which the energy is needed."""
        return np.concatenate([np.concatenate([v.seconds_ns, v.entry_ns, v.wake_ns]) for v in self.visits])

    @property
    def timed(self) -> Asked:
        """Edges of the stays, and when `set` began."""
        return Asked.of(
            [ns for v in self.visits for ns in (v.cut_ns, v.end_ns, v.begin_ns, v.set_ns) if ns is not None]
        )

    def put(self, base: RunData, powers: list[Reduced]) -> None:
        stays = [_stay(visit, powers) for visit in self.visits]
        known = [(stay["mean_W"], visit) for stay, visit in zip(stays, self.visits, strict=True) if stay["mean_W"]]
        awake_W, awake = max(known, key=lambda pair: pair[0], default=(None, None))
        awake_stay = next((stay for stay, visit in zip(stays, self.visits, strict=True) if visit is awake), None)
        for stay, visit in zip(stays, self.visits, strict=True):
            slept = _slept(visit, stay["mean_W"], awake_W, awake, powers)
            slept |= break_even(stay, slept, awake_stay)
            visit.row.result = {"kind": "power-state", **stay, **slept}


def read(shows: Sequence[dict], rows: Sequence["Row"]) -> Iterator[Visited]:
    """For each view `power-states` its visits."""
    for show in shows:
        if show["view"] == "power-states":
            paths = listed(show["of"])
            visits = [
                visit
                for i, row in enumerate(rows)
                if row.act.path in paths and row.state == "done" and row.act.do == "idle" and row.data is not None
                for visit in _visit(rows, i, row.data)
            ]
            if visits:
                yield Visited(visits)


def _visit(rows: Sequence["Row"], i: int, data: RunData) -> Iterator[Visit]:
    row = rows[i]
    if data.t0_ns is None:
        return
    before, next_row = (rows[j] if 0 <= j < len(rows) else None for j in (i - 1, i + 1))
    set_ns = before.data.t0_ns if before and before.data and before.act.do == "set" else None
    if set_ns is not None:  # a SIMULATED drive reports the delay of its power after its commands
        set_ns += round(float(data.header["drive"].get("power_lag_ms") or 0.0) * 1e6 * row.k)
    over_ns = lat_ns = None
    load = next_row.data if next_row and next_row.act.do == "load" else None
    if load is not None and load.t0_ns is not None and load.totals and load.totals.get("ios"):
        lat_ns = load.totals["lat_sum_ns"] / load.totals["ios"]
        over_ns = end_ns(load) + TAIL_NS * row.k
        following = rows[i + 2].data if i + 2 < len(rows) else None
        if following is not None and following.t0_ns is not None:
            over_ns = min(over_ns, following.t0_ns)
    late_ns = 0.0 if next_row is None or load is None else witness.late_ns(load.events, next_row)
    yield Visit(row, set_ns, data.t0_ns, end_ns(data), over_ns, lat_ns, late_ns)


def _stay(visit: Visit, powers: list[Reduced]) -> dict:
    """Mean power after the cut with its expanded uncertainty (k = 2), lowest and highest mean of a second."""
    out: dict = dict.fromkeys(("mean_W", "uncertainty_W", "lowest_W", "highest_W"))
    edges, host_s = [visit.cut_ns, visit.end_ns], (visit.end_ns - visit.cut_ns) / SECOND_NS
    if not powers or host_s <= 0:
        return out | {"why": rails.NO_POWER}
    if why := rails.timed_J(powers, visit.cut_ns, visit.end_ns).why:
        return out | {"why": why}
    watts = [float(np.diff(power.integral_J(edges))[0]) / host_s for power in powers]
    uncertainty_W = rails.uncertainty_W(powers, edges, watts)
    by_second = rails.steps_J(powers, visit.seconds_ns) / visit.row.k if len(visit.seconds_ns) > 1 else np.empty(0)
    if len(by_second):
        out |= {"lowest_W": float(by_second.min()), "highest_W": float(by_second.max())}
    return out | {
        "mean_W": sum(watts),
        "uncertainty_W": uncertainty_W if np.isfinite(uncertainty_W) else None,
        "why": None,
    }


def _slept(visit: Visit, low_W, awake_W, awake: Visit | None, powers: list[Reduced]) -> dict:
    """Time and energy of entering and leaving the state. The latency of the I/O is known without power."""
    k, lat_ns = visit.row.k, visit.lat_ns
    keys = "entry_ms", "enter_J", "exit_ms", "exit_J", "wake_J", "wake_error_J", "break_even_s", "time_error_ms"
    out: dict = dict.fromkeys(keys)
    out |= {"first_io_ms": None if lat_ns is None else lat_ns / 1e6 / k}
    if low_W is None or awake_W is None or awake is None:
        return out
    saved_W = awake_W - low_W
    if visit is awake or saved_W < max(LEAST_W, LEAST_SHARE * awake_W):
        return out | {"why": AWAKE}
    middle_W = (low_W + awake_W) / 2
    entry = entered(visit.entry_ns, _watts(powers, visit.entry_ns), middle_W, low_W)
    out["time_error_ms"] = error_ms = _error_ns(visit, powers) / 1e6 / k
    if entry is not None and entry[0] / 1e6 / k <= LEAST_ERRORS * error_ms:
        return out | {
            "why": f"{UNTIMED}its times are known to {digits(error_ms, 3)} ms, too little for how long it takes"
        }
    if entry is not None:
        out |= {"entry_ms": entry[0] / 1e6 / k, "enter_J": entry[1] / k}
    late_ns = visit.late_ns + awake.late_ns
    if lat_ns is not None and late_ns > LATE_SHARE * lat_ns:
        late = f"host-limited: the SIMULATED drive answered up to {digits(late_ns / 1e6 / k, 3)} ms late"
        return out | {"first_io_ms": None, "why": late}
    if lat_ns is not None and awake.lat_ns is not None:
        out |= {"exit_ms": max(0.0, lat_ns - awake.lat_ns) / 1e6 / k}
        out |= {
            "exit_J": woken(visit.wake_ns, _watts(powers, visit.wake_ns), middle_W, awake_W, lat_ns + TAIL_NS * k, k)
        }
    if None not in (out["enter_J"], out["exit_J"]):
        wake_J = out["enter_J"] + out["exit_J"] + saved_W * out["exit_ms"] / 1e3
        out |= {"wake_J": wake_J, "wake_error_J": saved_W * error_ms / 1e3}
    lacking = "no fall of its power after `set`" if entry is None else "no rise of its power before the first I/O"
    return out | {"why": None if out["wake_J"] is not None else lacking}


def _error_ns(visit: Visit, powers: list[Reduced]) -> float:
    """By how much the begin of `set` (without one, of the stay) may be off."""
    at_ns = visit.begin_ns if visit.set_ns is None else visit.set_ns
    return max(float(power.edges([at_ns]).error_ns[0]) for power in powers)


def break_even(stay: Mapping, slept: Mapping, awake: Mapping | None) -> dict:
    """`wake_error_J`, with that of the time in it, and `break_even_s` with its error. P - P_lo has the error of P_lo
    while the drive enters, P - P_hi that of P_hi while it wakes."""
    out: dict = {"break_even_s": None, "break_even_error_s": None}
    if slept["wake_J"] is None or awake is None:
        return out
    low, high = (Uncertain(figures["mean_W"], figures["uncertainty_W"]) for figures in (stay, awake))
    saved = difference(high, low)
    if saved.error is None or low.error is None or high.error is None:
        return out
    exit_s = slept["exit_ms"] / 1e3
    entering_J, leaving_J = low.error * slept["entry_ms"] / 1e3, high.error * (exit_s + TAIL_NS / SECOND_NS)
    error_J = math.hypot(entering_J, leaving_J, saved.error * exit_s, slept.get("wake_error_J") or 0.0)
    duration = ratio(Uncertain(slept["wake_J"], error_J), saved)
    why = {} if duration.value is not None else {"why": AWAKE}
    return out | {"wake_error_J": error_J, "break_even_s": duration.value, "break_even_error_s": duration.error} | why


def _watts(powers: list[Reduced], edges_ns: np.ndarray) -> np.ndarray:
    """Mean power of each step between edges (the host's joules and seconds)."""
    return rails.steps_J(powers, edges_ns) / (np.diff(edges_ns) / SECOND_NS) if len(edges_ns) > 1 else np.empty(0)


def entered(edges_ns: np.ndarray, watts: np.ndarray, middle_W: float, low_W: float) -> tuple[float, float] | None:
    """(ns from the first edge until the power has come down, J above low_W until then); None: it has not. Host time."""
    above = np.flatnonzero(watts > middle_W)
    if not len(above) or above[-1] + 1 >= len(watts) or not np.isfinite(watts).all():
        return None
    last = int(above[-1]) + 1  # the first edge after which it stays down
    joules = float(((watts[: last + 1] - low_W) * np.diff(edges_ns)[: last + 1]).sum()) / SECOND_NS
    return float(edges_ns[last] - edges_ns[0]), joules


def woken(
    edges_ns: np.ndarray, watts: np.ndarray, middle_W: float, awake_W: float, lasts_ns: float, k: int
) -> float | None:
    """J (drive time) above awake_W from the first rise of the power on, for `lasts_ns` of the host; None: it does not
    rise, or the samples end before."""
    above = np.flatnonzero(watts > middle_W)
    if not len(above) or not above[0]:
        return None
    first = int(above[0])
    last = int(np.searchsorted(edges_ns, edges_ns[first] + lasts_ns))
    if last >= len(edges_ns):
        last = len(edges_ns) - 1
    part = watts[first:last]
    if not len(part) or not np.isfinite(part).all():
        return None
    return float(((part - awake_W) * np.diff(edges_ns)[first:last]).sum()) / SECOND_NS / k
