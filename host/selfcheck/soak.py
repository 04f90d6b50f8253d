"""A day of streaming in the SIMULATED board's own time, across the wraps of ticks_us (2**30 us) and of the RP2040's
timer (2**32 us), with faults of the I2C bus all along (virtual/board/soak.py)."""

import json
import random
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field

import numpy as np

from selfcheck import Figure, at_most, exactly
from ssdrig.base import progress, words
from ssdrig.base.errors import RigError
from ssdrig.meter import wire
from ssdrig.setup import micropython
from ssdrig.virtual import cable

DAY_s = 86_400
WRAPS_us = {"ticks_us": 1 << 30, "the timer": 1 << 32}
SLOW = {
    "vbus_us": 4120,
    "vshunt_us": 4120,
    "temp_us": 4120,
}  # 81 conversions a second, so that a day takes half an hour
CURRENT, DIAG_ALRT = 7, 11
FLAG, RESERVED, VALUE = 1 << 14, 1 << 2, 1 << 21  # of DIAG_ALRT: ALERT's own; of CURRENT: always 0, and a bit of it
# What goes wrong, in turn, and by which words the rig says it. "value" cannot be seen in the sample: closure finds it.
FAULTS = {
    "nack": ("nack", 100, ("EIO",)),
    "stuck": ("stuck", 0, ("ETIMEDOUT",)),
    "flags": ("wrong", [DIAG_ALRT, FLAG], ("damaged",)),
    "reserved": ("wrong", [CURRENT, RESERVED], ("damaged",)),
    "value": ("wrong", [CURRENT, VALUE], ()),
    "reset": ("reset", 0, ("forgot its configuration", "expected an INA228")),
}
REPORT_us = 1_000_000  # within which a fault is reported
LATE_us = 100  # by which a stamp may be off a whole period
CHARGE_LSB = 3  # that the register's rounding leaves open
GROWTH_B = 1024


@dataclass
class Rail:
    """All that came of one rail, in order."""

    index: np.ndarray
    t_us: np.ndarray
    current: np.ndarray
    config: np.ndarray
    missed: int  # as the board counts
    energies: list  # (config, index, t_us, charge)


@dataclass
class Seen:
    """Of one stream. `faults`: (t_us, kind) as injected; `logs`: (t_us of the sample before, text)."""

    rails: list[Rail]
    looks: list[dict]
    faults: list[tuple[int, str]]
    logs: list[tuple[int, str]] = field(default_factory=list)
    lost_frames: int = 0


def drawn(s: float, every_s: float, seed: int = 1) -> list[tuple[float, str]]:
    """(second, kind) of faults, some every_s apart, each kind in turn; the first and last 10 s are left alone."""
    out: list[tuple[float, str]] = []
    dice, at = random.Random(seed), 10.0
    while at < s - 10:
        out.append((round(at, 4), list(FAULTS)[len(out) % len(FAULTS)]))
        at += every_s * dice.uniform(0.75, 1.25)
    return out


def streamed(s: float, ticks: int, faults: list[tuple[float, str]], rails: int = 1) -> Seen:
    """Let the firmware stream for s seconds of its own time, from the tick `ticks` on. RigError: it ended."""
    rows = [{**SLOW, "rail": n, "name": f"rail {n}", "address": 0x40 + n, "alert": 6 + n} for n in range(rails)]
    injected = [[at, *FAULTS[kind][:2]] for at, kind in faults]
    how = {"rails": rows, "ticks": ticks, "s": s, "faults": injected, "look_s": max(1, min(3600, s / 4))}
    argv = [*micropython.command(), "-X", "heapsize=4M", "soak.py", str(cable.FIRMWARE)]
    show = progress.Progress()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            argv, cwd=cable.STAND_INS, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE, text=True
        )
        assert process.stdin and process.stderr
        try:
            process.stdin.write(json.dumps(how))
            process.stdin.close()
            looks, other = [], ""
            for line in process.stderr:
                if not line.startswith("{"):
                    other += line
                    continue
                looks.append(json.loads(line))
                show.show(f"soak: {words.clock(looks[-1]['s'])} of {words.clock(s)} of the board's time")
            if process.wait() or not looks:
                raise RigError("firmware that streams on", other[-2000:] or "an early end", "see what it says")
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
        if show.live:
            show.show("")
        out.seek(0)
        return decoded(out.read(), rails, looks, [(first_us(ticks) + int(at * 1e6), kind) for at, kind in faults])


