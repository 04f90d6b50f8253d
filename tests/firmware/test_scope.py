"""firmware/adc_ring.py against registers that are written down: what the data sheets' bits must be for one input and
for several."""

import sys
import types

import pytest
from standins import MICROPYTHON, ROOT, load

from ssdrig.meter import wire

ADC = {"RP2040": 0x4004C000, "RP2350": 0x400A0000}
CS, FCS, FIFO, DIV = 0, 0x08, 0x0C, 0x10


class Memory(dict):
    """machine.mem32: the ADC's registers, with `left` stale words in its FIFO. `written`: (offset, value), in order."""

    def __init__(self, base, left=0):
        self.base, self.left, self.written = base, left, []

    def __getitem__(self, address):
        if address == self.base + FCS:
            return self.left << 16
        assert address == self.base + FIFO
        self.left -= 1
        return 0xFFF

    def __setitem__(self, address, value):
        self.written.append((address - self.base, value))


class Channel:
    """rp2.DMA."""

    count = 0

    def pack_ctrl(self, **fields):
        return fields

    def config(self, **how):
        self.how = how

    def active(self, value):
        self.stopped = not value


def ring(chip, left=0):
    """(adc_ring.py on that chip, its memory, its inputs that were set up)."""
    memory, opened, room = Memory(ADC[chip], left), [], {}
    address = 0x20001234

    def addressof(buf):
        room["bytes"] = buf
        return address

    sysmodule = types.SimpleNamespace(implementation=types.SimpleNamespace(_machine=f"Raspberry Pi Pico with {chip}"))
    masked = []

    def ticks_us():  # 30 us later, had an interrupt come between
        assert masked == ["off"] and memory.written[-1][1] & 8, "started, and no interrupt since"
        return 4711

    machine = types.SimpleNamespace(
        mem32=memory,
        ADC=opened.append,
        Pin=lambda gpio: gpio,
        disable_irq=lambda: masked.append("off"),
        enable_irq=lambda state: masked.append("on"),
    )
    uctypes = types.SimpleNamespace(
        addressof=addressof, bytearray_at=lambda at, n: memoryview(room["bytes"])[at - address : at - address + n]
    )
    real = sys.modules["sys"]
    try:
        module = load(
            ROOT / "firmware/adc_ring.py",
            "adc_ring",
            machine=machine,
            rp2=types.SimpleNamespace(DMA=Channel),
            uctypes=uctypes,
            sys=sysmodule,
            time=types.SimpleNamespace(ticks_us=ticks_us),
        )
    finally:
        sys.modules["sys"] = real
    return module, memory, opened


@pytest.mark.parametrize("chip", ADC)
@pytest.mark.parametrize(
    "gpios, inputs", [([26], 0), ([28], 2 << 12), ([26, 27], 0b011 << 16), ([27, 28], 1 << 12 | 0b110 << 16)]
)
def test_registers(chip, gpios, inputs):
    module, memory, opened = ring(chip, left=3)
    assert module.start(gpios, 250_000) == 4711
    assert opened == gpios and memory.left == 0  # what an earlier run left is read away
    # CS.EN bit 0, START_MANY bit 3, AINSEL 15:12, RROBIN 20:16 (24:16); FCS.EN bit 0, DREQ_EN bit 3, THRESH 27:24;
    # DIV.INT 23:8
    assert memory.written == [(CS, 1 | inputs), (FCS, 0), (FCS, 1 | 8 | 1 << 24), (DIV, 191 << 8), (CS, 1 | 8 | inputs)]
    how = module._dma.how
    assert how["read"] == ADC[chip] + FIFO and how["write"] % (2 * module.SIZE) == 0 and how["trigger"]
    assert how["ctrl"] == {
        "size": 1,
        "inc_read": False,
        "inc_write": True,
        "ring_size": 14,
        "ring_sel": True,
        "treq_sel": {"RP2040": 36, "RP2350": 48}[chip],
    }


def test_the_ring_lies_inside_its_room_and_stop_counts():
    module, memory, _ = ring("RP2040")
    assert len(module.ring) == 2 * module.SIZE
    module.start([26], 2000)
    assert memory.written[-2] == (DIV, 23_999 << 8) and 23_999 < 1 << 16  # the slowest rate still fits the divider
    module._dma.count = module.MOST - 12_345
    assert module.stop() == 12_345 and module._dma.stopped and memory.written[-1] == (CS, 1)


def test_a_picture_begins_when_the_adc_did():
    """Whatever came between its start and the next line of the firmware: two sensors' edges take some 90 us."""
    us = [(1 << 30) - 10]

    def start(gpios, rate):
        began = us[0]
        us[0] += 95  # and the ticks wrap
        return began

    now = lambda: us[0] % (1 << 30)
    clock = types.SimpleNamespace(wraps=2, ticks=0)

    def update():
        clock.wraps, clock.ticks = 2 + (us[0] >> 30), now()

    clock.update = update
    difference = lambda a, b: ((a - b + (1 << 29)) & (1 << 30) - 1) - (1 << 29)
    adc_ring = types.SimpleNamespace(start=start, SIZE=8192)
    cut = types.SimpleNamespace(Refused=Exception, number=lambda value, low, high, name: value)
    time = types.SimpleNamespace(ticks_us=now, ticks_diff=difference)
    clock64 = types.SimpleNamespace(put32=None)
    others = {"cut": cut, "time": time, "clock64": clock64, "wire": wire, "micropython": MICROPYTHON}
    module = load(ROOT / "firmware/scope.py", "scope", adc_ring=adc_ring, **others)
    scope = module.Scope([{"rail": 0, "gpio": 26}], None, clock)
    scope.command({"gpio": 26, "rate": 500_000, "before": 0, "after": 100, "trigger": "cut"})
    assert scope.start_us == (3 << 30) - 10 and scope.started == (1 << 30) - 10
