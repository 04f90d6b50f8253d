"""The view `application-log`: what an application logged by the second during a recording."""

from ssdrig.plan.shows import View

VIEWS = {"application-log": View(("of",), ("title",))}
