"""firmware/spi_lane.py, its very source, on CPython: against registers that record what is done to them, behind which
the INA229's model answers. So driver, frames and model agree bit for bit."""

import re
import sys
import types
from array import array
from unittest import mock

import pytest
import vipersource
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ina228_model import ROOT, load
from test_ina228_model import model as ina228_model

with mock.patch.dict(sys.modules, {"ina228_model": ina228_model}):
    ina229_model = load(ROOT / "host/ssdrig/virtual/board/ina229_model.py")

SAMPLE, EXTRA, TORN = 1, 2, 4
SPI0 = {"RP2040": 0x4003C000, "RP2350": 0x40080000}  # RP2040 data sheet 2.2, RP2350 data sheet 2.2
TIMER = {"RP2040": 0x40054000, "RP2350": 0x400B0000}
OUT_SET, OUT_CLR = {"RP2040": 0x14, "RP2350": 0x18}, {"RP2040": 0x18, "RP2350": 0x20}  # 2.3.1.7 and 3.1.11
SIO = 0xD0000000
DR, SR, GPIO_IN, TIMERAWL = 0x08, 0x0C, 0x04, 0x28
CS, ALERT = 1, 6
RAIL = {"fine": True, "vbus_us": 50, "vshunt_us": 50, "temp_us": None, "current_lsb_pA": 9_765_625, "shunt_uOhm": 8000}


class Board:
    """SPI block, SIO and timer in one: every byte takes no time but is in the trace, with the chip selects."""

    def __init__(self, chips, kind):
        """chips: {GPIO of the chip select: (model, GPIO of ALERT)}"""
        self.chips, self.kind = chips, kind
        self.trace, self.received, self.now, self.selected, self.off = [], [], 0, None, False
        self.while_reading = None  # called once, at the next byte

    def known(self):
        return {SPI0[self.kind]: _Access(self.spi), SIO: _Access(self.sio), TIMER[self.kind]: _Access(self.timer)}

    def timer(self, at, value):
        assert at == TIMERAWL and value is None
        return self.now

    def sio(self, at, value):
        if value is None:
            assert at == GPIO_IN
            return sum(chip.alert() << alert for chip, alert in self.chips.values())
        low = {OUT_SET[self.kind]: False, OUT_CLR[self.kind]: True}[at]
        (cs,) = [cs for cs in self.chips if value == 1 << cs]
        assert low == (self.selected is None)
        self.trace.append(("low" if low else "high", cs))
        self.selected = self.chips[cs][0] if low else None
        if not self.off:
            (self.selected.select if low else self.chips[cs][0].deselect)()

    def spi(self, at, value):
        if at == SR:
            return 1 << 2 if self.received else 0
        assert at == DR
        if value is None:
            return self.received.pop(0) if self.received else 0
        if self.off:
            return None
        self.trace.append(value)
        self.received.append(self.selected.exchange(value, self.now * 1000))
        assert len(self.received) <= 8
        if self.while_reading:
            once, self.while_reading = self.while_reading, None
            once()


class _Access:
    def __init__(self, function):
        self.function = function

    def __getitem__(self, word):
        return self.function(4 * word, None)

    def __setitem__(self, word, value):
        self.function(4 * word, value)


def made(chips=1, kind="RP2040"):
    """(board, bus): converting INA229s with ALERT at conversion ready, their drivers in `board.drivers`."""
    models = {
        CS + 4 * k: (ina229_model.INA229(lambda *t: (0.5, 5.0), 0, 8000, noise=0), ALERT + k) for k in range(chips)
    }
    board = Board(models, kind)
    fakes = {
        "sys": types.SimpleNamespace(implementation=types.SimpleNamespace(_machine=f"Raspberry Pi Pico with {kind}")),
        "lane": vipersource.load("lane", {}, {}),
    }
    names = vipersource.load("spi_lane", board.known(), fakes)
    mem = array("i", [0] * (names.ROOM[0] + names.ROOM[1] * len(models)))
    bus = names.Bus(lambda: "spi", names.PAGE[0], [(cs, alert) for cs, (_, alert) in models.items()], mem)
    with mock.patch.dict(sys.modules, {"ina228": load(ROOT / "firmware/ina228.py")}):
        driver = load(ROOT / "firmware/ina229.py")
    board.drivers = [driver.INA229(lane, RAIL) for lane in bus.lanes]
    for d in board.drivers:
        d.identify()
        d.prepare()
        d.lane.script(SAMPLE, d.SAMPLE)
        d.lane.script(EXTRA, d.EXTRA)
        d.lane.restart(20)
        d.begin()
    board.trace.clear()
    return board, bus


def convert(board, to_us):
    """Let time pass: the chips wake up in 60 us and then convert every 100 us, from 60 to 160, 260 .."""
    board.now = to_us
    for chip, _ in board.chips.values():
        chip.advance(to_us * 1000)


