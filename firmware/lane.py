"""What the lanes of every bus have in common: the ring between the interrupt, which stamps and reads, and the main
loop.

A lane is one chip. Its state is in the array of 32-bit words `mem` of its bus, from word `base` on, so that interrupt
and main loop share it without objects. The ring's slots have 8 words each: kind (| TORN), stamp, range (ranges.py), and
the bytes of a script as read, most significant first, three to a word. Nothing here allocates between `go` and `stop`.
"""

import fits
import micropython
from micropython import const

# A lane's words. i2c_fifo.py and spi_lane.py name them too, because viper code needs its constants in the same file.
_HEAD = const(0)  # slots filled, and
_TAIL = const(1)  # slots done with, 16 bits
_PENDING = const(2)  # kind of script that waits, 0: none
_WANT = const(3)  # kind of script for the next edge
_ERROR = const(4)
_LATE = const(5)
_SLOTS = const(6)  # word of `mem` at which the ring begins
_MASK = const(7)  # its number of slots, a power of two, less one
# Flags of a plain sample, for `drain`:
_BITS = const(8)  # of a value: 16 or 20
_CARE = const(9)  # bits of its flags that matter
_READY = const(10)  # and how they stand
_FLAGS = const(11)  # flags and
_STAMP = const(12)  # stamp of the last that was moved
_MOST_A = const(13)  # raw limits of the rail (protect.py), and
_MOST_V = const(14)
_ABOVE = const(15)  # whether a moved sample was above one
_SPURIOUS = const(16)  # falling edges with which ALERT was not low: interference
# How long ALERT has been low (alert_age.py):
_AGE = const(17)  # page of the block that counts it; 0: none does
_INSTR = const(18)  # its word for an instruction, and
_RXF = const(19)  # for the count
_PER = const(20)  # us * 2**16 of a count
# from 21 on: the bus' own
_MOST_FREED = 4  # edges in a row that may be lost

SAMPLE, EXTRA, BOTH, TORN = 1, 2, 3, 4  # BOTH is only asked for: SAMPLE, then EXTRA
ABOVE = 15
STAMP, DATA = 1, 3  # words of a slot; the first is its kind


@micropython.viper
def drain(mem: ptr32, at: int, frame: ptr8, to: int, last: int, widest: int, most: int, zeros: int) -> int:
    """Move up to `most` plain samples from the ring of the lane at mem[at:] to frame[to:], as the wire has them.
    Returns how many. Plain is: nothing torn, flags as they should be, no reserved bit set, neither value 0 (with
    `zeros`: one of them 0), and not more than `widest` us after the sample before (`last` is the stamp of the first
    one's). The first that is not plain stays, and all after it."""
    tail = int(mem[at + _TAIL])
    head = int(mem[at + _HEAD])
    slots = int(mem[at + _SLOTS])
    mask = int(mem[at + _MASK])
    wide = int(mem[at + _BITS]) == 20
    care = int(mem[at + _CARE])
    ready = int(mem[at + _READY])
    most_A = int(mem[at + _MOST_A])
    most_V = int(mem[at + _MOST_V])
    moved = 0
    while moved < most and tail != head:
        slot = slots + 8 * (tail & mask)
        stamp = int(mem[slot + 1])
        gap = (stamp - last) & 0x3FFFFFFF
        if int(mem[slot]) != 1 or gap == 0 or gap > widest:
            break
        a = int(mem[slot + 3])
        b = int(mem[slot + 4])
        flags = a >> 8
        if wide:
            flags = b >> 8
        if flags & care != ready:
            break
        if wide:
            c = int(mem[slot + 5])
            if (a << 8 | c) & 0xF00:
                break
            current = a >> 4
            vbus = (b & 255) << 12 | c >> 12
            if current & 0x80000:
                current |= 0xF00000
        else:
            current = (a & 255) << 8 | b >> 16
            vbus = b & 0xFFFF
            if current & 0x8000:
                current |= 0xFF0000
        zero = 0
        if vbus == 0 or current == 0:
            zero = 1
        if zero != zeros:
            break
        if vbus > most_V or current > most_A and current & 0x800000 == 0:
            mem[at + _ABOVE] = 1
        frame[to] = gap & 255
        frame[to + 1] = gap >> 8
        frame[to + 2] = vbus & 255
        frame[to + 3] = (vbus >> 8) & 255
        frame[to + 4] = vbus >> 16
        frame[to + 5] = current & 255
        frame[to + 6] = (current >> 8) & 255
        frame[to + 7] = current >> 16
        to += 8
        last = stamp
        tail = (tail + 1) & 0xFFFF
        moved += 1
        mem[at + _FLAGS] = flags
    if moved:
        mem[at + _STAMP] = last
        mem[at + _TAIL] = tail
    return moved


