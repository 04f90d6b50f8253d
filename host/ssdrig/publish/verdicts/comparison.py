"""Two groups of runs, one figure at a time: the difference of their means, its uncertainty, a verdict. Pure.

A group's mean is uncertain by the scatter of its repeats (Student's t, as many degrees of freedom as repeats less one)
or by the runs' own errors, whichever is larger: a rig's calibration is the same in each repeat and does not average
out. A single run has no scatter between runs: LEAST_PERCENT of the figure represents it. The two are joined by Welch
and Satterthwaite (B. L. Welch, Biometrika 34, 1947). Of several figures each is compared at a level that makes all
verdicts together hold at the stated one (Bonferroni)."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from ssdrig.base.uncertain import LEAST_PERCENT, NO_DIFFERENCE, NO_ERROR, UNKNOWN, Uncertain, propagated, vague
from ssdrig.views import context

HIGHER, LOWER, CANNOT_TELL = "A higher", "B higher", "cannot tell"
COVERAGE = statistics.NormalDist().inv_cdf(0.975)  # errors of figures cover 95 %


class Group(NamedTuple):
    """The mean of a group's repeats. `standard`: its standard uncertainty; `degrees`: of freedom of that."""

    mean: float
    standard: float
    degrees: float
    repeats: int


class Difference(NamedTuple):
    """A - B. `error`: half of the interval that holds it at `level`. percent: of B; null where B is too near to 0 to
    divide by. `reason`: the id of a doubt, `why`: words."""

    figure: str
    verdict: str
    level: float
    a: float | None = None
    b: float | None = None
    difference: float | None = None
    error: float | None = None
    percent: float | None = None
    percent_error: float | None = None
    repeats: tuple[int, int] = (0, 0)
    reason: str | None = None
    why: str = ""


def group(runs: Sequence[Uncertain]) -> Group | Uncertain:
    """The mean of the repeats, or why it is not known."""
    for one in runs:
        if one.value is None or not math.isfinite(one.value):
            return Uncertain(None, None, one.reason or UNKNOWN, one.why or "it is not known")
        if one.error is None or not math.isfinite(one.error):
            return Uncertain(None, None, NO_ERROR, "its error is not known")
    values = [one.value for one in runs if one.value is not None]
    mean, n = math.fsum(values) / len(values), len(values)
    own = max(one.error or 0.0 for one in runs) / COVERAGE
    if n == 1:
        return Group(mean, math.hypot(own, abs(mean) * LEAST_PERCENT / 100 / COVERAGE), math.inf, 1)
    between = statistics.stdev(values) / math.sqrt(n)
    return Group(mean, math.hypot(own, between), _joined(((own, math.inf), (between, n - 1))), n)


def compared(figure: str, a: Sequence[Uncertain], b: Sequence[Uncertain], level: float, of: int = 1) -> Difference:
    """The difference of a figure between two groups of runs; `level`: of all `of` figures together, such as 0.95."""
    own = 1 - (1 - level) / of
    groups = group(a), group(b)
    repeats = len(a), len(b)
    for name, one in zip("AB", groups, strict=True):
        if isinstance(one, Uncertain):
            return Difference(
                figure, CANNOT_TELL, level, repeats=repeats, reason=one.reason, why=f"{figure} of {name}: {one.why}"
            )
    first, second = (one for one in groups if isinstance(one, Group))
    difference, standard = first.mean - second.mean, math.hypot(first.standard, second.standard)
    degrees = _joined(((first.standard, first.degrees), (second.standard, second.degrees)))
    factor = quantile(own, degrees)
    error = factor * standard
    share = _percent(*(Uncertain(one.mean, factor * one.standard) for one in (first, second)))
    undecided = Difference(figure, CANNOT_TELL, level, first.mean, second.mean, difference, error, *share[:2], repeats)
    if abs(difference) > error:
        return undecided._replace(verdict=HIGHER if difference > 0 else LOWER)
    words = "" if share.error is None else f", {context.figure(share.error)} %"
    why = f"the difference {context.plus_minus(Uncertain(difference, error))} is within its uncertainty{words}"
    return undecided._replace(reason=NO_DIFFERENCE, why=why)


def _percent(a: Uncertain, b: Uncertain) -> Uncertain:
    """A - B in percent of B."""
    return vague(b) or propagated(lambda a, b: 100 * (a - b) / abs(b), {"a": a, "b": b})


def _joined(parts: Sequence[tuple[float, float]]) -> float:
    """Degrees of freedom of the root of the sum of squares (Welch-Satterthwaite)."""
    below = sum(standard**4 / degrees for standard, degrees in parts if standard and math.isfinite(degrees))
    square = sum(standard**2 for standard, _ in parts)
    return square**2 / below if below else math.inf


def quantile(level: float, degrees: float) -> float:
    """Student's t: the two-sided interval of `level` is ± this many standard uncertainties."""
    if not math.isfinite(degrees) or degrees > 1e6:
        return statistics.NormalDist().inv_cdf((1 + level) / 2)
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        high *= 2
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return high


def _within(t: float, degrees: float) -> float:
    """The probability that Student's t is within ± t: 1 - I_x(n/2, 1/2), x = n / (n + t²)."""
    return 1 - _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function (Abramowitz and Stegun, 26.5.8), by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny, c = 1e-300, 1.0
    d = 1 / (1 - (a + b) * x / (a + 1) or tiny)
    out = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            out *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return math.exp(front) * out / a
