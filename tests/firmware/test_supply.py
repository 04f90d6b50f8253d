"""The physics of the SIMULATED rail behind its switch, against closed forms and against integration."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simboard import make_feed
from standins import STAND_INS, load


@pytest.fixture
def rail(tmp_path):
    supply, feed_reader = (load(STAND_INS / f"{name}.py", name) for name in ("supply", "feed_reader"))

    def make(watts=2.5, rise_ms=4.0, **load_settings):
        make_feed(tmp_path / "feed", watts)
        crossings = []
        source = feed_reader.Feed(str(tmp_path / "feed"), 0, 0, 0)
        s = supply.Supply(source, supply.Load(rise_ms, gate_us=0, **load_settings), crossings.append)

        def until(t):
            while s.plan and s.plan[0][0] <= t:
                s.due()
            return s.at(t)

        return s, until, crossings

    return make


def fall(until, t0, v0, span_ns):
    """90 to 10 % by stepping through the fall, us."""
    times = [t0 + k * span_ns // 20000 for k in range(20000)]
    volts = [until(t)[1] for t in times]
    t90 = next(t for t, v in zip(times, volts) if v < 0.9 * v0)
    t10 = next(t for t, v in zip(times, volts) if v < 0.1 * v0)
    return (t10 - t90) / 1000


@pytest.mark.parametrize("ohms, us", [(10, 10340), (2.2, 2275)])
def test_crowbar_into_470_uF(rail, ohms, us):
    """2.2 R C, with a drive that draws nothing."""
    s, until, _ = rail(0.0, bulk_uF=470, discharge_mOhm=ohms * 1000, leak_mA=0)
    s.gate(10**9, 1)
    s.gate(10**9, 3)
    assert fall(until, 10**9, 5, 20_000_000) == pytest.approx(us, rel=0.005)
    assert us == pytest.approx(math.log(9) * ohms * 470, rel=0.01)


def test_float_with_a_drive_that_lets_go(rail):
    """C V / I: fast while the drive lives, then 10 mA alone; each stretch against its closed form."""
    s, until, crossings = rail(2.5, bulk_uF=470, leak_mA=10)
    s.gate(10**9, 1)
    dies = 470e-6 * (25 - 16) / (2 * 2.5)
    until(10**9 + int(dies * 0.999e9))
    assert crossings == []
    until(10**9 + int(dies * 1.001e9))
    assert crossings == [False]
    to_zero = 470e-6 * 4.0 / 0.010
    assert until(10**9 + int((dies + to_zero / 2) * 1e9))[1] == pytest.approx(2.0, abs=0.01)
    assert until(10**9 + int((dies + to_zero + 0.001) * 1e9))[1] == 0
    assert until(10**9 + int((dies + to_zero) * 2e9))[0] == 0


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0.1, 15), st.floats(10, 1000), st.floats(0.5, 50), st.floats(1, 20), st.booleans())
def test_closed_forms_against_integration(rail, watts, bulk_uF, ohms, leak_mA, crowbar):
    """C dV/dt = -P/V - V/R, then -I - V/R below the lock-out, by small steps (Heun)."""
    s, until, _ = rail(watts, bulk_uF=bulk_uF, discharge_mOhm=ohms * 1000, leak_mA=leak_mA)
    s.gate(10**9, 1)
    if crowbar:
        s.gate(10**9, 3)
    c, r, v, h = bulk_uF * 1e-6, ohms if crowbar else math.inf, 5.0, bulk_uF * 1e-6 / 2000
    alive = True

    def slope(v):
        return -(watts / v if alive else leak_mA / 1000) / c - v / r / c

    t = 0.0
    for k in range(3000):
        a = slope(v)
        v += h * (a + slope(max(v + h * a, 0.05))) / 2
        t += h
        if v <= 0.05:
            break
        alive = alive and v > 4.0
        if k % 100 == 0:
            assert until(10**9 + round(t * 1e9))[1] == pytest.approx(v, abs=0.02)


def test_the_rail_rises_and_the_drive_lives(rail):
    s, until, crossings = rail(2.5, rise_ms=3.0)
    s.gate(10**9, 1)
    s.gate(10**9, 3)
    until(10**9 + 500_000_000)
    s.gate(10**9 + 500_000_000, 1)
    s.gate(10**9 + 500_000_000, 0)
    amps, volts = until(10**9 + 501_500_000)
    assert volts == pytest.approx(2.5, abs=0.01)
    assert amps == pytest.approx(470e-6 * 5 / 3e-3 + 0.010, rel=0.01)  # inrush: C dV/dt
    assert crossings == [False]
    until(10**9 + 502_500_000)
    assert crossings == [False, True]
    assert until(10**9 + 504_000_000) == (pytest.approx(0.5), 5.0)
