"""The steady-state rule of SNIA's PTS, and the cliff at which a fresh drive's plateau ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdrig.plan.rules import steady, windows

MEANS = st.lists(st.floats(1, 1e6), min_size=5, max_size=5)


@pytest.mark.parametrize(
    ("rounds", "passed", "range_percent", "slope_percent"),
    [
        ([100, 100, 100, 100, 100], True, 0, 0),
        ([90, 95, 100, 105, 110], False, 20, 20),  # the range is just allowed, the slope is not
        ([110, 90, 110, 90, 110], True, 100 * 20 / 102, 0),
        ([100, 102, 104, 106, 108], True, 100 * 8 / 104, 100 * 8 / 104),
        ([89, 100, 100, 100, 111], False, 22, 17.6),
        ([90, 110, 100, 90, 110], True, 20, 8),  # exactly 20 % passes
        ([90, 110, 100, 89.9, 110], False, 100 * 20.1 / 99.98, 100 * 4 * 1.99 / 99.98),
    ],
)
def test_vectors_of_the_rule(rounds, passed, range_percent, slope_percent):
    got = steady.verdict(rounds)
    assert (got["passed"], got["why"]) == (passed, None)
    assert got["average"] == pytest.approx(np.mean(rounds))
    assert got["range_percent"] == pytest.approx(range_percent)
    assert got["slope_percent"] == pytest.approx(slope_percent, abs=1e-9)
    assert got["rounds"] == rounds and got["rule"] == steady.RULE


@pytest.mark.parametrize(("more", "passed"), [(0, True), (4e-10, True), (1e-8, False)])
def test_the_limits_are_exact_to_nine_digits(more, passed):
    for rounds in ([90, 110 + more, 100, 90, 110], [95, 97.5, 100, 102.5, 105 + more]):
        limit = 20 if rounds[0] == 90 else 10
        got = steady.verdict(rounds)
        assert max(got["range_percent"] - 10, got["slope_percent"]) == pytest.approx(10, abs=1e-6)
        assert got["passed"] == passed, limit


def test_less_than_one_io_in_a_second_is_a_rate_too():
    assert steady.verdict([0.5] * 5)["passed"] is True and steady.verdict([1] * 5)["passed"] is True


def test_the_line_is_the_least_squares_one():
    got = steady.verdict([100, 102, 104, 106, 108])
    assert (got["m"], got["b"], got["r"]) == pytest.approx((2, 98, 1))  # x = 1 to 5
    assert steady.verdict([7] * 5)["r"] is None


@given(MEANS)
def test_the_verdict_does_not_depend_on_the_unit_or_the_direction(y):
    got, scaled, back = steady.verdict(y), steady.verdict([1e3 * v for v in y]), steady.verdict(y[::-1])
    for other in (scaled, back):
        for key in ("range_percent", "slope_percent"):
            assert other[key] == pytest.approx(got[key], rel=1e-6, abs=1e-6)
        near = any(
            abs(got[key] - limit) < 1e-3 for key, limit in (("range_percent", 20), ("slope_percent", 10))
        )  # rounding decides there
        assert near or other["passed"] == got["passed"]


@given(MEANS)
def test_the_line_is_numpys(y):
    got = steady.verdict(y)
    m, b = np.polyfit(np.arange(1, 6), y, 1)
    assert got["m"] == pytest.approx(m, rel=1e-6, abs=1e-6 * max(y))
    assert got["b"] == pytest.approx(b, rel=1e-6, abs=1e-6 * max(y))


@pytest.mark.parametrize("rounds", [[], [1, 2, 3, 4], [0] * 5, [1, 2, float("nan"), 4, 5]])
def test_what_the_rule_says_nothing_about(rounds):
    got = steady.verdict(rounds)
    assert got["passed"] is None and got["why"] and got["average"] is None


def test_seconds_become_five_rounds():
    got = steady.of_seconds([100] * 6 + [200] * 6 + [300] * 6)  # 18 s: rounds of 3.6 s
    assert got["round_s"] == 3.6 and got["passed"] is False
    expected = [100, (2.4 * 100 + 1.2 * 200) / 3.6, 200, (1.2 * 200 + 2.4 * 300) / 3.6, 300]
    assert got["rounds"] == pytest.approx(expected)


@given(st.lists(st.integers(1, 50_000), min_size=10, max_size=60))
def test_the_rounds_have_the_mean_of_the_window(counts):
    assert np.mean(steady.of_seconds(counts)["rounds"]) == pytest.approx(np.mean(counts))


def test_a_short_window_is_not_tested():
    assert steady.of_seconds([100] * 10)["passed"] is True and steady.of_seconds([100] * 10)["round_s"] == 2
    got = steady.of_seconds([100] * 9)
    assert got["passed"] is None and "9 s" in got["why"] and got["round_s"] is None


def window(iops, zoom_s):
    return windows.Window("steady", zoom_s, len(iops), steady.of_seconds(np.array(iops[zoom_s:], float)))


def test_steady_is_said_only_where_the_rule_passed():
    assert window([100] * 40, 20).label == "steady state, 20–40 s"
    assert window([100] * 40, 32).label == "32–40 s"  # too short to test
    falling = [*range(4000, 0, -100)]
    assert window(falling, 20).label == "20–40 s"


# ---- the cliff

PLATEAU, AFTER = 40_000, 9_000


@pytest.mark.parametrize(
    ("iops", "end"),
    [
        ([PLATEAU] * 12 + [AFTER] * 20, 12),
        ([PLATEAU] * 5 + [28_000] + [AFTER] * 20, 5),  # the second in which it falls belongs to neither
        ([PLATEAU] * 6 + [0] + [PLATEAU] * 6 + [AFTER] * 30, 13),  # a stall is no cliff
        ([PLATEAU] * 6 + [AFTER] * 2 + [PLATEAU] * 6 + [AFTER] * 30, 14),
        ([PLATEAU] * 4 + [AFTER, 15_000, 5_000, 12_000] * 8, 4),
        ([PLATEAU] * 20 + [0] * 20, 20),
        ([PLATEAU] * 700 + [AFTER] * 900, 700),
    ],
)
def test_the_cliff_is_found(iops, end):
    assert windows.cliff(np.array(iops)) == (end, None)


@pytest.mark.parametrize(
    "iops",
    [
        [],
        [PLATEAU],
        [PLATEAU] * 60,
        [PLATEAU, AFTER] * 30,
        [0] * 60,
        [PLATEAU] * 30 + [AFTER] * 10 + [PLATEAU] * 60,  # the drive comes back
        list(range(40_000, 10_000, -500)),  # a slope has no plateau
        [PLATEAU] * 30 + [33_000] * 30,  # less than a quarter
        [AFTER] * 30 + [PLATEAU] * 30,
        [PLATEAU] * 2 + [AFTER] * 30,  # too short to be one
    ],
)
def test_no_cliff_says_why(iops):
    end, why = windows.cliff(np.array(iops))
    assert end is None and why.startswith("no cliff")


@given(
    st.integers(4, 40), st.integers(8, 60), st.floats(0.05, 0.6), st.floats(10, 1e6), st.randoms(use_true_random=False)
)
def test_the_cliff_is_found_in_noise(plateau_s, after_s, drop, level, random):
    iops = [level * random.uniform(0.95, 1.05) for _ in range(plateau_s)]
    iops += [level * drop * random.uniform(0.8, 1.2) for _ in range(after_s)]
    assert windows.cliff(np.array(iops))[0] == plateau_s


@given(st.lists(st.integers(0, 100_000), max_size=80))
def test_fresh_lies_inside_the_load_and_no_count_breaks_it(iops):
    end, why = windows.cliff(np.array(iops))
    assert (end is None) == bool(why)
    if end is not None:
        assert windows.PLATEAU_S <= end < len(iops)
        assert iops[end] < windows.DROP * np.median(iops[:end])


def test_the_level_is_that_of_all_seconds_up_to_its_last(monkeypatch):
    """Of four here: 70, of which 55 is more than three quarters. That of the first three is 80."""
    monkeypatch.setattr(windows, "LEVEL_S", 4)
    end, why = windows.cliff(np.array([100, 60, 80, 60] + [55] * 20))
    assert end is None and "do not fall by a quarter" in why


def test_the_first_slow_second_is_seen_at_once():
    assert not windows.falls([PLATEAU] * 3)
    assert windows.falls([40, 40, 100, 100, 50])  # the level is that of all seconds before it: 70
    assert windows.falls([100] * 300 + [10] * 400 + [30])  # but not more than 600: 55
    assert not windows.falls([AFTER] * 3) and not windows.falls([PLATEAU, PLATEAU, AFTER])
    assert windows.falls([PLATEAU] * 5 + [AFTER]) and not windows.falls([PLATEAU] * 5 + [35_000])
