"""repeat: carry out the steps inside so many times, for each point of `over`, or until a rule holds."""

from ssdrig.steps.keys import RESUME, Key

KEYS = {"times": Key("count"), "most": Key("count"), "until": Key("until"), "over": Key("over"), "resume": RESUME}
ENDS = ("times", "until", "over")
