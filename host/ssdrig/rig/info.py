"""`ssdrig rig info`: readings of each rail, their uncertainty, and faults."""

import math
import struct
import time
from collections.abc import Iterator

import numpy as np

from ssdrig.base import latch
from ssdrig.base.errors import RigError
from ssdrig.base.words import digits
from ssdrig.meter import calibration, chips, fast, nominal, ranges, wire
from ssdrig.meter.pico.session import Reading, Session
from ssdrig.meter.uncertainty import Mean, expanded_W, noise_A, part

SHUNT_PART = 0.1  # by which a load resistor and the rig may differ
LEAST_LOAD_A = 0.02
FIRST_S = 1.0  # within it each rail that is there has sent something


def info(session: Session, seconds: float) -> dict:
    """What `rig info --json` prints, without the port: the hello, `rails` (per rail rates, means at the drive, noise,
    losses, samples at the sensor's limit, closure), `total` (of all rails), `silent_rails` (numbers of those that
    deliver nothing; no total then), `other_supply` (of those with another supply than the board reports),
    `fast` (of_fast), `clock`, `frames_lost`, `damaged`, `logs`, `unknown` (latch.py), `warnings`. Raises
    RigError if a rail goes meanwhile."""
    deadline = time.monotonic() + FIRST_S
    while session.rig.silent_rails() and time.monotonic() < deadline:
        time.sleep(0.05)
    silent = [rail["rail"] for rail in session.rig.silent_rails()]
    unknown = latch.of_rig(latch.name_of(session.hello, session.rig.port))
    readings = session.readings(
        [rail["rail"] for rail in session.hello["rails"] if rail["rail"] not in silent], seconds
    )
    warnings = [
        f"rail {n} ({session.rail(n)['name']}): no samples; is its sensor there, and wired as the board reports?"
        for n in silent
    ]
    if unknown:
        warnings.append(f"the bench is UNKNOWN: {latch.in_words(unknown)}; look, then ./ssdrig rig clear")
    pairs = [(row_of(reading), reading) for reading in readings.values()]
    rows = [row for (row, _), _ in pairs]
    for row, reading in zip(rows, readings.values(), strict=True):
        warnings += complaints(row, reading, session.hello.get("serial"))
    intervals = max(1, math.ceil(10 * seconds))
    by_fast = of_fast(session.hello, session.memory.bodies(wire.FAST)[-intervals:], rows)
    if by_fast and by_fast["agrees"] is False:
        warnings.append(fast_apart(by_fast))
    sure = not any(row["P_uncertainty_W"] is None for row in rows)
    total = {
        "P_mean_W": sum(row["P_mean_W"] for row in rows),
        "P_uncertainty_W": expanded_W([mean for (_, mean), _ in pairs]) if sure else None,
    }
    power = next(iter(readings.values())).power
    clock = power.clocks[-1]
    assert clock  # samples of this boot have host time by it
    names = ("board", "serial", "firmware", "build", "protocol", "boot", "simulated", "switch")
    return {
        **{name: session.hello.get(name) for name in names},
        "total": None if silent else total,
        "silent_rails": silent,
        "other_supply": [row["rail"] for row in rows if nominal.is_other(session.rail(row["rail"]), row["V_mean"])],
        "seconds": seconds,
        "rails": rows,
        "fast": by_fast,
        "frames_lost": power.counts["frames_lost"],
        "damaged": session.rig.live()["damaged"],
        "clock": {
            "bound_us": float(power.err_ns.max()) / 1000,
            "rate_ppm": clock.rate_ppm(),
            "pings": clock.pings,
            "rate_error_ppm": clock.rate_error_ppm(),
        },
        "logs": session.logs(),
        "unknown": unknown,
        "warnings": warnings,
    }


def spans(reading: Reading) -> bool:
    """Whether its samples differ in time: a board may send anything."""
    return len(reading.t_ns) > 1 and bool(reading.t_ns[-1] > reading.t_ns[0])


def row_of(reading: Reading) -> tuple[dict, Mean]:
    """A rail's figures, and its mean power as the uncertainty of the sum wants it. RigError without two samples of
    different times."""
    rail, power = reading.rail, reading.power
    if not spans(reading):
        seen = f"{len(reading.t_ns)} at one time"
        raise RigError(f"samples of rail {rail['rail']} at different times", seen, "measure for longer")
    v_scale, v_offset, i_scale, i_offset, lead_ohm = calibration.scales(rail)
    amperes = reading.raw_A * (i_scale / (rail["current_lsb_pA"] * 1e-12)) + i_offset
    volts = reading.raw_V * (v_scale / (rail["vbus_lsb_nV"] * 1e-9)) + v_offset - amperes * lead_ohm
    in_low, low_W = power.low_in(reading.t_ns[0], reading.t_ns[-1] + 1)
    if len(power.in_low):  # each range by its own calibration
        chosen = slice(*np.searchsorted(power.t_ns, (reading.t_ns[0], reading.t_ns[-1] + 1)))
        volts, amperes = power.V[chosen], power.I[chosen]
    watts, span_s = volts * amperes, float(reading.t_ns[-1] - reading.t_ns[0]) * 1e-9
    low = part(len(watts), in_low, low_W)
    mean = Mean(rail, float(volts.mean()), float(watts.mean()), len(watts), float(watts.std()), low=low)
    uncertainty_W = expanded_W([mean])
    stored = calibration.of_rail(rail)
    clipped = power.clipped_in(reading.t_ns[0], reading.t_ns[-1] + 1)[0]
    return {
        "rail": rail["rail"],
        "name": rail["name"],
        "chip": rail["chip"],
        "samples": len(volts),
        "lost": power.lost,
        "rate_per_s": (len(volts) - 1) / span_s,
        "V_mean": mean.volts,
        "V_sd": float(volts.std(ddof=1)),
        "V_nominal": nominal.nominal_V(rail),
        "I_mean": float(amperes.mean()),
        "I_sd": float(amperes.std(ddof=1)),
        "I_pp": float(np.ptp(amperes)),
        "I_typical": noise_A(mean),
        "low_share": low[0] if ranges.low(rail) else None,
        "lead_mOhm": 1e3 * lead_ohm,
        "P_mean_W": mean.watts,
        "P_uncertainty_W": None if clipped or math.isnan(uncertainty_W) else uncertainty_W,
        "clipped": clipped,
        "calibrated": {q: stored[q].get("date") for q in ("V", "I", "lead") if stored.get(q)},
        "rate_nominal_per_s": 1e9 / rail["conversion_ns"],
        "coverage": None if math.isnan(covered := chips.coverage(rail)) else covered,
        "given_up": power.closure.instead if power.closure else 0,
        "closure_percent": power.closure.corrected_percent if power.closure else None,
        "closure_resolution_percent": power.closure.resolution_percent if power.closure else None,
    }, mean


