"""For tests of calibrations: a rail and a meter, and what its budget says."""

import math

import numpy as np

from ssdrig.meter import uncertainty
from ssdrig.rig import calibrate

RAIL = {
    "rail": 0,
    "name": "5 V",
    "chip": "INA228",
    "config": 0,
    "shunt_uOhm": 10_000,
    "shunt_tolerance_ppm": 10_000,
    "current_lsb_pA": 7_812_500,
    "vbus_lsb_nV": 195_312.5,
    "adc_config": 0xF500,
    "shunt_cal": 4096,
    "conversion_ns": 740_000,
    "shunt_ns": 540_000,
    "calibration": None,
}


def reading(amperes, rail=RAIL):
    t_ns = (np.arange(len(amperes)) * 1e6).astype(np.int64)
    return calibrate.Reading(rail, t_ns, np.full(len(amperes), 5.0), amperes, None)


def power_u(rail: dict, volts: float, watts: float) -> float:
    """Expanded uncertainty of a mean power alone, W."""
    return uncertainty.expanded_W([uncertainty.Mean(rail, volts, watts)])


def term(rail: dict, volts: float, watts: float, name: str) -> float:
    """One term of its budget, W."""
    return next(t.u_W for t in uncertainty.budget(uncertainty.Mean(rail, volts, watts)) if t.name == name)


def u_of(rail: dict, quantity: str, value: float, volts: float = 0.0) -> float:
    """Standard uncertainty of a voltage (V), or of a current (A) at so many volts."""
    chip = uncertainty.chips.of(rail)
    if quantity == "V":
        return math.hypot(*(t.u_W for t in uncertainty._volts(rail, chip, value)))
    return math.hypot(*(t.u_W for t in uncertainty._amperes(rail, chip, value, volts)))
