"""The view `wear`: a drive that is written until it is worn."""

from collections.abc import Mapping

from ssdrig.plan import values
from ssdrig.plan.document import shown
from ssdrig.plan.shows import View
from ssdrig.plan.step import Step


def check(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless it is a wear step."""
    if step.do != "wear":
        raise values.Wrong("a wear step in the view wear", f"of = {shown(step.path)}", "name another step")


FACTS = {
    "written": "bytes written",
    "used": "percentage used",
    "end": "writes until the drive is worn",
    "bad": "sample blocks with wrong content",
}
VIEWS = {"wear": View(("of",), ("title",), check, facts=FACTS)}
