"""recall: read once what a sealed drive kept."""

from ssdrig.retention import verifying


def carry_out(act, stage, number: int) -> dict:
    """All passes; nothing is written. The result is stage.outcome, too."""
    stage.bench.check()
    return verifying.carry_out(act, stage)
