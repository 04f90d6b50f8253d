"""Readings for a calibration: whether they stand still, how certain their mean is, and the noise."""

import math

import numpy as np
import pytest
from calibrations import RAIL, reading

from ssdrig.base.errors import RigError
from ssdrig.rig import calibrate

# ---- readings


def test_still_or_moving():
    dice = np.random.default_rng(1)
    steady = 1.0 + 1e-3 * dice.standard_normal(5000)
    assert calibrate.is_still(steady) and calibrate.is_still(np.full(5000, 3.3))
    assert not calibrate.is_still(steady + np.linspace(0, 1e-3, 5000))
    assert not calibrate.is_still(np.full(5000, 3.3) + np.linspace(0, 3e-4, 5000))
    # one conversion that holds an eighth of the load before: it moves the mean by five times its uncertainty
    straddling = np.random.default_rng(1).normal(0.0, 327e-6, 1350)
    assert calibrate.is_still(straddling)
    straddling[0] += 0.06
    assert not calibrate.is_still(straddling)


def test_the_mean_of_a_wandering_reading_is_less_certain():
    dice = np.random.default_rng(2)
    white = dice.standard_normal(10_000)
    mean, u = calibrate.mean_of(white, 10)
    assert 0.01 <= u < 0.02 and abs(mean) < 4 * u
    wander = np.repeat(dice.standard_normal(10), 1000)
    assert calibrate.mean_of(white * 0.01 + wander, 10)[1] > 0.15  # naive s / sqrt(n) would say 0.01
    with pytest.raises(RigError):
        calibrate.mean_of(white[:19], 10)


def test_noise_figures():
    dice = np.random.default_rng(3)
    noise = calibrate.noise(reading(5e-5 + 2.6e-4 * dice.standard_normal(10_001)))
    assert (noise["seconds"], noise["n"]) == (10, 10_001) and noise["V_sd"] == noise["V_pp"] == 0
    assert noise["I_mean"] == pytest.approx(5e-5, abs=1e-5) and noise["I_sd"] == pytest.approx(2.6e-4, rel=0.03)
    minute = calibrate.noise(reading(2.6e-4 * dice.standard_normal(100_001)))
    # white noise: sd / sqrt(n) of a second
    assert minute["I_allan_1s"] == pytest.approx(2.6e-4 / math.sqrt(1000), rel=0.2)
    assert noise["I_typical"] == pytest.approx(8.6e-6 * math.sqrt(50 / 540) / 0.01)
    ramp = calibrate.noise(reading(np.linspace(0, 1e-4, 10_001)))
    assert ramp["I_drift"] == pytest.approx(0.9e-4, rel=0.01) and ramp["I_allan_1s"] == pytest.approx(
        1e-5 / math.sqrt(2), rel=0.01
    )
    stored = calibrate.stored_noise(noise, RAIL)
    assert stored["I_sd_n"] == round(noise["I_sd"] * 1e9) and stored["adc"] == 0xF500


def test_noise_with_something_connected_is_refused():
    with pytest.raises(RigError, match="no current; seen 20.000 mA"):
        calibrate.noise(reading(np.full(5000, 0.02)))
    with pytest.raises(RigError, match="2 s"):
        calibrate.noise(reading(np.zeros(100)))
