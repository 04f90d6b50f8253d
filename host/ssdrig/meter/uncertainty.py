"""How uncertain a mean power at the drive is: one budget with every term, after the GUM (JCGM 100:2008).

    P = V I,  V = S - I R         S: bus voltage at the rig's shunt, R: leads and contacts between there and the drive
    u2(P) = (I u(S))2 + ((V - I R) u(I))2 + (I2 u(R))2 + what the window itself leaves open          (5.1.2)

A limit +-a of a data sheet is rectangular, a / sqrt(3) (4.3.7). Where a limit is a coefficient, and what it is
multiplied by is itself only known to lie within +-b (drift with temperature, supply rejection), the
first-order term of 5.1.2 is zero and the product counts: a b / 3. Both points of one meter have its error in common,
and so have rails that one meter calibrated (5.2.2). The budget is checked by simulated rigs (JCGM 101:2008):
`./ssdrig selfcheck uncertainty`.

    shunt       tolerance; temperature coefficient x TEMPERATURE_C, and x its own heat; thermal EMF at its terminals
    chip        offset, gain, drift of both; rejection of its supply and of the rail's voltage; last digit
    calibration instead of tolerance, offset and gain: the points' own scatter, the meter's two limits (calibration.py)
    leads       R by the third calibration step, else as said by the hello +-LEAD_PART; copper's temperature
    window      noise, and coverage: the current is seen c of the time. What was not seen differs from what was as the
                conversions differ among each other (s): u = s sqrt((1 - c) / n). It says nothing of a load that repeats
                in step with the conversions, which is then wrong by up to (1 - c) of its swing

Not in it: ageing of the shunt (calibrate once a year), bursts shorter than a conversion on a supply that sags by them,
since V is taken behind I (README of hardware/, Limits).
"""

import math
from typing import NamedTuple

from ssdrig.meter import calibration, chips

TEMPERATURE_C = 10.0  # how far from the calibration's temperature (without one: 25 C) the rig is taken to be, at most
SUPPLY_V = 0.1  # of the chip, off 3.3 V
SHUNT_TOLERANCE_ppm = 10_000  # where the hello does not say
SHUNT_ppm_PER_C = 75  # WSL2512 from 3 mOhm on, terminals included (Vishay 30100); hardware/values.csv
SHUNT_C_PER_W = 100  # a 2512 on its board
EMF_V_PER_C, EMF_C = 3e-6, 0.3  # WSL against copper, at most and so taken; +- between the shunt's two ends
LEAD_PART = 0.5  # +- of leads and contacts that nobody measured
COPPER_PER_C = 0.0039


class Mean(NamedTuple):
    """Of one rail in one window: the hello's entry, mean voltage and power at the drive; of how many samples, and their
    standard deviation (0, 0: not known, and then neither noise nor coverage count)."""

    rail: dict
    volts: float
    watts: float
    samples: int = 0
    sd_W: float = 0.0


class Term(NamedTuple):
    """One line of the budget: u in W, with its sign where it is `shared`: what other rails have of the same error."""

    name: str
    u_W: float
    shared: tuple | None = None


def deviation_W(samples: int, sum_W: float, sum_W2: float) -> float:
    """Standard deviation of so many samples' powers by their sum and that of their squares; 0 of none."""
    return math.sqrt(max(0.0, sum_W2 / samples - (sum_W / samples) ** 2)) if samples else 0.0


def expanded_W(means: list[Mean]) -> float:
    """Expanded uncertainty (k = 2) in W of the sum of several rails' mean powers: what is shared adds up first, all
    else in squares. NaN for a chip whose limits are not known."""
    alone, shared = 0.0, dict[tuple, float]()
    for term in (term for mean in means for term in budget(mean)):
        if term.shared is None:
            alone = math.hypot(alone, term.u_W)
        else:
            shared[term.shared] = shared.get(term.shared, 0.0) + term.u_W
    return calibration.EXPANDED * math.hypot(alone, *shared.values())


def budget(mean: Mean) -> list[Term]:
    """Every term of one rail's mean power; a single NaN for a chip whose limits are not known."""
    rail, volts = mean.rail, mean.volts
    chip = chips.of(rail)
    if chip is None:
        return [Term("chip that is not known", math.nan)]
    amperes = mean.watts / volts if volts else 0.0
    ohm, u_ohm = lead(rail)
    sensed_V = volts + amperes * ohm
    out = [Term(name, amperes * u, shared) for name, u, shared in _volts(rail, chip, sensed_V)]
    out += [Term(n, (volts - amperes * ohm) * u, shared) for n, u, shared in _amperes(rail, chip, amperes, sensed_V)]
    out.append(Term("leads", amperes**2 * u_ohm))
    out.append(Term("leads, temperature", amperes**2 * ohm * COPPER_PER_C * TEMPERATURE_C / math.sqrt(3)))
    return out + _window(mean, chip, amperes)


