"""The RP2350's front end on the SIMULATED board for ten minutes of its own time: samples lost."""

import json
import os
import random
import select
import struct
import subprocess
import sys
import tempfile
import time
import tty

from selfcheck import Figure, exactly
from ssdrig.meter import fast, wire
from ssdrig.virtual import cable
from ssdrig.virtual.flash import feed

LASTS_s, PACE, SEED = 600, 100, 46
PAIR = {"rail": 0, "gpio": 17, "volts": 16, "cs": 14, "adc": "ADS7042"}
PAIR |= {"nA_per_count": fast.nA_per_count(8000), "nV_per_count": 1_611_328}
SAG_ohm = 0.05


def _settings(dice: random.Random) -> dict:
    """What the board is like: bursts of 200 us, and a load that changes."""
    bursts = [(20 + 29 * k + dice.uniform(0, 5), dice.uniform(0.2, 5.5)) for k in range(20)]
    rows = [row for t, amps in bursts for row in ([t, amps, -SAG_ohm * amps], [t + 2e-4, -amps, SAG_ohm * amps])]
    true = {"gain": dice.uniform(0.99, 1.01), "zero": dice.uniform(0, 5), "volts": dice.uniform(0.995, 1.005)}
    # the load changes, as a drive's does: by that the host tells the channel's gain
    rows += [row for k in range(10) for row in ([60 * k + 7, 1.5, 0], [60 * k + 37, -1.5, 0])]
    rail = {"true": {"surges": rows}}
    return {"fast": {**PAIR, "true": true}, "rail": rail, "noise": 0.0, "ppm": 0.0}


def _stream(settings: dict, truth_path: str, path: str) -> list[tuple[int, int, bytes]]:
    """(kind, seq, body) of all frames of a stream of LASTS_s."""
    words = [sys.executable, "-P", "-m", "ssdrig.virtual.cable", "--feed", path, "--truth", truth_path]
    words += ["--faults", json.dumps(settings), "--pace", str(PACE), "--die-with-parent"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout
    out: list[tuple[int, int, bytes]] = []
    try:
        fd = os.open(json.loads(process.stdout.readline())["port"], os.O_RDWR | os.O_NOCTTY)
        tty.setraw(fd)
        os.write(fd, wire.encode(wire.ASK_HELLO, 0) + wire.encode(wire.GO, 1))
        rest, begun_us = b"", None
        while True:
            if select.select([fd], [], [], 1)[0]:
                *whole, rest = (rest + os.read(fd, 65536)).split(b"\x00")
                out += [wire.decode(frame) for frame in whole if frame]
            times = [struct.unpack_from(wire.FAST_BODY, body)[3] for kind, _, body in out[-200:] if kind == wire.FAST]
            begun_us = times[0] if begun_us is None and times else begun_us
            if times and times[-1] - (begun_us or 0) > LASTS_s * 1e6:
                break
        os.close(fd)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    return out


def front_end() -> list[Figure]:
    settings = _settings(random.Random(SEED))
    with tempfile.TemporaryDirectory() as folder:
        path, truth_path = f"{folder}/feed", f"{folder}/truth"
        cable.fill(feed.create(path, time.monotonic_ns()), 2.5)
        seen = _stream(settings, truth_path, path)
    raw = [struct.unpack(wire.FAST_BODY, body) for kind, _, body in seen if kind == wire.FAST]
    apart = [b[3] - a[3] - a[4] * fast_step_us(seen) for a, b in zip(raw, raw[1:])]
    return [
        exactly("samples lost in 10 min of board time, of V and of I", raw[-1][9], "", 0),
        exactly("breaks between intervals of 100 ms", sum(abs(gap) > 1 for gap in apart), "", 0),
    ]


def fast_step_us(seen) -> float:
    """us of a sample, as the board states it."""
    (hello, *_) = [json.loads(body) for kind, _, body in seen if kind == wire.HELLO]
    return hello["fast"]["step_ns"] / 1000


BENCHES = {"front-end": ("the RP2350's front end, V and I at 250 kS/s: what is lost", front_end)}