def first_us(ticks: int) -> int:
    """What the wire's 64-bit time begins with (firmware/clock64.py)."""
    return ticks % WRAPS_us["ticks_us"]


def decoded(data: bytes, rails: int, looks: list[dict], faults: list[tuple[int, str]]) -> Seen:
    """What a stream's bytes say."""
    seen = Seen([], looks, faults)
    heads: list[list] = [[] for _ in range(rails)]
    parts: list[list] = [[] for _ in range(rails)]
    energies: list[list] = [[] for _ in range(rails)]
    seq, t_us, size = 0, 0, struct.calcsize(wire.SAMPLES_HEAD)
    for frame in filter(None, data.split(b"\0")):
        kind, number, body = wire.decode(frame)
        seen.lost_frames += number - seq & 0xFFFFFFFF
        seq = number + 1
        if kind == wire.SAMPLES:
            head = struct.unpack_from(wire.SAMPLES_HEAD, body)
            heads[head[0]].append(head)
            parts[head[0]].append(body[size:])
            t_us = head[5] + sum(body[size :: wire.SAMPLE_BYTES]) + 256 * sum(body[size + 1 :: wire.SAMPLE_BYTES])
        elif kind == wire.ENERGY:
            rail, config, index, t_us, _, charge, _, _ = struct.unpack(wire.ENERGY_BODY, body)
            energies[rail].append((config, index, t_us, int.from_bytes(charge, "little", signed=True)))
        elif kind == wire.LOG:
            seen.logs.append((t_us, body.decode()))
    for its, part, energy in zip(heads, parts, energies):
        rows = np.frombuffer(b"".join(part), np.uint8).reshape(-1, wire.SAMPLE_BYTES).astype(np.int64)
        n = np.array([h[2] for h in its])
        first = np.repeat(np.cumsum(n) - n, n)
        dt = rows[:, 0] | rows[:, 1] << 8
        ran = np.cumsum(dt)
        at = np.arange(len(rows)) - first
        index = np.repeat(np.array([h[4] for h in its]), n) + at
        t = np.repeat(np.array([h[5] for h in its], np.int64), n) + ran - ran[first]
        raw = rows[:, 5] | rows[:, 6] << 8 | rows[:, 7] << 16
        config = np.repeat(np.array([h[1] for h in its]), n)
        seen.rails.append(Rail(index, t, raw - (raw >> 23 << 24), config, its[-1][3], energy))
    return seen


def unaccounted(rail: Rail) -> int:
    """Conversions that neither came nor were counted as missed, or were both."""
    return abs(int(rail.index[-1]) + 1 - len(rail.index) - rail.missed)


def back(rail: Rail) -> int:
    """Steps in which time, or the index, does not grow."""
    return int((np.diff(rail.t_us) <= 0).sum() + (np.diff(rail.index) <= 0).sum())


def off_us(rail: Rail) -> float:
    """By how much a step from one conversion to the next is off the period, at most."""
    step = np.diff(rail.t_us)[np.diff(rail.index) == 1]
    return float(np.abs(step - np.median(step)).max())


