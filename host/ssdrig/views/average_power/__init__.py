"""The view `average-power`: mean power with realistic downtime."""

from ssdrig.plan.shows import View

VIEWS = {"average-power": View(("of",), ("rest", "title"), claims=True)}
