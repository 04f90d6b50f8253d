"""The SIMULATED sensor chip against the data sheet's identities and closed forms, on CPython; one script on both."""

import math

import numpy as np
import pytest
from chips import ROOT, load
from chips import ina228_model as model
from hypothesis import given, settings
from hypothesis import strategies as st
from simboard import run_script

CONFIG, ADC, CAL = 0, 1, 2
VSHUNT, VBUS, TEMP, CURRENT, POWER, ENERGY, CHARGE, DIAG = range(4, 12)
CONTINUOUS_ALL = 0xF500  # temperature 50, shunt 540, bus 150 us, no averaging: 740 us
SET_ns = 740_000


def constant(amps, volts):
    return lambda t0, t1, t2: (amps, volts)


def chip(amps=0.5, volts=5.0, fine=True, cal=4096, **kw):
    """Configured at t = 0 and converting; ALERT latched at conversion ready; no noise."""
    c = model.INA228(constant(amps, volts), 0, **{"noise": 0, **kw})
    c.write(CONFIG, 0x10 if fine else 0, 0)
    c.write(CAL, cal, 0)
    c.write(DIAG, 0xC000, 0)
    c.write(ADC, CONTINUOUS_ALL, 0)
    return c


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def read(c, register, t):
    value, width = c.value(register, t)
    if register in (VSHUNT, CURRENT):
        return signed(value, 24) >> 4
    if register == VBUS:
        return value >> 4
    return signed(value, 40) if register == CHARGE else value


def test_data_sheet_example():
    """16.2 mOhm, 10 A full scale -> CAL 4050; 97.2 mV (6 A) -> VSHUNT 311040, CURRENT 314572."""
    c = chip(6.0, 48.0, fine=False, cal=4050, shunt_uOhm=16200)
    assert read(c, VSHUNT, SET_ns) == 311040
    assert read(c, CURRENT, SET_ns) == 314572
    assert read(c, VBUS, SET_ns) == 245760
    assert read(c, POWER, SET_ns) == 245760 * 314572 >> 14
    current_lsb = 10 / 2**19
    assert 3.2 * current_lsb * read(c, POWER, SET_ns) == pytest.approx(6 * 48, rel=1e-5)


@settings(max_examples=300, deadline=None)
@given(st.integers(-(2**19), 2**19 - 1), st.integers(1, 0x7FFF), st.integers(0, 2**19 - 1))
def test_identities_are_exact(vshunt, cal, vbus):
    current, over = model.current_register(vshunt, cal)
    exact = abs(vshunt) * 4096 // cal
    assert current == (min(exact, 524287) if vshunt >= 0 else -min(exact, 524287))
    assert over == (exact > 524287)
    power, over = model.power_register(vbus, current)
    assert power == min(vbus * abs(current) >> 14, 0xFFFFFF)


def test_reset_values_and_ids():
    c = model.INA228(constant(0, 0), 0)
    reset = {0: 0, 1: 0xFB68, 2: 0x1000, 3: 0, 0xB: 1, 0xC: 0x7FFF, 0xD: 0x8000, 0xE: 0x7FFF, 0xF: 0, 0x10: 0x7FFF}
    for register, value in {**reset, 0x11: 0xFFFF, 0x3E: 0x5449, 0x3F: 0x2281}.items():
        assert c.value(register, 0) == (value, 2)
    assert [c.value(r, 0)[1] for r in (4, 5, 7, 8, 9, 10)] == [3, 3, 3, 3, 5, 5]


def test_values_are_stale_until_conversion_ready():
    c = chip()
    assert c.ready_at() == SET_ns
    for t in (0, 589_999):
        assert [read(c, r, t) for r in (VSHUNT, CURRENT, CHARGE, VBUS, POWER, ENERGY)] == [0] * 6
        assert not read(c, DIAG, t) & 2 and c.alert() == 1
    assert not read(c, DIAG, SET_ns - 1) & 2 and c.alert() == 1
    assert read(c, VBUS, SET_ns) == 25600
    assert c.alert() == 0
    assert read(c, DIAG, SET_ns) == 0xC003
    assert c.alert() == 1  # the read has released it
    assert c.ready_at() == 2 * SET_ns


def test_each_result_is_there_when_its_channel_is_done():
    """Temperature 50 us, shunt 540 us, bus 150 us: what is read late belongs to the next set."""
    seen = []

    def supply(t0, t1, t2):
        seen.append((t0, t1, t2))
        return (0.5 if t0 < SET_ns else 0.25), (5.0 if t1 < SET_ns else 4.0)

    c = model.INA228(supply, 0, noise=0)
    for register, value in ((CONFIG, 0x10), (CAL, 4096), (ADC, CONTINUOUS_ALL)):
        c.write(register, value, 0)
    values = {
        t: [read(c, r, t) for r in (VSHUNT, CURRENT, VBUS, POWER, TEMP)]
        for t in (50_000, SET_ns, SET_ns + 589_999, SET_ns + 590_000, 2 * SET_ns)
    }
    assert values[50_000] == [0, 0, 0, 0, 3248]
    assert values[SET_ns] == values[SET_ns + 589_999] == [64_000, 64_000, 25_600, 100_000, 3248]
    assert values[SET_ns + 590_000] == [32_000, 32_000, 25_600, 100_000, 3248]
    assert values[2 * SET_ns] == [32_000, 32_000, 20_480, 40_000, 3248]
    assert seen[1:] == [
        (SET_ns + 50_000, SET_ns + 590_000, SET_ns + 590_000),
        (SET_ns + 590_000, SET_ns + 590_000, 2 * SET_ns),
    ]


