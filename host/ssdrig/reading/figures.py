"""What happened in a run (analysis.RunData) -> its figures: those of each window, and those of the run as a whole. One
object of plain numbers for `ssdrig report RUN --json`; its flat keys are the figures of the window `steady`."""

import math
from dataclasses import replace
from typing import Any

from ssdrig.base import overprovisioning
from ssdrig.meter.closure import Closure
from ssdrig.plan.rules import steady as rule
from ssdrig.plan.rules import windows
from ssdrig.reading import SECOND_NS, RunData, steady_state, trust, window_figures, witness
from ssdrig.reading.peak_power import NO_CHANNEL
from ssdrig.reading.terms import terms

# Of the run as a whole; reading/terms.py says how a line is read.
TERMS = terms("""
# Performance
iops_all_mean | Mean IOPS of the load |  | 0 | more | All I/O of the load divided by its length, the fresh plateau
    included; of one that was cut short as far as it came.
time_to_complete_s | Time to complete | s | 1 | less | The whole run in drive time, purge and fill included.
fill_s | Time of the fill | s | 1 | less | How long fio's sequential write of the tested range took.
fill_MBps | Fill speed | MB/s | 1 | more | Sequential write of the tested range: bytes / time of fio's own count.
# Over-provisioning
op_raw_percent | Over-provisioning, of raw NAND | % | 1 |  | Share of the raw NAND that is never written: 1 − tested /
    raw. Assumed where the raw NAND is (`raw_nand_assumed`).
op_user_percent | Over-provisioning, of the user capacity | % | 1 |  | Share of the user capacity that is left
    unwritten.
alpha | Raw NAND / tested range (α) |  | 3 |  | What write amplification depends on. Assumed where the raw NAND is.
wa_closed_form | Write amplification, closed form |  | 3 | less | Of uniformly random writes at this α where blocks are
    collected in turn, α / (α + W₀(−α e^−α)); the greedy choice of blocks comes near it from below. Assumed where the
    raw NAND is.
# Power and energy
fill_energy_J | Energy of the fill | J | 1 |  | The same integral over fio's sequential fill.
idle_mean_W | Idle power | W | 3 | less | Mean power of the idle step after the load (`--idle`), in which no SMART is
    read.
idle_uncertainty_W | Idle power uncertainty | W | 4 | less | Expanded uncertainty (k = 2, about 95 %) of the idle power,
    as below.
# Wear
wa_settled | Write amplification, settled |  | 3 | less | From the reading before the load until the drive has come to
    rest (`--settle`): what it wrote by itself after the load counts too.
# Quality of the measurement
closure_percent | Energy closure | % | 3 |  | Host integral against the sensor chip's own energy register over the same
    conversions of the run, the chip's clock corrected. 0 is perfect. For several rails: the worst.
chip_clock_ppm | Chip clock error | ppm | 0 |  | How fast the sensor chip's oscillator runs against the host's clock, as
    measured over the run.
chip_clock_error_ppm | Chip clock error, known to | ppm | 0 |  | Largest error of that: the error of the host's time at
    both ends of what it is measured over.
""")
FACTS = (
    *("run", "state", "why", "simulated", "scaled", "model", "serial", "preset", "op_percent", "duration_s", "zoom_s"),
    *("time_dilation", "tested_bytes", "idle_s", "purge", "raw_nand_bytes", "raw_nand_assumed"),
)
NOT_FLAT = ("name", "label", "t0_s", "t1_s", "unfinished", "rails", "trust", "notes")
KEYS = (
    *FACTS,
    *(term.key for term in TERMS),
    *(key for key in window_figures.KEYS if key not in NOT_FLAT),
    *("window_s", "window_label", "rails", "windows", "kernel", "trust", "notes"),
)


