"""The view `histogram`: how latencies are distributed."""

from ssdrig.plan.shows import View

VIEWS = {"histogram": View(("of",), ("where", "window", "scale", "title", "top"))}
