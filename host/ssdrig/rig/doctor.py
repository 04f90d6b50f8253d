"""The rig's self-test: what a builder would measure with a multimeter and an oscilloscope, done by the
rig itself. Without a drive, and then, if wanted, with a resistor of known value at one rail's connector."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from ssdrig.base.errors import RigError
from ssdrig.meter import nominal, wire
from ssdrig.meter.pico.certificate import Check
from ssdrig.meter.pico.session import Session
from ssdrig.rig import bring_up, checks, info
from ssdrig.rig.checks import Fall
from ssdrig.switch import profiles
from ssdrig.switch.pico import arm_and_cut, lock_outs, on, scope_now

SECONDS = 1.0  # of each reading
TRIES = 3  # of a picture
PATIENCE_S = 60.0  # host time, for a board whose clock stands still
MOMENT_us, OFF_ms, LOW_ms = 20_000, 30, 10
SCOPE_RATE, BEFORE, AFTER = 500_000, 60, 1200  # samples/s of all inputs; samples of each
RISE_RATE, RISE_AFTER = 100_000, 3800  # of one input: MOMENT_us, and 18 ms of the rise
DO = "see its wiring and address, ALERT included; hardware/README.md, pins.csv"

Say = Callable[[Check], None]


def silent(hello: dict, logs: list[str], rails: list[int]) -> Iterator[Check]:
    """Rails without samples, with the board's message where it sent one."""
    for rail in (row["rail"] for row in hello["rails"]):
        words = [line for line in logs if line.startswith(f"rail {rail}:")]
        answers = rail not in rails
        yield checks.fact(
            "sensor", rail, answers, "samples come" if answers else words[-1] if words else "no samples", DO
        )


def examine(
    session: Session, say: Say, resistor: tuple[int, float] | None, connect: Callable[[str], None]
) -> list[Check]:
    """All checks, each reported as soon as it is known. resistor: (rail, Ohm); connect(words) returns when the user has
    done so. Raises RigError: the board went away meanwhile."""
    out: list[Check] = []

    def note(outcome) -> None:
        for check in outcome if isinstance(outcome, list) else [outcome]:
            out.append(check)
            say(check)

    note(checks.of_hello(session.hello))
    quiet = _silent_rails(session)
    note(list(silent(session.hello, session.logs(), quiet)))
    rails = [rail["rail"] for rail in session.hello["rails"] if rail["rail"] not in quiet]
    bare = _measured(session, rails)
    for n in rails:
        stopped = checks.fact("sensor", n, False, "its samples stop", DO)
        note(checks.of_rail(session.rail(n), bare[n]) if n in bare else stopped)
        if n in bare and bare[n]["low_share"] is not None:
            note(checks.of_low(n, bare[n]["low_share"]))
    rails = list(bare)
    note(_fast(session, bare))
    note(_scope(session, bare))
    note(_gate_supply(session))
    for n in rails:
        note(_switched(session, n, bare[n]))
    note(_lock_outs(session, bare, all(check.ok is not False for check in out)))
    if resistor:
        note(_loaded(session, *resistor, rails, bare, connect))
    note([checks.of_answers(n, session.logs()) for n in rails])
    note(checks.of_clock(session.clock()))
    return out


def _silent_rails(session: Session) -> list[int]:
    """Rails without samples for FIRST_S of the board's time: a busy host receives a good one late."""
    deadline = time.monotonic() + PATIENCE_S
    while quiet := [rail["rail"] for rail in session.rig.silent_rails()]:
        if all(session.quiet_s(n, 0) > info.FIRST_S for n in quiet) or time.monotonic() > deadline:
            break
        session.rig.live()  # raises what the rig's threads met
        time.sleep(0.05)
    return quiet


