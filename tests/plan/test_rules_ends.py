"""plan/rules/ends.py: the PTS rule on records of a load and on rounds of a repeat, against the vectors of the
standard's text and against a plain implementation."""

import random

import pytest

from ssdrig.plan import quantity, values
from ssdrig.plan.rules import ends, steady

PTS = values.Until(rule="pts", value="iops", record_s=10.0, past_spare=False)
VECTORS = [
    ([100, 100, 100, 100, 100], True),
    ([90, 95, 100, 105, 110], False),  # range exactly 20 % passes, a slope of 20 % does not
    ([110, 90, 110, 90, 110], True),  # range 19.6 %, slope 0
    ([100, 102, 104, 106, 108], True),  # slope 7.7 %
    ([100, 100, 100, 100, 121], False),  # range
]


@pytest.mark.parametrize(("rounds", "passed"), VECTORS)
def test_the_standards_vectors(rounds, passed):
    assert ends.tracked({"x": rounds})["x"]["passed"] is passed
    assert ends.tracked({"x": [1e9, 5, *rounds]})["x"]["passed"] is passed, "the last five count"
    counts = [value for value in rounds for _ in range(10)]
    assert ends.Watch([PTS], 1).met(counts, 0) is passed


def plainly(y):
    """The rule as one writes it down, in exact numbers: y are integers."""
    total = sum(y)  # five times the average
    in_range = 5 * 5 * (max(y) - min(y)) <= total  # <= 20 % of the average
    ten_m = sum((k - 2) * value for k, value in enumerate(y))  # m = sum of (x - 2) y / 10 over x = 0 to 4
    return in_range and 10 * 5 * 4 * abs(ten_m) <= 10 * total  # 4 m <= 10 % of the average


def test_a_thousand_random_series_against_a_plain_implementation():
    random.seed(5)
    seen = set()
    for _ in range(1000):
        spread = random.choice([5, 12, 25])
        y = [random.randint(100 - spread, 100 + spread) for _ in range(5)]
        passed = ends.tracked({"x": y})["x"]["passed"]
        assert passed is plainly(y), y
        seen.add(passed)
    assert seen == {True, False}


def test_few_rounds_are_untested_and_not_steady():
    verdict = ends.tracked({"x": [1, 1, 1, 1]})["x"]
    assert verdict["passed"] is None and "5 rounds" in verdict["why"]


def test_records_are_whole_and_spaced():
    counts = list(range(25))
    assert steady.records(counts, 10) == [4.5, 14.5]
    assert steady.records(counts, 5, 10) == [2.0, 12.0, 22.0]
    assert steady.records(counts[:9], 10) == []


def test_a_rule_waits_until_enough_is_written():
    entry = PTS._replace(after=quantity.Amount(0.5, None))
    counts = [100.0] * 50
    watch = ends.Watch([entry], 1000)
    assert not watch.met(counts, 499) and watch.verdict["passed"]
    assert watch.met(counts, 500) and watch.ended_by == "steady"


def test_other_ends():
    written = ends.Watch([values.Until(written=quantity.Amount(None, 100))], 1)
    assert not written.met([1.0], 99) and written.met([1.0], 100) and written.ended_by == "written"
    cliff = ends.Watch([values.Until(cliff=True)], 1)
    assert not cliff.met([100.0] * 10, 0) and cliff.met([100.0] * 10 + [10.0], 0) and cliff.ended_by == "cliff"
    assert ends.Watch([values.Until(rule="never", value="iops"), values.Until(time_s=5.0)], 1).rules == []


def test_windows_of_a_load_that_a_rule_has_ended():
    spans = {name: values.span(text) for name, text in (("all", "all"), ("steady", "last 5 min"), ("f", "until cliff"))}
    assert ends.spans_s(spans, 3605.9) == {"all": [0, 3605], "steady": [3305, 3605]}
    assert ends.spans_s(spans, 100.0) == {"all": [0, 100]}, "a window that the load was too short for is not there"


def test_edges_of_windows():
    spans = {"all": values.span("all"), "steady": values.span("from 70 %"), "b": values.span("10 s..20 s")}
    assert ends.edges_s(spans, 61.0) == (10.0, 20.0, 42.0, 61.0)
    assert ends.edges_s({"steady": values.span("last 400 s")}, 2000.0) == (1600.0, 2000.0)
    assert ends.edges_s(spans, None) == ()


def test_how_far_a_repeat_is_from_steady():
    assert ends.far(ends.tracked({"a": [1.0] * 4})) == ""  # fewer than five rounds
    flat, tilted = [100.0] * 5, [100.0, 104.0, 108.0, 112.0, 116.0]
    assert ends.far(ends.tracked({"a": tilted})) == "range 15 % of 20 %, slope 15 % of 10 %"
    assert ends.far(ends.tracked({"a": flat, "b": tilted})).endswith("slope 15 % of 10 %, 1 of 2 steady")


def test_how_far_a_load_is_from_its_end():
    entry = values.until([{"steady": "pts", "value": "iops", "record": "2 s", "after": "1 x", "spare": "any"}], "until")
    watch = ends.Watch(entry, 1000)
    assert ends.Watch((), 1000).words() == "" and watch.words().startswith("record 0 of 5")
    assert not watch.met([100.0] * 9, 400)
    assert watch.words() == "record 4 of 5, 400 B of 1.00 kB first"
    assert not watch.met([100.0] * 10, 900)
    assert watch.words() == "range 0 % of 20 %, slope 0 % of 10 %, 900 B of 1.00 kB first"
    assert watch.met([100.0] * 11, 1000) and "first" not in watch.words()
