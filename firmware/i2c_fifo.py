"""A whole sample by the RP2's I2C block alone: the commands of several register reads fit its 16-deep FIFO, so the
interrupt of ALERT (conversion ready) stamps, hands them over and returns, and the block fetches the bytes while Python
does other things.

Up to four chips (lanes) share a bus. Each has two scripts: SAMPLE, run at every conversion, and EXTRA, run when asked
for. What a script has read goes into the lane's ring with the stamp of its edge. A chip sends what a register holds
when its first byte begins. A script whose last register had not begun when the next conversion ended, or that itself
began too late for that, is marked torn: its values may belong to two conversions. Where a lane waits for the bus, an
alarm (oneshot.py) comes when it gets free.

All state is one array of 32-bit words that interrupt and main loop share. While the main loop works on it LOCK is set
and an interrupt only notes its edge. Nothing here allocates between `go` and `stop`.

Registers: RP2040 data sheet 4.3.17, RP2350 12.2.17 (the same Synopsys DW_apb_i2c). IC_DATA_CMD takes data | READ << 8
| STOP << 9 | RESTART << 10. A NACK empties the FIFO and is shown until IC_CLR_TX_ABRT is read."""

import sys
from time import ticks_diff, ticks_us

import fits
import micropython
import oneshot
from lane import BOTH, EXTRA, Lane
from machine import freq
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
_GPIO_IN = const(0x04 >> 2)  # of the SIO
_TX_ABRT = const(1 << 6)  # of IC_RAW_INTR_STAT
_BUSY = const(1 << 5)  # of IC_STATUS: MST_ACTIVITY

# State of the bus, in words of `mem`
_LOCK = const(0)
_RUNNING = const(1)  # lane, -1: none; and of it:
_KIND = const(2)
_TORN = const(3)
_STARTED = const(4)  # ticks_us
_STAMP_OF = const(5)
_SIO = const(6)
_PAGE = const(7)
_LANES = const(8)
_RANGE_OF = const(9)  # its range (ranges.py)
_TIMER = const(10)
_WAITING = const(11)  # a lane may have something pending
_ALARM = const(12)  # page of oneshot.py's block, 0: one lane needs none
_SET = const(13)  # it counts
_PER_us = const(14)  # cycles
_CLOCK = const(15)  # of the bus, in us / 256
_EXTRA_us = const(16)  # that EXTRA has the bus, and an interrupt before and after it
_FREE = const(0)  # LOCK: an interrupt works
_NOTE = const(1)  # it only notes
_FINISH = const(2)  # and nothing new begins
_LANE = const(17)  # state of lane n, from word _LANE + n * _SIZE on: first as lane.py has it
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
_ADDRESS = const(21)
_STAMP = const(22)  # of the last edge
# two of: number of commands, of bytes to come, of those that are there once the last register has been taken,
# 16 commands
_SCRIPT = const(23)
_FULL = const(61)  # nothing is kept until half of the ring is free: each gap costs the main loop time
_EVERY = const(62)  # us from one conversion to the next, of a fast chip
_ALERT = const(63)  # bit of the GPIO
_LESS = const(64)  # us by which EXTRA must begin before _LATE
_RANGE = const(65)  # of the last edge (ranges.py); 0 where the rail has one alone
_SLOTS = const(66)
_RING = const(64)  # slots of 8 words
_TXF = const(4)  # of oneshot.py
_SOON_us = const(12)  # the least that is worth an alarm
_LEAD_us = const(35)  # from the alarm to the first look at the block
_SPIN = const(40)  # such looks, some 60 us
_SIZE = const(578)
ROOM = _LANE, _SIZE  # words of `mem`: of the bus, and of each lane

_PUSH_X = const(0x4020)  # in(x, 32), which pushes (alert_age.py)
_OLDEST = const(0x80000)  # counts: 8 ms

ETIMEDOUT = 110
_PATIENCE_us = const(5000)
_EARLY_us = const(100)  # a lane alone on its bus whose scripts must begin so soon after the edge
_QUIET_us = const(300)  # and are followed by the next edge by then


