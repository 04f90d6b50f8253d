"""Figures of the rig's host end: time of samples against the board's truth, stream faults, speed of decoding."""

import json
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly
from ssdrig.meter import samples, wire
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal
from ssdrig.virtual import cable
from ssdrig.virtual.flash import feed

NOISY = {"ppm": 80, "delay_us": 100, "jitter_us": 150, "outliers": 0.03, "outlier_us": 5000}
FAULTY = {
    "ppm": 80,
    "noise": 0,
    "offset_uV": 0,
    "gain_ppm": 0,
    "vbus_gain_ppm": 0,
    "jitter_us": 300,
    "loss": 2e-4,
    "corrupt": 2e-4,
    "duplicate": 2e-4,
    "command_loss": 1e-3,
    "command_corrupt": 1e-3,
    "command_duplicate": 1e-3,
    "pause_every_s": 4,
    "pause_ms": 400,
    "seed": 7,
}
CLOCK_S, FAULTS_S = 40, 14
WATTS = 2.5


@contextmanager
def measured(seconds: float, faults: dict, reset_after_s: float | None = None, watts: float = WATTS):
    """Let the SIMULATED board measure constant power for so long. Yields (run folder, truth: list of boots, live
    counts)."""
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-clock-", dir="/var/tmp"))
    board = None
    try:
        ring = feed.create(str(folder / "feed"), time.monotonic_ns())
        cable.fill(ring, watts)
        argv = [
            sys.executable,
            "-P",
            "-m",
            "ssdrig.virtual.cable",
            "--feed",
            folder / "feed",
            "--truth",
            folder / "truth.json",
        ]
        with open(folder / "board.log", "wb") as log:
            board = subprocess.Popen(
                [*map(str, argv), "--faults", json.dumps(faults), "--die-with-parent"],
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert board.stdout
        line = board.stdout.readline()
        if not line:
            raise RuntimeError((folder / "board.log").read_text(errors="replace"))
        book = journal.create(folder, {"run": "run"})
        rig = Rig(json.loads(line)["port"], book)
        filled = int(1e9 / feed.BIN_NS)
        begun = time.monotonic()
        try:
            rig.start(timeout_s=30)
            end = time.monotonic() + seconds
            while (now := time.monotonic()) < end:
                if reset_after_s is not None and now > end - seconds + reset_after_s:
                    board.send_signal(signal.SIGUSR1)
                    reset_after_s = None
                # the ring is 16 s deep: keep it full of the same power
                ahead = int((now - begun + 8) * 1e9 / feed.BIN_NS)
                cable.fill(ring, watts, range(filled, ahead))
                filled = max(filled, ahead)
                time.sleep(0.2)
        finally:
            rig.stop()
            book.close("complete")
        yield book.path, json.loads((folder / "truth.json").read_text()), rig.live()
    finally:
        if board is not None:
            board.terminate()
            try:
                board.wait(10)
            finally:
                board.kill()
                board.wait()
                if board.stdout:
                    board.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def time_errors_ns(power: samples.Power, truth: list[dict]) -> np.ndarray:
    """Signed error (ns) of each sample's host time by the board's own account of its clock."""
    of_boot = {boot["boot"]: boot for boot in truth}
    true_ns = np.empty(len(power.t_ns))
    ends = np.append(power.segment[1:], len(power.t_ns))
    for a, z, b in zip(power.segment, ends, power.segment_boot):
        boot = of_boot[power.boots[b].boot]
        true_ns[a:z] = (power.t_us[a:z] - boot["tick0"]) * 1000 / (1 + boot["ppm"] * 1e-6)
        true_ns[a:z] -= power.t_ns[a:z] - boot["t_boot_ns"]
    return -true_ns


def clock_figures() -> list[Figure]:
    with measured(CLOCK_S, NOISY) as (run, truth, _):
        power = samples.load(run)
        error = np.abs(time_errors_ns(power, truth))
        c = power.clocks[-1]
        assert c
        pings = np.array(power.boots[-1].pings)
        return [
            at_most("largest error of a sample's time", error.max() / 1e6, "ms", 0.2),
            at_least(
                "share of samples inside the stated bound", 100 * float((error <= power.err_ns).mean()), "%", 99.9
            ),
            at_most("largest stated bound", float(power.err_ns.max()) / 1e6, "ms", 1.0),
            at_most("rate found, off the 80 ppm injected by", abs(c.rate_ppm() - 80), "ppm", 5),
            at_least(
                "median round trip of a ping (noise is there)",
                float(np.median(pings[:, 2] - pings[:, 0])) / 1e6,
                "ms",
                0.2,
            ),
            exactly("samples lost", power.lost, "samples", 0),
            at_least("samples", len(power.t_ns), "samples", 1000 * CLOCK_S),
        ]


def fault_figures() -> list[Figure]:
    with measured(FAULTS_S, FAULTY, reset_after_s=FAULTS_S / 2) as (run, truth, live):
        power = samples.load(run)
        error = np.abs(time_errors_ns(power, truth))
        # every conversion from the first go to the last sample is either here or counted: by index within a segment
        unaccounted = wrong_order = 0
        ends = np.append(power.segment[1:], len(power.t_ns))
        for a, z in zip(power.segment.tolist(), ends.tolist()):
            inside = (power.gap > a) & (power.gap < z)
            unaccounted += abs(
                int(power.index[z - 1] - power.index[a]) + 1 - (z - a) - int(power.gap_lost[inside].sum())
            )
            wrong_order += int((np.diff(power.t_us[a:z]) <= 0).sum() + (np.diff(power.index[a:z]) <= 0).sum())
        span_s = float(power.t_ns[-1] - power.t_ns[0]) * 1e-9
        energy_J = float(power.energy_J[-1] - power.energy_J[0])
        # the board feeds constant power without noise: any accepted number far from it is a wrong one
        middle = float(np.median(power.P))
        wrong = int((np.abs(power.P - middle) > 0.002 * middle).sum())
        return [
            at_least("stretches of bytes that were no frame", live["damaged"], "stretches", 20),
            at_least("frames lost and counted", power.counts["frames_lost"], "frames", 20),
            at_least("resets seen", power.counts["resets"], "resets", 1),
            at_most("median power, off the power fed by", abs(middle / WATTS - 1) * 100, "%", 0.2),
            exactly("wrong numbers accepted", wrong, "samples", 0),
            exactly("samples out of order or twice", wrong_order, "samples", 0),
            exactly("conversions neither here nor counted", unaccounted, "samples", 0),
            at_least("conversions lost and counted", power.lost, "samples", 1000),
            at_most("energy with gaps filled, off the truth by", 100 * abs(energy_J / (middle * span_s) - 1), "%", 0.2),
            exactly("samples outside the stated time bound", int((error > power.err_ns).sum()), "samples", 0),
        ]


def decode_figures() -> list[Figure]:
    """Bytes of the wire to records on the disk, and records to watts on the host's clock, each on one core."""
    wired, n = _wire_bytes(seconds=1200)
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-decode-", dir="/var/tmp"))
    try:
        book = journal.create(folder, {"run": "run"})
        rig = Rig("none", book)
        rig._go_at = 1.0  # as while streaming: its live counts are kept too
        started = time.process_time()
        t_ns = 10**12
        for at in range(0, len(wired), 4096):
            t_ns += 4_000_000
            rig._arrived(wired[at : at + 4096], t_ns)
        book.sync()
        arriving_s = time.process_time() - started
        book.close("complete")
        started = time.process_time()
        power = samples.load(book.path)
        loading_s = time.process_time() - started
        return [
            exactly("samples through wire and journal", len(power.t_ns), "samples", n),
            at_least("wire to journal", n / arriving_s / 1e6, "M samples/s", 2),
            at_least("journal to watts on the host's clock", n / loading_s / 1e6, "M samples/s", 2),
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wire_bytes(seconds: int) -> tuple[bytes, int]:
    """What a board sends in so many seconds at 1000 samples/s, with noise as of a real drive; and the number of
    samples."""
    rng, dice = np.random.default_rng(1), random.Random(1)
    hello = {
        "protocol": wire.PROTOCOL,
        "boot": 1,
        "board": "none",
        "firmware": "none",
        "simulated": True,
        "rails": [
            {
                "rail": 0,
                "name": "5V",
                "chip": "INA228",
                "config": 0,
                "shunt_uOhm": 10_000,
                "current_lsb_pA": 7_812_500,
                "vbus_lsb_nV": 195_312.5,
                "adc_config": 0,
                "shunt_cal": 4096,
                "conversion_ns": 1_000_000,
            }
        ],
    }
    out, seq = [wire.encode(wire.HELLO, 0, json.dumps(hello).encode())], 1
    n = seconds * 1000 // wire.MAX_SAMPLES
    rows = np.zeros((n, wire.MAX_SAMPLES), "<u8")
    rows |= rng.integers(995, 1006, rows.shape, np.uint64)
    rows |= rng.integers(25_000, 25_800, rows.shape, np.uint64) << np.uint64(16)
    rows |= rng.integers(5_000, 90_000, rows.shape, np.uint64) << np.uint64(40)
    for k in range(n):
        t0 = 10**6 + k * wire.MAX_SAMPLES * 1000
        out.append(
            wire.encode(
                wire.SAMPLES,
                seq,
                struct.pack(wire.SAMPLES_HEAD, 0, 0, wire.MAX_SAMPLES, 0, k * wire.MAX_SAMPLES, t0) + rows[k].tobytes(),
            )
        )
        seq += 1
        if k % 2:
            out.append(wire.encode(wire.PONG, seq, struct.pack(wire.PONG_BODY, dice.getrandbits(32), t0, 0)))
            seq += 1
    return b"".join(out), n * wire.MAX_SAMPLES


BENCHES = {
    "clock": (
        f"error of each sample's time over {CLOCK_S} s at +80 ppm on a noisy line, against the board's truth",
        clock_figures,
    ),
    "faults": (
        "bytes lost, altered, doubled, pauses and a reset: nothing wrong is accepted, all that is lost is counted",
        fault_figures,
    ),
    "decode": (
        "samples per second that the host takes from the wire to the disk, and from the disk to watts",
        decode_figures,
    ),
}
