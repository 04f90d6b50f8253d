"""repeat: run the inner steps a number of times, for each point of `over`, or until a rule holds."""

from ssdrig.plan.kinds.keys import Key

KEYS = {
    "times": Key("count"),
    "most": Key("count"),
    "until": Key("until"),
    "over": Key("over"),
    "resume": Key("word", words=("round", "restart", "plan")),
}
ENDS = ("times", "until", "over")
