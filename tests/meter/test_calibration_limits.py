"""Calibration: each limit from both sides, each figure of a data sheet worked by hand."""

import math
from dataclasses import replace

import pytest
from calibrations import RAIL
from test_calibration import METER, line_of

from ssdrig.meter import calibration, chips
from ssdrig.meter.calibration import CalibrationError, Meter, Point

STORED = {"x1_n": 0, "x2_n": 10**9, "r1_n": 0, "r2_n": 10**9} | dict.fromkeys(
    ("c1_n", "c2_n", "u1_n", "u2_n", "g_ppb"), 1
)
ONE, TWO = Point(1.0, 0.0, 1.0), Point(2.0, 0.0, 2.0)


def close(value: float):
    return pytest.approx(value, rel=1e-12)


def test_the_stored_line_worked_by_hand():
    """Each part alone: the meter's digit over sqrt(12), its fixed limit and its percent over sqrt(3), in 1e-9."""
    points = Point(1.0, 0.0, 1.0), Point(3.0, 0.0, 3.0)
    stored = calibration.line(*points, Meter("m", 0.06, 0.003, 0.0012), 0.0)
    assert stored == {
        "x1_n": 10**9,
        "x2_n": 3 * 10**9,
        "r1_n": 10**9,
        "r2_n": 3 * 10**9,
        "c1_n": round(0.003e9 / math.sqrt(3)),
        "c2_n": round(0.003e9 / math.sqrt(3)),
        "u1_n": round(0.0012e9 / math.sqrt(12)),
        "u2_n": round(0.0012e9 / math.sqrt(12)),
        "g_ppb": round(0.0006e9 / math.sqrt(3)),
    }


@pytest.mark.parametrize(
    ("u", "digit", "lsb", "gain", "alone"),
    [
        (0.003, 0.0, 0.0, 1.0, 0.003),
        (0.0, 0.0, 0.0012, 1.0, 0.0012 / math.sqrt(12)),
        (0.003, 0.004 * math.sqrt(12), 0.0, 1.0, 0.005),
        (0.003, 0.0, 0.004 * math.sqrt(12), 1.0, 0.005),
        (0.003, 0.0, 0.004 * math.sqrt(12), 1.05, 0.00525),
    ],
)
def test_what_a_point_has_alone(u, digit, lsb, gain, alone):
    low, high = Point(0.0, u, 0.0), Point(2.0, u, 2.0 * gain)
    stored = calibration.line(low, high, Meter("m", 0.1, 0.0, digit), lsb)
    assert stored["u1_n"] == stored["u2_n"] == round(alone * 1e9)


def test_an_exact_point_has_nothing_of_the_meter():
    stored = calibration.line(Point(0.0, 0.0, 0.0, True), TWO, METER, 0.0)
    assert (stored["c1_n"], stored["u1_n"]) == (0, 0) and stored["c2_n"] > 0 and stored["u2_n"] > 0


@pytest.mark.parametrize(
    ("low", "high", "meter", "taken"),
    [
        (ONE, Point(1.25, 0, 1.25), METER, False),  # exactly a fifth of the larger
        (ONE, Point(1.26, 0, 1.26), METER, True),
        (Point(-1.0, 0, -1.0), Point(-1.25, 0, -1.25), METER, False),
        (ONE, Point(1.0, 0, 2.0), METER, False),
        (Point(0, 0, 0), Point(1, 0, 0.9), METER, False),
        (Point(0, 0, 0), Point(1, 0, 0.901), METER, True),
        (Point(0, 0, 0), Point(1, 0, 1.1), METER, False),
        (Point(0, 0, 0), Point(1, 0, 1.099), METER, True),
        (ONE, TWO, replace(METER, percent=0), True),
        (ONE, TWO, replace(METER, fixed=0), True),
        (ONE, TWO, replace(METER, percent=0, fixed=0), False),
        (ONE, TWO, replace(METER, digit=0), True),
        (ONE, TWO, replace(METER, digit=-1e-9), False),
        (ONE, TWO, replace(METER, percent=-1e-9), False),
        (ONE, TWO, replace(METER, fixed=-1e-9), False),
        (replace(ONE, rig_u=-1e-9), TWO, METER, False),
        (ONE, replace(TWO, rig_u=-1e-9), METER, False),
        (ONE, replace(TWO, rig_u=math.inf), METER, False),
        (replace(ONE, reference=math.nan), TWO, METER, False),
    ],
)
def test_which_points_make_a_line(low, high, meter, taken):
    if taken:
        calibration.line(low, high, meter, 0.0)
    else:
        with pytest.raises(CalibrationError):
            calibration.line(low, high, meter, 0.0)


