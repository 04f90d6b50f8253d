"""The parts that a clock's bound is made of, each worked by hand: hulls, corners, windows together, outliers."""

import numpy as np
import pytest

from ssdrig.meter import clock

US = np.array([0.0, 1e6, 2e6])


def lists(arrays) -> list:
    return [a.tolist() for a in arrays]


@pytest.mark.parametrize(
    ("x", "y", "hull"),
    [
        ([0, 1, 2], [0, 1, 0], [[0, 2], [0, 0]]),
        ([0, 1, 2], [0, -1, 0], [[0, 1, 2], [0, -1, 0]]),
        ([0, 1, 2], [0, 1, 2], [[0, 2], [0, 2]]),  # in a line: no corner
        ([0, 1, 3, 4], [0, 2, 2, 0], [[0, 4], [0, 0]]),
        ([0, 1, 2, 3], [3, 1, 1, 0], [[0, 1, 3], [3, 1, 0]]),
        ([0, 0, 1, 1], [5, 3, 1, 2], [[0, 1], [3, 1]]),  # the lowest of those at one place
        ([7], [1], [[7], [1]]),
        ([7, 7], [2, 1], [[7], [1]]),
    ],
)
def test_lower_hulls(x, y, hull):
    assert lists(clock._lower_hull(np.array(x, float), np.array(y, float))) == hull


@pytest.mark.parametrize(
    ("gap", "b", "top"),
    [
        ([-1, 1, 2, 1, -3], [-1.5, -1, 0, 1, 1.25], [0, 1, 2, 1, 0]),
        ([1, 2, 3, 2, 1], [-2, -1, 0, 1, 2], [1, 2, 3, 2, 1]),
        ([-2, -1, 0, -1, -2], [0, 0, 0], [0, 0, 0]),
        ([0, 1, 0, -1, -2], [-2, -1, 0, 0], [0, 1, 0, 0]),
        ([-4, -2, -1, 0, 4], [1, 1, 2], [0, 0, 4]),
    ],
)
def test_the_feasible_part_is_cut_where_top_meets_bottom(gap, b, top):
    slopes, zero = np.arange(-2.0, 3), np.zeros(5)
    assert lists(clock._feasible(slopes, np.array(gap, float), zero)) == [b, top, [0] * len(b)]
    assert lists(clock._feasible(slopes, zero + 7, 7 - np.array(gap, float))) == [b, [7] * len(b), [7 - t for t in top]]


@pytest.mark.parametrize("seed", range(5))
def test_corners_are_the_tightest_of_all_pings(seed):
    """Between two neighbouring corners top and bottom are straight, so their middle is theirs too."""
    dice = np.random.default_rng(seed)
    x = np.sort(dice.uniform(-2e6, 2e6, 12))
    low = dice.uniform(-1e6, 1e6, 12)
    high = low + dice.uniform(0, 1e6, 12)
    b, top, bottom = clock._corners(x, low, x, high)
    assert (b[0], b[-1]) == (-1, 1) and (np.diff(b) > 0).all()
    for at in range(len(b)):
        assert top[at] == pytest.approx((high - b[at] * x).min())
        assert bottom[at] == pytest.approx((low - b[at] * x).max())
    middle = (b[1:] + b[:-1]) / 2
    assert (top[1:] + top[:-1]) / 2 == pytest.approx([(high - m * x).min() for m in middle])
    assert (bottom[1:] + bottom[:-1]) / 2 == pytest.approx([(low - m * x).max() for m in middle])


def test_a_region_at_a_tick():
    """Lines through the corners (b, top) and (b, bottom), from x0 on, with the allowance on both sides."""
    slopes, top, bottom = np.array([-0.5, 1.0]), np.array([10.0, 20.0]), np.array([0.0, -4.0])
    region = clock._Region(1000.0, slopes, top, bottom, 3.0, np.ones(2, bool), False)
    assert lists(region.range_at(np.array([1000.0, 1010.0, 990.0]))) == [[-7, -8, -17], [23, 33, 18]]


# ---- windows together


def test_windows_that_agree_narrow_each_other():
    both = clock._Envelope(3)
    both.add(slice(0, 2), np.array([0.0, 0.0]), np.array([10.0, 10.0]))
    both.add(slice(1, 3), np.array([4.0, 5.0]), np.array([30.0, 9.0]))
    assert lists(both.result(US)) == [US.tolist(), [5, 7, 7], [5, 3, 2]]


@pytest.mark.parametrize(("low", "middle", "half"), [(10.0, 10, 0), (11.0, 15, 15)])
def test_windows_at_odds_give_all_that_any_allows(low, middle, half):
    both = clock._Envelope(1)
    both.add(slice(0, 1), np.array([0.0]), np.array([10.0]))
    both.add(slice(0, 1), np.array([low]), np.array([30.0]))
    assert lists(both.result(US[:1])) == [[0], [middle], [half]]


