"""The rig's part of a run folder -> power and energy of each second of RunData, the energy of whole acts, and the
highest mean of 100 us of a window, by the fast current channel (meter/fast.py)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.base.errors import RigError
from ssdrig.base.words import digits
from ssdrig.meter import chips, fast, messages, rails, reduced
from ssdrig.meter.pairing import unpaired
from ssdrig.meter.reduced import Asked, Reduced
from ssdrig.plan.rules.windows import Window
from ssdrig.reading.rundata import SECOND_NS, NearEdges, Rail, RunData

COUNTS = {
    "frames_lost": "frames from the rig lost on the way",
    "damaged": "stretches of bytes from the rig that were not a frame",
    "repeated": "frames from the rig that came twice (used once)",
    "malformed": "frames from the rig that make no sense",
    "resets": "resets of the rig's board",
    "unconverted": "samples that no hello explains (not used)",
    "left_bytes": "bytes at the end of rig.bin that are not a whole record (not used)",
    "skipped_bytes": "bytes within rig.bin that are damaged (not used)",
}


def read_powers(
    data: RunData,
    run: Path,
    edges_ns: np.ndarray,
    heads: reduced.Heads | None = None,
    watch: reduced.Watch | None = None,
    timed: reduced.Asked | None = None,
) -> list[Reduced]:
    """Each rail, reduced to these edges (int64 host ns, in any order) and those that are `timed`, [] where there are no
    samples; shortages are reported in `notes`."""
    if data.header.get("rig") is None:
        data.notes.append("power: not measured, the run had no rig")
        return []
    if why := unpaired(data.events):
        data.notes.append(f"power: not known, {why}")
        return []
    try:
        powers = reduced.load_rails(run, edges_ns, heads, watch, timed)
    except RigError as error:
        data.notes.append(f"power: {error}")
        return []
    data.closure = rails.worst([power.closure for power in powers])
    _note_power(data, powers)
    return powers


def asked(data: RunData, edges_ns) -> reduced.Asked:
    """Edges of a load's windows, from fio's own clock."""
    return reduced.Asked.of(edges_ns, data.t0_error_ns)


def grid_ns(data: RunData) -> np.ndarray:
    """Edges of the seconds of the grid, int64 host ns; [] without a load."""
    if data.t0_ns is None:
        return np.empty(0, np.int64)
    return data.t0_ns + data.k * SECOND_NS * np.arange(len(data.iops) + 1, dtype=np.int64)


def on_grid(data: RunData, powers: list[Reduced]) -> None:
    """Power and energy of each second of the grid, of the rails together and of each."""
    k, n = data.k, len(data.iops)
    data.power_mean_W, data.power_min_W, data.power_max_W, data.energy_J = (np.full(n, np.nan) for _ in range(4))
    data.rails = [
        Rail(p.rail, p.name, np.full(n, np.nan), np.full(n, np.nan), closure=p.closure, fast=p.fast) for p in powers
    ]
    if data.t0_ns is None or not powers:
        return
    edges = grid_ns(data)
    data.energy_J = rails.steps_J(powers, edges) / k
    data.power_mean_W = data.energy_J.copy()  # over one second of drive time
    data.power_min_W, data.power_max_W = reduced.extremes_W(powers, edges)
    near = powers[0].near
    data.near_edges = NearEdges(near.before_W(edges), near.after_W(edges), near.since_W(edges), near.until_W(edges))
    for rail, power in zip(data.rails, powers, strict=True):
        if len(powers) == 1:
            rail.power_mean_W, rail.power_max_W = data.power_mean_W, data.power_max_W
        else:
            rail.power_mean_W = rails.steps_J([power], edges) / k
            rail.power_max_W = reduced.extremes_W([power], edges)[1]
        _count(rail, power, edges)


def _count(rail: Rail, power: Reduced, edges_ns: np.ndarray) -> None:
    """Samples, those at the sensor's limit, conversions lost (in the second of the sample after the gap) and the
    largest clock error of each second."""
    n, before = len(edges_ns) - 1, power.samples_before(edges_ns)
    rail.samples, rail.clipped = np.diff(before), np.diff(power.clipped_before(edges_ns))
    rail.scatters_W, rail.low = power.scatters_W(edges_ns), power.lows(edges_ns)
    rail.samples_lost, rail.clock_error_ns = np.zeros(n, np.int64), power.largest_error_ns(edges_ns)
    rail.filled_s, rail.filled_J, rail.bound_J = rails.filled(power, edges_ns)
    rail.edges = power.edges(edges_ns)
    row = np.searchsorted(before, power.gaps.at, "right") - 1
    inside = (row >= 0) & (row < n)
    np.add.at(rail.samples_lost, row[inside], power.gaps.lost[inside])
    if power.span_ns is not None:
        rail.facts, rail.volts_V = power.facts, power.mean_V


def quality(powers: list[Reduced], begin_ns: int, end_ns: int, k: int) -> dict:
    """The samples of a whole act, keys as in window_figures.py: how many, how many are lost or at the sensor's limit,
    the largest error of their times, and the interpolated part. `k`: time dilation."""
    edges = np.array([begin_ns, end_ns], np.int64)
    filled_s, filled_J, _ = zip(*(rails.filled(power, edges) for power in powers), strict=True)
    numbers = [power.samples_before(edges) for power in powers]
    lost = 0
    for power, (first, end) in zip(powers, numbers, strict=True):
        within = (power.gaps.at >= first) & (power.gaps.at < end) & (power.gaps.at > 0)
        lost += int(power.gaps.lost[within].sum())
    samples = sum(int(end - first) for first, end in numbers)
    return {
        "samples": samples,
        "samples_lost": lost,
        "samples_clipped": sum(int(np.diff(power.clipped_before(edges))[0]) for power in powers),
        "filled_s": max(float(steps[0]) for steps in filled_s) / k,
        "filled_J": sum(float(steps[0]) for steps in filled_J) / k,
        "clock_error_us": max(float(power.largest_error_ns(edges)[0]) for power in powers) / 1000 if samples else None,
    }


def _energy(data: RunData, powers: list[Reduced], begin_ns: int, end_ns: int) -> tuple[float | None, list[float]]:
    """Energy of the rails together in J of drive time, and the mean power of each (W); None and [] where one is not
    known."""
    energies_J = [joules for power in powers if (joules := rails.energy_J([power], begin_ns, end_ns)) is not None]
    if len(energies_J) < len(powers) or end_ns <= begin_ns:
        return None, []
    return sum(energies_J) / data.k, [joules / ((end_ns - begin_ns) / SECOND_NS) for joules in energies_J]


class Rest(NamedTuple):
    """Mean power of a rest (W, None: not known) with its expanded uncertainty, and that of each rail."""

    mean_W: float | None = None
    uncertainty_W: float | None = None
    of_rails: tuple[float | None, ...] = ()


def rest(data: RunData, powers: list[Reduced], edges: Sequence[int]) -> Rest:
    """Energy of a step without requests to the drive, from one host time to the other; `data.notes`: why it is not
    known."""
    if not powers or not edges:
        return Rest()
    of_rails = tuple(next(iter(_energy(data, [power], *edges)[1]), None) for power in powers)
    timed = rails.timed_J(powers, *edges)
    if timed.why:
        data.notes.append(f"idle_mean_W: {_why(timed, 'idle step')}{_dark_rails(powers, edges)}")
        return Rest(None, None, of_rails if timed.why == rails.NO_POWER else (None,) * len(powers))
    watts = _energy(data, powers, *edges)[1]
    clipped = _clipped(data, "idle step", powers, *edges)
    return Rest(sum(watts), None if clipped else _finite(rails.uncertainty_W(powers, edges, watts)), of_rails)


def _why(timed: rails.Timed, step: str) -> str:
    return f"power samples do not cover the {step}" if timed.why == rails.NO_POWER else str(timed.why)


def _clipped(data: RunData, step: str, powers: list[Reduced], begin_ns: int, end_ns: int) -> bool:
    """Whether a sample of the step is at the end of its sensor's range, with a note: figures from such samples are a
    lower bound of unknown error."""
    notes = []
    for power in powers:
        which = "" if len(powers) == 1 else f" of rail {power.rail} ({power.name})"
        notes += clipped_words(f"the {step}{which}", *power.clipped_in(begin_ns, end_ns))
    data.notes += notes
    return bool(notes)


def clipped_words(where: str, clipped: int, among: int) -> list[str]:
    """The note on samples at the sensor's limit, if there are any."""
    if not clipped:
        return []
    bounds = "energy, mean and peaks there are lower bounds"
    return [f"power: {clipped} of {among} samples of {where} are at the sensor's limit: {bounds}"]


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def unknown_accuracy(facts: Mapping) -> str:
    """Why the accuracy of a rail is not known, "" where it is."""
    if not messages.has_chip(dict(facts)):
        return str(facts["accuracy"].get("unknown") or "")
    return "" if chips.of(dict(facts)) else f"the limits of chip {facts.get('chip')} are not known"


