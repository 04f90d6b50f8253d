"""set: change what the drive or the host is set to; the teardown puts it back."""

from ssdrig.steps.keys import Key

KEYS = {
    "write_cache": Key("word", words=("on", "off"), needs="write-cache"),
    "scheduler": Key("word"),
    "governor": Key("word"),
    "aspm": Key("word"),
    "alpm": Key("word"),
    "apst": Key("word", words=("on", "off")),
    "power_state": Key("index"),
}
ENDS = tuple(KEYS)
