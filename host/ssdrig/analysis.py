"""A run folder -> what happened second by second on one time axis. `load` gives what is there of a run that failed or
died, and `notes` say what is not and why; figures.py tells the run's figures from it.

Time zero is the load's first I/O. The axis is drive time: a SIMULATED drive may be dilated, so that k seconds of the
host are one of the drive, and this is the one place where that is undone: one row of the grid is k host seconds, its
count of I/O is the drive's IOPS, times and energies are divided by k, watts stay as they are.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ssdrig import fiolog, journal, rails, samples
from ssdrig.drive import counters, wa
from ssdrig.errors import LoadError, RigError

SECOND_NS = 1_000_000_000
REASONS = {"before": "before the load", "poll": "under load", "after": "after the load", "settled": "when settled"}
COUNTS = {
    "frames_lost": "frames from the rig lost on the way",
    "damaged": "stretches of bytes from the rig that were no frame",
    "repeated": "frames from the rig that came twice (used once)",
    "malformed": "frames from the rig that make no sense",
    "resets": "resets of the rig's board",
    "unconverted": "samples that no hello explains (not used)",
}


@dataclass
class Rail:
    """What one rail of the rig did in a run; fields as those of RunData, which are of all rails together."""

    rail: int
    name: str
    power_mean_W: np.ndarray  # float64 (n,), not-a-number where not known
    power_max_W: np.ndarray
    load_energy_J: float | None = None
    idle_mean_W: float | None = None
    power_uncertainty_percent: float | None = None
    sample_count: int = 0
    samples_lost: int = 0
    closure: samples.Closure | None = None


@dataclass
class RunData:
    """One run on the axis of drive time. Arrays `*_s` are times; those of the grid have one value per second from 0."""

    header: dict
    events: list[dict]
    state: str
    why: str | None
    k: int  # time dilation
    t0_ns: int | None = None  # CLOCK_MONOTONIC of the load's first I/O; None: there was none
    load_s: float = 0.0  # from the first I/O to fio's end
    ios: int | None = None
    bytes: int | None = None  # moved by the load
    lat_us: dict = field(default_factory=dict)  # "mean", "p99", "p999" over the load
    fill_t0_ns: int | None = None
    fill_s: float | None = None
    fill_bytes: int | None = None
    # the grid, float64 (n,); not-a-number where not known
    iops: np.ndarray = field(default_factory=lambda: np.empty(0))
    bw_Bps: np.ndarray = field(default_factory=lambda: np.empty(0))
    lat_mean_us: np.ndarray = field(default_factory=lambda: np.empty(0))
    lat_p99_us: np.ndarray = field(default_factory=lambda: np.empty(0))  # k > 1: the largest of the k host seconds'
    power_mean_W: np.ndarray = field(default_factory=lambda: np.empty(0))
    power_min_W: np.ndarray = field(default_factory=lambda: np.empty(0))  # lowest and highest reading, see rails.py
    power_max_W: np.ndarray = field(default_factory=lambda: np.empty(0))
    energy_J: np.ndarray = field(default_factory=lambda: np.empty(0))
    # of the load as a whole, from the samples
    load_energy_J: float | None = None  # None: not all of the load was measured
    fill_energy_J: float | None = None
    idle_mean_W: float | None = None
    power_uncertainty_percent: float | None = None  # expanded (k = 2), of the load's mean power
    idle_uncertainty_W: float | None = None  # the same of idle_mean_W
    sample_count: int | None = None
    samples_lost: int | None = None
    clock_error_ns: float | None = None
    closure: samples.Closure | None = None  # of several rails the worst
    rails: list[Rail] = field(default_factory=list)
    # SMART
    snapshots: list[dict] = field(default_factory=list)  # counters.snapshot of each poll, by time
    temp_t_s: np.ndarray = field(default_factory=lambda: np.empty(0))
    temperature_C: np.ndarray = field(default_factory=lambda: np.empty(0))
    wa_t_s: np.ndarray = field(default_factory=lambda: np.empty(0))  # cumulative since the poll before the load
    wa_value: np.ndarray = field(default_factory=lambda: np.empty(0))
    wa_error: np.ndarray = field(default_factory=lambda: np.empty(0))
    wa_total: wa.WriteAmplification | None = None
    wa_settled: wa.WriteAmplification | None = None  # with what the drive wrote by itself afterwards
    # what happened, for people
    polls: list[tuple[float, float, str]] = field(default_factory=list)  # from, to, reason
    marks: list[tuple[float, str]] = field(default_factory=list)
    log: list[tuple[float, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def axis_s(self, t_ns) -> np.ndarray:
        """Host time (CLOCK_MONOTONIC ns) -> seconds of drive time since the first I/O, or since the start of the
        run."""
        zero = self.t0_ns if self.t0_ns is not None else self.header["started"]["t_ns"]
        return (np.asarray(t_ns, np.int64) - zero) / (SECOND_NS * self.k)


def load(run_path) -> RunData:
    """Read a run folder. Raises JournalError if it is none; what else is missing is said in `notes`."""
    run = Path(run_path)
    header = journal.open_run(run)
    state, events = journal.state(run), journal.events(run)
    data = RunData(header, events, state, _why(state, events), int(header["drive"].get("time_dilation") or 1))
    _load_fio(data, run)
    _load_power(data, run)
    _load_smart(data, run)
    _load_events(data)
    return data


def _why(state: str, events: list[dict]) -> str | None:
    if state in journal.END_STATES:
        return events[-1].get("why") or None
    if state == "running":
        return None
    last = events[-1] if events else {"kind": "nothing"}
    words = " ".join(str(last[key]) for key in ("kind", "step", "reason") if key in last)
    return f"the process that carried out the run ended without closing it; its last event is {words}"


def _load_fio(data: RunData, run: Path) -> None:
    k = data.k
    try:
        fill = fiolog.load(run / "fio" / "fill")
        data.fill_t0_ns = int(fill.t_ns[0]) if len(fill.t_ns) and fill.t_ns[0] else _started(data, "fill")
        data.fill_s, data.fill_bytes = fill.totals["runtime_ms"] / 1000 / k, fill.totals["bytes"]
    except LoadError as error:
        data.notes.append(f"fill: {error}")
    try:
        load = fiolog.load(run / "fio" / "load")
        if not len(load.iops):
            raise LoadError("I/O in the load", "none", "see fio/load/stderr.txt")
    except LoadError as error:
        data.notes.append(f"load: {error}")
        return
    data.t0_ns = int(load.t_ns[0])
    if not data.t0_ns:
        data.t0_ns = _started(data, "load")
        data.notes.append("load: fio's own start is not known; the axis begins when it was started, good to a second")
    elif load.source == "status":
        data.notes.append("load: fio left no logs; its once-a-second documents were used, good to a second")
    data.load_s = load.totals["runtime_ms"] / 1000 / k
    data.ios, data.bytes = load.totals["ios"], load.totals["bytes"]
    if data.ios:
        data.lat_us = {"mean": load.totals["lat_sum_ns"] / data.ios / 1000 / k}
        for name, key in (("p99", "99.000000"), ("p999", "99.900000")):
            if key in load.totals["clat_ns"]:
                data.lat_us[name] = load.totals["clat_ns"][key] / 1000 / k
    n = (len(load.iops) - load.partial) // k  # a second that was cut short would look slow

    def per_second(values):
        return values[: n * k].reshape(n, k).astype(float)

    count, latency, tail = per_second(load.iops), per_second(load.lat_mean_ns), per_second(load.lat_p99_ns)
    data.iops = count.sum(axis=1)
    data.bw_Bps = per_second(load.bw_bytes).sum(axis=1)
    with np.errstate(invalid="ignore"):
        data.lat_mean_us = (count * latency).sum(axis=1) / data.iops / 1000 / k
    data.lat_p99_us = np.where(data.iops > 0, tail.max(axis=1, initial=0), np.nan) / 1000 / k
    data.lat_p99_us[data.lat_p99_us == 0] = np.nan
    if k > 1:
        data.notes.append(
            f"lat_p99_us by the second: the largest of the {k} host seconds' that make one of the drive's"
        )
    if load.torn_bytes:
        data.notes.append(f"load: {load.torn_bytes} bytes at the end of fio's logs are torn and were not used")


def _started(data: RunData, step: str) -> int:
    starts = [e["t_ns"] for e in data.events if e["kind"] == "step.start" and e.get("step") == step]
    return starts[0] if starts else data.header["started"]["t_ns"]


def _load_power(data: RunData, run: Path) -> None:
    k, n = data.k, len(data.iops)
    data.power_mean_W, data.power_min_W, data.power_max_W, data.energy_J = (np.full(n, np.nan) for _ in range(4))
    if data.header.get("rig") is None:
        data.notes.append("power: not measured, the run had no rig")
        return
    try:
        powers = samples.load_rails(run)
    except RigError as error:
        data.notes.append(f"power: {error}")
        return
    data.rails = [
        Rail(power.rail, power.name, np.full(n, np.nan), np.full(n, np.nan), closure=power.closure) for power in powers
    ]
    data.closure = rails.worst([power.closure for power in powers])
    _note_power(data, powers)
    _idle(data, powers)
    if data.t0_ns is None:
        return
    edges = data.t0_ns + k * SECOND_NS * np.arange(n + 1, dtype=np.int64)
    data.energy_J = rails.steps_J(powers, edges) / k
    data.power_mean_W = data.energy_J.copy()  # over one second of drive time
    data.power_min_W, data.power_max_W = rails.extremes_W(powers, data.t0_ns, n, k * SECOND_NS)
    begin, end = data.t0_ns, data.t0_ns + round(data.load_s * k * SECOND_NS)
    data.load_energy_J, watts = _energy(data, powers, begin, end)
    if data.load_energy_J is None:
        dark = int((~np.isfinite(data.energy_J)).sum())
        data.notes.append(
            f"energy_J: {dark} of the load's {n} s have no power samples{_of_rails(powers, edges)}; ratios are of the"
            " seconds that have"
        )
    elif data.load_energy_J > 0:
        data.power_uncertainty_percent = 100 * rails.uncertainty_W(powers, watts) / sum(watts)
    for rail, power in zip(data.rails, powers, strict=True):
        if len(powers) == 1:
            rail.power_mean_W, rail.power_max_W = data.power_mean_W, data.power_max_W
        else:
            rail.power_mean_W = rails.steps_J([power], edges) / k
            rail.power_max_W = rails.extremes_W([power], data.t0_ns, n, k * SECOND_NS)[1]
        rail.load_energy_J, (mean_W,) = _energy(data, [power], begin, end)
        if mean_W:
            rail.power_uncertainty_percent = 100 * power.uncertainty_W(mean_W) / abs(mean_W)
        first, last = np.searchsorted(power.t_ns, [begin, end])
        in_load = (power.gap >= first) & (power.gap <= last)
        rail.sample_count, rail.samples_lost = int(last - first), int(power.gap_lost[in_load].sum())
        if rail.sample_count:
            data.clock_error_ns = max(data.clock_error_ns or 0.0, float(power.err_ns[first:last].max()))
    data.sample_count, data.samples_lost = (
        sum(getattr(rail, name) for rail in data.rails) for name in ("sample_count", "samples_lost")
    )
    if data.fill_s:
        data.fill_energy_J = _energy(
            data, powers, data.fill_t0_ns, data.fill_t0_ns + round(data.fill_s * k * SECOND_NS)
        )[0]
        if data.fill_energy_J is None:
            data.notes.append("fill_energy_J: power samples do not cover the fill")


def _energy(data: RunData, powers: list[samples.Power], begin_ns: int, end_ns: int) -> tuple[float | None, list[float]]:
    """Energy of the rails together in J of drive time, None where one is not known, and the mean power of each (W)."""
    each = [rails.energy_J([power], begin_ns, end_ns) for power in powers]
    if None in each or end_ns <= begin_ns:
        return None, [0.0] * len(each)
    return sum(each) / data.k, [joules / ((end_ns - begin_ns) / SECOND_NS) for joules in each]


def _idle(data: RunData, powers: list[samples.Power]) -> None:
    """Mean power of the idle step, in which nothing asks the drive for anything, if there was one."""
    edges = [
        e["t_ns"]
        for kind in ("step.start", "step.end")
        for e in data.events
        if e["kind"] == kind and e.get("step") == "idle"
    ]
    if len(edges) != 2:
        return
    for rail, power in zip(data.rails, powers, strict=True):
        joules, (mean_W,) = _energy(data, [power], *edges)
        rail.idle_mean_W = None if joules is None else mean_W
    joules, watts = _energy(data, powers, *edges)
    if joules is None:
        data.notes.append(f"idle_mean_W: power samples do not cover the idle step{_of_rails(powers, edges)}")
        return
    data.idle_mean_W, data.idle_uncertainty_W = sum(watts), rails.uncertainty_W(powers, watts)


def _of_rails(powers: list[samples.Power], edges_ns) -> str:
    """Which of several rails are not known over all the steps, in words."""
    if len(powers) < 2:
        return ""
    dark = [f"{power.rail} ({power.name})" for power in powers if not rails.known([power], edges_ns).all()]
    return f" of rail {', '.join(dark)}, so the sum is not known there"


def _note_power(data: RunData, powers: list[samples.Power]) -> None:
    """Say what came short of the rig's data."""
    for name, words in COUNTS.items():
        count = sum(power.counts[name] for power in powers) if name == "unconverted" else powers[0].counts.get(name)
        if count:
            data.notes.append(f"power: {count} {words}")
    for power in powers:
        which = "" if len(powers) == 1 else f" of rail {power.rail} ({power.name})"
        if power.closure is None:
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
                f"power: {power.energy_filled_J:.4g} J of the run{which} lie in gaps and were filled in by"
                " interpolation"
            )


