"""Calibration of a rail: gain and offset from two points against a reference meter, and their uncertainty; the
resistance of its leads from two more.

A rail's readings x (raw x LSB, in V or A) become Y = r1 + (r2 - r1) (x - x1) / (x2 - x1), the line through the two
points, r being what the meter showed. Uncertainties follow the GUM (JCGM 100:2008), k = 1 unless marked "expanded"
(k = 2):

    type A (4.2)   the mean of the rig's readings at a point: s / sqrt(n) of its blocks; also its resolution,
                   LSB / sqrt(12)
    type B (4.3.7) the meter's limits +-a are rectangular: a / sqrt(3); its last digit d: d / sqrt(12) (F.2.2.1)
    combined (5.1.2, 5.2.2) at a reading x, with the weights w1 = (x2 - x) / (x2 - x1) and w2 = 1 - w1:
                   u2(Y) = (Y g)2 + (w1 c1 + w2 c2)2 + (w1 u1)2 + (w2 u2)2
                   g: the meter's limit in percent of reading, an error that both points have in common; c: its fixed
                   limit, in common too (0 for a point that is exactly zero because nothing is connected); u: what each
                   has alone

The sensor senses the voltage at the shunt. What leads and contacts lose on the way to the drive, I R, is subtracted;
R = ((S1 - r1) - (S0 - r0)) / (I1 - I0), S the rig's voltage and r the meter's at the drive's connector, with and
without a load: offsets of both fall out.

What chip, shunt and leads may do since, and what stands for a calibration where there is none, is uncertainty.py's. All
that is stored is integers, so that the board, whose floats are single precision, keeps it exactly.
"""

import math
from dataclasses import dataclass

NANO = 1e9
EXPANDED = 2.0  # k of an expanded uncertainty: about 95 %
MOST_LEAD_OHM = 1.0  # of a lead, at most
LEAST_SPAN = 0.2  # two points nearer than this part of the larger make a gain of the meter's digits
LEAST_LOAD_A = 0.2
# of the current of the fast channel's amplifier, how far it is from that of its calibration: 90 uA +- 10 % in TI's
# answer on the INA240's table, e2e.ti.com/support/amplifiers-group/amplifiers/f/amplifiers-forum/1431170
AMPLIFIER_PART = 0.1
MOST_AMPLIFIER_nA = 1_000_000
# of what the threshold of a low range gives the rail past its sensor: its resistor's 5 % and its zener's; and what the
# sensor's switch takes (hardware/frontend)
FEED_PART, SWITCH_A = 0.1, 1e-8
LINE = (
    "x1_n",
    "x2_n",
    "r1_n",
    "r2_n",
    "c1_n",
    "c2_n",
    "u1_n",
    "u2_n",
    "g_ppb",
)  # integers of a stored line, see line()


class CalibrationError(ValueError):
    """The figures cannot make a calibration; the text names them and the reason."""


@dataclass(frozen=True)
class Meter:
    """The reference meter on the range in use; limits from its manual, in percent of reading and in V or A."""

    name: str  # make, model and serial number
    percent: float
    fixed: float
    digit: float  # of the last place shown


@dataclass(frozen=True)
class Resistor:
    """A resistor of four terminals at the drive's connector, in place of an ammeter; its limit in percent, warm."""

    ohm: float
    percent: float

    def current(self, sensed_V: float, u_V: float, lead: tuple[float, float]) -> tuple[float, Meter]:
        """Current (A) at a rail's voltage after the shunt, and the error of the meter. u_V: standard uncertainty of
        that voltage; lead: resistance between shunt and resistor and its own, in Ohm. The rail's power is made of the
        same voltage and lead again, so their error counts twice here: u(2x) <= hypot(u(x), 2 u(x))."""
        whole_ohm = self.ohm + lead[0]
        own = self.percent / 100 * self.ohm / whole_ohm / math.sqrt(3)
        u = math.hypot(own, 2 * u_V / sensed_V, 2 * lead[1] / whole_ohm)
        name = f"resistor {self.ohm:g} Ohm {self.percent:g} %"
        return sensed_V / whole_ohm, Meter(name, 100 * math.sqrt(3) * u, 0.0, 0.0)


@dataclass(frozen=True)
class Point:
    """One point in V or A: the rig's reading (mean and its standard uncertainty), the true value."""

    rig: float
    rig_u: float
    reference: float
    exact: bool = False  # the reference is zero by construction (nothing connected), not by the meter


