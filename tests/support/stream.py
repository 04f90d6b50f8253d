"""Makes what a rig would have sent, frame by frame from wire.py, as records of rig.bin. For tests of the decoding
side."""

import json
import struct

import numpy as np

from ssdrig.meter import wire
from ssdrig.runs import journal, rigbin, rigrecords

CONVERSION_NS = 1_000_000
CURRENT_LSB_PA, VBUS_LSB_NV = 7_812_500, 195_312.5
T0_NS = 50_000_000_000_000  # host time at board time TICK0_US
TICK0_US = 1_000_000


def hello(boot=1, configs=(0,), protocol=wire.PROTOCOL, rails=(0,), conversion_ns=CONVERSION_NS) -> bytes:
    rails = [
        {
            "rail": r,
            "name": f"{r + 1} V",
            "chip": "INA228",
            "config": c,
            "shunt_uOhm": 10_000,
            "current_lsb_pA": CURRENT_LSB_PA,
            "vbus_lsb_nV": VBUS_LSB_NV,
            "adc_config": 0xFB68,
            "shunt_cal": 4096,
            "conversion_ns": conversion_ns,
            "shunt_ns": 1_052_000,
        }
        for r in rails
        for c in configs
    ]
    return json.dumps(
        {"protocol": protocol, "boot": boot, "board": "b", "firmware": "f", "simulated": True, "rails": rails}
    ).encode()


def samples(index, t_us, vbus, current, rail=0, config=0, missed=0) -> bytes:
    """Body of an S frame: t_us, vbus and current of its samples, the first being conversion `index`."""
    head = struct.pack(wire.SAMPLES_HEAD, rail, config, len(t_us), missed, index, int(t_us[0]))
    rows = zip(np.diff(t_us, prepend=t_us[0]).tolist(), vbus, current)
    return head + b"".join(struct.pack("<HI", dt, v)[:5] + struct.pack("<i", c)[:3] for dt, v, c in rows)


def energy(index, t_us, joules, rail=0, config=0) -> bytes:
    register = int(joules / (16 * 3.2 * CURRENT_LSB_PA * 1e-12)) & ((1 << 40) - 1)
    return struct.pack(
        wire.ENERGY_BODY, rail, config, index, int(t_us), register.to_bytes(5, "little"), bytes(5), 3840, 0
    )


class Tape:
    """Records in the making. Time goes on with `to`; host time and board time run at the same rate, TICK0_US at
    T0_NS."""

    def __init__(self):
        self.rows, self.seq, self.t_us, self.tick_base, self.token = [], 0, TICK0_US, 0, 0

    def host_ns(self, t_us=None) -> int:
        return (
            T0_NS + (self.t_us + self.tick_base - TICK0_US if t_us is None else t_us + self.tick_base - TICK0_US) * 1000
        )

    def frame(self, kind, body, lost=False):
        if not lost:
            payload = struct.pack(wire.HEAD, kind, self.seq) + body
            self.rows.append((rigbin.FRAME, payload, self.host_ns() + 100_000))
        self.seq += 1

    def ping(self):
        self.token += 1
        self.rows.append((rigbin.PING, struct.pack("<I", self.token), self.host_ns() - 100_000))
        self.frame(wire.PONG, struct.pack(wire.PONG_BODY, self.token, self.t_us, 0))

    def reset(self, dark_us):
        """The board starts anew: sequence and board time fall back; host time goes on by dark_us."""
        self.tick_base += self.t_us + dark_us - TICK0_US
        self.seq, self.t_us = 0, TICK0_US

    def stream(self, frames, first_index=0, n=50, vbus=25_600, current=25_600, lose=(), skip=0, period_us=1000, **more):
        """`frames` full frames of constant power (1 W with the defaults), a ping behind each; those in `lose` do not
        arrive. skip: conversions that pass before the first one."""
        index = first_index
        self.t_us += skip * period_us
        for k in range(frames):
            t_us = self.t_us + period_us * np.arange(1, n + 1)
            self.t_us = int(t_us[-1])
            self.frame(wire.SAMPLES, samples(index, t_us, [vbus] * n, [current] * n, **more), lost=k in lose)
            index += n
            self.ping()
        return index

    def data(self) -> bytes:
        return b"".join(rigbin.encode(*row) for row in self.rows)

    def records(self) -> rigrecords.Records:
        return rigrecords.decode(self.data())

    def run(self, folder):
        """A run folder with these records in it."""
        book = journal.create(folder, {"run": "r"})
        book.record_all(self.rows)
        book.close("complete")
        return book.path


def started(**more) -> Tape:
    """A tape on which a board has said hello."""
    tape = Tape()
    tape.frame(wire.HELLO, hello(**more))
    return tape
