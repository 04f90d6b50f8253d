"""The views `plateaus` and `cache-recovery`: the speeds of a fill, and how the SLC cache comes back."""

from collections.abc import Mapping

from ssdrig.plan import values
from ssdrig.plan.document import shown
from ssdrig.plan.shows import View
from ssdrig.plan.step import Step


def check(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless its detail is fine."""
    if step.keys.get("detail") != "fine":
        raise values.Wrong("a load whose detail is fine", f"of = {shown(step.path)}", 'add detail = "fine" to the load')


PLATEAUS = {
    "cache": "cache size",
    "fast": "first speed",
    "slow": "speed after the cache",
    "last": "speed of the last 16 GB (at most a sixteenth)",
}
RECOVERY = {
    "rate": "rate at which the cache comes back",
    "delay": "rest before the cache comes back",
    "energy": "energy of each GB of cache that comes back",
}
VIEWS = {
    "plateaus": View(("of",), ("title", "top"), check, claims=True, facts=PLATEAUS),
    "cache-recovery": View(("of",), ("title",), check, claims=True, facts=RECOVERY),
}
