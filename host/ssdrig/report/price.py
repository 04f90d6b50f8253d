"""A price as a reviewer writes it, and the figures that it makes: what a unit of money buys. Pure."""

import re
from typing import NamedTuple

from ssdrig.base.errors import UsageError
from ssdrig.base.uncertain import UNKNOWN, Uncertain, ratio
from ssdrig.base.words import digits

SIGNS = {"$": "USD", "€": "EUR", "£": "GBP"}
MOST = 1e9
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,4})?"
_TEXT = re.compile(
    rf"(?P<sign>[$€£])?\s*(?P<low>{_NUMBER})\s*(?:(?P<how>to|±)\s*(?P<more>{_NUMBER}))?\s*(?P<name>[A-Z]{{3}})?"
)
NO_PRICE = "no price is stated"


class Price(NamedTuple):
    """amount: in units of the currency; one that is stated exactly has an error of 0
    currency: three letters of ISO 4217"""

    amount: Uncertain
    currency: str

    def __str__(self) -> str:
        error = f" ± {digits(self.amount.error, 4)}" if self.amount.error else ""
        return f"{self.amount.value or 0.0:.10g}{error} {self.currency}"


def parse(text: str) -> Price:
    """A price: "89.90 USD", "$89.90", "85 to 95 EUR", which is 90 ± 5, or "90 ± 5 EUR". Raises UsageError."""
    match = _TEXT.fullmatch(text.strip())
    if not match or (match["sign"] is None) == (match["name"] is None):
        raise UsageError("a price such as 89.90 USD or 85 to 95 EUR", repr(text)[:80], "give an amount and a currency")
    low, more = float(match["low"]), float(match["more"] or 0)
    if match["how"] == "to":
        middle, error = (low + more) / 2, (more - low) / 2
    else:
        middle, error = low, more
    if not 0 < middle <= MOST or not 0 <= error < middle:
        raise UsageError("a price above 0, the lower end of a range first", repr(text)[:80], "correct it")
    return Price(Uncertain(middle, error), SIGNS.get(match["sign"] or "") or match["name"])


def per_unit(figure: Uncertain, price: Price | None, currency: str) -> Uncertain:
    """What a unit of money buys of a figure.

    currency: of the result; a price in another one gives null, because no rate of exchange is known here
    """
    return _priced(price, currency) or ratio(figure, price.amount if price else Uncertain(None))


def of_unit(price: Price | None, figure: Uncertain, currency: str) -> Uncertain:
    """What a unit of a figure costs; `currency` as of per_unit."""
    return _priced(price, currency) or ratio(price.amount if price else Uncertain(None), figure)


def _priced(price: Price | None, currency: str) -> Uncertain | None:
    """Why nothing is computed of a price; None: it can be."""
    if price is None:
        return Uncertain(None, None, UNKNOWN, NO_PRICE)
    if price.currency != currency:
        return Uncertain(
            None, None, UNKNOWN, f"its price is in {price.currency}, that of the reviewed one in {currency}"
        )
    return None
