"""The load that a run is about, in full: its seconds, what only samples show between them, and the figures of its
windows as a page shows them side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base import overprovisioning
from ssdrig.drive.wear import wa
from ssdrig.meter import rails, reduced
from ssdrig.meter.reduced import Reduced
from ssdrig.plan import kinds
from ssdrig.plan.rules import ends, steady, windows
from ssdrig.plan.rules.windows import Unfinished, Window
from ssdrig.reading import below_second, latency, power, steady_state, trust, whole_run, window_figures, witness
from ssdrig.reading.power import NO_CHANNEL
from ssdrig.reading.row import WHOLE, Row, Table
from ssdrig.reading.rundata import SECOND_NS, RunData

FACTS = (
    *("run", "state", "why", "simulated", "scaled", "model", "serial", "preset", "op_percent", "duration_s", "zoom_s"),
    *("time_dilation", "raw_nand_bytes", "raw_nand_assumed"),
)
NOT_FLAT = ("name", "label", "t0_s", "t1_s", "unfinished", "rails", "trust", "notes")
KEYS = (
    *FACTS,
    *whole_run.KEYS,
    *(key for key in window_figures.KEYS if key not in NOT_FLAT),
    *("window_s", "window_label", "rails", "windows", "kernel", "trust", "notes"),
)
OF_STEADY = "steady"  # the main window of the load, if the plan has it
WINDOW_STARTS = "window starts"


class Course(NamedTuple):
    """The load of a run. `data`: its course; `figures`: KEYS; `table`: of the run."""

    data: RunData
    figures: dict
    table: Table


@dataclass
class Detail:
    """The figures of the load `row` that need samples: cells, moments, histograms, and the energy after it."""

    row: Row
    rest_ns: list[int]  # begin and end of the rest whose power the load is compared with; [] without one
    everything: bool
    fine_ns: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    after_ns: list[int] = field(default_factory=list)
    watch: below_second.Watch | None = None

    def __post_init__(self) -> None:
        data = self.row.data
        assert data is not None
        data.zoom_s = _begins_s(self.row, data)
        self.fine_ns, self.watch = below_second.fine_ns(data), below_second.Watch(data, self.everything)
        end_ns = power.end_ns(data) if data.t0_ns is not None else 0
        if self.rest_ns and end_ns and end_ns < self.rest_ns[0]:
            self.after_ns = [end_ns, self.rest_ns[0]]

    @property
    def edges_ns(self) -> np.ndarray:
        """Host times between which the energy is needed."""
        return np.concatenate([self.fine_ns, np.array([*self.rest_ns, *self.after_ns], np.int64)])

    @property
    def timed(self) -> reduced.Asked:
        """Those of them that are edges of a step."""
        assert self.row.data is not None
        after = power.asked(self.row.data, np.array(self.after_ns[:1], np.int64))
        return reduced.Asked.together([after, reduced.Asked.of([*self.rest_ns, *self.after_ns[1:]])])

    def place(self, powers: list[Reduced]) -> None:
        """Put the results into the load's data."""
        data = self.row.data
        if data is None or self.watch is None or not powers:
            return
        self.watch.end()
        below_second.place(data, powers, self.fine_ns)
        if self.after_ns:
            of_after = rails.timed_J(powers, *self.after_ns)
            data.after_s = (self.after_ns[1] - self.after_ns[0]) / (SECOND_NS * data.k)
            data.after_J = None if of_after.why else of_after.J / data.k


def rest_ns(rows: Sequence[Row]) -> list[int]:
    """Begin and end of the only rest of a run, host time; [] of one with several, or none."""
    spans = [
        [row.data.t0_ns, power.end_ns(row.data)]
        for row in rows
        if row.act.do == "idle" and row.act.keys.get("until") != "quiet" and row.act.repeat is None
        if row.data is not None and row.data.t0_ns is not None and row.data.load_s
    ]
    return spans[0] if len(spans) == 1 else []


def _begins_s(row: Row, data: RunData) -> int:
    span = row.act.keys.get("windows", {}).get(OF_STEADY)
    return round(ends.begins_s(span, len(data.iops))) if span else 0


def of(table: Table) -> Course:
    """The load of a table that was read in detail."""
    row = whole_run.principal(table)
    if row is None or row.data is None:
        nothing = replace(table.data, header=_header(table, None), notes=[])
        return Course(nothing, figures_of(table, None, nothing), table)
    of_run = {"header": _header(table, row), "state": table.data.state, "why": table.data.why}
    data = replace(row.data, **of_run, episodes=row.episodes)
    _on_axis(data, table.data)
    figures = figures_of(table, row, data)
    latency.place(data, figures)
    data.snapshots = table.data.snapshots
    return Course(data, figures, table)


