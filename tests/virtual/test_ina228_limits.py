"""The SIMULATED INA228's limits, ALERT, temperature, and what it refuses, on CPython. Expected flags come from volts,
amperes and degrees and the units of the data sheet's register tables, not from the model's own comparisons."""

import math

import pytest
from chips import ina228_model as model
from hypothesis import given, settings
from hypothesis import strategies as st

CONFIG, ADC, CAL, TEMPCO, DIAG = 0, 1, 2, 3, 0xB
SOVL, SUVL, BOVL, BUVL, TEMP_LIMIT, PWR_LIMIT = range(0xC, 0x12)
LATCH, READY, SLOW, APOL = 1 << 15, 1 << 14, 1 << 13, 1 << 12
FLAGS = {"TMPOL": 7, "SHNTOL": 6, "SHNTUL": 5, "BUSOL": 4, "BUSUL": 3, "POL": 2}  # bits
CONTINUOUS_ALL = 0xF500  # temperature 50, shunt 540, bus 150 us, no averaging
SET_ns = 740_000
SHUNT_Ohm, POWER_LSB_W = 0.01, 3.2 * 7.8125e-6


def chip(supply, fine=True, adc=CONTINUOUS_ALL, diag=LATCH, limits=None, **kw):
    """10 mOhm, 7.8125 uA a count; converting from t = 0."""
    if not callable(supply):
        amps_volts = supply
        supply = lambda *t: amps_volts
    c = model.INA228(supply, 0, **{"noise": 0, **kw})
    c.write(CONFIG, 0x10 if fine else 0, 0)
    c.write(CAL, 4096 if fine else 1024, 0)
    c.write(DIAG, diag, 0)
    for register, value in (limits or {}).items():
        c.write(register, value & 0xFFFF, 0)
    c.write(ADC, adc, 0)
    return c


def flags(c, t):
    """Names of the flags that a read of DIAG_ALRT shows."""
    value, width = c.value(DIAG, t)
    assert width == 2
    return {name for name, bit in FLAGS.items() if value >> bit & 1}


@pytest.mark.parametrize("fine, lsb_V", [(True, 1.25e-6), (False, 5e-6)])
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_flags_follow_from_the_units(fine, lsb_V, data):
    """Analogue values half a count of the limit's unit away from any edge, and limits near them: over means more than a
    count above, under less."""
    full_V = 32767 * lsb_V
    shunt = data.draw(st.integers(-32000, 32000))
    bus = data.draw(st.integers(0, 27000))  # 85 V
    amps, volts = (shunt + 0.5) * lsb_V / SHUNT_Ohm, (bus + 0.5) * 3.125e-3
    near = st.integers(-2, 2)
    limits = {SOVL: shunt + data.draw(near), SUVL: shunt + data.draw(near)}
    limits[BOVL], limits[BUVL] = (max(0, min(0x7FFF, bus + data.draw(near))) for _ in range(2))
    watts = abs(amps) * volts
    power = math.floor(watts / (256 * POWER_LSB_W))
    limits[PWR_LIMIT] = max(0, min(0xFFFF, power + data.draw(st.sampled_from([-20, 20]))))
    limits[TEMP_LIMIT] = 3248 + data.draw(near)  # 25 C and 0.375 C of its own
    expected = {"SHNTOL"} if limits[SOVL] < shunt else set()
    expected |= {"SHNTUL"} if limits[SUVL] > shunt else set()
    expected |= {"BUSOL"} if limits[BOVL] < bus else set()
    expected |= {"BUSUL"} if limits[BUVL] > bus else set()
    expected |= {"TMPOL"} if limits[TEMP_LIMIT] < 3248 else set()
    c = chip((amps, volts), fine, limits=limits)
    seen = flags(c, SET_ns)
    assert seen - {"POL"} == expected and abs(amps) * SHUNT_Ohm < full_V + lsb_V
    if abs(amps) < 4.09 and abs(limits[PWR_LIMIT] - power) == 20:  # CURRENT and so POWER saturate above
        assert ("POL" in seen) == (limits[PWR_LIMIT] < power)


@pytest.mark.parametrize(
    "register, limit, name",
    [
        (SOVL, 4000, "SHNTOL"),
        (SUVL, 4000, "SHNTUL"),
        (BOVL, 1600, "BUSOL"),
        (BUVL, 1600, "BUSUL"),
        (TEMP_LIMIT, 3248, "TMPOL"),
        (PWR_LIMIT, 390, "POL"),
    ],
)
def test_the_limit_itself_is_not_beyond(register, limit, name):
    """0.5 A on 10 mOhm: 5 mV = 4000 x 1.25 uV; 5 V = 1600 x 3.125 mV; 2.5 W = 390.6 x 256 x 25 uW; 25.375 C = 3248 x
    7.8125 mC."""
    over = name.endswith("OL")
    for step, flagged in ((0, False), (-1 if over else 1, True)):
        c = chip((0.5, 5.0), limits={register: limit + step})
        assert flags(c, SET_ns) == ({name} if flagged else set())


