"""What `rig doctor --bring-up` finds: SIMULATED rigs with one fault of assembly each, and sound ones. What a meter
shows is worked out from the circuit (hardware/README.md), with parts and meter anywhere within their tolerances;
behind it come the firmware and the sensors of the stand-in (doctor.py)."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from selfcheck import Figure, at_least, doctor, exactly, in_turn
from ssdrig.rig import answers, bring_up, builds

SOUND = 100
BUILD = "two_rails"
VBUS_kOhm = 1000.0
OVER_kOhm = {3.3: 4.42, 5.0: 11.8}  # of the lock-out's divider, above its 10 kOhm
OHM_OPEN, DIODES_kOhm, DIODE_kOhm = 1e6, 1.2, 0.6  # as an ohmmeter shows two diodes, and one
Answer = Callable[["Rig", int], float]


@dataclass
class Rig:
    """One that is soldered: its parts, and what is wrong with it by the key of the reading that it changes."""

    dice: Random
    wrong: dict[tuple[str, int | None], Answer] = field(default_factory=dict)
    build: str = BUILD
    digits: int = 3  # the meter shows after the decimal point

    def __post_init__(self):
        build = builds.read(self.build)
        self.nominal_V = {row["rail"]: row["nominal_mV"] / 1000 for row in build["rails"]}
        near = lambda value, part: value * (1 + self.dice.uniform(-part, part))
        # the boost module's trimmer, or a supply's 12 V
        self.gate_supply_V = near(12.0, 0.045) if bring_up.board_of(build) == "breakout" else near(24.0, 0.025)
        self.supply_V = {n: near(volts, 0.04) for n, volts in self.nominal_V.items()}
        self.zener_V = {n: near(10.0, 0.02) for n in self.nominal_V}
        # upper and lower of the scope's divider; pull-downs
        pairs = {3.3: (10.0, 10.0), 5.0: (10.0, 10.0), 12.0: (15.0, 3.3)}
        self.divider_kOhm = {n: tuple(near(r, 0.01) for r in pairs[volts]) for n, volts in self.nominal_V.items()}
        self.pulls_kOhm = {n: (near(2.2, 0.01), near(2.2, 0.01)) for n in self.nominal_V}
        self.lost_V = {n: self.dice.uniform(0, 0.002) for n in self.nominal_V}

    def shown(self, key: str, rail: int | None) -> float:
        """What the meter shows: 0.3 % of reading."""
        true = self.wrong[key, rail](self, rail or 0) if (key, rail) in self.wrong else self.true(key, rail or 0)
        return true * (1 + self.dice.uniform(-0.003, 0.003)) if key not in ("supply", "drive", "trips") else true

    def true(self, key: str, n: int) -> float:
        """Of a sound rig."""
        upper, lower = self.divider_kOhm[n]
        off, discharge = self.pulls_kOhm[n]
        source_V = self.supply_V[n]
        gate_V = min(self.gate_supply_V, source_V + self.zener_V[n])
        return {
            "input": OVER_kOhm[self.nominal_V[n]] + 10 if self.build in bring_up.BREAKOUTS else 40.0,
            "through": OHM_OPEN,
            "back": OHM_OPEN,
            "output": 1 / (1 / (upper + lower) + 1 / VBUS_kOhm),
            "OFF": off + 0.1,
            "DISCHARGE": discharge,
            "gate supply": self.gate_supply_V,
            "supply": source_V,
            "drive": source_V - self.lost_V[n],
            "cold": 1.0,
            "gate": gate_V,
            "gate to source": gate_V - source_V,
            "reference": 2.495,
            "logic supply": 4.8,
            "PERST#": 1.0,
            "trips": 1.0,
            "lock-out gate": self.gate_supply_V if self.build in bring_up.BREAKOUTS else 4.8,
            "SCOPE": source_V * lower / (upper + lower),
        }[key]

    def answer(self, words: str, readings: list[bring_up.Reading]) -> str:
        """What its builder types when asked."""
        for one in readings:
            where = "" if one.rail is None else f"rail {one.rail}, "
            if words == f"{where}{one.words}, {'y or n' if one.unit == 'yes' else one.unit}: ":
                if one.optional and (one.key, one.rail) not in self.wrong:
                    return ""
                value = self.shown(one.key, one.rail)
                return (
                    ("y" if value else "n")
                    if one.unit == "yes"
                    else "ol"
                    if value >= OHM_OPEN
                    else f"{value:.{self.digits}f}"
                )
        return ""


def _is(value: float) -> Answer:
    return lambda rig, n: value


# fault: (step at which it must be found, readings that it changes)
BY_HAND: dict[str, tuple[int, dict[tuple[str, int | None], Answer]]] = {
    "capacitor turned": (1, {("input", 0): _is(0.4)}),
    "TVS turned": (1, {("input", 1): _is(DIODE_kOhm)}),
    "Q1 turned, drain and source": (1, {("through", 0): _is(DIODES_kOhm)}),
    "Q2 turned, drain and source": (1, {("back", 1): _is(DIODES_kOhm)}),
    "Q1 short": (1, {("through", 1): _is(DIODE_kOhm)}),
    "FET of the crowbar turned": (1, {("output", 0): _is(DIODE_kOhm)}),
    "divider without its lower resistor": (1, {("output", 0): _is(OHM_OPEN)}),
    "divider of 5 V on 12 V": (1, {("output", 1): _is(20.0)}),
    "OFF without its pull-down": (2, {("OFF", 0): _is(OHM_OPEN)}),
    "22 kOhm for 2.2 at OFF": (2, {("OFF", 1): _is(22.1)}),
    "DISCHARGE without its pull-down": (2, {("DISCHARGE", 1): _is(OHM_OPEN)}),
    "OFF and DISCHARGE exchanged": (2, {("OFF", 0): _is(2.2), ("DISCHARGE", 0): _is(2.32)}),
    "gate supply not set": (3, {("gate supply", None): _is(12.0)}),
    "gate supply absent": (3, {("gate supply", None): _is(0.0)}),
    "gate supply set too high": (3, {("gate supply", None): _is(28.0)}),
    "fuse missing": (4, {("drive", 0): _is(0.0)}),
    "12 V converter instead of 5 V": (4, {("supply", 0): _is(12.1), ("drive", 0): _is(12.1)}),
    "5 V and 12 V exchanged at the drive": (4, {("drive", 0): lambda rig, n: rig.supply_V[1], ("drive", 1): _is(5.0)}),
    "gate resistor open": (4, {("drive", 1): _is(0.0)}),
    "bad joint at the fuse": (4, {("drive", 0): lambda rig, n: rig.supply_V[n] - 0.05}),
    "FET of the crowbar short": (4, {("cold", 1): _is(0.0)}),
    "zener turned": (5, {("gate", 0): lambda rig, n: rig.supply_V[n] + 0.7}),
    "zener of 5.1 V": (5, {("gate", 1): lambda rig, n: rig.supply_V[n] + 5.1}),
    "zener absent": (5, {("gate", 0): lambda rig, n: rig.gate_supply_V}),
    "divider's resistors exchanged": (6, {("SCOPE", 1): lambda rig, n: rig.supply_V[n] * 15 / 18.3}),
    "SCOPE on another pin": (6, {("SCOPE", 0): _is(0.0)}),
}
BREAKOUT = "one_rail"
# of the breakout's board, which has a lock-out and its gates on 12 V
ON_BREAKOUT: dict[str, tuple[int, dict[tuple[str, int | None], Answer]]] = {
    "fuse missing": (1, {("input", 0): _is(OHM_OPEN)}),
    "lock-out's divider without its upper resistor": (1, {("input", 0): _is(OHM_OPEN)}),
    "lock-out's divider of 12 V": (1, {("input", 0): _is(52.2)}),
    "lock-out's upper resistor of ten times": (1, {("input", 0): _is(128.0)}),
    "TVS turned": (1, {("input", 0): _is(DIODE_kOhm)}),
    "TVS short": (1, {("input", 0): _is(0.0)}),
    "freewheel diode turned": (1, {("output", 0): _is(DIODE_kOhm)}),
    "OFF bridged to DISCHARGE": (2, {("OFF", 0): _is(1.124), ("DISCHARGE", 0): _is(1.124)}),
    "pull-down of 10 kOhm at OFF": (2, {("OFF", 0): _is(10.1)}),
    "12 V lead missing": (3, {("gate supply", None): _is(0.0)}),
    "5 V in the lead of 12 V": (3, {("gate supply", None): lambda rig, n: rig.supply_V[n]}),
    "boost module of 24 V in place of 12 V": (3, {("gate supply", None): _is(24.0)}),
    "gate resistor missing": (4, {("drive", 0): _is(0.0)}),
    "comparator missing": (4, {("drive", 0): _is(0.0)}),
    "reference turned": (5, {("reference", None): _is(0.7)}),
    "reference of 1.24 V": (5, {("reference", None): _is(1.24)}),
    "reference missing": (5, {("reference", None): _is(5.0)}),
    "regulator short from input to output": (3, {("logic supply", None): _is(12.0)}),
    "resistor of the reference bridged": (3, {("logic supply", None): _is(2.5)}),
    "comparator whose output is stuck low": (5, {("trips", 0): _is(0.0)}),
    "lock-out's FET missing": (5, {("trips", 0): _is(0.0)}),
    "lower resistor of the lock-out's divider bridged": (5, {("trips", 0): _is(0.0)}),
    "pull-up of the lock-out missing": (5, {("lock-out gate", 0): _is(2.1)}),
    "lock-out that never comes": (5, {("lock-out", 0): _is(6.5)}),
    "zener turned": (5, {("gate", 0): lambda rig, n: rig.supply_V[n] + 0.7}),
    "zener of 5.1 V": (5, {("gate", 0): lambda rig, n: rig.supply_V[n] + 5.1}),
}
# those that no meter shows: of doctor.FAULTS
BY_THE_RIG = {
    "sensor absent": 7,
    "sensors exchanged": 7,
    "second ALERT open": 7,
    "VBUS open": 7,
    "sensor is another chip": 7,
    "inputs of the scope exchanged": 7,
    "shunt 15 instead of 8 mOhm": 8,
    "ground wire of 0.3 Ohm": 8,
    "gates exchanged": 9,
    "5 V: series switch short": 9,
    "12 V: crowbar's switch open, or its resistor or fuse": 9,
}


def by_hand(rig: Rig) -> int | None:
    """The first step by hand that fails."""
    build = builds.read(rig.build)
    readings = bring_up.readings(build)
    typed = answers.Questions(lambda words: rig.answer(words, readings), lambda words: None, tries=1)
    done = bring_up.by_hand(build, typed)
    return bring_up.first_failed(done)


def by_the_rig(settings: dict) -> int | None:
    """The first step that fails of a stand-in's self-test."""
    with tempfile.TemporaryDirectory(prefix="ssdrig-bring-up-") as folder:
        made = doctor.certificate_of(settings, Path(folder))
    checks = [bring_up.Check(**check) for check in made["checks"]]
    return bring_up.first_failed(bring_up.grouped([], checks))


