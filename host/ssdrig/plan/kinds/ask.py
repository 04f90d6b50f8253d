"""ask: wait for the user (heatsink on, chamber at 40 °C)."""

from ssdrig.plan.kinds.keys import Key

KEYS = {"text": Key("text", required=True)}
