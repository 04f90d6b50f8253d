"""The view `replay`: how a trace was played."""

from ssdrig.plan.shows import View

FACTS = {"data_rate": "data rate while busy", "mean": "mean service time", "p99": "P99 of service time"}
VIEWS = {"replay": View(("of",), ("title",), claims=True, facts=FACTS)}