def lead(rail: dict) -> tuple[float, float]:
    """Resistance between shunt and drive, both ways, and its standard uncertainty, in Ohm."""
    ohm, u_ohm = calibration.lead_ohm(rail)
    return ohm, ohm * LEAD_PART / math.sqrt(3) if u_ohm is None else u_ohm


def _volts(rail: dict, chip: chips.Limits, volts: float) -> list[Term]:
    """Terms of the bus voltage, in V."""
    gain_per_C = chip.gain_ppm_per_C * 1e-6 * volts
    out = [
        Term("bus offset, drift", chip.bus_offset_V_per_C * TEMPERATURE_C / 3),
        Term("bus gain, drift", gain_per_C * TEMPERATURE_C / 3),
        Term("bus, last digit", rail["vbus_lsb_nV"] * 1e-9 / math.sqrt(12)),
    ]
    stored = calibration.kept(rail).get("V")
    if stored:
        return out + _calibrated(stored, "V", volts)
    return out + [
        Term("bus offset", chip.bus_offset_V / math.sqrt(3)),
        Term("bus gain", chip.bus_gain_ppm * 1e-6 * volts / math.sqrt(3)),
        Term("bus, chip's supply", chip.bus_V_per_supply_V * SUPPLY_V / 3),
    ]


def _amperes(rail: dict, chip: chips.Limits, amperes: float, volts: float) -> list[Term]:
    """Terms of the current, in A."""
    ohm = rail["shunt_uOhm"] * 1e-6
    stored = calibration.kept(rail).get("I")
    warm_C = SHUNT_C_PER_W * ohm * abs(amperes**2 - (stored["r2_n"] * 1e-9) ** 2 if stored else amperes**2)
    moments = 1.0  # at which the shunt's ends are differently warm: now, and at the points of a calibration
    if stored:
        w2 = (amperes * calibration.NANO - stored["r1_n"]) / (stored["r2_n"] - stored["r1_n"])
        moments += (1 - w2) ** 2 + w2**2
    tempco, gain_per_C = SHUNT_ppm_PER_C * 1e-6 * amperes, chip.gain_ppm_per_C * 1e-6 * amperes
    out = [
        Term("shunt offset, drift", chip.shunt_offset_V_per_C / ohm * TEMPERATURE_C / 3),
        Term("shunt gain, drift", gain_per_C * TEMPERATURE_C / 3),
        Term("shunt, temperature", tempco * TEMPERATURE_C / 3),
        Term("shunt, its own heat", tempco * warm_C / math.sqrt(3)),
        Term("thermal EMF", EMF_V_PER_C * EMF_C / ohm * math.sqrt(moments / 3)),
        Term("current, last digit", max(chip.shunt_step_V / ohm, rail["current_lsb_pA"] * 1e-12) / math.sqrt(12)),
    ]
    if stored:
        return out + _calibrated(stored, "I", amperes)
    tolerance = (rail.get("shunt_tolerance_ppm") or SHUNT_TOLERANCE_ppm) * 1e-6
    return out + [
        Term("shunt tolerance", tolerance * amperes / math.sqrt(3)),
        Term("shunt offset", chip.shunt_offset_V / ohm / math.sqrt(3)),
        Term("shunt gain", chip.shunt_gain_ppm * 1e-6 * amperes / math.sqrt(3)),
        Term("shunt, chip's supply", chip.shunt_V_per_supply_V / ohm * SUPPLY_V / 3),
        Term("shunt, rail's voltage", chip.shunt_V_per_rail_V * volts / ohm / math.sqrt(3)),
    ]


def _calibrated(stored: dict, quantity: str, value: float) -> list[Term]:
    own, fixed, percent = calibration.line_parts(stored, value)
    meter = stored.get("meter")
    return [
        Term(f"{quantity}, calibration's points", own),
        Term(f"{quantity}, meter's fixed part", fixed, (meter, quantity, "fixed")),
        Term(f"{quantity}, meter's percentage", percent, (meter, quantity, "percent")),
    ]


def _window(mean: Mean, chip: chips.Limits, amperes: float) -> list[Term]:
    """What the window's own samples leave open, in W."""
    if not mean.samples:
        return []
    out, root = [], math.sqrt(mean.samples)
    noise_A, bus_V = chips.expected_noise(mean.rail), chip.bus_noise_50us_V
    if noise_A is not None and bus_V is not None:  # of the bus that of the shortest conversion
        out.append(Term("noise", math.hypot(mean.volts * noise_A, amperes * bus_V) / root))
    covered = chips.coverage(mean.rail)
    if not math.isnan(covered):
        out.append(Term("coverage", mean.sd_W * math.sqrt(1 - covered) / root))
    return out
