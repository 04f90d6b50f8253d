"""idle: wait without I/O, for a time or until the power is quiet."""

from ssdrig.plan.kinds.idle import counts, span_s
from ssdrig.plan.rules import quiet
from ssdrig.run.pace import Pace

COUNTED = ("nand_written_bytes", "host_written_bytes")


def before(act, stage) -> dict | None:
    """What the drive has counted, read before the step: SMART would wake it within."""
    return _counted(act, stage) if counts(act.keys) else None


def carry_out(act, stage, number: int) -> dict:
    """Wait; without a SMART poll, which would wake the drive, unless the plan wants them."""
    every_s = act.keys.get("smart")
    if isinstance(every_s, float):  # the plan wants readings during the rest, so their energy is included
        stage.live.begin(Pace("rest", smart_s=every_s))
    else:
        stage.live.begin(Pace("idle"))
    least_s, most_s = span_s(act.keys)
    if "until" not in act.keys:
        stage.live.wait(most_s * stage.dilation, stage.check)
        return {"rest": {"lasted_s": most_s}} if counts(act.keys) else {}
    held: list[float | None] = []  # of the host's seconds that make up the next one of the drive
    power_W: list[float | None] = []
    verdicts = [quiet.verdict(power_W, least_s)]

    def ended() -> bool:
        held.append(stage.live.power_W())
        if len(held) == stage.dilation:
            known = [watts for watts in held if watts is not None]
            power_W.append(sum(known) / len(known) if len(known) == len(held) else None)
            held.clear()
            verdicts[0] = quiet.verdict(power_W, least_s)
        return verdicts[0].reached

    stage.live.wait(most_s * stage.dilation, stage.check, ended)
    return {"quiet": verdicts[0]._asdict() | {"lasted_s": len(power_W)}}


def after(act, stage, first: dict | None, shown: dict) -> None:
    """Record the result, with the bytes that the drive has written on its own."""
    kind = next((kind for kind in ("quiet", "rest") if kind in shown), None)
    if kind is None:
        return
    last, why = _counted(act, stage) if counts(act.keys) else None, None
    written: dict = dict.fromkeys(COUNTED)
    for key in COUNTED:
        if first and last and first[key] is not None and last[key] is not None:
            written[key] = last[key] - first[key]
    if written["nand_written_bytes"] is None:
        why = "the drive does not count NAND bytes" if first and last else "a SMART reading around the step failed"
        why = why if counts(act.keys) else "the plan asks for no SMART reading around the step"
    stage.book.event(kind, step=act.path, **shown[kind], **written, nand_why=why)


def _counted(act, stage) -> dict | None:
    with stage.stop.second_raises():
        stage.live.begin(Pace("counters"))
        return stage.live.poll_smart("idle")
