"""What the drive gets from a wrong supply, and from a host that drives PERST# while the rail is cut."""

import sys

import pytest
from conftest import ROOT
from picture_of_study import simulator

simulate = simulator()
sys.path.insert(0, str(ROOT / "hardware/spice"))
import limits

PROTECTION = (ROOT / "hardware/spice/protection.lib").read_text()
MOST_V = {"m2_3v3": 3.8, "sata_5v": 5.75, "sata_12v": 13.8}
SUPPLIES_V, RISES_s = simulate.SUPPLIES_V, simulate.RISES_s


def supplied(rail, final, rise, **changes):
    return simulate.measured("overvoltage", rail, more=PROTECTION, final=final, rise=rise, **changes)


def within(rail, final, rise, **changes):
    m = supplied(rail, final, rise, **changes)
    return max(m["drive_peak"], m["drive_end"]) <= MOST_V[rail]


@pytest.mark.slow
@pytest.mark.parametrize("rise", RISES_s)
@pytest.mark.parametrize("rail", MOST_V)
def test_no_supply_gives_the_drive_too_much(rail, rise):
    """14 supplies x 3 rails x 5 rise times, at the peak and for ever."""
    assert len(SUPPLIES_V) == 14 and len(RISES_s) == 5
    assert [final for final in SUPPLIES_V if not within(rail, final, rise)] == []


@pytest.mark.slow
@pytest.mark.parametrize("corner", ["low", "high"])
@pytest.mark.parametrize("rail", MOST_V)
def test_no_supply_gives_the_drive_too_much_at_the_ends_of_the_tolerances(rail, corner):
    values, wide = simulate.values(rail), limits.CORNERS[corner]
    changes = {name: values[name] * factor for name, factor in wide.items() if name != "voltage"}
    assert [final for final in SUPPLIES_V for rise in (1e-5, 5e-3) if not within(rail, final, rise, **changes)] == []


@pytest.mark.slow
@pytest.mark.parametrize("rail", MOST_V)
def test_a_drive_of_20_uF_is_kept_whole_too(rail):
    """Little capacitance takes a fast edge worst; a step within 1 us and above 12 V is not kept from it."""
    assert [final for final in SUPPLIES_V if not within(rail, final, 1e-5, c_load=2e-5)] == []


@pytest.mark.parametrize(("rail", "final"), [("m2_3v3", 5), ("sata_5v", 7), ("sata_12v", 16)])
def test_the_wrong_supply_leaves_the_drive_without_power(rail, final):
    m = supplied(rail, final, 5e-3, c_load=2e-5)
    assert m["drive_peak"] <= MOST_V[rail] and m["drive_end"] < 0.1


@pytest.mark.parametrize("rail", MOST_V)
def test_the_lock_out_does_not_trip_at_5_percent_too_much(rail):
    volts = simulate.values(rail)["voltage"]
    low = simulate.values(rail)["ovp_reference"] * limits.CORNERS["low"]["ovp_reference"]
    m = simulate.measured("failsafe", rail, more=PROTECTION, voltage=1.05 * volts, ovp_reference=low)
    assert m["rail"] > 1.02 * volts


@pytest.mark.parametrize("rail", MOST_V)
def test_without_its_reference_the_lock_out_lets_it_through(rail):
    final = 1.4 * simulate.values(rail)["voltage"]
    assert supplied(rail, final, 5e-3, ovp_reference=8)["drive_end"] > 1.3 * simulate.values(rail)["voltage"]


@pytest.mark.parametrize("rail", MOST_V)
def test_the_trip_voltage_is_that_of_its_divider(rail):
    v = simulate.values(rail)
    low = 1 / (1 / v["ovp_lower"] + 1 / v["ovp_hysteresis"])  # the comparator's output is low
    trip = v["ovp_reference"] * (1 + v["ovp_upper"] / low)
    assert supplied(rail, 1.5 * v["voltage"], 5e-3, c_load=2e-5, p_load=0)["drive_peak"] == pytest.approx(
        trip, rel=0.01
    )
    assert 1.05 * v["voltage"] < trip < MOST_V[rail]


# ---- PERST#


@pytest.mark.parametrize("rail_33", [1, 0])
@pytest.mark.parametrize("output", [25, 50])
def test_a_host_that_drives_perst_feeds_no_cut_drive(output, rail_33):
    held = simulate.measured("perst", "m2_3v3", perst_output=output, rail_33=rail_33)
    assert abs(held["pad_current"]) < 1e-5 and abs(held["host_current"]) < 4e-3
    let_go = simulate.measured("perst", "m2_3v3", perst_output=output, rail_33=rail_33, held=0)
    assert let_go["pad_current"] < 5e-3
    assert let_go["pad_current"] == pytest.approx(2.6e-3, rel=0.1)


@pytest.mark.parametrize("output, feeds", [(25, 0.069), (50, 0.042)])
def test_a_joined_perst_feeds_it_and_the_residual_does_not_show_it(output, feeds):
    m = simulate.measured("perst", "m2_3v3", perst_output=output, perst_series=0.001, held=0)
    assert m["pad_current"] == pytest.approx(feeds, rel=0.1) and m["residual"] < 0.3
