"""Facts of the view `average-power` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.reading import trust
from ssdrig.reading.row import Table
from ssdrig.views.average_power import formula
from ssdrig.views.headline import Fact, lacking


def average_power(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """The background work after the load: how long, and its energy above the floor; the mean power of a light user."""
    rest, users = show.get("rest"), formula.PROFILES_BYTES
    event = next((row.result for row in run.rows if row.act.path == rest and row.result.get("kind") == "quiet"), {})
    why = str(event.get("why") or event.get("time_why") or "no rest until it was quiet")
    lasted = lacking(why) if event.get("after_s") is None else Uncertain(float(event["after_s"]))
    joules = lacking(why)
    if event.get("above_J") is not None:
        joules = Uncertain(event["above_J"], event.get("above_error_J"))
    terms = formula.of(run, [path], rest)
    mean = lacking(terms.why)
    if terms.measured is not None:
        average = formula.average(terms.measured, users["light"], "the light user", terms.errors)
        mean = Uncertain(average.power_W, average.power_error_W)._replace(why=average.why or "")
    facts = {
        "work_time": Fact(lasted, "s"),
        "work_energy": Fact(joules, "J"),
        "light_user": Fact(mean, "W", better="less"),
    }
    return {name: fact._replace(rests=trust.OF_POWER, paths=(path, str(rest))) for name, fact in facts.items()}


FACTS = {"average-power": average_power}
