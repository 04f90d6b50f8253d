"""The view `cuts`: what a campaign of power cuts has shown."""

from collections.abc import Mapping

from ssdrig.plan import values
from ssdrig.plan.document import shown
from ssdrig.plan.shows import View
from ssdrig.plan.step import Step


def check(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless it is a cuts step."""
    if step.do != "cuts":
        raise values.Wrong("a cuts step in the view cuts", f"of = {shown(step.path)}", "name another step")


FACTS = {"broken": "cuts that broke a promise", "bound": "bound on the chance per cut"}
VIEWS = {"cuts": View(("of",), ("title",), check, facts=FACTS)}
