"""The trace player: how late it is, how fast, and whether its service times are the drive's own."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_least, at_most
from ssdrig.load import played, trace_aio, trace_generate, trace_player, trace_targets, traceform
from ssdrig.virtual import adminclient, bench

LAG_IOS, LAG_RATE = 1_000_000, 30_000
CLOSED_IOS, BURST = 500_000, 64
FILL_DEPTH = 32
FILE_BYTES = 256 << 20
TRIES = 5
DRIVE_BYTES = 1 << 30


def lag() -> list[Figure]:
    """A file in memory answers at once: what is late is the player's doing, or the machine's."""
    rows = _timed(LAG_IOS, LAG_RATE)
    with _file() as target, _one_core():
        played = _played(rows, target, trace_player.How())
    return [
        at_most(f"I/Os later than 1 ms, of {LAG_IOS} at {LAG_RATE}/s", played["lag"]["late_percent"], "%", 1),
        Figure("lag, 99 % of them", played["lag"]["p99_us"], "us", "for comparison", True),
        Figure("CPU time of each, submitted and reaped", played["cpu_us"], "us", "for comparison", True),
    ]


def rate() -> list[Figure]:
    rows = np.zeros(CLOSED_IOS, traceform.ROW)
    rows["t_ns"] = np.arange(CLOSED_IOS) // BURST
    rows["length_bytes"], rows["depth"] = 4096, BURST
    rows["offset_bytes"] = np.random.default_rng(1).integers(0, FILE_BYTES // 4096, CLOSED_IOS) * 4096
    with _file() as target, _one_core():
        tries = [_played(rows, target, trace_player.How(closed=True)) for _ in range(TRIES)]
    best = max(CLOSED_IOS / one_try["time_s"] for one_try in tries)
    return [
        at_least(f"4 KiB reads in bursts of {BURST} of a file in memory, best of {TRIES}", best, "I/O/s", 150_000),
        Figure("CPU time of each", min(one_try["cpu_us"] for one_try in tries), "us", "for comparison", True),
    ]


def service() -> list[Figure]:
    """What the player itself adds: the mean service time of single reads of a file in memory, which takes some
    microseconds. And a trace at its own times on the virtual drive, which says when each I/O ended: its mean service
    time against the mean that the drive's ledger has of the same I/Os. What else runs on the machine can only add, so
    the nearest of five counts. By how much answers come behind the drive's time is in none of this."""
    singles = _singles(1000)
    singles["offset_bytes"] %= FILE_BYTES
    with _file() as memory:
        own_us = min(_played(singles, memory, trace_player.How())["all"]["mean_us"] for _ in range(TRIES))
    out = [at_most("single 4 KiB reads of a file in memory: the player's own part", own_us, "us", 20)]
    asked = trace_generate.Asked("bench-light-like", 1, 0.005, DRIVE_BYTES // 2, trace_generate.IDLE_CAP_NS, 4096)
    rows = np.concatenate(list(trace_generate.generate(asked)))
    fill = np.zeros(DRIVE_BYTES // (1 << 17), traceform.ROW)
    fill["op"], fill["length_bytes"], fill["offset_bytes"] = traceform.WRITE, 1 << 17, np.arange(len(fill)) << 17
    fill["depth"] = FILL_DEPTH
    running = bench.start("sata-tlc", capacity=str(DRIVE_BYTES), board=False)
    try:
        socket = running.drive["socket"]
        with trace_targets.nbd(socket, 1 << 17) as target:
            _played(fill, target, trace_player.How(closed=True))
            for name, chosen, speed in (
                ("single 4 KiB reads", _singles(2000), 1.0),
                ("a light bench", rows, 1.0),
                ("a light bench, twice as fast", rows, 2.0),
            ):
                near = min((_against(chosen, target, speed, socket) for _ in range(TRIES)), key=lambda pair: pair[2])
                seen_us, own_us, off_us, late_us, late_percent = near
                bar = max(20.0, 0.02 * own_us)
                out.append(at_most(f"{name}: {seen_us:.0f} us, the drive's own {own_us:.0f}", off_us, "us off", bar))
                words = f"answers behind the drive's time, {late_percent:.0f} %; mean of all"
                out.append(Figure(words, late_us, "us", "for comparison", True))
    finally:
        running.end()
    return out


def _against(rows: np.ndarray, target, speed: float, socket: str) -> tuple[float, float, float, float, float]:
    """(mean service time seen, the drive's own, distance, mean by which answers came late), us; percent that did."""
    truth = f"{socket}.truth"
    before, late, late_ns = adminclient.ask(truth, {"op": "ledger"}), target.late, target.late_ns
    seen_us = _played(rows, target, trace_player.How(speed=speed))["all"]["mean_us"]
    after = adminclient.ask(truth, {"op": "ledger"})
    own_us = (after["host_latency_ns"] - before["host_latency_ns"]) / len(rows) / 1e3
    late_us, late_percent = (target.late_ns - late_ns) / len(rows) / 1e3, 100 * (target.late - late) / len(rows)
    return seen_us, own_us, abs(seen_us - own_us), late_us, late_percent


def _singles(n: int) -> np.ndarray:
    rows = np.zeros(n, traceform.ROW)
    rows["t_ns"] = np.arange(n) * 1_000_000
    rows["length_bytes"], rows["depth"] = 4096, BURST
    rows["offset_bytes"] = np.random.default_rng(2).integers(0, DRIVE_BYTES // 4096, n) * 4096
    return rows


def _timed(n: int, per_s: float) -> np.ndarray:
    """n I/Os with the Destroyer's bursts, of 4 KiB, at random times so that `per_s` come in a second."""
    asked = trace_generate.Asked("bench-destroyer-like", 1, n / 49_810_000, FILE_BYTES // 2, None, 4096)
    rows = np.concatenate(list(trace_generate.generate(asked)))
    depths = np.unique(rows["t_ns"], return_counts=True)[1]
    gaps = np.random.default_rng(1).exponential(1, len(depths))
    at_s = np.cumsum(gaps) / gaps.sum() * (len(rows) / per_s)
    rows["t_ns"], rows["length_bytes"] = np.repeat((at_s * 1e9).astype(np.int64), depths), 4096
    return rows


def _played(rows: np.ndarray, target, how: trace_player.How) -> dict:
    """figures(), and "cpu_us" of each I/O."""
    trace_player.fits(rows, target.size_bytes, target.block_bytes)
    with tempfile.TemporaryFile() as out:
        before = os.times()
        t0_ns = trace_player.play(rows, target, how, out)
        after = os.times()
        out.seek(0)
        records = np.frombuffer(out.read(), played.RECORD)
    cpu_s = after.user - before.user + after.system - before.system
    return played.figures(rows, records, t0_ns, how.closed) | {"cpu_us": cpu_s / len(rows) * 1e6}


@contextmanager
def _file() -> Iterator[trace_aio.Aio]:
    with tempfile.NamedTemporaryFile(prefix="ssdrig-bench-", dir="/dev/shm") as f:
        Path(f.name).write_bytes(bytes(FILE_BYTES))
        with trace_aio.Aio(f.name, trace_player.SLOTS, 1 << 17) as target:
            yield target


@contextmanager
def _one_core() -> Iterator[None]:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def all_of_it() -> list[Figure]:
    return [*rate(), *service(), *lag()]


BENCHES = {"player": ("the trace player: lag, rate, and service times against the virtual drive's own", all_of_it)}
