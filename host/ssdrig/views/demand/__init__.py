"""The view `demand`: latency against the load that was asked for."""

from ssdrig.plan.shows import View

VIEWS = {"demand": View(("of",), ("value", "speed", "by", "where", "window", "scale", "title", "top"), claims=True)}