@micropython.viper
def edge(mem: ptr32, lane: int) -> int:
    """Interrupt: lane's conversion is ready. 1 if `step` shall follow, 0 if the main loop will do it."""
    timer = ptr32(int(mem[_TIMER]) << 14)
    stamp = int(timer[_TIMERAWL]) & 0x3FFFFFFF
    at = _LANE + lane * _SIZE
    kind = int(mem[_KIND])
    if int(mem[_RUNNING]) == lane and kind > 0:
        block = ptr32(int(mem[_PAGE]) << 14)
        if int(block[_RXFLR]) < int(mem[at + _SCRIPT + 19 * (kind - 1) + 2]):
            mem[_TORN] = 4
    sio = ptr32(int(mem[_SIO]) << 14)
    if int(sio[_GPIO_IN]) & int(mem[at + _ALERT]):  # a conversion would hold it low until it is read
        mem[at + _SPURIOUS] = int(mem[at + _SPURIOUS]) + 1
        return 0
    page = int(mem[at + _AGE])
    if page:
        pio = ptr32(page << 14)
        stamp = int(timer[_TIMERAWL]) & 0x3FFFFFFF
        pio[int(mem[at + _INSTR])] = _PUSH_X
        age = (-1 - int(pio[int(mem[at + _RXF])])) & 0x3FFFFFFF
        if age < _OLDEST:  # else the machine has seen no edge
            stamp = (stamp - ((age * int(mem[at + _PER])) >> 16)) & 0x3FFFFFFF
    mem[at + _STAMP] = stamp
    want = int(mem[at + _WANT])
    mem[at + _PENDING] = want
    if want != 3:  # which stays set until EXTRA has been read
        mem[at + _WANT] = 1
    mem[_WAITING] = 1
    if int(mem[_LOCK]):
        return 0
    return 1