def faults_detected() -> list[Figure]:
    dice = Random(46)
    right, total = 0, len(BY_HAND) + len(ON_BREAKOUT) + len(BY_THE_RIG)
    for build, faults in ((BUILD, BY_HAND), (BREAKOUT, ON_BREAKOUT)):
        for name, (step, wrong) in faults.items():
            seen = by_hand(Rig(dice, wrong, build))
            right += seen == step
            if seen != step:
                print(f"{build}, {name}: step {seen} instead of {step}")
    for name in in_turn(list(BY_THE_RIG), "bring-up"):
        seen = by_the_rig(doctor.FAULTS[name])
        right += seen == BY_THE_RIG[name]
        if seen != BY_THE_RIG[name]:
            print(f"{name}: step {seen} instead of {BY_THE_RIG[name]}")
    rigs = [Rig(dice, {}, (BUILD, BREAKOUT, "one_m2_rail")[k % 3], digits=2 + k % 2) for k in range(SOUND)]
    false = sum(by_hand(rig) is not None for rig in rigs)
    return [
        at_least(f"faults of assembly found at their step, of {total}", 100 * right / total, "%", 95),
        exactly(f"sound rigs of {SOUND} with a fault by hand (by the rig: selfcheck doctor)", false, "", 0),
    ]


BENCHES = {
    "bring-up": ("faults of assembly that the first power-up finds at their step, sound rigs it stops", faults_detected)
}
