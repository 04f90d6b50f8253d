"""Takes the user through a calibration: what to connect, when the reading holds still, what the meter shows. The
arithmetic is calibration.py's. Also the noise self-test, and calibration from figures that a script brings."""

import math
import time
from collections.abc import Callable

import numpy as np

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import calibration, chips, ranges, uncertainty
from ssdrig.meter.calibration import CalibrationError, Meter, Point, Resistor
from ssdrig.meter.pico.session import Reading, Session
from ssdrig.rig.answers import Questions

BLOCKS, BLOCK_S = 10, 0.5  # a reading is the mean of this many blocks
PATIENCE_S = 60.0
STILL_ppm = 30  # blocks that move by more than this, and by more than their noise, are not still
NAME_CHARS = 40
NEAR_PART = 0.5  # by which meter and rig may differ before the meter's unit is in doubt
UNITS = {"V": "V", "I": "A"}
LEADS = "lead"  # the third quantity: resistance between shunt and drive
STEPS = {
    "V": (
        (
            "VOLTAGE. No drive, no load! Feed the rail from an adjustable supply and put the meter (DC volts) across"
            " the drive connector's contacts."
        ),
        (
            "Point 1: the lowest voltage that you mean to measure (0 V with the supply off and the contacts shorted"
            " will do)."
        ),
        "Point 2: the highest, at most the rail's nominal voltage + 10 %.",
        "Check: any voltage between, such as the rail's nominal one.",
    ),
    "I": (
        (
            "CURRENT. No drive! The meter (DC amperes) and a load, a power resistor for instance, in series at the"
            " drive connector."
        ),
        "Point 1: nothing connected at all: 0 A by construction.",
        "Point 2: a steady current of a third of the range or more. Hot resistors drift: wait.",
        "Check: any current between.",
    ),
    LEADS: (
        (
            "LEADS. No drive! The rail at its nominal voltage, the meter (DC volts) across the drive connector's"
            " contacts themselves, behind the plug."
        ),
        "Point 1: nothing else connected.",
        "Point 2: with a load of 1 A or more at the same connector, the meter still across the contacts.",
    ),
}


BY_RESISTOR = (
    (
        "CURRENT, by a resistor. No drive! The rail at its nominal voltage, from the supply that the drive will have."
        " The resistor gets its current and its voltage through four terminals."
    ),
    "Point 1: nothing connected at all: 0 A by construction.",
    "Point 2: the resistor at the drive connector. It warms: wait.",
)
MOST_PERCENT = 5.0  # of a resistor


def guided(
    session: Session, rail: int, quantities: str, questions: Questions, resistor: Resistor | None = None
) -> dict:
    """The new calibration object of a rail, with the old values of the quantities not measured now. Raises
    UsageError (figures that make no calibration), NoAnswer, RigError (a reading that never holds still).

    resistor: what I is calibrated by, instead of an ammeter"""
    ask, say = questions.ask, questions.show
    stored = dict(calibration.of_rail(session.rail(rail)))
    chosen = [{"R": LEADS}.get(letter, letter) for letter in quantities]
    steps, number = sum(len(STEPS[quantity]) - 1 for quantity in chosen), 0
    if resistor:
        steps -= len(STEPS["I"]) - len(BY_RESISTOR)
    for quantity in chosen:
        if quantity == "I" and resistor:
            number += 2
            stored["I"] = _by_resistor(session, rail, stored, resistor, f"{number - 1} of {steps}", questions)
            continue
        say("\n" + STEPS[quantity][0])
        meter = _meter("V" if quantity == LEADS else quantity, questions)
        points: list[Point] = []
        drawn: list[float] = []
        for k, words in enumerate(STEPS[quantity][1:]):
            number += 1
            say(f"[{number} of {steps}] {words}")
            if (
                ask("Enter when that is connected" + (", or s to skip this check: " if k == 2 else ": ")).strip() == "s"
                and k == 2
            ):
                break
            if quantity == LEADS:
                points.append(_point(session, rail, "V", False, questions))
                drawn.append(still(session, rail, "I", say)[0])
                continue
            exact = quantity == "I" and k == 0
            points.append(_point(session, rail, quantity, exact, questions))
        if quantity == LEADS:
            stored[LEADS] = _lead(session.rail(rail) | {"calibration": stored}, points, drawn, meter, say)
        else:
            stored[quantity] = _stored(session.rail(rail), quantity, points, meter, say)
    stored["board"] = session.hello.get("serial", "")
    return stored


