"""The results of the steps of a retention test, from the events and the files of their run folder.

`result` of a row: {"kind": "retention", "phase": "write" or "verify", "manifest": None or the whole of it, "digest",
"passes": passes.judge() of each, "windows": [{"name", "s", "J", "W", "begin_ns", "end_ns"}], "idle_W", "refresh_J",
"refresh_why", and the fields of the event retention.end: "storage", "counts", "since_power_on", "since_seal", "bound",
"cannot"}. An unknown figure is null."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.meter import rails
from ssdrig.meter.reduced import Asked
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import RunData
from ssdrig.retention import manifest as manifests
from ssdrig.retention.manifest import FOLDER
from ssdrig.runs import integrity

DOES = ("retain", "recall")
END = ("storage", "counts", "since_power_on", "since_seal", "bound", "cannot")
RESTS = ("rest", "after", "pause")  # windows without I/O of ours
NO_METER = "no rig measured its power"
NO_IDLE = "the power at rest before storage is not known"


class Wanted(NamedTuple):
    """The energy of one window (table.read_finer)."""

    row: "Row"
    window: dict  # of row.result["windows"]
    span_ns: tuple[int, int]

    edges_ns = np.empty(0, np.int64)

    @property
    def timed(self) -> Asked:
        return Asked.of(self.span_ns)

    def put(self, _: RunData, powers: list) -> None:
        timed = rails.timed_J(powers, *self.span_ns) if powers else rails.Timed(why=rails.NO_POWER)
        if timed.why is None:
            self.window["J"] = timed.J
            self.window["W"] = timed.J / self.window["s"] if self.window["s"] else None
        _refresh(self.row.result)


def read(base: RunData, rows: Sequence["Row"], run: Path) -> list[Wanted]:
    """Puts the results into the rows, and returns the windows whose energies are needed."""
    out = []
    for row in rows:
        if row.act.do not in DOES or row.state == "not run":
            continue
        own = [event for event in base.events if event.get("step") == row.act.path]
        row.result = event_of(own, run, row.act.do)
        out += [Wanted(row, window, (window["begin_ns"], window["end_ns"])) for window in row.result["windows"]]
        _refresh(row.result)
    return out


def event_of(events: Sequence[Mapping], run: Path, do: str) -> dict:
    """The results from one step's events and the files of its run folder. Never raises for damaged files."""
    by = {event["kind"]: event for event in events}
    manifest = _json(run / FOLDER / "manifest.json")
    end = by.get("retention.end", {})
    numbers = sorted(event["number"] for event in events if event["kind"] == "retention.pass")
    windows = [
        {"name": e["name"], "begin_ns": e["begin_ns"], "end_ns": e["end_ns"], "s": (e["end_ns"] - e["begin_ns"]) / 1e9}
        | {"J": None, "W": None}
        for e in events
        if e["kind"] == "retention.window"
    ]
    seal = by.get("retention.sealed") or by.get("retention.found") or {}
    return {
        "kind": "retention",
        "phase": "write" if do == "retain" else "verify",
        "manifest": manifest,
        "digest": seal.get("digest"),
        "label": manifests.label(manifest) if manifest else None,
        "damaged": seal.get("damaged") or {},
        "witnesses": seal.get("witnesses"),
        "off": {key: seal.get(key) for key in ("off_utc", "announced", "words")} if do == "retain" else None,
        "power": {key: by.get("retention.power", {}).get(key) for key in ("on_ns", "off_s", "why")},
        "passes": [judged for n in numbers if (judged := _json(run / FOLDER / f"pass-{n}.json")) is not None],
        "windows": windows,
        "idle_W": _idle_W(manifest),
        "refresh_J": None,
        "refresh_why": NO_METER,
        **{key: end.get(key) for key in END},
    }


def _refresh(of: dict) -> None:
    """Energy of the rests above the drive's power at rest before it was stored."""
    rests = [window for window in of["windows"] if window["name"].split()[0] in RESTS]
    if of["phase"] == "write" or not rests:
        of["refresh_why"] = "the meter recorded no rest"
        return
    if any(window["J"] is None for window in rests):
        of["refresh_why"] = NO_METER
    elif of["idle_W"] is None:
        of["refresh_why"] = NO_IDLE
    else:
        of["refresh_J"] = sum(window["J"] - of["idle_W"] * window["s"] for window in rests)
        of["refresh_why"] = None


def _idle_W(manifest: Mapping | None) -> float | None:
    value = (manifest or {}).get("seal", {}).get("idle_W")
    return float(value) if isinstance(value, int | float) else None


def _json(path: Path) -> dict | None:
    try:
        document = integrity.document_of(path)
    except (OSError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
