"""set: change what the drive or the host is set to; the teardown puts it back, or, where the process is killed before,
the run's continuation (standing.changed)."""

from ssdrig.plan.kinds.keys import Key

KEYS = {
    "write_cache": Key("word", words=("on", "off"), needs="write-cache"),
    "scheduler": Key("word"),
    "governor": Key("word"),
    "aspm": Key("word", needs="aspm"),
    "alpm": Key("word", needs="alpm"),
    "power_state": Key("index", needs="power-states"),
    "apst": Key("word", words=("on", "off"), needs="apst"),
    "hmb": Key("word", words=("on", "off"), needs="hmb"),
}
ENDS = tuple(KEYS)
