"""The low range's bypass (firmware/bypass.py, ranges.py): its state machine's program on CPython, which
conversions belong to a range, when the firmware lets go."""

import struct
import types

import pytest
import test_i2c_fifo
import vipersource
from test_i2c_fifo import fifo

from ssdrig.meter import wire

__all__ = ["fifo"]  # the fixture

RELEASE, STATE = 2, 3  # GPIOs
FREED, OPEN = 1 << RELEASE, 1 << STATE
AGES, COUNTS = 0x50000000, 0x51000000  # addresses of two blocks' pages
MOST = 3_000_000
HIGH, LOW, MOVING = 0, 1, 2


# ---- the program


class Program(list):
    """What a PIO program's body calls, in order: (name, arguments)."""

    def __getattr__(self, name):
        return lambda *arguments, **_: self.append((name, arguments))


def assembled(**how):
    def make(function):
        program = Program()
        names = ("wrap_target", "wrap", "pull", "set", "wait", "mov", "jmp", "label")
        words = dict(block="block", pins="pins", pin="pin", x="x", osr="osr", x_dec="x_dec")
        function.__globals__.update({name: getattr(program, name) for name in names}, **words)
        function()
        program.how = how
        return program

    return make


assembled.OUT_LOW = "low"


class Machine:
    """One cycle an instruction; `pins`, the release, is what it drives."""

    def __init__(self, program):
        self.program = [step for step in program if step[0] not in ("wrap_target", "wrap", "label")]
        self.at, self.x, self.osr, self.pins, self.fifo = 0, 0, 0, 0, []

    def step(self, state):
        name, arguments = self.program[self.at]
        if name == "pull" and not self.fifo or name == "wait" and state != arguments[0]:
            return
        if name == "pull":
            self.osr = self.fifo.pop(0)
        elif name == "set":
            self.pins = arguments[1]
        elif name == "mov":
            self.x = self.osr
        elif name == "jmp":
            self.x -= 1
            if self.x >= 0:
                return
        self.at = (self.at + 1) % len(self.program)


class Pin:
    IN, OUT, PULL_DOWN = 0, 1, 2

    def __init__(self, gpio, *_, value=None):
        self.gpio = gpio

    def value(self):
        return 0


def bypass_module(chip="RP2350"):
    made = []

    class StateMachine:
        def __init__(self, number, program, *, set_base, in_base):
            made.append((number, set_base.gpio, in_base.gpio))

        def active(self, on):
            assert on == 1

    rp2 = types.SimpleNamespace(
        StateMachine=StateMachine, asm_pio=assembled, PIO=types.SimpleNamespace(OUT_LOW=2), asm_pio_encode=lambda *_: 0
    )
    fakes = {
        "rp2": rp2,
        "machine": types.SimpleNamespace(freq=lambda: 150_000_000, Pin=Pin),
        "sys": types.SimpleNamespace(implementation=types.SimpleNamespace(_machine=chip)),
    }
    return vipersource.load("bypass", {}, fakes), made


def test_the_machine_holds_what_the_comparator_closes():
    module, _ = bypass_module()
    machine = Machine(module._bypass)
    for state in (0, 1, 0, 1):
        machine.step(state)
    assert machine.pins == 0  # not let go
    machine.fifo.append(1000)
    for _ in range(4):
        machine.step(0)
    assert machine.pins == 1
    for _ in range(50):
        machine.step(1)
    assert machine.pins == 1  # open
    for _ in range(3):
        machine.step(0)
    assert machine.pins == 0 and machine.x == 1000
    for _ in range(100):
        machine.step(1)
    assert machine.pins == 0 and machine.x == 900  # counts, whatever the line does
    for _ in range(2000):
        machine.step(0)
    machine.fifo.append(1000)
    for _ in range(3):
        machine.step(0)
    assert machine.pins == 1


def test_two_rails_have_a_machine():
    module, made = bypass_module()
    rows = [{"rail": n, "low": {"release": 2 * n, "state": 2 * n + 1}} for n in range(3)]
    counters = [module.Bypass(row).counter for row in rows[:2]]
    assert made == [(10, 0, 1), (11, 2, 3)]
    assert counters == [(0x14100, 0x108 >> 2, 0x28 >> 2, 437, MOST), (0x14100, 0x120 >> 2, 0x2C >> 2, 437, MOST)]
    with pytest.raises(ValueError, match="two"):
        module.Bypass(rows[2])
    with pytest.raises(ValueError, match="RP2350"):
        bypass_module("RP2040")[0].Bypass(rows[0])


# ---- the interrupt


class Words:
    """A machine's two words: a written instruction puts into the queue what X then is."""

    def __init__(self):
        self.x, self.queue = 0, []

    def __setitem__(self, word, instruction):
        assert instruction == 0x4020
        self.queue.append(self.x)

    def __getitem__(self, word):
        return self.queue.pop(0)


