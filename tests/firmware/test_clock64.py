"""firmware/clock64.py, its very source on CPython: 64-bit time of stamps around a wrap of ticks_us()."""

import types
from array import array

import pytest
import vipersource

WRAP = 1 << 30
FAR_us = 8 * 60 * 1_000_000 - 1  # before or after the last update


@pytest.mark.slow
@pytest.mark.parametrize("away_us", [-FAR_us, -1_000_000, -2, -1, 0, 1, 2, 1_000_000, FAR_us])
@pytest.mark.parametrize("updated_us", [0, 1, WRAP // 2, WRAP - 2, WRAP - 1])
@pytest.mark.parametrize("wraps", [1, 3, 5, (1 << 29) - 1])
def test_a_stamp_near_a_wrap(wraps, updated_us, away_us):
    """Stamps of before a wrap are often written after it: the conversion is stamped, then the clock is updated."""
    now = [0]
    time = types.SimpleNamespace(
        ticks_us=lambda: now[0] % WRAP, ticks_diff=lambda a, b: (a - b + WRAP // 2) % WRAP - WRAP // 2
    )
    module = vipersource.load("clock64", {}, {"time": time})
    clock = module.Clock64()
    clock.wraps, now[0] = wraps, wraps * WRAP + updated_us
    clock.ticks = 0
    clock.update()
    true_us = now[0] + away_us
    buf = bytearray(10)
    clock.put(buf, 1, true_us % WRAP)
    assert int.from_bytes(buf[1:9], "little") == true_us and buf[0] == buf[9] == 0


def load(us=lambda: 0):
    return vipersource.load("clock64", {}, {"time": types.SimpleNamespace(ticks_us=us, ticks_diff=lambda a, b: a - b)})


@pytest.mark.parametrize("value", [0, 1, 0x01020304, 0x3FFFFFFF, -2, -0x12345678])
def test_four_bytes_each_in_its_place(value):
    module, buf = load(), bytearray(b"\xee" * 6)
    module.put32(buf, 1, value)
    assert buf == b"\xee" + (value % 2**32).to_bytes(4, "little") + b"\xee"
    buf = bytearray(b"\xee" * 6)
    module.put_counter(buf, 1, array("I", [value % 2**32]))
    assert buf == b"\xee" + (value % 2**32).to_bytes(4, "little") + b"\xee"


@pytest.mark.parametrize(("high", "low"), [(0, 0), (1, 0), (1, 5), (7, (1 << 29) - 1), (8, 3), (9, 0x01020304)])
def test_a_count_in_two_parts(high, low):
    buf = bytearray(6)
    load().put_split(buf, 1, high, low)
    assert buf == b"\0" + ((high * 2**29 + low) % 2**32).to_bytes(4, "little") + b"\0"


def test_a_counter_counts_on():
    counter = array("I", [5, 9])
    load().add(counter, 3)
    assert counter.tolist() == [8, 9]


def test_a_clock_begins_with_the_ticks_and_counts_each_wrap_once():
    now = [1000]
    clock = load(lambda: now[0]).Clock64()
    assert (clock.wraps, clock.ticks) == (0, 1000)
    for tick, wraps in ((1000, 0), (1001, 0), (WRAP - 1, 0), (0, 1), (0, 1), (5, 1), (4, 2)):
        now[0] = tick
        clock.update()
        assert (clock.wraps, clock.ticks) == (wraps, tick)
