"""A rail's two ranges: a resistor in the rail, across it a bypass (bypass.py). "low" of its row of board.json is
{"shunt_uOhm", "shunt_tolerance_ppm" (of resistor and shunt together), "feed_nA" (wire.py), "release", "state" (GPIOs)}.

The hardware closes the bypass within a microsecond; the firmware lets go of it once the current has been small for
RESTED conversions in a row. A conversion in which it moves belongs to no range: `mark` finds it, and it is sent as a
bound of what flowed. Only a board with such a rail loads this. Nothing here allocates while the rig streams."""

from array import array

import machine
import micropython
import wire
from bypass import Bypass
from ina228 import SensorError
from lane import DATA
from micropython import const
from sampler import Sampler
from switch import IDLE

HIGH, LOW, MOVING = 0, 1, 2  # of a conversion
# A slot's word: in its last two bits the range of the conversion that has ended with its edge, then whether that edge
# has consumed a pending move, then how many such edges there were. An edge that interference has made may have consumed
# it from the conversion that goes on (Ranges.range_of)
_MOVED = const(4)
_EDGE = const(8)
RESTED = 64  # conversions below REST_uA before the bypass is let go: some 70 ms, so that it does not chatter
REST_uA = 20_000
_LONGEST = 32  # conversions that it may take to open
# Words of the bus, of a lane, of a slot, as i2c_fifo.py and lane.py name them:
_SIO = const(6)
_HEAD = const(0)
_TAIL = const(1)
_SLOTS = const(6)
_MASK = const(7)
_AGE = const(17)
_INSTR = const(18)
_RXF = const(19)
_PER = const(20)
_RANGE = const(65)
_RANGE_OF_SLOT = const(2)
_NO_A, _NO_V = 0xFFFFFF, 0x7FFFFF  # no reading is above: of a lane, of a guard (protect.py)

# Words of a Ranges' array. A bit is that of a GPIO
_MOST = const(0)  # raw, of a current that rests
_COUNT = const(1)  # conversions in a row that did
_OPEN = const(2)  # bit that is high while the bypass is open
_FREED = const(3)  # bit that is high while the firmware lets go of it
_ALERT = const(4)  # bit of the conversion's end, low
_LEVEL = const(5)  # range at the last edge; 2: it moves
_AGAIN = const(6)  # the next conversion has no range either
_LET_GO = const(7)  # the firmware has let go of it, or closed it, since
_BYPASS = const(8)  # page of the block that counts since it closed,
_ASK = const(9)  # its word for an instruction, and
_LEFT = const(10)  # for the count,
_EACH = const(11)  # us * 2**16 of a count,
_FROM = const(12)  # its first one
_EDGES = const(13)  # edges that have consumed a move, times _EDGE
_WORDS = const(14)

_GPIO_IN = const(0x04 >> 2)  # of the SIO
_PUSH_X = const(0x4020)  # in(x, 32), which pushes (alert_age.py)
_OLDEST = const(0x80000)  # counts, as i2c_fifo.py has it
# A bypass that closes so soon before ALERT falls, or later, moves in the next conversion: the current's ended 50 us
# before, when the bus voltage's began. It leaves 38 us to the line that reports it, and the sensor's filter six of its
# time constants
_SETTLED_us = const(12)


@micropython.viper
def mark(words: ptr32, mem: ptr32, at: int):
    """Interrupt, before the lane's at mem[at:]: to which range does the conversion belong that has ended? words: of a
    Ranges."""
    sio = ptr32(int(mem[_SIO]) << 14)
    levels = int(sio[_GPIO_IN])
    if levels & int(words[_ALERT]):  # no conversion has ended
        return
    level = 0
    if levels & int(words[_OPEN]):
        level = 1
    if levels & int(words[_FREED]):
        if level == 0:
            level = 2
    elif level:
        level = 2
    was = int(words[_LEVEL])
    let_go = int(words[_LET_GO])
    ranged = level
    again = 0
    if int(words[_AGAIN]):
        ranged = 2
    if level != was or level == 0 and let_go:
        again = 1
        if was == 1 and level == 0 and let_go == 0:
            pio = ptr32(int(mem[at + _AGE]) << 14)
            pio[int(mem[at + _INSTR])] = _PUSH_X
            edge = (-1 - int(pio[int(mem[at + _RXF])])) & 0x3FFFFFFF
            pio = ptr32(int(words[_BYPASS]) << 14)
            pio[int(words[_ASK])] = _PUSH_X
            before = int(words[_FROM]) - int(pio[int(words[_LEFT])])
            before = (before * int(words[_EACH])) >> 16  # us from its closing until now, then until the edge
            if edge < _OLDEST:  # else the machine has seen no edge
                before -= (edge * int(mem[at + _PER])) >> 16
            if before > _SETTLED_us:
                ranged = 2
                again = 0
            elif ranged == 0:
                ranged = 1
        else:
            ranged = 2
    if level < 2:
        words[_LET_GO] = 0
    words[_LEVEL] = level
    words[_AGAIN] = again
    if ranged == 2 or again:
        words[_EDGES] = (int(words[_EDGES]) + _EDGE) & 0xFFFF
        ranged |= _MOVED
    mem[at + _RANGE] = int(words[_EDGES]) | ranged


