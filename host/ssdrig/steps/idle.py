"""idle: no I/O and no SMART poll, for a time or until the power is quiet."""

from ssdrig.steps.keys import Key

KEYS = {"time": Key("pause"), "until": Key("word", words=("quiet",), needs="rig"), "most": Key("time")}
ENDS = ("time", "until")


def carry_out(act, stage, number: int) -> dict:
    """Wait; no SMART poll, which would wake the drive."""
    from ssdrig.steps.pace import Pace

    stage.live.begin(Pace(act.path.rpartition("/")[2] if act.path == "idle" else "idle"))
    stage.live.wait(act.keys["time"] * stage.dilation, stage.stop.check)
    return {}
