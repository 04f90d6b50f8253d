"""Prices as people write them, and figures per unit of money."""

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.base.uncertain import Uncertain
from ssdrig.report import price


@pytest.mark.parametrize(
    ("text", "value", "error", "currency"),
    [
        ("89.90 USD", 89.9, 0.0, "USD"),
        ("$89.90", 89.9, 0.0, "USD"),
        ("85 to 95 EUR", 90.0, 5.0, "EUR"),
        ("€ 90 ± 5", 90.0, 5.0, "EUR"),
        ("12000 JPY", 12000.0, 0.0, "JPY"),
    ],
)
def test_a_price_in_words(text, value, error, currency):
    assert price.parse(text) == (Uncertain(value, error), currency)


@pytest.mark.parametrize(
    "text", ["", "89", "USD", "0 USD", "-3 USD", "95 to 85 EUR", "$ 5 USD", "1e9 USD", "9 ± 9 EUR", "1 usd", "nan USD"]
)
def test_what_is_no_price_is_refused(text):
    with pytest.raises(UsageError):
        price.parse(text)


def test_an_error_of_the_price_is_an_error_of_the_figure():
    of = price.per_unit(Uncertain(18_000.0, 0.0), price.parse("85 to 95 EUR"), "EUR")
    assert of.value == pytest.approx(200) and of.error == pytest.approx(200 * 5 / 90, rel=0.01)
    cost = price.of_unit(price.parse("90 EUR"), Uncertain(600.0, 30.0), "EUR")
    assert cost.value == pytest.approx(0.15) and cost.error == pytest.approx(0.0075, rel=0.01)


def test_without_a_price_or_in_another_currency_there_is_no_figure():
    assert price.per_unit(Uncertain(1.0, 0.0), None, "EUR") == (None, None, "unknown", price.NO_PRICE)
    other = price.per_unit(Uncertain(1.0, 0.0), price.parse("1 USD"), "EUR")
    assert other.value is None and "USD" in other.why and "EUR" in other.why
    vague = price.per_unit(Uncertain(1.0, None), price.parse("1 EUR"), "EUR")
    assert (vague.value, vague.reason) == (None, "no-error")