@pytest.mark.parametrize(
    ("changed", "good"),
    [
        ({}, True),
        ({"x1_n": 1.0}, False),
        ({"c1_n": 10**12}, True),
        ({"c1_n": 10**12 + 1}, False),
        ({"u2_n": -(10**12) - 1}, False),
        ({"x2_n": 0}, False),
        ({"r2_n": 0}, False),
        ({"x2_n": -(10**9), "r2_n": -(10**9)}, False),  # a gain of 1, and the points are the wrong way round
        ({"r2_n": 1_100_000_000}, False),
        ({"r2_n": 1_099_999_999}, True),
        ({"r2_n": 900_000_000}, False),
        ({"r2_n": 900_000_001}, True),
    ],
)
@pytest.mark.parametrize("quantity", ["V", "I"])
def test_which_stored_lines_are_applied(changed, good, quantity):
    rail = RAIL | {"calibration": {quantity: STORED | changed}}
    assert calibration.of_rail(rail) == (rail["calibration"] if good else {})
    if good:
        calibration.check(rail)
    else:
        with pytest.raises((ValueError, KeyError, TypeError)):
            calibration.check(rail)


@pytest.mark.parametrize("value", [[], "x", 1])
def test_a_calibration_is_an_object(value):
    with pytest.raises(TypeError):
        calibration.check(RAIL | {"calibration": value})


def test_scales_with_and_without_a_line():
    assert calibration.scales(RAIL) == close((195_312.5e-9, 0, 7_812_500e-12, 0, 0))
    moved = STORED | {"r1_n": 10**7, "r2_n": 1_030_000_000}  # gain 1.02, offset 0.01
    lines = calibration.scales(RAIL | {"calibration": {"V": moved}})
    assert lines == close((1.02 * 195_312.5e-9, 0.01, 7_812_500e-12, 0, 0))
    lines = calibration.scales(RAIL | {"calibration": {"I": moved}})
    assert lines == close((195_312.5e-9, 0, 1.02 * 7_812_500e-12, 0.01, 0))


def test_a_chip_that_is_not_known_has_no_limits():
    for rail in (RAIL | {"chip": "?"}, {k: v for k, v in RAIL.items() if k != "chip"}):
        assert chips.limits_raw(rail) is None and chips.expected_noise(rail) is None
        assert not chips.is_zero(rail, 0.0)


def test_the_zero_is_within_five_offsets():
    assert chips.is_zero(RAIL, 4.999e-4) and chips.is_zero(RAIL, -4.999e-4)
    assert not chips.is_zero(RAIL, 5.001e-4) and not chips.is_zero(RAIL, -5.001e-4)
    assert chips.is_zero(RAIL | {"chip": "INA226"}, 4.999e-3)
    ohm = RAIL | {"shunt_uOhm": 1_000_000, "chip": "INA226"}
    assert chips.is_zero(ohm, 5 * 10e-6)


def test_a_check_worked_by_hand():
    stored = line_of(1.0, 0.01)
    meter = replace(METER, digit=0.003 * math.sqrt(12))
    off, u = calibration.residual(stored, Point(2.0, 0.004, 2.5), meter)
    assert off == pytest.approx(-0.49, abs=1e-9)
    assert u == close(2 * math.hypot(calibration.line_uncertainty(stored, 2.01), 0.005))


