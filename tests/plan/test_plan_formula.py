"""plan/formula.py: arithmetic over values of steps, parsed and never eval'd."""

import ast
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.uncertain import Uncertain
from ssdrig.plan import formula

VALUES = {("a", "MB/s"): 500.0, ("b-1", "MB/s"): 200.0, ("a", "iops"): 1000.0, ("a", "W"): 4.0, ("a", "iops/W"): 250.0}
VALUES |= {("w", "iops"): 10.0, ("r/point", "iops"): 7.0, ("100", "W"): 9.0, ("a", "lat_p99"): float("nan")}


def value(text, **errors):
    """(value, reason); figures are exact but those whose errors are named."""

    def lookup(path, name):
        return Uncertain(VALUES.get((path, name)), errors.get(path, 0.0))

    evaluated = formula.evaluate(formula.parse(text), lookup)
    return evaluated.value, evaluated.why or None


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a.MB/s", 500),
        ("a.MB/s/b-1.MB/s", 2.5),
        ("a.MB/s - b-1.MB/s", 300),
        ("a.iops/W", 250),
        ("a.iops/w.iops", 100),  # the longest name wins, and "iops/w" is no name
        ("a.iops / a.W", 250),
        ("r/point.iops/7", 1),
        ("100.W", 9),
        ("1.5 * 2", 3),
        ("7 - 2 - 1", 4),
        ("8 / 2 / 2", 2),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("-2 + 5", 3),
        ("--2", 2),
        ("2*-3", -6),
        ("-(1 + 1) * 2", -4),
        ("(a.MB/s - b-1.MB/s) / (a.MB/s - 100)", 0.75),
    ],
)
def test_values(text, expected):
    assert value(text) == (pytest.approx(expected), None)


@pytest.mark.parametrize(
    "text, reason",
    [
        ("a.MB/s / (a.W - 4)", "a.W - 4 is 0 ± 0, too near to 0"),
        ("1 / 0", "0 is 0 ± 0, too near to 0"),
        ("1 + c.W * 2", "c.W is unknown"),
        ("a.lat_p99", "a.lat_p99 is unknown"),
        ("c.W / d.W", "c.W is unknown"),
        (" * ".join(["999999999999999"] * 21), "too large"),
    ],
)
def test_what_cannot_be_computed_is_none_with_the_reason(text, reason):
    result, why = value(text)
    assert result is None and reason in why


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "missing at its end"),
        ("1 +", "missing at its end"),
        ("(1", "missing at its end"),
        ("1 2", "broken at '2'"),
        ("1)", "broken at ')'"),
        ("1 + * 2", "broken at '* 2'"),
        ("a", "broken at 'a'"),
        ("a.", "broken at 'a.'"),
        ("a.MB", "a.MB is not a value of a step"),
        ("a.mb/s", "a.mb is not a value of a step"),
        ("a.iops.W", "broken at '.W'"),
        ("__import__('os')", 'broken at "__import__'),
        ("1e3", "broken at '1e3'"),
        ("2 ** 3", "broken at '* 3'"),
        ("2 ^ 3", "broken at '^ 3'"),
        ("٣", "broken at '٣'"),
        ("1.", "broken at '1.'"),
        ("1\n", "broken at '\\n'"),
        ("(" * 100 + "1" + ")" * 100, "more than 20"),
        ("-" * 100 + "1", "more than 20"),
        ("1+" * 300 + "1", "more than 400 characters"),
        ("9" * 16, "broken"),
    ],
)
def test_a_broken_formula_says_where(text, reason):
    with pytest.raises(ValueError) as raised:
        formula.parse(text)
    assert reason in str(raised.value)


def test_names_are_the_values_that_it_needs():
    node = formula.parse("(after.MB/s - dirty.MB/s) / (clean.MB/s - 2 * rounds/point.iops)")
    assert [str(name) for name in formula.names(node)] == [
        "after.MB/s",
        "dirty.MB/s",
        "clean.MB/s",
        "rounds/point.iops",
    ]


OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def of_python(node):
    """The value of a tree that Python's own parser has made: an independent judge of precedence."""
    if isinstance(node, ast.Constant):
        return float(node.value)
    if isinstance(node, ast.UnaryOp):
        return -of_python(node.operand)
    return OPERATORS[type(node.op)](of_python(node.left), of_python(node.right))


NUMBER = st.integers(0, 9).map(str)
SUMS = st.recursive(
    NUMBER,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" + ", " - ", "*", " / ", "-"]), inner).map("".join),
        inner.map(lambda text: f"({text})"),
        inner.map(lambda text: f"-({text})"),
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(SUMS)
def test_sums_are_pythons(text):
    result, why = value(text)
    try:
        assert result == pytest.approx(of_python(ast.parse(text, mode="eval").body)) and why is None
    except ZeroDivisionError:
        assert result is None and "too near to 0" in why
    again, _ = value(formula.written(formula.parse(text)))
    assert again == result


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from("a1.-+*/() MBs_W\n\x00é"), max_size=30))
def test_any_text_is_a_formula_or_a_value_error(text):
    try:
        assert formula.evaluate(formula.parse(text), lambda path, name: Uncertain(1.0, 0.0))
    except ValueError as error:
        assert str(error)


def test_a_figure_that_is_unknown_gives_its_reason():
    """Such as the write amplification of a load of a second, whose error is over its limit."""
    known = {"one": Uncertain(1.0, 0.1), "two": Uncertain(None, None, "unknown", "its error would be 22 %")}
    result = formula.evaluate(formula.parse("one.wa / two.wa"), lambda path, name: known[path])
    assert result.value is None and result.why == "two.wa is unknown: its error would be 22 %"
