"""Calibration: the line, its uncertainty, and where it is applied."""

import json
import math
import random

import numpy as np
import pytest
import stream
from calibrations import RAIL, power_u, u_of
from chips import ina228_model
from hypothesis import given, settings
from hypothesis import strategies as st
from simboard import ROOT

from ssdrig.base.errors import UsageError
from ssdrig.meter import calibration, samples, wire
from ssdrig.meter.calibration import CalibrationError, Meter, Point, Resistor
from ssdrig.meter.frames import Decoder
from ssdrig.meter.power import mean_power_W
from ssdrig.rig import calibrate
from ssdrig.runs import journal

METER = Meter("Meter 1", percent=0.05, fixed=0.003, digit=0.001)


def line_of(gain, offset, low=0.0, high=5.0, meter=METER, u=0.0):
    """A calibration of a rig whose true value is gain x reading + offset."""
    return calibration.line(Point(low, u, gain * low + offset), Point(high, u, gain * high + offset), meter, 0.0)


# ---- the line and what it is uncertain by


def test_gain_and_offset():
    stored = line_of(1.002, -0.004)
    assert calibration.gain_offset(stored) == pytest.approx((1.002, -0.004), abs=1e-8)
    assert all(isinstance(value, int) for value in stored.values()) and set(stored) == set(calibration.LINE)


def test_points_may_come_in_any_order():
    a, b = Point(0.001, 1e-6, 0.0, True), Point(2.01, 2e-6, 2.0)
    assert calibration.line(a, b, METER, 1e-6) == calibration.line(b, a, METER, 1e-6)


def test_uncertainty_worked_by_hand():
    """Meter +-(0.05 % + 3 mV), last digit 1 mV, points 0 V (meter read there too) and 5 V, rig without noise.
    At 5 V: 5 x 0.0005/sqrt(3) = 1.4434 mV, 3/sqrt(3) = 1.7321 mV, 1/sqrt(12) = 0.2887 mV: root of the squares 2.2730
    mV. At 2.5 V: 0.7217, 1.7321, and 0.2887 x sqrt(1/2) = 0.2041: 1.8875 mV."""
    stored = line_of(1.0, 0.0)
    assert calibration.line_uncertainty(stored, 5.0) == pytest.approx(2.2730e-3, rel=1e-3)
    assert calibration.line_uncertainty(stored, 2.5) == pytest.approx(1.8875e-3, rel=1e-3)
    assert calibration.line_uncertainty(stored, 0.0) == pytest.approx(math.hypot(1.7321e-3, 0.2887e-3), rel=1e-3)


def test_an_exact_zero_has_no_error_of_the_meter():
    stored = calibration.line(Point(0.00008, 1e-6, 0.0, True), Point(2.0, 1e-5, 2.0), METER, 7.8125e-6)
    assert calibration.line_uncertainty(stored, 0.0) == pytest.approx(
        math.hypot(1e-6, 7.8125e-6 / math.sqrt(12)), rel=0.01
    )
    assert calibration.line_uncertainty(stored, 1.0) == pytest.approx(
        math.sqrt((0.0005 / 3**0.5) ** 2 + (0.0015 / 3**0.5) ** 2 + (0.0005 / 12**0.5) ** 2), rel=0.01
    )


def test_beyond_the_points_it_grows():
    stored = line_of(1.0, 0.0, 1.0, 2.0)
    own = [calibration.line_uncertainty({**stored, "g_ppb": 0, "c1_n": 0, "c2_n": 0}, v) for v in (1.5, 2.0, 4.0)]
    assert own[0] < own[1] < own[2] == pytest.approx(math.hypot(2, 3) * 1e-3 / math.sqrt(12), rel=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "meter", "words"),
    [
        (Point(4.9, 0, 4.9), Point(5.0, 0, 5.0), METER, "too near"),
        (Point(0, 0, 0), Point(0, 0, 5.0), METER, "too near"),
        (Point(5, 0, 0), Point(0, 0, 5.0), METER, "too near"),
        (Point(0, 0, 0), Point(5.0, 0, 2.5), METER, "more than 10 %"),
        (Point(0, 0, 0), Point(5, 0, 5), Meter("m", 0, 0, 0.001), "has an uncertainty"),
        (Point(0, -1, 0), Point(5, 0, 5), METER, "has an uncertainty"),
        (Point(math.nan, 0, 0), Point(5, 0, 5), METER, "not a finite"),
    ],
)
def test_figures_that_make_no_calibration(low, high, meter, words):
    with pytest.raises(CalibrationError, match=words):
        calibration.line(low, high, meter, 0.0)


