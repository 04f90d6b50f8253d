"""flush: have the drive empty its write cache."""

from ssdrig.plan.kinds.keys import Key

KEYS: dict[str, Key] = {}


def carry_out(act, stage, number: int) -> dict:
    with stage.stop.second_raises():
        stage.bench.flush()
    return {}