def line(low: Point, high: Point, meter: Meter, lsb: float) -> dict:
    """The stored form of one quantity: integers, in 1e-9 of V or A, x in 1e-9 too. Raises CalibrationError."""
    for value in (
        low.rig,
        low.rig_u,
        low.reference,
        high.rig,
        high.rig_u,
        high.reference,
        meter.percent,
        meter.fixed,
        meter.digit,
    ):
        if not math.isfinite(value):
            raise CalibrationError(f"{value} is not a finite number")
    if min(meter.percent, meter.fixed, meter.digit, low.rig_u, high.rig_u) < 0 or (
        meter.percent == 0 and meter.fixed == 0
    ):
        raise CalibrationError("a meter has an uncertainty: give its limits from its manual, above 0")
    low, high = sorted((low, high), key=lambda p: p.reference)
    if (
        high.reference - low.reference <= LEAST_SPAN * max(abs(low.reference), abs(high.reference))
        or high.rig <= low.rig
    ):
        raise CalibrationError(
            f"the points {low.reference:g} and {high.reference:g} are too near to each other for a gain"
        )
    gain = (high.reference - low.reference) / (high.rig - low.rig)
    if not 0.9 < gain < 1.1:
        seen = f"the rig reads {high.rig - low.rig:g} where the meter reads {high.reference - low.reference:g}"
        raise CalibrationError(f"{seen}: more than 10 % apart; wrong range, rail or unit?")

    def alone(point):
        digit = 0 if point.exact else meter.digit
        return math.sqrt(digit**2 / 12 + gain**2 * (point.rig_u**2 + lsb**2 / 12))

    def common(point):
        return 0.0 if point.exact else meter.fixed / math.sqrt(3)

    whole = {
        "x1_n": low.rig,
        "x2_n": high.rig,
        "r1_n": low.reference,
        "r2_n": high.reference,
        "c1_n": common(low),
        "c2_n": common(high),
        "u1_n": alone(low),
        "u2_n": alone(high),
    }
    return {
        **{name: round(value * NANO) for name, value in whole.items()},
        "g_ppb": round(meter.percent / 100 / math.sqrt(3) * NANO),
    }


def check(rail: dict) -> None:
    """ValueError, KeyError or TypeError unless a rail's calibration, if any, is one that can be applied: a rig may say
    anything."""
    lines = rail.get("calibration")
    if lines is None:
        return
    if not isinstance(lines, dict):
        raise TypeError("a calibration is an object")
    for quantity in ("V", "I"):
        stored = lines.get(quantity)
        if stored is None:
            continue
        if any(not isinstance(stored[name], int) or abs(stored[name]) > 1e12 for name in LINE):
            raise ValueError("a calibration holds integers")
        if (
            stored["x2_n"] <= stored["x1_n"]
            or stored["r2_n"] <= stored["r1_n"]
            or not 0.9 < gain_offset(stored)[0] < 1.1
        ):
            raise ValueError("a calibration corrects by at most 10 %")
        if not 0 <= stored.get("amplifier_nA", 0) <= MOST_AMPLIFIER_nA:
            raise ValueError(f"an amplifier takes 0 to {MOST_AMPLIFIER_nA} nA")
    lead = lines.get("lead")
    if lead is not None and any(
        not isinstance(lead[name], int) or not 0 <= lead[name] <= MOST_LEAD_OHM * NANO for name in ("R_n", "u_n")
    ):
        raise ValueError("a lead is 0 to 1 Ohm, in integers")


def of_rail(rail: dict) -> dict:
    """A rail's calibration; empty where it has none, or one that cannot be applied: better uncalibrated than
    nothing."""
    try:
        check(rail)
    except (ValueError, KeyError, TypeError):
        return {}
    return rail.get("calibration") or {}


def gain_offset(stored: dict) -> tuple[float, float]:
    """Y = gain x + offset (V or A) of a stored line."""
    gain = (stored["r2_n"] - stored["r1_n"]) / (stored["x2_n"] - stored["x1_n"])
    return gain, (stored["r1_n"] - gain * stored["x1_n"]) / NANO


