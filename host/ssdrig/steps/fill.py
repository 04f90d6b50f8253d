"""fill: write the range sequentially: once, or until `amount` is written."""

from ssdrig.steps.keys import RANGE, Key

KEYS = {
    "range": RANGE,
    "amount": Key("amount"),
    "block": Key("block", "128 KiB"),
    "qd": Key("count", 32),
    "threads": Key("count", 1),
    "data": Key("word", "random", words=("random", "half", "zeros")),
    "engine": Key("word", "auto", words=("auto", "libaio", "io_uring")),
}
