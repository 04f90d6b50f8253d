"""choose: pick operating points from the points of a repeat that has ended."""

from ssdrig.steps.keys import Key

KEYS = {"from": Key("path", required=True), "value": Key("word", "iops"), "points": Key("points", required=True)}