def _measured(session: Session, rails: list[int]) -> dict[int, dict]:
    """Rows of info.row_of(), with how many conversions a second there were and by how much that may be off."""
    out = {}
    for n, reading in session.readings(rails, SECONDS).items() if rails else ():
        if not info.spans(reading):
            continue
        row, _ = info.row_of(reading)
        power = reading.power
        first, last = np.searchsorted(power.t_ns, (reading.t_ns[0], reading.t_ns[-1]))
        conversions = int(power.index[last] - power.index[first])
        rate = conversions / (1e-9 * float(reading.t_ns[-1] - reading.t_ns[0]))
        bound = rate * float(power.err_ns[first] + power.err_ns[last]) / float(reading.t_ns[-1] - reading.t_ns[0])
        out[n] = {**row, "conversions_per_s": rate, "conversions_bound_per_s": bound}
    return out


def _fast(session: Session, rows: dict[int, dict]) -> list[Check]:
    """The fast current channel against the sensor, on a board that has it on one of these rails."""
    latest = session.memory.bodies(wire.FAST)[-int(10 * SECONDS) :]
    figures = info.of_fast(session.hello, latest, list(rows.values()))
    return [] if figures is None or figures["agrees"] is None else [checks.of_fast(figures)]


def _scope(session: Session, bare: dict[int, dict]) -> list[Check]:
    rows = session.hello.get("scope") or []
    if not rows:
        return [checks.skipped("scope against sensor", None, "this board has no scope")]
    for tries_left in reversed(range(TRIES)):  # a busy host may lose frames
        try:
            pictures = scope_now(session.rig, [row["gpio"] for row in rows], 100_000, 0, 500)
            break
        except RigError as error:
            if not tries_left:
                return [checks.fact("scope", None, False, error.seen, "the firmware's scope does not answer: repeat")]
    assert isinstance(pictures, list)
    out = []
    for picture in pictures:
        n = picture["rail"]
        if n in bare:
            sensed_V = bare[n]["V_mean"] + bare[n]["I_mean"] * bare[n]["lead_mOhm"] * 1e-3
            of = nominal.nominal_V(session.rail(n))
            out.append(checks.of_scope(n, float(np.mean(picture["volts"])), sensed_V, of))
    return out


def _gate_supply(session: Session) -> list[Check]:
    """The gates' supply, on a board that measures it."""
    gate = session.hello.get("gate_supply")
    if not gate:
        return []
    try:
        picture = scope_now(session.rig, gate["gpio"], 100_000, 0, 500)
    except RigError as error:
        return [checks.fact("gate supply", None, False, error.seen, "the firmware's scope does not answer: repeat")]
    assert isinstance(picture, dict)
    return [checks.of_gate_supply(float(np.mean(picture["volts"])), gate["mV"] / 1000)]


def _switched(session: Session, n: int, row: dict) -> list[Check]:
    """A glitch, and if the rail falls a crowbar cut."""
    if not _has_switch(session, n):
        return [checks.skipped("switch", n, "the rail has none")]
    of = nominal.nominal_V(session.rail(n)) or row["V_mean"]
    if row["V_mean"] < nominal.NOTHING * of:
        return [checks.skipped("switch", n, "the sensor sees no voltage")]
    try:
        report = _cut(session, n, **profiles.moment(MOMENT_us))
    except RigError as error:
        return [checks.fact("opens", n, False, error.seen, error.do)]
    falls = _falls(report)
    entry = next(rail for rail in report["rails"] if rail["rail"] == n)
    residual = entry["residual_mV"] / entry["before_mV"] if entry["before_mV"] else 1.0
    out = checks.of_opening(n, residual, falls.get(n))
    out += [checks.of_other(other, n, fall) for other, fall in sorted(falls.items()) if other != n]
    if any(check.ok is False for check in out):
        return [
            *out,
            checks.skipped("discharge switch", n, "its switch does not open as it should: its resistor would burn"),
        ]
    out.append(_rise(session, n))
    try:
        report = _cut(session, n, profile=profiles.DEFAULT, off_ms=OFF_ms, residual_ms=LOW_ms)
    except RigError as error:
        on(session.rig, unsafe=True)
        return [*out, checks.fact("discharge switch", n, False, error.seen, error.do)]
    closed = _falls(report).get(n)
    if closed is None or n not in falls:
        return [*out, checks.skipped("discharge switch", n, "the scope does not see this rail")]
    return [*out, checks.of_crowbar(n, session.hello["switch"].get("dead_us") or 0, falls[n], closed)]


