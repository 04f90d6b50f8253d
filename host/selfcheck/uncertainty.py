"""The uncertainty budget (meter/uncertainty.py) against rigs that are drawn at random and simulated, as JCGM 101:2008
(GUM-S1) has it: how often the true power at the drive lies inside what is stated.

A rig is drawn with parts anywhere within their data sheets' limits, a meter within its manual's. It is read by the
equations of the parts themselves, temperature, heat and thermal EMF included. Those that are calibrated are so with a
meter of their own at one temperature, and used at another. Nothing of uncertainty.py is used to simulate."""

import math
import random
from dataclasses import dataclass, field

from selfcheck import Figure
from ssdrig.meter import calibration, chips, uncertainty
from ssdrig.meter.calibration import Meter, Point, Resistor
from ssdrig.rig import builds, calibrate

RIGS = 10_000
LEAST, MOST = 94.0, 97.0
RAILS = (("3.3 V", 3.3, 14), ("5 V", 5.0, 24), ("12 V", 12.0, 24))  # name, V, mOhm of leads that the board says
METER = Meter("Meter 1", percent=0.05, fixed=0.0005, digit=0.0001)  # a good bench meter, of V and of A
IDLE_W = 0.05
LOW_EMF_nV_PER_C = 200  # Manganin against copper
RESISTOR = Resistor(10.0, 0.1)
LOW_EMF_LEAST = {0.003: 2.0, 0.05: 0.5}  # W: % of it that may be stated, calibrated, 3.3 V


