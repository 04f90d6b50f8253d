"""The view `wakes`: what single reads out of rest cost."""

from collections.abc import Mapping

from ssdrig.plan import values
from ssdrig.plan.document import shown
from ssdrig.plan.shows import View
from ssdrig.plan.step import Step


def check(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless the step has `every`."""
    if "every" not in step.keys and "every" not in axes:
        raise values.Wrong(
            "a load with `every` in the view wakes", f"of = {shown(step.path)}", "name another step, or set every"
        )


FACTS = {"latency": "latency after the longest pause", "energy": "energy above the floor after the longest pause"}
VIEWS = {"wakes": View(("of", "rest"), ("title",), check, claims=True, facts=FACTS)}
