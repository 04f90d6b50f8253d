"""The view `replay`: how a trace was played."""

from ssdrig.plan.shows import View

VIEWS = {"replay": View(("of",), ("title",), claims=True, facts=("data_rate", "mean", "p99"))}
