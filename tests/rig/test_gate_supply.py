"""The gates' supply by an input of the ADC: the SIMULATED board's, the host's check, and the build."""

import json

import pytest
from simboard import FAST, Board
from switchcuts import answer
from test_front_end import picture_counts

from ssdrig.base.errors import UsageError
from ssdrig.meter import wire
from ssdrig.rig import bring_up, builds, checks
from ssdrig.switch import pico


def row(gpio=28):
    return builds.with_gate_supply(builds.read("one_rail"), str(gpio))["gate_supply"]


def test_the_board_shows_it(tmp_path):
    faults = {"gate_supply": {**row(), "true": {"mV": 21_000}}, **FAST}
    with Board(tmp_path, 2.5, faults) as board:
        hello = board.hello()
        assert hello["gate_supply"] == row()
        how = {"gpio": 28, "rate": 100_000, "before": 0, "after": 400, "trigger": "now"}
        answer(board, wire.SCOPE, json.dumps(how).encode(), wire.HELLO)
        board.until(lambda: len(board.bodies(wire.WAVEFORM)) >= 4)
    counts = picture_counts(board, 28)
    (mine,) = [of for of in pico.inputs_of(hello) if of["gpio"] == 28]
    assert counts.mean() * mine["nV_per_count"] * 1e-9 == pytest.approx(21.0, rel=0.01)


@pytest.mark.parametrize(("volts", "ok"), [(24.0, True), (22.3, True), (25.8, True), (22.0, False), (12.0, False)])
def test_within_what_parts_and_adc_leave_open(volts, ok):
    assert checks.of_gate_supply(volts, 24.0).ok is ok


@pytest.mark.parametrize("lead_V", [11.4, 12.0, 12.6])
@pytest.mark.parametrize("scope", [0.96, 1.04])
def test_a_12_V_lead_within_its_5_percent_is_accepted(lead_V, scope):
    assert checks.of_gate_supply((lead_V - 0.3) * scope, 11.7).ok is True


@pytest.mark.parametrize("volts", [10.3, 13.1])
def test_a_12_V_lead_that_is_off_is_not(volts):
    assert checks.of_gate_supply(volts, 11.7).ok is False


def test_a_build_takes_it_at_a_free_input():
    divider = 12 / (100 + 12)
    assert row()["nV_per_count"] == pytest.approx(3.3e9 / 4096 / divider, rel=1e-6)
    assert row()["mV"] == 1000 * bring_up.GATE_SUPPLY_V and 1.1 * 24 * divider < 3.3
    assert builds.with_gate_supply(builds.read("one_m2_rail"), "27:11.7")["gate_supply"]["mV"] == 11_700
    wrong = (
        "26",
        "5",
        "x",
        "",
        "²",
        "27:²",
        "27:0",
        "27:31",
        "27:48",
        "27:" + "9" * 5000,
        "27:-5",
        " 27",
        "27:24:1",
        "27:.",
        "27:11.75",
    )
    for name, where in (("four_rails", "27"), *(("one_rail", bad) for bad in wrong)):
        with pytest.raises(UsageError):
            builds.with_gate_supply(builds.read(name), where)
