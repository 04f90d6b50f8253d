"""The first power-up of a self-built rig, step by step as in hardware/README.md: what the builder reads
on a meter before the Pico is in its socket, then what the rig's self-test finds. The first step that fails is the last
until it is repaired: after it parts may burn."""

import hashlib
import math
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ssdrig.base import soft_start
from ssdrig.base.errors import UsageError
from ssdrig.meter import nominal
from ssdrig.meter.pico.certificate import Check
from ssdrig.rig import builds, checks
from ssdrig.rig.answers import Questions
from ssdrig.rig.builds import GATE_SUPPLY_V

CLAMP_V = 10.0  # hardware/values.csv: gate_clamp
ADC_nV_PER_COUNT = 3.3e9 / 4096  # of the Pico, without a divider
DIVIDER_kOhm = {2.0: 20.0, 5.5: 18.3}  # by its ratio: both resistors of the scope's divider
LOCK_OUT_V = {3300: (3.55, 3.67), 5000: (5.37, 5.57), 12000: (12.73, 13.23)}  # by the rail's mV
# of LOGIC_5V; and on the board, which makes it of the 5 V rail's supply, less than 5 V or that supply: U6 and U9 of a
# sound one take 0.14 V at 4.75 V. One that takes more than this at 5.25 V may leave the lock-outs too little at 4.75 V
LOGIC_V, BOARD_LOGIC_V = (4.65, 5.2), (4.45, 5.2)
LOGIC_DROP_V = 0.25
LOCK_OUT_kOhm = {3300: 14.42, 5000: 21.8, 12000: 51.7}  # hardware/values.csv: ovp_upper and ovp_lower
GATE_ISOLATION_kOhm = (
    2.2  # the same file: gate_isolation, of each of two; OFF_Ohm: lockout_off_resistor, by the rail's mV
)
OFF_Ohm, BREAKOUT_OFF_Ohm = {3300: 22.0, 5000: 68.0, 12000: 210.0}, 22.0
OVP_LOWER_kOhm, HYSTERESIS_kOhm = 10.0, 1000.0
PULL_UP_kOhm, BREAKOUT_PULL_UP_kOhm = 4.7 / 2, 10.0 / 2  # ovp_pull_up of both values.csv: two side by side
CROWBAR_FUSE_A = LOGIC_FUSE_A = 0.5
SCHOTTKY_V, BODY_V = (
    (0.08, 0.45),
    (0.3, 0.9),
)  # the freewheel diode's in a meter's diode range; a FET's own, a zener's, the TVS'
# OVREF with 560 Ohm and R31 (2 kOhm) to ground, LOGIC_V through 1 kOhm, less what the references take below 2.5 V;
# on the breakout's board 1 kOhm and VGATE through 2.2
HELD_V = 1.2, 1.95
REFERENCE_kOhm, BREAKOUT_REFERENCE_kOhm = (1.65, 2.04), (0.9, 1.02)  # R31; the supplies that R26 leads to are still
FUSE_A = {3300: 3.0, 5000: 10.0, 12000: 7.5}  # by the rail's mV; of an M.2 rail in the converter's 12 V lead
# two diodes in series show 1.0 to 1.25 V; a sound pair of FETs from 1.35 V on, their threshold, or ol
DIODE_V = 1.3, 5.0
UNPOWERED = 2  # the last step in which a meter may show an open circuit
DERIVED = {
    "drive": "lost",
    "logic supply": "logic drop",
    "share": "trips at",
    "share held": "hysteresis",
}  # by the last of their readings
FEEDS = {"supply": "lost", "share": "hysteresis"}  # by a reading: the figure made from it and a later one of its step
AT_DRIVE_V = 0.01  # that the rail loses without a load
BREAKOUTS = ("one_rail", "one_m2_rail")
STEPS = {
    1: "nothing powered, no drive, Pico not in its socket; ohmmeter, or its diode range, plus lead at the first point",
    2: "still unpowered: lines and supplies at the Pico's socket, the resistors that protect",
    3: "the supply's leads before they are in the rig; then supply on, Pico not in its socket, no drive",
    4: "the same: voltmeter at the rig's input, then at the drive's connector",
    5: "the same: gates, lock-outs",
    6: "supply off, Pico in its socket, supply on, USB in: SCOPE at the Pico",
    7: "what the rig measures of itself",
    8: "a resistor in place of the drive",
    9: "cuts of each rail",
}
# which step a check of the self-test belongs to, by how its name begins
OF_SELF_TEST = {
    **dict.fromkeys(("I2C", "SPI", "sensor", "conversions", "supply", "voltage", "zero", "noise", "fast"), 7),
    **dict.fromkeys(("scope", "board's"), 7),
    **dict.fromkeys(("current through", "resist", "resets"), 8),
    **dict.fromkeys(("opens", "left", "switch", "fall", "kept while", "discharge switch", "rise", "red lamp"), 9),
}


