"""For tests of calibrations: a rail and a meter."""

import numpy as np

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
    "calibration": None,
}


def reading(amperes, rail=RAIL):
    t_ns = (np.arange(len(amperes)) * 1e6).astype(np.int64)
    return calibrate.Reading(rail, t_ns, np.full(len(amperes), 5.0), amperes, None)