def _dark_rails(powers: list[Reduced], edges_ns) -> str:
    """Names the rails of several that are not known over all the steps."""
    if len(powers) < 2:
        return ""
    dark = [f"{power.rail} ({power.name})" for power in powers if not rails.known([power], edges_ns).all()]
    return f" of rail {', '.join(dark)}, so the sum is not known there"


def _note_power(data: RunData, powers: list[Reduced]) -> None:
    """Note the shortages of the rig's data."""
    for name, words in COUNTS.items():
        count = sum(power.counts[name] for power in powers) if name == "unconverted" else powers[0].counts.get(name)
        if count:
            data.notes.append(f"power: {count} {words}")
    for power in powers:
        which = "" if len(powers) == 1 else f" of rail {power.rail} ({power.name})"
        if power.facts and power.span_ns and (why := unknown_accuracy(power.facts)):
            data.notes.append(f"power_uncertainty_percent{which}: {why}")
        if power.facts and "accuracy" in power.facts:
            data.notes.append(f"closure_percent: the meter does not count energy itself{which}")
        elif power.closure is None:
            data.notes.append(f"closure_percent: the rig sent fewer than two energy frames of one stretch{which}")
        elif power.closure.instead:
            data.notes.append(
                f"samples_lost: {power.closure.instead} conversions of the run{which} were given up to read the chip's"
                " accumulators"
            )
        for begin_ns, end_ns in rails.losses(power):
            text = f"no samples of rail {power.rail} ({power.name}) for {(end_ns - begin_ns) / SECOND_NS:.1f} s"
            data.marks.append((float(data.axis_s(begin_ns)), text))
            data.log.append((float(data.axis_s(begin_ns)), text))
        if power.energy_filled_J:
            data.notes.append(
                f"power: {digits(power.energy_filled_J, 4)} J of the run{which} lie in gaps and were filled in by"
                " interpolation"
            )


