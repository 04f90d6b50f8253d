"""The view `application_log`: what an application logged by the second during a recording."""

from ssdrig.plan.shows import View

VIEWS = {"application_log": View(("of",), ("title",))}
