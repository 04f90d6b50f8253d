"""record: watch what others do with the drive. Nothing is written to it."""

from ssdrig.plan.kinds.keys import Key

KEYS = {"time": Key("pause", "0 s"), "smart": Key("smart", "none")}  # time 0: until a request to end


def span_s(keys) -> tuple[float, float]:
    """How long it lasts, drive time: (least, most); zeros if unknown."""
    return (0.0, keys["time"])
