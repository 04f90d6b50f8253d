"""The first power-up of a self-built rig, step by step as in hardware/README.md: what the builder reads
on a meter before the Pico is in its socket, then what the rig's self-test finds. The first step that fails is the last:
after it parts may burn."""

import hashlib
import math
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.meter import nominal
from ssdrig.meter.pico.certificate import Check
from ssdrig.rig import checks
from ssdrig.rig.answers import Questions
from ssdrig.rig.builds import GATE_SUPPLY_V

CLAMP_V = 10.0  # hardware/values.csv: gate_clamp
ADC_nV_PER_COUNT = 3.3e9 / 4096  # of the Pico, without a divider
DIVIDER_kOhm = {2.0: 20.0, 5.5: 18.3}  # by its ratio: both resistors of the scope's divider
LOCK_OUT_V = {3300: (3.55, 3.67), 5000: (5.35, 5.59), 12000: (12.8, 13.5)}  # by the rail's mV
LOGIC_V = 4.2, 5.2  # of LOGIC_5V: U6, less its drop at the lowest input
LOCK_OUT_kOhm = {3300: 14.42, 5000: 21.8, 12000: 52.2}  # hardware/values.csv: ovp_upper and ovp_lower
FUSE_A = {3300: 3.0, 5000: 10.0, 12000: 7.5}  # by the rail's mV; of an M.2 rail in the converter's 12 V lead
# two diodes in series show 1.0 to 1.25 V; a sound pair of FETs from 1.35 V on, their threshold, or ol
DIODE_V = 1.3, 5.0
DERIVED = ("lost",)  # checks that are made from two readings
AT_DRIVE_V = 0.01  # that the rail loses without a load
BREAKOUTS = ("one_rail", "one_m2_rail")
STEPS = {
    1: "nothing powered, no drive, Pico not in its socket; ohmmeter, or its diode range, plus lead at the first point",
    2: "still unpowered: the two lines of each rail at the Pico's pins, to ground",
    3: "supply on, Pico not in its socket, no drive",
    4: "the same: voltmeter at the rig's input, then at the drive's connector",
    5: "the same: gates",
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
    **dict.fromkeys(("opens", "left", "switch", "fall", "kept while", "discharge switch"), 9),
}


class Circuit(NamedTuple):
    """What differs between the circuits that carry a build: what feeds the gates, and whether it locks out."""

    gates_V: float
    gates_part: float  # by which that may be off
    lock_out: bool
    do: str


BOARDS = {
    "board": Circuit(GATE_SUPPLY_V, 0.03, True, "R13, U5; no supply there: F1"),
    "breakout": Circuit(12.0, 0.05, True, "12 V at J2, the PTC F1"),
    "prototyping": Circuit(GATE_SUPPLY_V, 0.03, False, "the trimmer of the boost module; its supply"),
}


def board_of(build: dict) -> str:
    """The circuit that hardware/README.md documents for a build, of BOARDS."""
    name = str(build["build"])
    return "board" if name.startswith("four_rails") else "breakout" if name in BREAKOUTS else "prototyping"


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
        where = "" if self.rail is None else f"rail {self.rail}, "
        return f"{where}{self.words}, {'y or n' if self.unit == 'yes' else self.unit}: "

    def fits(self, value: float) -> bool:
        if math.isinf(value) and self.open:
            return True
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


class Done(NamedTuple):
    """A step that was taken: its checks, the builder's photo of it, if there is one, and when a step by hand ended."""

    step: int
    checks: list[Check]
    photo: str | None = None
    photo_sha256: str | None = None
    utc_ns: int | None = None

    @property
    def failed(self) -> bool:
        return any(check.ok is False for check in self.checks)

    def document(self) -> dict:
        return {**self._asdict(), "checks": [check._asdict() for check in self.checks]}


def readings(build: dict, board: str | None = None) -> list[Reading]:
    """What the builder of this build reads in steps 1 to 6, in order. board: of BOARDS; None: the documented one."""
    circuit = BOARDS[board or board_of(build)]
    low_V, high_V = (circuit.gates_V * (1 + sign * circuit.gates_part) for sign in (-1, 1))
    out = [Reading(3, "gate supply", None, "gate supply VGATE to GND", "V", low_V, high_V, circuit.do)]
    dividers = {row["rail"]: row["nV_per_count"] / ADC_nV_PER_COUNT for row in build["scope"]}
    if circuit.lock_out:
        out.append(Reading(3, "logic supply", None, "LOGIC_5V to GND", "V", *LOGIC_V, "U6; low: R26, U7 short"))
        out.append(Reading(5, "reference", None, "OVREF to GND", "V", 2.48, 2.51, "U7, U8 and their resistor"))
    if build["sideband"] is not None:
        words = "PERST# of the host to PERST# of the drive, at the rig"
        out.append(
            Reading(2, "PERST#", None, words, "kOhm", 0.95, 1.05, "R15: without it the host drives the cut drive")
        )
    for row in build["rails"]:
        out += _of_rail(row["rail"], row["nominal_mV"], dividers.get(row["rail"]), circuit, "aux" in row["name"])
    return sorted(out, key=lambda one: one.step)


