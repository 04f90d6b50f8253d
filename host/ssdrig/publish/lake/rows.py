"""A run folder as rows of the kinds `run`, `figure`, `smart`, `event` and `cut`. Figures are those of the report."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ssdrig import reading
from ssdrig.base.errors import JournalError
from ssdrig.base.utc import Utc
from ssdrig.drive.smart import counters
from ssdrig.powerloss.sessions import JUDGED, record_of
from ssdrig.publish.lake import schema
from ssdrig.reading import errors, figures, table, trust
from ssdrig.reading.rundata import SECOND_NS, RunData
from ssdrig.runs import integrity, journal, parts

OF_RUN = ("idle_mean_W", "fill_s", "fill_MBps", "fill_energy_J", "wa_settled", "time_to_complete_s", "closure_percent")
OWN_FIGURES = (None, "consistency")  # of what plan: the run's figures are figures_of(), the windows are of its load
Row = dict[str, Any]


class Part(NamedTuple):
    """A part of a run as its journal has it."""

    folder: Path
    number: int
    header: dict
    events: list[dict]
    utc: Utc

    def at(self, t_ns: int) -> Row:
        """The columns that say when."""
        return {"part": self.number, "t_utc": self.utc.at(t_ns) // 1000, "t_ns": t_ns}


class Found(NamedTuple):
    """What the report makes of a run: of the run as a whole, and its windows."""

    data: RunData
    run: Row
    figures: list[Row]


def found_in(run: Path, of_run: Sequence[Part]) -> Found:
    """Raises JournalError."""
    if table.plan_of(run) in OWN_FIGURES:
        data = reading.load(run)
        made = figures.figures_of(data)
        folder = parts.shown(run)[0]
        shown = _first((part for part in of_run if part.folder == folder), run)
        windows = [
            _window(shown, data.t0_ns, {"step": "load", "window_name": name}, values, data.k)
            for name, values in made["windows"].items()
            if values and data.t0_ns is not None
        ]
        of = {key: made[key] for key in OF_RUN}
        return Found(data, of | {"op_percent": made["op_percent"], "notes": made["notes"]}, windows)
    whole = table.load(run)
    windows = []
    for row in whole.rows:
        part = of_run[0] if row.part is None else _first((each for each in of_run if each.number == row.part), run)
        said = {"step": row.act.path, "round": row.round, "point": _text(dict(row.act.point)), "notes": row.notes}
        for name, values in row.windows.items():
            if values and row.t0_s is not None:
                t0_ns = part.header["started"]["t_ns"] + round((row.t0_s - _later_s(of_run, part, row.k)) * 1e9 * row.k)
                windows.append(_window(part, t0_ns, {**said, "window_name": name}, values, row.k))
    closed = whole.data.closure.corrected_percent if whole.data.closure else None
    return Found(whole.data, {"closure_percent": closed, "notes": whole.data.notes}, windows)


def _first(wanted: Iterator[Part], run: Path) -> Part:
    """Raises JournalError: the part that is looked for has begun since the parts were read."""
    found = next(wanted, None)
    if found is None:
        raise JournalError(f"{run} as it was", "it was changed meanwhile", "do it again")
    return found


def _later_s(of_run: Sequence[Part], part: Part, k: int) -> float:
    """How much later than the run a part began, in drive time: rows are told from the beginning of the run."""
    return (part.header["started"]["utc_ns"] - of_run[0].header["started"]["utc_ns"]) / SECOND_NS / k


def _window(part: Part, t0_ns: int, said: Row, values: Mapping[str, Any], k: int) -> Row:
    """t0_ns: of the step's first I/O."""
    known = schema.kinds()["figure"]
    begin_ns, end_ns = (t0_ns + round((values.get(key) or 0.0) * SECOND_NS * k) for key in ("t0_s", "t1_s"))
    row = {**said, **part.at(begin_ns), "end_ns": end_ns}
    row |= {key: value for key, value in values.items() if key in known and key != "notes"} | errors.named(values)
    row["trust_bad"] = [item["id"] for item in trust.red(values["trust"])] if values.get("trust") else None
    steady = values.get("steady_state")
    row["steady"] = steady.get("passed") if isinstance(steady, Mapping) else None
    row["notes"] = values["notes"] if values.get("notes") else said.get("notes")
    return row


