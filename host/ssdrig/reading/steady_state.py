"""Is a window of a load a steady state: the rule on its seconds, whether the spare area was used up before it, and
whether the load went on at its level. And the rule's verdicts on the steps of a run. Pure."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ssdrig.plan import grammar
from ssdrig.plan.rules import laid, spare, steady
from ssdrig.plan.rules.laid import Laid
from ssdrig.reading import witness
from ssdrig.reading.row import Row, Verdict
from ssdrig.reading.rundata import RunData

Judge = Callable[[int, int], dict]  # the verdict on the seconds from the first to the second


def judge(data: RunData, before: Laid, read_percent: float) -> Judge:
    """The verdict on each stretch of a load: that of steady.of_seconds(), its basis (spare.judged) and
    {"drive_writes": how often the tested range was written since the purge, by its end; None: not known}. `before`:
    what the steps before had laid down."""
    written = np.cumsum(np.nan_to_num(data.bw_Bps)) * (1 - read_percent / 100)
    drive, tested = data.header["drive"], data.asked("tested_bytes")
    counts = np.nan_to_num(data.iops)

    @functools.cache
    def cold_s() -> float | None:
        return witness.cold_s(data)

    @functools.cache
    def evidence() -> spare.Evidence | None:
        if not drive.get("capacity_bytes"):
            return None
        return spare.used_up(counts, written, laid.spare(before, drive), cold_s=cold_s())

    def of(begin: int, end: int) -> dict:
        verdict = steady.of_seconds(data.iops[begin:end])
        wrote = float(written[end - 1]) if 0 < end <= len(written) else 0.0
        volume = {"drive_writes": (before.written_bytes + wrote) / tested if tested else None}
        if read_percent == 100:  # reads use up no spare area
            return verdict | volume
        out = spare.judged(verdict, evidence(), begin, wrote, cold_s()) | volume
        level = out["average"]
        if out["passed"] and level is not None and spare.unlike_later(level, end - begin, data.iops[end:]):
            return out | {"passed": False, "why": spare.LATER}
        return out

    return of


def of_row(row: "Row", data: RunData) -> Judge:
    """The verdict on each stretch of an act."""
    before = _begun(data, row.act.path, row) or laid.NOTHING
    return judge(data, before, row.act.keys.get("read", 0))


def _begun(data: RunData, path: str, row: "Row | None") -> Laid | None:
    """The writes before a step, as its begin records them."""
    for event in data.events:
        if event["kind"] == "step.start" and event.get("step") == path and "laid" in event:
            if row is None or (event.get("round"), event.get("point") or {}) == (row.round, dict(row.act.point)):
                return laid.read(event["laid"])
    return None


def verdicts_of(events: Sequence[dict], rows: Sequence[Row]) -> list[Verdict]:
    """The rule's verdict at the end of each repeat and of each load that it was to end, and on each judged window."""
    by_step: dict = {}
    for event in events:
        if event["kind"] == "round":
            for words, verdict in (event.get("tracked") or {}).items():
                of = [row for row in rows if _is(row, event["step"], words)]
                values, first = [row.value(words.split()[0]) for row in of], of[0].round if of else None
                by_step[event["step"], words] = Verdict(event["step"], words, verdict, values, "until", first or 1)
        elif event["kind"] == "steady":
            by_step[event["step"], ""] = Verdict(event["step"], "iops", _only_verdict(event), event["rounds"], "until")
    for row in rows:
        judged = row.act.keys.get("judge", {})
        figures = row.windows.get(judged.get("window")) if judged.get("rule") == "pts" else None
        if figures:
            verdict = figures["steady_state"]
            words = f"iops, {judged['window']}"
            by_step[row.act.label, words] = Verdict(row.act.label, words, verdict, verdict["rounds"], "judge")
    return list(by_step.values())


def _only_verdict(event: dict) -> dict:
    return {key: event.get(key) for key in steady.untested("")}


def _is(row: Row, repeat: str, words: str) -> bool:
    """Whether a row belongs to the tracked point, "iops read=0 block=4KiB"."""
    if row.state != "done" or row.act.repeat is None or row.act.repeat.path != repeat:
        return False
    return set(words.split()[1:]) <= {f"{key}={grammar.value_text(value)}" for key, value in row.act.point.items()}
