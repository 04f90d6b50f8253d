"""Facts of the view `cuts` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.plan.rules import chance
from ssdrig.powerloss import tally
from ssdrig.reading.row import Table
from ssdrig.views.cuts import sentences
from ssdrig.views.headline import Fact, lacking


def cuts(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """How many cuts broke a promise, and the bound on the chance per cut. Nothing is claimed of the drive where a
    control session accuses the harness, unless a failure is proven."""
    event = next((row.result for row in run.rows if row.act.path == path and row.result.get("kind") == "cuts"), None)
    accused = [control["cut"] for control in event["controls"] if control["harness"]] if event else []
    if event is None:
        why = "no cut was made"
    elif accused and not event["failing_cuts"]:
        why = f"CONTROL FAILED in session {sentences.numbers(accused)}: the harness is suspected"
    else:
        others = event["failing_others"]
        broken = tally.of(event["failing"], event["failing_most"], event["judged"])
        broken += f" and session {sentences.numbers(others)}, which is not a judged cut," if others else ""
        if event["judged"] or others:
            bound = chance.percent(event["bound"])
            return {"broken": _words(broken), "bound": _words(bound) if event["judged"] else _none("no cut was judged")}
        why = "no cut was judged"
    return {"broken": _none(why), "bound": _none(why)}


def _words(words: str) -> Fact:
    return Fact(Uncertain(None), words=words, rests=())


def _none(why: str) -> Fact:
    return Fact(lacking(why), rests=())


FACTS = {"cuts": cuts}