@micropython.viper
def step(mem: ptr32) -> int:
    """Move the finished reading into its slot and start the next. 1 if a script runs; if another waits, the alarm is
    set. A lane alone on its bus starts first: the bytes wait in the FIFO, and the block keeps its address."""
    timer = ptr32(int(mem[_TIMER]) << 14)
    block = ptr32(int(mem[_PAGE]) << 14)
    lanes = int(mem[_LANES])
    lane = int(mem[_RUNNING])
    need = 0  # bytes of the finished reading
    done = 0  # its lane's state, and
    kind = 0
    torn = 0
    stamp_of = 0
    range_of = 0
    if lane >= 0:
        done = _LANE + lane * _SIZE
        kind = int(mem[_KIND])
        script = done + _SCRIPT + 19 * (kind - 1)
        need = int(mem[script + 1])
        # the alarm comes a little early, so that its own delay is over in time
        if int(mem[_WAITING]) and int(mem[_ALARM]):
            left = (31 * (int(mem[script]) - need) + 9 * need) * int(mem[_CLOCK]) >> 8  # I2CLane.read_us
            left += int(mem[_STARTED]) - (int(timer[_TIMERAWL]) & 0x3FFFFFFF)
            n = _SPIN
            if left > _LEAD_us:
                n = 0
            while n:
                n -= 1
                if int(block[_RXFLR]) >= need and int(block[_STATUS]) & _BUSY == 0 or int(block[_RAW_INTR]) & _TX_ABRT:
                    n = 0
        if int(block[_RAW_INTR]) & _TX_ABRT:
            need = int(block[_CLR_ABRT])
            while int(block[_RXFLR]):
                need = int(block[_DATA_CMD])
            mem[done + _ERROR] = 5
            need = 0
            lane = -1
        elif int(block[_RXFLR]) >= need and int(block[_STATUS]) & _BUSY == 0:
            mem[_KIND] = 0  # an edge from now on tears nothing
            if kind == 2:
                mem[done + _WANT] = 1
            torn = int(mem[_TORN])
            stamp_of = int(mem[_STAMP_OF])
            range_of = int(mem[_RANGE_OF])
            lane = -1
        else:
            need = 0
        mem[_RUNNING] = lane
    moves = 1
    if lanes == 1:
        moves = 0
    turn = 2
    while turn:
        turn -= 1
        if turn == moves:
            if need:
                head = int(mem[done + _HEAD])
                slot = done + _SLOTS + 8 * (head & (_RING - 1))
                room = _RING - ((head - int(mem[done + _TAIL])) & 0xFFFF)
                if room <= 0:
                    mem[done + _FULL] = 1
                elif room > _RING >> 1:
                    mem[done + _FULL] = 0
                if int(mem[done + _FULL]):
                    room = 0
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
                if room > 0:
                    mem[slot] = kind | torn
                    mem[slot + 1] = stamp_of
                    mem[slot + 2] = range_of
                    mem[done + _HEAD] = (head + 1) & 0xFFFF
        elif lane < 0 and int(mem[_LOCK]) != _FINISH:
            mem[_WAITING] = 0  # an edge sets it again
            now = int(timer[_TIMERAWL])
            longest = -2
            k = 0
            while k < lanes:  # the longest waiting is next, EXTRA after every SAMPLE
                at = _LANE + k * _SIZE
                wants = int(mem[at + _PENDING])
                waited = (now - int(mem[at + _STAMP])) & 0x3FFFFFFF
                if wants == 2:
                    due = 0  # other lanes whose conversion ends while EXTRA is read: the second would wait too long
                    n = 0
                    while n < lanes:
                        other = _LANE + n * _SIZE
                        ends = int(mem[other + _EVERY]) - ((now - int(mem[other + _STAMP])) & 0x3FFFFFFF)
                        if n != k and ends < int(mem[_EXTRA_us]):
                            due += 1
                        n += 1
                    if due > 1 or waited > int(mem[at + _LATE]):
                        mem[at + _PENDING] = 0  # or it would itself be torn
                        wants = 0
                    waited = -1
                if wants:
                    if lane >= 0:
                        mem[_WAITING] = 1
                    if waited > longest:
                        longest = waited
                        lane = k
                k += 1
            if lane >= 0:
                at = _LANE + lane * _SIZE
                wants = int(mem[at + _PENDING])
                mem[at + _PENDING] = 0
                if wants == 3:
                    mem[at + _PENDING] = 2
                    mem[_WAITING] = 1
                    wants = 1
                mem[_RUNNING] = lane
                mem[_KIND] = wants
                stamp = int(mem[at + _STAMP])
                mem[_TORN] = 0
                mem[_STAMP_OF] = stamp
                mem[_RANGE_OF] = int(mem[at + _RANGE])
                if int(block[_TAR]) != int(mem[at + _ADDRESS]):
                    block[_ENABLE] = 0
                    block[_TAR] = int(mem[at + _ADDRESS])
                block[_ENABLE] = 1
                script = at + _SCRIPT + 19 * (wants - 1)
                n = int(mem[script])
                script += 3
                begun = int(timer[_TIMERAWL])
                while n:
                    block[_DATA_CMD] = int(mem[script])
                    script += 1
                    n -= 1
                mem[_STARTED] = int(timer[_TIMERAWL]) & 0x3FFFFFFF
                n = int(mem[at + _LATE])
                if wants == 2:
                    n -= int(mem[at + _LESS])
                if (begun - stamp) & 0x3FFFFFFF > n:
                    mem[_TORN] = 4
    if lane < 0:
        return 0
    if int(mem[_WAITING]) and int(mem[_ALARM]) and not int(mem[_SET]):
        script = _LANE + lane * _SIZE + _SCRIPT + 19 * (int(mem[_KIND]) - 1)
        left = 31 * (int(mem[script]) - int(mem[script + 1])) + 9 * int(mem[script + 1])  # I2CLane.read_us
        left = (left * int(mem[_CLOCK])) >> 8
        left += int(mem[_STARTED]) - (int(timer[_TIMERAWL]) & 0x3FFFFFFF)
        left -= _LEAD_us
        if left < _SOON_us or left > 3000:
            left = _SOON_us
        alarm = ptr32(int(mem[_ALARM]) << 14)
        mem[_SET] = 1
        alarm[_TXF] = left * int(mem[_PER_us])
    return 1


@micropython.viper
def halt(mem: ptr32):
    """Abort the running transfer: the block drops it with all FIFO contents."""
    block = ptr32(int(mem[_PAGE]) << 14)
    block[_ENABLE] = 0
    mem[_RUNNING] = -1