class Circuit(NamedTuple):
    """What differs between the circuits that carry a build: what feeds the gates, and whether it locks out."""

    gates_V: float
    gates_part: float  # by which that may be off
    lock_out: bool
    do: str
    gate_kOhm: dict[int, float]  # by the rail's mV
    test_pin: int | None = None  # of the Pico's socket: trips the lock-outs
    sideband_pin: int | None = None  # SIDEBAND_OFF


BOARDS = {
    "board": Circuit(GATE_SUPPLY_V, 0.03, True, "R13, U5; no supply there: F1", soft_start.BOARD_kOhm, 1, 25),
    # the 12 V of its supply, within 5 %, less up to 0.4 V in D3
    "breakout": Circuit(11.8, 0.068, True, "12 V at J2, the PTC F1, D3", soft_start.BREAKOUT_kOhm, test_pin=20),
    "prototyping": Circuit(
        GATE_SUPPLY_V, 0.03, False, "the trimmer of the boost module; its supply", soft_start.BOARD_kOhm
    ),
}


def board_of(build: dict) -> str:
    """The circuit that hardware/README.md documents for a build, of BOARDS."""
    name = str(build["build"])
    return "board" if name.startswith("four_rails") else "breakout" if name in BREAKOUTS else "prototyping"


def rise_ms(build: str | None, mV: int | None) -> tuple[float, float] | None:
    """What a rail's rise from 10 to 90 % may take by the parts' tolerances; None for a voltage of no circuit.

    build: its name; one of another name, or that two circuits may carry, has the limits of all of them
    mV: of the rail"""
    known = builds.names()
    boards = ["board"] if str(build).startswith("four_rails") else list(BOARDS)
    if build in known and build not in (*BREAKOUTS, "four_rails"):
        boards = [board_of({"build": build})]
    circuits = [BOARDS[board] for board in boards]
    ends = [
        soft_start.ends_ms(circuit.gate_kOhm[mV], circuit.gates_V, circuit.gates_part, mV / 1000)
        for circuit in circuits
        if mV in circuit.gate_kOhm
    ]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


class Reading(NamedTuple):
    """One thing that the builder reads: of a rail (None: of the whole rig), in `unit`, "yes" of a question."""

    step: int
    key: str
    rail: int | None
    words: str
    unit: str
    low: float | None
    high: float | None
    do: str
    optional: bool = False
    open: bool = False  # an open circuit is as good as a value within the limits

    def question(self) -> str:
        return question_of([self])

    def fits(self, value: float) -> bool:
        if math.isinf(value) and self.open:
            return True
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def question_of(readings: Sequence[Reading]) -> str:
    """The question for a reading, or for the same one of several rails."""
    rails = [str(one.rail) for one in readings if one.rail is not None]
    first, several = readings[0], len(readings) > 1
    where = f"{'rails' if several else 'rail'} {' '.join(rails)}: " if rails else ""
    how = "y or n" if first.unit == "yes" else first.unit
    if several:
        how = "y, or the rails that are not so" if first.unit == "yes" else f"{first.unit} of each, or of the first"
    return f"{where}{first.words}, {how}: "


class Done(NamedTuple):
    """A step that was taken: its checks, the builder's photo of it, if there is one, and when a step by hand ended.

    utc_ns: None of a step by hand that is under way
    repaired: checks that failed when it was taken before"""

    step: int
    checks: list[Check]
    photo: str | None = None
    photo_sha256: str | None = None
    utc_ns: int | None = None
    repaired: tuple[Check, ...] = ()

    @property
    def failed(self) -> bool:
        return any(check.ok is False for check in self.checks)

    def document(self) -> dict:
        lists = {name: [check._asdict() for check in getattr(self, name)] for name in ("checks", "repaired")}
        return {**self._asdict(), **lists}

    def again(self) -> "Done":
        """What of a step that was interrupted, or has failed, need not be read again: after a failure nothing of its
        rail, or nothing at all where the whole rig failed."""
        bad = [check for check in self.checks if check.ok is False]
        rails = {check.rail for check in bad}
        checks_ = [] if None in rails else [check for check in self.checks if check.rail not in rails]
        names = {(check.name, check.rail) for check in checks_}
        # the last digit of a stored value is not known
        half = {of for of in names if of[0] in FEEDS and (FEEDS[of[0]], of[1]) not in names}
        sound = [check for check in checks_ if (check.name, check.rail) not in half]
        return Done(self.step, sound, repaired=(*self.repaired, *bad))