def of_run(run: Path, of_parts: Sequence[Part], found: Found) -> Row:
    """The row of the run, but for what the export adds to it."""
    first, last = of_parts[0], of_parts[-1]
    state = journal.state(last.folder)
    header, drive, plan = first.header, first.header["drive"], first.header.get("plan") or {}
    method, host = header["method"], header.get("host") or {}
    return found.run | {
        **{key: value for key, value in first.at(header["started"]["t_ns"]).items() if key != "part"},
        "state": state,
        "why": _word(reading.why_ended(state, last.events)),  # of the same part: the figures may be of an earlier one
        "simulated": bool(header.get("simulated")),
        "scaled": bool(plan.get("scaled")),
        "plan": _word(plan.get("name")) or method.get("name"),
        "variant": _word(plan.get("variant")),
        "params": _text(plan.get("params") or method),
        "parts": len(of_parts),
        **{key: drive.get(key) for key in ("model", "serial", "firmware", "interface", "capacity_bytes")},
        "raw_nand_bytes": drive.get("raw_nand_bytes"),
        "raw_nand_assumed": bool(drive.get("raw_nand_assumed")),
        "time_dilation": int(drive.get("time_dilation") or 1),
        "op_percent": found.run.get("op_percent", method.get("op_percent")),
        "tested_bytes": method.get("tested_bytes"),
        **{key: _word(host.get(key)) for key in ("kernel", "fio")},
        "host": _word(host.get("name")),
        "ssdrig": _word(header.get("ssdrig")),
        "header": _text(header),
    }


def smart(part: Part) -> Iterator[Row]:
    """The polls of a part. One that cannot be read is left out: the event of it is there."""
    known = schema.kinds()["smart"]
    for event in part.events:
        if event["kind"] != "smart.end" or not event.get("ok"):
            continue
        try:
            document = integrity.document_of(part.folder / "smart" / f"{event['n']:03d}.json")
            said = counters.snapshot(document)
        except (OSError, ValueError, TypeError, KeyError):
            continue
        t_ns = event["t_ns"] if said["t_ns"] is None else said["t_ns"]
        row = {key: value for key, value in said.items() if key in known and key != "t_ns"} | part.at(t_ns)
        if said["t_ns"] is not None:
            row["poll_ms"] = (said["t_end_ns"] - said["t_start_ns"]) / 1e6
        whole = (key for key, column in known.items() if column.type == "i64" and isinstance(row.get(key), float))
        row |= {key: int(row[key]) for key in whole}
        yield row | {"document": _text(document)}


def events(part: Part) -> Iterator[Row]:
    for event in part.events:
        yield {
            **part.at(event["t_ns"]),
            "event": _word(event["kind"]),
            "step": _word(event.get("step")),
            "round": number_of(event.get("round")),
            "body": _text({key: value for key, value in event.items() if key not in ("t_ns", "kind", "crc")}),
        }


def cuts(of_parts: Iterable[Part]) -> list[Row]:
    """The judged sessions of all parts; of one that is there twice the last."""
    last: dict[tuple, Row] = {}
    for part in of_parts:
        for event in part.events:
            if event["kind"] == JUDGED:
                last[event.get("step"), event.get("cut")] = _cut(part, event)
    return list(last.values())


def _cut(part: Part, event: Mapping[str, Any]) -> Row:
    record = record_of(event)
    fall = record.get("fall")
    flat = {**record, **(fall if isinstance(fall, Mapping) else {}), "step": event.get("step")}
    at_ns = event["fired_ns"] if isinstance(event.get("fired_ns"), int) else event["t_ns"]
    row: Row = part.at(at_ns)
    for name, (_, type_) in schema.kinds()["cut"].items():
        value = flat.get(name)
        if name in row or name in ("run", "export", "drive") or value is None:
            continue
        if type_ in ("text", "long"):
            row[name] = value if isinstance(value, str) else _text(value)
        elif type_ == "bool":
            row[name] = bool(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            row[name] = float(value) if type_ == "f64" else int(value)
    return row


def number_of(value: Any) -> int | None:
    """Of a round."""
    return value if type(value) is int and abs(value) < 1 << 63 else None


def _text(value: Any) -> str | None:
    return json.dumps(value, sort_keys=True) if value not in (None, {}, []) else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
