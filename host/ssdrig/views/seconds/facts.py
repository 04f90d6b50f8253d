"""Facts of the view `steady` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.plan.rules import steady as rule
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking


def steady(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """How much was written, or how many rounds were run, until the rule held."""
    verdicts = [one for one in run.verdicts if one.by == "until" and one.path.partition(" ")[0] == path]
    failed = [one.verdict for one in verdicts if not one.verdict["passed"]]
    if not verdicts or failed:
        why = rule.heading(failed) if failed else f"the rule did not judge {path}"
        return {"steady": Fact(lacking(why), rests=())}
    writes = [at for one in verdicts if (at := one.verdict.get("drive_writes")) is not None]
    rounds = max(one.first + len(one.values) - 1 for one in verdicts)
    if any(row.round is not None for row in run.of(path)) or not writes:
        return {"steady": Fact(Uncertain(None), words=f"{rounds} rounds", rests=())}
    return {"steady": Fact(Uncertain(max(writes)), "drive writes", rests=())}


FACTS = {"steady": steady}