class Edges:
    """A lane with two ranges, and what its interrupt makes of the lines. ALERT falls `late_us` before the interrupt."""

    late_us = 10

    def __init__(self, fifo):
        names, self.block = fifo
        self.ages, self.counts = Words(), Words()
        pages = {AGES: self.ages, COUNTS: self.counts}
        names.ptr32 = lambda x, known=names.ptr32: pages[x] if x in pages else known(x)
        self.bus, _ = test_i2c_fifo.bus_of(fifo)
        self.lane = self.bus.lanes[0]
        self.lane.age((AGES >> 14, 0, 4, 1049))
        module = ranges_module()
        module.ptr32 = names.ptr32
        self.ranges = module.Ranges(RAIL, self.lane)
        assert self.ranges.begin() is None
        self.block.now = 0

    def range(self, levels, closed_us=None, after_us=1102, reading="conversion"):
        """Of the conversion whose edge comes now. closed_us: since when the bypass has been closed, before now.
        reading: "none" where it shows no conversion, "lost" where there is no reading."""
        self.block.now += after_us
        self.block.high = levels
        self.ages.x = -1 - round(self.late_us * 62.5)
        self.counts.x = -1 if closed_us is None else MOST - closed_us * 125
        self.ranges.mark()
        self.lane.interrupt(None)
        word = self.lane.mem[self.lane.base + 65]
        return None if reading == "lost" else self.ranges.range_of(word, reading == "conversion")


@pytest.fixture
def edges(fifo):
    return Edges(fifo)


def test_a_bypass_that_stays_has_a_range(edges):
    assert [edges.range(0) for _ in range(3)] == [HIGH] * 3
    assert edges.range(FREED | OPEN) == MOVING
    assert [edges.range(FREED | OPEN) for _ in range(3)] == [MOVING, LOW, LOW]  # opened at any time before the first


def opened(edges):
    assert [edges.range(FREED | OPEN) for _ in range(3)][2] == LOW


@pytest.mark.parametrize(
    ("before_edge_us", "ranges"),
    [
        (1000, (MOVING, HIGH, HIGH)),
        (20, (MOVING, HIGH, HIGH)),
        (8, (LOW, MOVING, HIGH)),
        (0, (LOW, MOVING, HIGH)),
        (-8, (LOW, MOVING, HIGH)),
    ],
)
def test_one_conversion_is_lost_when_it_closes(edges, before_edge_us, ranges):
    """That in which it does; just before the edge, whose conversion of the current is over, or between edge and
    interrupt, the next."""
    opened(edges)
    assert (edges.range(0, edges.late_us + before_edge_us), edges.range(0), edges.range(0)) == ranges


def test_a_bypass_let_go_is_not_taken_for_closed(edges):
    """The line that reports it may be broken."""
    assert [edges.range(FREED) for _ in range(5)] == [MOVING] * 5
    assert [edges.range(0) for _ in range(3)] == [MOVING, MOVING, HIGH]


@pytest.mark.parametrize("reading", ["none", "lost"])
def test_an_edge_without_a_conversion_does_not_use_up_a_move(edges, reading):
    """The conversion that ends after it is the one in which the bypass has moved."""
    opened(edges)
    edges.range(0, 500, after_us=600, reading=reading)
    assert [edges.range(0, after_us=502), *(edges.range(0) for _ in range(3))] == [MOVING, HIGH, HIGH, HIGH]
    edges.range(FREED | OPEN, after_us=300, reading=reading)
    assert [edges.range(FREED | OPEN, after_us=802), edges.range(FREED | OPEN)] == [MOVING, LOW]


@pytest.mark.parametrize("readings", [("none", "none"), ("lost", "none"), ("none", "lost"), ("lost", "lost")])
def test_two_edges_without_a_conversion_do_not_use_up_a_move(edges, readings):
    opened(edges)
    for reading in readings:
        edges.range(0, 300, after_us=400, reading=reading)
    assert [edges.range(0, after_us=302), edges.range(0)] == [MOVING, HIGH]


def test_an_edge_at_rest_without_a_conversion_costs_nothing(edges):
    readings = "conversion", "none", "conversion", "lost", "conversion"
    assert [edges.range(0, after_us=300, reading=reading) for reading in readings] == [HIGH] * 3 + [None, HIGH]


def test_a_count_of_edges_that_wraps_is_no_gap(edges):
    for k in range(9000):
        levels = 0 if k % 2 else OPEN | FREED
        assert edges.range(levels) == MOVING
        assert edges.lane.mem[edges.lane.base + 65] < 1 << 16
    assert edges.range(0) == HIGH


def test_one_that_should_be_closed_and_is_not_has_no_range(edges):
    assert [edges.range(OPEN) for _ in range(5)] == [MOVING] * 5


