"""How uncertain a mean power at the drive is: one budget with every term, after the GUM (JCGM 100:2008).

    P = V I,  V = S - I R         S: bus voltage at the rig's shunt, R: leads and contacts between there and the drive
    u2(P) = (I u(S))2 + ((V - I R) u(I))2 + (I2 u(R))2 + what the window itself leaves open          (5.1.2)

A limit +-a of a data sheet is rectangular, a / sqrt(3) (4.3.7). Where a limit is a coefficient, and what it is
multiplied by is itself only known to lie within +-b (drift with temperature, supply rejection), the
first-order term of 5.1.2 is zero and the product counts: a b / 3. Both points of one meter have its error in common,
and so have rails that one meter calibrated (5.2.2). The budget is checked by simulated rigs (JCGM 101:2008):
`./ssdrig selfcheck uncertainty`.

    shunt       tolerance; temperature coefficient x TEMPERATURE_C, and x its own heat; thermal EMF at its terminals
    amplifier   of the fast channel, what it takes through the shunt; of a calibration with it a tenth of that
    chip        offset, gain, drift of both; rejection of its supply and of the rail's voltage; last digit
    ranges      of a rail with two, each term of the current by each one's share of the samples, added up; and what the
                low one's threshold gives the rail past the sensor
    calibration instead of tolerance, offset and gain: the points' own scatter, the meter's two limits (calibration.py)
    leads       R by the third calibration step, else as said by the hello +-LEAD_PART; copper's temperature
    window      noise, and coverage: the current is seen c of the time. What was not seen differs from what was as the
                conversions differ among each other (s): u = s sqrt((1 - c) / n). It says nothing of a load that repeats
                in step with the conversions, which is then wrong by up to (1 - c) of its swing
    gaps        what is interpolated over a share g of the window is off as its samples differ: u = g s, since all of it
                may have been missed for one reason
    stated      of a meter that states limits of its readings: percent of the reading and fixed, by range, in place of
                shunt, chip and calibration; V, I and W of one instrument have nothing in common that is known
    bypass      of a conversion in which that of a low range moves the least and the most is known (ranges.py): all as
                far off as they can be, rectangular
    time        a window's edges lie within +-d of where the clock says (clock.py), fio's own rounding and a conversion,
                within which energy is taken to grow evenly, added. Both are off by nearly the same, as
                no clock is off by more than 1000 ppm: the energy is that of some window that begins up to d sooner or
                later, and those of all of them are looked at. The furthest is a limit, rectangular; rails share it

Not in it: ageing of the shunt (calibrate once a year), bursts shorter than a conversion on a supply that sags by them,
since V is taken after I (README of hardware/, Limits).
"""

import math
from typing import NamedTuple

import numpy as np

from ssdrig.base.words import digits
from ssdrig.meter import calibration, chips, clock, messages, ranges

TEMPERATURE_C = 10.0  # how far from the calibration's temperature (without one: 25 C) the rig is taken to be, at most
SUPPLY_V = 0.1  # of the chip, off 3.3 V
SHUNT_TOLERANCE_ppm = 10_000  # without a value in the hello
SHUNT_ppm_PER_C = 75  # WSL2512 from 3 mOhm on, terminals included (Vishay 30100); hardware/values.csv
SHUNT_C_PER_W = 100  # a 2512 on its board
EMF_nV_PER_C = 3000  # WSL against copper, at most; a build with another shunt states its own: shunt_emf_nV_per_C
EMF_C = 0.3  # so taken; +- between the shunt's two ends
LEAD_PART = 0.5  # +- of unmeasured leads and contacts
COPPER_PER_C = 0.0039
MOST_TIME_PERCENT = 5.0  # of an energy: above that the clock is too uncertain
CLOSE_NS, FEW_SHIFTS, MANY_SHIFTS = 5e6, 8, 32  # up to this error of the clock few times are looked at, otherwise many
CLOCK = ("clock",)
UNTIMED = "time: "  # begin of the reason where the clock is too uncertain


