"""Facts of the view `plateaus` and `cache-recovery` for a headline."""

from collections.abc import Mapping

from ssdrig.base.uncertain import Uncertain
from ssdrig.reading import filling, trust
from ssdrig.reading.row import Table
from ssdrig.views.headline import Fact, lacking
from ssdrig.views.plateaus.html import speed_of


def plateaus(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """The size of the cache, the speed of the first two plateaus, and that of the last part of the load."""
    row = next(iter(run.of(path)), None)
    event = row.result if row is not None else {}
    if event.get("kind") != "plateaus":
        notes = row.notes if row is not None else []
        why = next((note for note in notes if note.startswith("plateaus: ")), f"{path} did not run to its end")
        return dict.fromkeys(("cache", "fast", "slow", "last"), Fact(lacking(why)))
    size = Uncertain(event["cache_bytes"], event["cache_error_bytes"])
    if size.value is None:
        size = lacking(f"no end of a cache: {event['cache_why']}")
    fast, *after = [speed_of(plateau) for plateau in event["plateaus"]] or [lacking(size.why)]
    slow = after[0] if size.value is not None else lacking(size.why)
    end = event.get("last")
    at_end = speed_of(end) if end else lacking(event.get("host_limited") or "too few samples of the written bytes")
    return {
        "cache": Fact(size, "B", better="more"),
        "fast": Fact(fast, "MB/s"),
        "slow": Fact(slow, "MB/s"),
        "last": Fact(at_end, "MB/s", better="more"),
    }


def recovery(run: Table, show: Mapping, path: str) -> dict[str, Fact]:
    """How fast the cache comes back, from when on, and what a GB of that costs."""
    back, _ = filling.recovery([row for row in run.rows if row.state == "done" and row.act.path == path])
    why = back.why or "not known"
    rate = lacking(why) if back.rate_Bps is None else Uncertain(back.rate_Bps, back.rate_error_Bps).scaled(1e-6)
    delay = lacking(why) if back.delay_s is None else Uncertain(back.delay_s, back.delay_error_s)
    cost = Uncertain(back.energy_J_per_GB, back.energy_error_J_per_GB)
    if cost.value is None:
        cost = lacking(f"energy of folding: {back.energy_why or why}")
    return {
        "rate": Fact(rate, "MB/s", better="more"),
        "delay": Fact(delay, "s"),
        "energy": Fact(cost, "J", rests=trust.OF_POWER),
    }


FACTS = {"plateaus": plateaus, "cache-recovery": recovery}
