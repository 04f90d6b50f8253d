"""The view `life`: how long the drive lasts under the loads shown."""

from ssdrig.plan.shows import View

VIEWS = {"life": View(("of",), ("title",), claims=True, facts=("waf", "tbw", "dwpd", "of_rating"))}
