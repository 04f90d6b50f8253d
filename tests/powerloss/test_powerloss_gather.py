"""Cuts aimed at bytes that are acknowledged and not flushed, in model time: what was planned is what is there."""

import random

import pytest

from selfcheck import powerloss_aim
from ssdrig.plan.kinds import cut_aims
from ssdrig.powerloss import aim


@pytest.mark.parametrize(("text", "rate"), [("bytes:8..64", 4e6), ("bytes:8..64", 3e9), ("bytes:1..2", 3e8)])
def test_bytes_at_the_cut_are_those_of_the_plan_on_slow_drives_and_fast_ones(tmp_path, text, rate):
    for number in range(4):
        plan = aim.plan(cut_aims.parse(text), 3, number, 0, 0)
        gathered = powerloss_aim.gather(tmp_path / f"{number}", plan, number, rate, random.Random(number))
        assert 0.99 * plan.unflushed_bytes <= gathered <= 1.125 * plan.unflushed_bytes + 4096


def test_drive_that_is_too_slow_is_cut_with_fewer_bytes_and_that_is_no_hit(tmp_path):
    aims, plan = cut_aims.parse("bytes:8..64"), aim.Plan("bytes", None, unflushed_bytes=64 << 20)
    some = powerloss_aim.gather(tmp_path / "slow", plan, 1, 2e5, random.Random(1))
    assert 0 < some < 8 << 20
    assert not aim.hit(aims, *aim.achieved(aims, {"unflushed_bytes": some}))


def test_share_of_cuts_near_their_plan_is_measured_over_drives_of_all_speeds():
    near, within = powerloss_aim.gathered(12)
    assert near.met and within.met and near.value == 100
