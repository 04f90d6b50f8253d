"""The points of a run that has ended which are not measured but computed: run_result, how it ended; run_figure, the
figures of each window of each step, point and round; run_value, every other number of a row; load_second, each load by
the second. They are the rows of the report, of any plan."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base import overprovisioning
from ssdrig.base.errors import JournalError
from ssdrig.base.utc import Utc
from ssdrig.plan import kinds
from ssdrig.publish.influx import line_protocol
from ssdrig.publish.influx.line_protocol import Measurement
from ssdrig.reading import errors, results, table, timeline
from ssdrig.reading.row import Row, Table
from ssdrig.reading.rundata import SECOND_NS, RunData
from ssdrig.runs import journal, parts
from ssdrig.views import documents

Point = tuple[str, dict, int]  # measurement, fields, UTC in ns
GRID = {
    "iops": "iops",
    "bw_Bps": "bw_Bps",
    "lat_mean_us": "lat_mean_us",
    "p_mean_W": "power_mean_W",
    "energy_J": "energy_J",
}
NONE_BAD = "none"
OF_DRIVE = ("firmware", "interface", "capacity_bytes", "preset")
OF_METHOD = ("op_percent", "tested_bytes")
OF_CLOSURE = {
    "closure_percent": "corrected_percent",
    "chip_clock_ppm": "chip_clock_ppm",
    "chip_clock_error_ppm": "chip_clock_error_ppm",
}
IN_FIGURES = ("rails",)  # of a window, what run_figure does not have
BY_ITSELF = ("windows", "t0_s", "t1_s", "round", "part")  # keys of a row that are not values


def points(run: Path, schema: Mapping[str, Measurement]) -> Iterator[Point]:
    """Points of a run folder or of one of its parts."""
    whole = computed(run)
    if whole is None:
        return
    clocks = _clocks(whole)
    for row in whole.rows:
        yield from _seconds(row, clocks[row.part])
    for row in whole.rows:
        yield from _logged(row, clocks[row.part], schema["application"].fields)
    for result in results.of(whole):
        fields = _where(result.row) | {"window": result.window, **_figures(result)}
        yield "run_figure", _known(fields, schema["run_figure"].fields), clocks[result.row.part].at(result.end_ns)
    for row in whole.rows:
        if row.t0_ns is not None:
            for name, value in values(row):
                fields = _where(row) | {"name": name, "value": value}
                yield "run_value", _known(fields, schema["run_value"].fields), clocks[row.part].at(row.t0_ns)
    yield "run_result", _known(_result(whole), schema["run_result"].fields), clocks[None].at(_end_ns(whole))


def computed(run: Path) -> Table | None:
    """The rows of a run folder, or of a part of one, with their seconds: None unless it is the one whose figures stand
    for the run, or where run.json is damaged, which the report notes."""
    run = Path(run)
    root = parts.root(run)
    if parts.shown(root)[0] != run:
        return None
    try:
        return table.load(root, by_second=True)
    except JournalError:
        return None


def counts(run: Path) -> dict[str, int]:
    """How many of each there are."""
    whole = computed(run)
    if whole is None:
        return {}
    return {
        "load_second": sum(len(seconds[0].iops) for row in whole.rows if (seconds := _by_second(row))),
        "application": sum(1 for row in whole.rows for _ in results.logged(row)),
        "run_figure": sum(1 for _ in results.of(whole)),
        "run_value": sum(len(list(values(row))) for row in whole.rows if row.t0_ns is not None),
        "run_result": 1,
    }


def values(row: Row) -> Iterator[tuple[str, float]]:
    """Every number in a row's JSON that is not a figure of a window, by its path: "found.floor_W", "kernel.read_ios",
    "all.rails.5V.energy_J". Lists of bare numbers, such as curves, are left out."""
    figures = documents.of_row(row)
    yield from _leaves({key: of for key, of in figures.items() if key not in BY_ITSELF and key != "point"}, "")
    for name, of in figures["windows"].items():
        yield from _leaves({key: (of or {}).get(key) for key in IN_FIGURES}, f"{name}.")


def _leaves(of: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(of, bool) or of is None or isinstance(of, str):
        return
    if isinstance(of, int | float):
        if np.isfinite(of) and abs(of) < 2**63:
            yield path.rstrip("."), float(of)
    elif isinstance(of, Mapping):
        for key, inner in of.items():
            yield from _leaves(inner, f"{path}{key}.")
    elif isinstance(of, list | tuple):
        for i, inner in enumerate(of):
            if isinstance(inner, Mapping):
                yield from _leaves(inner, f"{path}{inner.get('name') or i}.")


def _where(row: Row) -> dict[str, Any]:
    """The tags that identify a point."""
    words = row.act.label.removeprefix(row.act.path).strip()
    return {"step": row.act.path, "do": row.act.do, "round": row.round, "point": words or None, "part": row.part}


def _clocks(whole: Table) -> dict[int | None, Utc]:
    """The clock of each part; None: of the one that represents the run, also where it is the only one."""
    header, events = whole.data.header, whole.data.events
    clocks: dict[int | None, Utc] = {None: timeline.clock(header, events)}
    there = {row.part for row in whole.rows}
    for folder in parts.own(parts.root(whole.path)):
        if parts.number(folder) in there:
            clocks[parts.number(folder)] = timeline.clock(journal.run_header(folder), journal.events(folder))
    return clocks


def _by_second(row: Row) -> tuple[RunData, int] | None:
    """The seconds of a step with I/O, and when the first one began; None of another."""
    data = row.data if row.act.do in kinds.IO else None
    return None if data is None or data.t0_ns is None else (data, data.t0_ns)


def _seconds(row: Row, utc: Utc) -> Iterator[Point]:
    seconds = _by_second(row)
    if seconds is None:
        return
    data, t0_ns = seconds
    columns = {name: _column(getattr(data, of), len(data.iops)) for name, of in GRID.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        columns["energy_uJ_per_io"] = 1e6 * columns["energy_J"] / columns["iops"]
    where = {key: value for key, value in _where(row).items() if value is not None}
    for second in range(len(data.iops)):
        numbers = {name: float(column[second]) for name, column in columns.items()}
        fields = {name: value for name, value in numbers.items() if np.isfinite(value)}
        yield "load_second", {**where, "t_s": float(second), **fields}, utc.at(t0_ns + second * data.k * SECOND_NS)


def _logged(row: Row, utc: Utc, kinds_of: Mapping[str, str]) -> Iterator[Point]:
    """The log that an application kept during a recording."""
    for logged in results.logged(row):
        fields = {key: of for key, of in logged._asdict().items() if key != "t_ns"} | {"step": row.act.path}
        yield "application", _known(fields, kinds_of), utc.at(logged.t_ns)


def _column(values: np.ndarray, n: int) -> np.ndarray:
    """float64 (n,), NaN where unknown."""
    out = np.full(n, np.nan)
    out[: min(n, len(values))] = values[:n]
    return out


def _figures(result: results.Result) -> dict[str, Any]:
    bad = result.trust_bad
    return {
        "t0_s": result.figures.get("t0_s"),
        "t1_s": result.figures.get("t1_s"),
        "steady_state": result.steady,
        "trust_bad": None if bad is None else ",".join(bad) or NONE_BAD,
        **result.numbers(),
        **result.errors(),
    }


def _result(whole: Table) -> dict[str, Any]:
    """Points of the whole run, with the figures of the window that represents it."""
    data = whole.data
    header = data.header
    drive, method, plan = header["drive"], header["method"], header["plan"]
    head = results.headline([documents.of_row(row) for row in whole.rows])
    closure = data.closure
    return {
        "state": data.state,
        "why": data.why,
        "simulated": bool(header.get("simulated")),
        "plan": plan.get("name"),
        "variant": plan.get("variant"),
        "scaled": bool(plan.get("scaled")),
        "steady_state": whole.achieved,
        "rows": len(whole.rows),
        "time_dilation": data.k,
        **{key: drive.get(key) for key in OF_DRIVE},
        **{key: method.get(key) for key in OF_METHOD},
        **_over_provisioning(drive, method),
        **{key: getattr(closure, of) if closure else None for key, of in OF_CLOSURE.items()},
        "window": head["window"],
        **{key: head[key] for key in results.HEADLINE},
        **{key: error for key, error in errors.named(head["of"]).items() if key[:-6] in results.HEADLINE},
    }


def _over_provisioning(drive: Mapping, method: Mapping) -> dict[str, float]:
    tested, raw, capacity = (
        of.get(key) for of, key in ((method, "tested_bytes"), (drive, "raw_nand_bytes"), (drive, "capacity_bytes"))
    )
    out: dict[str, float] = {}
    if isinstance(tested, int) and tested > 0:
        if isinstance(raw, int) and raw > 0:
            out["op_raw_percent"] = overprovisioning.own_percent(tested, raw)
        if isinstance(capacity, int) and capacity > 0:
            out["op_user_percent"] = overprovisioning.of_user_percent(tested, capacity)
    return out


def _end_ns(whole: Table) -> int:
    events = whole.data.events
    ends = [event["t_ns"] for event in events if event["kind"] == "run.end"] or [event["t_ns"] for event in events]
    return ends[-1] if ends else whole.data.header["started"]["t_ns"]


def _known(fields: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """The fields that are known and that a database can hold: not-a-number is not."""
    return {key: value for key, value in fields.items() if line_protocol.fits(value, kinds[key]) and _is_known(value)}


def _is_known(value: Any) -> bool:
    return value != "" if isinstance(value, str) else abs(value) < 2**63
