"""The RP2350's front end on the SIMULATED board for ten minutes of its own time: what is lost, and the highest mean of
100 us of each burst, corrected by the sensor as a run's reader does it, against what the rail drew; and its two ranges,
with a load that passes from one into the other."""

import json
import math
import os
import random
import select
import struct
import subprocess
import sys
import tempfile
import tty
from typing import NamedTuple

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly
from ssdrig.meter import clock, fast, frames, power, rails, wire
from ssdrig.rig import builds
from ssdrig.runs import rigbin, rigrecords
from ssdrig.virtual import cable
from ssdrig.virtual.flash import feed

LASTS_s, PACE, SEED = 600, 100, 46
CONVERTER, VOLTS_PERCENT = "ADS7042", 0.6  # that the voltage beside a peak may be off
PAIR = {"rail": 0, "gpio": 17, "volts": 16, "cs": 14, "adc": CONVERTER}
PAIR |= {"nA_per_count": fast.nA_per_count(8000), "nV_per_count": 1_611_328}
START_us = 1_000_000  # the board's ticks when it boots
RAIL_V, LOAD_A, SAG_ohm, BURST_s = 5.0, 0.5, 0.05, 200e-6
NEAR_ns = 50_000  # by which a window's end may miss its burst
PEAK_PART, PEAK_A = 0.01, 0.005  # that a peak may be off
RANGES_s, REST_A = 60, 2e-4  # 1 mW at RAIL_V


class Burst(NamedTuple):
    """What the rail draws more for BURST_s, and has then."""

    at_s: float  # since boot
    more_A: float
    amps: float
    volts: float


