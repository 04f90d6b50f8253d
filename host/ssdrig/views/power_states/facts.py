"""Facts of the view `power-states` for a headline, of all steps that it shows."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.plan.shows import listed
from ssdrig.reading import trust
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking
from ssdrig.views.power_states.html import visits

WORDS = ("awake", "lowest", "state", "exit", "pays_off")


def power_states(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """Power of the drive awake and in the state in which it draws least, how long it wakes from that, and from which
    pause on sleeping pays off."""
    paths = tuple(listed(show["of"]))
    stays = [(name, row) for name, rows in visits(run, paths).items() for row in rows]
    known = [(row.result["mean_W"], name, row) for name, row in stays if row.result["mean_W"] is not None]
    if not known:
        whys = [str(row.result["why"]) for _, row in stays if row.result.get("why")]
        why = whys[0] if whys else "no state was visited"
        return {word: Fact(lacking(why), rests=trust.OF_POWER, paths=paths) for word in WORDS}
    _, state, row = min(known, key=lambda stay: stay[0])
    awake = max(known, key=lambda stay: stay[0])[2]
    why = str(row.result.get("why") or "not seen")
    low, high = (Uncertain(of.result["mean_W"], of.result["uncertainty_W"]) for of in (row, awake))
    exit_s = row.result.get("exit_ms")
    break_even = Uncertain(row.result.get("break_even_s"), row.result.get("break_even_error_s"))
    facts = {
        "awake": Fact(high, "W"),
        "lowest": Fact(low, "W", better="less"),
        "state": Fact(Uncertain(None), words=state),
        "exit": Fact(lacking(why) if exit_s is None else Uncertain(exit_s / 1e3), "s"),
        "pays_off": Fact(break_even if break_even.value is not None else lacking(why), "s"),
    }
    return {word: fact._replace(rests=trust.OF_POWER, paths=paths) for word, fact in facts.items()}


FACTS = {"power-states": power_states}
