"""The view `power-states`: what a drive draws in each power state, and what waking it costs."""

from collections.abc import Iterator, Mapping, Sequence

from ssdrig.plan import values
from ssdrig.plan.document import shown
from ssdrig.plan.shows import View
from ssdrig.plan.step import Step


def check(step: Step, axes: Mapping) -> None:
    """Raises values.Wrong unless it is an idle step."""
    if step.do != "idle":
        raise values.Wrong("an idle step in the view power-states", f"of = {shown(step.path)}", "name another step")


FACTS = {
    "awake": "idle power awake",
    "lowest": "lowest idle power",
    "state": "state of the lowest idle power",
    "exit": "time to wake up",
    "pays_off": "pause from which sleep pays off",
}
VIEWS = {"power-states": View(("of",), ("title",), check, claims=True, facts=FACTS)}


def asks(shows: Sequence[dict], rows: Sequence) -> Iterator:
    """The stays in each state, whose edges the samples are asked for (reading/table.py)."""
    from ssdrig.views.power_states import figures

    return figures.read(shows, rows)
