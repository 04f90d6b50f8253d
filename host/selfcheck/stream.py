"""What the fastest stream costs the host: a board that sends FAST samples a second of V and I each, received,
journalled, and decoded into seconds each second, as a run with InfluxDB does. The board is no firmware here but a
process that answers and sends frames of the wire's format at that rate (SIMULATED); only the host's process is
charged."""

import json
import multiprocessing
import os
import pty
import random
import select
import struct
import tempfile
import time
import tty

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly
from ssdrig.meter import samples, wire
from ssdrig.meter.frames import unpacked
from ssdrig.meter.pico.stream import Rig
from ssdrig.runs import journal, rigbin

FAST = 10_000  # samples/s, which an INA229 gives with 50 us for each of V and I
DT_US = 1_000_000 // FAST
STREAM_S = 10
FRAMES = 10_000  # of 50 samples, to be decoded as fast as it goes
READ_BYTES = 1 << 16  # what the rig's reader takes from the port at once
LOADS = 15
HELLO = {
    "protocol": wire.PROTOCOL,
    "boot": 1,
    "board": "SIMULATED stream",
    "firmware": "0",
    "serial": "0",
    "simulated": True,
    "switch": None,
    "scope": [],
    "rails": [
        {
            "rail": 0,
            "name": "supply",
            "chip": "INA229",
            "bus": "SPI0",
            "config": 0,
            "shunt_uOhm": 8000,
            "shunt_tolerance_ppm": 10_000,
            "current_lsb_pA": 9_765_625,
            "vbus_lsb_nV": 195_312.5,
            "adc_config": 0xB000,
            "shunt_cal": 4096,
            "conversion_ns": 100_000,
            "calibration": None,
        }
    ],
}


def _pieces(dt_us: int = DT_US) -> list[bytes]:
    """Samples of 64 frames: dt u16 | vbus u24 | current i24."""
    dice = random.Random(1)
    return [
        b"".join(
            struct.pack("<HQ", dt_us, 25_600 + dice.randrange(-20, 20) | (51_200 + dice.randrange(-900, 900)) << 24)[:8]
            for _ in range(50)
        )
        for _ in range(64)
    ]


def board(fd: int, rate: int = FAST) -> None:
    """Answers hello and pings, streams `rate` samples a second from `go` to `stop`, for ever; 50 to a frame."""
    dt_us = 1_000_000 // rate
    pieces = _pieces(dt_us)
    hello = {**HELLO, "rails": [{**HELLO["rails"][0], "conversion_ns": 1000 * dt_us}]}
    seq, index, go_at, rest = 0, 0, None, b""

    def send(kind, body):
        nonlocal seq
        os.write(fd, wire.encode(kind, seq, body))
        seq += 1

    while True:
        if select.select([fd], [], [], 0.05)[0]:
            *commands, rest = (rest + os.read(fd, 4096)).split(b"\x00")
            for kind, _, body in (wire.decode(command) for command in commands if command):
                now_us = time.monotonic_ns() // 1000
                if kind == wire.ASK_HELLO:
                    send(wire.HELLO, json.dumps(hello).encode())
                elif kind == wire.PING:
                    send(wire.PONG, body + struct.pack("<QI", now_us, 0))
                elif kind == wire.GO:
                    go_at, index = now_us, 0
                elif kind == wire.STOP:
                    go_at = None
        while go_at is not None and go_at + (index + 50) * dt_us <= time.monotonic_ns() // 1000:
            head = struct.pack(wire.SAMPLES_HEAD, 0, 0, 50, 0, index, go_at + (index + 1) * dt_us)
            send(wire.SAMPLES, head + pieces[index // 50 % len(pieces)])
            index += 50


def live() -> list[Figure]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    process = multiprocessing.get_context("fork").Process(target=board, args=(master,), daemon=True)
    process.start()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        try:
            book = journal.create(folder, {"bench": {}})
            rig = Rig(os.ttyname(slave), book)
            rig.start()
            follower = samples.Follower(book.path, 0)
            list(follower.seconds())
            began, cpu_s, decode_s, made = time.monotonic(), time.process_time(), 0.0, []
            for second in range(1, STREAM_S + 1):
                time.sleep(max(0.0, began + second - time.monotonic()))
                before = time.thread_time()
                made += list(follower.seconds())
                rig.last_second().power_W()
                decode_s += time.thread_time() - before
            elapsed_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_s
            counts = rig.live()
            rig.stop()
            book.close("complete")
        finally:
            process.kill()
            process.join()
            os.close(master)
            os.close(slave)
    rate = sum(row.samples for _, row in made[1:]) / max(1, len(made) - 1)
    share = 100 / elapsed_s
    return [
        at_least("samples of V and I each, per whole second", rate, "1/s", 0.99 * FAST),
        exactly("samples lost or damaged", counts["lost"] + counts["damaged"], "", 0),
        at_most("to receive, journal and decode it: share of one core", cpu_s * share, "%", 20),
        at_most("the decoding alone", decode_s * share, "%", 10),
    ]


def decoding() -> tuple[float, float, int]:
    """(samples a second from the wire to the journal, and from the journal to watts, both per second of this process's
    CPU time; samples that are not those sent). The best of many stretches: what other programs take from a core's
    caches is not the cost of decoding."""
    pieces, frames = _pieces(), [(wire.HELLO, json.dumps(HELLO).encode())]
    for i in range(FRAMES):
        t_us = i * 50 * DT_US
        frames.append((wire.SAMPLES, struct.pack(wire.SAMPLES_HEAD, 0, 0, 50, 0, i * 50, t_us) + pieces[i % 64]))
        if i % 20 == 0:
            frames.append((wire.PONG, struct.pack(wire.PONG_BODY, i, t_us, 0)))
    line = b"".join(wire.encode(kind, seq, body) for seq, (kind, body) in enumerate(frames))
    reads = [line[at : at + READ_BYTES] for at in range(0, len(line), READ_BYTES)]
    to_journal, to_watts = [], []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        book = journal.create(folder, {"bench": {}})
        for i in range(0, FRAMES, 20):
            book.record(rigbin.PING, struct.pack("<I", i), i * 50 * DT_US * 1000)
        rig = Rig("none: the bytes are handed to it", book)
        rig._go_at = 1.0  # so that it counts, as it does while it streams
        for read in reads:
            cpu_s = time.process_time()
            rig._arrived(read, FRAMES * 50 * DT_US * 1000)
            cpu_s = time.process_time() - cpu_s
            to_journal.append(len(read) / len(line) * FRAMES * 50 / cpu_s)
        book.close("complete")
        for _ in range(LOADS):
            cpu_s = time.process_time()
            power = samples.load(book.path)
            to_watts.append(len(power.t_ns) / (time.process_time() - cpu_s))
    word = np.frombuffer(b"".join(pieces[i % 64] for i in range(FRAMES)), "<i8")
    _, vbus, current = unpacked(word)
    same = len(power.vbus) == len(word) and (power.vbus == vbus) & (power.current == current)
    return max(to_journal), max(to_watts), len(word) - int(np.count_nonzero(same))


def stream() -> list[Figure]:
    to_journal, to_watts, wrong = decoding()
    return [
        *live(),
        at_least("samples from the wire to the journal, per second of one core", to_journal / 1e6, "million", 5),
        at_least("samples from the journal to watts, per second of one core", to_watts / 1e6, "million", 10),
        exactly("samples that are not those sent", wrong, "", 0),
    ]


BENCHES = {
    "stream": (
        "what a stream of 10 000 samples/s costs the host, that it loses nothing, and how fast it decodes",
        stream,
    )
}