def _on_axis(data: RunData, run: RunData) -> None:
    """What happened in the run, on the axis of the load, from which people count the times of their notes."""
    begin_s = float(run.axis_s(data.t0_ns)) if data.t0_ns is not None else 0.0
    data.polls = [(from_s - begin_s, to_s - begin_s, reason) for from_s, to_s, reason in run.polls]
    of_run, own = run.remarks(), data.remarks()
    data.marks = [(at[0] - begin_s, at[1]) for at in run.marks if at not in of_run] + own
    notes = [(t, f"note: {text}") for t, text in of_run]
    data.log = [(at[0] - begin_s, at[1]) for at in run.log if at not in notes]
    data.log = sorted([*data.log, *((t, f"note: {text}") for t, text in own)], key=lambda at: at[0])
    if data.zoom_s:
        data.marks.append((float(data.zoom_s), WINDOW_STARTS))


def _header(table: Table, row: Row | None) -> dict:
    """run.json, with what the load of the page is."""
    header = table.data.header
    if row is None:
        return header
    keys = row.act.keys
    own = {"tested_bytes": row.act.range_bytes or None, "block_bytes": keys.get("block")}
    own = {key: value for key, value in own.items() if isinstance(value, int)}
    plan_words = {"title": table.plan.title, "load": words(row)}
    return {**header, "method": {**header["method"], **own, **plan_words}}


def words(row: Row) -> str:
    """A load in words: "random write over the whole tested range"."""
    keys = row.act.keys
    if row.act.do != "load":
        return row.act.label
    read = keys.get("read", 0)
    kind = {0: "write", 100: "read"}.get(read, f"mix of {read:g} % reads")
    whole = " over the whole tested range" if row.act.repeat is None else f" ({row.label})"
    return f"{keys.get('pattern', 'random')} {kind}{whole}"


def figures_of(table: Table, row: Row | None, data: RunData) -> dict:
    """KEYS of the load, the flat ones of its main window; `notes`: why one is None."""
    out: dict[str, Any] = dict.fromkeys(KEYS)
    of_run, drive = whole_run.of(table), table.data.header["drive"]
    notes = [*table.data.notes, *_not_of_windows(table, row)]
    named = dict.fromkeys(("fresh", WHOLE, OF_STEADY)) if row is None or row.act.do == "load" else {WHOLE: None}
    by_name: dict[str, dict | None] = dict(named)
    if row is not None:
        by_name |= {name: _in_window(table, row, data, name) for name in dict.fromkeys([*by_name, *row.windows])}
    for name, figures in by_name.items():
        if figures:
            times = figures["label"].rpartition(", ")[2].replace(": ", ", ")
            notes += [f"{name}, {times}: {note}" for note in figures["notes"]]
    if data.rails and not any(rail.fast for rail in data.rails):
        notes.append(NO_CHANNEL)
    main = by_name.get(OF_STEADY) if OF_STEADY in by_name else next(iter(reversed(by_name.values())), None)
    if main:
        out |= {key: main[key] for key in window_figures.KEYS if key not in NOT_FLAT}
        out |= {"window_s": [main["t0_s"], main["t1_s"]], "window_label": main["label"]}
    out |= {key: of_run[key] for key in whole_run.KEYS}
    out |= {
        "run": table.data.header["run"],
        "state": table.data.state,
        "why": table.data.why,
        "simulated": bool(table.data.header.get("simulated")),
        "scaled": table.plan.scaled,
        "model": drive.get("model"),
        "serial": drive.get("serial"),
        "preset": drive.get("preset"),
        "op_percent": table.data.header["method"].get("op_percent"),
        "duration_s": longest_s(row) if row else None,
        "zoom_s": data.zoom_s,
        "time_dilation": table.data.k,
        "raw_nand_bytes": drive.get("raw_nand_bytes"),
        "raw_nand_assumed": bool(drive.get("raw_nand_assumed")),
        "kernel": row.kernel if row else None,
        "rails": _rails(data, main),
        "windows": by_name,
        "trust": trust.whole((figures["label"], figures["trust"]) for figures in by_name.values() if figures),
        "notes": list(dict.fromkeys(notes)),
    }
    return out


