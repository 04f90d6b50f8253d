"""Temperature of the virtual drive, and its throttling. SIMULATED; pure.

First order: towards AMBIENT_C + power x K/W with a time constant. The drive slows down at the thresholds of its maker
(light at the warning temperature, heavy at the critical one) and at those that a host has set (NVM Express Base
Specification 1.4, feature 10h, Host Controlled Thermal Management), whichever ask for more, until it is HYSTERESIS_K
cooler (assumed).

The state is a flat dict (cold()): temperature_C; warm_s, hot_s above the maker's thresholds; level 0, 1 or 2 by its
maker, and throttled_count, how often that rose; tmt_level by the host, with tmt1_count, tmt2_count, tmt1_s, tmt2_s as
log page 02h has them."""

import math

from ssdrig.virtual.flash.presets import Preset

AMBIENT_C = 25.0
WARNING_C, CRITICAL_C = 70, 80
HYSTERESIS_K = 3.0
LEAST_TMT_C, MOST_TMT_C = 35, 79  # what a host may set


def cold() -> dict:
    """A drive that was off for long."""
    counts = ("level", "throttled_count", "tmt_level", "tmt1_count", "tmt2_count")
    return (
        {"temperature_C": AMBIENT_C}
        | dict.fromkeys(("warm_s", "hot_s", "tmt1_s", "tmt2_s"), 0.0)
        | dict.fromkeys(counts, 0)
    )


def next_temperature_C(temperature_C: float, power_W: float, dt_s: float, K_per_W: float, tau_s: float) -> float:
    """Exact for constant power over dt_s."""
    target = AMBIENT_C + power_W * K_per_W
    return target + (temperature_C - target) * math.exp(-dt_s / tau_s)


def next_level(temperature_C: float, level: int, light_C: float | None, heavy_C: float | None) -> int:
    """0, 1 or 2 after `level`: up at a threshold (None: not set), down HYSTERESIS_K below it."""
    entries = 0
    for number, threshold_C in ((1, light_C), (2, heavy_C)):
        if threshold_C is not None and temperature_C >= threshold_C - (HYSTERESIS_K if level >= number else 0):
            entries = number
    return entries


def step(
    p: Preset, state: dict, power_W: float, dt_s: float, powered: bool, tmt_C: tuple[float | None, float | None]
) -> dict:
    """The state after dt_s at power_W. tmt_C: the host's thresholds."""
    celsius = state["temperature_C"]
    out = state | {"temperature_C": next_temperature_C(celsius, power_W, dt_s, p.K_per_W, p.thermal_tau_s)}
    if not powered:
        return out | {"level": 0, "tmt_level": 0}
    out["warm_s"] += dt_s * (celsius >= WARNING_C)
    out["hot_s"] += dt_s * (celsius >= CRITICAL_C)
    if state["tmt_level"]:
        out[f"tmt{state['tmt_level']}_s"] += dt_s
    out["level"] = next_level(out["temperature_C"], state["level"], WARNING_C, CRITICAL_C)
    out["throttled_count"] += out["level"] > state["level"]
    out["tmt_level"] = next_level(out["temperature_C"], state["tmt_level"], *tmt_C)
    if out["tmt_level"] > state["tmt_level"]:
        out[f"tmt{out['tmt_level']}_count"] += 1
    return out


def speed(p: Preset, state: dict) -> float:
    """Share of its NAND's speed at which the drive works."""
    return (1.0, *p.throttle_shares)[max(state["level"], state["tmt_level"])]
