"""hardware/spice/range.cir: the front end's low range, how soon its bypass closes, what the drive sees of it, and what
the sensor reads in each range; and its budget and price (hardware/frontend)."""

import csv
import functools
import shutil

import picture_of_study as pictures
import pytest
from conftest import ROOT

from ssdrig.meter import uncertainty
from ssdrig.rig import builds

simulate = pictures.simulator()
RAILS = ("m2_3v3", "sata_5v", "sata_12v")
V = simulate.values("m2_3v3")
FRONT = ROOT / "hardware/frontend"
README = (FRONT / "README.md").read_text()
TRIP_A = V["low_float"] * V["low_sense_resistor"] / V["low_shift_resistor"] / V["low_shunt"]
OFF_A = V["low_comparator_offset"] / V["low_shunt"]
WITHIN_s = 1e-6


@functools.cache
def run(rail="m2_3v3", **changes):
    if shutil.which("ngspice") is None:
        pytest.skip("ngspice is not installed (apt-get install ngspice): the electrical studies were not run")
    return simulate.measured("range", rail, **changes)


def closing_s(measures):
    """From the current at which the comparator should act to a bypass that conducts."""
    return measures["closed"] - measures["tripped"]


def test_the_bypass_closes_within_a_microsecond():
    made = run()
    assert 0 < closing_s(made) < WITHIN_s
    assert made["end_drop"] < 3 * 1.6 * V["fet_rds_on_max"]  # at 5 V of gate, not 10


@pytest.mark.slow
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize(("rail", "peak"), [("m2_3v3", 7.6), ("sata_5v", 5), ("sata_12v", 2.1), ("m2_3v3", 0.2)])
def test_so_it_does_on_each_rail_up_to_25_W(rail, peak, sign):
    """And of a small step, whose overdrive is small. The body diode of the bypass bounds the drop."""
    made = run(rail, peak=peak, sign=sign)
    assert closing_s(made) < WITHIN_s and made["drop"] < 0.7


@pytest.mark.slow
@pytest.mark.parametrize(("rail", "farad"), [("m2_3v3", 1e-5), ("m2_3v3", 4.7e-4), ("sata_5v", 1e-5)])
def test_it_adds_less_than_a_percent_to_the_dip_of_a_step_of_3_A(rail, farad):
    """Which the cable makes, also where the bypass is held."""
    added_V = run(rail, c_load=farad, held=1)["lowest"] - run(rail, c_load=farad)["lowest"]
    assert 0 < added_V < 0.01 * simulate.values(rail)["voltage"]


@pytest.mark.slow
def test_the_table_in_the_readme_is_what_the_study_gives():
    table = simulate.table_of(README, "range").splitlines()[2:]
    assert len(table) == 5
    for line in table:
        rail, peak, uF, us, mV = [cell.strip() for cell in line.strip("|").split("|")]
        case = {"peak": float(peak), "c_load": float(uF) * 1e-6}
        made, held = run(rail, **case), run(rail, held=1, **case)
        assert float(us) == pytest.approx(1e6 * closing_s(made), rel=0.05)
        assert float(mV) == pytest.approx(1e3 * (held["lowest"] - made["lowest"]), abs=2)


@pytest.mark.slow
@pytest.mark.parametrize("base", [3e-4, 4e-2])
def test_the_sensor_sees_what_its_range_says(base):
    """The low range's resistor and the shunt, within half a percent; the shunt alone."""
    made = run(base=base)
    assert made["rest_seen"] == pytest.approx(V["low_shunt"] + V["shunt"], rel=5e-3)
    assert made["end_seen"] == pytest.approx(V["shunt"], rel=2e-2)


@pytest.mark.slow
def test_a_comparator_that_is_slow_would_be_seen():
    assert closing_s(run(low_comparator_delay=1e-6)) > WITHIN_s


def test_the_low_range_reaches_from_1_mW_to_where_the_shunt_takes_over():
    """Its fine range ends above the highest trip, and below the lowest the shunt alone is good for 3 %."""
    assert 0.04096 / (V["low_shunt"] + V["shunt"]) > TRIP_A + OFF_A
    high = rail(8000)
    watts = (TRIP_A - OFF_A) * 3.3
    assert uncertainty.expanded_W([uncertainty.Mean(high, 3.3, watts)]) < 0.03 * watts


def rail(shunt_uOhm, ppm=10_000):
    return {
        **{"rail": 0, "chip": "INA228", "shunt_uOhm": shunt_uOhm, "shunt_tolerance_ppm": ppm, "lead_mOhm": 10},
        "current_lsb_pA": round(78.125e-9 / (shunt_uOhm * 1e-6) * 1e12),
        **{"vbus_lsb_nV": 195_312.5, "conversion_ns": 1_102_000, "adc_config": 0xB000},
    }


def test_1_mW_is_known_to_3_percent():
    """On 3.3 V without a calibration: the low range's resistor of 0.1 %, the sensor, thermal EMF; and what the circuit
    puts into the rail or loses. As the build states it."""
    low = builds.read("front_end")["rails"][0]["low"]
    assert low["shunt_uOhm"] == round(1e6 * (V["low_shunt"] + V["shunt"]))
    assert low["shunt_tolerance_ppm"] >= (1000 * V["low_shunt"] + 10_000 * V["shunt"]) / (V["low_shunt"] + V["shunt"])
    assert low["feed_nA"] == pytest.approx(1e9 * V["low_float"] / V["low_shift_resistor"], abs=1)
    mean = uncertainty.Mean(rail(8000) | {"low": low}, 3.3, 1e-3, low=(1.0, 1e-3))
    stated_W = uncertainty.expanded_W([mean])
    assert stated_W < 0.03e-3
    assert f"| 1 mW on 3.3 V, not calibrated | {stated_W / 1e-5:.1f} |" in README


def test_two_rails_cost_less_than_100_USD():
    rows = list(csv.DictReader(open(FRONT / "bom.csv", newline="")))
    assert {row["price_basis"] for row in rows} == {"estimate"}  # none was asked
    own = sum(float(row["unit_usd"]) * int(row["quantity"]) for row in rows)
    build = list(csv.DictReader(open(ROOT / "hardware/breakout/bom.csv", newline="")))
    base = sum(float(row["unit_usd"]) * int(row["two_ina228_chips"]) for row in build)
    assert own + base < 100
    assert f"{own:.2f} USD" in README and f"{own + base:.2f} USD" in README