def _load_smart(data: RunData, run: Path) -> None:
    for path in sorted((run / "smart").glob("*.json")):
        try:
            data.snapshots.append(counters.snapshot(json.loads(path.read_bytes())))
        except (ValueError, KeyError, TypeError, OSError) as error:
            data.notes.append(f"smart/{path.name} cannot be read: {error}")
    data.snapshots.sort(key=lambda s: s["t_ns"])
    if data.t0_ns is None:
        return
    warm = [s for s in data.snapshots if s["temperature_C"] is not None]
    data.temp_t_s, data.temperature_C = (
        data.axis_s([s["t_ns"] for s in warm]),
        np.array([s["temperature_C"] for s in warm], float),
    )
    before = [s for s in data.snapshots if s["reason"] == "before" and s["t_start_ns"] <= data.t0_ns]
    since = [s for s in data.snapshots if s["t_start_ns"] > data.t0_ns]
    if not before or not since:
        data.notes.append(f"wa: no SMART reading {'before' if not before else 'since the start of'} the load")
        return
    # the reading before the load and the one after it were taken while the drive was quiet: their two counters agree
    quiet = [s for s in since if s["reason"] == "after"]
    if quiet:
        data.wa_total = wa.between(before[-1], quiet[0])
        rest = [s for s in data.snapshots if s["reason"] == "settled"]
        if rest:
            settled = wa.settled(before[-1], quiet[0], [quiet[0], *rest])
            data.wa_settled = settled.with_background
            data.notes += [f"wa_settled: {wa.FLAGS[flag]}" for flag in settled.flags]
    cumulative = wa.during([before[-1], *(s for s in since if s["reason"] == "poll")])
    if not quiet:
        data.wa_total = cumulative[-1][1]
        data.notes.append("wa: there is no SMART reading after the load; the last one under load was used")
    if data.wa_total.why:
        data.notes.append(f"wa: {data.wa_total.why}")
    points = [(t, w) for t, w in cumulative if w.value is not None]
    if quiet and data.wa_total.value is not None:
        points.append((quiet[0]["t_ns"], data.wa_total))
    data.wa_t_s = data.axis_s([t for t, _ in points])
    data.wa_value, data.wa_error = (
        np.array([getattr(w, name) for _, w in points], float) for name in ("value", "error")
    )


