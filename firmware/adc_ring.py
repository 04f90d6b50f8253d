"""The ADC runs freely and a DMA channel puts its results into a ring, with no help of the processor: the scope's
hardware.

Registers are those of the RP2040 and RP2350 data sheets, section "ADC and Temperature Sensor"; the ADC's clock is 48
MHz. Sample k is complete at the start + (k + 1) / rate. Several inputs are converted in turn, the lowest first (round
robin)."""

import sys
from time import ticks_us

import machine
import rp2
import uctypes

SIZE = 8192  # samples in the ring
CLOCK_Hz = 48_000_000
MOST = 0x0FFFFFFF  # samples that a transfer counts (28 bits on the RP2350): 536 s at 500 kS/s
_RP2350 = "RP2350" in sys.implementation._machine
_ADC = 0x400A0000 if _RP2350 else 0x4004C000
_CS, _FCS, _FIFO, _DIV = _ADC, _ADC + 0x08, _ADC + 0x0C, _ADC + 0x10
_DREQ = 48 if _RP2350 else 36
_EN, _START_MANY = 1, 1 << 3
_FIFO_EN, _DREQ_EN, _THRESH_1 = 1, 1 << 3, 1 << 24

_room = bytearray(4 * SIZE)  # the ring must lie at a multiple of its size, so it gets twice the room
_address = (uctypes.addressof(_room) + 2 * SIZE - 1) & -(2 * SIZE)
ring = uctypes.bytearray_at(_address, 2 * SIZE)  # sample k: bytes 2 (k % SIZE) and the next, little endian
_dma = rp2.DMA()


FIRST = 1  # steps from the start to sample 0
volts = None  # no voltage is converted beside the current (sar_ring.py)
_how = [0, 0, 0]  # of the latest start: inputs, divider, the DMA channel's control word


def start(gpios, rate):
    """Begin with sample 0, which belongs to the first of gpios (ascending). rate: samples/s of all together, at most
    500 000. Returns ticks_us() of that moment: no interrupt comes between the two."""
    turns = 0
    for gpio in gpios:
        machine.ADC(machine.Pin(gpio))
        turns |= 1 << gpio - 26
    bits = 0
    while 1 << bits < 2 * SIZE:
        bits += 1
    _how[0] = (gpios[0] - 26) << 12 | (turns << 16 if len(gpios) > 1 else 0)
    _how[1] = (CLOCK_Hz // rate - 1) << 8
    _how[2] = _dma.pack_ctrl(size=1, inc_read=False, inc_write=True, ring_size=bits, ring_sel=True, treq_sel=_DREQ)
    return again()


def again():
    """As the latest start, from sample 0. Allocates nothing."""
    inputs = _how[0]
    _dma.active(0)
    machine.mem32[_CS] = _EN | inputs
    machine.mem32[_FCS] = 0
    while machine.mem32[_FCS] >> 16 & 15:  # what an earlier run left
        machine.mem32[_FIFO]
    machine.mem32[_FCS] = _FIFO_EN | _DREQ_EN | _THRESH_1
    machine.mem32[_DIV] = _how[1]
    _dma.config(read=_FIFO, write=_address, count=MOST, ctrl=_how[2], trigger=True)
    begin = _EN | _START_MANY | inputs
    state = machine.disable_irq()
    machine.mem32[_CS] = begin
    tick = ticks_us()
    machine.enable_irq(state)
    return tick


def count():
    """How many samples there have been since the start."""
    return MOST - _dma.count


def stop():
    """Stop the ring. Returns the number of samples so far."""
    machine.mem32[_CS] = _EN
    n = MOST - _dma.count
    _dma.active(0)
    return n