@dataclass
class Rig:
    """A rail with its errors, all of them within the limits that the budget takes from the data sheets."""

    dice: random.Random
    nominal_V: float
    lead_mOhm: float
    off_C: float = 0.0  # from the temperature of its calibration
    emf_nV_per_C: float = uncertainty.EMF_nV_PER_C
    scatter_A: float = 5e-6  # of the mean at each point of its calibration
    amplifier: bool = False  # the fast channel's, across the shunt
    facts: dict = field(init=False)

    def __post_init__(self):
        within = lambda limit: self.dice.uniform(-limit, limit)
        chip = chips.CHIPS["INA228"]
        self.facts = {
            "rail": 0,
            "name": f"{self.nominal_V:g}V",
            "chip": "INA228",
            "shunt_uOhm": 8000,
            "shunt_tolerance_ppm": 10_000,
            "current_lsb_pA": 9_765_625,
            "vbus_lsb_nV": 195_312.5,
            "lead_mOhm": self.lead_mOhm,
            "shunt_emf_nV_per_C": self.emf_nV_per_C,
        }
        # the INA240's, by the rail's voltage: 10 uA at 5 V, 90 at 12 V; what it then differs by is read()'s
        self.amplifier_A = self.dice.uniform(0, 90e-6) if self.amplifier else 0.0
        if self.amplifier:
            self.facts["amplifier_nA"] = builds.AMPLIFIER_nA
        self.shunt_ohm = 0.008 * (1 + within(0.01))
        self.shunt_per_C, self.shunt_C_per_W = within(75e-6), self.dice.uniform(60, 140)
        self.lead_ohm = self.lead_mOhm * 1e-3 * (1 + within(uncertainty.LEAD_PART))
        self.offset_V, self.offset_V_per_C = within(chip.shunt_offset_V), within(chip.shunt_offset_V_per_C)
        self.gain, self.gain_per_C = within(chip.shunt_gain_ppm * 1e-6), within(chip.gain_ppm_per_C * 1e-6)
        self.bus_offset_V, self.bus_offset_V_per_C = within(chip.bus_offset_V), within(chip.bus_offset_V_per_C)
        self.bus_gain, self.bus_gain_per_C = within(chip.bus_gain_ppm * 1e-6), within(chip.gain_ppm_per_C * 1e-6)
        supply_V = within(uncertainty.SUPPLY_V)
        self.offset_V += within(chip.shunt_V_per_supply_V) * supply_V
        self.bus_offset_V += within(chip.bus_V_per_supply_V) * supply_V
        self.shunt_V_per_rail_V = within(chip.shunt_V_per_rail_V)

    def read(self, volts: float, amperes: float) -> tuple[float, float]:
        """What the chip says on average, V at the shunt and A, before any calibration, of a drive that gets `volts` and
        draws `amperes`."""
        sensed_V = volts + amperes * self.lead_ohm * (1 + uncertainty.COPPER_PER_C * self.off_C)
        amperes += self.amplifier_A * (1 + self.dice.uniform(-0.1, 0.1))
        warm_C = self.off_C + self.shunt_C_per_W * self.shunt_ohm * amperes**2
        across_V = amperes * self.shunt_ohm * (1 + self.shunt_per_C * warm_C)
        across_V += self.emf_nV_per_C * 1e-9 * self.dice.uniform(-uncertainty.EMF_C, uncertainty.EMF_C)
        across_V *= 1 + self.gain + self.gain_per_C * self.off_C
        across_V += self.offset_V + self.offset_V_per_C * self.off_C + self.shunt_V_per_rail_V * sensed_V
        bus_V = sensed_V * (1 + self.bus_gain + self.bus_gain_per_C * self.off_C)
        bus_V += self.bus_offset_V + self.bus_offset_V_per_C * self.off_C
        lsb_A, lsb_V = self.facts["current_lsb_pA"] * 1e-12, self.facts["vbus_lsb_nV"] * 1e-9
        return round(bus_V / lsb_V) * lsb_V, round(across_V / 0.008 / lsb_A) * lsb_A

    def calibrate(self) -> None:
        """As `rig calibrate` does it, with a meter of its own: V, I, and the leads under load."""
        errors = {q: (self.dice.uniform(-1, 1), self.dice.uniform(-1, 1)) for q in ("V", "I")}

        def shown(quantity: str, true: float) -> float:
            percent, fixed = errors[quantity]
            true += true * percent * METER.percent / 100 + fixed * METER.fixed
            return round(true / METER.digit) * METER.digit

        lines: dict = {}
        taken = []
        for volts in (1.0, self.nominal_V):
            taken.append(Point(self.read(volts, 0.0)[0], 1e-5, shown("V", volts)))
        lines["V"] = calibration.line(taken[0], taken[1], METER, 195_312.5e-9) | {"meter": METER.name}
        mean = lambda amperes: self.read(self.nominal_V, amperes)[1] + self.dice.gauss(0, self.scatter_A)
        zero = Point(mean(0.0), self.scatter_A, 0.0, True)
        two = Point(mean(2.0), self.scatter_A, shown("I", 2.0))
        lines["I"] = calibration.line(zero, two, METER, 9_765_625e-12) | {"meter": METER.name}
        without, with_load = (self.read(self.nominal_V, amperes) for amperes in (0.0, 2.0))
        if self.amplifier:
            lines["I"]["amplifier_nA"] = builds.AMPLIFIER_nA
        idle, loaded = (Point(seen[0], 1e-5, shown("V", self.nominal_V)) for seen in (without, with_load))
        lines["lead"] = calibration.lead(idle, loaded, with_load[1] - without[1], METER)
        self.facts["calibration"] = lines

    def calibrate_by_resistor(self) -> None:
        """As `rig calibrate --quantity I --resistor` does it: no meter at all, the leads as the board says."""
        ohm = RESISTOR.ohm * (1 + self.dice.uniform(-1, 1) * RESISTOR.percent / 100)
        true_A = self.nominal_V / (ohm + self.lead_ohm)
        zero_A, (seen_V, seen_A) = self.read(self.nominal_V, 0.0)[1], self.read(true_A * ohm, true_A)
        amperes, meter = calibrate.of_resistor(self.facts, RESISTOR, seen_V, 1e-5)
        scattered = seen_A + self.dice.gauss(0, self.scatter_A)
        points = Point(zero_A, self.scatter_A, 0.0, True), Point(scattered, self.scatter_A, amperes)
        self.facts["calibration"] = {"I": calibration.line(*points, meter, 9_765_625e-12) | {"meter": meter.name}}

    def use(self, amperes: float) -> tuple[float, float, float]:
        """Measured mean power, stated expanded uncertainty and true power at the drive (W), warmer or colder than at
        its calibration."""
        self.off_C = self.dice.uniform(-uncertainty.TEMPERATURE_C, uncertainty.TEMPERATURE_C)
        bus_V, seen_A = self.read(self.nominal_V, amperes)
        _, v_offset, _, i_offset, ohm = calibration.scales(self.facts)
        lines = calibration.of_rail(self.facts)
        v_gain, i_gain = (calibration.gain_offset(lines[q])[0] if q in lines else 1.0 for q in ("V", "I"))
        seen_A = seen_A * i_gain + i_offset
        volts = bus_V * v_gain + v_offset - seen_A * ohm
        mean = uncertainty.Mean(self.facts, volts, volts * seen_A)
        return mean.watts, uncertainty.expanded_W([mean]), self.nominal_V * amperes


def inside(rigs: int, calibrated: bool, seed: int = 1) -> dict[str, tuple[int, int]]:
    """{what: (rigs, those whose truth lies inside)} of rigs with any rail: any mean current from 5 mA to 3 A, and an
    idle drive."""
    dice, counts = random.Random(seed), dict[str, tuple[int, int]]()
    for number in range(rigs):
        name, volts, lead_mOhm = RAILS[number % len(RAILS)]
        rig = Rig(dice, volts, lead_mOhm)
        if calibrated:
            rig.calibrate()
        any_A = math.exp(dice.uniform(math.log(0.005), math.log(3)))
        for what, amperes in (("5 mA to 3 A", any_A), (f"{IDLE_W * 1000:g} mW on {name}", IDLE_W / volts)):
            watts, stated_W, true_W = rig.use(amperes)
            n, held = counts.get(what, (0, 0))
            counts[what] = n + 1, held + (abs(watts - true_W) <= stated_W)
    return counts


