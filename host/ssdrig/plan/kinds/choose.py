"""choose: pick operating points from the points of a repeat that has ended."""

from ssdrig.plan.kinds.keys import Key

KEYS = {"from": Key("path", required=True), "value": Key("value", "iops"), "points": Key("points", required=True)}
