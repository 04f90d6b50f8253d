"""The view `average-power`: mean power with realistic downtime."""

from ssdrig.plan.shows import View

FACTS = {
    "work_time": "time of background work after the load",
    "work_energy": "energy of background work after the load",
    "light_user": "average power of a light user",
}
VIEWS = {"average-power": View(("of",), ("rest", "title"), claims=True, facts=FACTS)}
