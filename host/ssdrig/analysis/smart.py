"""The SMART polls of a run folder -> temperature and write amplification of RunData."""

import json
from pathlib import Path

import numpy as np

from ssdrig.analysis.rundata import RunData
from ssdrig.drive import counters, wa


def load_smart(data: RunData, run: Path) -> None:
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
