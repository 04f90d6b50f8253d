"""retain: write the data to be retained, and seal the drive."""

from ssdrig.retention import sealing


def carry_out(act, stage, number: int) -> dict:
    """Write, read the baseline, seal; the power is off afterwards where the rig can take it."""
    stage.bench.check()
    return sealing.carry_out(act, stage)
