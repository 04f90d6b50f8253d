"""What `rig doctor --bring-up` finds: SIMULATED rigs with one fault of assembly each, and sound ones. A meter's display
is worked out from the netlist (assembled.py), with parts and meter anywhere within their tolerances; after it come the
firmware and the sensors of the stand-in (doctor.py)."""

import tempfile
from pathlib import Path
from random import Random

from selfcheck import Figure, at_least, at_most, doctor, drawn, exactly, in_turn
from selfcheck.assembled import Fault, Rig
from ssdrig.rig import answers, bring_up, builds

SOUND = 100
BUILD, BREAKOUT, M2, BOARD = "two_rails", "one_rail", "one_m2_rail", "four_rails"


def _gone(role: str, rail: int = 0) -> Fault:
    return lambda rig: rig.take_off(rig.name(role, rail))


def _turned(role: str, rail: int = 0) -> Fault:
    return lambda rig: rig.turn(rig.name(role, rail))


def _short(role: str, rail: int = 0) -> Fault:
    return lambda rig: rig.short(rig.name(role, rail))


def _fitted(role: str, value: str, rail: int = 0) -> Fault:
    return lambda rig: rig.fit(rig.name(role, rail), value)


def _bridged(one: str, other: str) -> Fault:
    """Nets of a rail, without its number."""
    return lambda rig: rig.bridges.append((f"{one}{rig.at[0]}", f"{other}{rig.at[0]}"))


def _set(**values) -> Fault:
    return lambda rig: rig.__dict__.update(values)


def _supplied(rail: int, volts: float) -> Fault:
    return lambda rig: rig.supply_V.update({rail: volts})


def _both(*faults: Fault) -> Fault:
    def fault(rig: Rig) -> None:
        for one in faults:
            one(rig)

    return fault


def _exchanged(one: str, other: str, rail: int = 0) -> Fault:
    """Two parts of a rail, each in the place of the other."""

    def fault(rig: Rig) -> None:
        a, b = rig.name(one, rail), rig.name(other, rail)
        rig.parts[a], rig.parts[b] = (
            rig.parts[a]._replace(value=rig.parts[b].value),
            rig.parts[b]._replace(value=rig.parts[a].value),
        )

    return fault


def _between(one: str, other: str) -> Fault:
    """A bridge of two nets."""
    return lambda rig: rig.bridges.append((one, other))


def _of(ref: str, *change: str) -> Fault:
    """A part by its reference: missing, with another value, or turned."""
    if not change:
        return lambda rig: rig.take_off(ref)
    return (lambda rig: rig.turn(ref)) if change == ("turned",) else lambda rig: rig.fit(ref, *change)


def _in_place_of(one: str, other: str) -> Fault:
    """Two parts by their references, each in the place of the other."""

    def fault(rig: Rig) -> None:
        a, b = rig.parts[one], rig.parts[other]
        rig.parts[one], rig.parts[other] = a._replace(value=b.value), b._replace(value=a.value)

    return fault


def _wired(role: str, pin: str, net: str, rail: int = 0) -> Fault:
    """A leg in another net of its rail."""
    return lambda rig: rig.wire(rig.name(role, rail), pin, f"{net}{rig.at[rail]}")