@micropython.viper
def stretch(mem: ptr32, at: int, word: int) -> int:
    """How many slots that wait in the ring of the lane at mem[at:] have this word, until the first that has not."""
    tail = int(mem[at + _TAIL])
    head = int(mem[at + _HEAD])
    ranges = int(mem[at + _SLOTS]) + _RANGE_OF_SLOT
    mask = int(mem[at + _MASK])
    n = 0
    while tail != head and int(mem[ranges + 8 * (tail & mask)]) == word:
        tail = (tail + 1) & 0xFFFF
        n += 1
    return n


@micropython.viper
def rested(words: ptr32, frame: ptr8, at: int, n: int) -> int:
    """n samples of the wire from frame[at:] on. words: of a Ranges. Returns how many in a row rest by now."""
    count = int(words[_COUNT])
    while n:
        current = int(frame[at + 5]) | int(frame[at + 6]) << 8 | int(frame[at + 7]) << 16
        if current & 0x800000:
            current = 0x1000000 - current
        count += 1
        if current > int(words[_MOST]):
            count = 0
        at += 8
        n -= 1
    words[_COUNT] = count
    return count


class Ranges:
    """What a sampler knows of its rail's ranges."""

    def __init__(self, rail, lane):
        """rail: row of board.RAILS. ValueError: it is not one, or stamps do not go by the age of their edge: then it is
        not known on which side of an edge the bypass has moved."""
        for name in ("shunt_uOhm", "shunt_tolerance_ppm", "release", "state"):
            if type(rail["low"].get(name)) is not int:
                raise ValueError("rail %d: low without %s" % (rail["rail"], name))
        self.mem, self.base = lane.mem, lane.base
        if rail["bus"] != "I2C0" or not self.mem[self.base + _AGE]:
            raise ValueError("rail %d: a low range wants one of the first three rails, on I2C" % rail["rail"])
        self.bypass = Bypass(rail)
        self.words = words = array("i", [0] * _WORDS)
        words[_MOST] = REST_uA * 1_000_000 // rail["current_lsb_pA"]
        words[_FREED], words[_OPEN] = self.bypass.bits
        words[_ALERT] = 1 << rail["alert"]
        for k in range(5):
            words[_BYPASS + k] = self.bypass.counter[k]
        self.now = HIGH
        self.waited = 0  # conversions that it moves
        self.edges = 0  # of the last slot, times _EDGE
        self.doubt = False  # the last edge had no conversion, and the move that it consumed belongs to the next
        self.broken = False

    def config(self, before):
        """The id of the next stretch of conversions of one range: its last two bits are the range."""
        return (before + 1 + (self.now - before - 1 & 3)) & 255

    def mark(self):
        """Interrupt: see the function."""
        mark(self.words, self.mem, self.base)

    def begin(self):
        """The bypass is closed, and stays so until the current rests. Returns why not, or None."""
        self.hold()
        words = self.words
        words[_COUNT] = words[_LEVEL] = words[_AGAIN] = words[_LET_GO] = words[_EDGES] = self.edges = 0
        self.mem[self.base + _RANGE] = HIGH
        self.doubt = False
        self.broken = False
        self.enter(HIGH)
        return "the bypass of its low range is open" if self.bypass.is_open() else None

    def look(self, frame, at, n):
        """Samples of the high range: let go of the bypass once they rest."""
        if rested(self.words, frame, at, n) >= RESTED and not self.broken:
            self._move(self.bypass.let_go)

    def hold(self):
        """Close the bypass."""
        if self.bypass.is_free():
            self._move(self.bypass.hold)

    def _move(self, how):
        """A bypass that opens and closes again before LET_GO is set would not be seen."""
        self.words[_COUNT] = 0
        state = machine.disable_irq()
        how()
        self.words[_LET_GO] = 1
        machine.enable_irq(state)

    def moves(self):
        """A conversion in which it moves. True, once, where it has done so for too long: its state line is broken."""
        self.words[_COUNT] = 0
        self.waited += 1
        if self.waited == _LONGEST:
            self.broken = True
            self.hold()
            return True
        return False

    def enter(self, now):
        """Another range begins, or none: then `moves` wants to see each conversion."""
        self.now, self.waited = now, 0

    def range_of(self, word, converted):
        """The range of a slot's conversion. word: the slot's; converted: whether its reading shows a conversion. After
        an edge without one, or without a reading, that has consumed a move, the next conversion has no range."""
        ranged = word & 3
        edges = word & ~(_EDGE - 1)
        before = edges
        if word & _MOVED:
            before = (edges - _EDGE) & 0xFFFF
        if self.doubt or before != self.edges:
            ranged = MOVING
        self.edges = edges
        self.doubt = not converted and ranged == MOVING
        return ranged

    def waiting(self):
        """How many conversions of the range that has begun wait to be drained, at least."""
        return 0 if self.now == MOVING or self.doubt else stretch(self.mem, self.base, self.edges | self.now)