def readings(build: dict, board: str | None = None) -> list[Reading]:
    """What the builder of this build reads in steps 1 to 6, in order. board: of BOARDS; None: the documented one."""
    circuit = BOARDS[board or board_of(build)]
    low_V, high_V = (circuit.gates_V * (1 + sign * circuit.gates_part) for sign in (-1, 1))
    out = _of_12V() if circuit.gates_V < GATE_SUPPLY_V else []
    out += [Reading(3, "gate supply", None, "gate supply VGATE to GND", "V", low_V, high_V, circuit.do)]
    dividers = {row["rail"]: row["nV_per_count"] / ADC_nV_PER_COUNT for row in build["scope"]}
    if circuit.lock_out:
        out.append(
            Reading(
                *(3, "logic supply", None, "LOGIC_5V to GND", "V"),
                *(LOGIC_V if circuit.gates_V < GATE_SUPPLY_V else BOARD_LOGIC_V),
                "U6 (the board: and U9); low: R26, U7 short",
            )
        )
        words = "are U7 and U8 both in place, with the same mark and the same way round"
        out.append(Reading(1, "references", None, words, "yes", 1, 1, "both: one alone works, until it fails"))
        words, do = "rating of F1, by its mark", "a larger one does not protect the logic's wires"
        out.append(Reading(1, "logic fuse", None, words, "A", LOGIC_FUSE_A, LOGIC_FUSE_A, do))
        words = "have the logic chips (U2: HC132, with Schmitt inputs) and the diodes the marks of bom.csv"
        out.append(Reading(1, "marks", None, words, "yes", 1, 1, "a part of another kind: no reading shows it"))
        load_kOhm = BREAKOUT_REFERENCE_kOhm if circuit.gates_V < GATE_SUPPLY_V else REFERENCE_kOhm
        do = "R31: the lock-outs sleep before the gates are empty when their supply goes"
        out.append(Reading(2, "reference load", None, "OVREF to GND, once still", "kOhm", *load_kOhm, do))
        out.append(Reading(5, "reference", None, "OVREF to GND", "V", 2.46, 2.53, "U7, U8 and their resistor"))
        words = "560 Ohm from OVREF to GND, meter across it"
        out.append(Reading(5, "reference held", None, words, "V", *HELD_V, "R26; is it 560 Ohm?"))
        lamps = "are the lamps of 3.3 V and VGATE lit" if circuit.sideband_pin else "is the lamp of 3.3 V lit"
        out.append(Reading(6, "lamps", None, lamps, "yes", 1, 1, "a lamp is turned, or its resistor"))
    if circuit.sideband_pin:
        past = "turned or short it leads past the regulator: 24 V there would reach the logic"
        sleeps = "turned: no lock-out works; short: none does once the logic's input has gone"
        for name, one, other, do in (
            ("D8", "LOGIC_6V", "LOGIC_IN", past),
            ("D9", "LOGIC_5V", "LOGIC_6V", past),
            ("D3", "LOGIC_5V", "LOCK_5V", sleeps),
        ):
            words = f"{name}, from {one} to {other}, once still, diode range, minus lead at its printed dot"
            out.append(Reading(1, name, None, words, "V", *SCHOTTKY_V, do))
        words = "LOCK_5V to GND: did the display climb for a second or more"
        do = "C10: without it no lock-out works once the logic's input has gone"
        out.append(Reading(1, "lock-out climbs", None, words, "yes", 1, 1, do))
    if circuit.test_pin:
        words = f"pin {circuit.test_pin} of the Pico's socket to GND"
        do = "R28, R29: without R28 a Pico in reset may trip the lock-outs"
        out.append(Reading(2, "lock-out line", None, words, "kOhm", 5.4, 6.0, do))
        words = "VSYS, pin 39 of the Pico's socket, to GND (open: ol)"
        do = "a bridge to pin 38: it shorts the host's USB port"
        out.append(Reading(2, "VSYS", None, words, "kOhm", 100.0, None, do, open=True))
    words = "+3V3 to GND, pins 36 and 38 of the Pico's socket (open: ol)"
    out.append(Reading(2, "logic short", None, words, "kOhm", 0.5, None, "a bridge, a capacitor, a chip turned"))
    if build["sideband"] is not None:
        words = "PERST# of the host to PERST# of the drive, at the rig"
        out.append(
            Reading(2, "PERST#", None, words, "kOhm", 0.95, 1.05, "R15: without it the host drives the cut drive")
        )
        words = "PERST_LOW (pin 24 of the Pico's socket) to GND"
        out.append(Reading(2, "PERST_LOW", None, words, "kOhm", 4.4, 5.0, "R9: its FET would float, or never close"))
        if circuit.sideband_pin:
            words = f"SIDEBAND_OFF (pin {circuit.sideband_pin} of the Pico's socket) to GND"
            do = "R10: the side-band would float while the Pico starts"
            out.append(Reading(2, "SIDEBAND_OFF", None, words, "kOhm", 4.4, 5.0, do))
        if circuit.lock_out:
            words = "560 Ohm from LOGIC_5V to PERST_LOW (pin 24): PERST# of the drive to GND"
            out.append(Reading(5, "PERST# held", None, words, "Ohm", None, 5.0, "Q1: its gate has no joint"))
        words = "GND to PERST# of the drive, diode range, plus lead at GND"
        out.append(Reading(2, "PERST# FET", None, words, "V", *BODY_V, "Q1 missing, or short"))
        words = "the same two points, plus lead at PERST# (open: ol)"
        out.append(Reading(2, "PERST# back", None, words, "V", *DIODE_V, "Q1 turned, or short", open=True))
    crowbars = {one["rail"]: one["discharge_mOhm"] / 1000 for one in build["switch"] or () if "discharge_mOhm" in one}
    for row in build["rails"]:
        n = row["rail"]
        ohm = crowbars.get(n)
        out += _of_rail(n, row["nominal_mV"], dividers.get(n), circuit, "aux" in row["name"], ohm)
    words = "after a minute, is every part cold, the crowbars' resistors, too"
    out.append(Reading(4, "cold", None, words, "yes", 1, 1, "the crowbar's FET, a zener: STOP"))
    kinds = {kind: k for k, kind in reversed([*enumerate(map(_kind, out))])}
    # the leads before the supply is on; readings with the resistor of 560 Ohm last
    late = lambda one: (one.step == 3 and "not in the rig" not in one.words, "560 Ohm" in one.words)
    return sorted(out, key=lambda one: (one.step, late(one), kinds[_kind(one)]))


