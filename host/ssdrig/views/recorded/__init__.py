"""The view `recorded`: what the kernel counted while others used the drive."""

from ssdrig.plan.shows import View

VIEWS = {"recorded": View(("of",), ("title",), claims=True)}
