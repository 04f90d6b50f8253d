"""Faults of the virtual drive, each found by the judge of power-loss tests in model time with one seed, and nothing
found without a fault. All seeds: `./ssdrig selfcheck powerloss-recall --seeds 20`."""

import pytest

from selfcheck import powerloss_recall
from selfcheck.powerloss_cuts import OFF_NS
from selfcheck.powerloss_recall import CASES
from ssdrig.virtual.device import powerfaults

pytestmark = pytest.mark.slow
SOON = {"slow_recovery": {"after": 3}, "aged_unsaid": {"per_cut": 0.03}}
SOON |= dict.fromkeys(("dead", "read_only", "lost_identity"), {"after": 1}) | {"smart_rollback": {"p": 1, "back": 3}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_each_fault_is_found(case):
    score = powerloss_recall.campaign(case._replace(given=case.given | SOON.get(case.fault, {})), 1, least=1)
    assert score.found_at is not None and score.found_at <= case.within
    assert score.missed == score.blocks_missed == score.false == 0 and score.right == score.observable


@pytest.mark.parametrize("case", [CASES[0], CASES[7]._replace(twice=True)], ids=["volatile", "capacitors"])
def test_without_a_fault_nothing_is_found(case):
    clean = powerloss_recall.campaign(case, 1, False, 10, 10)
    assert clean == (10, None, 0, 0, 0, 0, 0)


def test_a_brownout_is_no_fault_of_a_whole_cut():
    case = next(case for case in CASES if case.fault == "brownout")
    assert powerloss_recall.campaign(case._replace(off_ns=OFF_NS), 1, least=3, most=3) == (3, None, 0, 0, 0, 0, 0)


def test_each_fault_is_tried():
    assert [case.fault for case in CASES] == [*powerfaults.BY_NAME]