def _of_12V() -> list[Reading]:
    """Readings of gates that a lead of 12 V feeds, through F1 and D3 into C11."""
    words, do = "12 V of J2 to VGATE, diode range, plus lead at J2", "D3: turned, missing, short; F1"
    climbs = "VGATE to GND: did the display climb for five seconds or more"
    lasts = "C11: without it no lock-out works once the 12 V have gone"
    return [
        Reading(3, "12 V lead", None, "12 V lead to its ground, not in the rig", "V", 11.4, 12.6, "turned, or wrong"),
        Reading(1, "12 V diode", None, words, "V", *SCHOTTKY_V, do),
        Reading(1, "gates climb", None, climbs, "yes", 1, 1, lasts),
        Reading(1, "gates short", None, "VGATE to GND, once still", "kOhm", 1.0, None, "C11 turned, D2", open=True),
    ]


def _kind(reading: Reading) -> tuple[str, str]:
    return reading.key, reading.words


def _of_rail(
    n: int, mV: int, ratio: float | None, circuit: Circuit, auxiliary: bool, crowbar_Ohm: float | None
) -> list[Reading]:
    """auxiliary: 3.3Vaux, whose one contact has no fuse of the rig's"""
    volts = mV / 1000
    low_V, high_V = 0.95 * volts, 1.05 * volts
    gates_low_V, gates_high_V = (circuit.gates_V * (1 + sign * circuit.gates_part) for sign in (-1, 1))
    # a meter of 10 MOhm at the gate resistor, and its own error
    gate_V = 0.97 * min(low_V + 0.97 * CLAMP_V, gates_low_V), min(high_V + 1.03 * CLAMP_V, gates_high_V)
    above_V = min(0.9 * CLAMP_V, 0.97 * gates_low_V - high_V), min(1.1 * CLAMP_V, gates_high_V - low_V)
    fets = "a series FET is turned (drain and source), or short"
    input_kOhm = 1.05 * LOCK_OUT_kOhm[mV] if circuit.lock_out and mV in LOCK_OUT_kOhm else None
    at_input = "low: capacitor or TVS turned, short" + ("; high: fuse, R19, R20" if input_kOhm else "")
    amps, where = FUSE_A.get(mV), "the converter's 12 V lead" if mV == 3300 else "the rail's lead or holder"
    do = "the right fuse: a larger one does not protect the wires, a smaller one opens when a drive starts"
    fused = amps is not None and not auxiliary
    fuse = [Reading(1, "fuse", n, f"number on the fuse in {where}", "A", amps, amps, do)] if fused else []
    words = "RAIL_IN to GND: did the display climb for five seconds or more"
    out = [
        *fuse,
        Reading(1, "source", n, "SRC to RAIL_IN, diode range, plus lead at SRC", "V", *BODY_V, fets),
        Reading(
            3, "leads", n, "lead for RAIL_IN to lead for GND, not in the rig", "V", low_V, high_V, "turned, or wrong"
        ),
        Reading(1, "input", n, "RAIL_IN to GND, once still", "kOhm", 1.0, input_kOhm, at_input),
        Reading(1, "climbs", n, words, "yes", 1, 1, "the input's capacitor, C01: missing, or a smaller one"),
        Reading(1, "through", n, "RAIL_IN to SW, diode range (open: ol)", "V", *DIODE_V, fets, open=True),
        Reading(1, "back", n, "SW to RAIL_IN, diode range (open: ol)", "V", *DIODE_V, fets, open=True),
        Reading(1, "gate stopper", n, "gate of Q01 to GATE", "Ohm", 9.3, 11.7, "R01: the FETs may oscillate"),
        Reading(2, "crowbar resistor", n, "across R09", "Ohm", 437.0, 504.0, "R09: too fast or too slow a crowbar"),
        Reading(2, "OFF", n, "OFF to GND", "kOhm", 2.25, 2.42, "its pull-down of 2.2 kOhm, 100 Ohm to the FET"),
        Reading(2, "DISCHARGE", n, "DISCHARGE to GND", "kOhm", 2.09, 2.31, "its pull-down of 2.2 kOhm"),
        Reading(4, "supply", n, "at RAIL_IN", "V", low_V, high_V, "the supply, or the wrong one: STOP"),
        Reading(
            *(4, "drive", n, "at the drive's connector", "V", low_V - AT_DRIVE_V, high_V),
            "fuse, gate supply, gate resistor, zener, cable; lock-out, its reference; 5 V and 12 V exchanged: STOP",
        ),
        Reading(5, "gate", n, "GATE to GND", "V", *gate_V, "zener D1: turned, or another voltage; gate resistor"),
        Reading(5, "gate to source", n, "GATE to SRC", "V", *above_V, "zener D1"),
    ]
    if circuit.lock_out and crowbar_Ohm:
        do = "the crowbar's resistor, or its fuse"
        words = "SW to the drain of Q04"
        out.append(Reading(1, "crowbar path", n, words, "Ohm", 0.87 * crowbar_Ohm, 1.1 * crowbar_Ohm + 0.6, do))
        words = "rating of the crowbar's fuse F02, by its mark"
        do = "a larger one lets the crowbar's resistor burn"
        out.append(Reading(1, "crowbar fuse", n, words, "A", CROWBAR_FUSE_A, CROWBAR_FUSE_A, do))
        words, do = ("gate of Q04 to GND", "R15: without it the crowbar may close while the logic has no supply")
        out.append(Reading(2, "crowbar gate", n, words, "kOhm", 9.0, 10.8, do))
        words = "is its red lamp dark, and are after a minute the crowbar's resistor and FET cold"
        out.append(
            Reading(
                6,
                "crowbar off",
                n,
                words,
                "yes",
                1,
                1,
                "U2 (the board: or U3): a crowbar closed on a rail at work: STOP",
            )
        )
        words = "OFF to C03 where R10 ends"
        out.append(Reading(2, "interlock", n, words, "kOhm", 21.0, 23.0, "R10: the crowbar would close too soon"))
    if circuit.lock_out:
        on_12V = circuit.gates_V < GATE_SUPPLY_V
        words, do = f"gate of Q05 to {'VGATE' if on_12V else 'LOCK_5V'}", "R25, R27: one of the two, or another value"
        pull_up_kOhm = BREAKOUT_PULL_UP_kOhm if on_12V else PULL_UP_kOhm
        out.append(Reading(2, "lock-out pull-up", n, words, "kOhm", 0.983 * pull_up_kOhm, 1.021 * pull_up_kOhm, do))
        out.append(Reading(4, "lamp", n, "is its green lamp lit", "yes", 1, 1, "D05 turned, R22"))
        words = "GND to RAIL_IN, once still, diode range, plus lead at GND"
        out.append(Reading(1, "freewheel", n, "GND to SW, diode range, plus lead at GND", "V", *SCHOTTKY_V, "D02"))
        out.append(Reading(1, "TVS", n, words, "V", *BODY_V, "D04"))
        if ratio:
            do = "R28: without it a fault of R12 reaches the Pico's pin"
            out.append(Reading(2, "scope resistor", n, "across R28", "kOhm", 2.09, 2.31, do))
    if circuit.lock_out and circuit.gates_V < GATE_SUPPLY_V:  # its gates never reach the zener's voltage
        words = "SRC to GATE, diode range, plus lead at SRC"
        out.append(Reading(1, "gate clamp", n, words, "V", *BODY_V, "D01 missing, turned"))
    if circuit.lock_out and mV in circuit.gate_kOhm:
        off_Ohm = OFF_Ohm[mV] if circuit.gates_V == GATE_SUPPLY_V else BREAKOUT_OFF_Ohm
        words, do = "GATE to the drain of Q05", "R21: a lock-out that is too slow"
        out.append(Reading(2, "lock-out resistor", n, words, "Ohm", 0.93 * off_Ohm, 1.07 * off_Ohm + 1, do))
        part = OVP_LOWER_kOhm * HYSTERESIS_kOhm / (OVP_LOWER_kOhm + HYSTERESIS_kOhm)
        part /= part + LOCK_OUT_kOhm[mV] - OVP_LOWER_kOhm
        words, do = "pin 3 of U02 to GND, where R19 and R20 meet", "R19, R20, R24"
        out.append(Reading(5, "share", n, words, "V", 0.97 * part * low_V, 1.03 * part * high_V, do))
        gate_kOhm = circuit.gate_kOhm[mV]
        held_kOhm = 2 * GATE_ISOLATION_kOhm + off_Ohm / 1000
        part = held_kOhm / (held_kOhm + gate_kOhm)
        ramp_V = 0.95 * part * gates_low_V, 1.05 * part * gates_high_V
        words = "with the 560 Ohm: C02 to GND, where R26 ends"
        do = "R14 or R26 short; R03: too soft or too hard a start"
        out.append(Reading(5, "ramp", n, words, "V", *ramp_V, do))
    if ratio:
        kOhm = DIVIDER_kOhm[min(DIVIDER_kOhm, key=lambda known: abs(known - ratio))]
        do = "the scope's divider; the crowbar's FET is turned"
        # the sensor's VBUS, 1 MOhm, takes 2 % of it, the Schottky diode some uA
        out.append(Reading(1, "output", n, "SW to GND", "kOhm", 0.8 * kOhm, 1.03 * kOhm, do))
        scope_V = volts / ratio
        # 5 % of the supply, 1 % of each resistor, the meter
        out.append(Reading(6, "SCOPE", n, "SCOPE to GND", "V", 0.92 * scope_V, 1.08 * scope_V, "its divider"))
    if circuit.lock_out and mV in LOCK_OUT_V:
        # 560 Ohm take OVREF to 1.9 V at most: below the share of each rail at 95 % of its voltage
        words = "560 Ohm from OVREF to GND: is the drive's connector at 0 V with it, and back without"
        out.append(Reading(5, "trips", n, words, "yes", 1, 1, "U02, R19, R20, R21, R25, Q05: STOP, it has no lock-out"))
        words = "with the 560 Ohm: gate of Q05 to GND"
        low_V, high_V = BOARD_LOGIC_V if circuit.gates_V == GATE_SUPPLY_V else (gates_low_V - 0.3, gates_high_V)
        out.append(
            Reading(5, "lock-out gate", n, words, "V", low_V, high_V, "R25 and R27: without them the lock-out is late")
        )
        words = "with the 560 Ohm: pin 3 of U02 to GND, again"
        part = 1 - (LOCK_OUT_kOhm[mV] - OVP_LOWER_kOhm) / LOCK_OUT_kOhm[mV]
        limits_V = 0.97 * part * 0.95 * volts, 1.06 * part * 1.05 * volts
        out.append(Reading(5, "share held", n, words, "V", *limits_V, "R19, R20, R24"))
        words = "bench supply, no drive: it goes off at (Enter: not tried)"
        out.append(Reading(5, "lock-out", n, words, "V", *LOCK_OUT_V[mV], "U2, its divider", optional=True))
    return out


