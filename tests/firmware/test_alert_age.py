"""Stamps by the age that a state machine has counted (firmware/alert_age.py), on CPython: both buses' interrupts."""

import types

import pytest
import test_i2c_fifo
import test_spi_lane
import vipersource
from test_i2c_fifo import ALERT, fifo

__all__ = ["fifo"]  # the fixture

PIO = 0x50400000
COUNTER = PIO >> 14, 0xF0 >> 2, 0x24 >> 2, 1049  # of the second machine, at 125 MHz
IN_X = 0x4020


class Machine:
    """A machine's two words: a written instruction puts its X into the queue."""

    def __init__(self, X):
        self.X, self.pushed = X, []

    def __setitem__(self, word, instruction):
        assert (word, instruction) == (COUNTER[1], IN_X)
        self.pushed.append(self.X)

    def __getitem__(self, word):
        assert word == COUNTER[2]
        return self.pushed.pop(0)


def X_of(age_us):
    """What is left in X, as a signed word."""
    return -1 - round(age_us * 62.5)


@pytest.mark.parametrize(
    ("X", "stamp"),
    [(X_of(0), 1000), (X_of(13), 987), (X_of(112.4), 888), (X_of(8300), 1000 - 8300), (X_of(8400), 1000), (0, 1000)],
    ids=["just now", "13 us", "112 us", "8.3 ms", "too old", "no edge"],
)
def test_a_stamp_is_the_timer_less_the_age(fifo, X, stamp):
    names, block = fifo
    machine = Machine(X)
    names.ptr32 = lambda x, known=names.ptr32: machine if x == PIO else known(x)
    bus, _ = test_i2c_fifo.bus_of(fifo)
    lane = bus.lanes[0]
    assert lane.stamp_us() == 3 * lane.delay_us
    lane.age(COUNTER)
    assert lane.stamp_us() == 4
    block.now = 1000
    lane.interrupt(None)
    assert abs((lane.mem[lane.base + 22] - stamp + (1 << 29) & 0x3FFFFFFF) - (1 << 29)) <= 4 and machine.pushed == []
    lane.age(None)
    block.now = 1500
    lane.interrupt(None)
    assert lane.mem[lane.base + 22] == 1500


def test_an_edge_without_a_low_line_does_not_ask(fifo):
    names, block = fifo
    bus, _ = test_i2c_fifo.bus_of(fifo)
    bus.lanes[0].age(COUNTER)
    block.high = 1 << ALERT
    bus.lanes[0].interrupt(None)  # KeyError: nothing is at PIO
    assert not bus.lanes[0].waits()


@pytest.mark.parametrize(("age_us", "kind"), [(13, 1), (20, 1), (22, 1 | 4)])
def test_a_reading_that_begins_too_late_after_its_edge_is_torn(age_us, kind):
    """On SPI; by the age it is known, not assumed."""
    board, bus = test_spi_lane.made()
    machine = Machine(X_of(age_us))
    names = type(bus.lanes[0]).interrupt.__globals__
    names["ptr32"] = lambda x, known=names["ptr32"]: machine if x == PIO else known(x)
    lane = bus.lanes[0]
    lane.age(COUNTER)
    test_spi_lane.convert(board, 160)
    board.now = 160 + age_us
    lane.interrupt(None)
    assert lane.take() == kind and abs(lane.mem[lane.slot + 1] - 160) <= 1


def test_three_lines_have_a_machine_and_keep_it():
    made = []

    class StateMachine:
        def __init__(self, number, program, *, in_base, jmp_pin):
            assert in_base == jmp_pin
            made.append((number, in_base))

        def active(self, on):
            assert on == 1

    program = lambda **how: lambda f: how
    fakes = {
        "rp2": types.SimpleNamespace(StateMachine=StateMachine, asm_pio=program),
        "machine": types.SimpleNamespace(freq=lambda: 150_000_000),
    }
    age = vipersource.load("alert_age", {}, fakes)
    assert age.count(6, "GP6") == (0x140C0, 0xF0 >> 2, 0x24 >> 2, 874)  # 65536 / 75 counts
    assert [age.count(7, "GP7")[1:3], age.count(8, "GP8")[1:3]] == [(0x108 >> 2, 0x28 >> 2), (0x120 >> 2, 0x2C >> 2)]
    assert age.count(9, "GP9") is None and age.count(6, "GP6")[1] == 0xF0 >> 2
    assert made == [(5, "GP6"), (6, "GP7"), (7, "GP8")]
    assert age._age == {"autopush": True, "push_thresh": 32}
