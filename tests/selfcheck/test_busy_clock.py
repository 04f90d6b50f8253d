"""The clock on a busy host, in device time: quick round trips bound the minutes without any, and what contradicts them
neither moves the map nor hides."""

import numpy as np
import pytest

from selfcheck import busy_clock
from ssdrig.meter import clock

MS = 1e6


def late_minutes(rng, late, begin_s, end_s, seconds=240.0, **of):
    made_of = busy_clock.crystal(rng, seconds, **of)
    return made_of, busy_clock.pings(rng, made_of, seconds, late, begin_s, end_s)


def assert_true(rng, of, made, most_ms, begin_s=0.0, end_s=240.0):
    error, bound = busy_clock.errors_ns(rng, of, made, begin_s, end_s)
    assert (np.abs(error) <= bound).mean() >= 0.999
    assert bound.max() <= most_ms * MS


@pytest.mark.parametrize("late", busy_clock.LATE)
@pytest.mark.parametrize(("begin_s", "end_s"), [(100, 160), (0, 60), (180, 240), (60, 240), (0, 200)])
def test_quick_pings_bound_minutes_without_any(late, begin_s, end_s):
    rng = np.random.default_rng(1)
    of, (t1, tick, t4) = late_minutes(rng, late, begin_s, end_s)
    slow = (t4 - t1)[(tick - busy_clock.TICK0_US > begin_s * 1e6) & (tick - busy_clock.TICK0_US < end_s * 1e6)]
    assert slow.min() > 2000 * MS  # no quick one among them
    assert_true(rng, of, clock.fit(t1, tick, t4), 5.0)


@pytest.mark.parametrize("seed", range(40))
def test_bound_of_a_late_minute_holds_with_warming_and_wrong_pings(seed):
    error, bound = busy_clock.one(seed)
    assert (np.abs(error) <= bound).mean() >= 0.999 and bound.max() <= 5 * MS


@pytest.mark.parametrize("off_ms", [1.0, -3.0, 40.0, -1000.0])
def test_a_wrong_ping_among_late_ones_is_dropped(off_ms):
    rng = np.random.default_rng(2)
    of, (t1, tick, t4) = late_minutes(rng, "both", 100, 160)
    at = int(np.searchsorted(tick, busy_clock.TICK0_US + 130 * 10**6))
    wrong_ns = int(of.at(tick[at] - busy_clock.TICK0_US) + off_ms * MS) + busy_clock.HOST0_NS
    t1[at], t4[at] = wrong_ns - 100_000, wrong_ns + 100_000
    made = clock.fit(t1, tick, t4)
    assert made.outliers == 1
    assert_true(rng, of, made, 5.0)


def test_one_quick_ping_a_minute_is_enough():
    rng = np.random.default_rng(3)
    of, (t1, tick, t4) = late_minutes(rng, "both", 0, 240)
    for at in range(150, len(tick), 590):
        true_ns = int(of.at(tick[at] - busy_clock.TICK0_US)) + busy_clock.HOST0_NS
        t1[at], t4[at] = true_ns - 200_000, true_ns + 400_000
    assert_true(rng, of, clock.fit(t1, tick, t4), 5.0, 20, 190)


@pytest.mark.parametrize(("step_ms", "slew_ppm"), [(300, 0), (0, 500)])
def test_a_host_clock_that_is_set_or_slewed_is_not_bridged(step_ms, slew_ppm):
    """In the late minute, where no ping shows when."""
    rng = np.random.default_rng(4)
    of, (t1, tick, t4) = late_minutes(rng, "both", 100, 160)
    moved = of._replace(
        host_ns=of.host_ns
        + step_ms * MS * (of.device_us > 130e6)
        + slew_ppm * 1e3 * np.clip(of.device_us / 1e6 - 120, 0, 20)
    )
    at = tick - busy_clock.TICK0_US
    by = (moved.at(at) - of.at(at)).astype(np.int64)
    made = clock.fit(t1 + by, tick, t4 + by)
    error, bound = busy_clock.errors_ns(rng, moved, made, 0, 240)
    assert (np.abs(error) <= bound).all()


def test_a_reset_in_a_late_minute_begins_a_clock_of_its_own():
    """The new boot's bound comes from its own pings, from those behind the late ones backwards."""
    rng = np.random.default_rng(5)
    for boot, (begin_s, end_s) in enumerate([(180, 240), (0, 60)]):
        of, pings = late_minutes(rng, "both", begin_s, end_s, ppm=(40.0, 41.0)[boot])
        assert_true(rng, of, clock.fit(*pings), 5.0)


def test_without_any_quick_ping_the_bound_says_so():
    rng = np.random.default_rng(6)
    of, pings = late_minutes(rng, "both", 0, 240)
    made = clock.fit(*pings)
    error, bound = busy_clock.errors_ns(rng, of, made, 0, 240)
    assert (np.abs(error) <= bound).all() and bound.min() > 1000 * MS


@pytest.mark.parametrize("sign", [-1, 1])
def test_bridges_are_the_bounds_of_the_formulas(sign):
    """Knots known to +-1 us at 0 to 3 s and at 100 s: in between the chord and the warming's parabola, by hand."""
    knots = np.arange(0.0, 100e6 + 1, 1e6)
    low, high = np.full(101, -np.inf), np.full(101, np.inf)
    for at in (0, 1, 2, 3, 100):
        low[at], high[at] = -1000.0, 1000.0
    low, high = (low, high) if sign > 0 else (-high, -low)
    below, above = clock._from_others(knots, low, high)
    bend, steady = 3e-6 / 60 * 1e9, 0.2e-6 * 1e9  # ns per s2, ns per s
    since, left = 47.0, 50.0
    between = 1000 + bend * since * left / 2 + 2 * steady * since * left / (since + left)
    assert above[50] == pytest.approx(between) and below[50] == pytest.approx(-between)
    alone = clock._beyond(knots, low, high)
    lag = 3.0
    gap = 2.0
    beyond = 1000 + gap * (2000 / lag) + bend * gap * (gap + lag) / 2 + 2 * steady * gap
    assert alone[5] == pytest.approx(beyond)