def _rise(session: Session, n: int) -> Check:
    """How fast the rail returns after a glitch."""
    inputs = [row["gpio"] for row in session.hello.get("scope") or () if row["rail"] == n]
    if not inputs:
        return checks.skipped("rise", n, "the scope does not see this rail")
    scope = {"gpio": inputs, "rate": RISE_RATE, "before": BEFORE, "after": RISE_AFTER}
    moment = profiles.moment(MOMENT_us)
    try:
        report = arm_and_cut(session.rig, rails=(n,), scope=scope, **moment)
    except RigError as error:
        return checks.fact("rise", n, False, error.seen, error.do)
    limits_ms = bring_up.rise_ms(session.hello.get("build"), session.rail(n).get("nominal_mV"))
    fall = checks.fall_of(report["waveform"][0], report["fired_us"])
    return checks.of_rise(n, fall, MOMENT_us, limits_ms)


def _lock_outs(session: Session, bare: dict, sound: bool) -> list[Check]:
    """Each rail's lock-out, on a board that can trip them. sound: the switches do as they should."""
    if not (session.hello.get("switch") or {}).get("lock_outs"):
        return []
    rails = [n for n in bare if _has_switch(session, n)]
    if not sound:
        return [checks.skipped("left with its lock-out tripped", n, "what failed above comes first") for n in rails]
    try:
        left_mV = lock_outs(session.rig)
    except RigError as error:
        return [checks.fact("left with its lock-out tripped", None, False, error.seen, error.do)]
    of = {n: nominal.nominal_V(session.rail(n)) or bare[n]["V_mean"] for n in rails}
    left_V = {n: mV / 1000 for n, mV in left_mV.items() if mV is not None}
    back_V = {n: row["V_mean"] for n, row in _measured(session, rails).items()}
    return [checks.of_lock_out(n, left_V.get(n), of[n], back_V.get(n)) for n in rails]


def _has_switch(session: Session, n: int) -> bool:
    return any(row["rail"] == n for row in (session.hello.get("switch") or {}).get("rails") or ())


def _cut(session: Session, n: int, **how) -> dict:
    """The report, with the pictures of all of the scope's inputs."""
    gpios = [row["gpio"] for row in session.hello.get("scope") or ()]
    scope = {"gpio": gpios, "rate": SCOPE_RATE, "before": BEFORE, "after": AFTER} if gpios else None
    return arm_and_cut(session.rig, rails=(n,), scope=scope, **how)


def _falls(report: dict) -> dict[int, Fall]:
    """Rail -> its fall, of those that had a voltage."""
    falls = {p["rail"]: checks.fall_of(p, report["fired_us"]) for p in report.get("waveform") or ()}
    return {n: fall for n, fall in falls.items() if fall.before_V > 0.5}


def _loaded(session: Session, n: int, ohm: float, rails: list[int], bare: dict, connect) -> list[Check]:
    if n not in rails:
        return [checks.skipped("resistor", n, "its sensor sends nothing")]
    volts = nominal.nominal_V(session.rail(n)) or bare[n]["V_mean"]
    connect(f"connect the resistor of {ohm:g} Ohm ({volts**2 / ohm:.1f} W) at the drive's connector of rail {n}")
    loaded = _measured(session, [n]).get(n)
    if loaded is None:
        return [checks.fact("resistor", n, False, "no samples with it", DO)]
    out = checks.of_load(session.rail(n), ohm, bare[n], loaded) + _fast(session, {n: loaded})
    if any(check.ok is False for check in out) or not _has_switch(session, n):
        return out
    try:
        entry = _cut(session, n, **profiles.moment(MOMENT_us))["rails"][0]
    except RigError as error:
        return [*out, checks.fact("opens under load", n, False, error.seen, error.do)]
    left = 100 * entry["residual_mV"] / entry["before_mV"] if entry["before_mV"] else None
    do = "the series switch: one of its two transistors is short, or not driven"
    return [*out, checks.figure("left of it when its switch is open", n, left, "%", None, 10.0, do)]
