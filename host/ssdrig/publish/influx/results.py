"""The points of a run that has ended which are not measured but computed: run_result, the figures of each window, and
load_second, its load by the second. They are those of the report, so that a dashboard and a report say one thing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base.errors import JournalError
from ssdrig.publish.influx import line_protocol
from ssdrig.publish.influx.line_protocol import Measurement
from ssdrig.reading import RunData, errors, figures, summary, trust, window_figures
from ssdrig.runs import parts

Point = tuple[str, dict, int]  # measurement, fields, t_ns
LOAD = "load"
GRID = {
    "iops": "iops",
    "bw_Bps": "bw_Bps",
    "lat_mean_us": "lat_mean_us",
    "p_mean_W": "power_mean_W",
    "energy_J": "energy_J",
}
OF_WINDOW = (
    *("label", "t0_s", "t1_s", "wa_error", "own_power_ratio_error"),
    *(term.key for term in window_figures.TERMS),
)
OF_RUN = ("state", "why", "simulated", "preset", "op_percent", "tested_bytes", "time_dilation")
NONE_BAD = "none"
OF_DRIVE = ("firmware", "interface", "capacity_bytes")


def points(run: Path, schema: Mapping[str, Measurement]) -> Iterator[Point]:
    """Of a run folder, or of a part of one."""
    known = computed(run)
    if known is None:
        return
    data, found = known
    ends = [event["t_ns"] for event in data.events if event["kind"] == "run.end"] or [e["t_ns"] for e in data.events]
    t_ns = ends[-1] if ends else data.header["started"]["t_ns"]
    yield from _seconds(data)
    for fields in _results(data, found, schema["run_result"].fields):
        yield "run_result", fields, t_ns


def computed(run: Path) -> tuple[RunData, dict] | None:
    """What the report has of a run folder, or of a part of one: None unless it is the one whose figures stand for the
    run, or where run.json is damaged, of which the report says so."""
    run = Path(run)
    if parts.shown(parts.root(run))[0] != run:
        return None
    try:
        return summary.load(run)
    except JournalError:
        return None


def _seconds(data: RunData) -> Iterator[Point]:
    if data.t0_ns is None:
        return
    columns = {name: _column(getattr(data, of), len(data.iops)) for name, of in GRID.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        columns["energy_uJ_per_io"] = 1e6 * columns["energy_J"] / columns["iops"]
    for second in range(len(data.iops)):
        values = {name: float(column[second]) for name, column in columns.items()}
        fields = {name: value for name, value in values.items() if np.isfinite(value)}
        t_ns = data.t0_ns + second * data.k * 10**9
        yield "load_second", {"step": LOAD, "t_s": float(second)} | fields, t_ns


def _column(values: np.ndarray, n: int) -> np.ndarray:
    """float64 (n,), not-a-number where there is none."""
    out = np.full(n, np.nan)
    out[: min(n, len(values))] = values[:n]
    return out


def _results(data: RunData, found: Mapping[str, Any], kinds: Mapping[str, str]) -> Iterator[dict]:
    run = {key: found.get(key) for key in (*OF_RUN, *(term.key for term in figures.TERMS))}
    run |= {key: data.header["drive"].get(key) for key in OF_DRIVE}
    run |= {"plan": data.header["method"].get("name")}
    windows = [
        {"window": name, "steady_state": of["steady_state"]["passed"], "trust_bad": _bad(of)}
        | {key: of.get(key) for key in OF_WINDOW}
        | errors.named(of)
        for name, of in found["windows"].items()
        if of
    ]
    for fields in windows or [{}]:
        both = run | fields
        yield {key: value for key, value in both.items() if line_protocol.fits(value, kinds[key]) and _is_known(value)}


def _bad(of: Mapping[str, Any]) -> str | None:
    """The items of a window's trust strip that are bad."""
    return None if of.get("trust") is None else ",".join(item["id"] for item in trust.red(of["trust"])) or NONE_BAD


def _is_known(value: Any) -> bool:
    """Not-a-number is not, and what no database can hold."""
    return value != "" if isinstance(value, str) else abs(value) < 2**63