def _load_events(data: RunData) -> None:
    """Polls, marks and log of the axis, in words."""
    started: dict[int, float] = {}
    hellos = 0
    for event in data.events:
        t, kind = float(data.axis_s(event["t_ns"])), event["kind"]
        text = kind
        if kind == "smart.start":
            started[event["n"]] = t
            continue
        if kind == "smart.end":
            reason = next(
                (s["reason"] for s in data.snapshots if s["t_start_ns"] <= event["t_ns"] <= s["t_end_ns"] + SECOND_NS),
                "poll",
            )
            begin = started.pop(event["n"], t)
            data.polls.append((begin, t, reason))
            text = f"SMART {REASONS.get(reason, reason)}, {1000 * (t - begin) * data.k:.0f} ms" + (
                "" if event["ok"] else f": FAILED, {event.get('why')}"
            )
            if not event["ok"]:
                data.marks.append((t, "SMART poll failed"))
                data.notes.append(f"SMART poll {event['n']} failed: {event.get('why')}")
        elif kind in ("step.start", "step.end"):
            text = (
                f"{event['step']}"
                f" {'begins' if kind == 'step.start' else 'ends' if event.get('ok') else 'FAILS: ' + str(event.get('why'))}"
            )
            if kind == "step.end" and not event.get("ok"):
                data.marks.append((t, f"{event['step']} failed"))
        elif kind == "rig.hello":
            hellos += 1
            text = f"rig answers (boot {event['hello'].get('boot')}, firmware {event['hello'].get('firmware')})"
            if hellos > 1:
                data.marks.append((t, "rig was reset"))
        elif kind == "rig.lost":
            text = f"rig lost: {event.get('why')}"
            data.marks.append((t, "rig lost"))
        elif kind == "note":
            text = str(event.get("text"))
            data.marks.append((t, text))
        elif kind == "run.end":
            text = f"run ends: {event['state']}" + (f", {event['why']}" if event.get("why") else "")
        elif kind == "clock.anchor":
            continue
        data.log.append((t, text))
    data.log.sort(key=lambda entry: entry[0])
    zoom = data.header["method"].get("zoom_s")
    if zoom:
        data.marks.append((float(zoom), "zoom start"))
