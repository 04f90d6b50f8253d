"""The clock's bound worked by hand, and each limit of a ping from both sides."""

import numpy as np
import pytest

from ssdrig.meter import clock

S_US, S_NS = 10**6, 10**9


def fit(*rows, held=None):
    """Pings of (sent ns, tick us, answer read ns)."""
    return clock.fit(*np.array(rows, np.int64).T, held)


def test_one_ping_worked_by_hand():
    """Half of the round trip, a tick, and 1 ns for the microsecond that the last knot lies behind it."""
    made = fit((5000, 5, 8000))
    assert made.tick_us.tolist() == [1 - 3600e6, 1, 1 + 3600e6]
    assert made.offset_ns.tolist() == [1500] * 3
    assert made.knot_bound_ns[1] == pytest.approx(1500 + 1001)
    beyond = 3.6e9  # 1000 ppm of an hour
    assert made.knot_bound_ns[2] == pytest.approx(2000 + beyond + 1 + 2001 + 2e-3 * 3600e6 + 500)
    assert made.knot_bound_ns[0] == pytest.approx(2000 + beyond - 1 + 2001 + 2e-3 * 3600e6 + 500)
    assert (made.pings, made.outliers, made.strained, made.rate_ppm()) == (1, 0, 0, 0.0)
    assert made.t_ns([5, 6]).tolist() == [6500, 7500]
    assert made.bound_ns([6])[0] == pytest.approx(2501)


def test_what_the_rig_held_is_taken_off_by_hand():
    """3 us held: 1 before the stamp and 2 behind it, each with 1000 ppm for the change meanwhile."""
    made = fit((5000, 5, 15_000), held=[3])
    low, high = 1 * 1000 - 1 - 1000 - 1, 10_000 - 2 * 1000 + 2 + 1  # of the offset at the knot 1 us behind
    assert made.offset_ns[1] == pytest.approx((low + high) / 2 + 500)
    assert made.knot_bound_ns[1] == pytest.approx((high - low) / 2 + 500)


@pytest.mark.parametrize(("answer_ns", "held", "outliers"), [(5000, 0, 0), (4999, 0, 1), (5999, 2, 0), (5998, 2, 1)])
def test_which_pings_make_sense(answer_ns, held, outliers):
    good = (5000, 5, 8000)
    assert fit(good, good, (5000, 5, answer_ns), held=[0, 0, held]).outliers == outliers


@pytest.mark.parametrize(("off_us", "outliers"), [(60 * S_US, 0), (60 * S_US + 1, 1), (-60 * S_US - 1, 1)])
def test_a_tick_may_be_a_minute_off(off_us, outliers):
    rows = [(0, 10**9, 1000)] * 3 + [(0, 10**9 + off_us, 10**12)]
    made = fit(*rows)
    assert (made.outliers >= outliers) and (made.tick_us[-2] >= 60e6 - 1) == (off_us == 60 * S_US)


def test_a_minute_more_for_each_thousandth():
    """10 000 s later a tick may be 10 s further off."""
    for off_us, taken in ((69_999_000, True), (70_001_000, False)):
        made = fit(*[(0, 0, 1000)] * 3, (10_000 * S_NS, 10_000 * S_US + off_us, 10_000 * S_NS + 10**11))
        assert (made.tick_us[-2] > 1e9) == taken


def test_exact_pings_give_the_rate():
    rows = [(s * S_NS, s * (S_US + 100), s * S_NS + 1000) for s in range(30)]
    made = fit(*rows)
    assert made.rate_ppm() == pytest.approx(100, abs=0.1)
    assert made.strained == made.outliers == 0


def test_a_hole_has_a_knot_in_its_middle_with_the_drift():
    """No ping for 600 s: 2 ppm of 300 s more than at the edges."""
    ends = [*range(0, 90), *range(690, 780)]
    made = fit(*[(s * S_NS, s * S_US, s * S_NS + 2000) for s in ends])
    inner = made.tick_us[1:-1]
    hole = int(np.argmax(np.diff(inner) > 2 * S_US))
    left, middle, right = inner[hole : hole + 3]
    assert (left, middle, right) == (89e6, 389e6, 689e6)
    bound = made.knot_bound_ns[1:-1]
    wider = max(bound[hole], bound[hole + 2]) - 500
    assert bound[hole + 1] == pytest.approx(wider + 2e-3 * 600e6 / 2 + 500)


@pytest.mark.parametrize(("height_ns", "strained"), [(11_999.0, False), (12_001.0, True)])
def test_a_window_allows_a_fifth_of_a_ppm(height_ns, strained):
    """Over 60 s that is 6 us on each side of the line: a middle up to 12 us above both ends is allowed."""
    offsets = np.array([0.0, height_ns, 0.0])
    region = clock._region(np.array([0.0, 30e6, 60e6]), offsets, offsets)
    assert region.strained == strained and region.keep.all()
    assert region.allowance_ns == pytest.approx(6001 if strained else 6000)


@pytest.mark.parametrize(("off_ns", "is_used"), [(100_000.0, True), (100_001.0, False)])
def test_a_ping_that_contradicts_the_others(off_ns, is_used):
    """The quickest say 0; one of them all misses it by 100 us and three and a half typical half round trips."""
    x = np.arange(21) * 1e6
    middle = np.zeros(21)
    middle[10] = off_ns + 1000 + 3 * 1000
    keep = clock._consistent(x, middle - 1000, middle + 1000)
    assert keep.tolist() == [i != 10 or is_used for i in range(21)]


def test_corners_of_a_flat_region():
    """Two pings 1 s apart, each open for 1000 ns: slopes of +-1 ns/us, cut where the region closes."""
    region = clock._region(np.array([0.0, 1e6]), np.zeros(2), np.full(2, 1000.0))
    low, high = region.range_at(np.array([0.0, 5e5, 1e6, 2e6]))
    slack = 0.2e-3 * 1e6 / 2
    assert (low[1], high[1]) == (pytest.approx(-2 * slack), pytest.approx(1000 + 2 * slack))
    assert low[[0, 2]] == pytest.approx([-2 * slack] * 2) and high[[0, 2]] == pytest.approx([1000 + 2 * slack] * 2)
    assert low[3] == pytest.approx(-1000 - 4 * slack) and high[3] == pytest.approx(2000 + 4 * slack)
