"""firmware/clock64.py, its very source on CPython: 64-bit time of stamps around a wrap of ticks_us()."""

import types

import pytest
import vipersource

WRAP = 1 << 30
FAR_us = 8 * 60 * 1_000_000 - 1  # before or after the last update


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
