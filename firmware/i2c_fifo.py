"""A whole sample by the RP2's I2C block alone: the commands of several register reads fit its 16-deep FIFO, so the interrupt
of ALERT (conversion ready) stamps, hands them over and returns, and the block fetches the bytes while Python does other things.

Up to four chips (lanes) share a bus. Each has two scripts: SAMPLE, run at every conversion, and EXTRA, run when asked for. What a
script has read goes into the lane's ring of slots with the stamp of its edge. A script that was still reading when the next
conversion ended, or began too late to be done by then, is marked torn: its values may belong to two conversions.

All state is one array of 32-bit words, so that interrupt and main loop share it without objects. While the main loop works on
it LOCK is set and an interrupt only notes its edge. Nothing here allocates between `go` and `stop`.

Registers: RP2040 data sheet 4.3.17, RP2350 data sheet 12.2.17 (the same Synopsys DW_apb_i2c at another address). IC_DATA_CMD
takes data | READ << 8 | STOP << 9 | RESTART << 10. A NACK empties the FIFO and is shown until IC_CLR_TX_ABRT is read.
"""

import sys
from array import array
from time import ticks_diff, ticks_us

import micropython
from micropython import const

# The block's address >> 14: a number above 2**30 would be a heap object.
_RP2350 = "RP2350" in sys.implementation._machine
PAGE = (0x10024, 0x10026) if _RP2350 else (0x10011, 0x10012)  # I2C0, I2C1
_TIMER_PAGE = 0x1002C if _RP2350 else 0x10015  # TIMER0 or TIMER

# Registers, in words
_TAR = const(0x04 >> 2)
_DATA_CMD = const(0x10 >> 2)
_RAW_INTR = const(0x34 >> 2)
_CLR_ABRT = const(0x54 >> 2)
_ENABLE = const(0x6C >> 2)
_STATUS = const(0x70 >> 2)
_RXFLR = const(0x78 >> 2)
_TIMERAWL = const(0x28 >> 2)  # what ticks_us() reads
_TX_ABRT = const(1 << 6)  # of IC_RAW_INTR_STAT
_BUSY = const(1 << 5)  # of IC_STATUS: MST_ACTIVITY

# State of the bus, in words of `mem`
_LOCK = const(0)
_RUNNING = const(1)  # lane, -1: none; and of it:
_KIND = const(2)
_TORN = const(3)
_STARTED = const(4)  # ticks_us
_STAMP_OF = const(5)
_EDGES_OF = const(6)
_PAGE = const(7)
_LANES = const(8)
_TURN = const(9)  # the lane that had the bus last
_TIMER = const(10)
_FREE = const(0)  # LOCK: an interrupt works
_NOTE = const(1)  # it only notes
_FINISH = const(2)  # and nothing new begins
# State of lane n, from word _LANE + n * _SIZE on
_LANE = const(11)
_ADDRESS = const(0)
_EDGES = const(1)
_STAMP = const(2)
_PENDING = const(3)  # kind of script that waits, 0: none
_WANT = const(4)  # kind of script for the next edge
_ERROR = const(5)
_HEAD = const(6)
_TAIL = const(7)
_LATE = const(8)
_SCRIPT = const(10)  # two of: number of commands, of bytes to come, 16 commands
_SLOTS = const(46)  # of 8 words each
_RING = const(16)
_SIZE = const(174)

# A slot: kind (| TORN), stamp, number of edges, 12 bytes as read, three to a word, most significant first
SAMPLE, EXTRA, TORN = 1, 2, 4
STAMP, EDGE, DATA = 1, 2, 3
EIO, ETIMEDOUT = 5, 110
_PATIENCE_us = const(5000)


@micropython.viper
def edge(mem: ptr32, lane: int, stamp: int) -> int:
    """Interrupt: lane's conversion is ready. 1 if `step` shall follow, 0 if the main loop will do it."""
    at = _LANE + lane * _SIZE
    mem[at + _EDGES] = (int(mem[at + _EDGES]) + 1) & 0x3FFFFFFF
    mem[at + _STAMP] = stamp
    mem[at + _PENDING] = int(mem[at + _WANT])
    mem[at + _WANT] = 1
    kind = int(mem[_KIND])
    if int(mem[_RUNNING]) == lane and kind > 0:
        block = ptr32(int(mem[_PAGE]) << 14)
        if int(block[_RXFLR]) < int(mem[at + _SCRIPT + 18 * (kind - 1) + 1]):
            mem[_TORN] = 4
    if int(mem[_LOCK]):
        return 0
    return 1