# fault: (step at which it must be found, what it changes in the netlist)
BY_HAND: dict[str, tuple[int, Fault]] = {
    "capacitor turned": (1, _turned("C01")),
    "fuse missing": (1, _gone("F01")),
    "fuse of 15 A for 10": (1, _fitted("F01", "0287015.PXCN")),
    "fuses of 5 V and 12 V exchanged": (1, _both(_fitted("F01", "028707.5"), _fitted("F01", "0287010", 1))),
    "Q1 turned, drain and source": (1, _turned("Q01")),
    "Q2 turned, drain and source": (1, _turned("Q02", 1)),
    "both FETs turned": (1, _both(_turned("Q01"), _turned("Q02"))),
    "Q1 short": (1, _short("Q01", 1)),
    "Q2 short": (1, _short("Q02")),
    "FET of the crowbar turned": (1, _turned("Q04")),
    "FET of the crowbar short": (1, _short("Q04", 1)),
    "resistor of the crowbar to ground, past its FET": (1, lambda rig: rig.wire(rig.name("R08"), "2", "GND")),
    "crowbar at the input instead of at SW": (1, _both(_wired("R08", "1", "FUSED"), _turned("Q04"))),
    "divider without its lower resistor": (1, _gone("R13")),
    "divider of 5 V on 12 V": (1, _both(_fitted("R12", "10k", 1), _fitted("R13", "10k", 1))),
    "OFF without its pull-down": (2, _gone("R06")),
    "22 kOhm for 2.2 at OFF": (2, _fitted("R06", "22k", 1)),
    "DISCHARGE without its pull-down": (2, _gone("R11", 1)),
    "22 kOhm for 2.2 at DISCHARGE": (2, _fitted("R11", "22k")),
    "gate supply not set": (3, _set(aux_V=12.0)),
    "gate supply absent": (3, _set(aux_V=0.0)),
    "gate supply set too high": (3, _set(aux_V=28.0)),
    "fuse blown": (4, _wired("F01", "2", "OTHER")),
    "12 V converter instead of 5 V": (3, _supplied(0, 12.1)),
    "5 V and 12 V exchanged at the input": (3, _both(_supplied(0, 12.05), _supplied(1, 5.02))),
    "5 V and 12 V exchanged at the drive": (4, _set(leads={0: 1, 1: 0})),
    "gate resistor open": (4, _gone("R03", 1)),
    "gate isolation open": (4, _gone("R14")),
    "FET of the gates short": (4, _short("Q03")),
    "gate of the crowbar's FET at the input": (4, _wired("Q04", "1", "FUSED")),
    "zener turned": (4, _turned("D01")),
    "zener of 5.1 V": (5, _fitted("D01", "BZX84-B5", 1)),
    "zener absent": (5, _gone("D01")),
    "divider's resistors exchanged": (6, _exchanged("R12", "R13", 1)),
    "SCOPE on another pin": (6, _set(scope_at={0: "OTHER", 1: "SCOPE2"})),
}
# of the breakout's board, which has a lock-out and its gates on 12 V
ON_BREAKOUT: dict[str, tuple[int, Fault]] = {
    "fuse missing": (1, _gone("F01")),
    "fuse blown": (1, _wired("F01", "2", "OTHER")),
    "fuse of 3 A for 10": (1, _fitted("F01", "0287003.PXCN")),
    "lock-out's divider without its upper resistor": (1, _gone("R19")),
    "lock-out's divider of 12 V": (1, _fitted("R19", "41k7")),
    "lock-out's divider of 3.3 V": (4, _fitted("R19", "4k42")),
    "lock-out's upper resistor of ten times": (1, _fitted("R19", "118k")),
    "lock-out's lower resistor missing": (1, _gone("R20")),
    "TVS turned": (1, _turned("D04")),
    "TVS short": (1, _short("D04")),
    "freewheel diode turned": (1, _turned("D02")),
    "Q1 turned, drain and source": (1, _turned("Q01")),
    "Q2 turned, drain and source": (1, _turned("Q02")),
    "FET of the crowbar turned": (1, _turned("Q04")),
    "OFF bridged to DISCHARGE": (2, _bridged("OFF", "DISCHARGE")),
    "pull-down of 10 kOhm at OFF": (2, _fitted("R06", "10k")),
    "12 V lead missing": (3, _set(aux_V=0.0)),
    "PTC of the gates' supply open": (1, lambda rig: rig.wire("F1", "2", "OTHER")),
    "diode of the gates' supply turned": (1, _of("D3", "turned")),
    "diode of the gates' supply bridged": (1, lambda rig: rig.short("D3")),
    "capacitor of the gates' supply missing": (1, _of("C11")),
    "capacitor of the gates' supply turned": (1, _of("C11", "turned")),
    "5 V in the lead of 12 V": (3, lambda rig: rig.__dict__.update(aux_V=rig.supply_V[0])),
    "boost module of 24 V in place of 12 V": (3, _set(aux_V=24.0)),
    "12 V converter instead of 5 V": (3, _supplied(0, 12.1)),
    "gate resistor missing": (4, _gone("R03")),
    "comparator missing": (4, _gone("U02")),
    "comparator's inputs exchanged": (
        4,
        _both(_wired("U02", "1", "OVSHARE"), lambda rig: rig.wire("U102", "3", "OVREF")),
    ),
    "lock-out's FET short": (4, _short("Q05")),
    "reference turned": (2, lambda rig: rig.turn("U7")),
    "reference of 1.24 V": (4, lambda rig: rig.fit("U7", "LMV431")),
    "regulator missing": (3, lambda rig: rig.take_off("U6")),
    "both references missing": (1, _both(lambda rig: rig.take_off("U7"), lambda rig: rig.take_off("U8"))),
    "lock-out's FET missing": (2, _gone("Q05")),
    "comparator whose output is stuck low": (2, lambda rig: rig.bridges.append(("OVGATE0", "GND"))),
    "lower resistor of the lock-out's divider bridged": (5, _short("R20")),
    "resistor of the reference bridged": (1, lambda rig: rig.short("R26")),
    "regulator short from input to output": (3, lambda rig: rig.bridges.append(("VGATE", "LOGIC_5V"))),
    "zener turned": (1, _turned("D01")),
    "zener of 5.1 V": (1, _fitted("D01", "BZX84-B5")),
    "divider's lower resistor of 15 kOhm": (1, _fitted("R13", "15k")),
    "freewheel diode missing": (1, _gone("D02")),
    "TVS missing": (1, _gone("D04")),
    "zener missing": (1, _gone("D01")),
    "both FETs turned": (1, _both(_turned("Q01"), _turned("Q02"))),
    "fuse of the crowbar of 5 A": (1, _of("F102", "5 A slow")),
    "fuse of the crowbar missing": (1, _of("F102")),
    "one of two references missing": (1, _of("U8")),
    "one of two references turned": (2, _of("U8", "turned")),
    "resistors of OFF and its gate exchanged, 22 and 100 Ohm": (2, _exchanged("R04", "R05")),
    "resistors of the interlock and the crowbar's gate exchanged": (2, _exchanged("R09", "R10")),
    "pull-down of the crowbar's gate missing": (2, _gone("R15")),
    "lock-out resistor of 2.2 kOhm": (2, _of("R121", "2k2")),
    "+3V3 bridged to ground": (2, _between("+3V3", "GND")),
    "gate supply's clamp turned": (1, _of("D2", "turned")),
    "comparator's ground with a cold joint": (4, lambda rig: rig.wire("U102", "2", "OTHER")),
    "lower resistor of the lock-out of 6.8 kOhm": (5, _of("R120", "6k8")),
    "gate resistor of 7.5 kOhm": (5, _of("R103", "7k5")),
    "gate resistor bridged": (5, _short("R03")),
    "gate isolation bridged": (5, _short("R14")),
    "load of the reference missing": (2, _of("R31")),
    "resistor of the reference of 10 kOhm": (4, _of("R26", "10k")),
    "first NAND's output bridged to the second's": (6, _between("BLOCK0", "CROWBAR0")),
    "line of the crowbar bridged to 3.3 V": (6, _between("CROWBAR0", "+3V3")),
}
# of the same board with the values of an M.2 rail
ON_M2: dict[str, tuple[int, Fault]] = {
    "converter without a fuse in its 12 V lead": (1, _set(converter_A=0.0)),
    "fuse of 10 A in the converter's 12 V lead": (1, _set(converter_A=10.0)),
    "lock-out's divider of 5 V": (1, _fitted("R19", "11k8")),
    "resistor before PERST# of ten times": (2, lambda rig: rig.fit("R15", "10k")),
    "resistor before PERST# bridged": (2, lambda rig: rig.short("R15")),
    "5 V converter instead of 3.3 V": (3, _supplied(0, 5.02)),
    "12 V past the converter": (3, _supplied(0, 12.1)),
    "converter's leads exchanged": (3, _supplied(0, -3.3)),
    "12 V lead and its ground exchanged": (3, _set(aux_V=-12.0)),
    "pull-down of PERST_LOW missing": (2, _of("R9")),
    "FET of PERST# missing": (2, _of("Q1")),
    "FET of PERST# turned": (2, _of("Q1", "turned")),
}
# of the board with four rails
ON_BOARD: dict[str, tuple[int, Fault]] = {
    "R119 and R219 exchanged, 4.42 and 11.8 kOhm": (1, _in_place_of("R119", "R219")),
    "R319 and R219 exchanged, 41.7 and 11.8 kOhm": (1, _in_place_of("R319", "R219")),
    "R108 and R308 exchanged, 2 and 7.5 Ohm": (1, _in_place_of("R108", "R308")),
    "F202 missing": (1, _of("F202")),
    "Q101 and Q102 turned": (1, _both(_of("Q101", "turned"), _of("Q102", "turned"))),
    "Q401 and Q402 turned": (1, _both(_of("Q401", "turned"), _of("Q402", "turned"))),
    "Q204, gate bridged to drain": (1, _between("BARGATE1", "BAR1")),
    "R112 with a cold joint": (1, _of("R112")),
    "U8 missing": (1, _of("U8")),
    "D302 missing": (1, _of("D302")),
    "D8 turned": (1, _of("D8", "turned")),
    "D9 missing": (1, _of("D9")),
    "D3 turned": (1, _of("D3", "turned")),
    "D3 bridged": (1, lambda rig: rig.short("D3")),
    "C10 missing": (1, _of("C10")),
    "Q103, gate bridged to source": (2, _between("OFFGATE0", "GND")),
    "C1 short": (2, _between("+3V3", "GND")),
    "R9 missing": (2, _of("R9")),
    "Q1 turned": (2, _of("Q1", "turned")),
    "pins 38 and 39 of the Pico bridged": (2, lambda rig: rig.wire("U1", "39", "GND")),
    "pins 15 and 16 of the Pico bridged": (2, _between("DISCHARGE0", "OFF1")),
    "R121 and R321 exchanged, 22 and 220 Ohm": (2, _in_place_of("R121", "R321")),
    "leads of 3.3 V exchanged": (3, _supplied(0, -3.3)),
    "R13 and R14 exchanged": (3, _in_place_of("R13", "R14")),
    "D1 turned": (3, _of("D1", "turned")),
    "L1 missing": (3, _of("L1")),
    "U302, pins 1 and 2 bridged": (2, _between("OVREF", "GND")),
    "U102, pins 4 and 5 bridged": (2, _between("OVGATE0", "VGATE")),
    "Q305, gate bridged to drain": (2, _between("OVGATE2", "OVEMPTY2")),
    "D101, pins 1 and 3 bridged": (4, _between("GATE0", "SRC0")),
    "gate of Q301 with a cold joint": (1, lambda rig: rig.wire("Q301", "1", "OTHER")),
    "shunt with a cold joint": (4, _of("R107")),
    "R120 of 6.8 kOhm": (5, _of("R120", "6k8")),
    "R219 of 18 kOhm": (5, _of("R219", "18k")),
    "U202, pins 2 and 3 bridged": (5, _between("OVSHARE1", "GND")),
    "R224 and R225 exchanged, 1 MOhm and 4.7 kOhm": (2, _in_place_of("R224", "R225")),
    "R103 and R203 exchanged, 220 and 150 kOhm": (5, _in_place_of("R103", "R203")),
    "R303 of 6.2 kOhm": (5, _of("R303", "6k2")),
    "R203 bridged": (5, _between("VGATE", "RAMP1")),
    "R114 bridged": (5, _between("GATE0", "RAMP0")),
    "R31 of 20 kOhm": (2, _of("R31", "20k")),
    "R26 of 10 kOhm": (4, _of("R26", "10k")),
    "U3, both NANDs of a rail bridged": (6, _between("BLOCK2", "CROWBAR2")),
    "pins 31 and 32 of the Pico bridged": (1, _between("SCOPE0", "SCOPE1")),
}
OF_BUILD = {BUILD: BY_HAND, BREAKOUT: ON_BREAKOUT, M2: ON_M2, BOARD: ON_BOARD}
# those that no meter shows: of doctor.FAULTS, the step, and what it changes in the netlist of BUILD, if anything
BY_THE_RIG: dict[str, tuple[int, Fault | None]] = {
    "sensor absent": (7, None),
    "sensors exchanged": (7, None),
    "second ALERT open": (7, None),
    "VBUS open": (7, None),
    "sensor is another chip": (7, None),
    "inputs of the scope exchanged": (7, None),
    "cold joint at SDA: 20 ms without an answer, each 0.4 s": (7, None),
    "cold joint at SDA: 20 ms without an answer, each 3 s": (7, None),
    "shunt 15 instead of 8 mOhm": (8, None),
    "shunt 80 instead of 8 mOhm": (8, None),
    "shunt 0.8 instead of 8 mOhm": (8, None),
    "ground wire of 0.3 Ohm": (8, None),
    "gates exchanged": (9, None),
    "5 V: series switch short": (9, None),
    "5 V: crowbar's gate on OFF, past the interlock": (9, None),
    "5 V: crowbar's switch open, or its resistor or fuse": (9, _both(_gone("Q04"), _gone("R08"))),
    "12 V: crowbar's switch open, or its resistor or fuse": (9, _wired("R08", "1", "FUSED", 1)),  # at the input
}