def judged(reading: Reading, value: float) -> Check:
    """The check made from a reading; 1.0 and 0.0 are yes and no."""
    if reading.unit == "yes":
        return checks.fact(reading.key, reading.rail, value > 0, "yes" if value else "no", reading.do)
    # an open circuit is not a number of JSON
    open_circuit = math.isinf(value)
    shown, high = min(value, 1e9), None if open_circuit and reading.open else reading.high
    check = checks.figure(reading.key, reading.rail, shown, reading.unit, reading.low, high, reading.do)
    return check._replace(why="open" if open_circuit else "")


def asked(wanted: Sequence[Reading], questions: Questions) -> list[tuple[Check, float]]:
    """The checks made from the builder's answer to one question, of the first of these readings or of more, and what
    the last digit of each counts. Raises NoAnswer.

    wanted: of one kind, each of another rail"""
    words, first = question_of(wanted), wanted[0]
    if first.unit == "yes":
        if len(wanted) == 1:
            return [(judged(first, float(questions.yes(words))), 0.0)]
        bad = questions.which(words, [one.rail for one in wanted if one.rail is not None])
        return [(judged(one, float(one.rail not in bad)), 0.0) for one in wanted]
    typed = questions.numbers(words, first.unit, [one.fits for one in wanted], first.optional, first.step <= UNPOWERED)
    out = []
    for one, number in zip(wanted, typed, strict=False):
        check = checks.skipped(one.key, one.rail, "not tried") if number is None else judged(one, number.value)
        out.append((check, number.digit if number else 0.0))
    return out


