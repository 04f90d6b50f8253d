"""The rigs of an archive: what each said of itself in its latest run, its certificate (the last `rig doctor`), whether
its bench is unknown, and what the journals of its runs say of it. Read from files: the port is a run's."""

import functools
import os
import time
from pathlib import Path
from typing import Any

from ssdrig.base import latch
from ssdrig.base.errors import JournalError
from ssdrig.reading.index import Index, Run
from ssdrig.reading.row import WHOLE
from ssdrig.rig import certificate
from ssdrig.runs import integrity, journal, parts
from ssdrig.serve import said

MOST_RUNS = 200  # the latest of the archive
MOST_EVENTS = 20  # of each run
MOST_LISTED = 30  # runs of a rig
BAD = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


LOSSES = ("samples", "samples_lost", "closure_percent")


def listed(index: Index) -> list[dict]:
    """Each rig, the one that was used last first."""
    found: dict[tuple, dict] = {}
    for run in index.find(limit=MOST_RUNS):
        of_run = _of_run(index, run)
        if not of_run:
            continue
        hello = of_run["hello"]
        key = (str(hello.get("serial")), str(hello.get("board")), bool(hello.get("simulated")))
        rig = found.setdefault(key, {**said.rig(hello), **_kept(hello, of_run["certificate"]), "runs": []})
        if len(rig["runs"]) < MOST_LISTED:
            rig["runs"].append({name: of_run[name] for name in ("id", "run", "state", "utc_ms", "says", *LOSSES)})
    return list(found.values())


def _of_run(index: Index, run: Run) -> dict | None:
    """What a run's journal says of its rig; None where it had none."""
    try:
        folder = index.folder(run)
        last = parts.of(folder)[-1]
        found = os.stat(last / "events.jsonl")
        events = _events(last, found.st_size, found.st_mtime_ns)
    except (JournalError, *BAD):
        return None
    hellos = [event["hello"] for event in events if event["kind"] == "rig.hello"]
    if not hellos:
        return None
    words = [said.words(event) for event in events if event["kind"] not in ("rig.hello", "rig.certificate")]
    boots = {str(hello.get("boot")) for hello in hellos}
    words += [f"the board was reset: {len(boots)} boots in one run"] if len(boots) > 1 else []
    return {
        "id": run.id,
        "run": run.run,
        "state": run.state,
        "utc_ms": run.started_utc_ns // 10**6 if run.started_utc_ns else None,
        "hello": hellos[-1],
        "certificate": next((event for event in events if event["kind"] == "rig.certificate"), None),
        "says": words[:MOST_EVENTS],
        **_losses(folder),
    }


@functools.lru_cache(MOST_RUNS * 2)
def _events(folder: Path, size: int, mtime_ns: int) -> tuple[dict, ...]:
    """The events of a run's rig; read again when the file has changed."""
    return tuple(
        event
        for event in journal.events(folder)
        if event["kind"].startswith("rig.") and (event["kind"] != "rig.hello" or isinstance(event["hello"], dict))
    )


def _losses(folder: Path) -> dict:
    """Of the figures that a report has left there; None where it has left none."""
    try:
        figures = integrity.document_of(folder / integrity.FIGURES)
        wholes = [row["windows"].get(WHOLE) or {} for row in figures["rows"]]
        counted = {key: [of[key] for of in wholes if said.number(of.get(key))] for key in ("samples", "samples_lost")}
        found = {key: sum(values) if values else None for key, values in counted.items()}
        closure = figures["whole_run"]["closure_percent"]
        return found | {"closure_percent": closure if said.number(closure) else None}
    except BAD:
        return dict.fromkeys(LOSSES)


def _kept(hello: dict, quoted: dict | None) -> dict[str, Any]:
    """The rig's certificate as it lies here, or why there is none; and its latch."""
    serial = str(hello.get("serial") or "")
    unknown = latch.of_rig(serial) if serial else None
    out = {"unknown": None if not unknown else str(unknown.get("why") or "its file cannot be read")[:300]}
    if hello.get("simulated"):
        return out | {"certificate": None, "why": "a SIMULATED rig has none"}
    try:
        kept = certificate.read(serial)
        checks = [_check(check) for check in kept["checks"]]
        differs = [name for name in certificate.OF_THE_RIG if kept[name] != hello.get(name)]
        found = {key: kept[key] for key in ("id", "passed", "failed", "not_looked_at", "resistor")}
        found |= {"utc_ms": kept["utc_ns"] // 10**6, "age_s": round(time.time() - kept["utc_ns"] / 1e9)}
        return out | {"certificate": found | {"differs": differs, "checks": checks}, "why": None}
    except FileNotFoundError:
        why = "never made on this machine: ./ssdrig rig doctor"
    except BAD as error:
        why = f"cannot be read: {error}"
    if quoted and quoted.get("id"):
        why += f"; its latest run quotes {quoted['id']}, {'passed' if quoted.get('passed') else 'NOT PASSED'}"
    return out | {"certificate": None, "why": why[:300]}


def _check(check: dict) -> dict:
    words = {key: str(check[key])[:300] for key in ("name", "unit", "why")}
    numbers = {key: check[key] if said.number(check[key]) else None for key in ("rail", "value", "low", "high")}
    return words | numbers | {"ok": check["ok"] if isinstance(check["ok"], bool) else None}
