"""Two 12-bit converters (ADS7042) of a rail's voltage and current, which sample in the same moment each 4 us: read by
two state machines of PIO2 and two DMA channels into two rings, with no help of the processor. The RP2350's front end.

Both machines run the same program in step, so their outputs at CS and SCLK are the same; each reads its own converter.
CS falls 1.76 us after the start and each 4 us from then on, and with it a converter samples. 14 clocks follow: two bits
of 0 and the twelve of the sample, which a converter puts out with the falling clock (SBAS608C, timing from memory).
Registers and DREQ numbers: RP2350 data sheet 11.7, 12.6.4.1."""

import sys
from time import ticks_us

import machine
import rp2
import uctypes

SIZE = 8192  # samples in each ring
MOST = 0x0FFFFFFF  # samples that a transfer counts: 18 minutes
FIRST = 0  # steps from the start to sample 0
_CLOCK_Hz = 25_000_000  # of a machine: 100 cycles a sample
_MACHINES = 8, 9  # the first two of PIO2: of voltage and of current
_DREQ = 20  # of the first one's received words; the next one's follows
_PIO2_SET = 0x50402000  # alias of PIO2 that sets the bits written: its first word is CTRL
_TOGETHER = 3 | 3 << 8  # CTRL: SM_ENABLE and CLKDIV_RESTART of both


@rp2.asm_pio(
    sideset_init=(rp2.PIO.OUT_HIGH, rp2.PIO.OUT_LOW), in_shiftdir=rp2.PIO.SHIFT_LEFT, autopush=True, push_thresh=14
)
def _read():
    wrap_target()
    set(x, 13).side(1)[7]  # bit 0 is CS: high for 44 cycles
    nop().side(1)[7]
    nop().side(1)[7]
    nop().side(1)[7]
    nop().side(1)[7]
    nop().side(1)[3]
    label("bit")
    nop().side(0)[1]
    in_(pins, 1).side(2)  # bit 1 is SCLK
    jmp(x_dec, "bit").side(2)
    wrap()


def _aligned():
    """A ring: at a multiple of its size, so it gets twice the room."""
    room = bytearray(4 * SIZE)
    address = (uctypes.addressof(room) + 2 * SIZE - 1) & -(2 * SIZE)
    return room, address, uctypes.bytearray_at(address, 2 * SIZE)


_rings = _aligned(), _aligned()
volts, ring = _rings[0][2], _rings[1][2]  # sample k: bytes 2 (k % SIZE) and the next, little endian
_dma = rp2.DMA(), rp2.DMA()
_how = [None, None]  # of the latest start: the machines, the DMA channels' control words


def start(row):
    """Begin with sample 0. row: board.FAST, {"cs" (GPIO of CS; SCLK is the next one), "volts", "gpio" (of the
    converters' SDO)}. Returns ticks_us() of that moment: no interrupt comes between the two. ValueError on an
    RP2040."""
    if "RP2350" not in sys.implementation._machine:
        raise ValueError("two converters need an RP2350's third PIO")
    how = {"freq": _CLOCK_Hz, "sideset_base": machine.Pin(row["cs"])}
    pins = [machine.Pin(row[name], machine.Pin.IN) for name in ("volts", "gpio")]
    _how[0] = [rp2.StateMachine(n, _read, in_base=pin, **how) for n, pin in zip(_MACHINES, pins)]
    bits = 0
    while 1 << bits < 2 * SIZE:
        bits += 1
    same = {"size": 1, "inc_read": False, "inc_write": True, "ring_size": bits, "ring_sel": True}
    _how[1] = [dma.pack_ctrl(treq_sel=_DREQ + n, **same) for n, dma in enumerate(_dma)]
    return again()


def again():
    """As the latest start, from sample 0. Allocates nothing."""
    stop()
    for n in (0, 1):
        of = _how[0][n]
        of.restart()
        while of.rx_fifo():  # what an earlier run left
            of.get()
        _dma[n].config(read=of, write=_rings[n][1], count=MOST, ctrl=_how[1][n], trigger=True)
    state = machine.disable_irq()
    machine.mem32[_PIO2_SET] = _TOGETHER
    tick = ticks_us()
    machine.enable_irq(state)
    return tick


def count():
    """How many samples of both there have been since the start."""
    return MOST - max(_dma[0].count, _dma[1].count)


def stop():
    """Stop the rings. Returns the number of samples so far."""
    for of in _how[0]:
        of.active(0)
    n = count()
    for dma in _dma:
        dma.active(0)
    return n
