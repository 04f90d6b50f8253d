"""What the user types where the rig's commands ask: units, decimal commas, what is no answer, and how often."""

import math

import pytest

from ssdrig.base.errors import NoAnswer, UsageError
from ssdrig.rig import answers


@pytest.mark.parametrize(
    ("text", "unit", "value", "digit"),
    [
        ("3.3", "V", 3.3, 0.1),
        ("3,30 V\n", "V", 3.3, 0.01),
        ("3300 mV", "V", 3.3, 0.001),
        ("3300m", "V", 3.3, 0.001),
        (" -0.5v ", "V", -0.5, 0.1),
        ("2.2k", "kOhm", 2.2, 0.1),
        ("2200 Ohm", "kOhm", 2.2, 0.001),
        ("2200 Ω", "kOhm", 2.2, 0.001),
        ("10 MOhm", "kOhm", 10_000, 1000),
        ("1.0", "kOhm", 1.0, 0.1),
        ("1 kOhm", "kOhm", 1.0, 1),
        ("1.2e1", "kOhm", 12, 1),
        ("250 mA", "A", 0.25, 0.001),
        ("0,05 %", "%", 0.05, 0.01),
        ("OL", "kOhm", math.inf, 0),
        ("0L MΩ", "kOhm", math.inf, 0),
    ],
)
def test_a_reading_is_understood(text, unit, value, digit):
    seen = answers.number(text, unit)
    assert seen[:2] == (pytest.approx(value), pytest.approx(digit))


@pytest.mark.parametrize(
    ("text", "unit", "expected", "seen"),
    [
        ("3.3 A", "V", "volts (V)", "amperes: '3.3 A'"),
        ("5 V", "kOhm", "ohms (kOhm)", "volts: '5 V'"),
        ("", "V", "a number of V", "an empty line"),
        ("ol", "V", "one number of V, such as 3.3 or 3,3", "'ol'"),
        ("3.3 3.4", "V", "one number of V, such as 3.3 or 3,3", "'3.3 3.4'"),
        ("3.3 furlongs", "V", "a unit of volts", "'furlongs'"),
        ("1e999", "V", "a number of V", "'1e999'"),
        ("0x10", "V", "one number of V, such as 3.3 or 3,3", "'0x10'"),
        ("1", "kOhm", "a reading of kOhm with its decimals, or ol", "'1'"),  # a cheap meter's open circuit
        ("1 .", "Ohm", "a reading of Ohm with its decimals, or ol", "'1 .'"),
    ],
)
def test_what_is_no_reading_is_named(text, unit, expected, seen):
    with pytest.raises(UsageError) as error:
        answers.number(text, unit)
    assert (error.value.expected, error.value.seen) == (expected, seen) and error.value.do


def questions(typed, tries=answers.TRIES):
    typed, asked, shown = iter(typed), [], []
    return answers.Questions(lambda words: asked.append(words) or next(typed), shown.append, tries), asked, shown


def test_a_question_is_asked_a_bounded_number_of_times():
    one, asked, shown = questions(["x"] * 9)
    with pytest.raises(NoAnswer) as error:
        one.number("supply, V: ", "V")
    assert len(asked) == answers.TRIES and len(shown) == answers.TRIES - 1
    assert error.value.seen == "'x'" and "supply, V:" in error.value.expected


def test_nobody_is_asked_again_where_nobody_reads():
    one, asked, shown = questions(["3,3 A", "3.3"], tries=1)
    with pytest.raises(NoAnswer):
        one.number("supply, V: ", "V")
    assert len(asked) == 1 and not shown


@pytest.mark.parametrize(
    ("typed", "value", "times"),
    [
        (["3300", "3300 mV"], 3.3, 2),
        (["3300", "3300"], 3300, 2),  # typed twice: it is taken as it is
        (["3300 V"], 3300, 1),  # with its unit
        (["12.1"], 12.1, 1),  # wrong in no prefix: a fault
        (["0.0033", "3.3"], 3.3, 2),
    ],
)
def test_a_number_that_fits_in_another_prefix_alone_is_asked_for_once_more(typed, value, times):
    one, asked, shown = questions(typed)
    fits = lambda volts: 3.1 <= volts <= 3.5
    assert one.number("supply, V: ", "V", fits).value == pytest.approx(value) and len(asked) == times
    assert len(shown) == times - 1


def test_without_a_terminal_a_bare_number_is_in_the_unit_that_is_asked_for():
    one, asked, _ = questions(["3300"], tries=1)
    assert one.number("supply, V: ", "V", lambda volts: volts < 4).value == 3300 and len(asked) == 1


def test_an_optional_answer_may_be_empty():
    one, _, _ = questions(["\n"])
    assert one.number("lock-out, V: ", "V", lambda volts: True, True) is None


@pytest.mark.parametrize(("typed", "is_yes"), [(["Y"], True), (["nein", "", "no"], False), (["yes\n"], True)])
def test_yes_or_no(typed, is_yes):
    assert questions(typed)[0].yes("cold: ") is is_yes