def _by_resistor(
    session: Session, rail: int, stored: dict, resistor: Resistor, number: str, questions: Questions
) -> dict:
    """The line of a rail's current; kept: its calibration of V and of the leads, so far."""
    ask, say = questions.ask, questions.show
    say("\n" + BY_RESISTOR[0])
    say(f"[{number}] {BY_RESISTOR[1]}")
    ask("Enter when that is so: ")
    zero = _point(session, rail, "I", True, questions)
    say(BY_RESISTOR[2])
    ask("Enter when that is connected: ")
    mean_A, u_A = still(session, rail, "I", say)
    mean_V, scatter_V = still(session, rail, "V", say)
    row = session.rail(rail) | {"calibration": stored}
    amperes, meter = of_resistor(row, resistor, mean_V, scatter_V)
    return _stored(row, "I", [zero, Point(mean_A, u_A, amperes)], meter, say)


def of_resistor(rail: dict, resistor: Resistor, raw_V: float, scatter_V: float) -> tuple[float, Meter]:
    """Current (A) through a resistor at the drive's connector by a rail's own voltage, before its calibration; and what
    represents the meter."""
    v_scale, v_offset, *_ = calibration.scales(rail)
    sensed_V = raw_V * v_scale / (rail["vbus_lsb_nV"] * 1e-9) + v_offset
    if not sensed_V > 0:
        raise UsageError("a voltage across the resistor", f"{sensed_V:.3f} V", "switch the rail on")
    u_V = math.hypot(uncertainty.volts_u(rail, sensed_V), scatter_V)
    if math.isnan(u_V):
        raise UsageError("a chip whose limits are known", str(rail.get("chip")), "calibrate with a meter")
    return resistor.current(sensed_V, u_V, uncertainty.lead(rail))


def from_figures(figures: dict, rail: dict, serial: str, say: Callable[[str], None]) -> dict:
    """The calibration object from figures taken by other means:
    {"V": {"meter": {"name", "percent", "fixed", "digit"}, "points": [{"rig", "rig_u", "meter", "exact"}, ...]}, "I":
    ...} in V and A; two points make the line, more are checks. "lead": the same in V, each point with the rig's "A"
    too, without and with a load. All of the rig's are before calibration. Raises UsageError."""
    stored = dict(calibration.of_rail(rail))
    try:
        for quantity in [name for name in (*UNITS, LEADS) if name in figures]:
            given = figures[quantity]
            meter = Meter(
                str(given["meter"]["name"]), *(float(given["meter"][name]) for name in ("percent", "fixed", "digit"))
            )
            points = [
                Point(float(p["rig"]), float(p["rig_u"]), float(p["meter"]), bool(p.get("exact", False)))
                for p in given["points"]
            ]
            if quantity == LEADS:
                drawn = [float(p["A"]) for p in given["points"]]
                stored[LEADS] = _lead(rail | {"calibration": stored}, points, drawn, meter, say)
            else:
                stored[quantity] = _stored(rail, quantity, points, meter, say)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            "figures as hardware/calibration.md shows them", f"{type(error).__name__}: {error}", "correct the file"
        ) from error
    if not figures.keys() & {*UNITS, LEADS}:
        raise UsageError(
            '"V", "I" or "lead" in the figures', ", ".join(figures) or "nothing", "see hardware/calibration.md"
        )
    stored["board"] = serial
    return stored


def _stored(rail: dict, quantity: str, points: list[Point], meter: Meter, say: Callable[[str], None]) -> dict:
    unit = UNITS[quantity]
    _named(meter)
    if len(points) < 2:
        raise UsageError("two points", str(len(points)), "measure another one")
    lsb = rail["vbus_lsb_nV"] * 1e-9 if quantity == "V" else rail["current_lsb_pA"] * 1e-12
    try:
        line = calibration.line(points[0], points[1], meter, lsb)
    except CalibrationError as error:
        raise UsageError("two points that make a calibration", str(error), "measure them again") from error
    gain, offset = calibration.gain_offset(line)
    say(f"{quantity}: gain {1e6 * (gain - 1):+.0f} ppm, offset {1e3 * offset:+.4f} m{unit}")
    for k, point in enumerate(points):
        before = point.rig - point.reference
        value = gain * point.rig + offset
        uncertain = calibration.EXPANDED * calibration.line_uncertainty(line, value)
        if k < 2:
            say(
                f"  at {point.reference:.6g} {unit}: the rig was off by {1e3 * before:+.4f} m{unit}; now uncertain by"
                f" {1e3 * uncertain:.4f} m{unit} (k = 2)"
            )
            continue
        left, allowed = calibration.residual(line, point, meter)
        say(
            f"  check at {point.reference:.6g} {unit}: before {1e3 * before:+.4f}, now {1e3 * left:+.4f}, allowed"
            f" {1e3 * allowed:.4f} m{unit}"
        )
        if abs(left) > allowed:
            raise UsageError(
                f"the check at {point.reference:g} {unit} within {1e3 * allowed:.4f} m{unit}",
                f"{1e3 * left:+.4f} m{unit}",
                "measure again: one of the three readings is wrong, or the meter's limits are too good",
            )
    # the amplifier of the fast channel hangs on the shunt, or not
    own = {"amplifier_nA": rail["amplifier_nA"]} if quantity == "I" and rail.get("amplifier_nA") else {}
    return {**line, **own, "date": time.strftime("%Y-%m-%d", time.gmtime()), "meter": meter.name}


