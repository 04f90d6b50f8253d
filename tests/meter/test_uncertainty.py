"""The uncertainty budget: each term worked by hand, what rails share, the window's own, and simulated rigs."""

import math

import numpy as np
import pytest
from calibrations import RAIL, power_u, term, u_of
from test_calibration import METER

from selfcheck import uncertainty as bench
from ssdrig.meter import calibration, chips
from ssdrig.meter.calibration import Meter, Point
from ssdrig.meter.uncertainty import Mean, budget, deviation_W, expanded_W

ROOT3, ROOT12 = math.sqrt(3), math.sqrt(12)
STORED = {"x1_n": 0, "x2_n": 10**9, "r1_n": 0, "r2_n": 10**9} | dict.fromkeys(
    ("c1_n", "c2_n", "u1_n", "u2_n", "g_ppb"), 1
)


def close(value: float):
    return pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "u"),
    [
        ("bus offset", 2.5e-3 / ROOT3),
        ("bus gain", 5 * 500e-6 / ROOT3),
        ("bus, chip's supply", 1.1e-3 * 0.1 / 3),
        ("bus offset, drift", 20e-6 * 10 / 3),
        ("bus gain, drift", 5 * 20e-6 * 10 / 3),
        ("bus, last digit", 195.3125e-6 / ROOT12),
        ("shunt tolerance", 5 * 2 * 0.01 / ROOT3),
        ("shunt offset", 5 * 1e-6 / 0.01 / ROOT3),
        ("shunt gain", 5 * 2 * 500e-6 / ROOT3),
        ("shunt, chip's supply", 5 * 0.5e-6 / 0.01 * 0.1 / 3),
        ("shunt, rail's voltage", 5 * 20e-9 * 5 / 0.01 / ROOT3),
        ("shunt offset, drift", 5 * 10e-9 / 0.01 * 10 / 3),
        ("shunt gain, drift", 5 * 2 * 20e-6 * 10 / 3),
        ("shunt, temperature", 5 * 2 * 75e-6 * 10 / 3),
        ("shunt, its own heat", 5 * 2 * 75e-6 * 100 * 0.01 * 4 / ROOT3),  # 4 degrees
        ("thermal EMF", 5 * 0.9e-6 / 0.01 / ROOT3),
        ("current, last digit", 5 * 7.8125e-6 / ROOT12),
        ("leads", 0.0),
    ],
)
def test_terms_of_an_uncalibrated_rail_at_5_V(name, u):
    """2 A, so that a volt counts twice and an ampere five times; 10 mOhm of 1 %, no leads."""
    assert term(RAIL, 5.0, 10.0, name) == close(u if name.startswith(("shunt", "thermal", "current")) else 2 * u)


def test_the_budget_is_the_root_of_its_squares():
    mean = Mean(RAIL, 5.0, 10.0)
    terms = budget(mean)
    assert len(terms) == len({t.name for t in terms}) == 19 and all(t.shared is None for t in terms)
    assert expanded_W([mean]) == close(2 * math.sqrt(sum(t.u_W**2 for t in terms)))
    assert expanded_W([mean]) == pytest.approx(2 * 5 * 2 * 0.01 / ROOT3, rel=0.02)  # the shunt's 1 % is nearly all
    assert expanded_W([Mean(RAIL, 0.0, 0.0)]) == expanded_W([Mean(RAIL, 0.0, 2.0)]) == 0.0


def test_an_idle_drive_on_3V3():
    """50 mW: offset, EMF and the shunt's 1 % count about equally; the bound is below a milliwatt."""
    rail = RAIL | {"shunt_uOhm": 8000, "current_lsb_pA": 9_765_625, "lead_mOhm": 14}
    assert 0.5e-3 < expanded_W([Mean(rail, 3.3, 0.05)]) < 1e-3