def step(
    number: int,
    wanted: list[Reading],
    questions: Questions,
    earlier: Sequence[Check] = (),
    begun: Done | None = None,
    keep: Callable[[Done], None] = lambda done: None,
) -> Done:
    """Ask for the readings of one step until one fails. Raises NoAnswer.

    earlier: checks of the steps before
    begun: the same step, which was interrupted, or has failed and was repaired
    keep: called with the step after each answer"""
    questions.show(f"\n[{number} of {len(STEPS)}] {STEPS[number]}")
    done = begun.again() if begun else Done(number, [])
    checks_, digits_ = list(done.checks), {}
    have = {(check.name, check.rail) for check in checks_}
    left = [one for one in wanted if (one.key, one.rail) not in have]
    while left and not any(check.ok is False for check in checks_):
        together = [one for one in left if _kind(one) == _kind(left[0])]
        for check, digit in asked(together, questions):
            checks_.append(check)
            digits_[check.name, check.rail] = digit
            checks_ += derived(check, [*earlier, *checks_], digits_)
            left.pop(0)
        done = done._replace(checks=checks_)
        keep(done)
    for line in summary(checks_):
        questions.show(f"  {line}")
    name, digest = photo_of(questions.ask("photo of this step, a file (Enter: none): "))
    if name and digest is None:
        questions.show("  no such file: the certificate has its name alone")
    return done._replace(photo=name, photo_sha256=digest, utc_ns=time.time_ns())


