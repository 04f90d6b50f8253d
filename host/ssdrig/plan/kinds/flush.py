"""flush: have the drive empty its write cache."""

from ssdrig.plan.kinds.keys import Key

KEYS: dict[str, Key] = {}