class Lane:
    """One chip on its bus. Each bus' class adds, for a sampler:

    delay_us, BEGIN_us, SOON_us  by how much an interrupt may be late; from there to the script's begin; from there
                                 until what the next shunt conversion replaces has been taken
    script(kind, reads)          what SAMPLE, or EXTRA, reads: (register, bytes) in order. Returns the us that it takes
    taken_us                     of SAMPLE: until its last register has been taken
    beside(sample_us, extra_us, shunt_us, period_us)  whether EXTRA fits between two conversions after SAMPLE
    ask()                        run EXTRA with SAMPLE at one of the next edges
    where()                      the chip's place, in words
    interrupt(pin)               handler of the ALERT edge, hard

    The lane's state begins at mem[base] of the bus, its ring of `slots` slots at mem[ring]; `at` is what the bus knows
    it by."""

    delay_us = 0

    def __init__(self, bus, at, base, ring, slots):
        self.bus = bus
        self.at = at
        self.mem = mem = bus.mem
        self.base = base
        mem[base + _SLOTS] = ring
        mem[base + _MASK] = slots - 1
        mem[base + _WANT] = SAMPLE
        mem[base + _MOST_A] = mem[base + _MOST_V] = 0xFFFFFF  # never
        self.slot = 0  # index in mem of the slot that `take` found
        self.flags = self.stamp = self.dropped = self.unseen = 0
        self.freed = self.heard = 0
        self.two = bytearray(2)

    def age(self, counter):
        """Stamps go by the age of their edge. counter: what alert_age.count returns; None: by the interrupt."""
        at = self.base + _AGE
        for k in range(4):
            self.mem[at + k] = counter[k] if counter else 0

    def stamp_us(self):
        """By how much a stamp may be off."""
        return fits.AGED_us if self.mem[self.base + _AGE] else fits.FLASH * self.delay_us

    def plain(self, bits, care, ready):
        """What `drain` takes for plain: the chip's values have 20 or 16 bits, its flags & care are `ready`."""
        mem, at = self.mem, self.base
        mem[at + _BITS], mem[at + _CARE], mem[at + _READY] = bits, care, ready

    def limit(self, most_A, most_V):
        """mem[base + ABOVE] is set by the first sample that is moved with more than this, raw, until `below`."""
        mem, at = self.mem, self.base
        mem[at + _MOST_A], mem[at + _MOST_V] = most_A, most_V

    def below(self):
        self.mem[self.base + _ABOVE] = 0

    def read_into(self, register, buf):
        """Register bytes, most significant first. OSError if the chip does not acknowledge."""
        self.bus.read_into(self.at, register, buf)

    def write(self, register, buf):
        self.bus.write(self.at, register, buf)

    def free(self):
        """After a fault: free the bus."""
        self.bus.free()

    def read16(self, register):
        """A register of 16 bits. OSError if the chip does not answer."""
        self.read_into(register, self.two)
        return self.two[0] << 8 | self.two[1]

    def write16(self, register, value):
        """OSError if the chip does not answer."""
        self.two[0] = value >> 8
        self.two[1] = value & 255
        self.write(register, self.two)

    def claim(self, sample_us, period_us):
        """Reserve this share of the bus. ValueError: all lanes together exceed the bus."""
        self.bus.claimed += fits.claimed(sample_us, period_us)
        if self.bus.claimed > fits.MOST_CLAIMED:
            raise ValueError("the rails' samples want %d %% of the bus" % (self.bus.claimed // 10))

    def restart(self, late_us):
        """Discard the measurements. A script that begins more than late_us after its edge is torn."""
        mem, at = self.mem, self.base
        self.bus.hold()
        mem[at + _PENDING] = mem[at + _ERROR] = mem[at + _SPURIOUS] = 0
        mem[at + _WANT] = SAMPLE
        mem[at + _TAIL] = mem[at + _HEAD]
        mem[at + _LATE] = late_us
        self.dropped = self.unseen = 0
        self.bus.release()

    def take(self):
        """Kind of the next slot, whose words begin at mem[slot], until `done`; 0 without one. OSError."""
        mem, at = self.mem, self.base
        self.bus.poll()
        if mem[at + _ERROR]:
            error = mem[at + _ERROR]
            mem[at + _ERROR] = 0
            raise OSError(error)
        tail = mem[at + _TAIL]
        if tail == mem[at + _HEAD]:
            return 0
        self.slot = mem[at + _SLOTS] + 8 * (tail & mem[at + _MASK])
        return mem[self.slot]

    def let_go(self, flags, heard):
        """ALERT is low, and nothing was heard of the chip since `heard`: a conversion whose edge was lost holds it so,
        and no other edge comes, until its flags have been read. A few times, because a line that is always low must not
        take the bus from others. OSError."""
        if self.heard != heard:
            self.heard = heard
            self.freed = 0
        if self.freed < _MOST_FREED:
            self.freed += 1
            self.unseen += 1
            self.read16(flags)

    def interference(self):
        """Falling edges of ALERT since `restart` without a conversion: the line was high again, or the reading
        showed it."""
        return self.mem[self.base + _SPURIOUS] + self.dropped

    def spare(self):
        """Do less than an eighth of the slots wait to be taken?"""
        mem, at = self.mem, self.base
        return (mem[at + _HEAD] - mem[at + _TAIL] & 0xFFFF) << 3 <= mem[at + _MASK]

    def pending(self):
        """Does a script wait for the bus?"""
        return self.mem[self.base + _PENDING] != 0

    def done(self):
        at = self.base + _TAIL
        self.mem[at] = (self.mem[at] + 1) & 0xFFFF

    def drain(self, frame, to, last, widest, most, zeros):
        """See the function. `flags` and `stamp` are then those of the last one moved."""
        mem, at = self.mem, self.base
        moved = drain(mem, at, frame, to, last, widest, most, zeros)
        if moved:
            self.flags = mem[at + _FLAGS]
            self.stamp = mem[at + _STAMP]
        return moved

    def script_instead(self, reads):
        """The registers of EXTRA where it does not fit after SAMPLE. ValueError on a bus that reads both together."""
        raise ValueError("the accumulators do not fit between two conversions, and this bus reads them with a sample")

    def ask_instead(self):
        """Run EXTRA instead of SAMPLE at the next edge, after `script_instead`."""
        raise ValueError("this bus reads the accumulators with a sample")

    def waits(self):
        """Is something of this lane still to be read?"""
        return self.mem[self.base + _PENDING]