@pytest.mark.parametrize("kind", SPI0)
def test_a_sample_is_three_frames(kind):
    """Each between fall and rise of its chip select, read commands in the order current, flags, voltage."""
    board, bus = made(kind=kind)
    convert(board, 160)
    board.now = 181
    lane = bus.lanes[0]
    lane.interrupt(None)
    assert board.trace == [
        ("low", CS),
        0x07 << 2 | 1,
        0,
        0,
        0,
        ("high", CS),
        ("low", CS),
        0x0B << 2 | 1,
        0,
        0,
        ("high", CS),
        ("low", CS),
        0x05 << 2 | 1,
        0,
        0,
        0,
        ("high", CS),
    ]
    assert lane.take() == SAMPLE and lane.mem[lane.slot + 1] == 181
    d = board.drivers[0]
    assert d.decode(lane.mem, lane.slot + 3)
    current, vbus = round(0.5 * 8e-3 / 78.125e-9), round(5 / 195.3125e-6)
    assert (d.flags, d.current, d.vbus) == (0xC003, current * 4096 // d.cal, vbus) and d.cal == 4096
    lane.done()
    assert lane.take() == 0 and not lane.waits()


@settings(max_examples=100, deadline=None)
@given(st.integers(-(2**19), 2**19 - 1), st.integers(0, 2**19 - 1))
def test_any_value_comes_through(current, vbus):
    board, bus = made()
    convert(board, 160)
    chip = board.chips[CS][0]
    chip.current, chip.vbus = current, vbus
    lane, d = bus.lanes[0], board.drivers[0]
    lane.interrupt(None)
    lane.take()
    assert d.decode(lane.mem, lane.slot + 3)
    assert (d.signed() - (d.signed() >> 23 << 24), d.vbus) == (current, vbus)


def test_extra_comes_behind_a_sample_when_it_was_asked_for():
    """Both at one edge, with one stamp; then samples alone again."""
    board, bus = made()
    lane = bus.lanes[0]
    lane.ask()
    for t in (160, 260):
        convert(board, t)
        lane.interrupt(None)
    chip = board.chips[CS][0]
    chip.energy, chip.charge = 0x123456789A, -2
    lane.ask()
    convert(board, 360)
    chip.energy, chip.charge = 0x123456789A, -2
    lane.interrupt(None)
    kinds = []
    while kind := lane.take():
        kinds.append((kind, lane.mem[lane.slot + 1]))
        words = list(lane.mem[lane.slot + 3 : lane.slot + 7])
        lane.done()
    assert kinds == [(SAMPLE, 160), (EXTRA, 160), (SAMPLE, 260), (SAMPLE, 360), (EXTRA, 360)]
    assert words == [0xFFFFFF, 0xFFFE12, 0x345678, 0x9A0000]  # charge, energy, temperature
    registers = [b >> 2 for a, b in zip(board.trace, board.trace[1:]) if a == ("low", CS)]
    assert registers[-9:] == [0x07, 0x0B, 0x05] + [
        0x07,
        0x0B,
        0x0A,
        0x05,
        0x09,
        0x06,
    ]  # what the next shunt conversion replaces first


def test_torn_by_a_conversion_that_ends_meanwhile():
    """ALERT is low again after the last frame: voltage or current may be the next conversion's."""
    board, bus = made()
    lane = bus.lanes[0]
    lane.ask()
    convert(board, 160)
    board.while_reading = lambda: None
    count = [0]

    def late():
        count[0] += 1
        if count[0] == 6:  # behind the flags' frame
            convert(board, 260)
        else:
            board.while_reading = late

    board.while_reading = late
    lane.interrupt(None)
    assert lane.take() == SAMPLE | TORN
    lane.done()
    assert lane.take() == EXTRA | TORN
    lane.done()
    lane.interrupt(None)  # the edge of 260 has its own interrupt
    assert lane.take() == SAMPLE


def test_an_edge_with_alert_high_is_no_conversions():
    """Nothing is read for it, held or not, and the stamp of an edge that waits stays."""
    board, bus = made()
    lane = bus.lanes[0]
    convert(board, 130)
    lane.interrupt(None)
    bus.hold()
    lane.interrupt(None)
    assert board.trace == [] and not lane.waits() and lane.mem[lane.base + 16] == 2
    convert(board, 160)
    lane.interrupt(None)
    bus.release()
    assert lane.take() == SAMPLE and lane.mem[lane.slot + 1] == 160
    lane.done()
    lane.interrupt(None)
    assert not lane.take() and lane.mem[lane.base + 16] == 3


@pytest.mark.parametrize("late_us, kind", [(20, SAMPLE), (21, SAMPLE | TORN)])
def test_an_edge_while_the_bus_is_held_is_read_at_release(late_us, kind):
    """With the stamp of its edge; torn if that was too long ago."""
    board, bus = made()
    lane = bus.lanes[0]
    bus.hold()
    convert(board, 160)
    lane.interrupt(None)
    assert board.trace == [] and lane.waits()
    board.now = 160 + late_us
    bus.release()
    assert lane.take() == kind and lane.mem[lane.slot + 1] == 160 and not lane.waits()


def test_release_serves_edges_that_come_while_it_serves_another():
    board, bus = made(chips=2)
    first, second = bus.lanes
    bus.hold()
    convert(board, 160)
    second.interrupt(None)
    board.while_reading = lambda: first.interrupt(None)
    bus.release()
    assert [lane.take() for lane in bus.lanes] == [SAMPLE, SAMPLE]
    assert [cs for what, cs in (t for t in board.trace if isinstance(t, tuple)) if what == "low"] == [5, 5, 5, 1, 1, 1]


def test_a_full_ring_drops_the_newest():
    board, bus = made()
    lane = bus.lanes[0]
    for t in range(1, 301):
        convert(board, 60 + 100 * t)
        lane.interrupt(None)
    stamps = []
    while lane.take():
        stamps.append(lane.mem[lane.slot + 1])
        lane.done()
    assert stamps == [60 + 100 * t for t in range(1, 257)]


def test_a_block_that_is_off_is_an_error():
    board, bus = made()
    lane = bus.lanes[0]
    convert(board, 160)
    board.off = True
    lane.interrupt(None)
    assert board.trace[-1] == ("high", CS)
    with pytest.raises(OSError) as caught:
        lane.take()
    assert caught.value.args[0] == 5 and lane.take() == 0
    with pytest.raises(OSError):
        lane.read16(0x3E)
    assert bus.mem[0] == 0  # not held any more


def test_a_script_that_does_not_fit_is_refused():
    board, bus = made()
    for reads in (((1, 5), (2, 5), (3, 3)), ((1, 2),) * 4):
        with pytest.raises(ValueError):
            bus.lanes[0].script(SAMPLE, reads)


def test_accumulators_instead_of_a_sample_are_refused():
    """EXTRA comes with a sample on this bus: a plan that cannot have both is refused before it samples."""
    board, bus = made()
    for refused in (lambda: bus.lanes[0].script_instead(((10, 5), (9, 5))), bus.lanes[0].ask_instead):
        with pytest.raises(ValueError, match="this bus reads "):
            refused()


def test_registers_outside_sampling():
    """Identify and check over the same frames; another chip and a chip that was reset are found."""
    board, bus = made()
    d, (chip, _) = board.drivers[0], board.chips[CS]
    assert (chip.reg[0], chip.reg[1], chip.reg[2], chip.reg[0xB] & 0xC000) == (0x10, 0xB000, 4096, 0xC000)
    d.check()
    d.lane.write16(2, 0x1234)
    assert chip.reg[2] == 0x1234 and board.trace[-5:] == [("low", CS), 2 << 2, 0x12, 0x34, ("high", CS)]
    with pytest.raises(Exception, match="registers 0010 b000 1234"):
        d.check()
    chip.reg[0x3F] = 0x2281
    with pytest.raises(Exception, match="expected an INA229 at SPI chip select GPIO 1, seen IDs 5449 228"):
        d.identify()


def constants(name):
    return dict(re.findall(r"^(_\w+) = const\((\w+)\)", (ROOT / f"firmware/{name}.py").read_text(), re.M))


@pytest.mark.parametrize("name", ["i2c_fifo", "spi_lane"])
def test_the_layout_of_a_lane_is_one(name):
    """viper needs constants of its own file: they must be those of lane.py, and what lies behind must not overlap."""
    common, own = constants("lane"), constants(name)
    of_age = ("_AGE", "_INSTR", "_RXF", "_PER")
    for word in ("_HEAD", "_TAIL", "_PENDING", "_WANT", "_ERROR", "_LATE", "_SPURIOUS", *of_age):
        assert own[word] == common[word]
    assert max(int(v) for v in common.values()) == 20 < min(int(own[w]) for w in own if w in ("_ADDRESS", "_CS"))
    assert int(own["_SIZE"]) == int(own["_SLOTS"]) + 8 * int(own["_RING"])
    of_i2c = ["_FULL", "_EVERY", "_ALERT", "_LESS", "_RANGE"]
    words, own_words = {"i2c_fifo": (19, of_i2c), "spi_lane": (22, ["_FULL"])}[name]
    assert [int(own[w]) for w in [*own_words, "_SLOTS"]] == [
        int(own["_SCRIPT"]) + 2 * words + k for k in range(len(own_words) + 1)
    ]


def test_words_that_two_ranges_use_are_those_of_their_lane():
    own, bus = constants("ranges"), constants("i2c_fifo")
    of_lane = ("_HEAD", "_TAIL", "_MASK", "_SLOTS")
    assert [own[word] for word in of_lane] == [constants("lane")[word] for word in of_lane]
    of_bus = ("_SIO", "_AGE", "_INSTR", "_RXF", "_PER", "_RANGE", "_GPIO_IN", "_PUSH_X", "_OLDEST")
    assert [own[word] for word in of_bus if word in own] == [bus[word] for word in of_bus if word in own]
    assert set(of_bus) - set(own) == {"_GPIO_IN"}  # a sum