def by_hand(rig: Rig) -> int | None:
    """The first step by hand that fails."""
    readings = bring_up.readings(rig.build)
    typed = answers.Questions(lambda words: rig.answer(words, readings), lambda words: None, tries=1)
    return bring_up.first_failed(bring_up.by_hand(rig.build, typed))


def by_the_rig(settings: dict) -> int | None:
    """The first step that fails of a stand-in's self-test."""
    with tempfile.TemporaryDirectory(prefix="ssdrig-bring-up-") as folder:
        made = doctor.certificate_of(settings, Path(folder))
    checks = [bring_up.Check(**check) for check in made["checks"]]
    return bring_up.first_failed(bring_up.grouped([], checks))


def faults_detected() -> list[Figure]:
    dice = Random(46)
    right, total = 0, sum(map(len, (*OF_BUILD.values(), BY_THE_RIG)))
    for build, faults in OF_BUILD.items():
        document = builds.read(build)
        for name, (step, fault) in faults.items():
            seen = by_hand(Rig(dice, document, fault))
            right += seen == step
            if seen != step:
                print(f"{build}, {name}: step {seen} instead of {step}")
    for name in in_turn(list(BY_THE_RIG), "bring-up"):
        step, fault = BY_THE_RIG[name]
        seen = by_hand(Rig(dice, builds.read(BUILD), fault)) or by_the_rig(doctor.FAULTS[name])
        right += seen == step
        if seen != step:
            print(f"{name}: step {seen} instead of {step}")
    documents = [builds.read(build) for build in OF_BUILD]
    rigs = [Rig(dice, documents[k % len(documents)], digits=2 + k // len(documents) % 2) for k in range(SOUND)]
    false = sum(by_hand(rig) is not None for rig in rigs)
    return [
        at_least(f"faults of assembly found at their step, of {total}", 100 * right / total, "%", 95),
        exactly(f"sound rigs of {SOUND} with a fault by hand (by the rig: selfcheck doctor)", false, "", 0),
    ]


SEED, DRAWN = 462, 48  # of each board


def drawn_faults_detected() -> list[Figure]:
    detected, harmless, untried = 0, 0, 0
    for build in (BOARD, BREAKOUT):
        document = builds.read(build)
        plain = Rig(Random(SEED), document)
        faults = drawn.draw(SEED, plain.parts, DRAWN)
        for k in in_turn(list(range(DRAWN)), f"bring-up-drawn, {build}"):
            rig = Rig(Random(SEED + k), document, faults[k].fault)
            if by_hand(rig) or drawn.seen_by_the_rig(rig, plain):
                detected += 1
                continue
            word, why = drawn.untold(faults[k], document, plain.parts) or ("a gap", "no reading or check sees it")
            harmless, untried = harmless + (word == "harmless"), untried + (word == "untried")
            print(f"{build}, {faults[k].kind} {faults[k].of}: {word}: {why}")
    total = 2 * DRAWN
    matter = total - harmless - untried
    return [
        at_least(
            f"of {matter} drawn faults that harm, of {total} by seed {SEED}, found", 100 * detected / matter, "%", 95
        ),
        at_least(f"of all {total} of them, found", 100 * detected / total, "%", 60),
        at_most("of lines that are tried only when they are used", untried, "", 0.15 * total),
    ]


BENCHES = {
    "bring-up-drawn": ("faults of assembly drawn by a seed: found by the first power-up", drawn_faults_detected),
    "bring-up": (
        "faults of assembly that the first power-up finds at their step, sound rigs it stops",
        faults_detected,
    ),
}