def by_resistor(rigs: int, seed: int = 1) -> tuple[float, float]:
    """(% of rigs calibrated by a resistor alone whose truth lies inside, median of the stated uncertainty in %) of a
    mean current of 5 mA to 3 A."""
    dice, held, stated = random.Random(seed), 0, []
    for number in range(rigs):
        _, volts, lead_mOhm = RAILS[number % len(RAILS)]
        rig = Rig(dice, volts, lead_mOhm)
        rig.calibrate_by_resistor()
        seen_W, stated_W, true_W = rig.use(math.exp(dice.uniform(math.log(0.005), math.log(3))))
        held += abs(seen_W - true_W) <= stated_W
        stated.append(100 * stated_W / true_W)
    return 100 * held / rigs, sorted(stated)[rigs // 2]


def with_amplifier(rigs: int, calibrated: bool, watts: float = IDLE_W, seed: int = 1) -> tuple[float, float]:
    """(% of rigs whose truth lies inside, most that is stated in mW) of an idle M.2 drive behind a shunt that feeds the
    fast channel too."""
    dice, held, most = random.Random(seed), 0, 0.0
    for _ in range(rigs):
        rig = Rig(dice, 3.3, 14, amplifier=True)
        if calibrated:
            rig.calibrate()
        seen_W, stated_W, true_W = rig.use(watts / 3.3)
        held += abs(seen_W - true_W) <= stated_W
        most = max(most, stated_W)
    return 100 * held / rigs, 1000 * most


def low_emf(rigs: int, watts: float, seed: int = 1) -> tuple[float, float]:
    """(% of calibrated rigs whose truth lies inside, % of the power that is stated at most) of an idle M.2 drive behind
    a shunt that makes little thermal EMF."""
    dice, held, most = random.Random(seed), 0, 0.0
    for _ in range(rigs):
        rig = Rig(dice, 3.3, 14, emf_nV_per_C=LOW_EMF_nV_PER_C, scatter_A=1e-6)  # points of a minute
        rig.calibrate()
        seen_W, stated_W, true_W = rig.use(watts / 3.3)
        held += abs(seen_W - true_W) <= stated_W
        most = max(most, stated_W)
    return 100 * held / rigs, 100 * most / watts


def budget() -> list[Figure]:
    out = []
    for watts, limit in LOW_EMF_LEAST.items():
        percent, stated = low_emf(RIGS, watts)
        name = f"{RIGS} rigs calibrated, shunt of {LOW_EMF_nV_PER_C} nV/K, {watts * 1000:g} mW on 3.3 V"
        out.append(Figure(f"{name}, inside k = 2", percent, "%", f"{LEAST:g} to {MOST:g}", LEAST <= percent <= MOST))
        out.append(Figure(f"{name}, stated", stated, "%", f"at most {limit:g}", stated <= limit))
    percent, stated = by_resistor(RIGS)
    name = f"{RIGS} rigs calibrated by {RESISTOR.ohm:g} Ohm {RESISTOR.percent:g} %, no meter, 5 mA to 3 A"
    out.append(Figure(f"{name}, inside k = 2", percent, "%", f"at least {LEAST:g}", percent >= LEAST))
    out.append(Figure(f"{name}, median stated", stated, "%", "at most 0.5", stated <= 0.5))
    for calibrated, kind in ((True, "calibrated"), (False, "as built")):
        percent, stated = with_amplifier(RIGS, calibrated)
        name = f"{RIGS} rigs with the fast channel {kind}, {IDLE_W * 1000:g} mW on 3.3 V"
        out.append(Figure(f"{name}, inside k = 2", percent, "%", f"at least {LEAST:g}", percent >= LEAST))
        out.append(Figure(f"{name}, stated", stated, "mW", "at most 1", stated <= 1))
    for calibrated, kind in ((True, "calibrated"), (False, "as built")):
        for what, (n, held) in inside(RIGS, calibrated).items():
            name, percent = f"{n} rigs {kind}, inside k = 2: {what}", 100 * held / n
            # as built one rectangular limit, the shunt's, is nearly all of it, and k = 2 holds more than 97 %
            high = MOST if what.endswith("3 A" if calibrated else "3.3 V") else 100.0
            out.append(Figure(name, percent, "%", f"{LEAST:g} to {high:g}", LEAST <= percent <= high))
    return out


BENCHES = {"uncertainty": ("the stated uncertainty against 10 000 rigs drawn within their parts' limits", budget)}