def wrong(rail: Rail, start_us: int) -> int:
    """Samples whose current is not that of their own time (`amps` in virtual/board/soak.py)."""
    period_us = sum(SLOW.values())
    ok = np.zeros(len(rail.index), bool)
    for late_us in (0, LATE_us):  # from the conversion's end to its stamp
        began = rail.t_us - start_us - late_us - period_us + SLOW["temp_us"]
        ok |= np.abs(rail.current - np.round((0.5 + (began // 1_000_000 % 61) * 0.01) * 1e12 / 9_765_625)) <= 1
    return int((~ok).sum())


def open_charge(rail: Rail) -> list[tuple[int, int]]:
    """(from, to) in t_us of the stretches between two readings of the accumulator whose charge is not that of the
    samples in between, all of which came."""
    out = []
    for (config, first, t0, before), (its, last, t1, after) in zip(rail.energies, rail.energies[1:]):
        a, b = np.searchsorted(rail.index, (first, last))
        if config != its or b - a != last - first or first == 0:
            continue
        counted = rail.current[a:b].sum() * sum(SLOW.values()) / 1e6
        if abs(after - before - counted) > CHARGE_LSB:
            out.append((t0, t1))
    return out


def unreported(seen: Seen) -> list[tuple[int, str]]:
    """Faults that neither the rig reported in time nor the closure of a rail shows."""
    gaps = [gap for rail in seen.rails for gap in open_charge(rail)]
    out = []
    for t_us, kind in seen.faults:
        words = FAULTS[kind][2]
        if words:
            soon = [text for t, text in seen.logs if -REPORT_us < t - t_us < REPORT_us]
            reported = any(word in text for text in soon for word in words)
        else:
            reported = any(a - REPORT_us < t_us < b + REPORT_us for a, b in gaps)
        if not reported:
            out.append((t_us, kind))
    return out


def off_count(rail: Rail, start_us: int) -> float:
    """By how many conversions the index is off the time that has passed."""
    return abs(int(rail.index[-1]) + 1 - (int(rail.t_us[-1]) - start_us) / sum(SLOW.values()))


def figures(seen: Seen, ticks: int) -> list[Figure]:
    """Of a stream that began at the tick `ticks`."""
    end_us, values = seen.looks[-1]["t_us"], [kind for _, kind in seen.faults].count("value")
    start_us, used = first_us(ticks), [look["used"] for look in seen.looks[1:]]
    last_us = start_us + end_us - ticks
    out = [Figure("hours of the board's time", (end_us - ticks) / 3.6e9, "h", "none", True)]
    for name, wrap in WRAPS_us.items():
        n = end_us // wrap - ticks // wrap
        out.append(Figure(f"wraps of {name}", n, "", ">= 1", n >= 1))
    rails = seen.rails
    return [
        *out,
        Figure("samples", sum(len(rail.index) for rail in rails), "", "none", True),
        Figure("missed, each counted", sum(rail.missed for rail in rails), "", "none", True),
        exactly("samples lost and not accounted for", sum(map(unaccounted, rails)), "", 0),
        at_most(
            "index off the time that passed, a fault",
            max(off_count(rail, start_us) for rail in rails) / (1 + len(seen.faults)),
            "",
            1,
        ),
        exactly("frames lost", seen.lost_frames, "", 0),
        exactly("steps of time or index that do not grow", sum(map(back, rails)), "", 0),
        at_most("a step from one conversion to the next, off", max(map(off_us, rails)), "us", LATE_us),
        at_most("samples that are not of their time", sum(wrong(rail, start_us) for rail in rails), "", values),
        at_most("behind the end, the last sample", max(last_us - int(r.t_us[-1]) for r in rails) / 1e3, "ms", 1000),
        Figure("faults", len(seen.faults), "", "none", True),
        exactly("faults that nothing reports", len(unreported(seen)), "", 0),
        at_most("memory in use, growth", max(used) - used[0], "B", GROWTH_B),
    ]


def soak() -> list[Figure]:
    ticks = WRAPS_us["ticks_us"] - 60_000_000
    return figures(streamed(DAY_s, ticks, drawn(DAY_s, 60)), ticks)


WHAT = "24 h of streaming in the board's time, across all clock wraps, a fault of the I2C bus each minute (30 minutes)"
BENCHES = {"soak": (WHAT, soak)}
