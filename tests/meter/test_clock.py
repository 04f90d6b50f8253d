"""The clock: with a steady rate the error never passes the stated bound, whatever the delays were."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.meter import clock

HOST0 = 17_000_000_000_000
TICK0 = 1_068_741_824


def true_ns(device_us, ppm):
    """Host time of device time (float us since TICK0), as float ns since HOST0: exact to far below a ns here."""
    return device_us * 1000 / (1 + ppm * 1e-6)


def pings(rng, seconds, ppm, hz=10, there_us=(60, 80), back_us=(120, 150), held_up=0.05):
    """t1, tick, t4 of pings at about hz with delays base + exponential, some 5 ms longer."""
    n = max(1, int(seconds * hz))
    device_us = np.cumsum(rng.uniform(0.8, 1.2, n) * 1e6 / hz)
    at = true_ns(device_us, ppm)
    delays = [
        1e3 * (base + rng.exponential(mean, n)) + 5e6 * (rng.random(n) < held_up) for base, mean in (there_us, back_us)
    ]
    t1, t4 = np.floor(at - delays[0]).astype(np.int64) + HOST0, np.ceil(at + delays[1]).astype(np.int64) + HOST0
    return t1, np.floor(device_us).astype(np.int64) + TICK0, t4


def errors(made, rng, seconds, ppm, samples=4000):
    """Error and stated bound (ns) at random instants of the span."""
    device_us = np.sort(rng.uniform(0, seconds * 1e6, samples))
    ticks = np.floor(device_us).astype(np.int64) + TICK0
    return made.t_ns(ticks) - HOST0 - true_ns(device_us, ppm), made.bound_ns(ticks)


@given(
    seed=st.integers(0, 2**32),
    ppm=st.floats(-900, 900),
    seconds=st.floats(0.1, 200),
    bases=st.tuples(*[st.floats(0, 2000)] * 4),
    held_up=st.floats(0, 1),
)
@settings(max_examples=40, deadline=None)
def test_error_never_passes_the_bound_at_a_steady_rate(seed, ppm, seconds, bases, held_up):
    rng = np.random.default_rng(seed)
    made = clock.fit(*pings(rng, seconds, ppm, there_us=bases[:2], back_us=bases[2:], held_up=held_up))
    error, bound = errors(made, rng, seconds, ppm)
    assert (np.abs(error) <= bound).all()
    assert made.outliers == 0 and made.strained == 0


@pytest.mark.parametrize("seconds", [40, 600])
def test_bound_is_near_half_of_the_quickest_round_trip(seconds):
    rng = np.random.default_rng(3)
    made = clock.fit(*pings(rng, seconds, 80))
    error, bound = errors(made, rng, seconds, 80)
    assert 85_000 < bound.min() and bound.max() < 135_000  # (60 + 120) / 2 us is what no method can get below
    assert np.abs(error).max() < 50_000  # of which 30 us is the asymmetry that nobody can know
    assert made.rate_ppm() == pytest.approx(80, abs=1)


@given(seed=st.integers(0, 2**32), ppm=st.floats(-900, 900), held_us=st.floats(0, 20_000), seconds=st.floats(0.1, 100))
@settings(max_examples=40, deadline=None)
def test_what_the_rig_held_is_taken_off_and_the_bound_still_holds(seed, ppm, held_us, seconds):
    """The rig holds each ping for a while around its stamp, and says for how long."""
    rng = np.random.default_rng(seed)
    t1, tick, t4 = pings(rng, seconds, ppm)
    held = rng.uniform(0, held_us, len(tick)).astype(np.int64)
    before, after = held >> 1, held - (held >> 1)
    rate = 1000 / (1 + ppm * 1e-6)
    late = np.floor(t1 - before * rate).astype(np.int64), tick, np.ceil(t4 + after * rate).astype(np.int64), held
    made = clock.fit(*late)
    error, bound = errors(made, np.random.default_rng(1), seconds, ppm)
    assert (np.abs(error) <= bound).all() and made.outliers == 0 and made.strained == 0
    blind = clock.fit(*late[:3])
    # ns: 1000 ppm of it, more at the ends
    assert made.knot_bound_ns[1:-1].max() <= clock.fit(t1, tick, t4).knot_bound_ns[1:-1].max() + 3 * held_us + 3000
    if held_us > 5000 and len(tick) > 20:
        assert bound.max() < blind.bound_ns(tick).max()


def test_a_ping_held_for_longer_than_its_round_trip_is_an_outlier():
    rng = np.random.default_rng(5)
    t1, tick, t4 = pings(rng, 20, 10)
    held = np.zeros(len(tick), np.int64)
    held[7] = (t4[7] - t1[7]) // 1000 + 10
    assert clock.fit(t1, tick, t4, held).outliers == 1 and clock.fit(t1, tick, t4).outliers == 0
    held[8] = 0xFFFFFFFF
    assert clock.fit(t1, tick, t4, held).outliers == 2


def test_drift_with_temperature_is_followed():
    """Rate changes by 0.3 ppm a minute for an hour: a straight line would be off by ms."""
    rng = np.random.default_rng(4)
    device_us = np.cumsum(rng.uniform(0.08, 0.12, 36_000)) * 1e6
    minutes = device_us / 60e6
    at = device_us * 1000 - 0.5 * 0.3e-6 * minutes * device_us * 1000
    t1, t4 = at - 60e3 - rng.exponential(80e3, len(at)), at + 120e3 + rng.exponential(150e3, len(at))
    ticks = np.floor(device_us).astype(np.int64)
    made = clock.fit(np.floor(t1).astype(np.int64) + HOST0, ticks, np.ceil(t4).astype(np.int64) + HOST0)
    line = np.polyval(np.polyfit(device_us - device_us.mean(), at - device_us * 1000, 1), device_us - device_us.mean())
    assert np.abs(line - (at - device_us * 1000)).max() > 1e6  # the drift is worth following
    error = made.t_ns(ticks) - HOST0 - at
    assert (np.abs(error) <= made.bound_ns(ticks)).all()
    assert made.bound_ns(ticks).max() < 150_000
    assert made.strained == 0


def test_nanoseconds_hold_after_a_year_of_uptime():
    year_ns, year_us = 365 * 86_400 * 10**9, 2**52
    t1 = year_ns + np.arange(100, dtype=np.int64) * 100_000_000
    ticks = year_us + np.arange(100, dtype=np.int64) * 100_000
    made = clock.fit(t1, ticks, t1 + 10)  # round trips of 10 ns: only the tick's microsecond is unknown
    t_ns = made.t_ns(ticks)
    assert np.abs(t_ns - t1 - 5).max() <= 1000
    assert made.bound_ns(ticks).max() < 3100  # 0.5 us each for tick and sample, twice the drift allowed in 10 s
    fine = made.t_ns(year_us + 5_000_000 + np.arange(1000))
    assert np.abs(np.diff(fine) - 1000).max() <= 1  # a microsecond of ticks is a microsecond, to the ns


def test_pings_that_contradict_all_others_are_dropped_and_counted():
    rng = np.random.default_rng(5)
    t1, ticks, t4 = pings(rng, 100, 80)
    bad = [100, 101, 500, 900]
    t1[bad] += 40_000_000
    t4[bad] += 40_000_000
    t4[700] = t1[700] - 1  # answered before it was asked
    made = clock.fit(t1, ticks, t4)
    error, bound = errors(made, rng, 100, 80)
    assert made.outliers == 5 and made.pings == len(t1) and made.strained == 0
    assert (np.abs(error) <= bound).all() and bound.max() < 150_000


def test_a_tick_of_another_century_does_not_stretch_the_map():
    rng = np.random.default_rng(5)
    t1, ticks, t4 = pings(rng, 100, 80)
    ticks[300] = 2**51
    made = clock.fit(t1, ticks, t4)
    error, bound = errors(made, rng, 100, 80)
    assert made.outliers == 1 and len(made.tick_us) < 200 and (np.abs(error) <= bound).all()


def test_a_clock_that_jumps_is_not_called_exact():
    rng = np.random.default_rng(6)
    t1, ticks, t4 = pings(rng, 55, 0)
    half = len(t1) // 2
    t1[half:] += 3_000_000
    t4[half:] += 3_000_000
    made = clock.fit(t1, ticks, t4)
    assert made.strained > 0 and made.bound_ns(ticks[half // 2]) > 500_000


def test_the_bound_grows_away_from_the_pings():
    rng = np.random.default_rng(7)
    made = clock.fit(*pings(rng, 60, 80))
    within, behind, far = made.bound_ns(TICK0 + np.array([30, 61, 600]) * 1_000_000)
    assert within <= behind < far
    device_us = np.array([600e6, -60e6])
    error = made.t_ns(TICK0 + device_us.astype(np.int64)) - HOST0 - true_ns(device_us, 80)
    assert (np.abs(error) <= made.bound_ns(TICK0 + device_us.astype(np.int64))).all()


def test_the_bound_grows_in_a_hole_without_pings():
    rng = np.random.default_rng(8)
    t1, ticks, t4 = pings(rng, 600, 80)
    there = (ticks < ticks[0] + 100_000_000) | (ticks > ticks[0] + 500_000_000)
    made = clock.fit(t1[there], ticks[there], t4[there])
    error, bound = errors(made, rng, 600, 80)
    assert (np.abs(error) <= bound).all()
    assert made.bound_ns(TICK0 + 300_000_000) > made.bound_ns(TICK0 + 50_000_000) + 0.9 * clock.DRIFT_PPM * 1e-3 * 200e6


def test_one_ping_is_enough_for_a_map_and_its_bound_says_so():
    made = clock.fit([HOST0], [TICK0], [HOST0 + 500_000])
    assert made.t_ns(TICK0) == pytest.approx(HOST0 + 250_000, abs=1000)
    assert 250_000 <= made.bound_ns(TICK0) < 252_000
    assert made.bound_ns(TICK0 + 1_000_000) > 1_000_000  # nothing is known of the rate but NOMINAL_PPM


def test_order_and_repeats_of_pings_do_not_matter():
    rng = np.random.default_rng(9)
    t1, ticks, t4 = pings(rng, 90, 80)
    mixed = rng.permutation(np.concatenate([np.arange(len(t1)), np.arange(0, len(t1), 7)]))
    a, b = clock.fit(t1, ticks, t4), clock.fit(t1[mixed], ticks[mixed], t4[mixed])
    query = TICK0 + np.arange(0, 90_000_000, 77_777)
    assert (a.t_ns(query) == b.t_ns(query)).all()


@pytest.mark.parametrize("t1, t4", [([], []), ([5], [4])])
def test_without_a_usable_ping_there_is_no_clock(t1, t4):
    with pytest.raises(ValueError, match="ping"):
        clock.fit(t1, [0] * len(t1), t4)


@given(st.lists(st.tuples(st.integers(-50, 50), st.floats(-1e3, 1e3)), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_lower_hull_is_below_all_points_and_convex(points):
    points.sort()
    x, y = (np.array(v, float) for v in zip(*points))
    hx, hy = clock._lower_hull(x, y)
    assert set(zip(hx, hy)) <= set(zip(x, y))
    assert (np.interp(x, hx, hy) <= y + 1e-9).all()
    assert (np.diff(np.diff(hy) / np.diff(hx)) >= -1e-9).all()


def tight_pings(device_us, host_ns):
    """Pings that leave only some microseconds open; device_us whole."""
    host_ns = np.asarray(host_ns)
    t1, t4 = np.floor(host_ns - 1500).astype(np.int64), np.ceil(host_ns + 1500).astype(np.int64)
    return t1 + HOST0, np.asarray(device_us, np.int64) + TICK0, t4 + HOST0


def test_a_rate_that_changes_within_a_window_stays_inside_the_bound():
    """It runs 0.19 ppm fast for half a minute, then 0.19 ppm slow; in between nobody looks."""
    ppm = 0.95 * clock.STEADY_PPM
    device_us = np.arange(0, 60_000_001, 100_000)

    def host_ns(us):
        return us * 1000 + ppm * 1e-3 * np.minimum(us, 60_000_000 - us)

    looks = (device_us < 5_000_000) | (device_us > 55_000_000)
    made = clock.fit(*tight_pings(device_us[looks], host_ns(device_us[looks])))
    error = made.t_ns(device_us + TICK0) - HOST0 - host_ns(device_us)
    bound = made.bound_ns(device_us + TICK0)
    assert (np.abs(error) <= bound).all()
    assert np.abs(error).max() > 4_000 and bound.max() < 16_000  # ns: the change is seen, and the bound is no excuse
    assert made.outliers == 0 and made.strained == 0


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_rate_that_changes_beyond_the_pings_stays_inside_the_bound(sign):
    """A minute of pings, then an hour without, at a rate as far off as the crystal may drift; and before them."""
    inside = np.arange(0, 60_000_001, 100_000)
    made = clock.fit(*tight_pings(inside, inside * 1000.0))
    for beyond in (60_000_000 + np.array([60, 1800, 3500]) * 10**6, np.array([-60, -1800, -3500]) * 10**6):
        away_us = np.where(beyond > 0, beyond - 60_000_000, -beyond)
        host_ns = beyond * 1000 + sign * clock.DRIFT_PPM * 1e-3 * away_us
        error = made.t_ns(beyond + TICK0) - HOST0 - host_ns
        assert (np.abs(error) <= made.bound_ns(beyond + TICK0)).all()
