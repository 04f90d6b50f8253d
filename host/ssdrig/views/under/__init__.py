"""The view `under`: reads along with writes."""

from collections.abc import Mapping

from ssdrig.plan import values
from ssdrig.plan.document import shown
from ssdrig.plan.shows import View
from ssdrig.plan.step import Step


def check(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless the step has `read_qd`, or only reads."""
    if step.keys.get("read") != 100 and "read_qd" not in step.keys and "read_qd" not in axes:
        raise values.Wrong(
            "a load with `read_qd` in the view under", f"of = {shown(step.path)}", "name another step, or set read_qd"
        )


VIEWS = {"under": View(("of", "against"), ("title",), check, claims=True)}
