"""Calibration of a rail: gain and offset from two points against a reference meter, and what they are uncertain by.

A rail's readings x (raw x LSB, in V or A) become Y = r1 + (r2 - r1) (x - x1) / (x2 - x1), the line through the two
points, r being what the meter showed. Uncertainties follow the GUM (JCGM 100:2008), k = 1 unless "expanded" is said
(k = 2):

    type A (4.2)   the mean of the rig's readings at a point: s / sqrt(n) of its blocks; also its resolution,
                   LSB / sqrt(12)
    type B (4.3.7) the meter's limits +-a are rectangular: a / sqrt(3); its last digit d: d / sqrt(12) (F.2.2.1)
    combined (5.1.2, 5.2.2) at a reading x, with the weights w1 = (x2 - x) / (x2 - x1) and w2 = 1 - w1:
                   u2(Y) = (Y g)2 + (w1 c1 + w2 c2)2 + (w1 u1)2 + (w2 u2)2 + drift
                   g: the meter's limit in percent of reading, an error that both points have in common; c: its fixed
                   limit, in common too (0 for a point that is exactly zero because nothing is connected); u: what each
                   has alone
    drift          what chip and shunt may do since: data sheet limits per degree x TEMPERATURE_C, rectangular

Without a calibration the data sheet's limits and the shunt's tolerance stand for it. All that is stored is integers, so
that the board, whose floats are single precision, keeps it exactly.
"""

import math
from dataclasses import dataclass

from ssdrig.meter import ina228

TEMPERATURE_C = 10.0  # how far from the calibration's temperature the rig is taken to be, at most
NANO = 1e9
SHUNT_TOLERANCE_ppm = 10_000  # where the hello does not say
SHUNT_ppm_PER_C = 50
LEAST_SPAN = 0.2  # two points nearer than this part of the larger make a gain of the meter's digits
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
COVERAGE = 2.0  # expanded uncertainty: k = 2, about 95 %


@dataclass(frozen=True)
class Limits:
    """Data sheet limits (+-) of a chip. Shunt voltage in V, bus voltage in V, gain in ppm, drift per degree; and how
    its registers end."""

    shunt_offset_V: float
    shunt_offset_V_per_C: float
    shunt_gain_ppm: float
    bus_offset_V: float
    bus_offset_V_per_C: float
    bus_gain_ppm: float
    gain_ppm_per_C: float
    full_scale: int  # of the registers of shunt voltage, CURRENT and bus voltage, which stay there beyond it
    # CURRENT = shunt voltage x unity / (calibration register), or the inverse of this ratio
    unity: int
    inverse: bool = False
    # rms of one 50 us conversion; None: not known. Where it is known ADC_CONFIG is the INA228's
    noise_50us_V: float | None = None


# INA228: TI SLYS021 (offset 1 uV, 10 nV/C; gain 0.05 %, 20 ppm/C); its bus offset is taken as that of the INA238 beside
# it (SBOSA0, 5 mV, 40 uV/C), of which it is the better grade. INA226: TI SBOS547B, electrical characteristics.
# CURRENT: INA228 by equations 2 and 3 of its data sheet VSHUNT x 4096 / SHUNT_CAL, INA226 by equation 4
# SHUNT x CAL / 2048. Noise: 12.5 noise-free bits of 327.68 mV, 6.6 rms peak to peak.
_INA228 = Limits(1e-6, 10e-9, 500, 5e-3, 40e-6, 500, 20, 0x7FFFF, 4096, noise_50us_V=8.6e-6)
_INA226 = Limits(10e-6, 100e-9, 1000, 7.5e-3, 40e-6, 1000, 50, 0x7FFF, 2048, inverse=True)
CHIPS = {"INA228": _INA228, "INA229": _INA228, "INA226": _INA226}


class CalibrationError(ValueError):
    """The figures cannot make a calibration; the text says which and why."""


@dataclass(frozen=True)
class Meter:
    """The reference meter on the range in use; limits from its manual, in percent of reading and in V or A."""

    name: str  # make, model and serial number
    percent: float
    fixed: float
    digit: float  # of the last place shown


@dataclass(frozen=True)
class Point:
    """One point in V or A: what the rig read (mean and its standard uncertainty), what is true."""

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
    said = rail.get("calibration")
    if said is None:
        return
    if not isinstance(said, dict):
        raise TypeError("a calibration is an object")
    for quantity in ("V", "I"):
        stored = said.get(quantity)
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


def kept(rail: dict) -> dict:
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


def scales(rail: dict) -> tuple[float, float, float, float]:
    """(V per LSB, V offset, A per LSB, A offset) of a rail of the hello: what turns its raw integers into volts and
    amperes, calibrated where it is. The only place where that is decided."""
    lines = kept(rail)
    v_gain, v_offset = gain_offset(lines["V"]) if lines.get("V") else (1.0, 0.0)
    i_gain, i_offset = gain_offset(lines["I"]) if lines.get("I") else (1.0, 0.0)
    return rail["vbus_lsb_nV"] * 1e-9 * v_gain, v_offset, rail["current_lsb_pA"] * 1e-12 * i_gain, i_offset


def uncertainty(rail: dict, quantity: str, value: float) -> float:
    """Standard uncertainty (k = 1) in V or A of a long mean that came out as `value`, of quantity "V" or "I"."""
    own, common = parts(rail, quantity, value)
    return math.hypot(own, *common.values())


