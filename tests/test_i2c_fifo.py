"""firmware/i2c_fifo.py, its very source, on CPython against registers that record what is done to them; and the chips' drivers
against the chips' models: the same numbers, bit for bit."""

import sys
import types
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ina226_model import model as ina226_model
from test_ina228_model import ROOT, load
from test_ina228_model import model as ina228_model

TAR, DATA_CMD, RAW_INTR, CLR_ABRT, ENABLE, STATUS, RXFLR, TIMERAWL = 0x04, 0x10, 0x34, 0x54, 0x6C, 0x70, 0x78, 0x28
READ, STOP, RESTART = 1 << 8, 1 << 9, 1 << 10
I2C0, TIMER = 0x40044000, 0x40054000  # RP2040 data sheet 2.2


class Registers:
    """A block that keeps a trace; what it answers is set by the test."""

    def __init__(self):
        self.trace, self.answers, self.received, self.now = [], {TAR: 0, RAW_INTR: 0, STATUS: 0}, [], 0

    def __getitem__(self, word):
        if 4 * word == RXFLR:
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
    known = {I2C0: block, TIMER: block}
    micropython = types.SimpleNamespace(const=lambda x: x, viper=lambda f: f)
    time = types.SimpleNamespace(ticks_us=lambda: block.now, ticks_diff=lambda a, b: a - b)
    fake_sys = types.SimpleNamespace(implementation=types.SimpleNamespace(_machine="Raspberry Pi Pico with RP2040"))
    fakes = {"micropython": micropython, "time": time, "sys": fake_sys}
    names = {"ptr32": lambda x: known[x] if isinstance(x, int) else x, "__name__": "i2c_fifo"}
    source = (ROOT / "firmware/i2c_fifo.py").read_text().replace("ptr32, ", "object, ").replace("mem: ptr32", "mem: object")
    saved = {name: sys.modules.get(name) for name in fakes}
    code = compile(source, "i2c_fifo.py", "exec")
    try:
        sys.modules.update(fakes)
        exec(code, names)
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return names, block


def bus_of(fifo, addresses=(0x40, 0x41)):
    names, block = fifo
    bus = names["Bus"](lambda: None, lambda: None, names["PAGE"][0], addresses)
    for lane in bus.lanes:
        lane.script(names["SAMPLE"], ((0x0B, 2), (0x05, 3), (0x07, 3)))
        lane.script(names["EXTRA"], ((0x09, 5), (0x0A, 5), (0x06, 2)))
        lane.restart(500)
    return bus, block


def test_a_sample_is_eleven_commands(fifo):
    """Pointer, then reads from a RESTART to a STOP; the target address only changes while the block is disabled."""
    bus, block = bus_of(fifo)
    block.now = 1000
    bus.lanes[1].interrupt(None)
    assert block.trace == [
        (ENABLE, 0), (TAR, 0x41), (ENABLE, 1),
        (DATA_CMD, 0x0B), (DATA_CMD, RESTART | READ), (DATA_CMD, READ | STOP),
        (DATA_CMD, 0x05), (DATA_CMD, RESTART | READ), (DATA_CMD, READ), (DATA_CMD, READ | STOP),
        (DATA_CMD, 0x07), (DATA_CMD, RESTART | READ), (DATA_CMD, READ), (DATA_CMD, READ | STOP),
    ]  # fmt: skip
    block.received = list(range(8))
    assert bus.lanes[0].take() == 0 and bus.lanes[1].take() == 1
    lane = bus.lanes[1]
    assert list(lane.mem[lane.slot + 1 : lane.slot + 6]) == [1000, 1, 0x000102, 0x030405, 0x060700]
    lane.done()
    assert lane.take() == 0
    block.trace.clear()
    block.now = 2000
    lane.interrupt(None)
    assert block.trace[0] == (ENABLE, 1) and TAR not in dict(block.trace)  # it is the target already


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


def test_what_may_belong_to_two_conversions_is_torn(fifo):
    """Begun too late; or still reading when the next edge comes. Complete but not yet fetched is neither."""
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
    assert lane.take() == names["SAMPLE"] | names["TORN"]
    lane.done()
    lane.interrupt(None)
    block.received = [1] * 7
    lane.interrupt(None)
    block.received.append(1)
    assert lane.take() == names["SAMPLE"] | names["TORN"]
    lane.done()
    block.received = [1] * 8
    lane.interrupt(None)
    assert lane.take() == names["SAMPLE"]


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
    for k in range(20):
        block.now = 1000 * k
        lane.interrupt(None)
        block.received = [k] * 8
    stamps = []
    while lane.take():
        stamps.append(lane.mem[lane.slot + 1])
        lane.done()
    assert stamps[:16] == [1000 * k for k in range(16)]


