"""The drivers of INA228 and INA226 read what the models hold, bit for bit."""

import sys
from array import array
from unittest import mock

import pytest
from chips import ROOT, ina226_model, ina228_model, load
from hypothesis import given, settings
from hypothesis import strategies as st

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
    rail = {
        "fine": fine,
        "vbus_us": 150,
        "vshunt_us": 540,
        "temp_us": 50,
        "current_lsb_pA": 7_812_500,
        "shunt_uOhm": 10_000,
    }
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
    with mock.patch.dict(sys.modules, ina228=load(ROOT / "firmware/ina228.py")):
        driver = load(ROOT / "firmware/ina226.py")
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
