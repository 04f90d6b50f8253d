"""Rails together, on samples made by hand: where they are known, their grid and extremes, each limit on both sides."""

import numpy as np
import plain_rails
import pytest

from ssdrig.meter import rails
from ssdrig.meter.power import Closure, Power

MS = 10**6
FIRST, LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def power(t_ms, watts, *, gaps=(), number=0) -> Power:
    """Samples at t_ms; gaps: (sample behind it, ns)."""
    t_ns = np.array(t_ms, np.int64) * MS
    watts = np.array(watts, float)
    joules = np.cumsum(watts * np.diff(t_ns, prepend=2 * t_ns[0] - t_ns[min(1, len(t_ns) - 1)]) * 1e-9)
    none = np.empty(0)
    made = Power(
        number,
        "r",
        t_ns,
        none,
        none,
        none,
        none,
        none,
        none,
        none,
        watts,
        joules,
        *[none] * 2,
        *[none] * 4,
        [],
        [],
        {},
        none,
        none,
    )
    made.gap, made.gap_ns = (np.array([g[i] for g in gaps], np.int64) for i in range(2))
    made.gap_lost, made.gap_J = np.zeros(len(gaps), np.int64), np.zeros(len(gaps))
    return made


EMPTY = power([0], [0])
EMPTY.t_ns = np.empty(0, np.int64)


def test_samples_within_ten_milliseconds_cover_an_edge():
    one = power([100, 200, 300], [1, 1, 1])
    assert rails.dark(one).tolist() == [[FIRST, 90 * MS], [310 * MS, LAST]]
    assert rails.known([one], np.array([90, 310]) * MS).tolist() == [True]
    assert rails.known([one], np.array([90 * MS - 1, 310 * MS])).tolist() == [False]
    assert rails.known([one], np.array([90 * MS, 310 * MS + 1])).tolist() == [False]
    assert rails.dark(EMPTY).tolist() == [[FIRST, LAST]]
    assert rails.known([one, EMPTY], np.array([90, 310]) * MS).tolist() == [False]
    assert rails.known([], [0, 1, 2]).tolist() == [False, False]


def test_a_gap_of_a_second_is_filled_and_a_longer_one_is_dark():
    assert rails.losses(power([0, 1000, 2000], [1, 1, 1], gaps=[(1, 10**9)])) == []
    dark = power([0, 1000, 2000], [1, 1, 1], gaps=[(0, 10**9 + 1), (2, 10**9 + 1)])
    assert rails.losses(dark) == [(1000 * MS, 2000 * MS)]  # what lies before the first sample is none
    edges = np.array([0, 500, 1000, 1500, 2000, 2005]) * MS
    assert rails.known([dark], edges).tolist() == [True, True, False, False, True]


def test_energy_is_not_known_where_a_step_is_not():
    one, two = power([0, 10, 20], [1, 1, 1]), power([0, 10, 20], [2, 2, 2])
    assert rails.energy_J([one, two], 0, 20 * MS) == pytest.approx(0.06)
    steps = rails.steps_J([one, two], np.array([0, 10, 20, 40]) * MS)
    assert steps[:2] == pytest.approx([0.03, 0.03]) and np.isnan(steps[2])


def test_the_grid_of_one_rail_is_its_samples():
    one = power([0, 10, 20], [1, 2, 3])
    t_ns, watts = plain_rails.grid([one])
    assert t_ns.tolist() == [0, 10 * MS, 20 * MS] and watts.tolist() == [1, 2, 3]


def test_the_grid_is_that_of_the_rail_with_the_fewest():
    slow, fast = power([0, 10, 20, 30], [1, 1, 2, 2]), power(range(0, 35, 5), [4, 4, 4, 6, 8, 4, 4])
    for powers in ([slow, fast], [fast, slow]):
        t_ns, watts = plain_rails.grid(powers)
        assert t_ns.tolist() == [10 * MS, 20 * MS, 30 * MS]
        assert watts == pytest.approx([1 + 4, 2 + 7, 2 + 4])


def test_cells_without_width_or_beyond_a_rails_samples_are_no_number():
    slow, fast = power([0, 10, 10, 20, 30, 40], [1] * 6), power([10, 15, 20, 25, 28, 29, 30], [4] * 7)
    t_ns, watts = plain_rails.grid([slow, fast])
    assert t_ns.tolist() == [10 * MS, 10 * MS, 20 * MS, 30 * MS, 40 * MS]
    assert np.isnan(watts).tolist() == [True, True, False, False, True]
    assert watts[2:4] == pytest.approx([5, 5])


@pytest.mark.parametrize(
    ("behind", "left_out"),
    [(1, [0]), (4, [1, 2]), (6, [3]), (0, [])],  # from the sample before the gap to the one behind it
)
def test_cells_in_which_a_conversion_was_lost_are_left_out(behind, left_out):
    slow = power([0, 10, 20, 30, 40], [1] * 5)
    fast = power([0, 5, 10, 15, 25, 30, 40], [1] * 7, gaps=[(behind, MS)])
    assert np.flatnonzero(np.isnan(plain_rails.grid([slow, fast])[1])).tolist() == left_out


def test_extremes_of_steps():
    one = power([0, 10, 20, 30, 40, 50], [1, 3, 2, 5, 4, 9])
    low, high = plain_rails.extremes_W([one], 10 * MS, 2, 20 * MS)
    assert (low.tolist(), high.tolist()) == ([2, 4], [3, 5])
    low, high = plain_rails.extremes_W([one], 60 * MS, 2, 20 * MS)
    assert np.isnan(low).all() and np.isnan(high).all()
    low, high = plain_rails.extremes_W([one], 1 * MS, 3, 3 * MS)  # no sample within
    assert np.isnan(low).all() and np.isnan(high).all()
    low, high = plain_rails.extremes_W([one], 8 * MS, 3, 3 * MS)
    assert (low[0], high[0]) == (3, 3) and np.isnan(low[1:]).all()


def test_the_worst_closure():
    def closure(percent, resolution):
        return Closure(0.0, percent, 0.0, 1.0, 1.0, 1.0, resolution)

    small, coarse, low = closure(0.2, 0.0), closure(0.5, 0.4), closure(-0.3, 0.0)
    assert rails.worst([small, None, coarse]) is small and rails.worst([small, low, coarse]) is low
    assert rails.worst([None]) is None
