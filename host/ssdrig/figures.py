"""What happened in a run (analysis.RunData) -> its figures: one flat object of numbers, each defined here once.

IOPS statistics follow the reviews (AnandTech 2015, 2016): mean and standard deviation (n - 1) of the per-second counts
from the zoom start on, consistency = mean / sd; seconds without I/O count as 0. Percentiles interpolate linearly."""

import numpy as np

from ssdrig.analysis import SECOND_NS, Rail, RunData

KEYS = (
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
    "ios",
    "iops_mean",
    "iops_sd",
    "consistency",
    "iops_min",
    "iops_p0_1",
    "iops_p1",
    "iops_p5",
    "iops_p50",
    "zero_seconds",
    "iops_all_mean",
    "lat_mean_us",
    "lat_p99_us",
    "lat_p999_us",
    "power_mean_W",
    "power_max_W",
    "energy_J",
    "energy_uJ_per_io",
    "energy_J_per_GB",
    "iops_per_W",
    "power_uncertainty_percent",
    "idle_mean_W",
    "idle_uncertainty_W",
    "time_to_complete_s",
    "host_written_bytes",
    "nand_written_bytes",
    "wa",
    "wa_error",
    "wa_settled",
    "purge",
    "samples",
    "samples_lost",
    "closure_percent",
    "chip_clock_ppm",
    "clock_error_us",
    "temperature_max_C",
    "fill_MBps",
    "fill_energy_J",
    "window_s",
    "rails",
    "notes",
)


def figures_of(data: RunData) -> dict:
    """The object of `ssdrig report RUN --json`: all KEYS, each a plain number, string or None; `notes` says why one is
    None. `rails` has an object for each rail of the rig, by number; all else is of the rails together."""
    method, drive = data.header["method"], data.header["drive"]
    out = dict.fromkeys(KEYS)
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
        "ios": data.ios,
        "rails": [_rail(rail, data.load_s) for rail in data.rails],
        "notes": list(data.notes),
    }
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
    out |= {
        "fill_energy_J": data.fill_energy_J,
        "idle_mean_W": data.idle_mean_W,
        "idle_uncertainty_W": data.idle_uncertainty_W,
    }
    out["power_uncertainty_percent"] = data.power_uncertainty_percent
    out["purge"] = next((e.get("method") for e in data.events if e["kind"] == "purge"), None)
    if data.wa_settled is not None:
        out["wa_settled"] = data.wa_settled.value
    return out


def _iops(data: RunData, zoom_s: int, notes: list[str]) -> dict:
    """Statistics of the per-second counts over the window [zoom, end of the last whole second)."""
    out = {"iops_all_mean": data.ios / data.load_s if data.load_s and data.ios is not None else None}
    window = data.iops[zoom_s:]
    if len(window) < 2:
        notes.append(
            f"iops_mean and the like: the load lasted {len(data.iops)} whole seconds, the zoom starts at {zoom_s} s"
        )
        return out
    mean, sd = float(window.mean()), float(window.std(ddof=1))
    if sd == 0:
        notes.append("consistency: the standard deviation is 0")
    percentiles = np.percentile(window, [0.1, 1, 5, 50]).tolist()
    return out | {
        "iops_mean": mean,
        "iops_sd": sd,
        "consistency": mean / sd if sd else None,
        "iops_min": float(window.min()),
        **dict(zip(("iops_p0_1", "iops_p1", "iops_p5", "iops_p50"), percentiles, strict=True)),
        "zero_seconds": int((window == 0).sum()),
        "window_s": [zoom_s, len(data.iops)],
    }


def _energy(data: RunData) -> dict:
    """Energy figures of the whole load; of the seconds that have power where some have none."""
    seen = np.isfinite(data.energy_J)
    whole = data.load_energy_J is not None and data.ios is not None
    if whole:
        energy_J, ios, moved, seconds = data.load_energy_J, data.ios, data.bytes, data.load_s
    else:
        energy_J, ios = float(data.energy_J[seen].sum()), float(data.iops[seen].sum())
        moved, seconds = float(data.bw_Bps[seen].sum()), float(seen.sum())
    out = {"energy_J": data.load_energy_J if whole else None}
    if not energy_J or not seconds:
        return out
    out |= {
        "power_mean_W": energy_J / seconds,
        "power_max_W": float(np.nanmax(data.power_max_W)) if seen.any() else None,
    }
    if ios:
        out |= {
            "energy_uJ_per_io": 1e6 * energy_J / ios,
            "energy_J_per_GB": 1e9 * energy_J / moved,
            "iops_per_W": ios / energy_J,
        }
    return out


def _rail(rail: Rail, load_s: float) -> dict:
    """Figures of one rail: its mean power is of the seconds that it has where it was not there all the load, its
    highest sample its own."""
    seen = np.isfinite(rail.power_mean_W)
    mean_W = float(rail.power_mean_W[seen].mean()) if seen.any() else None
    if rail.load_energy_J is not None and load_s:
        mean_W = rail.load_energy_J / load_s
    return {
        "rail": rail.rail,
        "name": rail.name,
        "power_mean_W": mean_W,
        "power_max_W": float(np.nanmax(rail.power_max_W)) if seen.any() else None,
        "energy_J": rail.load_energy_J,
        "idle_mean_W": rail.idle_mean_W,
        "power_uncertainty_percent": rail.power_uncertainty_percent,
        "samples": rail.sample_count,
        "samples_lost": rail.samples_lost,
        "closure_percent": rail.closure.corrected_percent if rail.closure else None,
        "chip_clock_ppm": rail.closure.chip_clock_ppm if rail.closure else None,
    }


def _time_to_complete_s(data: RunData, notes: list[str]) -> float | None:
    """From the start of the purge to the end of the load, drive time."""
    at = {(e["kind"], e.get("step")): e["t_ns"] for e in data.events if e.get("ok", True)}
    begin, end = at.get(("step.start", "purge")), at.get(("step.end", "load"))
    if begin is None or end is None:
        notes.append("time_to_complete_s: the load was not completed")
        return None
    return (end - begin) / SECOND_NS / data.k
