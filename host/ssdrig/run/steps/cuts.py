"""cuts: the sessions of a power-loss campaign (powerloss/campaign.py)."""

from ssdrig.powerloss import campaign


def carry_out(act, stage, number: int) -> dict:
    """All sessions that are not judged yet; done when the last one is, or when one of the stop rules holds."""
    stage.bench.check()
    return campaign.carry_out(act, stage)