class Mean(NamedTuple):
    """One rail in one window: the hello's entry, mean voltage and power at the drive; of how many samples, and their
    standard deviation (0, 0: not known, and then neither noise nor coverage count)."""

    rail: dict
    volts: float
    watts: float
    samples: int = 0
    sd_W: float = 0.0
    time_W: float = 0.0  # by how much the clock's error may move it
    filled: float = 0.0  # share of the window without samples, over which power is interpolated
    low: tuple[float, float] = (0.0, 0.0)  # see part()
    moved_W: float = 0.0  # by how much conversions in which a bypass moved may move it


class Edges(NamedTuple):
    """Times between which energies are asked for (float64 ns, host): by how much each may be off, and a rail's running
    energy (J) at as many times from that much before it to that much behind it, evenly apart."""

    t_ns: np.ndarray  # int64 (edges,)
    error_ns: np.ndarray  # float64 (edges,)
    J: np.ndarray  # float64 (edges, an odd number)

    def at(self, chosen) -> "Edges":
        """Some of the edges: positions, or a slice."""
        return Edges(*(of[chosen] for of in self))

    def time_J(self, first: int = 0, last: int = -1) -> float:
        """By how much the clock's error may move the energy between two of the edges."""
        lasts_ns = float(self.t_ns[last] - self.t_ns[first])
        begin_ns, end_ns = float(self.error_ns[first]), float(self.error_ns[last])
        return time_J(begin_ns, self.J[first], end_ns, self.J[last], lasts_ns)

    def seconds_J(self, steps: np.ndarray) -> float:
        """The same of steps between neighbouring edges, by the number of the first (rising): of stretches that follow
        each other together."""
        breaks = np.flatnonzero(np.diff(steps) > 1)
        firsts, lasts = steps[np.append(0, breaks + 1)], steps[np.append(breaks, len(steps) - 1)]
        return sum(self.time_J(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True))


def shifts_ns(error_ns: np.ndarray) -> np.ndarray:
    """The times around each edge at which Edges.J is asked for, relative to it: float64 (edges, an odd number)."""
    shifts = FEW_SHIFTS if not len(error_ns) or error_ns.max() <= CLOSE_NS else MANY_SHIFTS
    return np.multiply.outer(error_ns, np.linspace(-1.0, 1.0, shifts + 1))


