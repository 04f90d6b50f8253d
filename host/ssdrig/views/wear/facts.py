"""Facts of the view `wear` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import size
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking
from ssdrig.views.terms import number
from ssdrig.views.wear.html import slices_of

WORDS = ("written", "used", "end", "bad")


def wear(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """The bytes written, the percentage used by then, the end of the drive's life, and the blocks that lost their
    content."""
    row = next((row for row in run.rows if row.act.path == path and row.result.get("slices")), None)
    if row is None:
        return dict.fromkeys(WORDS, Fact(lacking("no slice was written"), rests=()))
    event, last = row.result, slices_of(row)[-1]
    end, samples = event["end"], event["samples_read"]
    worn = lacking(str(end["why"]))
    if end["host_bytes"]:
        worn = Uncertain(end["host_bytes"], (end["high_bytes"] - end["low_bytes"]) / 2)
    used = lacking("the drive reports no percentage used")
    if last.percentage_used is not None:
        used = Uncertain(float(last.percentage_used))
    bad = samples - event["verdicts"].get("good", 0)
    return {
        "written": Fact(Uncertain(None), words=size(last.host_bytes), rests=()),
        "used": Fact(used, "%", rests=()),
        "end": Fact(worn, "B", better="more", rests=()),
        "bad": Fact(Uncertain(None), words=f"{number(bad, 0)} of {number(samples, 0)} sample blocks", rests=()),
    }


FACTS = {"wear": wear}
