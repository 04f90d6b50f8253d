"""`compare`: two groups of runs, beyond doubt or not at all."""

import json
import random

import pytest
import synthetic_run
from json_documents import checked

from ssdrig import cli
from ssdrig.base.errors import CannotTell, UsageError
from ssdrig.base.uncertain import NO_DIFFERENCE, NO_ERROR, Uncertain, t95
from ssdrig.publish.verdicts import comparison
from ssdrig.publish.verdicts.comparison import CANNOT_TELL, HIGHER, LOWER


@pytest.mark.parametrize("degrees", [1, 2, 5, 10, 30])
def test_student_t_is_that_of_the_tables(degrees):
    assert comparison.quantile(0.95, degrees) == pytest.approx(t95(degrees), abs=0.001)


def test_student_t_at_other_levels():
    """Abramowitz and Stegun, table 26.10."""
    assert comparison.quantile(0.99, 4) == pytest.approx(4.604, abs=0.001)
    assert comparison.quantile(0.9, 9) == pytest.approx(1.833, abs=0.001)
    assert comparison.quantile(0.95, float("inf")) == pytest.approx(1.960, abs=0.001)


def simulated(dice: random.Random, true: float, between: float, own: float, count: int) -> list[Uncertain]:
    """Repeats of one drive: each run differs by its own state, and is measured with its own error."""
    return [Uncertain(dice.gauss(dice.gauss(true, between), own), 1.96 * own) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_thousand_simulated_pairs_are_judged_wrong_in_at_most_5_percent(count):
    """Half of the pairs are equal, half differ a little. A single run repeats to 1 % (uncertain.LEAST_PERCENT)."""
    dice, wrong, equal, seen = random.Random(count), 0, 0, []
    for number in range(1000):
        between, own = (0.3, 0.2) if count == 1 else (dice.uniform(0.1, 2), dice.uniform(0, 0.5))
        a, b = 100.0, 100.0 if number % 2 else 100.0 + dice.uniform(-5, 5)
        groups = [simulated(dice, true, between, own, count) for true in (a, b)]
        difference = comparison.compared("iops_mean", *groups, 0.95)
        seen.append(difference.verdict)
        wrong += difference.verdict == (LOWER if a > b else HIGHER) or difference.verdict != CANNOT_TELL and a == b
        equal += number % 2
        assert (difference.verdict == CANNOT_TELL) == (difference.reason is not None)
        assert difference.reason in (None, NO_DIFFERENCE)
    assert wrong <= 50
    assert seen.count(CANNOT_TELL) < 980  # it does claim what is there


def test_difference_and_its_interval():
    a, b = [Uncertain(v, 0.0) for v in (10.0, 11.0, 12.0)], [Uncertain(v, 0.0) for v in (20.0, 21.0, 22.0)]
    difference = comparison.compared("iops_mean", a, b, 0.95)
    assert (difference.verdict, difference.difference, difference.repeats) == (LOWER, -10.0, (3, 3))
    # Welch: sqrt(1/3 + 1/3) * t(4)
    assert difference.error == pytest.approx(2.776 * (2 / 3) ** 0.5, rel=1e-3)


def test_large_differences_are_printed_without_exponents():
    a, b = ([Uncertain(v, 3e4) for v in values] for values in ((1.1e6, 1.2e6), (1.15e6, 1.2e6)))
    difference = comparison.compared("iops_mean", a, b, 0.95)
    assert difference.reason == NO_DIFFERENCE and "e+" not in difference.why


def test_percent_of_what_is_near_to_0_is_null():
    """Closure, seconds without I/O, energy above idle: figures whose truth may be 0."""
    a, b = [Uncertain(50.0, 1.0)], [Uncertain(0.001, 0.5)]
    difference = comparison.compared("closure_percent", a, b, 0.95)
    assert (difference.verdict, difference.percent, difference.percent_error) == (HIGHER, None, None)
    difference = comparison.compared("closure_percent", b, b, 0.95)
    assert difference.verdict == CANNOT_TELL and "%" not in difference.why


def test_percent_has_an_error():
    difference = comparison.compared("iops_mean", [Uncertain(220.0, 2.0)], [Uncertain(-200.0, 0.0)], 0.95)
    assert difference.percent == pytest.approx(210.0) and difference.percent_error == pytest.approx(1.86, abs=0.8)


def test_several_figures_are_compared_at_a_stricter_level():
    a, b = [Uncertain(10.0, 0.1)], [Uncertain(10.4, 0.1)]
    one, many = (comparison.compared("iops_mean", a, b, 0.95, of) for of in (1, 20))
    assert (one.error or 0) < (many.error or 0)
    assert (one.verdict, many.verdict) == (LOWER, LOWER if 0.4 > (many.error or 0) else CANNOT_TELL)


@pytest.mark.parametrize(
    "one, reason", [(Uncertain(1.0), NO_ERROR), (Uncertain(None, None, "not-trusted", "host"), "not-trusted")]
)
def test_a_figure_without_value_or_error_is_not_compared(one, reason):
    difference = comparison.compared("wa", [one], [Uncertain(2.0, 0.1)], 0.95)
    assert (difference.verdict, difference.reason) == (CANNOT_TELL, reason)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, iops in (("a-0001", 4000), ("a-0002", 4003), ("b-0003", 4400), ("b-0004", 4396)):
        synthetic_run.write(folder, [9000] * 6 + [iops, iops + 1, iops - 1] * 8, zoom_s=12, name=name)
    return folder


@pytest.mark.usefixtures("short_loads_have_errors")
def test_command_compares_runs_and_groups(runs, capsys):
    words = ["--runs", str(runs), "--json", "--figure", "iops_mean"]
    assert cli.main(["compare", "a-0001,a-0002", "b-0003,b-0004", *words]) == 0
    document = checked("compare", json.loads(capsys.readouterr().out))
    assert (document["verdict"], document["window"], document["repeats"]) == (LOWER, "steady", [2, 2])
    assert document["difference"] == pytest.approx(-396.5, abs=1)
    assert cli.main(["compare", "a-0001", "a-0002", *words]) == CannotTell.exit_code
    assert checked("compare", json.loads(capsys.readouterr().out))["reason"] == NO_DIFFERENCE


@pytest.mark.parametrize(
    "words", [["a-0001", "a-0001"], ["a-0001", "b-0003", "--level", "100"], ["a-0001", "b-0003", "--figure", "iops"]]
)
def test_wrong_words_are_refused(runs, words):
    assert cli.main(["compare", *words, "--runs", str(runs)]) == UsageError.exit_code
