"""trim: discard the range; done when the drive has answered."""

from ssdrig.plan.kinds.keys import RANGE

KEYS = {"range": RANGE}
NEEDS = {"trim"}
