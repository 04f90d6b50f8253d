"""settle: read SMART until two readings have the same NAND count."""

from ssdrig.plan.kinds.speeds import SETTLE_S


def carry_out(act, stage, number: int) -> dict:
    """Read SMART right after the load, then at 60, 120 and 300 s until two readings have the same NAND count: the
    difference to the first is what the drive wrote on its own."""
    with stage.stop.second_raises():
        last, waited_s = stage.live.poll_smart("after"), 0.0
        for at_s in (at_s for at_s in SETTLE_S if at_s <= act.keys["most"]):
            stage.live.wait((at_s - waited_s) * stage.dilation, stage.stop.check)
            waited_s = at_s
            now = stage.live.poll_smart("settled")
            if now and last and now["nand_written_bytes"] == last["nand_written_bytes"]:
                break
            last = now
    return {}
