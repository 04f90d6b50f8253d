"""virtual/flash/charge_loss.py: the model of retention against its closed forms and against JESD218."""

import math

import numpy as np
import pytest

from ssdrig.virtual.flash import charge_loss
from ssdrig.virtual.flash.presets import PRESETS

YEARS_10 = 87_600
CLASS_HOURS = {"client": 8760.0, "enterprise": 2190 * math.exp(1.1 / 8.617333e-5 * (1 / 303.15 - 1 / 313.15))}


def closed_form(r0: float, wear: float, hours: float) -> float:
    return r0 * ((1 + 9 * wear**1.5) * (1 + (hours / 720) ** 0.8) + 1 - math.exp(-hours / 2))


@pytest.mark.parametrize("drive_class", CLASS_HOURS)
def test_the_error_rate_is_the_closed_form(drive_class):
    assert charge_loss.class_hours(drive_class) == pytest.approx(CLASS_HOURS[drive_class], rel=1e-12)
    r0 = charge_loss.r0(drive_class)
    assert 1e-5 < r0 < 1e-4
    wear, hours = np.meshgrid([0, 0.01, 0.5, 1, 3], [0, 0.5, 2, 720, 8760, 1e6])
    seen = charge_loss.rber(drive_class, wear, hours)
    assert seen == pytest.approx(np.vectorize(closed_form)(r0, wear, hours), rel=1e-12)
    assert (np.diff(seen, axis=0) > 0).all() and (np.diff(seen, axis=1) > 0).all()
    assert charge_loss.rber(drive_class, 0, 0) == r0


@pytest.mark.parametrize("name", PRESETS)
def test_a_worn_out_drive_of_each_preset_just_meets_its_class(name):
    preset = PRESETS[name]
    hours, uber = CLASS_HOURS[preset.drive_class], {"client": 1e-15, "enterprise": 1e-16}[preset.drive_class]

    def lost(wear: float, hours: float) -> float:
        """Share of the codewords that cannot be read."""
        return charge_loss.share_beyond(float(charge_loss.rber(preset.drive_class, wear, hours)), 1e-2)

    assert lost(1, hours) / 32768 == pytest.approx(uber, rel=1e-9)
    assert lost(1, hours) * preset.full_capacity_bytes / 4096 < 0.02  # pages, of the full-size drive
    assert 1e-3 < lost(1, 3 * hours) < 1e-2
    assert lost(1, 0) * preset.full_capacity_bytes < 1e-20
    assert lost(0, YEARS_10) / 32768 < uber and lost(0.1, hours) / 32768 < uber


def test_the_steps_of_the_correction_divide_its_range_evenly():
    steps = np.exp(charge_loss.STEPS) * 3e-3
    assert steps[[0, -1]] == pytest.approx([3e-3, 1e-2]) and len(steps) == 9
    assert np.diff(np.log(steps)) == pytest.approx(np.full(8, math.log(1e-2 / 3e-3) / 8))
    assert charge_loss.share_beyond(3e-3, 3e-3) == 0.5
    assert charge_loss.share_beyond(3e-3, 3e-3 * math.exp(0.2)) == pytest.approx(0.158655, rel=1e-5)