def complaints(row: dict, reading: Reading, serial: str | None) -> Iterator[str]:
    """Warnings about a rail."""
    rail, number, stored = reading.rail, row["rail"], calibration.of_rail(reading.rail)
    if row["clipped"]:
        yield (
            f"rail {number}: {row['clipped']} of {row['samples']} samples are at the sensor's limit: its mean and peaks"
            " are lower bounds; use a smaller shunt"
        )
    if rail.get("calibration") and not stored:
        yield (
            f"rail {number}: the calibration on the board is invalid and was ignored: rig calibrate --forget, then anew"
        )
    if stored and stored.get("board") != serial:
        yield f"rail {number}: its calibration was made on another board ({stored.get('board')}): calibrate again"
    wrong = nominal.outside(rail, row["V_mean"], row["V_mean"])
    if wrong:
        yield wrong


def of_fast(hello: dict, bodies: list[bytes], rows: list[dict]) -> dict | None:
    """What the fast current channel saw in these bodies of F frames, by its components, next to the sensor's mean over
    row_of(): the run's figures are corrected by the sensor, these are not. `agrees`: None where the sensor is silent.
    None: the board has no channel."""
    facts = fast.facts_of(hello)
    if facts is None:
        return None
    frames = [struct.unpack(wire.FAST_BODY, body) for body in bodies if len(body) == struct.calcsize(wire.FAST_BODY)]
    mine = [of for of in frames if of[0] == facts["rail"] and of[4] > 0]
    samples, amps = sum(of[4] for of in mine), facts["nA_per_count"] * 1e-9
    mean_A = amps * sum(of[5] for of in mine) / samples if samples else None
    sensor_A = next((row["I_mean"] for row in rows if row["rail"] == facts["rail"]), None)
    agrees = None
    if sensor_A is not None:
        agrees = mean_A is not None and abs(mean_A - sensor_A) <= fast.apart_A(sensor_A)
    return {
        "rail": facts["rail"],
        "gpio": facts["gpio"],
        "intervals": len(mine),
        "lost": mine[-1][9] if mine else None,
        "I_mean": mean_A,
        "I_sensor": sensor_A,
        "I_peak_100us": amps * max(of[6] for of in mine) / facts["width"] if mine else None,
        "limited": sum(of[8] > 0 for of in mine),
        "agrees": agrees,
    }


def fast_apart(of: dict) -> str:
    """That channel and sensor differ too much, or that the channel sends nothing."""
    seen = "sends nothing" if of["I_mean"] is None else f"reads {of['I_mean']:.3f} A"
    return (
        f"rail {of['rail']}: its fast channel (GPIO {of['gpio']}) {seen} where the sensor reads {of['I_sensor']:.3f} A:"
        " is its amplifier there, on this shunt?"
    )


def of_load(rail: dict, row: dict, load_ohm: float) -> str | None:
    """Verdict on a rail's shunt from a resistor at the drive connector, known to SHUNT_PART; None: it is as stated, or
    no current flows."""
    if not load_ohm > 0 or abs(row["I_mean"]) < LEAST_LOAD_A:
        return None
    times = row["V_mean"] / load_ohm / row["I_mean"]
    if abs(times - 1) <= SHUNT_PART:
        return None
    milliohm = rail["shunt_uOhm"] / 1000 / times
    return (
        f"rail {rail['rail']}: {row['I_mean']:.3f} A through {load_ohm:g} Ohm at {row['V_mean']:.3f} V: the shunt is"
        f" about {digits(milliohm, 3)} mOhm, not {rail['shunt_uOhm'] / 1000:g}; which build is it?"
        " ./ssdrig rig setup --build"
    )


def milliwatts(watts: float, uncertainty_W: float | None) -> str:
    """A mean power in words, with its expanded uncertainty where that is known."""
    error = "uncertainty unknown" if uncertainty_W is None else f"+- {1e3 * uncertainty_W:.2f} (k = 2)"
    return f"{1e3 * watts:.2f} mW {error}"