def test_leads_are_known_to_a_half_or_as_measured():
    """24 mOhm at 3 A lose 216 mW: +-108 mW / sqrt(3); copper's 0.39 % of a degree over 10 degrees 4.9 mW."""
    rail = RAIL | {"lead_mOhm": 24}
    assert term(rail, 5.0, 15.0, "leads") == close(9 * 0.012 / ROOT3)
    assert term(rail, 5.0, 15.0, "leads, temperature") == close(9 * 0.024 * 0.039 / ROOT3)
    rail["calibration"] = {"lead": {"R_n": 30_000_000, "u_n": 200_000}}
    assert term(rail, 5.0, 15.0, "leads") == close(9 * 0.2e-3)
    assert calibration.lead_ohm(rail) == (0.03, 0.0002)
    # with leads an ampere counts V - I R, and the chip's voltage is that at the shunt
    assert term(rail, 5.0, 15.0, "shunt tolerance") == close((5 - 3 * 0.03) * 3 * 0.01 / ROOT3)
    assert term(rail, 5.0, 15.0, "bus gain") == close(3 * 5.09 * 500e-6 / ROOT3)


@pytest.mark.parametrize("tolerance", [None, 0])
def test_a_shunt_of_unknown_tolerance_is_one_of_a_percent(tolerance):
    assert power_u(RAIL | {"shunt_tolerance_ppm": tolerance}, 5.0, 5.0) == power_u(RAIL, 5.0, 5.0)
    assert power_u(RAIL | {"shunt_tolerance_ppm": 5000}, 5.0, 5.0) < 0.6 * power_u(RAIL, 5.0, 5.0)


def test_the_worse_chip():
    assert term(RAIL | {"chip": "INA226"}, 5.0, 10.0, "shunt offset") == close(5 * 10e-6 / 0.01 / ROOT3)
    assert term(RAIL | {"chip": "INA226"}, 5.0, 10.0, "current, last digit") == close(5 * 2.5e-6 / 0.01 / ROOT12)
    assert power_u(RAIL | {"chip": "INA229"}, 5.0, 5.0) == power_u(RAIL, 5.0, 5.0)
    assert math.isnan(power_u(RAIL | {"chip": "?"}, 5.0, 5.0))
    assert math.isnan(expanded_W([Mean(RAIL, 5.0, 5.0), Mean({"chip": None}, 5.0, 5.0)]))


def test_terms_of_a_calibrated_rail():
    """At 2 V and 2 A of points at 0 and 1: weights -1 and 2. What the points measured is no longer unknown; the EMF was
    another one at each of them, and the shunt is warmer than at 1 A."""
    stored = STORED | {"meter": "m", "u1_n": 3_000_000, "u2_n": 2_000_000, "c1_n": 10**6, "c2_n": 4 * 10**6}
    stored["g_ppb"] = 500_000
    rail = RAIL | {"calibration": {"V": stored, "I": stored}}
    named = {t.name: t for t in budget(Mean(rail, 2.0, 4.0))}
    for quantity in ("V", "I"):
        assert named[f"{quantity}, calibration's points"].u_W == close(2 * 0.005)
        fixed, percent = (named[f"{quantity}, meter's {part}"] for part in ("fixed part", "percentage"))
        assert (fixed.u_W, fixed.shared) == (close(2 * 0.007), ("m", quantity, "fixed"))
        assert (percent.u_W, percent.shared) == (close(2 * 0.001), ("m", quantity, "percent"))
    assert not {"shunt tolerance", "shunt offset", "shunt gain", "bus offset", "bus gain"} & set(named)
    assert named["thermal EMF"].u_W == close(2 * 0.9e-6 / 0.01 * math.sqrt((1 + 1 + 4) / 3))
    assert named["shunt, its own heat"].u_W == close(2 * 2 * 75e-6 * 100 * 0.01 * (4 - 1) / ROOT3)


