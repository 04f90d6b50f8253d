"""Campaigns of power cuts in model time by switches that know the edge worse than the rig: a power supply over SCPI, a
slot, two commands. What they find is what the rig finds, and an honest drive is not accused."""

import functools

import numpy as np
import pytest
from support import model_campaign
from support.model_campaign import HONEST, tried

from ssdrig.powerloss.supply import Outcome

pytestmark = pytest.mark.slow

BOUNDS_NS = {"command": 5_000_000, "scpi": 30_000_000, "slot": 200_000_000}  # of the edge: half of what off() takes
CUTS = 8


def by_switch(monkeypatch, bound_ns: int) -> None:
    """Cuts as SwitchSupply reports them: the edge lies anywhere within the bound around the time that is told."""
    source = np.random.default_rng(bound_ns)

    def outcome(fired_ns, _, on_ns, off_s, why_not=""):
        told_ns = fired_ns + int(source.integers(-bound_ns, bound_ns, endpoint=True))
        return Outcome(told_ns, bound_ns, on_ns, (on_ns - told_ns - bound_ns) / 1e9, why_not)

    monkeypatch.setattr(model_campaign, "Outcome", outcome)


@functools.cache
def by_rig(fault: str) -> model_campaign.Tried:
    """The same campaign with edges that are known to a microsecond; asked before a switch takes the rig's place."""
    return tried(fault, CUTS, 1)


@pytest.mark.parametrize("fault", [HONEST, "lie_zeroes", "inversion"])
@pytest.mark.parametrize("switch", BOUNDS_NS)
def test_the_verdicts_are_those_of_the_rig(monkeypatch, switch, fault):
    of_rig = by_rig(fault)
    by_switch(monkeypatch, BOUNDS_NS[switch])
    campaign_ = tried(fault, CUTS, 1)
    assert campaign_.compared.false == 0 and campaign_.compared.wrong == 0
    assert (campaign_.exit_code, campaign_.compared.bad, campaign_.compared.matched) == (
        of_rig.exit_code,
        of_rig.compared.bad,
        of_rig.compared.matched,
    )
    if fault == HONEST:
        assert campaign_.exit_code == 0 and not campaign_.compared.right and campaign_.names == of_rig.names
