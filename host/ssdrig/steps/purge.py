"""purge: empty the drive and verify it."""

from ssdrig.steps.keys import Key

KEYS = {"method": Key("word", "auto")}
NEEDS = {"purge"}
