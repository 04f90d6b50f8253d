"""The view `average-power`: mean power with realistic downtime."""

from ssdrig.plan.shows import View

FACTS = ("work_time", "work_energy", "light_user")
VIEWS = {"average-power": View(("of",), ("rest", "title"), claims=True, facts=FACTS)}
