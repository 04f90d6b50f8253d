"""load: I/O against the drive for a time, for an amount, for so many bursts, or until a rule holds."""

from ssdrig.steps.keys import RANGE, RESUME, SMART, Key

KEYS = {
    "pattern": Key("word", required=True, words=("random", "sequential")),
    "read": Key("percent", required=True),
    "block": Key("blocks", required=True),
    "qd": Key("count", 1),
    "threads": Key("count", 1),
    "range": RANGE,
    "offset": Key("bytes"),
    "hot": Key("hot"),
    "data": Key("word", "random", words=("random", "half", "zeros")),
    "rate": Key("rate"),
    "arrival": Key("word", "even", words=("even", "poisson")),
    "sync": Key("word", "none", words=("none", "each", "flush")),
    "on": Key("time"),
    "off": Key("time"),
    "cycles": Key("count"),
    "time": Key("time"),
    "amount": Key("amount"),
    "until": Key("until"),
    "over": Key("over"),
    "resume": RESUME,
    "smart": SMART,
    "detail": Key("word", words=("second", "minute", "none")),
    "windows": Key("windows"),
    "judge": Key("judge"),
    "engine": Key("word", "auto", words=("auto", "libaio", "io_uring")),
}
ENDS = ("time", "amount", "cycles", "until")  # exactly one of these