class Bus:
    """`make(Hz)` gives a machine.I2C, `clock_out()` frees a chip that holds SDA. chips: (address, GPIO of ALERT)."""

    def __init__(self, make, clock_out, page, chips, Hz, mem):
        self.make, self.clock_out, self.claimed = make, clock_out, 0  # claimed: of its time, by all lanes
        self.mem = mem
        mem[_RUNNING], mem[_PAGE], mem[_TIMER], mem[_SIO], mem[_LANES] = -1, page, _TIMER_PAGE, 0x34000, len(chips)
        if len(chips) > 1:
            mem[_ALARM], mem[_PER_us] = oneshot.PAGE, freq() // 1_000_000
            oneshot.start(self.alarm)
        self.lanes = [I2CLane(self, n, address, alert) for n, (address, alert) in enumerate(chips)]
        self.rate(Hz)

    def rate(self, Hz):
        """From now on the bus is as fast as machine.I2C makes it for Hz. Before any lane has a script."""
        self.asked_Hz, self.i2c = Hz, self.make(Hz)
        self.mem[_CLOCK] = clock = fits.clock(Hz, freq())
        self.mem[_EXTRA_us] = 100 + (200 * clock >> 8)
        for lane in self.lanes:
            lane.clock, lane.SOON_us = clock, fits.I2C_SOON_clocks * clock >> 8

    def poll(self):
        """To be called often: moves on what no interrupt does. A block that hangs is given up: its lane's ETIMEDOUT."""
        mem = self.mem
        if mem[_RUNNING] < 0 and not mem[_WAITING]:
            return
        if not mem[_ALARM] and mem[_LANE + _LATE] < _EARLY_us and ticks_diff(ticks_us(), mem[_STARTED]) < _QUIET_us:
            return  # its next edge takes the reading: an edge that finds the lock set begins too late
        while True:
            now = ticks_us()
            mem[_LOCK] = _NOTE
            if step(mem) and ticks_diff(now, mem[_STARTED]) > _PATIENCE_us:
                mem[_LANE + mem[_RUNNING] * _SIZE + _ERROR] = ETIMEDOUT
                halt(mem)
            mem[_LOCK] = _FREE
            if not mem[_WAITING] or mem[_RUNNING] >= 0 and (mem[_SET] or not mem[_ALARM]):
                return
            # an edge or the alarm came meanwhile and was only noted: until the next turn a script would wait too long

    def alarm(self, _):
        """Interrupt: the bus should be free for the lane that waits."""
        mem = self.mem
        mem[_SET] = 0
        if not mem[_LOCK]:
            step(mem)

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
        """After a fault: clock out, then the block starts over."""
        self.hold()
        halt(self.mem)
        try:
            self.clock_out()
            self.i2c = self.make(self.asked_Hz)
        finally:
            self.release()


class I2CLane(Lane):
    """One chip on the bus."""

    BEGIN_us = fits.I2C_BEGIN_us
    SOON_us = fits.I2C_SOON_clocks  # until the bus has its clock: to the first byte, of CURRENT or of EXTRA's CHARGE

    def __init__(self, bus, number, address, alert):
        base = _LANE + _SIZE * number
        super().__init__(bus, address, base, base + _SLOTS, _RING)
        self.number, self.clock = number, 0
        self.mem[base + _ADDRESS], self.mem[base + _ALERT] = address, 1 << alert
        self.delay_us = fits.delay_us(self.mem[_LANES])

    def script(self, kind, reads):
        """What SAMPLE or EXTRA reads: (register, bytes), at most 16 commands and 12 bytes. Returns the us it takes."""
        words = []
        for register, n in reads:
            words += [register, 0x500] + [0x100] * (n - 1)
            words[-1] |= 0x200
        total = sum([n for _, n in reads])
        if len(words) > 16 or total > 12:
            raise ValueError("the script does not fit the FIFO")
        at = self.base + _SCRIPT + 19 * (kind - 1)
        for k, word in enumerate([len(words), total, total - reads[-1][1] + 1] + words):
            self.mem[at + k] = word
        taken_us = sum([self.read_us(n) for _, n in reads[:-1]]) + self.SOON_us
        if kind == EXTRA:
            self.mem[self.base + _LESS] = max(0, taken_us - self.taken_us)
        else:
            self.taken_us = taken_us
        return sum([self.read_us(n) for _, n in reads])

    def read_us(self, n):
        return fits.i2c_us(n, self.clock)

    def beside(self, sample_us, extra_us, shunt_us, period_us):
        """As in lane.py, and CHARGE before the next shunt conversion ends; the main loop takes 150 us to ask."""
        self.mem[self.base + _EVERY] = period_us
        return sample_us + 150 + extra_us < period_us and sample_us + 150 + self.SOON_us < shunt_us

    def where(self):
        return "I2C address 0x%02x" % self.at

    def interrupt(self, pin):
        """Handler of the ALERT edge (hard)."""
        if edge(self.mem, self.number):
            step(self.mem)

    def waits(self):
        return self.mem[_RUNNING] == self.number or self.mem[self.base + _PENDING]

    def ask(self):
        """At the next edges run SAMPLE and then, as soon as the bus is free early enough, EXTRA."""
        self.mem[self.base + _WANT] = BOTH

    def script_instead(self, reads):
        self.script(EXTRA, reads)

    def ask_instead(self):
        self.mem[self.base + _WANT] = EXTRA