@micropython.viper
def step(mem: ptr32) -> int:
    """Take what has been read into its slot and start what waits. 1 if a script runs."""
    timer = ptr32(int(mem[_TIMER]) << 14)
    block = ptr32(int(mem[_PAGE]) << 14)
    lane = int(mem[_RUNNING])
    if lane >= 0:
        at = _LANE + lane * _SIZE
        kind = int(mem[_KIND])
        need = int(mem[at + _SCRIPT + 18 * (kind - 1) + 1])
        if int(block[_RAW_INTR]) & _TX_ABRT:
            need = int(block[_CLR_ABRT])
            while int(block[_RXFLR]):
                need = int(block[_DATA_CMD])
            mem[at + _ERROR] = 5
        else:
            if int(block[_RXFLR]) < need:
                return 1
            if int(block[_STATUS]) & _BUSY:  # the STOP is still on its way
                return 1
            mem[_KIND] = 0  # an edge from now on tears nothing
            head = int(mem[at + _HEAD])
            slot = at + _SLOTS + 8 * (head & 15)
            room = _RING - ((head - int(mem[at + _TAIL])) & 0xFFFF)
            word = slot + 3
            while need > 0:
                v = 0
                n = 0
                while n < 3:
                    v = v << 8
                    if need > 0:
                        v |= int(block[_DATA_CMD]) & 255
                        need -= 1
                    n += 1
                if room > 0:
                    mem[word] = v
                word += 1
            if room > 0:  # else the main loop has been away for long: the conversion is lost, and counted by its time
                mem[slot] = kind | int(mem[_TORN])
                mem[slot + 1] = int(mem[_STAMP_OF])
                mem[slot + 2] = int(mem[_EDGES_OF])
                mem[at + _HEAD] = (head + 1) & 0xFFFF
        mem[_RUNNING] = -1
    if int(mem[_LOCK]) == _FINISH:
        return 0
    lanes = int(mem[_LANES])
    lane = int(mem[_TURN])
    k = 0
    while k < lanes:
        lane += 1
        if lane >= lanes:
            lane = 0
        at = _LANE + lane * _SIZE
        kind = int(mem[at + _PENDING])
        if kind:
            mem[at + _PENDING] = 0
            mem[_TURN] = lane
            mem[_RUNNING] = lane
            mem[_KIND] = kind
            stamp = int(mem[at + _STAMP])
            mem[_TORN] = 0
            mem[_STAMP_OF] = stamp
            mem[_EDGES_OF] = int(mem[at + _EDGES])
            if int(block[_TAR]) != int(mem[at + _ADDRESS]):
                block[_ENABLE] = 0
                block[_TAR] = int(mem[at + _ADDRESS])
            block[_ENABLE] = 1
            script = at + _SCRIPT + 18 * (kind - 1)
            n = int(mem[script])
            script += 2
            while n:
                block[_DATA_CMD] = int(mem[script])
                script += 1
                n -= 1
            now = int(timer[_TIMERAWL]) & 0x3FFFFFFF
            mem[_STARTED] = now
            waited = (now - stamp) & 0x3FFFFFFF
            if waited > int(mem[at + _LATE]):
                mem[_TORN] = 4
            return 1
        k += 1
    return 0


@micropython.viper
def halt(mem: ptr32):
    """Give up what is running: the block drops it with all FIFO contents."""
    block = ptr32(int(mem[_PAGE]) << 14)
    block[_ENABLE] = 0
    mem[_RUNNING] = -1