LEAST_SHARE = 0.02  # of a peak: what another rail, which has no such channel, may draw at most
NO_CHANNEL = "peak_100us_W: the rig has no fast current channel"


def highest_of_100us(data: RunData, window: Window, notes: list[str]) -> dict:
    """peak_100us_W and its uncertainty; {} where it is not known, and why in `notes` (once a run for a rig
    without the channel). The peaks of other rails are not measured: with one that draws anything the drive's peak is
    unknown."""
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
    clock_ns = float(rail.clock_error_ns[cut].max(initial=0.0))
    off_A = fast.off_by_edges_A(rail.fast, best, begin_ns, end_ns, data.t0_error_ns + clock_ns)
    u_W += off_A * watts / float(rail.fast.highest_A[best])
    for other in data.rails:
        highest_W = float(np.nan_to_num(other.power_max_W[cut], nan=np.inf).max())
        if other is not rail and highest_W > LEAST_SHARE * watts:
            peak = f"{watts:.2f} W ± {u_W:.2f} W of rail {rail.rail} ({rail.name})"
            notes.append(
                f"peak_100us_W: {peak}; rail {other.rail} ({other.name}), which draws too, has no such channel"
            )
            return {}
    return {"peak_100us_W": watts, "peak_100us_uncertainty_W": u_W}


class Energy(NamedTuple):
    """Energy of an act, in J of drive time, with its expanded uncertainty (k = 2; None: not known). None: `why`."""

    J: float | None = None
    uncertainty_percent: float | None = None
    why: str | None = None


def end_ns(data: RunData) -> int:
    """The end of an act whose begin is known."""
    assert data.t0_ns is not None
    return data.t0_ns + round(data.load_s * SECOND_NS * data.k)


def edges_ns(data: RunData | None) -> np.ndarray:
    """The host times at which the energy is needed: begin and end of the act, and its seconds."""
    if data is None or data.t0_ns is None:
        return np.empty(0, np.int64)
    return np.append(grid_ns(data), [data.t0_ns, end_ns(data)])


def asked_of_act(data: RunData | None) -> Asked:
    """The same, as edges of windows."""
    return Asked.of(edges_ns(data), data.t0_error_ns if data else 0.0)


def energy_of_act(data: RunData | None, powers: list[Reduced]) -> Energy | None:
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