def _of_rail(n: int, mV: int, ratio: float | None, circuit: Circuit, auxiliary: bool) -> list[Reading]:
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
    out = [
        *fuse,
        Reading(1, "input", n, "RAIL_IN to GND, once still", "kOhm", 1.0, input_kOhm, at_input),
        Reading(1, "through", n, "RAIL_IN to SW, diode range (open: ol)", "V", *DIODE_V, fets, open=True),
        Reading(1, "back", n, "SW to RAIL_IN, diode range (open: ol)", "V", *DIODE_V, fets, open=True),
        Reading(2, "OFF", n, "OFF to GND", "kOhm", 2.18, 2.42, "its pull-down of 2.2 kOhm, 100 Ohm to the FET"),
        Reading(2, "DISCHARGE", n, "DISCHARGE to GND", "kOhm", 2.09, 2.31, "its pull-down of 2.2 kOhm"),
        Reading(4, "supply", n, "at RAIL_IN", "V", low_V, high_V, "the supply, or the wrong one: STOP"),
        Reading(
            *(4, "drive", n, "at the drive's connector", "V", low_V - AT_DRIVE_V, high_V),
            "fuse, gate supply, gate resistor, zener, cable; lock-out, its reference; 5 V and 12 V exchanged: STOP",
        ),
        Reading(4, "cold", n, "is the crowbar's resistor cold after a minute", "yes", 1, 1, "the crowbar's FET"),
        Reading(5, "gate", n, "GATE to GND", "V", *gate_V, "zener D1: turned, or another voltage; gate resistor"),
        Reading(5, "gate to source", n, "GATE to SRC", "V", *above_V, "zener D1"),
    ]
    if ratio:
        kOhm = DIVIDER_kOhm[min(DIVIDER_kOhm, key=lambda known: abs(known - ratio))]
        do = "the scope's divider; the crowbar's FET is turned"
        # the sensor's VBUS, 1 MOhm, takes 2 % of it
        out.append(Reading(1, "output", n, "SW to GND", "kOhm", 0.95 * kOhm, 1.03 * kOhm, do))
        scope_V = volts / ratio
        out.append(Reading(6, "SCOPE", n, "SCOPE to GND", "V", 0.95 * scope_V, 1.05 * scope_V, "its divider"))
    if circuit.lock_out and mV in LOCK_OUT_V:
        # 560 Ohm take OVREF to 1.9 V at most: below the share of each rail at 95 % of its voltage
        words = "560 Ohm from OVREF to GND: is the drive's connector at 0 V with it, and back without"
        out.append(Reading(5, "trips", n, words, "yes", 1, 1, "U02, R19, R20, R21, R25, Q05: STOP, it has no lock-out"))
        words = "with the 560 Ohm: gate of Q05 to GND"
        low_V, high_V = LOGIC_V if circuit.gates_V == GATE_SUPPLY_V else (gates_low_V - 0.3, gates_high_V)
        out.append(Reading(5, "lock-out gate", n, words, "V", low_V, high_V, "R25: without it the lock-out is late"))
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


def asked(reading: Reading, questions: Questions) -> tuple[Check, float]:
    """The check made from the builder's answer, and what the last digit of the answer counts. Raises NoAnswer."""
    words = reading.question()
    if reading.unit == "yes":
        return judged(reading, float(questions.yes(words))), 0.0
    typed = questions.number(words, reading.unit, reading.fits, reading.optional, reading.open)
    if typed is None:
        return checks.skipped(reading.key, reading.rail, "not tried"), 0.0
    return judged(reading, typed.value), typed.digit


def step(number: int, wanted: list[Reading], questions: Questions) -> Done:
    """Ask for the readings of one step until one fails. Raises NoAnswer."""
    questions.show(f"\n[{number} of {len(STEPS)}] {STEPS[number]}")
    checks_: list[Check] = []
    seen_V: dict[int | None, tuple[float, float]] = {}
    for reading in wanted:
        check, digit = asked(reading, questions)
        checks_.append(check)
        if reading.key == "supply" and check.value is not None:
            seen_V[reading.rail] = check.value, digit
        if reading.key == "drive" and check.ok and check.value is not None and reading.rail in seen_V:
            before_V, before_digit = seen_V[reading.rail]
            lost, most = 1000 * (before_V - check.value), 1000 * AT_DRIVE_V
            # each of two readings is rounded
            bound = 500 * (before_digit + digit)
            do, cause = "fuse, FETs, cable: a bad joint", "the meter's last digit"
            checks_.append(checks.figure("lost", reading.rail, lost, "mV", -most, most, do, bound, cause))
        if any(one.ok is False for one in checks_):
            break
    for one in checks_:
        questions.show(f"  {one.words()}")
    name, digest = photo_of(questions.ask("photo of this step, a file (Enter: none): "))
    if name and digest is None:
        questions.show("  no such file: the certificate has its name alone")
    return Done(number, checks_, name, digest, time.time_ns())


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
    done: the steps that were taken before
    keep: called with all steps after each one that passes"""
    wanted = readings(build, board)
    out = list(done)
    for number in sorted({reading.step for reading in wanted} - {one.step for one in done}):
        out.append(step(number, [one for one in wanted if one.step == number], questions))
        if out[-1].failed:
            break
        keep(out)
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
