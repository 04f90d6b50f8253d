"""A whole sample over SPI within the interrupt of ALERT (conversion ready): three frames take 10 us of the bus, so
there is nothing to come back for. The interrupt stamps, reads and puts the sample into the lane's ring (lane.py).

Several chips (lanes) share a bus, with a chip select each. SAMPLE is run at every conversion; EXTRA with it when it was
asked for, so that it costs no sample: then what the next shunt conversion replaces is read first, flags, CURRENT and
CHARGE. While the main loop itself uses the bus LOCK is set and an interrupt only notes its edge. What may belong to two
conversions is marked torn: read too late after its edge, or ALERT low again when all has been read (the first register
read is the one that lets ALERT go, so only the next conversion can have pulled it).

A frame is a byte register << 2 | 1 to read, | 0 to write, then the register, most significant first, in SPI mode 1
(CPOL 0, CPHA 1; SLYS023 7.5.1). Registers: RP2040 data sheet 4.4.4 and 2.3.1.7, RP2350 data sheet 12.3.5 and 3.1.11
(the same PL022; the SIO's moved). The chip select is an ordinary output, because the PL022's own is let go only when
its FIFO runs empty. Its FIFOs have 8 entries, more than any frame's bytes.
"""

import sys

import fits
import micropython
from lane import EXTRA, Lane
from micropython import const

# Addresses >> 14: a number above 2**30 would be a heap object.
_RP2350 = "RP2350" in sys.implementation._machine
PAGE = (0x10020, 0x10022) if _RP2350 else (0x1000F, 0x10010)  # SPI0, SPI1
_TIMER_PAGE = 0x1002C if _RP2350 else 0x10015  # TIMER0 or TIMER
_SIO_PAGE = 0x34000

# Registers, in words
_DR = const(0x08 >> 2)
_SR = const(0x0C >> 2)
_RNE = const(1 << 2)  # of SSPSR: something was received
_BSY = const(1 << 4)
_GPIO_IN = const(0x04 >> 2)  # of the SIO
_OUT_SET = 0x18 >> 2 if _RP2350 else 0x14 >> 2
_OUT_CLR = 0x20 >> 2 if _RP2350 else 0x18 >> 2
_TIMERAWL = const(0x28 >> 2)  # what ticks_us() reads

# State of the bus, in words of `mem`
_LOCK = const(0)
_PAGE = const(1)
_TIMER = const(2)
_SIO = const(3)
_SET = const(4)
_CLR = const(5)
# State of lane n, from word _LANE + n * _SIZE on: first as lane.py has it
_LANE = const(6)
_HEAD = const(0)
_TAIL = const(1)
_PENDING = const(2)
_WANT = const(3)
_ERROR = const(4)
_LATE = const(5)
_SPURIOUS = const(16)
_AGE = const(17)
_INSTR = const(18)
_RXF = const(19)
_PER = const(20)
_CS = const(21)  # bit of the GPIO
_ALERT = const(22)
_NOTED = const(23)  # stamp of the edge that waits
# two of: number of frames, 7 times first byte, number of bytes after it, 0: for SAMPLE, 1: for EXTRA
_SCRIPT = const(24)
_FULL = const(68)  # nothing is kept until half of the ring is free: each gap costs the main loop time
_SLOTS = const(69)
_RING = const(256)  # slots of 8 words: 25 ms of 10 000 samples/s
_SIZE = const(2117)
ROOM = _LANE, _SIZE  # words of `mem`: of the bus, and of each lane

_PUSH_X = const(0x4020)  # in(x, 32), which pushes (alert_age.py)
_OLDEST = const(0x80000)  # counts: 8 ms

EIO = 5
_PATIENCE = const(10_000)  # turns of a waiting loop: a block that is switched off


