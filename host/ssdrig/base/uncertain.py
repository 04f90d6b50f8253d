"""Figures with their errors, and ratios and differences of them: the one place that makes these. Pure.

An error is half the width of the interval that holds the truth in 95 % of cases. Errors of different figures are taken
as independent, and a figure that a formula names twice counts as one. A quotient is given only where its denominator is
known to within a third of itself: below that the interval of the quotient is lopsided, and soon unbounded (Fieller,
"Some problems in interval estimation", J. R. Statist. Soc. B 16, 1954)."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred
from ssdrig.base.words import digits

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

DENOMINATOR_MOST = 1 / 3  # error of a denominator, as a share of it
LEAST_PERCENT = 1.0  # repeatability of two runs on one drive, however small the scatter within each
BATCHES = 8  # stretches of a series, from whose differences its scatter is known
# Series of MANY values or more: neighbouring stretches are alike where a dip lasts a value (a second). The factor
# 1 + FOLLOW / n makes up for that: 1.3 of 20 values, 1.1 of 60
MANY, FOLLOW = 20, 6
RHYTHM = 4  # least length of a series in which stretches are compared, in units of a stretch
FEWEST = 3  # points that yield an error of a fitted line from their scatter
# reasons
UNKNOWN, NO_ERROR, DENOMINATOR, TOO_LARGE = "unknown", "no-error", "denominator", "too-large"
NOT_TRUSTED = "not-trusted"
NO_DIFFERENCE = "no-difference"
# two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom (Abramowitz and Stegun, table 26.10)
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131),
    *(2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


class Uncertain(NamedTuple):
    """`value` ± `error`. An error of None is not known. Without a value: `reason`, one of the ids above, and `why` in
    words."""

    value: float | None
    error: float | None = None
    reason: str | None = None
    why: str = ""

    @property
    def known(self) -> bool:
        """Whether it has a value and an error."""
        return self.value is not None and self.error is not None

    def scaled(self, by: float) -> "Uncertain":
        """In another unit."""
        if self.value is None:
            return self
        return self._replace(value=self.value * by, error=None if self.error is None else self.error * abs(by))


def t95(degrees: float) -> float:
    """Student's t, two-sided 95 %."""
    n = max(1, math.floor(degrees))
    return _T95[n - 1] if n <= len(_T95) else 1.960 + 2.5 / n


def mean_error(values: "Sequence[float] | np.ndarray") -> float | None:
    """The error of the mean of a series, such as of the seconds of a window; None of a single one.

    Computed from the differences of BATCHES neighbouring stretches: correlated seconds count as fewer, and drift (a
    cache that ends, a drive that warms up) does not count as scatter. (J. von Neumann,
    "Distribution of the ratio of the mean square successive difference to the variance", Ann. Math. Stat. 12, 1941.)"""
    series = np.asarray(values, float)
    n = len(series)
    if n < 2 or not np.isfinite(series).all():
        return None
    count = min(n, BATCHES)
    means = np.array([batch.mean() for batch in np.array_split(series, count)])
    square = float((np.diff(means) ** 2).sum()) / (2 * (count - 1))
    follow = 1 + FOLLOW / n if n >= MANY else 1.0
    return follow * t95(2 * (count - 1) ** 2 / (3 * count - 4)) * math.sqrt(square / count)


def stretch_error(values: "Sequence[float] | np.ndarray", longer: "Sequence[float] | np.ndarray") -> float | None:
    """The error of the mean of a few neighbouring values, from the longer series that they are a part of: they may all
    belong to one dip, or to none. By the mean of the longer series, and by how stretches of that length differ in it,
    for a drive that works in a rhythm has a steady mean. None where either series has no error."""
    own, whole, n = mean_error(values), mean_error(longer), len(values)
    if own is None or whole is None or n >= len(longer):
        return own
    error = max(own, whole * math.sqrt(len(longer) / n))
    if len(longer) < RHYTHM * n:
        return error
    sums = np.cumsum(np.concatenate([[0.0], np.asarray(longer, float)]))
    means = (sums[n:] - sums[:-n]) / n
    return max(error, 2 * math.sqrt(float(((means[n:] - means[:-n]) ** 2).mean()) / 2))


def deviation_share(n: int) -> float:
    """The error of a standard deviation of n independent values, as a share of it."""
    return t95(n - 1) / math.sqrt(2 * (n - 1))