def test_a_calibration_makes_it_better_and_drift_remains():
    points = Point(0, 1e-6, 0.0, True), Point(2, 1e-6, 2)
    calibrated = RAIL | {"calibration": {"I": calibration.line(*points, Meter("m", 0.01, 0.0001, 1e-5), 0)}}
    assert u_of(calibrated, "I", 1.0) < u_of(RAIL, "I", 1.0) / 10
    assert u_of(calibrated, "I", 1.0) > calibration.line_uncertainty(calibrated["calibration"]["I"], 1.0)


# ---- several rails


def rail_calibrated(meter: Meter, number: int) -> dict:
    lines = {
        "V": {**calibration.line(Point(1, 1e-6, 1.0), Point(12, 1e-6, 12.0), meter, 0), "meter": meter.name},
        "I": {**calibration.line(Point(0, 1e-6, 0.0, True), Point(2, 1e-6, 2.0), meter, 0), "meter": meter.name},
    }
    return {**RAIL, "rail": number, "calibration": lines}


def test_shunts_are_independent_of_each_other():
    u = [power_u(RAIL, v, w) for v, w in ((5.0, 2.0), (12.0, 6.0))]
    assert expanded_W([Mean(RAIL, 5.0, 2.0), Mean(RAIL, 12.0, 6.0)]) == close(math.hypot(*u))


def test_one_meter_s_errors_add_up_two_meters_do_not():
    """A meter of 0.5 % whose own error is all there is: both rails read wrong by the same share."""
    a, b = Meter("A", 0.5, 0, 0), Meter("B", 0.5, 0, 0)
    u = [power_u(rail_calibrated(a, n), v, w) for n, (v, w) in enumerate(((5.0, 2.0), (12.0, 6.0)))]
    assert u[1] == pytest.approx(2 * 6.0 * math.hypot(0.005, 0.005) / ROOT3, rel=0.05)
    one = expanded_W([Mean(rail_calibrated(a, 0), 5.0, 2.0), Mean(rail_calibrated(a, 1), 12.0, 6.0)])
    two = expanded_W([Mean(rail_calibrated(a, 0), 5.0, 2.0), Mean(rail_calibrated(b, 1), 12.0, 6.0)])
    assert two == close(math.hypot(*u))
    assert one == pytest.approx(u[0] + u[1], rel=0.01) and one < u[0] + u[1]


def test_one_meter_s_volts_and_amperes_are_independent():
    rail = rail_calibrated(METER, 0)
    expected = 2 * math.hypot(0.4 * u_of(rail, "V", 5.0), 5.0 * u_of(rail, "I", 0.4, volts=5.0))
    assert power_u(rail, 5.0, 2.0) == pytest.approx(expected, rel=1e-6)


# ---- the window


def test_coverage_is_what_the_hello_says():
    assert chips.coverage(RAIL | {"shunt_ns": 1_052_000, "conversion_ns": 1_102_000}) == close(1052 / 1102)
    assert math.isnan(chips.coverage(RAIL | {"shunt_ns": None}))
    assert chips.coverage(RAIL | {"chip": "INA226", "shunt_ns": 370_000}) == 0.5
    assert chips.coverage(RAIL | {"shunt_ns": 741_000}) == 1.0


def test_the_window_s_own_terms():
    """900 samples that differ by 0.9 W rms, seen 540 of 740 us: 0.9 x sqrt(200 / 740) / 30 W."""
    named = {t.name: t.u_W for t in budget(Mean(RAIL, 5.0, 5.0, 900, 0.9))}
    assert named["coverage"] == close(0.03 * math.sqrt(200 / 740))
    noise_A = 8.6e-6 * math.sqrt(50 / 540) / 0.01
    assert named["noise"] == close(math.hypot(5 * noise_A, 1.9e-3) / 30)
    assert not {"coverage", "noise"} & {t.name for t in budget(Mean(RAIL, 5.0, 5.0))}
    unknown = RAIL | {"chip": "INA226", "shunt_ns": None}
    assert not {"coverage", "noise"} & {t.name for t in budget(Mean(unknown, 5.0, 5.0, 900, 0.9))}


