"""Facts of the view `wakes` for a headline: of the I/Os after the longest pause."""

from collections.abc import Mapping

from ssdrig.reading import errors, trust
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking, whole
from ssdrig.views.wakes.html import above_mJ, floor


def wakes(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """How long such an I/O takes, and its energy above the drive's floor."""
    rows = [row for row in run.of(path) if row.state == "done"]
    if not rows:
        why = lacking(f"{path} did not run")
        return {"latency": Fact(why), "energy": Fact(why, rests=trust.OF_POWER)}
    row = max(rows, key=lambda one: one.act.keys["every"])
    latency, above = errors.of("lat_mean_us", whole(row)), above_mJ(row, floor(run, str(show["rest"])))
    if latency.value is None:
        latency = lacking(row.why_not("lat_mean"))
    if above.value is None:
        above = lacking(above.why or row.why_not("uJ/IO"))
    return {
        "latency": Fact(latency, "µs", better="less"),
        "energy": Fact(above, "mJ", better="less", rests=trust.OF_POWER),
    }


FACTS = {"wakes": wakes}
