"""How long a rail rises when its switch closes: the gate resistor charges the ramp capacitor from the gate supply, and
the FETs follow it less their threshold."""

import math

BOARD_kOhm, BREAKOUT_kOhm = {3300: 220.0, 5000: 150.0, 12000: 62.0}, {3300: 75.0, 5000: 75.0}  # gate_resistor, by mV
STUDY_ms = {3300: 2.92, 5000: 3.15, 12000: 3.92}  # 10 to 90 % on the board, by mV: hardware/spice/README.md, By rail
WHOLE_ms = {mV: ms / 0.8 for mV, ms in STUDY_ms.items()}  # from nothing to the full voltage, if it rises evenly
# hardware/values.csv: fet_vth_min, fet_vth_max; gate_capacitor, its tolerance and 1 % of the gate resistor, and what
# the FETs' own capacitance adds at most
THRESHOLD_V, RAMP_uF = (1.35, 2.35), (0.1 * 0.95 * 0.99, 0.1 * 1.05 * 1.01 + 0.012)
VOLTS_PART, STUDY_PART = 0.05, 0.05  # of the rail's supply; by which the study may differ from the formula


def rise_ms(gate_kOhm: float, ramp_uF: float, gates_V: float, threshold_V: float, volts: float) -> float:
    """From 10 to 90 % of a rail without load.

    gates_V: the gate supply
    volts: of the rail"""
    drive_V = gates_V - threshold_V
    return gate_kOhm * ramp_uF * math.log((drive_V - 0.1 * volts) / (drive_V - 0.9 * volts))


def ends_ms(gate_kOhm: float, gates_V: float, gates_part: float, volts: float) -> tuple[float, float]:
    """The shortest and the longest rise that the parts' tolerances allow.

    gates_part: by which the gate supply may be off"""
    shortest, longest = (
        rise_ms(gate_kOhm, uF, gates_V * (1 + sign * gates_part), threshold_V, volts * (1 - sign * VOLTS_PART))
        for sign, uF, threshold_V in zip((1, -1), RAMP_uF, THRESHOLD_V, strict=True)
    )
    return (1 - STUDY_PART) * shortest, (1 + STUDY_PART) * longest