def test_deviation_of_sums():
    watts = np.array([1.0, 2.0, 4.0, 4.5])
    assert deviation_W(4, watts.sum(), (watts**2).sum()) == close(watts.std())
    assert deviation_W(0, 0.0, 0.0) == 0.0 and deviation_W(3, 3.0, 3.0 - 1e-15) == 0.0


# ---- simulated rigs


@pytest.mark.parametrize("calibrated", [True, False])
def test_the_truth_lies_inside(calibrated):
    """600 rigs of the bench's 10 000: 94 % less three of their own standard deviations; a budget without the shunt's
    tolerance or, calibrated, the meter, does not hold."""
    for n, held in bench.inside(600, calibrated).values():
        assert held / n > 0.95 - 3 * math.sqrt(0.05 * 0.95 / n)


def test_a_budget_that_forgets_a_term_is_found(monkeypatch):
    whole = bench.uncertainty.budget

    def without(name):
        return lambda mean: [t for t in whole(mean) if not t.name.endswith(name)]

    for name, calibrated, what in (
        ("shunt tolerance", False, "5 mA to 3 A"),
        ("thermal EMF", True, "50 mW on 3.3 V"),
        ("shunt offset", False, "50 mW on 3.3 V"),
        ("meter's percentage", True, "5 mA to 3 A"),
    ):
        monkeypatch.setattr(bench.uncertainty, "budget", without(name))
        n, held = bench.inside(600, calibrated)[what]
        assert held / n < 0.94, name


@pytest.mark.parametrize(
    ("now_nA", "was_nA", "adds_uA", "limit_uA"),
    [(0, None, 0, 0), (100_000, None, 50, 50), (100_000, 100_000, 0, 10), (100_000, 0, 50, 50), (0, 100_000, -50, 50)],
)
def test_the_fast_channels_amplifier_is_corrected_and_stated(now_nA, was_nA, adds_uA, limit_uA):
    """90 uA at 12 V, less below; a calibration that was made with it has it in its offset."""
    rail = RAIL | {"amplifier_nA": now_nA}
    bare = RAIL
    if was_nA is not None:
        line = STORED | ({"amplifier_nA": was_nA} if was_nA else {})
        rail, bare = rail | {"calibration": {"I": line}}, RAIL | {"calibration": {"I": STORED}}
    assert calibration.scales(bare)[3] - calibration.scales(rail)[3] == pytest.approx(adds_uA * 1e-6, abs=1e-12)
    named = {t.name: t.u_W for t in budget(Mean(rail, 5.0, 10.0))}
    assert named.get("fast channel's amplifier", 0.0) == pytest.approx(5 * limit_uA * 1e-6 / ROOT3)


@pytest.mark.parametrize("calibrated", [True, False])
def test_rigs_with_the_fast_channel_hold_what_they_state(calibrated):
    percent, stated_mW = bench.with_amplifier(500, calibrated)
    assert percent >= 93 and stated_mW < 1


def test_rigs_calibrated_by_a_resistor_alone_hold_what_they_state():
    percent, stated = bench.by_resistor(600)
    assert percent >= 93 and stated < 0.5


@pytest.mark.parametrize("watts, most", bench.LOW_EMF_LEAST.items())
def test_a_shunt_of_little_thermal_emf_makes_idle_honest(watts, most):
    percent, stated = bench.low_emf(1000, watts)
    assert 93 <= percent <= 98 and stated <= most
    assert bench.low_emf(200, watts, seed=2)[1] == pytest.approx(stated, rel=0.1)


def test_the_rail_says_its_shunts_thermal_emf():
    low = RAIL | {"shunt_emf_nV_per_C": 200}
    assert term(low, 5.0, 10.0, "thermal EMF") == close(term(RAIL, 5.0, 10.0, "thermal EMF") / 15)
