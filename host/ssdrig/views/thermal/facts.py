"""Facts of the view `thermal` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.plan.shows import listed
from ssdrig.reading import trust
from ssdrig.reading.row import Table
from ssdrig.views.context import figure
from ssdrig.views.headline import Fact, lacking


def thermal(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """Kelvins for each watt, the time constant, and where the drive slows down, found in the step that does I/O."""
    paths = tuple(listed(show["of"]))
    event = next(
        (row.result for row in run.rows if row.act.path in paths and row.result.get("kind") == "thermal"), None
    )
    if event is None:
        return dict.fromkeys(("K_per_W", "tau", "throttling"), Fact(lacking("no load was run"), rests=()))
    why = str(event["why"])
    slope = lacking(why) if event["K_per_W"] is None else Uncertain(event["K_per_W"], event["K_per_W_error"])
    tau = lacking(why) if event["tau_s"] is None else Uncertain(event["tau_s"], event["tau_error_s"])
    slowed = event["throttled"]
    words = f"no throttling ({slowed['why']})"
    if slowed["celsius"] is not None:
        share = f"{100 * slowed['share']:.0f} % of its speed"
        words = f"throttling to {share} at {figure(slowed['celsius'])} °C after {figure(slowed['at_s'])} s"
    known = slowed["celsius"] is not None or str(slowed["why"]).startswith("no fall")
    state = Fact(Uncertain(None), words=words) if known else Fact(lacking(str(slowed["why"])))
    return {
        "K_per_W": Fact(slope, "K/W", better="less", rests=trust.OF_POWER, paths=paths),
        "tau": Fact(tau, "s", rests=trust.OF_POWER, paths=paths),
        "throttling": state,
    }


FACTS = {"thermal": thermal}