def measured(seed, quantity, value, conversions=60):
    """What a rig with this seed's errors reads at a true value: the register-level model of the chip, noise and all.
    (mean, its standard uncertainty)"""
    dice = random.Random(seed)
    errors = {
        "gain_ppm": dice.uniform(-10_000, 10_000),
        "offset_uV": dice.uniform(-1, 1),
        "vbus_gain_ppm": dice.uniform(-500, 500),
    }
    chip = ina228_model.INA228(lambda *_: (value, 3.0) if quantity == "I" else (0.5, value), 0, **errors)
    chip.write(0x0, 1 << 4, 1_000_000)
    chip.write(0x2, 4096, 1_000_000)
    chip.write(0x1, 0xF500, 1_000_000)
    values = []
    for k in range(conversions):
        chip.advance(1_000_000 + (k + 1) * 740_000)
        values.append(chip.current * 7.8125e-6 if quantity == "I" else chip.vbus * 195.3125e-6)
    return calibrate.mean_of(np.array(values), 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quantity", "points", "meter", "checked"),
    [
        ("I", (0.0, 2.0), Meter("m", 0.05, 0.0002, 0.0001), (0.05, 0.5, 1.5, 3.0)),
        ("V", (1.0, 5.5), Meter("m", 0.03, 0.0005, 0.0001), (3.3, 5.0, 12.0)),
    ],
)
def test_the_truth_lies_within_the_stated_uncertainty(quantity, points, meter, checked):
    """200 rigs with errors drawn over the whole of the data sheet, as many meters with errors drawn over the whole of
    their limits: k = 2 must hold the truth at least 95 times in 100, and must not be wider than it need be."""
    before, after, stated = [], [], []
    for seed in range(200):
        dice = random.Random(1000 + seed)
        percent, fixed = dice.uniform(-meter.percent, meter.percent), dice.uniform(-meter.fixed, meter.fixed)

        def shown(true):
            return round((true * (1 + percent / 100) + fixed) / meter.digit) * meter.digit

        taken = []
        for k, true in enumerate(points):
            exact = quantity == "I" and k == 0
            taken.append(Point(*measured(seed, quantity, true), 0.0 if exact else shown(true), exact))
        lsb = 7.8125e-6 if quantity == "I" else 195.3125e-6
        stored = calibration.line(*taken, meter, lsb)
        gain, offset = calibration.gain_offset(stored)
        for true in checked:
            reading, noise = measured(seed, quantity, true)
            before.append(reading - true)
            after.append(gain * reading + offset - true)
            stated.append(math.hypot(calibration.line_uncertainty(stored, gain * reading + offset), noise))
    before, after, stated = np.array(before), np.array(after), np.array(stated)
    assert (np.abs(after) <= 2 * stated).mean() >= 0.95
    assert 0.6 < np.sqrt(np.mean((after / stated) ** 2)) < 1.15  # neither cautious nor bold
    if quantity == "I":
        assert np.abs(before).mean() > 5 * np.abs(after).mean()
        uncalibrated = np.array([u_of(RAIL, "I", true, volts=0.5) for true in checked] * 200)
        assert (np.abs(before) <= 2 * uncalibrated).mean() >= 0.95


# ---- from figures, and the residual


def figures(meter_at_check=2.5):
    meter = {"name": "Meter 1", "percent": 0.05, "fixed": 0.003, "digit": 0.001}
    points = [
        {"rig": 0.002, "rig_u": 1e-5, "meter": 0.0},
        {"rig": 5.011, "rig_u": 1e-5, "meter": 5.0},
        {"rig": 2.5065, "rig_u": 1e-5, "meter": meter_at_check},
    ]
    return {"V": {"meter": meter, "points": points}}