@pytest.mark.parametrize(
    ("time", "average", "factor"),
    [(0, 0, 1), (1, 0, 84), (2, 0, 150), (3, 0, 280), (4, 0, 540), (5, 0, 1052), (6, 0, 2074), (7, 0, 4120)]
    + [(0, i, 50 * n) for i, n in enumerate((1, 4, 16, 64, 128, 256, 512, 1024))],
)
@pytest.mark.parametrize("chip", ["INA228", "INA229"])
def test_noise_falls_with_the_root_of_the_time(time, average, factor, chip):
    rail = RAIL | {"chip": chip, "adc_config": 0xF000 | 7 << 9 | time << 6 | 5 << 3 | average}
    factor = 50 if (time, average) == (0, 0) else factor
    assert chips.expected_noise(rail) == close(8.6e-6 / 0.01 * math.sqrt(50 / factor))


# ---- leads


@pytest.mark.parametrize(
    ("changed", "good"),
    [
        ({}, True),
        ({"R_n": 0, "u_n": 0}, True),
        ({"R_n": 10**9}, True),
        ({"R_n": 10**9 + 1}, False),
        ({"R_n": -1}, False),
        ({"R_n": 2.0}, False),
        ({"u_n": 10**9 + 1}, False),
        ({"u_n": "1"}, False),
    ],
)
def test_which_stored_leads_are_applied(changed, good):
    stored = {"lead": {"R_n": 30_000_000, "u_n": 1} | changed}
    assert calibration.of_rail(RAIL | {"calibration": stored}) == (stored if good else {})
    assert not calibration.of_rail(RAIL | {"calibration": {"lead": {"R_n": 1}}})
    assert not calibration.of_rail(RAIL | {"calibration": {"lead": 1}})


def test_the_leads_worked_by_hand():
    """5.012 V at the shunt, 5.010 V by the meter; with 2 A more 4.950 and 4.888 V: 60 mV are lost, 30 mOhm. Digits of
    0.1 mV twice, the rig's 10 uV twice, 0.05 % of the 122 mV that the meter moved."""
    meter = Meter("m", 0.05, 0.01, 1e-4)
    stored = calibration.lead(Point(5.012, 1e-5, 5.010), Point(4.950, 1e-5, 4.888), 2.0, meter)
    u = math.sqrt(2 * 1e-8 / 12 + 2e-10 + (0.0005 * 0.122) ** 2 / 3) / 2
    assert stored == {"R_n": 30_000_000, "u_n": round(u * 1e9)}
    rail = RAIL | {"lead_mOhm": 24}
    assert calibration.lead_ohm(rail) == (0.024, None) and calibration.scales(rail)[4] == 0.024
    assert calibration.lead_ohm(rail | {"calibration": {"lead": stored}}) == (0.03, stored["u_n"] / 1e9)
    assert calibration.lead_ohm(RAIL) == calibration.lead_ohm(RAIL | {"lead_mOhm": None}) == (0.0, None)


@pytest.mark.parametrize(
    ("loaded", "amperes", "words"),
    [
        (5.0, 0.19, "too few"),
        (5.0, math.nan, "finite"),
        (math.inf, 1.0, "finite"),
        (2.9, 2.0, "cannot be leads"),  # more than an Ohm
        (5.01, 2.0, "cannot be leads"),  # the meter shows more with the load than the rig does: wrong way round
    ],
)
def test_figures_that_are_no_leads(loaded, amperes, words):
    with pytest.raises(CalibrationError, match=words):
        calibration.lead(Point(5.0, 1e-6, 5.0), Point(5.0, 1e-6, loaded), amperes, METER)
    assert calibration.lead(Point(5.0, 1e-6, 5.0), Point(5.0, 1e-6, 5.0), 0.2, METER)["R_n"] == 0
