"""plan/kinds/cut_schedule.py: which cut comes when."""

from collections import Counter

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.plan.kinds import cut_schedule
from ssdrig.plan.kinds import cuts as step
from ssdrig.switch.profiles import PROFILES

AIMS = {"random": 299, "flush": 50, "fua": 50, "trim": 50, "age": 50, "burst": 50, "recovery": 50}


def test_the_shares_of_the_aims_are_exact_and_the_order_is_of_the_seed():
    schedule = cut_schedule.cuts(7, 599, 30, AIMS, {"crowbar": 3, "float": 1}, True)
    assert [cut.number for cut in schedule] == list(range(1, 630))
    assert Counter(cut.aim for cut in schedule if not cut.control) == AIMS
    assert Counter(cut.control for cut in schedule) == {None: 599, "no-cut": 15, "announced": 15}
    shapes = Counter(cut.shape for cut in schedule)
    assert shapes[None] == 15 and abs(shapes["crowbar"] - 3 * shapes["float"]) < 60
    assert schedule == cut_schedule.cuts(7, 599, 30, AIMS, {"crowbar": 3, "float": 1}, True)
    assert schedule != cut_schedule.cuts(8, 599, 30, AIMS, {"crowbar": 3, "float": 1}, True)
    assert sorted(cut.nth for cut in schedule if cut.aim == "fua") == list(range(50))
    first = [cut.aim for cut in schedule[:200]]
    assert set(first) == set(AIMS)  # mixed, not one aim after the other
    assert len({cut.seed for cut in schedule}) > 620


def test_the_cuts_come_at_any_time_of_the_write_phase():
    shares = [cut.share for cut in cut_schedule.cuts(1, 400, 0, {"random": 1}, {"crowbar": 1}, True)]
    assert min(shares) >= cut_schedule.LEAST_SHARE and max(shares) <= 1
    assert all(abs(sum(a <= share < a + 0.19 for share in shares) - 80) < 40 for a in (0.05, 0.24, 0.43, 0.62, 0.81))


def test_a_cut_behind_one_without_a_write_knows_it():
    schedule = cut_schedule.cuts(3, 60, 5, {"random": 3, "again": 1}, {"crowbar": 1}, True)
    assert [cut.follows_again for cut in schedule] == [False, *(cut.aim == "again" for cut in schedule[:-1])]
    assert sum(cut.follows_again for cut in schedule) > 10


def test_a_few_cuts_have_a_control_session_too_and_what_cannot_be_announced_is_not():
    assert [cut_schedule.controls(count, 5) for count in (1, 30, 60, 599, 3000)] == [1, 2, 3, 30, 150]
    assert cut_schedule.controls(599, 0) == 0
    schedule = cut_schedule.cuts(3, 60, 3, {"random": 1}, {"crowbar": 1}, False)
    assert Counter(cut.control for cut in schedule) == {None: 60, "no-cut": 3}
    assert Counter(cut.aim for cut in cut_schedule.cuts(3, 5, 0, AIMS, {"crowbar": 1}, True)).total() == 5


def test_a_power_cycle_without_a_write_or_a_cut_into_a_start_is_never_the_first_cut():
    aims = {"random": 2, "again": 4, "recovery": 3, "recovery:5..9": 3}
    for seed in range(40):
        cuts = [cut for cut in cut_schedule.cuts(seed, 12, 1, aims, {"crowbar": 1}, True) if cut.shape]
        assert next(cut.aim for cut in cuts if not cut.control) == "random"
        assert Counter(cut.aim for cut in cuts if not cut.control) == aims
    assert [cut.aim for cut in cut_schedule.cuts(1, 2, 0, {"again": 1}, {"crowbar": 1}, True)] == ["again"] * 2


def test_a_shape_has_its_fields_by_the_seed_of_its_cut():
    schedule = cut_schedule.cuts(5, 200, 0, {"random": 1}, dict.fromkeys(PROFILES, 1), True)
    fields = {shape: [cut_schedule.own(cut, 470.4) for cut in schedule if cut.shape == shape] for shape in PROFILES}
    assert fields["float"] == fields["crowbar"] == [{}] * 40
    assert all(10 <= glitch["glitch_us"] <= 20_000 for glitch in fields["glitch"])
    assert all(ramp["bulk_uF"] == [470] for ramp in fields["ramp"])
    many = [dips for dips in fields["dips"] if dips["dips"] > 8]  # the same short glitch; else a contact that bounces
    assert all(dips_["down_us"] <= 300 and 20 <= dips_["dips"] <= 100 for dips_ in many) and 10 < len(many) < 30
    assert all(
        dips_["down_us"] <= dips_["up_us"] and dips_["dips"] >= 2 for dips_ in fields["dips"] if dips_ not in many
    )
    assert all(dips_["dips"] * (dips_["down_us"] + dips_["up_us"]) < 2_000_000 for dips_ in fields["dips"])
    assert cut_schedule.own(next(cut for cut in schedule if cut.shape == "ramp"), None) is None


def test_what_a_campaign_takes_and_may_say_is_known_before():
    keys = {"cuts": 60, "aims": {"random": 50, "recovery:5..9": 10}, "control": 5, "only": 0}
    keys |= {"shapes": {"crowbar": 1}, "queues": 1, "precondition": 0}
    ahead = step.ahead(keys)
    more = step.ahead({**keys, "shapes": {"crowbar": 3, "glitch": 1}, "queues": 4, "precondition": 2}).removeprefix(
        ahead
    )
    assert [word in more for word in ("glitch 25 %", "4 queues", "2 x its size")] == [True] * 3 and more.count(";") == 4
    assert ahead.startswith("60 to 73 power cycles") and "below 4.9 % (95 %)" in ahead and "aim below 26 %" in ahead
    assert step.ahead({**keys, "only": 3}) == ""


def test_a_limit_that_no_drive_could_break_is_refused():
    keys = {"cuts": 1, "aims": {"random": 1}, "shapes": {"crowbar": 1}, "control": 5, "only": 0}
    keys |= {"streams": {"random": 1}, "mixes": {"usual": 1}, "queues": 1, "precondition": 0}
    for ready in (0.0, 130.0):
        step.check({**keys, "ready": ready}, "p.toml")
    with pytest.raises(UsageError, match="at most 130 s.*131 s in p.toml"):
        step.check({**keys, "ready": 131.0}, "p.toml")


def test_first_loss_of_power_is_unannounced_and_of_a_shape_that_stays_off():
    for seed in range(200):
        shapes = {"glitch": 3, "crowbar": 1, "dips": 2}
        schedule = cut_schedule.cuts(seed, 6, 4, {"random": 1}, shapes, True)
        first = next(cut for cut in schedule if cut.shape)
        assert (first.control, first.shape) == (None, "crowbar") and Counter(cut.control for cut in schedule)[None] == 6
    schedule = cut_schedule.cuts(1, 6, 4, {"random": 1}, {"glitch": 1}, True)
    assert {cut.shape for cut in schedule} == {"glitch", None}
