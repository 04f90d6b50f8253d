"""Shapes of cuts in a campaign: which is possible, what proves that it was one, what the drive should have counted."""

from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.plan.kinds import cut_schedule
from ssdrig.plan.kinds.cut_schedule import ANNOUNCED, Cut
from ssdrig.powerloss import history, judging, supply
from ssdrig.powerloss.cycle import USUAL, Cycle, Lived
from ssdrig.powerloss.health import State
from ssdrig.powerloss.supply import Outcome

BEFORE = State(1.0, power_cycles=10, unsafe_shutdowns=5)
UNSEEN = "rail 0 was not seen below 3750 mV"


def cut(shape, control=None, seed=4):
    return Cut(1, "random", 0, shape, control, seed, 1.0)


def counted(cycles, unsafe=None):
    return State(1.0, power_cycles=10 + cycles, unsafe_shutdowns=5 + (cycles if unsafe is None else unsafe))


def lived(why_not="", **more):
    return Lived(np.zeros(0, history.ROW), None, 0, 0, Outcome(1, 0, 2, 0.1, why_not), None, **more)


def test_a_cut_has_the_shape_that_is_said_of_it():
    """Before a crowbar cut had shown the capacitance, a ramp was a crowbar cut, and was counted as a ramp."""
    cycle = Cycle(None, None, None, None, 1, 1, {}, None)
    assert cycle.possible(cut("ramp")).shape == USUAL and cycle.possible(cut("glitch")).shape == "glitch"
    assert cycle.possible(cut("glitch", ANNOUNCED)).shape == USUAL and cycle.possible(cut(None)).shape is None
    assert cycle.possible(cut("command")).shape == "command"
    cycle.bulk_uF = 470.0
    assert cycle.possible(cut("ramp")).shape == "ramp"


@pytest.mark.parametrize("shape", ["glitch", "dips"])
def test_the_drives_own_count_says_whether_a_glitch_was_a_reset(shape):
    why_no_cut = lambda why_not, after: judging._no_cut(cut(shape), lived(why_not), BEFORE, after)
    assert why_no_cut("", counted(1)) == "" and why_no_cut(UNSEEN, counted(1)) == "", "too short for the rig's readings"
    assert "no reset" in why_no_cut("", counted(0)) and "no reset" in why_no_cut(UNSEEN, counted(0))
    assert why_no_cut(UNSEEN, State(1.0)) == UNSEEN and why_no_cut("", State(1.0)) == ""
    assert judging._no_cut(cut("crowbar"), lived(UNSEEN), BEFORE, counted(1)) == UNSEEN


def test_each_of_several_dips_may_have_been_a_reset():
    dips = cut_schedule.own(cut("dips"), None)["dips"]
    expected = lambda shape, cycles, **more: judging._expected(cut(shape), lived(**more), BEFORE, counted(cycles))
    assert dips > 2 and expected("dips", 1) == (1, 1) and expected("dips", dips) == (dips, dips)
    assert expected("dips", dips + 1) == (1, 1) and expected("dips", 0) == (1, 1)
    assert expected("crowbar", 2) == (1, 1) and expected("crowbar", 2, second=lived().outcome) == (2, 2)
    assert expected("glitch", 2) == (1, 1) and judging._expected(cut("dips"), lived(), BEFORE, State(1.0)) == (1, 1)


def test_a_rail_stays_off_at_least_as_long_as_its_ramp(tmp_path, monkeypatch):
    """A ramp of 500 ms with an off time of 400 ms was refused by the rig, which ended the campaign."""
    asked = []
    made = supply.RigSupply(SimpleNamespace(hello=dict), tmp_path)
    made._clock = SimpleNamespace(now=lambda: SimpleNamespace(t_ns=lambda us: 0, bound_ns=lambda us: 0))
    report = {"fired_us": 0, "on_us": 1, "rails": []}
    monkeypatch.setattr(supply.pico, "arm_and_cut", lambda rig, **how: asked.append(how["off_ms"]) or dict(report))
    for shape, own in (("ramp", {"fall_us": 500_000}), ("crowbar", {}), ("glitch", {"glitch_us": 10})):
        made.cut(shape, None, 0.4, **own)
    assert asked == [500, 400, None]
