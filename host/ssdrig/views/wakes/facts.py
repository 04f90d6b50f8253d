"""Facts of the view `wakes` for a headline: of the I/Os after the longest pause."""

from collections.abc import Mapping

from ssdrig.reading import errors, trust
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking, whole
from ssdrig.views.wakes.html import above_mJ, floor


def wakes(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """How long such an I/O takes, and its energy above the drive's floor."""
    acts = [act for act in run.acts if act.path == path]
    longest = max(acts, key=lambda act: act.keys["every"]).label if acts else path
    row = next((row for row in run.of(path) if row.act.label == longest), None)
    if row is None:
        why = lacking(f"{longest} did not run to its end")
        return {"latency": Fact(why), "energy": Fact(why, rests=trust.OF_POWER)}
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