def test_a_resistor_worked_by_hand():
    """10 Ohm of 0.1 % behind 0.2 Ohm +- 0.05 (k = 1), 5.1 V +- 5.1 mV: 0.5 A; V and leads count twice."""
    amperes, meter = Resistor(10.0, 0.1).current(5.1, 5.1e-3, (0.2, 0.05))
    assert amperes == pytest.approx(0.5) and (meter.fixed, meter.digit) == (0, 0)
    u = math.hypot(0.001 / math.sqrt(3) * 10 / 10.2, 2 * 0.001, 2 * 0.05 / 10.2)
    assert meter.percent == pytest.approx(100 * math.sqrt(3) * u)


def test_a_resistor_needs_a_voltage_and_a_chip_that_is_known():
    for rail, volts in ((RAIL, 0.0), (RAIL, -1.0), (RAIL | {"chip": "INA999"}, 5.0)):
        with pytest.raises(UsageError):
            calibrate.of_resistor(rail, Resistor(10.0, 0.1), volts, 1e-5)


def test_from_figures_with_a_check():
    lines = []
    calibration_ = calibrate.from_figures(
        figures(), {**RAIL, "calibration": {"I": line_of(1.01, 0)}}, "e66", lines.append
    )
    gain, offset = calibration.gain_offset(calibration_["V"])
    assert (gain, offset) == pytest.approx((5.0 / 5.009, -0.002 * 5.0 / 5.009), abs=1e-8)
    assert (
        calibration_["I"] == line_of(1.01, 0)
        and calibration_["board"] == "e66"
        and calibration_["V"]["meter"] == "Meter 1"
        and len(calibration_["V"]["date"]) == 10
    )
    assert "gain -1797 ppm" in lines[0] and "off by +11.0000 mV" in lines[2] and "check at 2.5 V" in lines[3]
    assert (
        len(
            wire.encode(
                wire.CALIBRATE,
                0,
                json.dumps(
                    {"rail": 0, "calibration": {**calibration_, "I": {**calibration_["V"], "meter": "m" * 40}}}
                ).encode(),
            )
        )
        < wire.MAX_COMMAND
    )


def test_a_check_that_fails_keeps_nothing():
    with pytest.raises(UsageError, match="check at 2.6 V"):
        calibrate.from_figures(figures(2.6), RAIL, "e66", lambda words: None)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"P": 1},
        {"V": 1},
        {"V": {"meter": {}, "points": []}},
        {"V": {**figures()["V"], "points": figures()["V"]["points"][:1]}},
        {"V": {**figures()["V"], "meter": {**figures()["V"]["meter"], "name": "x" * 41}}},
    ],
)
def test_figures_that_are_refused(broken):
    with pytest.raises(UsageError):
        calibrate.from_figures(broken, RAIL, "e66", lambda words: None)


def test_the_example_of_the_manual_is_taken():
    text = (ROOT / "hardware/calibration.md").read_text()
    example = json.loads(text[text.index('    {"I"') :].split("\n\n")[0])
    calibration_ = calibrate.from_figures(example, RAIL, "e66", lambda words: None)
    assert calibration.gain_offset(calibration_["I"])[0] == pytest.approx(1.0003 / 1.00924, abs=1e-8)


# ---- where it is applied


def calibrated_hello(**lines):
    hello = json.loads(stream.hello())
    hello["rails"][0]["calibration"] = lines or None
    return json.dumps(hello).encode()


def run_of(tmp_path, hello):
    tape = stream.Tape()
    tape.frame(wire.HELLO, hello)
    tape.frame(wire.ENERGY, stream.energy(0, tape.t_us, 0.0))
    index = 0
    for k in range(20):  # 1 W for 1 s, and the chip's own register says so
        index = tape.stream(1, index, vbus=25_600, current=25_600)
        tape.frame(wire.ENERGY, stream.energy(index, tape.t_us, 0.05 * (k + 1)))
    return samples.load(tape.run(tmp_path))


