"""What happened in a run (analysis.RunData) -> its figures: those of each window, and those of the run as a whole. One
object of plain numbers for `ssdrig report RUN --json`; its flat keys are the figures of the window `steady`."""

from typing import Any

from ssdrig.analysis import SECOND_NS, RunData, window_figures, windows

RUN_KEYS = (  # of the run as a whole
    "run",
    "state",
    "why",
    "simulated",
    "model",
    "serial",
    "preset",
    "op_percent",
    "duration_s",
    "zoom_s",
    "time_dilation",
    "tested_bytes",
    "iops_all_mean",
    "idle_s",
    "idle_mean_W",
    "idle_uncertainty_W",
    "time_to_complete_s",
    "wa_settled",
    "purge",
    "closure_percent",
    "chip_clock_ppm",
    "fill_s",
    "fill_MBps",
    "fill_energy_J",
    "window_s",
    "window_label",
    "rails",
    "windows",
    "notes",
)
NOT_FLAT = ("name", "label", "t0_s", "t1_s", "rails", "notes")
KEYS = (*RUN_KEYS[:-4], *(key for key in window_figures.KEYS if key not in NOT_FLAT), *RUN_KEYS[-4:])


def figures_of(data: RunData, more=()) -> dict:
    """All KEYS, each a plain number, string or None; `notes` says why one is None. `windows` has an object of
    window_figures.KEYS for each window (fresh, all, steady, and `more` of (name, t0_s, t1_s)), None where the load has
    no such window. `rails` has an object for each rail of the rig, by number; all else is of the rails together."""
    method, drive = data.header["method"], data.header["drive"]
    out: dict[str, Any] = dict.fromkeys(KEYS)
    found, notes = windows.of(data.iops, int(data.asked("zoom_s") or 0), more)
    each: dict[str, dict | None] = dict.fromkeys(found)
    notes = [*data.notes, *notes]
    for name, window in found.items():
        if window:
            each[name] = figures = window_figures.figures_in(data, window)
            notes += [f"{name}, {window.times}: {note}" for note in figures["notes"]]
    steady = each["steady"]
    if steady:
        out |= {key: steady[key] for key in window_figures.KEYS if key not in NOT_FLAT}
        out |= {"window_s": [steady["t0_s"], steady["t1_s"]], "window_label": steady["label"]}
    out |= {
        "run": data.header["run"],
        "state": data.state,
        "why": data.why,
        "simulated": bool(data.header.get("simulated")),
        "model": drive.get("model"),
        "serial": drive.get("serial"),
        "preset": drive.get("preset"),
        "op_percent": method.get("op_percent"),
        "duration_s": method.get("duration_s"),
        "zoom_s": method.get("zoom_s"),
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
        "notes": notes,
    }
    if data.closure is not None:
        out |= {"closure_percent": data.closure.corrected_percent, "chip_clock_ppm": data.closure.chip_clock_ppm}
    if data.fill_s and data.fill_bytes is not None:
        out["fill_MBps"] = data.fill_bytes / data.fill_s / 1e6
    if data.wa_settled is not None:
        out["wa_settled"] = data.wa_settled.value
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
            {"rail": rail.rail, "name": rail.name}
            | own
            | {
                "idle_mean_W": rail.idle_mean_W,
                "closure_percent": rail.closure.corrected_percent if rail.closure else None,
                "chip_clock_ppm": rail.closure.chip_clock_ppm if rail.closure else None,
            }
        )
    return out


def _time_to_complete_s(data: RunData, notes: list[str]) -> float | None:
    """From the start of the purge to the end of the load, drive time."""
    at = {(e["kind"], e.get("step")): e["t_ns"] for e in data.events if e.get("ok", True)}
    begin, end = at.get(("step.start", "purge")), at.get(("step.end", "load"))
    if begin is None or end is None:
        notes.append("time_to_complete_s: the load was not completed")
        return None
    return (end - begin) / SECOND_NS / data.k
