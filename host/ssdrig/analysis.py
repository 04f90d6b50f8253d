"""A run folder -> what happened second by second on one time axis, and the figures that are told from it. `load` reads,
`figures` computes; both give what is there of a run that failed or died, and `notes` say what is not and why.

Time zero is the load's first I/O. The axis is drive time: a SIMULATED drive may be dilated, so that k seconds of the host
are one of the drive, and this is the one place where that is undone: one row of the grid is k host seconds, its count of
I/O is the drive's IOPS, times and energies are divided by k, watts stay as they are.

IOPS statistics follow the reviews (AnandTech 2015, 2016): mean and standard deviation (n - 1) of the per-second counts from
the zoom start on, consistency = mean / sd; seconds without I/O count as 0. Percentiles interpolate linearly.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ssdrig import fiolog, journal, samples
from ssdrig.drive import counters, wa
from ssdrig.errors import LoadError, RigError

SECOND_NS = 1_000_000_000
SLACK_NS = 10_000_000  # samples within this of an edge cover it
REASONS = {"before": "before the load", "poll": "under load", "after": "after the load", "settled": "when settled"}
COUNTS = {
    "frames_lost": "frames from the rig lost on the way",
    "damaged": "stretches of bytes from the rig that were no frame",
    "repeated": "frames from the rig that came twice (used once)",
    "malformed": "frames from the rig that make no sense",
    "resets": "resets of the rig's board",
    "unconverted": "samples that no hello explains (not used)",
}
KEYS = (
    "run", "state", "why", "simulated", "model", "serial", "preset", "op_percent", "duration_s", "zoom_s", "time_dilation",
    "tested_bytes", "ios", "iops_mean", "iops_sd", "consistency", "iops_min", "iops_p0_1", "iops_p1", "iops_p5", "iops_p50",
    "zero_seconds", "iops_all_mean", "lat_mean_us", "lat_p99_us", "lat_p999_us", "power_mean_W", "power_max_W", "energy_J",
    "energy_uJ_per_io", "energy_J_per_GB", "iops_per_W", "power_uncertainty_percent", "idle_mean_W", "idle_uncertainty_W", "time_to_complete_s", "host_written_bytes", "nand_written_bytes",
    "wa", "wa_error", "wa_settled", "purge", "samples", "samples_lost", "closure_percent", "chip_clock_ppm", "clock_error_us", "temperature_max_C",
    "fill_MBps", "fill_energy_J", "window_s", "notes",
)  # fmt: skip


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
    power_min_W: np.ndarray = field(default_factory=lambda: np.empty(0))  # lowest and highest single sample
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
    closure: samples.Closure | None = None
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
        """Host time (CLOCK_MONOTONIC ns) -> seconds of drive time since the first I/O, or since the start of the run."""
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
        data.notes.append(f"lat_p99_us by the second: the largest of the {k} host seconds' that make one of the drive's")
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
        power = samples.load(run)
    except RigError as error:
        data.notes.append(f"power: {error}")
        return
    for name, words in COUNTS.items():
        if power.counts.get(name):
            data.notes.append(f"power: {power.counts[name]} {words}")
    data.closure = power.closure
    if power.closure is None:
        data.notes.append("closure_percent: the rig sent fewer than two energy frames of one stretch")
    data.idle_mean_W = _idle_mean_W(data, power)
    if data.idle_mean_W is not None:
        data.idle_uncertainty_W = power.uncertainty_W(data.idle_mean_W)
    if data.t0_ns is None:
        return
    rows = samples.per_second(power, data.t0_ns, n, k * SECOND_NS)
    ends = rows.t_ns + k * SECOND_NS  # a second at either end of the samples that they do not cover would look idle
    seen = (rows.samples > 0) & (rows.t_ns >= power.t_ns[0] - SLACK_NS) & (ends <= power.t_ns[-1] + SLACK_NS)
    data.energy_J = np.where(seen, rows.energy_J / k, np.nan)
    data.power_mean_W = data.energy_J.copy()  # over one second of drive time
    data.power_min_W, data.power_max_W = np.where(seen, rows.p_min_W, np.nan), np.where(seen, rows.p_max_W, np.nan)
    begin, end = data.t0_ns, data.t0_ns + round(data.load_s * k * SECOND_NS)
    first, last = np.searchsorted(power.t_ns, [begin, end])
    in_load = (power.gap >= first) & (power.gap <= last)
    data.sample_count, data.samples_lost = int(last - first), int(power.gap_lost[in_load].sum())
    if data.sample_count:
        data.clock_error_ns = float(power.err_ns[first:last].max())
    if power.energy_filled_J:
        data.notes.append(f"power: {power.energy_filled_J:.4g} J of the run lie in gaps and were filled in by interpolation")
    if seen.all() and _covers(power, begin, end):
        a, z = samples.integral_J(power, [begin, end])
        data.load_energy_J = float(z - a) / k
        watts = float(z - a) / ((end - begin) / SECOND_NS)
        if watts > 0:
            data.power_uncertainty_percent = 100 * power.uncertainty_W(watts) / watts
    else:
        data.notes.append(f"energy_J: {int((~seen).sum())} of the load's {n} s have no power samples; ratios are of the seconds that have")
    if data.fill_s:
        begin = data.fill_t0_ns
        end = begin + round(data.fill_s * k * SECOND_NS)
        if _covers(power, begin, end):
            a, z = samples.integral_J(power, [begin, end])
            data.fill_energy_J = float(z - a) / k
        else:
            data.notes.append("fill_energy_J: power samples do not cover the fill")


def _idle_mean_W(data: RunData, power: samples.Power) -> float | None:
    """Mean power of the idle step, in which nothing asks the drive for anything; None if there was none."""
    edges = [e["t_ns"] for kind in ("step.start", "step.end") for e in data.events if e["kind"] == kind and e.get("step") == "idle"]
    if len(edges) != 2:
        return None
    if not _covers(power, *edges):
        data.notes.append("idle_mean_W: power samples do not cover the idle step")
        return None
    a, z = samples.integral_J(power, edges)
    return float(z - a) / ((edges[1] - edges[0]) / SECOND_NS)


def _covers(power: samples.Power, begin_ns: int, end_ns: int) -> bool:
    return bool(power.t_ns[0] <= begin_ns + SLACK_NS and power.t_ns[-1] >= end_ns - SLACK_NS)


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
    data.temp_t_s, data.temperature_C = data.axis_s([s["t_ns"] for s in warm]), np.array([s["temperature_C"] for s in warm], float)
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
    data.wa_value, data.wa_error = (np.array([getattr(w, name) for _, w in points], float) for name in ("value", "error"))


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
            reason = next((s["reason"] for s in data.snapshots if s["t_start_ns"] <= event["t_ns"] <= s["t_end_ns"] + SECOND_NS), "poll")
            begin = started.pop(event["n"], t)
            data.polls.append((begin, t, reason))
            text = f"SMART {REASONS.get(reason, reason)}, {1000 * (t - begin) * data.k:.0f} ms" + ("" if event["ok"] else f": FAILED, {event.get('why')}")
            if not event["ok"]:
                data.marks.append((t, "SMART poll failed"))
                data.notes.append(f"SMART poll {event['n']} failed: {event.get('why')}")
        elif kind in ("step.start", "step.end"):
            text = f"{event['step']} {'begins' if kind == 'step.start' else 'ends' if event.get('ok') else 'FAILS: ' + str(event.get('why'))}"
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
    zoom = data.header["method"].get("zoom_s")
    if zoom:
        data.marks.append((float(zoom), "zoom start"))


def figures(data: RunData) -> dict:
    """The object of `ssdrig report RUN --json`: all KEYS, each a plain number, string or None; `notes` says why one is None."""
    method, drive = data.header["method"], data.header["drive"]
    out = dict.fromkeys(KEYS)
    out |= {
        "run": data.header["run"], "state": data.state, "why": data.why, "simulated": bool(data.header.get("simulated")),
        "model": drive.get("model"), "serial": drive.get("serial"), "preset": drive.get("preset"),
        "op_percent": method.get("op_percent"), "duration_s": method.get("duration_s"), "zoom_s": method.get("zoom_s"),
        "time_dilation": data.k, "tested_bytes": method.get("tested_bytes"), "ios": data.ios, "notes": list(data.notes),
    }  # fmt: skip
    out |= _iops(data, out["zoom_s"] or 0, out["notes"])
    out |= {f"lat_{name}_us": data.lat_us.get(name) for name in ("mean", "p99", "p999")}
    out |= _energy(data)
    out["time_to_complete_s"] = _time_to_complete_s(data, out["notes"])
    if data.wa_total is not None:
        out |= {"wa": data.wa_total.value, "wa_error": data.wa_total.error}
        out |= {"host_written_bytes": data.wa_total.host_bytes, "nand_written_bytes": data.wa_total.nand_bytes}
    out |= {"samples": data.sample_count, "samples_lost": data.samples_lost}
    if data.closure is not None:
        out |= {"closure_percent": data.closure.corrected_percent, "chip_clock_ppm": data.closure.chip_clock_ppm}
    if data.clock_error_ns is not None:
        out["clock_error_us"] = data.clock_error_ns / 1000
    if len(data.temperature_C):
        out["temperature_max_C"] = float(data.temperature_C.max())
    if data.fill_s:
        out["fill_MBps"] = data.fill_bytes / data.fill_s / 1e6
    out |= {"fill_energy_J": data.fill_energy_J, "idle_mean_W": data.idle_mean_W, "idle_uncertainty_W": data.idle_uncertainty_W}
    out["power_uncertainty_percent"] = data.power_uncertainty_percent
    out["purge"] = next((e.get("method") for e in data.events if e["kind"] == "purge"), None)
    if data.wa_settled is not None:
        out["wa_settled"] = data.wa_settled.value
    return out


def _iops(data: RunData, zoom_s: int, notes: list[str]) -> dict:
    """Statistics of the per-second counts over the window [zoom, end of the last whole second)."""
    out = {"iops_all_mean": data.ios / data.load_s if data.load_s else None}
    window = data.iops[zoom_s:]
    if len(window) < 2:
        notes.append(f"iops_mean and the like: the load lasted {len(data.iops)} whole seconds, the zoom starts at {zoom_s} s")
        return out
    mean, sd = float(window.mean()), float(window.std(ddof=1))
    if sd == 0:
        notes.append("consistency: the standard deviation is 0")
    percentiles = np.percentile(window, [0.1, 1, 5, 50]).tolist()
    return out | {
        "iops_mean": mean, "iops_sd": sd, "consistency": mean / sd if sd else None, "iops_min": float(window.min()),
        **dict(zip(("iops_p0_1", "iops_p1", "iops_p5", "iops_p50"), percentiles, strict=True)),
        "zero_seconds": int((window == 0).sum()), "window_s": [zoom_s, len(data.iops)],
    }  # fmt: skip


def _energy(data: RunData) -> dict:
    """Energy figures of the whole load; of the seconds that have power where some have none."""
    seen = np.isfinite(data.energy_J)
    if data.load_energy_J is not None:
        energy_J, ios, moved, seconds = data.load_energy_J, data.ios, data.bytes, data.load_s
    else:
        energy_J, ios = float(data.energy_J[seen].sum()), float(data.iops[seen].sum())
        moved, seconds = float(data.bw_Bps[seen].sum()), float(seen.sum())
    out = {"energy_J": data.load_energy_J}
    if not energy_J or not seconds:
        return out
    out |= {"power_mean_W": energy_J / seconds, "power_max_W": float(np.nanmax(data.power_max_W)) if seen.any() else None}
    if ios:
        out |= {"energy_uJ_per_io": 1e6 * energy_J / ios, "energy_J_per_GB": 1e9 * energy_J / moved, "iops_per_W": ios / energy_J}
    return out


def _time_to_complete_s(data: RunData, notes: list[str]) -> float | None:
    """From the start of the purge to the end of the load, drive time."""
    at = {(e["kind"], e.get("step")): e["t_ns"] for e in data.events if e.get("ok", True)}
    begin, end = at.get(("step.start", "purge")), at.get(("step.end", "load"))
    if begin is None or end is None:
        notes.append("time_to_complete_s: the load was not completed")
        return None
    return (end - begin) / SECOND_NS / data.k