def _lead(rail: dict, points: list[Point], drawn: list[float], meter: Meter, say: Callable[[str], None]) -> dict:
    """rail: with the calibration of V and I that there is; drawn: the rig's current at each point (A), as the points
    before it."""
    _named(meter)
    if len(points) != 2:
        raise UsageError("two points, without and with a load", str(len(points)), "measure both")
    scales = calibration.scales(rail | {"lead_mOhm": 0})
    v_gain, i_gain = scales[0] / (rail["vbus_lsb_nV"] * 1e-9), scales[2] / (rail["current_lsb_pA"] * 1e-12)
    idle, loaded = (Point(p.rig * v_gain + scales[1], p.rig_u, p.reference) for p in points)
    try:
        stored = calibration.lead(idle, loaded, (drawn[1] - drawn[0]) * i_gain, meter)
    except CalibrationError as error:
        raise UsageError("two points that make a resistance", str(error), "measure them again") from error
    ohm, u = stored["R_n"] / calibration.NANO, stored["u_n"] / calibration.NANO
    lead_mOhm = rail.get("lead_mOhm")
    of_board = f", {lead_mOhm} as the board reports" if lead_mOhm else ""
    say(f"leads: {1e3 * ohm:.2f} mOhm +- {1e3 * calibration.EXPANDED * u:.2f} (k = 2){of_board}")
    return {**stored, "date": time.strftime("%Y-%m-%d", time.gmtime()), "meter": meter.name}


def _named(meter: Meter) -> None:
    if not meter.name or len(meter.name) > NAME_CHARS:
        raise UsageError(
            f"the meter's make and serial number in at most {NAME_CHARS} characters", repr(meter.name), "shorten it"
        )


def _meter(quantity: str, questions: Questions) -> Meter:
    unit = UNITS[quantity]
    name = questions.ask("Meter, make and serial number: ").strip()
    percent = questions.number("Its accuracy on this range, percent of reading (manual): ", "%").value
    fixed = questions.number(f"and the fixed part, in {unit} (counts x last digit): ", unit).value
    digit = questions.number(f"Its last digit on this range, in {unit}: ", unit).value
    return Meter(name, percent, fixed, digit)


def _point(session: Session, rail: int, quantity: str, exact: bool, questions: Questions) -> Point:
    unit, say = UNITS[quantity], questions.show
    while True:
        mean, u = still(session, rail, quantity, say)
        say(f"  it holds still at {mean:.6f} {unit} (mean uncertain by {1e6 * u:.1f} u{unit})")
        if exact and chips.is_zero(session.rail(rail), mean):
            return Point(mean, u, 0.0, True)
        if exact:
            questions.ask(
                "  That is not what a rail reads with nothing connected. Disconnect all at the drive's side, then"
                " Enter: "
            )
            continue
        near = lambda value, mean=mean: abs(value - mean) <= NEAR_PART * abs(mean)
        reference = questions.number(f"  The meter shows ({unit}): ", unit, near).value
        after, u_after = mean_of(_values(session.readings([rail], BLOCK_S * 4)[rail], quantity), 4)
        if abs(after - mean) <= 6 * math.hypot(u, u_after) + STILL_ppm * 1e-6 * abs(mean):
            return Point(mean, u, reference)
        say(f"  it has moved to {after:.6f} {unit} meanwhile; once more")