def figures_of(data: RunData, more=()) -> dict:
    """All KEYS, each a plain number, string or None; `notes` says why one is None. `windows` has an object of
    window_figures.KEYS for each window (fresh, all, steady, and `more` of (name, t0_s, t1_s)), None where the load has
    no such window. `trust`: what the claims about the run rest on (trust.py). `rails` has an object for each rail of
    the rig, by number; all else is of the rails together. `kernel`: the kernel's own counts of the load (witness.KEYS).
    Raises ValueError for what a summary holds, which has
    its figures beside it."""
    if data.lat_in_window and not len(data.hist):
        raise ValueError("figures are made of a run that was read whole, with its histogram by the second")
    method, drive = data.header["method"], data.header["drive"]
    out: dict[str, Any] = dict.fromkeys(KEYS)
    found, notes = windows.of(data.iops, data.zoom_s, more, data.unfinished, steady_state.of_load(data))
    each: dict[str, dict | None] = dict.fromkeys(found)
    notes = [*data.notes, *notes]
    if data.rails and not any(rail.fast for rail in data.rails):
        notes.append(NO_CHANNEL)
    said = witness.event_of(data.events, "load", None)
    of_run = trust.of_run(data)
    for name, window in found.items():
        if window:
            host = trust.host_of(witness.host(data, said, window))
            doubt = trust.why_not([host.as_json()])
            window = replace(window, steady_state=rule.not_claimed(window.steady_state, doubt))
            each[name] = figures = window_figures.figures_in(data, window)
            figures["trust"] = trust.of_window(data, figures, host, of_run)
            times = window.times.replace(": ", ", ")
            notes += [f"{name}, {times}: {note}" for note in figures["notes"]]
    if data.ios and data.totals:
        out["kernel"], disagreeing = witness.kernel(said, data.totals)
        notes += [f"load: {note}" for note in [*disagreeing, *witness.verdicts(data, said)]]
    steady = each["steady"]
    if steady:
        out |= {key: steady[key] for key in window_figures.KEYS if key not in NOT_FLAT}
        out |= {"window_s": [steady["t0_s"], steady["t1_s"]], "window_label": steady["label"]}
    out |= {
        "run": data.header["run"],
        "state": data.state,
        "why": data.why,
        "simulated": bool(data.header.get("simulated")),
        "scaled": bool(plan.get("scaled")) if isinstance(plan := data.header.get("plan"), dict) else False,
        "model": drive.get("model"),
        "serial": drive.get("serial"),
        "preset": drive.get("preset"),
        "op_percent": method.get("op_percent"),
        "duration_s": method.get("duration_s"),
        "zoom_s": data.zoom_s if data.asked("zoom_s") else method.get("zoom_s"),
        "time_dilation": data.k,
        "tested_bytes": method.get("tested_bytes"),
        "iops_all_mean": data.ios / data.load_s if data.ios is not None and data.load_s else None,
        "idle_s": data.idle_s,
        "idle_mean_W": data.idle_mean_W,
        "idle_uncertainty_W": data.idle_uncertainty_W,
        "time_to_complete_s": _time_to_complete_s(data, notes),
        "purge": next((e.get("method") for e in data.events if e["kind"] == "purge"), None),
        "fill_s": data.fill_s,
        "fill_energy_J": data.fill_energy_J,
        "rails": _rails(data, steady),
        "windows": each,
        "trust": trust.whole((window["label"], window["trust"]) for window in each.values() if window),
        "notes": notes,
    }
    out |= _over_provisioning(data, notes)
    if data.closure is not None:
        out |= _closure(data.closure)
    if data.fill_s and data.fill_bytes is not None:
        out["fill_MBps"] = data.fill_bytes / data.fill_s / 1e6
    if data.wa_settled is not None:
        out["wa_settled"] = data.wa_settled.value
    return out


def _closure(closure: Closure | None) -> dict[str, float | None]:
    keys = "closure_percent", "chip_clock_ppm", "chip_clock_error_ppm"
    if closure is None:
        return dict.fromkeys(keys)
    error_ppm = closure.chip_clock_error_ppm if math.isfinite(closure.chip_clock_error_ppm) else None
    return dict(zip(keys, (closure.corrected_percent, closure.chip_clock_ppm, error_ppm), strict=True))


def _over_provisioning(data: RunData, notes: list[str]) -> dict:
    """Both definitions of it, and what theory says of the write amplification."""
    drive, tested = data.header["drive"], data.asked("tested_bytes")
    capacity, raw = drive.get("capacity_bytes"), drive.get("raw_nand_bytes")
    out: dict[str, Any] = {"raw_nand_bytes": raw, "raw_nand_assumed": bool(drive.get("raw_nand_assumed"))}
    if not tested:
        return out
    if capacity:
        out["op_user_percent"] = overprovisioning.of_user_percent(tested, capacity)
    if not raw:
        notes.append("op_raw_percent, alpha, wa_closed_form: the raw NAND is not known (--raw-nand)")
        return out
    out |= {"op_raw_percent": overprovisioning.own_percent(tested, raw), "alpha": raw / tested}
    if out["raw_nand_assumed"]:
        notes.append(f"op_raw_percent, alpha, wa_closed_form: {overprovisioning.assumed_words(raw)}")
    if out["alpha"] > 1:
        out["wa_closed_form"] = overprovisioning.wa_fifo(out["alpha"])
    else:
        notes.append("wa_closed_form: there is no raw NAND beyond what is written")
    return out


def _rails(data: RunData, steady: dict | None) -> list[dict]:
    """Each rail: its figures in the window `steady`, and those of the run."""
    nothing = dict.fromkeys(
        ("power_mean_W", "power_max_W", "energy_J", "power_uncertainty_percent", "samples", "samples_lost")
    )
    out = []
    for i, rail in enumerate(data.rails):
        own = steady["rails"][i] if steady and steady["rails"] else nothing
        out.append(
            {"rail": rail.rail, "name": rail.name} | own | {"idle_mean_W": rail.idle_mean_W} | _closure(rail.closure)
        )
    return out


def _time_to_complete_s(data: RunData, notes: list[str]) -> float | None:
    """From the start of the purge to the end of the load, drive time."""
    steps = [e for e in data.events if e["kind"] in ("step.start", "step.end") and e.get("ok", True)]
    at = {(e["kind"], e["step"]): e["t_ns"] for e in steps}
    begin, end = at.get(("step.start", "purge")), at.get(("step.end", "load"))
    if begin is None or end is None:
        notes.append("time_to_complete_s: the load was not completed")
        return None
    return (end - begin) / SECOND_NS / data.k
