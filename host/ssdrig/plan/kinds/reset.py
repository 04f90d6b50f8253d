"""reset: reset all zones of a zoned drive, and see that each is empty."""

KEYS: dict = {}
NEEDS = {"zoned"}