def parts(rail: dict, quantity: str, value: float) -> tuple[float, dict[tuple, float]]:
    """`uncertainty` in parts: what is this rail's and this quantity's alone, and what it has in common with each other
    rail that the same meter calibrated, named (meter, quantity, "percent" or "fixed"). NaN for a chip whose limits are
    not known."""
    chip = CHIPS.get(rail.get("chip", ""))
    if chip is None:
        return math.nan, {}
    ohms = rail["shunt_uOhm"] * 1e-6
    offset = chip.bus_offset_V if quantity == "V" else chip.shunt_offset_V / ohms
    offset_per_C = chip.bus_offset_V_per_C if quantity == "V" else chip.shunt_offset_V_per_C / ohms
    gains_ppm = [chip.gain_ppm_per_C * TEMPERATURE_C] + ([SHUNT_ppm_PER_C * TEMPERATURE_C] if quantity == "I" else [])
    stored = kept(rail).get(quantity)
    if not stored:
        gains_ppm.append(chip.bus_gain_ppm if quantity == "V" else chip.shunt_gain_ppm)
        gains_ppm += [rail.get("shunt_tolerance_ppm") or SHUNT_TOLERANCE_ppm] if quantity == "I" else []
        limits = [offset, offset_per_C * TEMPERATURE_C, *(value * ppm * 1e-6 for ppm in gains_ppm)]
        return math.sqrt(sum(limit**2 for limit in limits) / 3), {}
    drift = [offset_per_C * TEMPERATURE_C, *(value * ppm * 1e-6 for ppm in gains_ppm)]
    own, fixed, percent = line_parts(stored, value)
    common = {(stored.get("meter"), quantity, "fixed"): fixed, (stored.get("meter"), quantity, "percent"): percent}
    return math.sqrt(own**2 + sum(limit**2 for limit in drift) / 3), common


def line_uncertainty(stored: dict, value: float) -> float:
    """Standard uncertainty in V or A that the calibration itself leaves at a calibrated value, on the day."""
    return math.hypot(*line_parts(stored, value))


def line_parts(stored: dict, value: float) -> tuple[float, float, float]:
    """Its three parts: each point's own, the meter's fixed limit, its limit in percent of reading."""
    w2 = (value * NANO - stored["r1_n"]) / (stored["r2_n"] - stored["r1_n"])
    w1 = 1 - w2
    own = math.hypot(w1 * stored["u1_n"], w2 * stored["u2_n"])
    return own / NANO, (w1 * stored["c1_n"] + w2 * stored["c2_n"]) / NANO, value * stored["g_ppb"] * 1e-9


def is_zero(rail: dict, amperes: float) -> bool:
    """Whether a mean current can be what the chip reads with nothing connected: within 5 times its offset limit. False
    for a chip whose limits are not known."""
    chip = CHIPS.get(rail.get("chip", ""))
    return chip is not None and abs(amperes) <= 5 * chip.shunt_offset_V / (rail["shunt_uOhm"] * 1e-6)


def limits_raw(rail: dict) -> tuple[int, int] | None:
    """(CURRENT, VBUS) of a rail from which on a reading, as a magnitude, may stand for any larger one: its register, or
    the shunt voltage's that CURRENT is made of, is at its end. None for a chip whose registers are not known."""
    chip = CHIPS.get(rail.get("chip", ""))
    if chip is None:
        return None
    cal = rail.get("shunt_cal") or chip.unity
    at_shunt_limit = chip.full_scale * cal // chip.unity if chip.inverse else chip.full_scale * chip.unity // cal
    return min(chip.full_scale, at_shunt_limit) - 1, chip.full_scale  # 1: the chips may cut off or round


def power_uncertainty(rail: dict, volts: float, watts: float) -> float:
    """Expanded uncertainty (k = 2) in W of a mean power, at a mean voltage: GUM 5.1.2 with P = V I, V and I
    independent. NaN for a chip whose limits are not known."""
    return sum_uncertainty([(rail, volts, watts)])


def sum_uncertainty(readings: list[tuple[dict, float, float]]) -> float:
    """Expanded uncertainty (k = 2) in W of the sum of several rails' mean powers, each (rail, mean V, mean W). Shunts,
    chips and their drift are independent from rail to rail and add in squares; the errors of one meter that calibrated
    several rails are the same in all of them and add up first (GUM 5.2.2, correlation 1). A meter is known by its
    name."""
    own = 0.0
    common: dict = {}
    for rail, volts, watts in readings:
        amperes = watts / volts if volts else 0.0
        for quantity, value, weight in (("V", volts, amperes), ("I", amperes, volts)):
            alone, shared = parts(rail, quantity, value)
            own = math.hypot(own, weight * alone)
            for name, error in shared.items():
                common[name] = common.get(name, 0.0) + weight * error
    return COVERAGE * math.hypot(own, *common.values())


def residual(stored: dict, point: Point, meter: Meter) -> tuple[float, float]:
    """A third point, not used for the line: (calibrated rig - meter, expanded uncertainty of that difference). The
    meter's errors that all points have in common fall out of the difference and are left in: a cautious figure."""
    gain, offset = gain_offset(stored)
    value = gain * point.rig + offset
    own = math.hypot(meter.digit / math.sqrt(12), gain * point.rig_u)
    return value - point.reference, COVERAGE * math.hypot(line_uncertainty(stored, value), own)


def expected_noise(rail: dict) -> float | None:
    """Typical noise (A, rms) of one current conversion of a rail as configured: it falls with the root of the
    conversion time; None for a chip whose noise is not known."""
    chip = CHIPS.get(rail.get("chip", ""))
    if chip is None or chip.noise_50us_V is None:
        return None
    shunt_us, averages = ina228.shunt_conversion(rail["adc_config"])
    return chip.noise_50us_V * math.sqrt(50 / shunt_us / averages) / (rail["shunt_uOhm"] * 1e-6)
