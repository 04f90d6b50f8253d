"""The drives of an archive: their wear, from the latest SMART reading that a run or `ssdrig watch` has stored, and
their runs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ssdrig.base.errors import JournalError
from ssdrig.base.utc import Utc
from ssdrig.drive.smart import counters, watch_folder
from ssdrig.drive.smart.smart_answer import answered
from ssdrig.drive.wear import endurance, standing, warranty
from ssdrig.drive.wear.screen import projection_sentences
from ssdrig.reading.index import Index, Run
from ssdrig.runs import integrity, journal, parts

MOST_TREND = 400  # points of a trend
ROOM_C = 25.0


def listed(index: Index) -> list[dict]:
    """A row for each drive that has runs: {"id": of its latest run, "model", "serial", "simulated", "runs", "last"}."""
    by_drive: dict[tuple, dict] = {}
    for run in index.find():
        if run.model is None and run.serial is None:
            continue
        row = by_drive.setdefault(
            (run.model, run.serial, run.simulated),
            {"id": run.id, "model": run.model, "serial": run.serial, "simulated": run.simulated, "runs": 0},
        )
        row["runs"] += 1
        row.setdefault("last_utc_ns", run.started_utc_ns)
    return list(by_drive.values())


def runs_of(index: Index, run_id: str) -> list[Run]:
    """The runs of the drive of a run, the latest first; [] without that run."""
    run = index.get(run_id)
    same = (run.model, run.serial) if run else None
    return [other for other in index.find() if (other.model, other.serial) == same]


def one(same: Sequence[Run], folder: Callable[[Run], Path], watched: Path) -> dict:
    """Wear and trend of the drive of some runs; unknown values are None; without any wear `why` has the reason.

    folder: of a run; raises JournalError
    watched: the folder of `ssdrig watch`"""
    run = same[0]
    documents = _of_runs(same, folder) + _of_watch(watched, run)
    out = {"model": run.model, "serial": run.serial, "simulated": run.simulated, "runs": [other.id for other in same]}
    if not documents:
        return out | {"wear": None, "trend": [], "why": "no run and no watch has kept a reading of SMART"}
    documents.sort(key=lambda pair: pair[0]["utc_ns"])
    latest, document = documents[-1]
    history = [snapshot for snapshot, _ in documents[:-1] if snapshot["utc_ns"] < latest["utc_ns"]]
    limits = warranty.limits_for(latest["model"] or "", latest["capacity_bytes"]) or endurance.Limits()
    status = standing.report(latest, document, limits, history, None, ROOM_C)
    projection = status["projection"]
    keys = ("percentage_used", "tbw_used_percent", "warranty_used_percent", "warranty_end", "rated_tbw_bytes")
    wear = {key: projection.get(key) for key in (*keys, "available_spare_percent")}
    wear |= {
        key: status[key] for key in ("health", "health_ok", "temperature_C", "power_on_hours", "host_written_bytes")
    }
    wear["health_reasons"] = [reason["words"] for reason in status["health_reasons"]]
    wear |= {"wa": status["wa"]["words"], "sentences": projection_sentences(status), "unknown": status["unknown"]}
    wear["read_utc_ms"] = latest["utc_ns"] // 10**6
    every = [snapshot for snapshot, _ in documents][:: max(1, len(documents) // MOST_TREND)]
    trend = [
        [
            s["utc_ns"] // 10**6,
            s["host_written_bytes"],
            s["nand_written_bytes"],
            s["percentage_used"],
            s["temperature_C"],
        ]
        for s in every
    ]
    return out | {"wear": _plain(wear), "trend": trend, "why": None}


def _plain(report: dict) -> dict:
    return {key: value if isinstance(value, int | float | list | None) else str(value) for key, value in report.items()}


def _of_runs(runs: Sequence[Run], folder: Callable[[Run], Path]) -> list[tuple[dict, dict]]:
    """The last reading of each run (the newest 50)."""
    out = []
    for run in runs[:50]:
        try:
            part = parts.of(folder(run))[-1]
            header = journal.open_run(part)
            documents = sorted((part / "smart").glob("*.json"))
            document = integrity.document_of(documents[-1]) if documents else {}
            snapshot = counters.snapshot(document) if answered(document) else None
            if snapshot and snapshot["t_ns"]:
                utc = Utc(header["started"]["t_ns"], header["started"]["utc_ns"])
                snapshot |= {"utc_ns": utc.at(snapshot["t_ns"]), "model": run.model, "serial": run.serial}
                if standing.is_a_date(snapshot["utc_ns"]):
                    out.append((snapshot, document))
        except (JournalError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return out


def _of_watch(watched: Path, run: Run) -> list[tuple[dict, dict]]:
    if not run.serial or run.simulated:
        return []
    try:
        history = watch_folder.history(watched, run.serial, warn=lambda text: None)
        dated = [record for record in history if standing.is_a_date(record["utc_ns"])]
        return [(counters.snapshot(record) | {"utc_ns": record["utc_ns"]}, record) for record in dated]
    except (JournalError, OSError):
        return []
