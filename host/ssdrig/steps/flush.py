"""flush: have the drive empty its write cache."""

from ssdrig.steps.keys import Key

KEYS: dict[str, Key] = {}