def test_the_accumulators_wait_for_no_edge_but_yield_to_one(fifo):
    names, block = fifo
    bus, _ = bus_of(fifo)
    lane = bus.lanes[0]
    lane.interrupt(None)
    block.received = [0] * 8
    lane.take()
    block.trace.clear()
    lane.ask()
    assert [v for r, v in block.trace if r == DATA_CMD and v < 256] == [0x09, 0x0A, 0x06]
    lane.done()
    lane.interrupt(None)
    block.received = list(range(12))
    assert lane.take() == names["EXTRA"] | names["TORN"]
    lane.done()
    block.received = [0] * 8
    assert lane.take() == names["SAMPLE"]
    bus.mem[0] = 1
    lane.interrupt(None)
    bus.mem[0] = 0
    lane.ask()  # the next edge has come: not now
    assert bus.mem[2] == names["SAMPLE"]


def test_a_script_that_does_not_fit_is_refused(fifo):
    bus, _ = bus_of(fifo)
    with pytest.raises(ValueError):
        bus.lanes[0].script(1, ((1, 5), (2, 5), (3, 3)))


# --- driver and model agree bit for bit


def words(reads):
    """A script's words as step() makes them of (value, bytes) pairs, into an array as the firmware has it."""
    data = b"".join(value.to_bytes(width, "big") for value, width in reads)
    data += bytes(-len(data) % 3)
    return array("i", [int.from_bytes(data[k : k + 3], "big") for k in range(0, len(data), 3)] + [0] * 4)


def signed24(value):
    return value - (1 << 24) if value & 0x800000 else value


@settings(max_examples=200, deadline=None)
@given(st.integers(-(2**19), 2**19 - 1), st.integers(0, 2**19 - 1), st.integers(1, 0x7FFF), st.booleans())
def test_ina228_driver_reads_what_the_model_holds(vshunt, vbus, cal, fine):
    driver = load(ROOT / "firmware/ina228.py")
    rail = {"fine": fine, "vbus_us": 150, "vshunt_us": 540, "temp_us": 50, "current_lsb_pA": 7_812_500, "shunt_uOhm": 10_000}
    d = driver.INA228(None, rail)
    c = ina228_model.INA228(lambda *t: (0, 0), 0)
    c.reg[0xB], c.reg[2], c.vshunt, c.vbus = 0xC003, cal, vshunt, vbus
    c.current, _ = ina228_model.current_register(vshunt, cal)
    assert d.decode(words([c.value(r, 0) for r, _ in d.SAMPLE]), 0)
    assert (d.flags, d.vbus, signed24(d.signed())) == (0xC003, vbus, c.current)
    assert d.zero() == (vbus == 0 or c.current == 0)
    assert d.adc == 0xF500 and d.cal == (4096 if fine else 1024)


@settings(max_examples=200, deadline=None)
@given(st.integers(-32768, 32767), st.integers(0, 0x7FFF), st.integers(0, 0x7FFF))
def test_ina226_driver_reads_what_the_model_holds(shunt, bus, cal):
    sys.modules["ina228"] = load(ROOT / "firmware/ina228.py")
    try:
        driver = load(ROOT / "firmware/ina226.py")
    finally:
        del sys.modules["ina228"]
    d = driver.INA226(None, {"vbus_us": 140, "vshunt_us": 140, "current_lsb_pA": 1_000_000_000, "shunt_uOhm": 2000})
    c = ina226_model.INA226(lambda *t: (0, 0), 0)
    c.reg[6], c.bus = 0x0408, bus
    c.current, _ = ina226_model.current_register(shunt, cal)
    assert d.decode(words([c.value(r, 0) for r, _ in d.SAMPLE]), 0)
    assert (d.vbus, signed24(d.signed())) == (bus, c.current)
    assert d.cal == 2560 and d.adc == 0x4007  # TI's example


@pytest.mark.parametrize("raw, code", [(-3200, 0xF380), (-1, 0xFFFF), (3200, 0x0C80)])
def test_die_temperature_is_signed(raw, code):
    """7.8125 mC a count: -25 C is F380h. The wire's die_temp is an i16 of the same bytes."""
    c = ina228_model.INA228(lambda *t: (0, 0), 0)
    c.temp = raw
    assert c.value(6, 0) == (code, 2)
