"""The view `load-line`: power against I/O per second, and the energy of one more I/O."""

from ssdrig.plan.shows import View

FACTS = {"awake": "power to stay awake", "io": "energy of one more I/O"}
VIEWS = {"load-line": View(("of",), ("by", "where", "title", "top"), claims=True, facts=FACTS)}