def bursts_of(dice: random.Random, lasts_s: float) -> list[Burst]:
    """One each 29 s."""
    out = []
    for k in range(max(0, int((lasts_s - 26) // 29) + 1)):
        at_s, more_A = 20 + 29 * k + dice.uniform(0, 5), dice.uniform(0.2, 5.5)
        out.append(Burst(at_s, more_A, LOAD_A + _change_A(at_s) + more_A, RAIL_V - SAG_ohm * more_A))
    return out


def _change_A(at_s: float) -> float:
    """What the load draws more for half of each minute, as a drive's changes: by that the host tells the channel's
    gain."""
    return 1.5 if 7 <= at_s % 60 < 37 else 0.0


def settings(dice: random.Random, bursts: list[Burst], lasts_s: float) -> dict:
    """What the board is like."""
    rows = [[0.0, LOAD_A, 0.0]]
    rows += [row for k in range(int(lasts_s // 60) + 1) for row in ([60 * k + 7, 1.5, 0.0], [60 * k + 37, -1.5, 0.0])]
    for burst in bursts:
        sag_V = SAG_ohm * burst.more_A
        rows += [[burst.at_s, burst.more_A, -sag_V], [burst.at_s + BURST_s, -burst.more_A, sag_V]]
    true = {"gain": dice.uniform(0.99, 1.01), "zero": dice.uniform(0, 5), "volts": dice.uniform(0.995, 1.005)}
    board = {"fast": {**PAIR, "true": true}, "rail": {"true": {"surges": rows}}}
    return {**board, "ppm": 0.0, "start_ticks": START_us}


def stream(how: dict, lasts_s: float) -> list[tuple[int, int, bytes]]:
    """(kind, seq, body) of all frames of a stream of a board with these settings."""
    with tempfile.TemporaryDirectory(prefix="ssdrig-front-end-") as folder:
        path = f"{folder}/feed"
        # of one bin, which has no end; all of the load is in the settings
        cable.fill(feed.create(path, 0, rail_mV=round(1000 * RAIL_V), bins=1), 0.0)
        words = [sys.executable, "-P", "-m", "ssdrig.virtual.cable", "--feed", path, "--truth", f"{folder}/truth"]
        words += ["--faults", json.dumps(how), "--pace", str(PACE), "--die-with-parent"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert process.stdout
        try:
            return _listen(json.loads(process.stdout.readline())["port"], lasts_s)
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def _listen(port: str, lasts_s: float) -> list[tuple[int, int, bytes]]:
    out: list[tuple[int, int, bytes]] = []
    rest, at_us = b"", START_us
    fd = os.open(port, os.O_RDWR | os.O_NOCTTY)
    try:
        tty.setraw(fd)
        os.write(fd, wire.encode(wire.ASK_HELLO, 0) + wire.encode(wire.GO, 1))
        while at_us < START_us + lasts_s * 1e6:
            if not select.select([fd], [], [], 1)[0]:
                continue
            *whole, rest = (rest + os.read(fd, 65536)).split(b"\x00")
            for kind, seq, body in (wire.decode(frame) for frame in whole if frame):
                out.append((kind, seq, body))
                if kind in (wire.FAST, wire.ENERGY):
                    at_us = struct.unpack_from(wire.FAST_BODY if kind == wire.FAST else wire.ENERGY_BODY, body)[3]
    finally:
        os.close(fd)
    return out


def _feed(decoder: frames.Decoder, kind: int, payloads: list[bytes]) -> None:
    length = np.array([len(payload) for payload in payloads])
    start, zeros = np.cumsum(length) - length, np.zeros(len(length), np.int64)
    data, kinds = np.frombuffer(b"".join(payloads), np.uint8), np.full(len(length), kind, np.uint8)
    decoder.feed(rigrecords.Records(kinds, zeros, start, length, data, 0, 0, 0))


def _payloads(seen: list[tuple[int, int, bytes]]) -> list[bytes]:
    return [struct.pack(wire.HEAD, kind, seq) + body for kind, seq, body in seen]


def power_of(seen: list[tuple[int, int, bytes]], boot_us: int, rail: int = 0) -> power.Power:
    """A rail's samples as a run's reader makes them; times in ns since the board's boot, when its ticks were
    boot_us."""
    decoder = frames.Decoder()
    _feed(decoder, rigbin.FRAME, _payloads(seen))
    _feed(decoder, rigbin.CLAIM, [rigbin.CLAIM_BODY.pack(boot_us, 0)])
    made = power.assemble(decoder.frames(rail), decoder.boots, decoder.counts, rail)
    energies = decoder.energies()
    made.closure = power.closure(made, energies[energies["rail"] == rail])
    return made


def peaks_of(seen: list[tuple[int, int, bytes]]) -> fast.Peaks:
    """What a run's reader makes of the channel; its times in ns since boot."""
    decoder = frames.Decoder(frames.Places)
    _feed(decoder, rigbin.FRAME, _payloads(seen))
    energies = decoder.energies()
    clocks = {len(decoder.boots) - 1: clock.claimed([(START_us, 0, 0)])}
    peaks = fast.of_rail(0, decoder.fasts(), energies[energies["rail"] == 0], decoder.boots, clocks)
    assert peaks
    return peaks


def off(peaks: fast.Peaks, burst: Burst) -> tuple[float, float] | None:
    """By how much the highest mean of a burst is off, in parts of what it may be, and its voltage, as a part of it;
    None: no window of it is there."""
    from_ns, until_ns = round(burst.at_s * 1e9), round((burst.at_s + BURST_s) * 1e9)
    inside = np.flatnonzero((peaks.at_ns > from_ns - NEAR_ns) & (peaks.at_ns < until_ns + NEAR_ns))
    if not len(inside):
        return None
    best = inside[np.argmax(peaks.highest_A[inside])]
    assert peaks.highest_V is not None
    may_A = PEAK_PART * burst.amps + PEAK_A
    return abs(peaks.highest_A[best] - burst.amps) / may_A, abs(peaks.highest_V[best] / burst.volts - 1)


def front_end(lasts_s: float = LASTS_s) -> list[Figure]:
    dice = random.Random(SEED)
    bursts = bursts_of(dice, lasts_s)
    seen = stream(settings(dice, bursts, lasts_s), lasts_s)
    raw = [struct.unpack(wire.FAST_BODY, body) for kind, _, body in seen if kind == wire.FAST]
    (hello, *_) = [json.loads(body) for kind, _, body in seen if kind == wire.HELLO]
    step_us = hello["fast"]["step_ns"] / 1000
    apart = [b[3] - a[3] - a[4] * step_us for a, b in zip(raw, raw[1:])]
    peaks = peaks_of(seen)
    differ = [off(peaks, burst) for burst in bursts]
    differences = [difference for difference in differ if difference]
    return [
        exactly("samples lost in 10 min of board time, of V and of I", raw[-1][9], "", 0),
        exactly("breaks between intervals of 100 ms", sum(abs(gap) > 1 for gap in apart), "", 0),
        exactly(f"bursts of 200 us without a peak, of {len(bursts)}", len(differ) - len(differences), "", 0),
        at_most("worst peak, in parts of 1 % + 5 mA", max(amps for amps, _ in differences), "", 1),
        at_most("worst voltage beside a peak", 100 * max(volts for _, volts in differences), "%", VOLTS_PERCENT),
    ]


def ranges_of(dice: random.Random, lasts_s: float) -> list[tuple[float, float]]:
    """Steps (s since boot, A from then on) between rest and work, some through the threshold of 51 mA."""
    out, at_s = [(0.0, REST_A)], 3.0
    while at_s < lasts_s:
        out += [(at_s, dice.choice([0.035, 0.06, 0.3, 3.0, 5.0]))]
        out += [(round(at_s + 10 ** dice.uniform(-4, 0), 6), REST_A)]
        at_s = round(out[-1][0] + 10 ** dice.uniform(-2, 0.8), 6)
    return out


def drawn_J(steps: list[tuple[float, float]], from_s: float, to_s: float) -> float:
    """Of these steps, at RAIL_V."""
    cuts = np.clip([*[at_s for at_s, _ in steps], np.inf], from_s, to_s)
    return float((np.diff(cuts) * [amps for _, amps in steps]).sum() * RAIL_V)


def two_ranges(lasts_s: float = RANGES_s) -> list[Figure]:
    dice = random.Random(SEED)
    steps = ranges_of(dice, lasts_s)
    surges = [
        [at_s, round(amps - before, 6), 0] for (at_s, amps), before in zip(steps, [0.0, *[amps for _, amps in steps]])
    ]
    row = {"fine": False, "current_lsb_pA": 39_062_500, "lead_mOhm": 0}
    row |= {"low": next(of["low"] for of in builds.read("front_end")["rails"]), "true": {"surges": surges}}
    off = {"offset_uV": dice.uniform(-0.5, 0.5), "gain_ppm": dice.uniform(-250, 250)}
    seen = stream({"rail": row, "ppm": 0.0, "start_ticks": START_us, **off}, lasts_s)
    of = power_of(seen, START_us)
    worst, percents, seconds = 0.0, [], range(3, int(of.t_ns[-1] // 10**9))
    for second in seconds:
        span_ns = [second * 10**9, (second + 1) * 10**9]
        joules = rails.energy_J([of], *span_ns)
        assert joules is not None
        stated_J = rails.uncertainty_W([of], span_ns, [joules])
        true_J = drawn_J(steps, second, second + 1)
        worst = max(worst, abs(joules - true_J) / stated_J)
        if of.low_in(*span_ns)[0] == of.scatter(*span_ns)[0] and abs(true_J / RAIL_V / REST_A - 1) < 1e-9:
            percents.append(100 * max(abs(joules / true_J - 1), stated_J / joules))
    moves = len(of.boots[-1].moves[0])
    return [
        at_least("seconds with 1 mW alone", len(percents), "", 3),
        at_most("worst of these, off or stated", max(percents, default=math.nan), "%", 3),
        at_most(f"worst energy of {len(seconds)} seconds, in parts of its stated error", worst, "", 1),
        exactly(f"conversions lost, other than the {moves} in which the bypass moved", of.lost - moves, "", 0),
    ]


BENCHES = {
    "front-end": ("the RP2350's front end, V and I at 250 kS/s: losses, and peaks against the truth", front_end),
    "front-end-ranges": ("its two ranges: 1 mW, and a load that passes from one into the other", two_ranges),
}