class Bus:
    """The bus with its lanes. `make()` returns a machine.I2C, `clock_out()` frees a chip that holds SDA low."""

    def __init__(self, make, clock_out, page, addresses):
        self.make = make
        self.clock_out = clock_out
        self.i2c = make()
        self.mem = array("i", [0] * (_LANE + _SIZE * len(addresses)))
        self.mem[_RUNNING] = -1
        self.mem[_PAGE] = page
        self.mem[_TIMER] = _TIMER_PAGE
        self.mem[_LANES] = len(addresses)
        self.lanes = [Lane(self, n, address) for n, address in enumerate(addresses)]

    def poll(self):
        """To be called often: moves on what no interrupt does. A block that hangs is given up: its lane's ETIMEDOUT."""
        mem = self.mem
        now = ticks_us()
        mem[_LOCK] = _NOTE
        if step(mem) and ticks_diff(now, mem[_STARTED]) > _PATIENCE_us:
            mem[_LANE + mem[_RUNNING] * _SIZE + _ERROR] = ETIMEDOUT
            halt(mem)
        mem[_LOCK] = _FREE

    def hold(self):
        """Let what runs end and begin nothing new, until `release`: in between machine.I2C may use the bus."""
        mem = self.mem
        mem[_LOCK] = _FINISH
        while step(mem):
            if ticks_diff(ticks_us(), mem[_STARTED]) > _PATIENCE_us:
                halt(mem)

    def release(self):
        self.mem[_LOCK] = _FREE

    def read_into(self, address, register, buf):
        self.hold()
        try:
            self.i2c.readfrom_mem_into(address, register, buf)
        finally:
            self.release()

    def write(self, address, register, buf):
        self.hold()
        try:
            self.i2c.writeto_mem(address, register, buf)
        finally:
            self.release()

    def free(self):
        """After a fault: clock out, then the block begins anew."""
        self.hold()
        halt(self.mem)
        try:
            self.clock_out()
            self.i2c = self.make()
        finally:
            self.release()


class Lane:
    """One chip on the bus."""

    def __init__(self, bus, number, address):
        self.bus = bus
        self.mem = bus.mem
        self.number = number
        self.address = address
        self.base = _LANE + _SIZE * number
        self.mem[self.base + _ADDRESS] = address
        self.mem[self.base + _WANT] = SAMPLE
        self.slot = 0  # index in mem of the slot that `take` found

    def script(self, kind, reads):
        """What SAMPLE or EXTRA reads: (register, bytes) in order, at most 16 commands and 12 bytes. Returns the clocks
        that it takes on the bus: two times START and address, the pointer, the data; STOP and pause."""
        words = []
        clocks = 0
        for register, n in reads:
            words += [register, 0x500] + [0x100] * (n - 1)
            words[-1] |= 0x200
            clocks += 31 + 9 * n
        total = sum([n for _, n in reads])
        if len(words) > 16 or total > 12:
            raise ValueError("the script does not fit the FIFO")
        at = self.base + _SCRIPT + 18 * (kind - 1)
        for k, word in enumerate([len(words), total] + words):
            self.mem[at + k] = word
        return clocks

    def where(self):
        return "I2C address 0x%02x" % self.address

    def read_into(self, register, buf):
        """Register bytes, most significant first. OSError if the chip does not answer."""
        self.bus.read_into(self.address, register, buf)

    def write(self, register, buf):
        self.bus.write(self.address, register, buf)

    def free(self):
        """After a fault: free the bus."""
        self.bus.free()

    def interrupt(self, pin):
        """Handler of the ALERT edge (hard)."""
        now = ticks_us()
        if edge(self.mem, self.number, now):
            step(self.mem)

    def restart(self, late_us):
        """Forget what was measured. A script that begins more than late_us after its edge is torn."""
        mem, at = self.mem, self.base
        self.bus.hold()
        mem[at + _PENDING] = mem[at + _ERROR] = 0
        mem[at + _WANT] = SAMPLE
        mem[at + _TAIL] = mem[at + _HEAD]
        mem[at + _LATE] = late_us
        self.bus.release()

    def edges(self):
        return self.mem[self.base + _EDGES]

    def take(self):
        """Kind of the next slot, whose words begin at mem[slot], until `done`; 0 if there is none. OSError."""
        mem, at = self.mem, self.base
        self.bus.poll()
        if mem[at + _ERROR]:
            error = mem[at + _ERROR]
            mem[at + _ERROR] = 0
            raise OSError(error)
        tail = mem[at + _TAIL]
        if tail == mem[at + _HEAD]:
            return 0
        self.slot = at + _SLOTS + 8 * (tail & 15)
        return mem[self.slot]

    def waits(self):
        """Is something of this lane still to be read?"""
        return self.mem[_RUNNING] == self.number or self.mem[self.base + _PENDING]

    def done(self):
        at = self.base + _TAIL
        self.mem[at] = (self.mem[at] + 1) & 0xFFFF

    def ask(self):
        """Run EXTRA now, if no edge has come since that of the slot just taken."""
        mem, at = self.mem, self.base
        mem[_LOCK] = _NOTE
        if mem[at + _EDGES] == mem[self.slot + EDGE] and not mem[at + _PENDING]:
            mem[at + _PENDING] = EXTRA
        mem[_LOCK] = _FREE
        self.bus.poll()

    def ask_instead(self):
        """Run EXTRA instead of SAMPLE at the next edge."""
        self.mem[self.base + _WANT] = EXTRA