class Deaf:
    """In place of the switch, which knows the high range alone."""

    armed, state = False, IDLE

    def __init__(self, switch):
        self.switch = switch

    def sample(self, *what):
        pass

    def trip(self, *what):
        self.switch.trip(*what)


class Ranged(Sampler):
    """The sampler of a rail with two ranges."""

    def __init__(self, rail, chip, link, clock):
        super().__init__(rail, chip, link, clock)
        self.ranges = Ranges(rail, self.lane)
        self.alert.irq(self.interrupt, self.alert.IRQ_FALLING, hard=True)
        self.switch = self.deaf = None
        if self.guard is not None:  # two conversions are lost when it leaves the low range
            self.guard.patience_us -= 2 * chip.conversion_us
            if self.guard.patience_us <= 0:
                raise ValueError("rail %d: protect wants more ms" % rail["rail"])
            self.guard.arm()

    def interrupt(self, pin):
        """Handler of the ALERT edge (hard)."""
        self.ranges.mark()
        self.lane.interrupt(pin)

    def prepare(self):
        self._close()
        if self.switch is None:
            self.switch, self.deaf = self.watch, Deaf(self.watch)
        self._begin_high()
        super().prepare()

    def recover(self):
        self._close()
        self._begin_high()
        super().recover()
        self.config_id = self.ranges.config(self.config_id)

    def stop(self):
        super().stop()
        self.ranges.hold()

    def _begin_high(self):
        why = self.ranges.begin()
        if why:
            raise SensorError(why)
        self._enter(HIGH)

    def _enter(self, ranged):
        """Another range begins, with a new config id."""
        self._close()
        self.ranges.enter(ranged)
        self.config_id = self.ranges.config(self.config_id)
        self.watch = self.deaf if ranged else self.switch
        guard = self.guard
        if guard is not None:  # a low range's readings are in other steps, and none is near the limit
            guard.forget()
            if guard.state[1] != _NO_V:
                guard.state[0] = _NO_V if ranged else guard.raw_A
            self.lane.limit(_NO_A if ranged else guard.raw_A, guard.raw_V)

    def _sample(self, mem, at):
        chip = self.chip
        chip.decode(mem, at + DATA)
        converted = chip.flags & chip.CNVRF
        ranged = self.ranges.range_of(mem[at + _RANGE_OF_SLOT], converted)
        if converted and ranged != self.ranges.now:
            self._enter(ranged)
        if converted and ranged == MOVING and self.ranges.moves():
            self.link.say(wire.LOG, "rail %d: the bypass of its low range does not open" % self.rail["rail"])
        super()._sample(mem, at)

    def _keep(self, stamp):
        super()._keep(stamp)
        self._rest(1)

    def _drain(self):
        """As a Sampler's, but only samples of the range that has begun. A Sampler's ends where the period is learned:
        that is nearer meanwhile."""
        before = self.n
        waiting = self.ranges.waiting()
        less = max(0, self.learn_at - self.next - waiting)
        self.learn_at -= less
        moved = waiting and super()._drain()
        self.learn_at += less
        if not moved:
            return False
        self._rest(self.n - before if self.n > before else wire.MAX_SAMPLES - before)
        return True

    def _rest(self, n):
        """Let go of the bypass once n samples that were put into the frame last, and those before, rest; close it for a
        cut."""
        switch = self.switch
        if switch is not None and (switch.armed or switch.state is not IDLE):
            self.ranges.hold()
        elif not self.ranges.now:
            end = self.at if self.n else wire.S_FIRST + wire.MAX_SAMPLES * wire.SAMPLE_BYTES  # it is still there
            self.ranges.look(self.frame, end - n * wire.SAMPLE_BYTES, n)

    def _energy(self, mem, at):
        ranged = self.ranges.now
        if not self.beside:  # in place of a sample
            ranged = self.ranges.range_of(mem[at + _RANGE_OF_SLOT], mem[at + DATA] >> 8 & self.chip.CNVRF)
        if ranged != MOVING:  # else its registers hold what belongs to no range
            super()._energy(mem, at)
