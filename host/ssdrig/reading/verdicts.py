"""What the steady-state rule said of the steps of a run, from the run's events and the rows of its acts. Pure."""

from collections.abc import Sequence

from ssdrig.plan import grammar
from ssdrig.plan.rules import steady
from ssdrig.reading.row import Row, Verdict


def verdicts_of(events: Sequence[dict], rows: Sequence[Row]) -> list[Verdict]:
    """What the rule said at the end of each repeat and of each load that it was to end, and of each judged window."""
    found: dict = {}
    for event in events:
        if event["kind"] == "round":
            for words, verdict in (event.get("tracked") or {}).items():
                of = [row for row in rows if _is(row, event["step"], words)]
                seen, first = [row.value(words.split()[0]) for row in of], of[0].round if of else None
                found[event["step"], words] = Verdict(event["step"], words, verdict, seen, "until", first or 1)
        elif event["kind"] == "steady":
            found[event["step"], ""] = Verdict(event["step"], "iops", _only_verdict(event), event["rounds"], "until")
    for row in rows:
        judged = row.act.keys.get("judge", {})
        figures = row.windows.get(judged.get("window")) if judged.get("rule") == "pts" else None
        if figures:
            verdict = figures["steady_state"]
            words = f"iops, {judged['window']}"
            found[row.act.label, words] = Verdict(row.act.label, words, verdict, verdict["rounds"], "judge")
    return list(found.values())


def _only_verdict(event: dict) -> dict:
    return {key: event.get(key) for key in steady.untested("")}


def _is(row: Row, repeat: str, words: str) -> bool:
    """Whether a row is of the tracked point, "iops read=0 block=4KiB"."""
    if row.state != "done" or row.act.repeat is None or row.act.repeat.path != repeat:
        return False
    return set(words.split()[1:]) <= {f"{key}={grammar.told(value)}" for key, value in row.act.point.items()}
