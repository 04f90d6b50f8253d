"""Is a window of a load a steady state: the rule on its seconds, whether the spare area was used up before it, and
whether the load went on at its level."""

import functools
from collections.abc import Callable

import numpy as np

from ssdrig.plan.rules import laid, spare, steady
from ssdrig.plan.rules.laid import Laid
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import RunData

Judge = Callable[[int, int], dict]  # the verdict on the seconds from the first to the second


def judge(data: RunData, before: Laid, read_percent: float) -> Judge:
    """The verdict on each stretch of a load: that of steady.of_seconds(), what it rests on (spare.judged) and
    {"drive_writes": how often the tested range was written since the purge, by its end; None: not known}. `before`:
    what the steps before had laid down."""
    written = np.cumsum(np.nan_to_num(data.bw_Bps)) * (1 - read_percent / 100)
    drive, tested = data.header["drive"], data.asked("tested_bytes")
    counts = np.nan_to_num(data.iops)

    @functools.cache
    def evidence() -> spare.Evidence | None:
        return spare.used_up(counts, written, laid.spare(before, drive)) if drive.get("capacity_bytes") else None

    def of(begin: int, end: int) -> dict:
        verdict = steady.of_seconds(data.iops[begin:end])
        wrote = float(written[end - 1]) if 0 < end <= len(written) else 0.0
        made = {"drive_writes": (before.written_bytes + wrote) / tested if tested else None}
        if read_percent == 100:  # reads use up no spare area
            return verdict | made
        out = spare.judged(verdict, evidence(), begin, wrote) | made
        level = out["average"]
        if out["passed"] and level is not None and spare.unlike_later(level, end - begin, data.iops[end:]):
            return out | {"passed": False, "why": spare.LATER}
        return out

    return of


def of_row(row: "Row", data: RunData) -> Judge:
    """Of an act."""
    before = _begun(data, row.act.path, row) or laid.NOTHING
    return judge(data, before, row.act.keys.get("read", 0))


def _begun(data: RunData, path: str, row: "Row | None") -> Laid | None:
    """What the begin of a step says of the steps before it."""
    for event in data.events:
        if event["kind"] == "step.start" and event.get("step") == path and "laid" in event:
            if row is None or (event.get("round"), event.get("point") or {}) == (row.round, dict(row.act.point)):
                return laid.read(event["laid"])
    return None
