"""purge: empty the drive and verify it."""

from ssdrig.plan.kinds.keys import Key

KEYS = {"method": Key("word", "auto")}
NEEDS = {"purge"}
