"""Facts of the view `retention` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import size
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking
from ssdrig.views.retention import sentences
from ssdrig.views.terms import number


def retention(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """The sealed bytes; of a verification how many blocks do not hold the sealed data, and how slowly it was read."""
    rows = [row.result for row in run.rows if row.act.path == path and row.result.get("kind") == "retention"]
    event = rows[0] if rows else {"phase": None}
    sealed = bad = slowdown = Fact(lacking(f"{path} did not run to its end"), rests=())
    if event["phase"] == "write":
        manifest = event["manifest"]
        if event["digest"] and manifest:
            sealed = Fact(Uncertain(None), words=size(manifest["written"]["bytes"]), rests=())
        else:
            sealed = Fact(lacking("the drive was not sealed"), rests=())
    elif event["phase"] is not None:
        bad = slowdown = Fact(lacking("nothing was read"), rests=())
        if event["passes"]:
            first = event["passes"][0]
            worst = sentences.worst_pass(event)
            words = f"{number(worst['bad'], 0)} of {number(worst['blocks'], 0)} blocks"
            bad = Fact(Uncertain(None), words=words, rests=())
            slowdown = Fact(Uncertain(first["slowdown"]), "times")
            if first["slowdown"] is None:
                slowdown = Fact(lacking("no speed to compare with the baseline"))
    return {"sealed": sealed, "bad": bad, "slowdown": slowdown}


FACTS = {"retention": retention}