def propagated(f: Callable[..., float], inputs: Mapping[str, Uncertain]) -> Uncertain:
    """f of independent, named figures. Each error contributes the change of f over its interval. f raises
    ZeroDivisionError where it is undefined."""
    for name, one in inputs.items():
        if one.value is None or not math.isfinite(one.value):
            return Uncertain(None, None, UNKNOWN, one.why or f"{name} is unknown")
    at = {name: float(one.value or 0.0) for name, one in inputs.items()}
    for name, one in inputs.items():
        if one.error is None or not math.isfinite(one.error):
            return Uncertain(None, None, NO_ERROR, f"the error of {name} is not known")
    try:
        value, square = f(**at), 0.0
        for name, one in inputs.items():
            if one.error:
                high, low = (f(**at | {name: at[name] + sign * one.error}) for sign in (1, -1))
                square += ((high - low) / 2) ** 2
    except ZeroDivisionError:
        return Uncertain(None, None, DENOMINATOR, "its denominator is 0 within its error")
    error = math.sqrt(square)
    if not math.isfinite(value) or not math.isfinite(error):
        return Uncertain(None, None, TOO_LARGE, "it is too large")
    return Uncertain(value, error)


def difference(a: Uncertain, b: Uncertain) -> Uncertain:
    """a - b."""
    return propagated(lambda a, b: a - b, {"a": a, "b": b})


def ratio(a: Uncertain, b: Uncertain) -> Uncertain:
    """a / b; null where b is not known well enough."""
    return vague(b) or propagated(lambda a, b: a / b, {"a": a, "b": b})


def vague(denominator: Uncertain, name: str = "the denominator") -> Uncertain | None:
    """Why it cannot be divided by; None: it can."""
    value, error = denominator.value, denominator.error
    if value is None or error is None or abs(value) * DENOMINATOR_MOST >= error and value:
        return None
    return Uncertain(
        None, None, DENOMINATOR, f"{name} is {digits(value, 4)} ± {digits(error, 4)}, too near to 0 to divide by"
    )


def among(count: int) -> float:
    """Factor that widens the interval of a difference when the best of `count` figures is sought: every pair may differ
    by chance (Bonferroni)."""
    pairs = max(1, count * (count - 1) // 2)
    normal = statistics.NormalDist()
    return normal.inv_cdf(1 - 0.025 / pairs) / normal.inv_cdf(0.975)


class Line(NamedTuple):
    """A straight line through points: its slope, its value at 0 and where it crosses 0."""

    slope: Uncertain
    at_0: Uncertain
    zero: Uncertain


def line(
    x: "Sequence[float] | np.ndarray", y: "Sequence[float] | np.ndarray", errors: Sequence[float | None] = ()
) -> Line:
    """Least-squares line. With FEWEST points or more its errors come from the scatter about the line (Draper and Smith,
    Applied Regression Analysis, 1.4) or from the `errors` of y, whichever are larger; with two points from `errors`
    alone. The zero crossing is null if the slope is uncertain by more than a third."""
    of, to = np.asarray(x, float), np.asarray(y, float)
    n = len(of)
    if n < 2 or not np.ptp(of) > 0:
        none = Uncertain(None, None, UNKNOWN, f"{n} points, a line needs two at different places")
        return Line(none, none, none)
    off, mean = of - of.mean(), float(of.mean())
    square = float(off @ off)
    slope = float(off @ to) / square
    at_0 = float(to.mean()) - slope * mean
    left = to - at_0 - slope * of
    by = [0.0, 0.0]
    if len(errors) == n and None not in errors:
        known = np.array(errors, float)
        by = [math.hypot(*(off / square * known)), math.hypot(*((1 / n - mean * off / square) * known))]
    elif n < FEWEST:
        why = f"{n} points without errors of their own: a slope and its error need {FEWEST}"
        none = Uncertain(None, None, NO_ERROR, why)
        return Line(none, none, none)
    if n >= FEWEST:
        scatter, wide = math.sqrt(float(left @ left) / (n - 2)), t95(n - 2)
        by = [
            max(by[0], wide * scatter / math.sqrt(square)),
            max(by[1], wide * scatter * math.sqrt(1 / n + mean**2 / square)),
        ]
    made = Uncertain(slope, by[0]), Uncertain(at_0, by[1])
    if bad := vague(made[0], "the slope"):
        return Line(*made, bad)
    at = -at_0 / slope
    spread = by[0] * math.sqrt(square) * math.sqrt(1 / n + (mean - at) ** 2 / square) / abs(slope)
    return Line(*made, Uncertain(at, spread))


def differ(a: Uncertain, b: Uncertain, count: int = 2) -> bool:
    """Whether two of `count` compared figures differ by more than their combined uncertainty and than the repeatability
    of one drive. False if a value or an error is unknown."""
    gap = difference(a, b)
    if gap.value is None or gap.error is None or a.value is None or b.value is None:
        return False
    repeat = LEAST_PERCENT / 100 * max(abs(a.value), abs(b.value))
    return abs(gap.value) > max(gap.error * among(count), repeat)
