"""idle: no I/O, and no SMART poll unless the plan sets an interval, for a time or until the power is quiet."""

from ssdrig.plan.kinds.keys import Key
from ssdrig.plan.rules import quiet

KEYS = {
    "time": Key("pause"),
    "until": Key("word", words=("quiet",), needs="rig"),
    "least": Key("time"),
    "most": Key("time"),
    "smart": Key("smart"),
}
ENDS = ("time", "until")


def span_s(keys) -> tuple[float, float]:
    """How long it lasts, drive time: (least, most)."""
    return (keys["time"],) * 2 if "time" in keys else (keys.get("least", quiet.LEAST_S), keys["most"])


def counts(keys) -> bool:
    """Whether SMART is read right before and right after."""
    return keys.get("smart", "edges" if "until" in keys else "none") == "edges"
