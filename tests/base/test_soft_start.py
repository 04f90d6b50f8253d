"""The rise of a rail against the circuit's values and its study."""

import csv
import re
from pathlib import Path

import pytest

from ssdrig.base import soft_start
from ssdrig.rig import bring_up

ROOT = Path(__file__).resolve().parents[2]
STUDY = re.compile(r"^\| (m2_3v3|sata_5v|sata_12v) \| ([\d.]+) \| [\d.]+ \| [\d.]+ \| [\d.]+ \|", re.M)


def values(path):
    with open(ROOT / path, newline="") as file:
        return {(row.get("rail", "all"), row["name"]): float(row["value"]) for row in csv.DictReader(file)}


VALUES, BREAKOUT = values("hardware/values.csv"), values("hardware/breakout/board/values.csv")


def test_the_study_is_the_one_that_is_stated():
    text = (ROOT / "hardware/spice/README.md").read_text().partition("<!-- rails -->")[2].partition("<!-- end -->")[0]
    stated = {round(1000 * VALUES[rail, "voltage"]): float(ms) for rail, ms in STUDY.findall(text)}
    assert len(stated) == 3 and stated == soft_start.STUDY_ms


def test_parts_are_those_of_the_circuit():
    for rail in ("m2_3v3", "sata_5v", "sata_12v"):
        mV = round(1000 * VALUES[rail, "voltage"])
        assert soft_start.BOARD_kOhm[mV] == pytest.approx(VALUES[rail, "gate_resistor"] / 1000)
    assert {*soft_start.BREAKOUT_kOhm.values()} == {BREAKOUT["all", "gate_resistor"] / 1000}
    assert (VALUES["all", "fet_vth_min"], VALUES["all", "fet_vth_max"]) == soft_start.THRESHOLD_V
    uF, part = 1e6 * VALUES["all", "gate_capacitor"], VALUES["all", "gate_capacitor_tolerance"]
    assert soft_start.RAMP_uF[0] == pytest.approx(uF * (1 - part) * 0.99)
    assert uF * (1 + part) * 1.01 < soft_start.RAMP_uF[1] < 1.15 * uF * (1 + part)


@pytest.mark.parametrize("mV", soft_start.STUDY_ms)
def test_the_formula_agrees_with_the_study(mV):
    ms = soft_start.rise_ms(soft_start.BOARD_kOhm[mV], 0.1, 24.0, VALUES["all", "fet_vth"], mV / 1000)
    assert soft_start.STUDY_ms[mV] == pytest.approx(ms, rel=soft_start.STUDY_PART)


@pytest.mark.parametrize(
    "build, mV, rise_ms",
    [
        *(("four_rails", mV, ms) for mV, ms in soft_start.STUDY_ms.items()),
        *((name, 5000, soft_start.STUDY_ms[5000]) for name in ("two_rails", "one_rail", None, "mine")),
        ("one_m2_rail", 3300, 2.56),
        ("one_rail", 5000, 4.41),
    ],
)
def test_limits_of_a_rise_have_the_simulated_one_inside(build, mV, rise_ms):
    """hardware/spice/README.md, rails; of the breakout's board by its own gate resistor and 12 V."""
    low, high = bring_up.rise_ms(build, mV)
    assert 1.15 * low < rise_ms < high / 1.15 and low > 1.5
    assert bring_up.rise_ms(build, 4321) is None


def test_two_circuits_widen_the_limits_of_a_rise():
    board, either = bring_up.rise_ms("four_rails", 5000), bring_up.rise_ms("one_rail", 5000)
    assert either[0] == board[0] and either[1] > board[1] and bring_up.rise_ms("two_rails", 5000) == board