def test_negative_limits_are_twos_complement():
    """-0.5 A is -4000; with a negative over-limit 0 V is beyond it."""
    for amps, limits, seen in (
        (-0.5, {SOVL: -4001}, {"SHNTOL"}),
        (-0.5, {SOVL: -4000}, set()),
        (-0.5, {SUVL: -3999}, {"SHNTUL"}),
        (0.0, {SOVL: -1}, {"SHNTOL"}),
    ):
        assert flags(chip((amps, 5.0), limits=limits), SET_ns) == seen
    assert flags(chip((0.0, 5.0), ambient_C=-20.0, limits={TEMP_LIMIT: round(-21 / 7.8125e-3)}), SET_ns) == {"TMPOL"}
    assert flags(chip((0.0, 5.0), ambient_C=-20.0, limits={TEMP_LIMIT: round(-19 / 7.8125e-3)}), SET_ns) == set()


@pytest.mark.parametrize("amps, volts", [(100.0, 200.0), (-100.0, 0.0)])
def test_the_limits_of_the_reset_state_are_never_passed(amps, volts):
    c = chip((amps, volts), diag=0)
    assert flags(c, 5 * SET_ns) == set() and c.alert() == 1 and not c.watched


def test_a_flag_is_there_as_soon_as_its_channel_is_done():
    """The temperature is compared after 50 us, the shunt after 590, the bus and the power after 740."""
    limits = {SOVL: 3000, BUVL: 1700, PWR_LIMIT: 300, TEMP_LIMIT: 3200}
    for t, seen in (
        (49_999, set()),
        (50_000, {"TMPOL"}),
        (590_000, {"TMPOL", "SHNTOL"}),
        (SET_ns, {"TMPOL", "SHNTOL", "BUSUL", "POL"}),
    ):
        c = chip((0.5, 5.0), limits=limits)
        assert c.ready_at() == 50_000
        assert flags(c, t) == seen
        assert c.alert() == 1  # the read has released it


def pulse(*ends):
    """1 A between the times given, else 0.1 A."""
    return lambda t0, t1, t2: (1.0 if ends[0] <= t0 < ends[1] else 0.1, 5.0)


def test_latched_until_read_and_transparent_until_over():
    """1 A in the second of four sets."""
    for diag, levels in ((LATCH, [1, 0, 0, 0]), (0, [1, 0, 1, 1])):
        c = chip(pulse(SET_ns, 2 * SET_ns), diag=diag, limits={SOVL: 4000})
        seen = []
        for k in range(1, 5):
            c.advance(k * SET_ns)
            seen.append(c.alert())
        assert seen == levels
    c = chip(pulse(SET_ns, 2 * SET_ns), limits={SOVL: 4000})
    assert flags(c, 4 * SET_ns) == {"SHNTOL"} and flags(c, 4 * SET_ns) == set() and c.alert() == 1


def test_a_standing_fault_is_flagged_again_by_the_next_conversion():
    c = chip((1.0, 5.0), limits={SOVL: 4000})
    assert flags(c, SET_ns) == {"SHNTOL"} and flags(c, SET_ns) == set()
    assert c.ready_at() == SET_ns + 50_000
    assert flags(c, SET_ns + 590_000) == {"SHNTOL"}


def test_in_transparent_mode_a_read_does_not_clear():
    c = chip((1.0, 5.0), diag=0, limits={SOVL: 4000})
    with pytest.raises(ValueError, match="wants ALATCH"):
        c.ready_at()  # when will it interrupt?
    assert flags(c, SET_ns) == flags(c, SET_ns) == {"SHNTOL"}


def test_conversion_ready_and_limits_share_the_line():
    c = chip(pulse(SET_ns, 2 * SET_ns), diag=LATCH | READY, limits={SOVL: 4000})
    assert c.ready_at() == 50_000  # perhaps: a comparison comes first
    c.advance(50_000)
    assert c.alert() == 1 and c.ready_at() == 590_000
    c.advance(590_000)
    assert c.alert() == 1 and c.ready_at() == SET_ns
    c.advance(SET_ns)
    assert c.alert() == 0 and flags(c, SET_ns) == set()  # conversion ready
    c.advance(SET_ns + 590_000)
    assert c.alert() == 0 and c.ready_at() == model.NEVER and flags(c, SET_ns + 590_000) == {"SHNTOL"}


def test_polarity():
    for apol, level in ((0, 0), (APOL, 1)):
        c = chip((1.0, 5.0), diag=LATCH | apol, limits={SOVL: 4000})
        assert c.alert() == 1 - level
        c.advance(SET_ns)
        assert c.alert() == level


