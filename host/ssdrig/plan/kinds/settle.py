"""settle: read SMART after 0, 60, 120 and 300 s until two readings have the same NAND count, or the time limit is
over."""

from ssdrig.plan.kinds.keys import Key

KEYS = {"most": Key("pause", "5 min")}