@pytest.mark.parametrize(("apart_us", "knots"), [(1.5e6, 2), (1.6e6, 3)])
def test_between_knots_far_apart_the_drift_adds(apart_us, knots):
    one = clock._Envelope(3)
    one.add(slice(0, 1), np.array([0.0]), np.array([10.0]))
    one.add(slice(2, 3), np.array([10.0]), np.array([40.0]))
    at, middle, half = lists(one.result(np.array([0.0, 7.0, apart_us])))
    if knots == 2:
        assert (at, middle, half) == ([0, apart_us], [5, 25], [5, 15])
    else:
        assert (at, middle, half) == ([0, 0.8e6, 1.6e6], [5, 15, 25], [5, 15 + 2e-3 * 0.8e6, 15])


# ---- which pings contradict the others


@pytest.mark.parametrize(("more", "is_used"), [(0, True), (1, False)])
def test_the_quicker_half_makes_the_line(more, is_used):
    """Slopes of the four quickest: three 0, then 0.2, 0.3 and 0.6 ns/us, so 0.1; their offsets 0, -100, -200 and 300
    us, so -50. At 7 s that is 650 us; a slow one may miss it by its half, 100 us and three median halves."""
    x = np.arange(8) * 1e6
    middle = np.array([0, 0, 0, 600_000, 0, 0, 0, 650_000 + 1000 + 100_000 + 3 * 520 + more], float)
    half = np.array([10, 20, 30, 40, 1000, 1000, 1000, 1000], float)
    assert clock._consistent(x, middle - half, middle + half)[7] == is_used


@pytest.mark.parametrize(("more", "is_used"), [(0, True), (1, False)])
def test_at_least_three_make_the_line(more, is_used):
    """Slopes 0, 0.1 and 0.2: at 3 s the line is at 300 us."""
    x = np.arange(4) * 1e6
    middle = np.array([0, 0, 200_000, 300_000 + 1000 + 100_000 + 3 * 25 + more], float)
    half = np.array([10, 20, 30, 1000], float)
    assert clock._consistent(x, middle - half, middle + half)[3] == is_used


@pytest.mark.parametrize("sign", [1, -1])
def test_no_line_is_steeper_than_a_clock_can_be(sign):
    """5 ns/us are taken for 1: the line passes the middle one only."""
    middle = sign * np.array([0, 5e6, 10e6])
    assert clock._consistent(US, middle - 1000, middle + 1000).tolist() == [False, True, False]


def test_pings_of_one_tick_have_no_slope():
    middle = np.array([0, 0, 300_000.0])
    assert clock._consistent(np.full(3, 5e6), middle - 1000, middle + 1000).tolist() == [True, True, False]


def test_the_usual_ping_is_the_median():
    """Two of five answers that are an hour off do not decide what is usual."""
    for off_us in (-3600, 3600):
        rows = [(s * 10**9, (s + (off_us if s < 2 else 0) + 10_000) * 10**6, s * 10**9 + 1000) for s in range(5)]
        made = clock.fit(*np.array(rows, np.int64).T)
        assert made.outliers == 2 and made.base_us == 10_002 * 10**6


@pytest.mark.parametrize("seed", range(4))
def test_points_that_no_hull_needs_change_no_clock(seed, monkeypatch):
    """Nine minutes of pings, some at the same tick, some contradicting the others, with a pause of two minutes."""
    dice = np.random.default_rng(seed)
    tick_us = np.sort(dice.integers(0, 540_000_000, 2000) // 50_000 * 50_000)
    tick_us = tick_us[(tick_us < 200_000_000) | (tick_us > 320_000_000)]
    true_ns = tick_us * 1000 * (1 + 80e-6) + 1e12
    t1_ns, t4_ns = ((true_ns + sign * dice.exponential(60_000, len(true_ns))).astype(np.int64) for sign in (-1, 1))
    t1_ns[::97] += 300_000
    t4_ns[::97] += 300_000
    fast = clock.fit(t1_ns, tick_us, t4_ns)
    monkeypatch.setattr(clock, "_may_turn", lambda x, y, block: np.ones(len(x), bool))
    plain = clock.fit(t1_ns, tick_us, t4_ns)
    assert fast.tick_us.tolist() == plain.tick_us.tolist()
    assert fast.offset_ns == pytest.approx(plain.offset_ns, abs=1e-5)
    assert fast.knot_bound_ns == pytest.approx(plain.knot_bound_ns, abs=1e-5)
    assert (fast.outliers, fast.strained) == (plain.outliers, plain.strained)
