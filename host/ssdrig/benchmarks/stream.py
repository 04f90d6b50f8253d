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

from ssdrig import journal, wire
from ssdrig.benchmarks import Figure, at_least, at_most, exactly
from ssdrig.meter import samples
from ssdrig.rig.stream import Rig

FAST = 10_000  # samples/s, which an INA229 gives with 50 us for each of V and I
DT_US = 1_000_000 // FAST
STREAM_S = 10
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


def _board(fd: int) -> None:
    """Answers hello and pings, streams from `go` to `stop`, for ever; 50 ms of samples at a time, 50 to a frame."""
    dice = random.Random(1)
    pieces = [
        b"".join(
            struct.pack("<HQ", DT_US, 25_600 + dice.randrange(-20, 20) | (51_200 + dice.randrange(-900, 900)) << 24)[:8]
            for _ in range(50)
        )
        for _ in range(64)
    ]  # dt u16 | vbus u24 | current i24
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
                    send(wire.HELLO, json.dumps(HELLO).encode())
                elif kind == wire.PING:
                    send(wire.PONG, body + struct.pack("<QI", now_us, 0))
                elif kind == wire.GO:
                    go_at, index = now_us, 0
                elif kind == wire.STOP:
                    go_at = None
        while go_at is not None and go_at + (index + 50) * DT_US <= time.monotonic_ns() // 1000:
            head = struct.pack(wire.SAMPLES_HEAD, 0, 0, 50, 0, index, go_at + (index + 1) * DT_US)
            send(wire.SAMPLES, head + pieces[index // 50 % len(pieces)])
            index += 50


def stream() -> list[Figure]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    board = multiprocessing.get_context("fork").Process(target=_board, args=(master,), daemon=True)
    board.start()
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
            board.kill()
            board.join()
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


BENCHES = {"stream": ("what a stream of 10 000 samples/s costs the host, and that it loses nothing", stream)}
