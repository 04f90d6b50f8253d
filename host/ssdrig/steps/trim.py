"""trim: discard the range; done when the drive has answered."""

from ssdrig.steps.keys import RANGE

KEYS = {"range": RANGE}
NEEDS = {"trim"}