@micropython.viper
def edge(mem: ptr32, at: int, noted: int):
    """The conversion of the lane at mem[at:] is ready, now or (noted) at the edge that waits: stamp it and read."""
    timer = ptr32(int(mem[_TIMER]) << 14)
    now = int(timer[_TIMERAWL]) & 0x3FFFFFFF
    stamp = now
    torn = 0
    sio = ptr32(int(mem[_SIO]) << 14)
    if noted:
        if int(mem[at + _PENDING]) == 0:
            return
        stamp = int(mem[at + _NOTED])
    elif int(sio[_GPIO_IN]) & int(mem[at + _ALERT]):  # a conversion would hold it low until it is read
        mem[at + _SPURIOUS] = int(mem[at + _SPURIOUS]) + 1
        return
    else:
        page = int(mem[at + _AGE])
        if page:
            pio = ptr32(page << 14)
            stamp = int(timer[_TIMERAWL]) & 0x3FFFFFFF
            pio[int(mem[at + _INSTR])] = _PUSH_X
            age = (-1 - int(pio[int(mem[at + _RXF])])) & 0x3FFFFFFF
            if age < _OLDEST:  # else the machine has seen no edge
                stamp = (stamp - ((age * int(mem[at + _PER])) >> 16)) & 0x3FFFFFFF
        if int(mem[_LOCK]):
            mem[at + _NOTED] = stamp
            mem[at + _PENDING] = 1
            return
    if (now - stamp) & 0x3FFFFFFF > int(mem[at + _LATE]):
        torn = 4
    mem[at + _PENDING] = 0
    spi = ptr32(int(mem[_PAGE]) << 14)
    cs = int(mem[at + _CS])
    clr = int(mem[_CLR])
    set_ = int(mem[_SET])
    want = int(mem[at + _WANT])  # also the number of slots to fill
    head = int(mem[at + _HEAD])
    room = _RING - ((head - int(mem[at + _TAIL])) & 0xFFFF) - want
    if room < 0:
        mem[at + _FULL] = 1
    elif room > _RING >> 1:
        mem[at + _FULL] = 0
    if int(mem[at + _FULL]):
        room = -1
    slot = at + _SLOTS + 8 * (head & (_RING - 1))
    other = at + _SLOTS + 8 * ((head + 1) & (_RING - 1))
    word = slot + 3
    other_word = other + 3
    v = 1
    other_v = 1
    which = 0
    script = at + _SCRIPT + 22 * (want - 1)
    frames = int(mem[script])
    patience = _PATIENCE
    while frames:
        if int(mem[script + 3]) != which:  # for the other slot
            which = 1 - which
            k = word
            word = other_word
            other_word = k
            k = v
            v = other_v
            other_v = k
        n = int(mem[script + 2])
        sio[clr] = cs
        spi[_DR] = int(mem[script + 1])
        k = n
        while k:
            spi[_DR] = 0
            k -= 1
        k = n + 1
        while k:
            while int(spi[_SR]) & _RNE == 0 and patience:
                patience -= 1
            byte = int(spi[_DR]) & 255
            if k <= n:  # what came in while the first byte went out is nothing
                v = v << 8 | byte
                if v >> 24:
                    if room >= 0:
                        mem[word] = v & 0xFFFFFF
                    word += 1
                    v = 1
            k -= 1
        while int(spi[_SR]) & _BSY and patience:
            patience -= 1
        sio[set_] = cs
        script += 3
        frames -= 1
    if patience == 0:
        mem[at + _ERROR] = 5
        return
    if room < 0:  # the main loop has been away for long: conversions are lost, many in a row, and counted by their time
        return
    while v > 1:  # fill up the words begun
        v = v << 8
        if v >> 24:
            mem[word] = v & 0xFFFFFF
            v = 1
    while other_v > 1:
        other_v = other_v << 8
        if other_v >> 24:
            mem[other_word] = other_v & 0xFFFFFF
            other_v = 1
    if int(sio[_GPIO_IN]) & int(mem[at + _ALERT]) == 0:
        torn = 4
    mem[slot] = 1 | torn
    mem[slot + 1] = stamp
    if want == 2:
        mem[other] = 2 | torn
        mem[other + 1] = stamp
    mem[at + _WANT] = 1
    mem[at + _HEAD] = (head + want) & 0xFFFF


@micropython.viper
def exchange(mem: ptr32, at: int, first: int, buf: ptr8, n: int) -> int:
    """A frame of the main loop: `first`, then n bytes, which are read into buf if bit 0 of `first` is set, otherwise
    written from it. 0, or EIO."""
    spi = ptr32(int(mem[_PAGE]) << 14)
    sio = ptr32(int(mem[_SIO]) << 14)
    patience = _PATIENCE
    sio[int(mem[_CLR])] = int(mem[at + _CS])
    spi[_DR] = first
    k = 0
    while k < n:
        if first & 1:
            spi[_DR] = 0
        else:
            spi[_DR] = int(buf[k])
        k += 1
    k = 0
    while k <= n:
        while int(spi[_SR]) & _RNE == 0 and patience:
            patience -= 1
        byte = int(spi[_DR])
        if k and first & 1:
            buf[k - 1] = byte
        k += 1
    while int(spi[_SR]) & _BSY and patience:
        patience -= 1
    sio[int(mem[_SET])] = int(mem[at + _CS])
    if patience:
        return 0
    return 5