@pytest.mark.parametrize("slow, seen", [(0, {"SHNTOL", "POL"}), (SLOW, set())])
def test_slow_alert_compares_the_average(slow, seen):
    """4 cycles, one of them at 1 A: the mean is 0.325 A."""
    c = chip(pulse(SET_ns, 2 * SET_ns), adc=CONTINUOUS_ALL | 1, diag=LATCH | slow, limits={SOVL: 4000, PWR_LIMIT: 390})
    c.advance(SET_ns + 590_000)
    assert c.alert() == (1 if slow else 0)  # in the second cycle already
    assert flags(c, 4 * SET_ns) == seen
    c = chip((1.0, 5.0), adc=CONTINUOUS_ALL | 1, diag=LATCH | slow, limits={SOVL: 4000})
    c.advance(4 * SET_ns - 1)
    assert c.alert() == (1 if slow else 0)
    assert flags(c, 4 * SET_ns) == {"SHNTOL"}


def test_the_overflows_are_no_alert():
    """MATHOF, ENERGYOF and CHARGEOF stand in DIAG_ALRT only."""
    c = chip((3.0, 5.0))
    c.write(CAL, 2048, 0)
    c.energy = (1 << 40) - 1
    c.advance(SET_ns)
    assert c.reg[DIAG] & (model.MATHOF | model.ENERGYOF) == model.MATHOF | model.ENERGYOF and c.alert() == 1


@pytest.mark.parametrize("how", ["RST", "brown-out"])
def test_a_reset_forgets_the_limits(how):
    c = chip((1.0, 5.0), limits={SOVL: 4000})
    c.advance(SET_ns)
    if how == "RST":
        c.write(CONFIG, 0x8000, SET_ns)
    else:
        c.power_on(SET_ns)
    assert c.value(SOVL, SET_ns) == (0x7FFF, 2) and c.alert() == 1
    assert flags(c, 20 * SET_ns) == set()


# --- temperature


@pytest.mark.parametrize("ambient_C", [-40.0, 25.0, 85.0])
def test_die_temperature_is_the_ambients_and_its_own(ambient_C):
    """640 uA at 3.3 V through 177.6 K/W: 0.375 K. Two's complement of 7.8125 mC."""
    c = chip((0.5, 5.0), ambient_C=ambient_C)
    raw = c.value(0x6, SET_ns)[0]
    assert (raw - 0x10000 if raw & 0x8000 else raw) * 7.8125e-3 == pytest.approx(ambient_C + 0.375, abs=0.004)


@pytest.mark.parametrize("ambient_C, tempco", [(85.0, 3900), (-40.0, 50), (24.625, 16383)])
def test_compensation_of_the_shunt(ambient_C, tempco):
    """R = R25 (1 + TC (T - 25 C)): a copper shunt of 10 mOhm at 85.375 C has 12.3546 mOhm, and the current is that much
    less."""
    c = chip((0.5, 5.0), ambient_C=ambient_C)
    c.write(TEMPCO, tempco, 0)
    c.write(CONFIG, 0x30, 0)
    c.advance(SET_ns)  # the first set knows no temperature yet
    c.advance(2 * SET_ns)
    ratio = 1 + tempco * 1e-6 * (round((ambient_C + 0.375) * 128) / 128 - 25)
    assert c.vshunt == 64_000 and c.current == math.floor(64_000 / ratio)
    assert c.power == 25_600 * c.current >> 14


def test_compensation_asks_for_the_temperature():
    c = chip((0.5, 5.0), adc=0xB << 12)
    c.write(CONFIG, 0x30, 0)
    with pytest.raises(ValueError, match="TEMPCOMP wants"):
        c.advance(SET_ns)


# --- what is refused


@pytest.mark.parametrize("register", [0x12, 0x3D, 0x40, 0xFD])
def test_a_register_that_does_not_exist_is_not_read(register):
    with pytest.raises(ValueError, match="no register"):
        chip((0.5, 5.0)).value(register, 0)
    assert chip((0.5, 5.0)).value(0xFE, 0) == (0, 2)  # a relative's ID, which is asked for before the chip is known


@pytest.mark.parametrize(
    "register, value",
    [
        (CONFIG, 0x0001),
        (CAL, 0x8000),
        (TEMPCO, 0x4000),
        (BOVL, 0x8000),
        (BUVL, 0xFFFF),
        (0x4, 1),
        (0x9, 1),
        (0x12, 1),
        (0x3E, 0x5449),
        (0x3F, 1),
    ],
)
def test_reserved_bits_and_read_only_registers_are_not_written(register, value):
    c = chip((0.5, 5.0))
    before = dict(c.reg)
    with pytest.raises(ValueError, match="is written"):
        c.write(register, value, 0)
    assert c.reg == before


def test_the_flags_of_the_alert_register_are_not_written():
    c = chip((1.0, 5.0), limits={SOVL: 4000})
    c.advance(SET_ns)
    before = c.reg[DIAG]
    c.write(DIAG, LATCH | 0x0FFF & ~before, SET_ns)
    assert c.reg[DIAG] == before
