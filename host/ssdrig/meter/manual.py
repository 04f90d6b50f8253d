"""Limits of an instrument's manual, as the URL of its meter states them: `V=0.05%+10mV&A=0.2%+10mA`."""

import re
from collections.abc import Mapping

from ssdrig.base.errors import UsageError
from ssdrig.meter.meter import Accuracy, Limit

LIMIT = re.compile(r"(?P<percent>[\d.]+)%(?:\+(?P<fixed>[\d.]+)(?P<milli>m?)(?P<unit>[VA]))?")
MOST = 1e6  # V or A: the ranges of the manual are the user's to choose


def accuracy(options: Mapping[str, str], example: str, unknown: str) -> Accuracy:
    """The accuracy by the options `V` and `A` of a URL, percent of the reading and fixed.

    options: of the URL.
    example: of such a URL, used in the error.
    unknown: why it is not known where the URL states neither.
    Raises UsageError."""
    limits = [_limit(key, options[key], example) for key in "VA" if key in options]
    if len(limits) == 1:
        raise UsageError("V= and A=, or neither", "one of them", example)
    return Accuracy(volts=limits[0], amperes=limits[1]) if limits else Accuracy(unknown=unknown)


def _limit(key: str, text: str, example: str) -> tuple[Limit, ...]:
    match = LIMIT.fullmatch(text.replace(" ", "+"))  # a plus in a URL may be a blank
    if not match or match["unit"] not in (None, key):
        raise UsageError(f"{key}= in percent of the reading and a fixed part", text, f"{key}=0.05%+10m{key}")
    try:
        fixed = float(match["fixed"] or 0) * (1e-3 if match["milli"] else 1)
        percent = float(match["percent"])
    except ValueError:
        raise UsageError(f"{key}= with numbers", text, example) from None
    if not percent and not fixed:
        raise UsageError(f"{key}= above 0: an instrument has an uncertainty", text, example)
    return (Limit(MOST, percent, fixed),)
