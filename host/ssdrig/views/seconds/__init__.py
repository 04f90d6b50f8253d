"""Views of a load by the second: values over time, against each other, over rounds, and the steady-state rule."""

from collections.abc import Mapping

from ssdrig.plan import values
from ssdrig.plan.document import shown
from ssdrig.plan.shows import View
from ssdrig.plan.step import Step


def check_rounds(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless the step is part of a repeat."""
    if "/" not in step.path:
        raise values.Wrong("a step inside a repeat", f"of = {shown(step.path)}", "name it as in rounds/point")


def check_steady(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless a rule ends the step."""
    if not any(isinstance(entry, values.Until) and entry.rule for entry in step.keys.get("until", ())):
        raise values.Wrong("a step that a rule ends", f"{step.path} has none", "add until to it, or leave out the view")


STEADY = {"steady": "writes or rounds until steady state"}
VIEWS = {
    "scatter": View(("of",), ("value", "window", "where", "along", "scale", "title", "top")),
    "series": View(("of", "value"), ("window", "where", "along", "scale", "title", "top")),
    "rounds": View(("of", "value"), ("by", "where", "scale", "title", "top"), check_rounds),
    "steady": View(("of",), ("scale", "title", "top"), check_steady, facts=STEADY),
}