def test_one_that_has_opened_and_closed_between_two_edges_is_seen(edges):
    assert edges.range(0) == HIGH
    edges.ranges.look(frame_of(*[0] * 64), 0, 64)
    assert [edges.range(0) for _ in range(3)] == [MOVING, MOVING, HIGH]


def test_one_that_the_firmware_closes_does_not_ask_for_its_age(edges):
    opened(edges)
    edges.ranges.bypass.free = True
    edges.ranges.hold()
    assert [edges.range(0) for _ in range(3)] == [MOVING, MOVING, HIGH] and edges.counts.queue == []


def test_a_rail_without_a_low_range_has_none(fifo):
    bus, _ = test_i2c_fifo.bus_of(fifo)
    lane = bus.lanes[0]
    fifo[1].now, fifo[1].high = 500, FREED | OPEN
    lane.interrupt(None)
    assert lane.mem[lane.base + 65] == 0


# ---- when to let go


class FakeBypass:
    free = is_up = False
    lets = 0
    bits, counter = (FREED, OPEN), (COUNTS >> 14, 0, 4, 524, MOST)

    def __init__(self, rail):
        assert rail is RAIL

    def is_open(self):
        return self.is_up

    def is_free(self):
        return self.free

    def let_go(self):
        self.free, self.lets = True, self.lets + 1

    def hold(self):
        self.free = False


def frame_of(*currents):
    return b"".join(struct.pack("<H", 1102) + bytes(3) + raw.to_bytes(3, "little", signed=True) for raw in currents)


RAIL = {"rail": 0, "bus": "I2C0", "alert": 6, "current_lsb_pA": 39_062_500}
RAIL["low"] = {"shunt_uOhm": 508_000, "shunt_tolerance_ppm": 1150, "release": RELEASE, "state": STATE}


def ranges_module():
    machine = types.SimpleNamespace(disable_irq=lambda: 7, enable_irq=lambda state: None)
    of = lambda **names: types.SimpleNamespace(**names)
    fakes = {"machine": machine, "bypass": of(Bypass=FakeBypass), "sampler": of(Sampler=object), "wire": wire}
    fakes |= {"ina228": of(SensorError=Exception), "lane": of(DATA=3), "switch": of(IDLE="idle")}
    return vipersource.load("ranges", {}, fakes)


def lane_of(age):
    mem = [0] * 100
    mem[8], mem[17] = 20, age
    return types.SimpleNamespace(mem=mem, base=0)


@pytest.fixture
def ranges():
    made = ranges_module().Ranges(RAIL, lane_of(age=1))
    assert made.begin() is None
    return made


def test_a_rail_whose_stamps_are_late_has_no_low_range():
    with pytest.raises(ValueError, match="three"):
        ranges_module().Ranges(RAIL, lane_of(age=0))


def test_it_lets_go_after_64_conversions_below_20_mA(ranges):
    look = lambda *currents: ranges.look(frame_of(*currents), 0, len(currents))
    look(*[512] * 40)
    look(600)
    look(*[512] * 40, *[-512] * 23)
    assert ranges.bypass.lets == 0
    look(-512)
    assert ranges.bypass.lets == ranges.words[7] == 1


def test_configs_tell_the_ranges_apart(ranges):
    ids, now = [0], HIGH
    for now in (MOVING, LOW, MOVING, HIGH, MOVING, HIGH):
        ranges.enter(now)
        ids.append(ranges.config(ids[-1]))
    assert ids == [0, 2, 5, 6, 8, 10, 12]
    assert ranges.config(255) == 0 and ranges.config(254) == 0 and ranges.config(252) == 0


def test_it_drains_until_the_next_range(ranges):
    ranges.mem[0], ranges.mem[1], ranges.mem[6], ranges.mem[7] = 0x10001, 0xFFFE, 30, 7  # from slot 6 to slot 0
    for slot, ranged in ((6, LOW), (7, LOW), (0, HIGH)):
        ranges.mem[30 + 8 * slot + 2] = ranged
    ranges.mem[0] &= 0xFFFF
    assert ranges.waiting() == 0
    for now, waiting in ((LOW, 2), (MOVING, 0)):
        ranges.enter(now)
        assert ranges.waiting() == waiting
    ranges.mem[1] = 0
    ranges.enter(HIGH)
    assert ranges.waiting() == 1


def test_a_line_that_is_broken_closes_it_for_good(ranges):
    look = lambda *currents: ranges.look(frame_of(*currents), 0, len(currents))
    look(*[0] * 64)
    ranges.enter(MOVING)
    assert [ranges.moves() for _ in range(40)].index(True) == 31
    assert not ranges.bypass.free
    ranges.enter(HIGH)
    look(*[0] * 200)
    assert ranges.bypass.lets == 1
    assert ranges.begin() is None and not ranges.broken
    ranges.bypass.is_up = True
    assert "open" in ranges.begin()
