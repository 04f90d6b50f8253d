"""The rigs of an archive: the hello of the latest run, the certificate (the last `rig doctor`), whether its bench is
unknown, and the records in the journals of its runs. Read from files, because the port belongs to a run."""

import functools
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ssdrig.base import latch
from ssdrig.base.errors import JournalError
from ssdrig.meter.pico import certificate
from ssdrig.reading.event_words import words as words_of_event
from ssdrig.reading.index import Run
from ssdrig.reading.row import WHOLE
from ssdrig.runs import integrity, journal, parts
from ssdrig.serve import event_words

MOST_RUNS = 200  # the latest of the archive
MOST_EVENTS = 20  # of each run
MOST_LISTED = 30  # runs of a rig
BAD = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


LOSSES = ("samples", "samples_lost", "closure_percent")


def listed(runs: Iterable[Run], folder_of: Callable[[Run], Path]) -> list[dict]:
    """Each rig of the runs, which are the latest first, the one that was used last first.

    folder_of: the folder of a run; raises JournalError"""
    by_rig: dict[tuple, dict] = {}
    for run in runs:
        of_run = _of_run(run, folder_of)
        if not of_run:
            continue
        hello = of_run["hello"]
        key = (str(hello.get("serial")), str(hello.get("board")), bool(hello.get("simulated")))
        rig = by_rig.setdefault(
            key, {**event_words.rig(hello), **_certificate_and_latch(hello, of_run["certificate"]), "runs": []}
        )
        if len(rig["runs"]) < MOST_LISTED:
            rig["runs"].append({name: of_run[name] for name in ("id", "run", "state", "utc_ms", "says", *LOSSES)})
    return list(by_rig.values())


def _of_run(run: Run, folder_of: Callable[[Run], Path]) -> dict | None:
    """The rig in a run's journal, or None."""
    try:
        folder = folder_of(run)
        last = parts.of(folder)[-1]
        status = os.stat(last / "events.jsonl")
        events = _events(last, status.st_size, status.st_mtime_ns)
    except (JournalError, *BAD):
        return None
    hellos = [event["hello"] for event in events if event["kind"] == "rig.hello"]
    if not hellos:
        return None
    words = [words_of_event(event) for event in events if event["kind"] not in ("rig.hello", "rig.certificate")]
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
    """Losses from the figures that a report has stored in the folder; None without a report."""
    try:
        figures = integrity.document_of(folder / integrity.FIGURES)
        wholes = [row["windows"].get(WHOLE) or {} for row in figures["rows"]]
        counted = {
            key: [of[key] for of in wholes if event_words.number(of.get(key))] for key in ("samples", "samples_lost")
        }
        totals = {key: sum(values) if values else None for key, values in counted.items()}
        closure = figures["whole_run"]["closure_percent"]
        return totals | {"closure_percent": closure if event_words.number(closure) else None}
    except BAD:
        return dict.fromkeys(LOSSES)


def _certificate_and_latch(hello: dict, quoted: dict | None) -> dict[str, Any]:
    """The rig's certificate on this host, or the reason for its absence; and its latch."""
    serial = str(hello.get("serial") or "")
    unknown = latch.of_rig(serial) if serial else None
    out = {"unknown": None if not unknown else str(unknown.get("why") or "its file cannot be read")[:300]}
    if hello.get("simulated"):
        return out | {"certificate": None, "why": "a SIMULATED rig has none"}
    try:
        stored = certificate.read(serial)
        checks = [_check(check) for check in stored["checks"]]
        differs = [name for name in certificate.OF_THE_RIG if stored[name] != hello.get(name)]
        summary = {key: stored[key] for key in ("id", "passed", "failed", "not_looked_at", "resistor")}
        summary |= {"utc_ms": stored["utc_ns"] // 10**6, "age_s": round(time.time() - stored["utc_ns"] / 1e9)}
        return out | {"certificate": summary | {"differs": differs, "checks": checks}, "why": None}
    except FileNotFoundError:
        why = "never made on this machine: ./ssdrig rig doctor"
    except BAD as error:
        why = f"cannot be read: {error}"
    if quoted and quoted.get("id"):
        why += f"; its latest run quotes {quoted['id']}, {'passed' if quoted.get('passed') else 'NOT PASSED'}"
    return out | {"certificate": None, "why": why[:300]}


def _check(check: dict) -> dict:
    words = {key: str(check[key])[:300] for key in ("name", "unit", "why")}
    numbers = {key: check[key] if event_words.number(check[key]) else None for key in ("rail", "value", "low", "high")}
    return words | numbers | {"ok": check["ok"] if isinstance(check["ok"], bool) else None}