def summary(checks_: Sequence[Check]) -> list[str]:
    """How many checks are in order, and a line for each that is not."""
    good = sum(check.ok is True for check in checks_)
    return [f"ok    {good} of {len(checks_)}", *(check.words() for check in checks_ if not check.ok)]


def derived(check: Check, known: Sequence[Check], digits: dict[tuple[str, int | None], float]) -> list[Check]:
    """What follows from a reading and earlier ones of its rail.

    known: checks so far
    digits: what the last digit of a reading counts, by its name and rail"""
    rail, digit = check.rail, digits.get((check.name, check.rail), 0.0)
    of = {one.name: one.value for one in known if one.rail == rail}
    if not check.ok or check.value is None or check.name not in DERIVED:
        return []
    name = DERIVED[check.name]
    if name == "logic drop":
        return logic_drop(check.value, known)
    if name == "trips at":
        return trips_at(rail, known, digit)
    before = of.get("supply" if name == "lost" else "share")
    if before is None:
        return []
    # each of two readings is rounded
    bound = 500 * (digits.get(("supply" if name == "lost" else "share", rail), 0.0) + digit)
    cause = "the meter's last digit"
    if name == "lost":
        most, do = 1000 * AT_DRIVE_V, "fuse, FETs, cable: a bad joint"
        return [checks.figure(name, rail, 1000 * (before - check.value), "mV", -most, most, do, bound, cause)]
    supply_V = of.get("supply")
    if supply_V is None:
        return []
    mV = min(LOCK_OUT_kOhm, key=lambda known_mV: abs(known_mV / 1000 - supply_V))
    upper_kOhm = LOCK_OUT_kOhm[mV] - OVP_LOWER_kOhm
    share_kOhm = upper_kOhm * OVP_LOWER_kOhm / LOCK_OUT_kOhm[mV]
    gate_V = of.get("lock-out gate")
    if not gate_V:
        return []
    rise_mV = 1000 * gate_V * share_kOhm / (share_kOhm + HYSTERESIS_kOhm)
    do = "Rx24: missing, short, or another value"
    held = 1000 * (check.value - before)
    return [checks.figure(name, rail, held, "mV", 0.4 * rise_mV, 1.6 * rise_mV, do, bound, cause)]


def logic_drop(logic_V: float, known: Sequence[Check]) -> list[Check]:
    """What the logic's regulators drop, of 5 V or of the 5 V rail's lead where that has less; none of a rig that has
    no such rail.

    logic_V: of LOGIC_5V
    known: checks of the leads, and others"""
    leads_V = [one.value for one in known if one.name == "leads" and one.value and round(one.value) == 5]
    if not leads_V:
        return []
    dropped_V = min(5.0, *leads_V) - logic_V
    do = "U6, U9: one of them drops too much"
    return [checks.figure("logic drop", None, dropped_V, "V", None, LOGIC_DROP_V, do)]


def trips_at(rail: int | None, known: Sequence[Check], digit: float) -> list[Check]:
    """The supply at which the lock-out trips, by its reference and by the share of the supply that it sees.

    known: checks of the supply, the reference and the share, and others
    digit: what the last digit of the share counts, V; that of the other two is taken as 0.01 V"""
    of = {check.name: check.value for check in known if check.rail in (rail, None)}
    supply_V, reference_V, share_V = (of.get(name) for name in ("supply", "reference", "share"))
    if not (supply_V and reference_V and share_V):
        return []
    nominal_mV = min(LOCK_OUT_V, key=lambda mV: abs(mV / 1000 - supply_V))
    volts = supply_V * reference_V / share_V
    bound = volts * (0.005 / supply_V + 0.005 / reference_V + digit / 2 / share_V)
    do, cause = "the divider, the reference: another value", "the meter's last digit"
    return [checks.figure("trips at", rail, volts, "V", *LOCK_OUT_V[nominal_mV], do, bound, cause)]


def photo_of(answer: str) -> tuple[str | None, str | None]:
    """A photo's name and, where it is a file, the SHA-256 of its bytes. A name may be quoted, as a terminal does it
    with a file that is dropped on it."""
    text = answer.strip()
    if not text:
        return None, None
    try:
        unquoted = shlex.split(text)
    except ValueError:
        unquoted = []
    for name in (text, *(unquoted if len(unquoted) == 1 else ())):
        try:
            path = Path(name).expanduser()
            if path.is_file():
                with path.open("rb") as file:
                    return path.name, hashlib.file_digest(file, "sha256").hexdigest()
        except (OSError, ValueError, RuntimeError):
            continue
    return Path(text).name, None


