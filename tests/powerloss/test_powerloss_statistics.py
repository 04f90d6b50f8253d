"""What a number of cuts says: bounds and stop rules."""

import pytest

from selfcheck import powerloss_bounds as bench
from ssdrig.base.errors import UsageError
from ssdrig.plan.rules import chance as statistics
from ssdrig.plan.rules.chance import Stop, Wald


def test_the_numbers_of_cuts_that_books_have():
    for confidence, row in bench.NEEDED.items():
        assert tuple(statistics.cuts_needed(0.01, k, confidence) for k in range(4)) == row


def test_bounds_by_their_closed_form_and_by_their_definition():
    for cuts in (1, 50, 60, 599):  # without a failing cut (1 - p)^n = 5 %
        assert statistics.upper_bound(0, cuts) == pytest.approx(1 - 0.05 ** (1 / cuts), rel=1e-9)
    assert statistics.upper_bound(0, 0) == statistics.upper_bound(3, 3) == 1.0
    # Clopper and Pearson's upper limit of a 90 % interval for 3 of 50, R: binom.test(3, 50, conf.level = 0.9)
    assert statistics.upper_bound(3, 50) == pytest.approx(0.1478, abs=5e-5)
    assert statistics.at_most(3, 50, statistics.upper_bound(3, 50)) == pytest.approx(0.05, rel=1e-6)


def test_bounds_cover_in_simulated_campaigns():
    assert bench.covered(1000) >= 95 and bench.first_covered(0.01, 1000) >= 95


def test_bounds_cover_where_damage_is_found_some_cuts_later():
    covers, width, wrong = bench.censored(300)
    assert covers >= 95 and wrong == 0 and width > 0


def test_walds_test_accepts_after_332_clean_cuts_and_rejects_the_second_failure():
    wald = Wald()
    accepts = [next(n for n in range(1, 2000) if wald.ruling(k, n) == "accept") for k in range(2)]
    assert accepts[0] == 332 and accepts[1] - accepts[0] == 255  # 254 clean ones and the failing one
    assert wald.ruling(2, 60) == "reject" and wald.ruling(1, 60) is None and wald.ruling(2, 400) is None
    assert 3 < bench.chance_of("accept", wald.ruling, 0.01) <= 5
    assert 1 < bench.chance_of("reject", wald.ruling, 0.001) <= 5


def test_until_is_right_however_often_it_looks():
    """Whoever looks after every cut claims too much: the plain bound does so in 20 of 100 campaigns."""
    looks = statistics.looks(0.01)
    assert 4.9 < bench.chance_of("below", bench.until(looks), 0.01) <= 5
    assert bench.chance_of("below", bench.until(bench.peeking(0.01)), 0.01) > 19
    assert looks[0] == 368 and all(a < b for a, b in zip(looks, looks[1:], strict=False))


@pytest.mark.parametrize("cuts", [80, 120, 200])
def test_bound_of_a_campaign_that_may_end_earlier_covers(cuts):
    """The bound of a number of cuts that was set beforehand is too low for one in ten of them."""
    assert bench.until_covered(0.05, cuts) >= 95
    plain = lambda failing, n, stops: statistics.upper_bound(failing, n)
    assert bench.until_covered(0.05, 200, plain) < 92


def test_bound_at_the_end_is_the_plain_one_without_a_look_before():
    stops = statistics.looks(0.01)
    for failing, cuts in ((0, 60), (2, 367), (5, 5)):
        assert statistics.bound_at_end(failing, cuts, stops) == statistics.upper_bound(failing, cuts)
    at_stops = [statistics.bound_at_end(k, n, stops) for k, n in enumerate(stops[:8])]
    assert at_stops[0] == pytest.approx(1 - 0.05 ** (1 / 368), rel=1e-6)
    assert all(a < b <= 0.01 + 1e-6 for a, b in zip(at_stops, at_stops[1:], strict=False))  # what was asked for holds


def test_a_campaign_stops_for_one_reason():
    rule = Stop(cuts=60, until=0.05, first=True)
    assert rule.why(0, 59) is None and rule.why(0, 60) == "60 cuts were judged"
    assert rule.why(1, 2) == "a cut broke a promise"
    assert Stop(until=0.05).why(0, 71) is None
    assert Stop(until=0.05).why(0, 72) == "the chance per cut is below 5 % (95 %)"
    assert Stop().why(9, 9999) is None and Stop(until=0.05).why(statistics.MOST_FAILING, 99_999) is None


def test_a_bound_is_asked_for_as_p_below_percent():
    assert statistics.parse_until("p<1%") == 0.01 and statistics.parse_until(" p < 0.5 % ") == 0.005
    for text in ("1%", "p>1%", "p<0%", "p<60%", "p<x%", "p<1"):
        with pytest.raises(UsageError):
            statistics.parse_until(text)


def test_a_bound_is_rounded_up():
    percents = {1.0: "100 %", 0.0049887: "0.50 %", 0.0581: "5.9 %", 0.5: "50 %", 0.0100: "1.0 %", 0.00100001: "0.11 %"}
    assert {chance: statistics.percent(chance) for chance in percents} == percents