def still(session: Session, rail: int, quantity: str, say: Callable[[str], None]) -> tuple[float, float]:
    """Wait until the reading holds still: its mean and the standard uncertainty of that mean (GUM 4.2.3). RigError if
    it does not within PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        values = _values(session.readings([rail], BLOCKS * BLOCK_S)[rail], quantity)
        if is_still(values):
            return mean_of(values, BLOCKS)
        mean, u = mean_of(values, BLOCKS)
        if time.monotonic() > deadline:
            raise RigError(
                f"a reading that holds still within {PATIENCE_S:g} s",
                f"{mean:.6f} {UNITS[quantity]}, moving",
                "let the load warm up; see the leads",
            )
        say(f"  {mean:.6f} {UNITS[quantity]}, still moving; given up in {deadline - time.monotonic():.0f} s")


def is_still(values: np.ndarray) -> bool:
    """Whether the means of BLOCKS blocks differ by no more than their own noise explains (5 standard errors) or
    STILL_ppm. The noise is the median of the blocks', so that one sample of the load before does not hide itself."""
    blocks = in_blocks(values, BLOCKS)
    noise = float(np.median(blocks.std(axis=1))) / math.sqrt(blocks.shape[1])
    return float(np.ptp(blocks.mean(axis=1))) <= max(5 * noise, STILL_ppm * 1e-6 * abs(float(values.mean())), 1e-9)


def in_blocks(values: np.ndarray, blocks: int) -> np.ndarray:
    """The values as `blocks` rows of equal length (a rest at the end is left out)."""
    return values[: len(values) // blocks * blocks].reshape(blocks, -1)


def mean_of(values: np.ndarray, blocks: int) -> tuple[float, float]:
    """Mean and its standard uncertainty: from the scatter of block means, which includes effects slower than one sample
    too."""
    if len(values) < 2 * blocks:
        raise RigError(f"at least {2 * blocks} samples", str(len(values)), "see ./ssdrig rig info")
    by_blocks = float(in_blocks(values, blocks).mean(axis=1).std(ddof=1)) / math.sqrt(blocks)
    return float(values.mean()), max(by_blocks, float(values.std(ddof=1)) / math.sqrt(len(values)))


def _values(reading: Reading, quantity: str) -> np.ndarray:
    """RigError for a current of the low range: a calibration of I is one of the high range."""
    if quantity == "I" and len(reading.t_ns) and in_low(reading):
        raise RigError("a current of the high range", "one of the low range", "draw 0.1 A or more at both points")
    return reading.raw_V if quantity == "V" else reading.raw_A


def in_low(reading: Reading) -> int:
    """How many of its samples belong to the rail's low range."""
    if not ranges.low(reading.rail):
        return 0
    return reading.power.low_in(int(reading.t_ns[0]), int(reading.t_ns[-1]) + 1)[0]


def noise(reading: Reading) -> dict:
    """The self-test's figures with nothing connected, in V and A: per quantity mean, sd, pp (peak to peak), allan_1s
    (Allan deviation of 1-s means, sqrt(mean(d2) / 2) of neighbouring ones: IEEE Std 1139) and drift (last 1-s mean
    minus the first); n, seconds; I_typical, the chip's (None: not known). RigError with fewer than 2 s of samples, or
    if a current flows."""
    seconds = round(float(reading.t_ns[-1] - reading.t_ns[0]) * 1e-9) if len(reading.t_ns) else 0
    if seconds < 2:
        raise RigError("at least 2 s of samples", f"{seconds} s", "see ./ssdrig rig info")
    if not chips.is_zero(reading.rail, float(reading.raw_A.mean())):
        raise RigError(
            "no current",
            f"{1e3 * float(reading.raw_A.mean()):.3f} mA",
            "disconnect the drive and all else at its side of the shunt",
        )
    mean = uncertainty.Mean(reading.rail, 0.0, 0.0, low=(in_low(reading) / len(reading.t_ns), 0.0))
    out = {"n": len(reading.t_ns), "seconds": seconds, "I_typical": uncertainty.noise_A(mean)}
    for quantity, values in (("V", reading.raw_V), ("I", reading.raw_A)):
        means = in_blocks(values, seconds).mean(axis=1)
        out |= {
            f"{quantity}_mean": float(values.mean()),
            f"{quantity}_sd": float(values.std(ddof=1)),
            f"{quantity}_pp": float(np.ptp(values)),
            f"{quantity}_allan_1s": math.sqrt(float((np.diff(means) ** 2).mean()) / 2),
            f"{quantity}_drift": float(means[-1] - means[0]),
        }
    return out


def stored_noise(noise_: dict, rail: dict) -> dict:
    """The noise figures as the board keeps them: integers of 1e-9 V or A, with the chip's configuration and the
    date."""
    names = ("I_mean", "I_sd", "I_pp", "I_allan_1s", "V_sd")
    figures = {f"{name}_n": round(noise_[name] * calibration.NANO) for name in names}
    return {
        **figures,
        "seconds": noise_["seconds"],
        "adc": rail["adc_config"],
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