def by_hand(
    build: dict,
    questions: Questions,
    board: str | None = None,
    done: Sequence[Done] = (),
    keep: Callable[[list[Done]], None] = lambda done: None,
) -> list[Done]:
    """Steps 1 to 6 up to the first that fails. Raises NoAnswer.

    board: as of readings()
    done: the steps that were taken before; the last may be under way, or have failed
    keep: called with all steps after each answer"""
    wanted = readings(build, board)
    out = [one for one in done if one.utc_ns is not None and not one.failed]
    begun = {one.step: one for one in done if one not in out}
    for number in sorted({reading.step for reading in wanted} - {one.step for one in out}):
        earlier = [check for one in out for check in one.checks]
        of_step = [one for one in wanted if one.step == number]
        taken = step(number, of_step, questions, earlier, begun.get(number), lambda one: keep([*out, one]))
        out.append(taken)
        keep(out)
        if taken.failed:
            break
    return out


def step_of(check: Check) -> int:
    """The step that a check of the self-test belongs to. Raises KeyError for a name of none."""
    for beginning, number in OF_SELF_TEST.items():
        if check.name.startswith(beginning):
            return number
    raise KeyError(check.name)


def of_voltmeter(done: list[Done], checks_: list[Check]) -> list[Check]:
    """The rig's voltage of each rail against what the builder's meter showed, in %."""
    meter_V = {check.rail: check.value for one in done for check in one.checks if check.name == "drive"}
    out = []
    for check in checks_:
        if check.name == "voltage" and check.value is not None and (volts := meter_V.get(check.rail)):
            off = 100 * (check.value / volts - 1)
            do = "VBUS of the sensor at the drive's side of the shunt? is it this rail's sensor?"
            out.append(checks.figure("voltage less the voltmeter's", check.rail, off, "%", -1.0, 1.0, do))
    return out


def red_lamps(build: dict, questions: Questions, board: str | None = None) -> list[Check]:
    """Whether the lamp of each crowbar was lit in its cut; none of a circuit without lamps. Raises NoAnswer."""
    if not BOARDS[board or board_of(build)].lock_out:
        return []
    do = "D06 turned, R23: it would not show that a crowbar is closed on a rail at work"
    wanted = [
        Reading(9, "red lamp", row["rail"], "did its red lamp flash in the cut", "yes", 1, 1, do)
        for row in build["rails"]
    ]
    return [check for check, _ in asked(wanted, questions)]


def run_held(build: dict, questions: Questions) -> list[Check]:
    """The fail-safe: with RUN of the Pico at ground every rail stays on. Raises NoAnswer."""
    out = []
    for row in build["rails"]:
        volts, n = row["nominal_mV"] / 1000, row["rail"]
        do = "OFF's pull-down, the gate supply: a rail must stay on without a Pico"
        low, high = (volts * (1 + sign * nominal.TOLERANCE) for sign in (-1, 1))
        reading = Reading(8, "resets leave it on", n, "", "V", low, high, do)
        words = f"hold RUN of the Pico to ground; rail {n}, at the drive's connector, V: "
        out.append(judged(reading, questions.number(words, "V", reading.fits).value))
    return out


def without_resistor(build: dict, rail: int | None) -> list[Check]:
    """That no resistor was on the other rails, whose shunts nothing has looked at then."""
    why = "a shunt is known by a resistor alone: again with --resistor OHM --rail"
    return [
        checks.skipped("resistor", row["rail"], f"{why} {row['rail']}") for row in build["rails"] if row["rail"] != rail
    ]


def same_build(build: dict, hello: dict) -> None:
    """Raises UsageError if the board that answers has another build."""
    if hello.get("build") != build["build"]:
        do = f"./ssdrig rig setup --build {build['build']}, then again"
        raise UsageError(f"a board of build {build['build']}", str(hello.get("build")), do)


def same_rig(serial: str | None, hello: dict) -> None:
    """Raises UsageError if the board that answers is another one than that of the stored steps. serial: None where no
    board had answered"""
    if serial is not None and hello.get("serial") != serial:
        do = "connect that rig; or take this one's steps: --afresh, and --mark NAME to keep both"
        raise UsageError(f"rig {serial}, whose steps are stored", f"rig {hello.get('serial')}", do)


def grouped(done: list[Done], checks_: list[Check]) -> list[Done]:
    """The steps by hand, and those that the self-test's checks make."""
    by_step: dict[int, list[Check]] = {}
    for check in checks_:
        by_step.setdefault(step_of(check), []).append(check)
    out = [one._replace(checks=[*one.checks, *by_step.pop(one.step, [])]) for one in done]
    return sorted([*out, *(Done(number, of) for number, of in by_step.items())], key=lambda one: one.step)


def first_failed(done: list[Done]) -> int | None:
    """The number of the first step with something wrong."""
    return next((one.step for one in done if one.failed), None)