def time_J(
    begin_error_ns: float, begin_J: np.ndarray, end_error_ns: float, end_J: np.ndarray, lasts_ns: float
) -> float:
    """By how much the energy of a window that lasts so long may differ from what its edges say, each of which may be
    off by its error. begin_J, end_J: see Edges.J. Energies between the times of J are taken as far as they can lie."""
    apart_ns = min(begin_error_ns + end_error_ns, 2e-6 * clock.NOMINAL_PPM * lasts_ns)
    low = max(-begin_error_ns, -end_error_ns - apart_ns)
    high = min(begin_error_ns, end_error_ns + apart_ns)
    cuts = np.linspace(low, high, len(begin_J))
    soon, late = cuts[:-1], cuts[1:]
    most = _at(end_J, end_error_ns, late + apart_ns, math.ceil) - _at(begin_J, begin_error_ns, soon, math.floor)
    least = _at(end_J, end_error_ns, soon - apart_ns, math.floor) - _at(begin_J, begin_error_ns, late, math.ceil)
    stated_J = float(end_J[len(end_J) // 2] - begin_J[len(begin_J) // 2])
    return max(float(most.max()) - stated_J, stated_J - float(least.min()), 0.0)


def _at(joules: np.ndarray, error_ns: float, shift_ns: np.ndarray, rounded) -> np.ndarray:
    """Running energy at these shifts, of the next time that is asked for in the direction of `rounded`."""
    if not error_ns:
        return np.full(len(shift_ns), joules[len(joules) // 2])
    place = (shift_ns / error_ns + 1) / 2 * (len(joules) - 1)
    whole = (np.ceil if rounded is math.ceil else np.floor)(np.round(place, 9)).astype(int)
    return joules[np.clip(whole, 0, len(joules) - 1)]


def time_percent(time_J: float, joules: float) -> float:
    """By how much of itself the clock's error may move an energy, %."""
    return 100 * time_J / joules if joules > 0 else 0.0 if not time_J else math.inf


def untimed(time_J: float, joules: float, error_ns: float) -> str | None:
    """Why an energy is not known for its edges' sake; None where it is."""
    percent = time_percent(time_J, joules)
    if percent <= MOST_TIME_PERCENT:
        return None
    off = f"{percent:.0f}" if percent < 1000 else "over 1000"
    return (
        f"{UNTIMED}its edges are known to {digits(error_ns / 1e6, 3)} ms, which moves its energy by up to {off} %"
        f" (at most {MOST_TIME_PERCENT:g} % may be)"
    )


class Term(NamedTuple):
    """One line of the budget: u in W, with its sign where it is `shared`: what other rails have of the same error."""

    name: str
    u_W: float
    shared: tuple | None = None


def deviation_W(samples: int, sum_W: float, sum_W2: float) -> float:
    """Standard deviation of the samples' powers by their sum and that of their squares; 0 of none."""
    return math.sqrt(max(0.0, sum_W2 / samples - (sum_W / samples) ** 2)) if samples else 0.0


def expanded_W(means: list[Mean]) -> float:
    """Expanded uncertainty (k = 2) in W of the sum of several rails' mean powers: shared errors add up first, all
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
    if not messages.has_chip(rail):
        return [*_stated(mean, rail["accuracy"]), *_window(mean)]
    chip = chips.of(rail)
    if chip is None:
        return [Term("chip that is not known", math.nan)]
    amperes = mean.watts / volts if volts else 0.0
    ohm, u_ohm = lead(rail)
    sensed_V = volts + amperes * ohm
    out = [Term(name, amperes * u, shared) for name, u, shared in _volts(rail, chip, sensed_V)]
    out += [Term(n, (volts - amperes * ohm) * u, shared) for n, u, shared in _ranged(mean, chip, sensed_V)]
    out.append(Term("leads", amperes**2 * u_ohm))
    out.append(Term("leads, temperature", amperes**2 * ohm * COPPER_PER_C * TEMPERATURE_C / math.sqrt(3)))
    return out + _noise(mean, chip, amperes) + _window(mean)


def part(samples: int, low: int, sum_W: float) -> tuple[float, float]:
    """The share of a window's samples that belong to the low range, and their part of the mean power (W); sum_W:
    that of their powers."""
    return (float(low / samples), float(sum_W / samples)) if samples else (0.0, 0.0)


def volts_u(rail: dict, volts: float) -> float:
    """Standard uncertainty (V) of a bus voltage that a rail reads; NaN for a chip whose limits are not known."""
    chip = chips.of(rail)
    return math.nan if chip is None else math.hypot(*(u for _, u, _ in _volts(rail, chip, volts)))


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
    stored = calibration.of_rail(rail).get("V")
    if stored:
        return out + _calibrated(stored, "V", volts)
    return out + [
        Term("bus offset", chip.bus_offset_V / math.sqrt(3)),
        Term("bus gain", chip.bus_gain_ppm * 1e-6 * volts / math.sqrt(3)),
        Term("bus, chip's supply", chip.bus_V_per_supply_V * SUPPLY_V / 3),
    ]


def _ranged(mean: Mean, chip: chips.Limits, volts: float) -> list[Term]:
    """Terms of the current in A, of the ranges that it was measured in."""
    facts, low_W = _ranges(mean), mean.low[1]
    if len(facts) == 1:
        return _amperes(facts[0][1], chip, mean.watts / mean.volts if mean.volts else 0.0, volts)
    sums: dict[tuple, float] = {}
    for (weight, rail), watts in zip(facts, (mean.watts - low_W, low_W), strict=True):
        for name, u, shared in _amperes(rail, chip, watts / weight / mean.volts if mean.volts else 0.0, volts):
            sums[name, shared] = sums.get((name, shared), 0.0) + weight * u
    return [Term(name, u, shared) for (name, shared), u in sums.items()]


def _ranges(mean: Mean) -> list[tuple[float, dict]]:
    """Each range that the window has samples of: their share, what converts them."""
    of_low, share = ranges.low(mean.rail), mean.low[0]
    both = [(1 - share, mean.rail)] + ([(share, of_low)] if of_low else [])
    return [(weight, rail) for weight, rail in both if weight > 0]


def _amperes(rail: dict, chip: chips.Limits, amperes: float, volts: float) -> list[Term]:
    """Terms of the current, in A."""
    ohm = rail["shunt_uOhm"] * 1e-6
    stored = calibration.of_rail(rail).get("I")
    warm_C = SHUNT_C_PER_W * ohm * abs(amperes**2 - (stored["r2_n"] * 1e-9) ** 2 if stored else amperes**2)
    emf_V = (rail.get("shunt_emf_nV_per_C") or EMF_nV_PER_C) * 1e-9 * EMF_C
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
        Term("thermal EMF", emf_V / ohm * math.sqrt(moments / 3)),
        Term("current, last digit", max(chip.shunt_step_V / ohm, rail["current_lsb_pA"] * 1e-12) / math.sqrt(12)),
    ]
    if limit_A := calibration.amplifier_A(rail)[1]:
        out.append(Term("fast channel's amplifier", limit_A / math.sqrt(3)))
    if ranges.is_low(rail):
        limit_A = calibration.FEED_PART * rail["feed_nA"] / calibration.NANO + calibration.SWITCH_A
        out.append(Term("low range, threshold and switch", limit_A / math.sqrt(3)))
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


def _stated(mean: Mean, accuracy: dict) -> list[Term]:
    """Uncertainty from the limits that a meter states, in W."""
    amperes = mean.watts / mean.volts if mean.volts else 0.0
    factors = {"W": (mean.watts, 1.0), "V": (mean.volts, amperes), "A": (amperes, mean.volts)}
    stated = [quantity for quantity in factors if accuracy.get(quantity)]
    if accuracy.get("unknown") or stated not in (["W"], ["V", "A"]):
        return [Term("accuracy that is not known", math.nan)]
    return [
        Term(f"{quantity}, stated", factor * limit(accuracy[quantity], value) / math.sqrt(3), ("stated", quantity))
        for quantity, (value, factor) in factors.items()
        if quantity in stated
    ]


def limit(ranges: list, value: float) -> float:
    """The limit (+-) of a reading by its range: [up to, percent of the reading, fixed]; NaN beyond the last one."""
    for upto, percent, fixed in sorted(ranges):
        if abs(value) <= upto:
            return percent / 100 * abs(value) + fixed
    return math.nan


def noise_A(mean: Mean) -> float | None:
    """Typical noise (rms) of one sample of a window, of the ranges that it has samples of; None: not known."""
    squares = 0.0
    for weight, rail in _ranges(mean):
        typical_A = chips.expected_noise(rail)
        if typical_A is None:
            return None
        squares += weight * typical_A**2
    return math.sqrt(squares)


def _noise(mean: Mean, chip: chips.Limits, amperes: float) -> list[Term]:
    """Period of the chip's conversions, of the bus that of the shortest."""
    typical_A, bus_V = noise_A(mean), chip.bus_noise_50us_V
    if not mean.samples or typical_A is None or bus_V is None:
        return []
    return [Term("noise", math.hypot(mean.volts * typical_A, amperes * bus_V) / math.sqrt(mean.samples))]


def _window(mean: Mean) -> list[Term]:
    """What the window's own samples, and its edges, leave open, in W."""
    out = [Term("time", mean.time_W / math.sqrt(3), CLOCK)] if mean.time_W else []
    if not mean.samples:
        return out
    if mean.filled:
        out.append(Term("gaps", mean.filled * mean.sd_W))
    if mean.moved_W:
        out.append(Term("bypass", mean.moved_W / math.sqrt(3)))
    root = math.sqrt(mean.samples)
    covered = chips.coverage(mean.rail)
    if not math.isnan(covered):
        out.append(Term("coverage", mean.sd_W * math.sqrt(1 - covered) / root))
    return out