def test_charge_goes_with_the_current_and_energy_with_the_power():
    c = chip()
    t = 1000 * SET_ns
    assert (read(c, CHARGE, t), read(c, ENERGY, t)) == (
        64_000 * 1000 * SET_ns // 10**9,
        100_000 * 1000 * SET_ns // (16 * 10**9),
    )
    t += 590_000
    assert (read(c, CHARGE, t), read(c, ENERGY, t)) == (
        64_000 * 1001 * SET_ns // 10**9,
        100_000 * 1000 * SET_ns // (16 * 10**9),
    )
    t += 150_000
    assert read(c, ENERGY, t) == 100_000 * 1001 * SET_ns // (16 * 10**9)


def test_alert_stays_low_and_does_not_fall_again_until_the_flag_is_read():
    c = chip()
    c.advance(5 * SET_ns)
    assert c.alert() == 0 and c.ready_at() == model.NEVER
    c.value(DIAG, 5 * SET_ns)
    assert c.ready_at() == 6 * SET_ns


def test_conversion_ready_is_only_for_the_latched_mode():
    with pytest.raises(ValueError, match="CNVR wants ALATCH"):
        chip().write(DIAG, 0x4000, 0)


def test_a_new_configuration_clears_the_flag_but_shutdown_does_not():
    for adc, is_kept in ((0, True), (0x8000, True), (CONTINUOUS_ALL, False), (0x7500, False)):
        c = chip()
        c.write(ADC, adc, SET_ns)
        assert bool(read(c, DIAG, SET_ns) & 2) == is_kept


def test_adc_config_write_drops_the_conversion_under_way():
    c = chip()
    c.write(ADC, CONTINUOUS_ALL, 700_000)
    assert c.ready_at() == 700_000 + SET_ns


@pytest.mark.parametrize("osc_ppm", [-5000, 0, 5000])
def test_schedule_follows_the_chips_oscillator(osc_ppm):
    c = chip(osc_ppm=osc_ppm)
    n = 13_513
    last = 0
    for _ in range(n):
        last = c.ready_at()
        c.value(DIAG, last)
    assert last == pytest.approx(n * SET_ns / (1 + osc_ppm * 1e-6), abs=2)


@pytest.mark.parametrize("osc_ppm", [0, 5000])
def test_accumulators_count_by_the_chips_own_time(osc_ppm):
    """2.5 W for n sets: ENERGY = n * 740 us * 2.5 W / 0.4 mJ whatever the true time was; fractions are kept."""
    c = chip(0.5, 5.0, osc_ppm=osc_ppm)
    n = 10_000
    t = int(n * SET_ns / (1 + osc_ppm * 1e-6)) + 10
    power, current = read(c, POWER, t), read(c, CURRENT, t)
    assert (power, current) == (100_000, 64_000)
    assert read(c, ENERGY, t) == power * n * SET_ns // (16 * 10**9)
    assert read(c, CHARGE, t) == current * n * SET_ns // 10**9
    assert 16 * 3.2 * 7.8125e-6 * read(c, ENERGY, t) == pytest.approx(2.5 * n * SET_ns * 1e-9, rel=1e-4)


def test_charge_is_signed_and_energy_is_not():
    c = chip(-0.5, 5.0)
    t = 1000 * SET_ns
    assert read(c, CURRENT, t) == -64_000
    assert read(c, CHARGE, t) == -47_360
    assert read(c, ENERGY, t) == 100_000 * 1000 * SET_ns // (16 * 10**9)


def test_energy_overflow_is_flagged_and_the_flag_clears_on_read():
    c = chip()
    c.energy = (1 << 40) - 1
    c.advance(4 * SET_ns)
    assert read(c, DIAG, 4 * SET_ns) & model.ENERGYOF
    assert read(c, ENERGY, 4 * SET_ns) < 100
    assert not read(c, DIAG, 4 * SET_ns) & model.ENERGYOF


def test_rstacc_clears_accumulators_only():
    c = chip()
    c.advance(100 * SET_ns)
    c.write(CONFIG, 0x4010, 100 * SET_ns)
    assert read(c, ENERGY, 100 * SET_ns) == read(c, CHARGE, 100 * SET_ns) == 0
    assert read(c, CURRENT, 100 * SET_ns) == 64_000
    assert c.value(CONFIG, 100 * SET_ns)[0] == 0x10  # clears itself
    assert c.end == 101 * SET_ns


