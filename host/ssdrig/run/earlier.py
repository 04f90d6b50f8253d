"""What the acts of a plan took in the latest complete run of the same plan on the same model, the best that is known
before the start; and what the points of a run showed before it was cut short."""

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

from ssdrig.base.errors import SsdrigError
from ssdrig.plan import cost, formula, grammar
from ssdrig.plan.rules import choose
from ssdrig.runs import journal, parts

MOST_RUNS = 200  # looked at, the latest first


def speeds(runs: str | Path, plan: grammar.Plan, drive: Mapping) -> dict[str, tuple[float, float]]:
    """{act's label: (seconds of drive time, bytes moved)} of one round, and of a SMART reading (cost.READING); nothing
    without such a run. Unreadable folders are skipped."""
    wanted = {"name": plan.name, "params": plan.params}
    try:
        folders = parts.all_runs(runs)
    except OSError:
        return {}
    for folder in folders[:MOST_RUNS]:
        try:
            header = journal.run_header(folder)
            recorded, its = header.get("plan") or {}, header["drive"]
            alike = {key: recorded.get(key) for key in wanted} == wanted
            same = all(its.get(key) == drive.get(key) for key in ("model", "capacity_bytes", "raw_nand_bytes"))
            if alike and same and journal.state(folder) == "complete":
                return _of(journal.events(folder), its.get("time_dilation") or 1)
        except (SsdrigError, OSError, KeyError, TypeError, AttributeError):
            continue
    return {}


def _of(events: list[dict], dilation: int) -> dict[str, tuple[float, float]]:
    """The mean over the rounds of each act."""
    begun: dict[str, int] = {}
    rates: dict[str, list[tuple[float, float]]] = {}
    for event in events:
        if event["kind"] == "smart.start":
            begun[cost.READING] = event["t_ns"]
        elif event["kind"] == "smart.end" and event.get("ok") and cost.READING in begun:
            rates.setdefault(cost.READING, []).append(((event["t_ns"] - begun[cost.READING]) / 1e9 / dilation, 0))
        if event["kind"] not in ("step.start", "step.end"):
            continue
        label = grammar.label(event["step"], event.get("point") or {})
        if event["kind"] == "step.start":
            begun[label] = event["t_ns"]
        elif event.get("ok") and label in begun and isinstance(event.get("bytes", 0), int):
            rates.setdefault(label, []).append(((event["t_ns"] - begun[label]) / 1e9 / dilation, event.get("bytes", 0)))
    return {
        label: (statistics.fmean(s for s, _ in pairs), statistics.fmean(size for _, size in pairs))
        for label, pairs in rates.items()
    }


def points(events: Iterable[Mapping]) -> choose.Seen:
    """What each round of each point showed, by the events of a run: of all its parts, in order."""
    seen: choose.Seen = {}
    for event in events:
        means, number = event.get("mean"), event.get("round", 1)
        if event.get("kind") != "step.end" or not event.get("ok") or not isinstance(means, Mapping):
            continue
        if isinstance(number, int) and all(isinstance(means.get(key), int | float) for key in formula.AT_ONCE):
            choose.remember(seen, grammar.label(str(event.get("step")), event.get("point") or {}), number, means)
    return seen
