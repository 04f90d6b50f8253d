"""firmware/i2c_fifo.py, its very source on CPython: commands, alarms, what is torn, lost or late."""

import types
from array import array
from unittest import mock

import pytest
import vipersource

TAR, DATA_CMD, RAW_INTR, CLR_ABRT, ENABLE, STATUS, RXFLR, TIMERAWL = 0x04, 0x10, 0x34, 0x54, 0x6C, 0x70, 0x78, 0x28
READ, STOP, RESTART = 1 << 8, 1 << 9, 1 << 10
SAMPLE, EXTRA, TORN = 1, 2, 4
I2C0, TIMER, PIO1, SIO = 0x40044000, 0x40054000, 0x50300000, 0xD0000000  # RP2040 data sheet 2.2
ALERT = 6  # GPIO of the first lane's, the next ones' follow


class Alarm(list):
    """What was written to the queue of PIO1's first machine, in us."""

    def __setitem__(self, word, cycles):
        assert word == 4 and cycles % 125 == 0
        self.append(cycles // 125)


class Sio:
    """ALERT lines."""

    def __init__(self, block):
        self.block = block

    def __getitem__(self, word):
        assert 4 * word == 0x04
        return self.block.high


class Registers:
    """A block that keeps a trace; what it answers is set by the test."""

    def __init__(self):
        self.trace, self.answers, self.received, self.now = [], {TAR: 0, RAW_INTR: 0, STATUS: 0}, [], 0
        self.alarm, self.handlers, self.looks = Alarm(), [], 0
        self.high = 0  # mask of the GPIOs whose ALERT is not low

    def __getitem__(self, word):
        if 4 * word == RXFLR:
            self.looks += 1
            return len(self.received)
        if 4 * word == DATA_CMD:
            return self.received.pop(0)
        if 4 * word == CLR_ABRT:
            self.answers[RAW_INTR] = 0
            return 0
        return self.now if 4 * word == TIMERAWL else self.answers[4 * word]

    def __setitem__(self, word, value):
        self.trace.append((4 * word, value))
        self.answers[4 * word] = value


@pytest.fixture
def fifo():
    """(names of i2c_fifo.py, registers of I2C0): viper functions as Python, addresses leading to the registers."""
    block = Registers()
    time = types.SimpleNamespace(ticks_us=lambda: block.now, ticks_diff=lambda a, b: a - b)
    fake_sys = types.SimpleNamespace(implementation=types.SimpleNamespace(_machine="Raspberry Pi Pico with RP2040"))
    oneshot = types.SimpleNamespace(PAGE=PIO1 >> 14, TXF=4, start=lambda handler: block.handlers.append(handler))
    machine = types.SimpleNamespace(freq=lambda: 125_000_000)
    fakes = {
        "time": time,
        "sys": fake_sys,
        "machine": machine,
        "oneshot": oneshot,
        "lane": vipersource.load("lane", {}, {}),
        "readback": vipersource.load("readback", {}, {"machine": machine}),
    }
    return vipersource.load("i2c_fifo", {I2C0: block, TIMER: block, PIO1: block.alarm, SIO: Sio(block)}, fakes), block


def bus_of(fifo, addresses=(0x40, 0x41)):
    names, block = fifo
    mem = array("i", [0] * (names.ROOM[0] + names.ROOM[1] * len(addresses)))
    chips = [(address, ALERT + n) for n, address in enumerate(addresses)]
    bus = names.Bus(lambda Hz: None, lambda: None, names.PAGE[0], chips, 1_096_000, mem)
    for lane in bus.lanes:
        lane.script(SAMPLE, ((0x0B, 2), (0x05, 3), (0x07, 3)))
        lane.script(EXTRA, ((0x09, 5), (0x0A, 5), (0x06, 2)))
        lane.restart(500)
    return bus, block


def test_a_sample_is_eleven_commands(fifo):
    """Pointer, then reads from a RESTART to a STOP; the target address only changes while the block is disabled."""
    bus, block = bus_of(fifo)
    block.now = 1000
    bus.lanes[1].interrupt(None)
    assert block.trace == [
        (ENABLE, 0),
        (TAR, 0x41),
        (ENABLE, 1),
        (DATA_CMD, 0x0B),
        (DATA_CMD, RESTART | READ),
        (DATA_CMD, READ | STOP),
        (DATA_CMD, 0x05),
        (DATA_CMD, RESTART | READ),
        (DATA_CMD, READ),
        (DATA_CMD, READ | STOP),
        (DATA_CMD, 0x07),
        (DATA_CMD, RESTART | READ),
        (DATA_CMD, READ),
        (DATA_CMD, READ | STOP),
    ]
    block.received = list(range(8))
    assert bus.lanes[0].take() == 0 and bus.lanes[1].take() == 1
    lane = bus.lanes[1]
    assert list(lane.mem[lane.slot + 1 : lane.slot + 6]) == [1000, 0, 0x000102, 0x030405, 0x060700]
    lane.done()
    assert lane.take() == 0
    block.trace.clear()
    block.now = 2000
    lane.interrupt(None)
    assert block.trace[0] == (ENABLE, 1) and TAR not in dict(block.trace)  # it is the target already


def test_a_lane_alone_begins_before_it_moves(fifo):
    """What moving takes is not added to what the next reading is late by; where another address comes next it is moved
    first, because the block then forgets it."""
    for addresses, moved_first in (((0x40,), False), ((0x40, 0x41), True)):
        bus, block = bus_of(fifo, addresses)
        bus.lanes[0].interrupt(None)
        block.trace.clear()
        begun = []

        class Bytes(list):
            def pop(self, at):
                begun.append(len(block.trace))
                return super().pop(at)

        block.received = Bytes(range(8))
        block.now += 1000
        bus.lanes[-1].interrupt(None)
        assert len(begun) == 8 and {n == 0 for n in begun} == {moved_first} and len(block.trace) >= 12
        lane = bus.lanes[0]
        assert lane.take() == SAMPLE and list(lane.mem[lane.slot + 3 : lane.slot + 6]) == [0x000102, 0x030405, 0x060700]


@pytest.mark.parametrize(("there", "kind"), [(5, SAMPLE | TORN), (6, SAMPLE), (8, SAMPLE)])
def test_an_edge_tears_a_reading_whose_last_register_has_not_begun(fifo, there, kind):
    bus, block = bus_of(fifo, (0x40,))
    lane = bus.lanes[0]
    lane.interrupt(None)
    block.received, block.answers[STATUS] = list(range(there)), 1 << 5
    block.now = 234
    lane.interrupt(None)
    block.received, block.answers[STATUS] = list(range(8)), 0
    block.now = 500
    assert lane.take() == kind


def test_accumulators_instead_of_a_sample_begin_earlier(fifo):
    """Their last register comes later in the script, by 18 clocks."""
    for late_us, kind in ((82, EXTRA), (84, EXTRA | TORN)):
        bus, block = bus_of(fifo, (0x40,))
        lane = bus.lanes[0]
        lane.script_instead(((0x0B, 2), (0x0A, 5), (0x09, 5)))
        lane.restart(100)
        lane.ask_instead()
        lane.mem[lane.base + 22] = 1000 - late_us  # the stamp of its edge
        lane.mem[lane.base + 2], block.now = EXTRA, 1000
        assert fifo[0].step(lane.mem) == 1
        block.received = list(range(12))
        assert lane.take() == kind


def test_the_stop_is_waited_for(fifo):
    bus, block = bus_of(fifo)
    bus.lanes[0].interrupt(None)
    block.received, block.answers[STATUS] = list(range(8)), 1 << 5
    assert bus.lanes[0].take() == 0
    block.answers[STATUS] = 0
    assert bus.lanes[0].take() == 1


def test_two_at_once_one_after_the_other(fifo):
    bus, block = bus_of(fifo)
    bus.lanes[0].interrupt(None)
    block.now = 10
    bus.lanes[1].interrupt(None)
    assert block.answers[TAR] == 0x40
    block.received = [7] * 8
    assert bus.lanes[0].take() == 1 and block.answers[TAR] == 0x41
    block.received = [9] * 8
    assert bus.lanes[1].take() == 1 and bus.lanes[1].mem[bus.lanes[1].slot + 1] == 10


def test_an_alarm_comes_when_the_bus_gets_free_for_the_next(fifo):
    """Set once, for what is left of the 3 * 31 + 9 * 8 clocks, 35 us early; its handler takes what was read and begins
    the next."""
    bus, block = bus_of(fifo, (0x40, 0x41, 0x44))
    [ring] = block.handlers
    bus.lanes[0].interrupt(None)
    assert block.alarm == []  # nobody waits
    block.now = 40
    bus.lanes[1].interrupt(None)
    assert block.alarm == [91]  # of 1008 ns
    block.now = 50
    bus.lanes[2].interrupt(None)
    assert block.alarm == [91] and block.answers[TAR] == 0x40
    block.now = 131  # it looks again and again, in vain: the block is slower than it should be
    ring(None)
    assert block.looks > 40 and block.alarm == [91, 12] and block.answers[TAR] == 0x40
    block.now, block.received = 177, [5] * 8
    ring(None)
    assert block.alarm == [91, 12, 131] and block.answers[TAR] == 0x41
    block.now, block.received = 342, [6] * 8
    ring(None)
    assert len(block.alarm) == 3 and block.answers[TAR] == 0x44  # nobody waits behind it
    block.received = [7] * 8
    assert [lane.take() for lane in bus.lanes] == [SAMPLE] * 3
    assert [lane.mem[lane.slot + 3] for lane in bus.lanes] == [0x050505, 0x060606, 0x070707]


def test_an_alarm_while_the_main_loop_works_on_the_state(fifo):
    """It is only noted; the main loop, done, sees that a lane waits and no alarm is set, and looks again."""
    names, block = fifo
    bus, _ = bus_of(fifo)
    [ring] = block.handlers
    bus.lanes[0].interrupt(None)
    block.now = 40
    bus.lanes[1].interrupt(None)
    block.received = [5] * 8
    step, calls = names.step, []

    def interrupted(mem):
        out = step(mem) if calls else 1  # the first finds the script running; then the alarm comes, the lock still set
        if not calls:
            ring(None)
        calls.append(block.answers[TAR])
        return out

    with mock.patch.object(names, "step", interrupted):
        assert bus.lanes[0].take() == SAMPLE
    assert calls == [0x40, 0x41] and bus.mem[0] == 0


def test_a_lane_alone_sets_no_alarm_and_one_that_must_begin_early_is_taken_by_its_edge(fifo):
    bus, block = bus_of(fifo, (0x40,))
    lane = bus.lanes[0]
    assert block.handlers == []
    lane.restart(44)
    lane.interrupt(None)
    block.received = [1] * 8
    block.now = 234
    assert lane.take() == 0  # the main loop leaves it alone
    lane.interrupt(None)
    assert lane.take() == SAMPLE and block.alarm == []
    lane.done()
    block.received = [2] * 8
    block.now = 234 + 300  # no edge came: the stream ends
    assert lane.take() == SAMPLE and lane.mem[lane.slot + 3] == 0x020202


def test_what_may_belong_to_two_conversions_is_torn(fifo):
    """Begun too late, or without its last register at the next edge. Complete but not yet fetched is neither."""
    names, block = fifo
    bus, _ = bus_of(fifo)
    lane = bus.lanes[0]
    bus.mem[0] = 1  # the main loop works on the state
    lane.interrupt(None)
    assert block.trace == []
    block.now = 501
    bus.mem[0] = 0
    assert lane.take() == 0
    block.received = [1] * 8
    assert lane.take() == SAMPLE | TORN
    lane.done()
    lane.interrupt(None)
    block.received = [1] * 5
    lane.interrupt(None)
    block.received += [1] * 3
    assert lane.take() == SAMPLE | TORN
    lane.done()
    block.received = [1] * 8
    lane.interrupt(None)
    assert lane.take() == SAMPLE


def test_a_nack_is_an_error_of_its_lane_and_the_next_goes_on(fifo):
    bus, block = bus_of(fifo)
    bus.lanes[0].interrupt(None)
    bus.lanes[1].interrupt(None)
    block.received, block.answers[RAW_INTR] = [1, 2], 1 << 6
    with pytest.raises(OSError) as caught:
        bus.lanes[0].take()
    assert caught.value.args[0] == 5 and block.answers[RAW_INTR] == 0
    block.received = [3] * 8
    assert bus.lanes[1].take() == 1


def test_a_block_that_hangs_is_given_up(fifo):
    bus, block = bus_of(fifo)
    bus.lanes[0].interrupt(None)
    block.now += 5001
    with pytest.raises(OSError) as caught:
        bus.lanes[0].take()
    assert caught.value.args[0] == 110 and block.trace[-1] == (ENABLE, 0)


def test_a_full_ring_drops_the_newest_and_keeps_the_rest(fifo):
    bus, block = bus_of(fifo)
    lane = bus.lanes[0]
    for k in range(70):
        block.now = 1000 * k
        lane.interrupt(None)
        block.received = [k] * 8
    stamps = []

    def drained(n):
        while n and lane.take():
            stamps.append(lane.mem[lane.slot + 1])
            lane.done()
            n -= 1

    def more(first):
        for k in range(first, first + 5):
            block.now = 1000 * k
            lane.interrupt(None)
            block.received = [1] * 8

    drained(20)
    more(70)  # 20 are free, but a gap behind each few samples would cost the main loop more than it has
    drained(20)
    more(75)  # 40 are free
    drained(64)
    assert stamps == [1000 * k for k in range(64)] + [1000 * k for k in range(75, 80)]


ACCUMULATORS = [0x09, 0x0A, 0x06]


def begun(block):
    """Registers of the scripts begun since it was asked last."""
    registers = [v for r, v in block.trace if r == DATA_CMD and v < 256]
    block.trace.clear()
    return registers


def test_the_accumulators_follow_a_sample_or_are_dropped(fifo):
    """Asked for, they are read right behind the next sample; an edge tears them; too late, they are not begun, but
    behind a later one."""
    bus, block = bus_of(fifo)
    lane = bus.lanes[0]

    def sample():
        block.received = [0] * 8
        assert lane.take() == SAMPLE
        lane.done()

    lane.ask()
    lane.interrupt(None)
    begun(block)
    block.now += 501
    sample()
    assert begun(block) == [] and not lane.waits()  # too late
    lane.interrupt(None)
    begun(block)
    sample()
    assert begun(block) == ACCUMULATORS
    lane.interrupt(None)
    block.received = list(range(12))
    assert lane.take() == EXTRA | TORN
    lane.done()
    lane.ask()
    sample()
    assert begun(block)[-3:] == ACCUMULATORS
    block.received = list(range(12))
    assert lane.take() == EXTRA and begun(block) == []
    lane.done()
    lane.interrupt(None)
    sample()
    assert begun(block)[-3:] != ACCUMULATORS and not lane.waits()  # once


@pytest.mark.parametrize("order", [(1, 2, 0), (0, 1, 2), (2, 0, 1), (1, 0, 2)])
@pytest.mark.parametrize("last", [0, 1, 2])
def test_who_has_waited_longest_is_next(fifo, order, last):
    """Three edges meet while the main loop has the state. Taken in turn, the first of them could be the third, and too
    late: one of 4000 conversions of three rails was lost so."""
    bus, block = bus_of(fifo, (0x40, 0x41, 0x42))
    block.now = 1000
    bus.lanes[last].interrupt(None)
    block.received = list(range(8))
    assert bus.lanes[last].take() == SAMPLE
    bus.lanes[last].done()
    bus.mem[0] = 1  # LOCK: an interrupt only notes
    for k, lane in enumerate(order):
        block.now = 2000 + 20 * k
        bus.lanes[lane].interrupt(None)
    bus.mem[0] = 0
    began = []
    for k in range(3):
        block.now = 2100 + 178 * k
        bus.poll()
        began.append(block.answers[TAR] - 0x40)
        block.received = list(range(8))
    bus.poll()
    assert tuple(began) == order
    assert [bus.lanes[lane].take() for lane in order] == [SAMPLE] * 3


def test_the_accumulators_yield_to_two_other_lanes(fifo):
    """The second of them would wait too long for the bus."""
    bus, block = bus_of(fifo, (0x40, 0x41, 0x44))
    for lane in bus.lanes:
        lane.beside(165, 201, 540, 970)
    for now, lane in ((100, bus.lanes[1]), (300, bus.lanes[2]), (900, bus.lanes[0])):
        block.now = now
        if lane is bus.lanes[0]:
            lane.ask()
        lane.interrupt(None)
        block.received = [0] * 8
        begun(block)
        assert lane.take() == SAMPLE  # lane 1's next edge is due at 1070, lane 2's at 1270
        lane.done()
    assert begun(block) == ACCUMULATORS
    block.received = [0] * 12
    assert bus.lanes[0].take() == EXTRA
    bus.lanes[0].done()
    block.now = 1870
    bus.lanes[0].ask()
    bus.lanes[0].interrupt(None)
    begun(block)
    block.received = [0] * 8
    assert bus.lanes[0].take() == SAMPLE and begun(block) == []  # none was seen since: both are overdue


def test_a_script_that_does_not_fit_is_refused(fifo):
    bus, _ = bus_of(fifo)
    with pytest.raises(ValueError):
        bus.lanes[0].script(1, ((1, 5), (2, 5), (3, 3)))