class Bus:
    """The bus with its lanes. `make()` returns a machine.SPI, its chip selects high. chips: (GPIO of chip select, of
    ALERT). mem: an array("i") of ROOM words."""

    def __init__(self, make, page, chips, mem):
        self.make = make
        self.spi = make()
        self.claimed = 0  # of its time, by all lanes
        self.mem = mem
        mem[_PAGE], mem[_TIMER], mem[_SIO], mem[_SET], mem[_CLR] = page, _TIMER_PAGE, _SIO_PAGE, _OUT_SET, _OUT_CLR
        self.lanes = [SPILane(self, n, cs, alert, len(chips)) for n, (cs, alert) in enumerate(chips)]

    def poll(self):
        """Nothing is left to the main loop."""

    def hold(self):
        """Interrupts leave the bus alone, until `release`."""
        self.mem[_LOCK] = 1

    def release(self):
        mem = self.mem
        again = True
        while again:
            again = False
            mem[_LOCK] = 0
            for lane in self.lanes:
                if mem[lane.base + _PENDING]:
                    mem[_LOCK] = 1
                    edge(mem, lane.base, 1)
                    again = True  # meanwhile another's edge may have been noted

    def read_into(self, at, register, buf):
        """OSError if the block does not work. A chip that is not there reads as zeros or ones."""
        self._exchange(at, register << 2 | 1, buf)

    def write(self, at, register, buf):
        self._exchange(at, register << 2, buf)

    def _exchange(self, at, first, buf):
        self.hold()
        failed = exchange(self.mem, at, first, buf, len(buf))
        self.release()
        if failed:
            raise OSError(EIO)

    def free(self):
        """After a fault: the block starts over."""
        self.hold()
        try:
            self.spi = self.make()
        finally:
            self.release()


class SPILane(Lane):
    """One chip on the bus."""

    BEGIN_us = fits.SPI_BEGIN_us
    # from the script's begin until CHARGE, or CURRENT alone, has been taken: flags, CURRENT and CHARGE's first byte
    SOON_us = fits.SPI_SOON_us

    def __init__(self, bus, number, cs, alert, lanes=1):
        base = _LANE + _SIZE * number
        super().__init__(bus, base, base, base + _SLOTS, _RING)
        self.cs = cs
        self.delay_us = fits.delay_us(lanes)
        self.mem[base + _CS] = 1 << cs
        self.mem[base + _ALERT] = 1 << alert

    def script(self, kind, reads):
        """What SAMPLE reads, and what EXTRA: (register, bytes) in order, at most 12 bytes each. Returns the us that it
        takes."""
        if sum([n for _, n in reads]) > 12 or len(reads) > 3:
            raise ValueError("the script does not fit its slot")
        if kind == EXTRA:
            sample = self.reads
            frames = (
                [(r, 0) for r in sample[:2]]
                + [(r, 1) for r in reads[:1]]
                + [(r, 0) for r in sample[2:]]
                + [(r, 1) for r in reads[1:]]
            )
        else:
            self.reads = reads
            frames = [(r, 0) for r in reads]
        at = self.base + _SCRIPT + 22 * (kind - 1)
        self.mem[at] = len(frames)
        for (register, n), which in frames:
            self.mem[at + 1], self.mem[at + 2], self.mem[at + 3] = register << 2 | 1, n, which
            at += 3
        took_us = sum([self.read_us(n) for _, n in reads])
        if kind != EXTRA:
            self.taken_us = took_us
        return took_us

    def read_us(self, n):
        return fits.spi_us(n)

    def beside(self, sample_us, extra_us, shunt_us, period_us):
        """Does EXTRA fit between two conversions after a sample?"""
        return sample_us + extra_us + 40 < period_us

    def where(self):
        return "SPI chip select GPIO %d" % self.cs

    def interrupt(self, pin):
        """Handler of the ALERT edge (hard)."""
        edge(self.mem, self.base, 0)

    def ask(self):
        """Run EXTRA after the next SAMPLE."""
        self.mem[self.base + _WANT] = EXTRA
