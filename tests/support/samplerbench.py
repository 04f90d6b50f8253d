"""For tests: firmware/sampler.py, its very source on CPython, on a lane and a chip that do only what the test says."""

import struct
import types
from array import array

import vipersource

from ssdrig.meter import wire

WRAP = 1 << 30
BASE_us = 7 * WRAP + 1_000_000  # board time
SAMPLE, EXTRA, TORN = 1, 2, 4
PERIOD_us = 200


class SensorError(Exception):
    pass


class Lane:
    BEGIN_us, SOON_us, delay_us, taken_us = 10, 13, 25, 30

    def __init__(self):
        self.base = 0
        self.mem, self.slot, self.slots, self.did = array("i", [0] * 16), 2, [], []
        self.dropped = 0
        self.fits, self.busy, self.queued = True, 0, False
        self.moves, self.flags, self.stamp, self.taken = 0, 0, 0, 0

    def stamp_us(self):
        return self.delay_us

    def interrupt(self, pin):
        raise AssertionError("no edge comes in these tests")

    def plain(self, *what):
        self.did.append(("plain", *what))

    def script(self, kind, reads):
        self.did.append(("script", kind, reads))
        return {SAMPLE: 30, EXTRA: 40}[kind]

    def beside(self, *times):
        self.did.append(("beside", *times))
        return self.fits

    def script_instead(self, reads):
        self.did.append(("instead", reads))

    def claim(self, sample_us, period_us):
        self.did.append(("claim", sample_us, period_us))

    def restart(self, late_us):
        self.did.append(("restart", late_us))

    def ask(self):
        self.did.append("ask")

    def ask_instead(self):
        self.did.append("ask instead")

    def read_into(self, register, buf):
        self.did.append(("read", register, len(buf)))
        buf[:] = bytes(range(register, register + len(buf)))

    def let_go(self, flags, heard):
        self.did.append(("let go", flags, heard))

    def take(self):
        if not self.slots:
            return 0
        kind, stamp, *words = self.slots[0]
        self.mem[self.slot] = kind
        self.mem[self.slot + 1] = stamp
        self.mem[self.slot + 3 : self.slot + 3 + len(words)] = array("i", words)
        return kind

    def done(self):
        self.slots.pop(0)
        self.taken += 1

    def pending(self):
        return self.queued

    def waits(self):
        return self.busy

    def drain(self, frame, to, last, widest, most, zeros):
        """Moves what the test wants, one period apart."""
        self.did.append(("drain", to, last, widest, most, zeros))
        moved = max(0, min(self.moves, most))
        for k in range(moved):
            frame[to + 8 * k : to + 8 * k + 8] = struct.pack("<H", PERIOD_us) + bytes([k] * 6)
        self.moves -= moved
        self.stamp = (last + moved * PERIOD_us) % WRAP
        self.flags = 77
        return moved


class Chip:
    NAME, BITS, CARE, READY, VBUS_LSB_nV = "INA000", 20, 0xC100, 0xC000, 1250
    SAMPLE, EXTRA, INSTEAD = ((7, 3), (5, 3)), ((20, 5), (30, 5)), ((5, 3), (20, 5))
    CNVRF, FLAGS = 2, 11
    WAKE_us, adc, cal = 30, 0xFB00, 4096

    def __init__(self, lane, conversion_us=PERIOD_us, shunt_us=100, extra=EXTRA):
        self.lane, self.conversion_us, self.shunt_us, self.EXTRA = lane, conversion_us, shunt_us, extra
        self.did, self.good, self.flags, self.vbus, self.current = [], True, 0, 0, 0
        self.reads = 0x5600 | self.CNVRF  # as flags

    def decode(self, mem, at):
        self.vbus, self.current, self.flags = mem[at], mem[at + 1], self.reads
        return self.good

    def zero(self):
        return not self.vbus or not self.current

    def signed(self):
        return self.current & 0xFFFFFF

    def die_mC(self):
        self.did.append("die_mC")
        return 25_000

    def state(self):
        return 0x1234, 0x5678

    def check(self):
        self.did.append("check")

    def __getattr__(self, name):
        if name in ("identify", "sleep", "prepare", "begin"):
            return lambda: self.did.append(name)
        raise AttributeError(name)