def test_samples_are_calibrated_once_and_closure_is_not_moved(tmp_path):
    plain = run_of(tmp_path / "plain", calibrated_hello())
    exact = run_of(tmp_path / "exact", calibrated_hello(V=line_of(1.02, 0.1), I=line_of(0.98, -0.001)))
    assert plain.P[0] == 1.0 and plain.V[0] == 5.0
    assert exact.V[0] == pytest.approx(5 * 1.02 + 0.1, abs=1e-7) and exact.I[0] == pytest.approx(
        0.2 * 0.98 - 0.001, abs=1e-7
    )
    assert exact.P == pytest.approx(exact.V * exact.I)
    assert exact.energy_measured_J / plain.energy_measured_J == pytest.approx(exact.P[0], rel=1e-9)
    assert (
        exact.closure.raw_percent == pytest.approx(plain.closure.raw_percent, abs=1e-9)
        and abs(plain.closure.raw_percent) < 0.01
    )
    assert (exact.vbus == plain.vbus).all() and (exact.current == plain.current).all()  # raw stays raw
    assert exact.uncertainty_W(1.0) == pytest.approx(power_u(exact.facts, exact.V.mean(), 1.0), rel=1e-3)
    assert 0 < plain.uncertainty_W(1.0) < 0.02


def test_the_live_figure_is_calibrated_too():
    body = stream.samples(0, np.array([1000, 2000]), [25_600] * 2, [25_600] * 2)
    hello = json.loads(calibrated_hello(V=line_of(1.02, 0.0), I=line_of(0.98, 0.0)))
    assert mean_power_W(body, hello) == pytest.approx(1.02 * 0.98, abs=1e-6)


def decoded(hello):
    tape = stream.Tape()
    tape.frame(wire.HELLO, hello)
    tape.stream(2)
    decoder = Decoder()
    decoder.feed(tape.records())
    return decoder


@pytest.mark.parametrize(
    "stored",
    [
        "no",
        1,
        [],
        {"V": 1},
        {"V": {}},
        {"V": {**line_of(1, 0), "x2_n": 0}},
        {"I": {**line_of(1, 0), "r2_n": 1}},
        {"V": {**line_of(1, 0), "u1_n": "1"}},
        {"V": {**line_of(1, 0), "r2_n": 10**30}},
    ],
)
def test_a_calibration_that_cannot_be_one_is_counted_and_not_applied(stored):
    hello = json.loads(stream.hello())
    hello["rails"][0]["calibration"] = stored
    decoder = decoded(json.dumps(hello).encode())
    assert decoder.counts["malformed"] == (1 if stored else 0)
    power = samples.assemble(decoder.frames(0), decoder.boots, decoder.counts, 0)
    assert (power.P == 1.0).all() and len(power.P) == 100
    assert power.uncertainty_W(1.0) == pytest.approx(power_u(RAIL, 5.0, 1.0), rel=1e-3)


ANYTHING = st.recursive(  # that JSON can say: a hello with other numbers is damage (test_messages.py)
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["V", "I", *calibration.LINE]), x),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(ANYTHING)
def test_no_calibration_stops_the_decoding(stored):
    hello = json.loads(stream.hello())
    hello["rails"][0]["calibration"] = stored
    decoder = decoded(json.dumps(hello).encode())
    power = samples.assemble(decoder.frames(0), decoder.boots, decoder.counts, 0)
    applied = [quantity for quantity in ("V", "I") if calibration.of_rail(power.facts).get(quantity)]
    assert len(power.P) == 100 and (power.P == 1.0).all() == (not applied)


def test_a_hello_of_another_protocol_is_left_out():
    assert decoded(stream.hello()).boots[-1].boot == 1
    assert decoded(stream.hello(protocol=9)).boots[-1].boot is None


def test_a_run_folder_keeps_the_calibration(tmp_path):
    power = run_of(tmp_path, calibrated_hello(V=line_of(1.02, 0)))
    assert power.facts["calibration"]["V"] == line_of(1.02, 0) and journal.SCHEMA == 1
