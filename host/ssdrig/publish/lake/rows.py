"""A run folder as rows of the kinds `run`, `figure`, `smart`, `host`, `application`, `event` and `cut`. Figures are
those of the report."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ssdrig import reading
from ssdrig.base.errors import JournalError
from ssdrig.base.utc import Utc
from ssdrig.drive.smart import counters
from ssdrig.meter import pairing
from ssdrig.powerloss.sessions import JUDGED, record_of
from ssdrig.publish.lake import schema
from ssdrig.reading import host_power, results, timeline
from ssdrig.reading.row import Table
from ssdrig.runs import integrity, journal, parts

Row = dict[str, Any]


class Part(NamedTuple):
    """A part of a run as its journal has it."""

    folder: Path
    number: int
    header: dict
    events: list[dict]
    utc: Utc

    def at(self, t_ns: int) -> Row:
        """The time columns."""
        return {"part": self.number, "t_utc": self.utc.at(t_ns) // 1000, "t_ns": t_ns}


class RunFigures(NamedTuple):
    """What the report makes of a run: of the run as a whole, and the figures of each window."""

    run: Row
    figures: list[Row]


def read_parts(run: Path, running: bool = False) -> list[Part]:
    """The parts of a run that has ended, or of one that may be `running`. Raises JournalError."""
    out: list[Part] = []
    for folder in parts.own(run):
        header = journal.run_header(folder)
        if not running and (journal.state(folder) == "running" or journal.lock_is_held(folder)):
            raise JournalError(f"a run that has ended: {run}", "a process that still writes it", "wait for its end")
        events = pairing.believed(journal.events(folder))
        number = parts.number(folder) if out else 1
        out.append(Part(folder, number, header, events, timeline.clock(header, events)))
    return out


def found_in(whole: Table, of_run: Sequence[Part]) -> RunFigures:
    """The figures of a run's table. Raises JournalError."""
    by_number = {part.number: part for part in of_run}
    windows = []
    for result in results.of(whole):
        part = of_run[0] if result.row.part is None else by_number.get(result.row.part)
        if part is None:
            raise JournalError(f"{whole.path} as it was", "it was changed meanwhile", "do it again")
        windows.append(_figure(part, result))
    closed = whole.data.closure.corrected_percent if whole.data.closure else None
    return RunFigures({"closure_percent": closed, "notes": whole.data.notes}, windows)


def _figure(part: Part, result: results.Result) -> Row:
    row, values = result.row, result.figures
    return {
        **{"step": row.act.path, "do": row.act.do, "round": number_of(row.round)},
        **{"point": text_of(dict(row.act.point)), "window_name": result.window},
        **part.at(result.begin_ns),
        **{"end_ns": result.end_ns, "t0_s": values.get("t0_s"), "t1_s": values.get("t1_s")},
        **result.numbers(),
        **result.errors(),
        **{"trust_bad": result.trust_bad, "steady": result.steady, "notes": values.get("notes") or row.notes},
    }


def of_run(run: Path, of_parts: Sequence[Part], shared: RunFigures) -> Row:
    """The row of the run, except what the export adds to it."""
    first, last = of_parts[0], of_parts[-1]
    state = journal.state(last.folder)
    header, drive, plan = first.header, first.header["drive"], first.header.get("plan") or {}
    method, host = header["method"], header.get("host") or {}
    return shared.run | {
        **{key: value for key, value in first.at(header["started"]["t_ns"]).items() if key != "part"},
        "state": state,
        "why": _word(reading.why_ended(state, last.events)),  # of the same part: the figures may be of an earlier one
        "simulated": bool(header.get("simulated")),
        "scaled": bool(plan.get("scaled")),
        "plan": _word(plan.get("name")) or method.get("name"),
        "variant": _word(plan.get("variant")),
        "params": text_of(plan.get("params") or method),
        "parts": len(of_parts),
        **{key: drive.get(key) for key in ("model", "serial", "firmware", "interface", "capacity_bytes")},
        "raw_nand_bytes": drive.get("raw_nand_bytes"),
        "raw_nand_assumed": bool(drive.get("raw_nand_assumed")),
        "time_dilation": int(drive.get("time_dilation") or 1),
        "op_percent": method.get("op_percent"),
        "tested_bytes": method.get("tested_bytes"),
        **{key: _word(host.get(key)) for key in ("kernel", "fio")},
        "host": _word(host.get("name")),
        "ssdrig": _word(header.get("ssdrig")),
        "header": text_of(header),
    }


def smart(part: Part) -> Iterator[Row]:
    """The polls of a part. One that cannot be read is left out: the event of it is there."""
    known = schema.kinds()["smart"]
    for event in part.events:
        if event["kind"] != "smart.end" or not event.get("ok"):
            continue
        try:
            document = integrity.document_of(part.folder / "smart" / f"{event['n']:03d}.json")
            snapshot = counters.snapshot(document)
        except (OSError, ValueError, TypeError, KeyError):
            continue
        t_ns = event["t_ns"] if snapshot["t_ns"] is None else snapshot["t_ns"]
        row = {key: value for key, value in snapshot.items() if key in known and key != "t_ns"} | part.at(t_ns)
        if snapshot["t_ns"] is not None:
            row["poll_ms"] = (snapshot["t_end_ns"] - snapshot["t_start_ns"]) / 1e6
        whole = (key for key, column in known.items() if column.type == "i64" and isinstance(row.get(key), float))
        row |= {key: int(row[key]) for key in whole}
        yield row | {"document": text_of(document)}


def events(part: Part) -> Iterator[Row]:
    for event in part.events:
        yield {
            **part.at(event["t_ns"]),
            "event": _word(event["kind"]),
            "step": _word(event.get("step")),
            "round": number_of(event.get("round")),
            "body": text_of({key: value for key, value in event.items() if key not in ("t_ns", "kind", "crc")}),
        }


def host(part: Part) -> Iterator[Row]:
    """The host's power by zone."""
    step: Row = {}
    for event in part.events:
        if event["kind"] == "step.start":
            step = {"step": _word(event.get("step")), "round": number_of(event.get("round"))}
        elif event["kind"] == "step.end":
            step = {}
        for power in host_power.of_event(event):
            values = {"zone": power.zone, "lasted_s": power.lasted_s}
            yield part.at(power.begin_ns) | step | values | {"power_W": power.power_W, "energy_J": power.energy_J}


def application(whole: Table, of_run: Sequence[Part]) -> Iterator[Row]:
    """The logs that applications kept during the recordings of a run."""
    by_number = {part.number: part for part in of_run}
    for row in whole.rows:
        part = of_run[0] if row.part is None else by_number.get(row.part)
        if part is None:
            continue
        for logged in results.logged(row):
            yield {**logged._asdict(), **part.at(logged.t_ns), "step": row.act.path}


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
            row[name] = value if isinstance(value, str) else text_of(value)
        elif type_ == "bool":
            row[name] = bool(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 63:
            row[name] = float(value) if type_ == "f64" else int(value)
    return row


def number_of(value: Any) -> int | None:
    """The row of a round."""
    return value if type(value) is int and abs(value) < 1 << 63 else None


def text_of(value: Any) -> str | None:
    return json.dumps(value, sort_keys=True) if value not in (None, {}, []) else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
