"""What the conversions see of bursts (selfcheck/coverage.py), in small; and that it is the shipped configuration."""

import numpy as np
import pytest
from test_hardware_firmware import BOARD_PY, firmware_constants

from selfcheck import coverage
from ssdrig.meter import uncertainty


def test_the_configuration_is_that_of_the_board_file():
    rail = firmware_constants(BOARD_PY)["RAILS"][0]
    assert coverage.DEFAULT == (rail["vbus_us"], rail["vshunt_us"], rail["temp_us"])
    assert coverage.SHUNT_uOhm == rail["shunt_uOhm"] and coverage.LSB_pA == rail["current_lsb_pA"]


def test_a_load_is_its_integral():
    load = coverage.load_of(np.array([0.0, 5e6]), np.array([1e6, 2e6]), np.array([3.05, 1.05]))
    assert load.mean(0, 1e6) == pytest.approx(3.05) and load.mean(1e6, 5e6) == pytest.approx(0.05)
    assert load.mean(0, 1e7) == pytest.approx(0.05 + (3.0 + 2.0) / 10)
    assert load.mean_square(0.5e6, 1.5e6) == pytest.approx((3.05**2 + 0.05**2) / 2)


def test_a_steady_load_is_seen_exactly():
    steady = coverage.load_of(np.array([-3e7]), 1.15e9, 1.0)
    measured_W, true_W, limit_W = coverage.seen(steady, coverage.DEFAULT, 3000.0)
    assert measured_W == pytest.approx(true_W, rel=1e-4) == 5.0 and limit_W < 5e-4


@pytest.mark.slow
def test_bursts_of_100_us_lie_within_what_is_stated():
    errors = coverage.errors(coverage.BURSTS_100us, loads=40)
    assert coverage.rms_percent(errors) < 0.7 and coverage.held(errors).mean() >= 0.9
    assert coverage.rms_percent(coverage.errors(coverage.BURSTS_100us, coverage.BEFORE, 20)) > 1


def test_without_the_term_it_does_not_hold(monkeypatch):
    whole = uncertainty.budget
    monkeypatch.setattr(uncertainty, "budget", lambda mean: [t for t in whole(mean) if t.name != "coverage"])
    assert coverage.held(coverage.errors(coverage.by_chance, loads=20)).mean() < 0.5


def test_a_load_in_step_is_not_seen_right():
    """The limit that the README states."""
    assert 0.03 < np.abs(coverage.errors(coverage.in_step, loads=20)[:, 0]).max() < 0.2
