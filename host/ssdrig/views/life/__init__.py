"""The view `life`: how long the drive lasts under the loads shown."""

from ssdrig.plan.shows import View

FACTS = {
    "waf": "write amplification",
    "tbw": "bytes that the flash takes",
    "dwpd": "drive writes a day",
    "of_rating": "share of the rating",
}
VIEWS = {"life": View(("of",), ("title",), claims=True, facts=FACTS)}