@pytest.mark.parametrize("how", ["RST", "brown-out"])
def test_reset_forgets_everything(how):
    c = chip()
    c.advance(100 * SET_ns)
    if how == "RST":
        c.write(CONFIG, 0x8000, 100 * SET_ns)
    else:
        c.power_on(100 * SET_ns)
    t = 100 * SET_ns + 1
    assert [c.value(r, t)[0] for r in (CONFIG, ADC, CAL, DIAG)] == [0, 0xFB68, 0x1000, 1]
    assert [read(c, r, t) for r in (VBUS, CURRENT, ENERGY, CHARGE)] == [0, 0, 0, 0]
    assert c.ready_at() == model.NEVER


@pytest.mark.parametrize("fine, full_scale", [(True, 40.96e-3), (False, 163.84e-3)])
def test_shunt_saturates_at_full_scale(fine, full_scale):
    for amps, register in ((2 * full_scale / 0.01, 524287), (-2 * full_scale / 0.01, -524288)):
        c = chip(amps, 5.0, fine=fine, cal=4096)
        assert read(c, VSHUNT, SET_ns) == register
    c = chip(0.5 * full_scale / 0.01, 5.0, fine=fine)
    assert read(c, VSHUNT, SET_ns) == 262144


def test_math_overflow_is_flagged():
    c = chip(3.0, 5.0, cal=2048)  # CURRENT would be twice what fits
    assert read(c, CURRENT, SET_ns) == 524287
    assert read(c, DIAG, SET_ns) & model.MATHOF


def test_calibration_zero_reads_zero():
    c = chip(cal=0)
    assert read(c, CURRENT, SET_ns) == read(c, POWER, SET_ns) == 0
    assert read(c, VSHUNT, SET_ns) == 64_000


def test_offset_and_gain():
    c = chip(0.5, 5.0, offset_uV=1.0, gain_ppm=500, vbus_gain_ppm=-1000)
    assert read(c, VSHUNT, SET_ns) == round((5e-3 * 1.0005 + 1e-6) / 78.125e-9)
    assert read(c, VBUS, SET_ns) == round(5 * 0.999 / 195.3125e-6)


@pytest.mark.parametrize("code, time_us", [(0, 50), (4, 540), (7, 4120)])
def test_noise_falls_with_the_root_of_the_conversion_time(code, time_us):
    c = model.INA228(constant(0.5, 5.0), 0)
    c.write(CONFIG, 0x10, 0)
    c.write(ADC, 0xF << 12 | code << 9 | code << 6, 0)
    values = []
    for _ in range(4000):
        t = c.end
        values.append((read(c, VSHUNT, t), read(c, VBUS, t)))
    shunt, bus = np.array(values).T
    for readings, lsb_V, noise_V in (
        (shunt, 78.125e-9, 8.6e-6),
        (bus, 195.3125e-6, 1.9e-3),
    ):  # and what rounding to whole counts adds
        expected_V = math.hypot(noise_V * (50 / time_us) ** 0.5, lsb_V / 12**0.5)
        assert readings.std() * lsb_V == pytest.approx(expected_V, rel=0.06)
    assert shunt.mean() == pytest.approx(64_000, abs=5 * shunt.std() / 63)


def test_each_channel_sees_its_own_window():
    """Current counts from 50 to 590 us of a set, behind the temperature, and voltage only in the 150 us after."""
    seen = []

    def supply(t0, t1, t2):
        seen.append((t0, t1, t2))
        return 0.5, 5.0

    c = model.INA228(supply, 0, noise=0)
    c.write(ADC, CONTINUOUS_ALL, 10)
    c.advance(10 + 2 * SET_ns)
    assert seen == [(50_010, 590_010, 740_010), (50_010 + SET_ns, 590_010 + SET_ns, 740_010 + SET_ns)]


def test_averaging_takes_n_windows():
    seen = []

    def supply(t0, t1, t2):
        seen.append(t0)
        return (0.2, 5.0) if len(seen) % 2 else (0.6, 5.0)

    c = model.INA228(supply, 0, noise=0)
    c.write(CONFIG, 0x10, 0)
    c.write(ADC, CONTINUOUS_ALL | 1, 0)  # 4 averages
    assert c.set_end() == 4 * SET_ns
    assert read(c, VSHUNT, 4 * SET_ns - 1) == 0  # all results at the end of the set
    assert read(c, VSHUNT, 4 * SET_ns) == round(0.4 * 0.01 / 78.125e-9)
    assert seen == [50_000, 790_000, 1_530_000, 2_270_000]


def test_triggered_mode_converts_once_and_shutdown_never():
    c = chip()
    c.write(ADC, 0x7500, 0)
    c.advance(10 * SET_ns)
    assert read(c, VBUS, 10 * SET_ns) == 25600 and c.end == model.NEVER
    assert read(c, ENERGY, 10 * SET_ns) == 0  # accumulates in continuous modes only
    c.write(ADC, 0, 10 * SET_ns)
    assert c.end == model.NEVER
    c.write(ADC, 0x7500, 20 * SET_ns)
    assert c.end == 21 * SET_ns + 60_000  # it wakes up first


def test_the_same_on_micropython():
    script = load(ROOT / "tests/micropython/model.py", ina228_model=model)
    expected = []
    script.script(expected.append)
    done = run_script("model.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(e) for e in expected]
    assert len(expected) > 350
