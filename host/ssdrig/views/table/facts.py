"""Facts of the view `recovery` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import clock
from ssdrig.reading import witness
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking
from ssdrig.views.table.html import recovered


def recovery(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """When the load was as fast as the one before again."""
    against = str(show["against"])
    loads = [next((row for row in run.of(p) if row.data is not None), None) for p in (against, path)]
    before, after = (row.data if row is not None else None for row in loads)
    if before is None or after is None:
        return {"recovery": Fact(lacking("one of the two loads did not run to its end"), rests=())}
    result = recovered(before, after)
    limited = next(filter(None, (witness.slowed_by_host(run.data.events, row) for row in loads if row)), "")
    fact = Fact(Uncertain(None), words="not recovered" if result.after_s is None else f"after {clock(result.after_s)}")
    if why := limited or result.why:
        fact = Fact(lacking(why))
    return {"recovery": fact._replace(paths=(against, path))}


FACTS = {"recovery": recovery}