def scales(rail: dict) -> tuple[float, float, float, float, float]:
    """(V per LSB, V offset, A per LSB, A offset, Ohm of the leads) of a rail of the hello: what turns its raw integers
    into amperes and volts at the drive, calibrated where it is: V = VBUS x scale + offset - I x Ohm. The only place
    where that is decided."""
    lines = of_rail(rail)
    v_gain, v_offset = gain_offset(lines["V"]) if lines.get("V") else (1.0, 0.0)
    i_gain, i_offset = gain_offset(lines["I"]) if lines.get("I") else (1.0, 0.0)
    v_scale, i_scale = rail["vbus_lsb_nV"] * 1e-9 * v_gain, rail["current_lsb_pA"] * 1e-12 * i_gain
    more_A = (rail.get("feed_nA") or 0) / NANO - amplifier_A(rail)[0]
    return v_scale, v_offset, i_scale, i_offset + more_A, lead_ohm(rail)[0]


def amplifier_A(rail: dict) -> tuple[float, float]:
    """What the fast channel's amplifier adds to a rail's calibrated current, and the limit +- of that, in A. It takes
    0 to amplifier_nA through the shunt, by the rail's voltage: a calibration that was made with it has it in its
    offset."""
    now = rail.get("amplifier_nA") or 0
    was = (of_rail(rail).get("I") or {}).get("amplifier_nA", 0)
    limit = AMPLIFIER_PART * now if now == was else (now + was) / 2
    return (now - was) / 2 / NANO, limit / NANO


def lead_ohm(rail: dict) -> tuple[float, float | None]:
    """Resistance in Ohm between a rail's shunt and its drive, both ways, and its standard uncertainty; None: it was not
    measured but is the board's own statement, or 0 without one."""
    measured = of_rail(rail).get("lead")
    if measured:
        return measured["R_n"] / NANO, measured["u_n"] / NANO
    return (rail.get("lead_mOhm") or 0) * 1e-3, None


def lead(idle: Point, loaded: Point, amperes: float, meter: Meter) -> dict:
    """The stored form of the leads' resistance, in 1e-9 Ohm: the rig's voltage at the shunt and the meter's at the
    drive's connector, without and with a load that draws this current more by the rig's own reading. An error of
    this reading falls out, since it is that reading which R is multiplied by. Raises CalibrationError."""
    numbers = (idle.rig, idle.rig_u, idle.reference, loaded.rig, loaded.rig_u, loaded.reference, amperes)
    if not all(math.isfinite(value) for value in (*numbers, meter.percent, meter.digit)):
        raise CalibrationError("a figure is not a finite number")
    if amperes < LEAST_LOAD_A:
        raise CalibrationError(f"{amperes:g} A more than without the load are too few for the resistance of a lead")
    lost_V = (loaded.rig - loaded.reference) - (idle.rig - idle.reference)
    moved_V = max(abs(loaded.rig - idle.rig), abs(loaded.reference - idle.reference))
    digits_V = meter.digit / math.sqrt(12) * math.sqrt(2)
    u = math.sqrt(digits_V**2 + idle.rig_u**2 + loaded.rig_u**2 + (meter.percent / 100 * moved_V) ** 2 / 3) / amperes
    ohm = lost_V / amperes
    if not -EXPANDED * u <= ohm <= MOST_LEAD_OHM:
        raise CalibrationError(f"{1e3 * ohm:.1f} mOhm cannot be leads: is the meter across the drive's connector?")
    return {"R_n": round(max(0.0, ohm) * NANO), "u_n": round(u * NANO)}


def line_uncertainty(stored: dict, value: float) -> float:
    """Standard uncertainty in V or A that the calibration itself leaves at a calibrated value, on the day."""
    return math.hypot(*line_parts(stored, value))


def line_parts(stored: dict, value: float) -> tuple[float, float, float]:
    """Its three parts: each point's own, the meter's fixed limit, its limit in percent of reading."""
    w2 = (value * NANO - stored["r1_n"]) / (stored["r2_n"] - stored["r1_n"])
    w1 = 1 - w2
    own = math.hypot(w1 * stored["u1_n"], w2 * stored["u2_n"])
    return own / NANO, (w1 * stored["c1_n"] + w2 * stored["c2_n"]) / NANO, value * stored["g_ppb"] * 1e-9


def residual(stored: dict, point: Point, meter: Meter) -> tuple[float, float]:
    """A third point, not used for the line: (calibrated rig - meter, expanded uncertainty of that difference). The
    meter's errors that all points have in common fall out of the difference and are left in: a cautious figure."""
    gain, offset = gain_offset(stored)
    value = gain * point.rig + offset
    own = math.hypot(meter.digit / math.sqrt(12), gain * point.rig_u)
    return value - point.reference, EXPANDED * math.hypot(line_uncertainty(stored, value), own)