def longest_s(row: Row) -> float | None:
    """How long the load was to take at the most."""
    return kinds.KINDS["load"].longest_s(row.act) if row.act.do == "load" else None


def unfinished(row: Row) -> Unfinished | None:
    """How far an unfinished load got; None: it finished."""
    if row.state == "done":
        return None
    lasts_s = longest_s(row)
    how = windows.RUNNING if row.state == "running" else windows.CUT_SHORT
    at_most = any(entry.rule not in (None, "never") for entry in row.act.keys.get("until", ()))
    return Unfinished(how, f"{'at most ' * at_most}{lasts_s:g} s" if lasts_s else "")


def _in_window(table: Table, row: Row, data: RunData, name: str) -> dict | None:
    """The figures of a window with its label; of the whole load those of its whole seconds."""
    stored = row.windows.get(name)
    if stored is None:
        return None
    n = len(data.iops)
    left = unfinished(row) if name == WHOLE or stored["t1_s"] == n else None
    if name != WHOLE:
        window = Window(name, stored["t0_s"], stored["t1_s"], stored["steady_state"], left)
        figures = {**dict.fromkeys(window_figures.KEYS), **stored, **_named(window)}
        ruled = stored["trust"][0]["state"] != trust.NOT_APPLICABLE
        return figures if ruled else figures | {"trust": [trust.steady_of(figures).as_json(), *stored["trust"][1:]]}
    if n < windows.FEWEST_S:
        return None
    span = Window(name, 0, n, {}, left)
    event, ceiling_iops = (
        witness.event_of(data.events, row.act.label, row.round),
        witness.ceiling_iops(data.events, row),
    )
    host = trust.host_of(witness.host(data, event, span, ceiling_iops))
    verdict = steady.not_claimed(steady_state.of_row(row, data)(0, n), trust.why_not([host.as_json()]))
    figures = window_figures.figures_in(data, replace(span, steady_state=verdict))
    return figures | {"trust": trust.of_window(data, figures, host, trust.of_run(table.data))}


def _named(window: Window) -> dict:
    how = window.unfinished and window.unfinished.how
    return {"name": window.name, "label": window.label, "unfinished": how}


def _not_of_windows(table: Table, row: Row | None) -> list[str]:
    """Notes on the load and on the run outside their windows."""
    out = [] if row is None else [note for note in row.notes if note.startswith(OF_LOAD)]
    out += [] if row is None else [f"load: {note}" for note in row.notes if note.startswith(witness.SAYS)]
    for other in table.rows:
        if other is not row and other.act.do in kinds.IO and other.round is None:
            path, of = other.act.path, other.windows.get(WHOLE) or {}
            out += [f"{path}: {note.removeprefix('load: ')}" for note in other.notes if note.startswith("load: ")]
            out += power.clipped_words(f"the {path}", of.get("samples_clipped") or 0, of.get("samples") or 0)
    fill = next((other for other in reversed(table.rows) if other.act.do == "fill"), None)
    if fill and fill.data and fill.data.rails and (fill.windows.get(WHOLE) or {}).get("energy_J") is None:
        out.append(f"fill_energy_J: {fill.why_not('W')}")
    drive = table.data.header["drive"]
    if row is not None and row.act.range_bytes and not drive.get("raw_nand_bytes"):
        out.append("op_raw_percent, alpha, wa_closed_form: the raw NAND is not known (--raw-nand)")
    elif row is not None and drive.get("raw_nand_assumed"):
        out.append(f"op_raw_percent, alpha, wa_closed_form: {overprovisioning.assumed_words(drive['raw_nand_bytes'])}")
    if settled_wa := whole_run.settled(table, row):
        out += [f"wa_settled: {wa.FLAGS[flag]}" for flag in settled_wa.flags]
    if row is None or row.state != "done":
        out.append("time_to_complete_s: the load was not completed")
    return out


OF_LOAD = ("load", "window", "P99", "wa: ")


def _rails(data: RunData, stands: Mapping | None) -> list[dict]:
    """Each rail: its figures in the main window of the load, and those of the run."""
    nothing = dict.fromkeys(
        ("power_mean_W", "power_max_W", "energy_J", "power_uncertainty_percent", "samples", "samples_lost")
    )
    out = []
    for i, rail in enumerate(data.rails):
        own = stands["rails"][i] if stands and stands["rails"] else nothing
        out.append(
            {"rail": rail.rail, "name": rail.name}
            | own
            | {"idle_mean_W": rail.idle_mean_W}
            | whole_run.of_closure(rail.closure)
        )
    return out