class Link:
    def __init__(self):
        self.frames, self.full = [], False

    def put(self, buf, n):
        if not self.full:
            self.frames.append(bytes(buf[:n]))
        return not self.full


class Board:
    """A sampler, its clock, and what it puts out."""

    def __init__(self, fits=True, **how):
        self.us = BASE_us
        time = types.SimpleNamespace(
            ticks_us=lambda: self.us % WRAP,
            ticks_add=lambda a, b: (a + b) % WRAP,
            ticks_diff=lambda a, b: (a - b + WRAP // 2) % WRAP - WRAP // 2,
        )
        self.irq = []
        self.alert = 1
        pin = types.SimpleNamespace(irq=lambda *a, **k: self.irq.append((a, k)), IRQ_FALLING=4)
        pin.value = lambda: self.alert
        fakes = {
            "time": time,
            "board": types.SimpleNamespace(alert_pin=lambda gpio: self.irq.append(gpio) or pin),
            "wire": wire,
            "ina228": types.SimpleNamespace(SensorError=SensorError),
            "lane": types.SimpleNamespace(ABOVE=0, DATA=3, STAMP=1, SAMPLE=SAMPLE, EXTRA=EXTRA),
            "switch": types.SimpleNamespace(IDLE="idle"),
            "protect": types.SimpleNamespace(Guard=None, look=None),
        }
        fakes["clock64"] = vipersource.load("clock64", {}, fakes)
        self.module = vipersource.load("sampler", {}, fakes)
        clock = fakes["clock64"].Clock64()
        clock.wraps = 7
        self.lane = Lane()
        self.lane.fits = fits
        self.chip, self.link = Chip(self.lane, **how), Link()
        row = {"rail": 3, "name": "12V", "alert": 6, "bus": 1, "shunt_uOhm": 8000}
        row |= {"shunt_tolerance_ppm": 5000, "current_lsb_pA": 7_812_500}
        self.sampler = self.module.Sampler(row, self.chip, self.link, clock)

    def started(self):
        """Conversion 0 is due one period behind BASE_us; nothing has been put out."""
        self.sampler.prepare()
        self.sampler.go()
        self.sampler.last = self.sampler.base_tick = BASE_us % WRAP
        self.link.frames.clear()
        self.chip.did.clear()
        self.lane.did.clear()
        return self.sampler

    def convert(self, after_us, vbus=2000, current=1000, kind=SAMPLE, words=()):
        """A conversion that was stamped so long behind BASE_us; what `turn` returns."""
        self.us = max(self.us, BASE_us + after_us)
        self.lane.slots.append((kind, (BASE_us + after_us) % WRAP, *(words or (vbus, current))))
        return self.sampler.turn()


def samples_of(frame: bytes) -> tuple:
    """(rail, config, n, missed, index, t0) and (dt, vbus, current) of each sample."""
    head = struct.unpack_from(wire.SAMPLES_HEAD, frame, wire.BODY)
    rows = [frame[at : at + 8] for at in range(wire.S_FIRST, len(frame), 8)]
    number = lambda data: int.from_bytes(data, "little")
    return head, [(number(r[:2]), number(r[2:5]), number(r[5:])) for r in rows]


def energy_of(frame: bytes) -> tuple:
    """(rail, config, index, t, energy, charge, temperature, flags)."""
    number = lambda at, n: int.from_bytes(frame[at : at + n], "little")
    assert frame[0] == wire.ENERGY and len(frame) == wire.E_END
    return (
        *frame[wire.E_RAIL : wire.E_CONFIG + 1],
        *(number(wire.E_INDEX, 4), number(wire.E_T, 8), number(wire.E_ENERGY, 5), number(wire.E_CHARGE, 5)),
        *(number(wire.E_TEMP, 2), number(wire.E_DIAG, 2)),
    )
