"""The SIMULATED INA226 against the data sheet's identities, on CPython."""

import pytest
from chips import ina226_model as model
from hypothesis import given, settings
from hypothesis import strategies as st

CONFIG, SHUNT, BUS, POWER, CURRENT, CAL, MASK, LIMIT = range(8)
CONTINUOUS = 0x4007  # 140 + 140 us
SET_ns = 280_000


def chip(amps=10.0, volts=11.98, cal=2560, config=CONTINUOUS, shunt_uOhm=2000, **kw):
    """TI's example unless told otherwise: 2 mOhm, 1 mA per LSB; ALERT at conversion ready; no noise."""
    c = model.INA226(lambda t0, t1, t2: (amps, volts), 0, shunt_uOhm, **{"noise": 0, **kw})
    c.write(CAL, cal, 0)
    c.write(MASK, 0x0400, 0)
    c.write(CONFIG, config, 0)
    return c


def read(c, register, t):
    value, width = c.value(register, t)
    assert width == 2
    return value - 0x10000 if register in (SHUNT, CURRENT) and value & 0x8000 else value


def test_data_sheet_example():
    """10 A through 2 mOhm at 11.98 V: SHUNT 8000, BUS 9584, CURRENT 10000, POWER 4792 of 25 mW (SBOS547, table 1)."""
    c = chip()
    assert [read(c, r, SET_ns) for r in (SHUNT, BUS, CURRENT, POWER)] == [8000, 9584, 10000, 4792]


