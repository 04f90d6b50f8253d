"""The first power-up of a self-built rig, step by step as in hardware/README.md: what the builder reads
on a meter before the Pico is in its socket, then what the rig's self-test finds. The first step that fails is the last:
after it parts may burn."""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.meter import nominal
from ssdrig.meter.pico.certificate import Check
from ssdrig.rig import checks
from ssdrig.rig.builds import GATE_SUPPLY_V

Ask = Callable[[str], str]
CLAMP_V = 10.0  # hardware/values.csv: gate_clamp
ADC_nV_PER_COUNT = 3.3e9 / 4096  # of the Pico, without a divider
DIVIDER_kOhm = {2.0: 20.0, 5.5: 18.3}  # by its ratio: both resistors of the scope's divider
LOCK_OUT_V = {3300: (3.55, 3.67), 5000: (5.35, 5.59), 12000: (12.8, 13.5)}  # the board's, by the rail's mV
AT_DRIVE_V = 0.01  # that the rail loses without a load
OPEN = ("ol", "inf", "open")
YES, NO = ("y", "yes"), ("n", "no")
STEPS = {
    1: "nothing powered, no drive, Pico not in its socket; ohmmeter, plus lead at the first point",
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


class Done(NamedTuple):
    """A step that was taken: its checks, and the builder's photo of it, if there is one."""

    step: int
    checks: list[Check]
    photo: str | None = None
    photo_sha256: str | None = None

    @property
    def failed(self) -> bool:
        return any(check.ok is False for check in self.checks)

    def document(self) -> dict:
        return {**self._asdict(), "checks": [check._asdict() for check in self.checks]}


def readings(build: dict) -> list[Reading]:
    """What the builder of this build reads in steps 1 to 6, in order."""
    out = [
        Reading(
            *(3, "gate supply", None, "gate supply VGATE to GND", "V", 0.97 * GATE_SUPPLY_V, 1.03 * GATE_SUPPLY_V),
            "the trimmer of the boost module (R13 of the board); no supply there: F1",
        )
    ]
    dividers = {row["rail"]: row["nV_per_count"] / ADC_nV_PER_COUNT for row in build["scope"]}
    lock_out = str(build["build"]).startswith("four_rails")
    if lock_out:
        out.append(Reading(5, "reference", None, "OVREF to GND", "V", 2.48, 2.51, "U7 and its resistor"))
    for row in build["rails"]:
        out += _of_rail(row["rail"], row["nominal_mV"], dividers.get(row["rail"]), lock_out)
    return sorted(out, key=lambda one: one.step)


def _of_rail(n: int, mV: int, ratio: float | None, lock_out: bool) -> list[Reading]:
    volts = mV / 1000
    fets = "a series FET is turned (drain and source), or short"
    out = [
        Reading(1, "input", n, "RAIL_IN to GND, once still", "kOhm", 1.0, None, "capacitor or TVS: turned, short"),
        Reading(1, "through", n, "RAIL_IN to SW (open: ol)", "kOhm", 1000.0, None, fets),
        Reading(1, "back", n, "SW to RAIL_IN (open: ol)", "kOhm", 1000.0, None, fets),
        Reading(2, "OFF", n, "OFF to GND", "kOhm", 2.18, 2.42, "its pull-down of 2.2 kOhm, 100 Ohm to the FET"),
        Reading(2, "DISCHARGE", n, "DISCHARGE to GND", "kOhm", 2.09, 2.31, "its pull-down of 2.2 kOhm"),
        Reading(4, "supply", n, "at RAIL_IN", "V", 0.95 * volts, 1.05 * volts, "the supply, or the wrong one: STOP"),
        Reading(
            *(4, "drive", n, "at the drive's connector", "V", 0.95 * volts - AT_DRIVE_V, 1.05 * volts),
            "fuse, gate supply, gate resistor, cable; 5 V and 12 V exchanged: STOP",
        ),
        Reading(4, "cold", n, "is the crowbar's resistor cold after a minute", "yes", 1, 1, "the crowbar's FET"),
        Reading(
            *(5, "gate", n, "GATE to GND", "V"),
            *(0.97 * (0.95 * volts + 0.97 * CLAMP_V), min(1.05 * volts + 1.03 * CLAMP_V, 1.03 * GATE_SUPPLY_V)),
            "zener D1: turned, or another voltage; gate resistor",
        ),
        Reading(5, "gate to source", n, "GATE to SRC", "V", 0.9 * CLAMP_V, 1.1 * CLAMP_V, "zener D1"),
    ]
    if ratio:
        kOhm = DIVIDER_kOhm[min(DIVIDER_kOhm, key=lambda known: abs(known - ratio))]
        do = "the scope's divider; the crowbar's FET is turned"
        out.append(Reading(1, "output", n, "SW to GND", "kOhm", 0.97 * kOhm, 1.03 * kOhm, do))
        scope_V = volts / ratio
        out.append(Reading(6, "SCOPE", n, "SCOPE to GND", "V", 0.95 * scope_V, 1.05 * scope_V, "its divider"))
    if lock_out and mV in LOCK_OUT_V:
        words = "bench supply, no drive: it goes off at (Enter: not tried)"
        out.append(Reading(5, "lock-out", n, words, "V", *LOCK_OUT_V[mV], "U2, its divider", optional=True))
    return out


def judged(reading: Reading, answer: str) -> Check:
    """The check made from an answer. Raises ValueError for an invalid answer."""
    text = answer.strip().lower().replace(",", ".")
    if not text and reading.optional:
        return checks.skipped(reading.key, reading.rail, "not tried")
    if reading.unit == "yes":
        if text not in (*YES, *NO):
            raise ValueError("y or n")
        return checks.fact(reading.key, reading.rail, text in YES, "yes" if text in YES else "no", reading.do)
    value = math.inf if text in OPEN else float(text)
    if math.isnan(value) or (math.isinf(value) and reading.unit != "kOhm"):
        raise ValueError("a number")
    # an open circuit is not a number of JSON
    shown = min(value, 1e9)
    return checks.figure(reading.key, reading.rail, shown, reading.unit, reading.low, reading.high, reading.do)


def step(number: int, wanted: list[Reading], ask: Ask, say: Callable[[str], None]) -> Done:
    """Ask for the readings of one step until one fails."""
    say(f"\n[{number} of {len(STEPS)}] {STEPS[number]}")
    checks_: list[Check] = []
    seen_V: dict[int | None, float] = {}
    for reading in wanted:
        where = "" if reading.rail is None else f"rail {reading.rail}, "
        while True:
            try:
                check = judged(reading, ask(f"{where}{reading.words}, {reading.unit}: "))
                break
            except ValueError as error:
                say(f"  expected {error}" if str(error) in ("y or n", "a number") else "  expected a number")
        checks_.append(check)
        if reading.key == "supply" and check.value is not None:
            seen_V[reading.rail] = check.value
        if reading.key == "drive" and check.ok and check.value is not None and reading.rail in seen_V:
            lost = 1000 * (seen_V[reading.rail] - check.value)
            most = 1000 * AT_DRIVE_V
            checks_.append(
                checks.figure("lost", reading.rail, lost, "mV", -most, most, "fuse, FETs, cable: a bad joint")
            )
        if any(one.ok is False for one in checks_):
            break
    for one in checks_:
        say(f"  {one.words()}")
    return Done(number, checks_, *photo_of(ask("photo of this step, a file (Enter: none): ")))


def photo_of(answer: str) -> tuple[str | None, str | None]:
    """A photo's name and, where it is there, the SHA-256 of its bytes."""
    name = answer.strip()
    if not name:
        return None, None
    try:
        return Path(name).name, hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return Path(name).name, None


def by_hand(build: dict, ask: Ask, say: Callable[[str], None]) -> list[Done]:
    """Steps 1 to 6 up to the first that fails. Raises what `ask` does."""
    wanted = readings(build)
    out: list[Done] = []
    for number in sorted({reading.step for reading in wanted}):
        out.append(step(number, [one for one in wanted if one.step == number], ask, say))
        if out[-1].failed:
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


def run_held(build: dict, ask: Ask) -> list[Check]:
    """The fail-safe: with RUN of the Pico at ground every rail stays on."""
    out = []
    for row in build["rails"]:
        volts, n = row["nominal_mV"] / 1000, row["rail"]
        do = "OFF's pull-down, the gate supply: a rail must stay on without a Pico"
        words = f"hold RUN of the Pico to ground; rail {n}, at the drive's connector, V: "
        while True:
            try:
                value = float(ask(words).strip().replace(",", "."))
                if math.isfinite(value):
                    break
            except ValueError:
                continue
        low, high = (volts * (1 + sign * nominal.TOLERANCE) for sign in (-1, 1))
        out.append(checks.figure("resets leave it on", n, value, "V", low, high, do))
    return out


def same_build(build: dict, hello: dict) -> None:
    """Raises UsageError if the board that answers has another build."""
    if hello.get("build") != build["build"]:
        do = f"./ssdrig rig setup --build {build['build']}, then again"
        raise UsageError(f"a board of build {build['build']}", str(hello.get("build")), do)


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
