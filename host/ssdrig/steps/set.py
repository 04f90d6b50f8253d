"""set: change what the drive or the host is set to; the teardown puts it back."""

from ssdrig.steps.keys import Key

KEYS = {
    "write_cache": Key("word", words=("on", "off"), needs="write-cache"),
    "scheduler": Key("word"),
    "governor": Key("word"),
    "aspm": Key("word"),
    "alpm": Key("word"),
}
ENDS = tuple(KEYS)


def carry_out(act, stage, number: int) -> dict:
    """Set each, see that it is set; what undoes it becomes a duty of the teardown first."""
    for key, value in act.keys.items():
        put_back = stage.bench.change(key, value)
        stage.teardown.push(f"put {key} back", put_back)
        stage.book.event("set", key=key, value=value)
    return {}
