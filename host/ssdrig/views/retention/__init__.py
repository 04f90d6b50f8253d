"""The view `retention`: what a drive kept while it had no power."""

from collections.abc import Mapping

from ssdrig.plan import values
from ssdrig.plan.document import shown
from ssdrig.plan.shows import View
from ssdrig.plan.step import Step


def check(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless it is a retain or recall step."""
    if step.do not in ("retain", "recall"):
        raise values.Wrong(
            "a retain or recall step in the view retention", f"of = {shown(step.path)}", "name another step"
        )


FACTS = {
    "sealed": "sealed bytes",
    "bad": "blocks without the sealed data",
    "slowdown": "reading time against the baseline",
}
VIEWS = {"retention": View(("of",), ("title",), check, facts=FACTS)}