@settings(max_examples=300, deadline=None)
@given(st.integers(-32768, 32767), st.integers(0, 0x7FFF), st.integers(0, 0x7FFF))
def test_identities_are_exact(shunt, cal, bus):
    current, over = model.current_register(shunt, cal)
    exact = abs(shunt) * cal // 2048
    assert abs(current) == min(exact, 32767) and over == (exact > 32767) and current * shunt >= 0
    power, over = model.power_register(current, bus)
    assert power == min(abs(current) * bus // 20000, 0xFFFF) and over == (abs(current) * bus // 20000 > 0xFFFF)


def test_reset_values_and_ids():
    c = model.INA226(lambda *t: (0, 0), 0)
    for register, value in {0: 0x4127, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0, 0xFE: 0x5449, 0xFF: 0x2260}.items():
        assert c.value(register, 0) == (value, 2)


def test_stale_until_ready_and_the_line_is_released_by_the_read():
    c = chip()
    assert read(c, BUS, SET_ns - 1) == 0 and c.alert() == 1 and c.ready_at() == SET_ns
    assert read(c, BUS, SET_ns) == 9584 and c.alert() == 0 and c.ready_at() == model.NEVER
    assert read(c, MASK, SET_ns) == 0x0408
    assert c.alert() == 1 and c.ready_at() == 2 * SET_ns


def test_config_write_restarts_and_power_down_keeps_the_flag():
    c = chip()
    c.write(CONFIG, CONTINUOUS, 200_000)
    assert c.ready_at() == 200_000 + SET_ns
    c.advance(200_000 + SET_ns)
    c.write(CONFIG, 0x4000, 200_000 + SET_ns)
    assert read(c, MASK, 10 * SET_ns) & model.CVRF and c.end == model.NEVER


@pytest.mark.parametrize("osc_ppm", [-5000, 5000])
def test_schedule_follows_the_chips_oscillator(osc_ppm):
    c = chip(osc_ppm=osc_ppm)
    for _ in range(10_000):
        last = c.ready_at()
        c.value(MASK, last)
    assert last == pytest.approx(10_000 * SET_ns / (1 + osc_ppm * 1e-6), abs=2)


def test_brown_out_loses_the_calibration():
    """What Linux' ina2xx driver looks for: CURRENT 0 together with CALIBRATION 0."""
    c = chip()
    c.advance(SET_ns)
    c.power_on(SET_ns)
    t = SET_ns + 3_000_000  # the reset value of CONFIG converts on: 2.2 ms a set
    assert [read(c, r, t) for r in (CONFIG, CAL, MASK)] == [0x4127, 0, 0x0008]
    assert read(c, CURRENT, t) == 0 and read(c, SHUNT, t) == 8000
    assert c.alert() == 1 and c.ready_at() == model.NEVER


def test_saturation_and_overflow():
    assert read(chip(amps=50.0), SHUNT, SET_ns) == 32767
    assert read(chip(amps=-50.0), SHUNT, SET_ns) == -32768
    c = chip(amps=20.0, cal=8192)
    assert read(c, CURRENT, SET_ns) == 32767 and read(c, MASK, SET_ns) & model.OVF
    assert read(chip(volts=45.0), BUS, SET_ns) == 0x7FFF


@pytest.mark.parametrize(
    "function, limit, beyond",
    [
        (model.SOL, 7999, True),
        (model.SOL, 8000, False),
        (model.SUL, 8001, True),
        (model.SUL, 8000, False),
        (model.BOL, 9583, True),
        (model.BUL, 9584, False),
        (model.POL, 4791, True),
        (model.POL, 4792, False),
    ],
)
def test_alert_limits(function, limit, beyond):
    c = chip()
    c.write(LIMIT, limit, 0)
    c.write(MASK, function | model.LEN, 0)
    c.advance(SET_ns)
    assert c.alert() == (0 if beyond else 1)
    assert bool(read(c, MASK, SET_ns) & model.AFF) == beyond
    assert c.alert() == 1  # latched until read


def test_averaging():
    seen = []

    def supply(t0, t1, t2):
        seen.append(t0)
        return (0.2, 5.0) if len(seen) % 2 else (0.6, 5.0)

    c = model.INA226(supply, 0, 10_000, noise=0)
    c.write(CONFIG, CONTINUOUS | 1 << 9, 0)
    assert c.set_end() == 4 * SET_ns
    assert read(c, SHUNT, 4 * SET_ns) == round(0.4 * 0.01 / 2.5e-6) and len(seen) == 4


def test_each_result_is_there_when_its_channel_is_done():
    """Shunt 140 us, then bus 140 us: a current that is read late belongs to the next set."""
    c = model.INA226(lambda t0, t1, t2: (0.5 if t0 < SET_ns else 0.25, 5.0 if t1 < SET_ns else 4.0), 0, 10_000, noise=0)
    c.write(CAL, 2048, 0)
    c.write(CONFIG, CONTINUOUS, 0)
    assert [read(c, r, SET_ns) for r in (SHUNT, CURRENT, BUS, POWER)] == [2000, 2000, 4000, 400]
    assert [read(c, r, SET_ns + 140_000) for r in (SHUNT, CURRENT, BUS, POWER)] == [1000, 1000, 4000, 400]
    assert [read(c, r, SET_ns + 280_000) for r in (SHUNT, CURRENT, BUS, POWER)] == [1000, 1000, 3200, 160]


def test_a_limit_is_compared_in_every_cycle_and_transparent_without_latch():
    """1 A in the second of four cycles of a set: AFF comes and, without LEN, goes."""
    for latch, levels in ((model.LEN, [1, 0, 0, 0]), (0, [1, 0, 1, 1])):
        c = model.INA226(lambda t0, t1, t2: (1.0 if SET_ns <= t0 < 2 * SET_ns else 0.1, 5.0), 0, 10_000, noise=0)
        c.write(LIMIT, 2000, 0)
        c.write(MASK, model.SOL | latch, 0)
        c.write(CONFIG, CONTINUOUS | 1 << 9, 0)
        seen = []
        for k in range(1, 5):
            c.advance(k * SET_ns - 100_000)
            seen.append(c.alert())
        assert seen == levels


def test_it_wakes_up_before_it_converts():
    c = chip()
    c.write(CONFIG, 0x4000, 1000)
    c.write(CONFIG, CONTINUOUS, 100_000)
    assert c.ready_at() == 100_000 + 40_000 + SET_ns


@pytest.mark.parametrize("register", [8, 0x3D, 0xFD])
def test_a_register_that_does_not_exist_is_not_read(register):
    with pytest.raises(ValueError, match="no register"):
        chip().value(register, 0)
    assert chip().value(0x3E, 0) == (0, 2)  # a relative's ID, which is asked for before the chip is known


@pytest.mark.parametrize("register, value", [(CONFIG, 0x3007), (CAL, 0x8000), (BUS, 1), (0xFE, 0x5449), (8, 1)])
def test_reserved_bits_and_read_only_registers_are_not_written(register, value):
    with pytest.raises(ValueError, match="is written"):
        chip().write(register, value, 0)


def test_one_limit_function_at_a_time_and_no_interrupt_of_a_transparent_one():
    with pytest.raises(ValueError, match="more than one"):
        chip().write(MASK, model.SOL | model.POL, 0)
    c = chip()
    c.write(MASK, model.SOL, 0)
    with pytest.raises(ValueError, match="wants LEN"):
        c.ready_at()
