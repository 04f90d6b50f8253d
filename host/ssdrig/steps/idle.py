"""idle: no I/O and no SMART poll, for a time or until the power is quiet."""

from ssdrig.steps.keys import Key

KEYS = {"time": Key("pause"), "until": Key("word", words=("quiet",), needs="rig"), "most": Key("time")}
ENDS = ("time", "until")
