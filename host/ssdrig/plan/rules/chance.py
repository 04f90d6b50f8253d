"""Bounds of the chance that one cut breaks a guarantee, from a number of cuts, and when a campaign may stop. Pure.

Cuts are counted, not blocks, because the blocks of one cut fail together. A stratum is a group of cuts with the same
aim and shape. Sources: Clopper and Pearson, Biometrika 26 (1934) 404; Wald, Sequential Analysis (1947), chapter 3.
"""

import bisect
import functools
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred
from ssdrig.base.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

CONFIDENCE = 0.95
NO_SAMPLES = "One drive reports nothing about other drives of its model."
MOST_FAILING = 32  # with this many failing cuts `until` no longer waits for more clean ones


def at_most(failing: int, cuts: int, chance: float) -> float:
    """The probability of at most `failing` failing cuts (binomial distribution), 0 < chance < 1."""
    if failing >= cuts:
        return 1.0
    one, other = math.log(chance), math.log1p(-chance)
    ways = math.lgamma(cuts + 1)
    return math.fsum(
        math.exp(ways - math.lgamma(k + 1) - math.lgamma(cuts - k + 1) + k * one + (cuts - k) * other)
        for k in range(failing + 1)
    )


@functools.lru_cache(4096)
def upper_bound(failing: int, cuts: int, confidence: float = CONFIDENCE) -> float:
    """The chance of failing per cut is below this, one-sided (Clopper-Pearson), of a number of cuts that was set
    beforehand; 1.0 without cuts."""
    if failing >= cuts:
        return 1.0
    low, high = failing / cuts, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if at_most(failing, cuts, middle) > 1 - confidence else (low, middle)
    return high


@functools.lru_cache(4096)
def bound_at_end(failing: int, cuts: int, stops: tuple[int, ...] = (), confidence: float = CONFIDENCE) -> float:
    """The chance of failing per cut is below this, of a campaign that was to end after stops[k] cuts with k failing
    ones (looks()), and came to `cuts` with `failing`. Exact: an end is as good as another one that comes earlier, or
    at the last cut with fewer failing (stagewise ordering; Jennison and Turnbull, Group Sequential Methods, 1999).
    Without stops: upper_bound()."""
    passed = stops[: bisect.bisect_right(stops, cuts)]
    if not passed or failing >= cuts:
        return upper_bound(failing, cuts, confidence)
    low, high = failing / cuts, 1.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        as_good = _as_good(failing, cuts, passed, middle)
        low, high = (middle, high) if as_good > 1 - confidence else (low, middle)
    return high


def _as_good(failing: int, cuts: int, stops: Sequence[int], chance: float) -> float:
    """The probability that a campaign ends at the stop of `failing` or an earlier one; or, where that was not reached,
    at one of `stops` or at `cuts` with at most `failing`."""
    ended = 0.0
    going_on = np.zeros(max(len(stops), failing + 1) + 1)
    going_on[0], at = 1.0, 0
    for k, stop in enumerate(stops[: failing + 1]):
        going_on, at = _more(going_on, stop - at, chance), stop
        ended += going_on[k]
        going_on[k] = 0.0
    if failing < len(stops):
        return float(ended)
    return float(ended + _more(going_on, cuts - at, chance)[: failing + 1].sum())


def _more(going_on: "np.ndarray", cuts: int, chance: float) -> "np.ndarray":
    """The chance of each number of failing cuts after n more cuts."""
    k = range(min(cuts, len(going_on) - 1) + 1)
    one, other, ways = math.log(chance), math.log1p(-chance), math.lgamma(cuts + 1)
    logs = [ways - math.lgamma(n + 1) - math.lgamma(cuts - n + 1) + n * one + (cuts - n) * other for n in k]
    return np.convolve(going_on, np.exp(logs))[: len(going_on)]


class Failing:
    """How many judged cuts broke a promise, from sessions in the order of their numbers: at `least`, at `most`.

    Damage in a block that was not read for some cuts is one event of unknown date: an interval of sessions. Intervals
    that share a cut may be one event, so `least` is the fewest cuts that explain all of them. Every cut that broke a
    promise is in some interval, so `most` is never too low, and upper_bound(most, ...) holds whatever was read after
    each cut."""

    def __init__(self) -> None:
        self.least = 0
        self._reached = -1
        self._cuts: list[int] = []
        self._others: list[int] = []
        self._suspects: set[int] = set()

    @property
    def most(self) -> int:
        return len(self._suspects)

    def add(self, number: int, cut: bool, power: bool, interval: Sequence[int] | None, unsure: bool = False) -> None:
        """One more session. `cut`: it is a judged cut; `power`: it took power, or tried to; `interval`: (first, last,
        earliest) of the damage that it found: one of the sessions first to last did it, and none before `earliest` had
        a part in it; `unsure`: it may have broken a promise, which nobody can tell."""
        if cut or power:
            (self._cuts if cut else self._others).append(number)
        if cut and unsure:
            self._suspects.add(number)
        if interval is None:
            return
        first, last, earliest = interval
        self._suspects.update(_within(self._cuts, earliest, last))
        if first > self._reached and _within(self._cuts, first, last) and not _within(self._others, first, last):
            self.least, self._reached = self.least + 1, last


def _within(numbers: Sequence[int], first: int, last: int) -> Sequence[int]:
    return numbers[bisect.bisect_left(numbers, first) : bisect.bisect_right(numbers, last)]


def cuts_needed(chance: float, failing: int = 0, confidence: float = CONFIDENCE) -> int:
    """Number of cuts that bound the chance per cut by `chance` if `failing` of them fail."""
    low, high = failing, failing + 1
    while at_most(failing, high, chance) > 1 - confidence:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if at_most(failing, middle, chance) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


class Wald(NamedTuple):
    """The sequential probability ratio test: is the chance per cut at most `good`, or at least `bad`? With the limits
    1 / alpha and beta its errors stay below them; Wald's own (1 - beta) / alpha and beta / (1 - alpha) are shorter by
    six clean cuts and accept 5.1 % of the bad drives."""

    good: float = 0.001
    bad: float = 0.01
    alpha: float = 0.05  # the chance to reject a good drive
    beta: float = 0.05  # the chance to accept a bad one

    def ruling(self, failing: int, cuts: int) -> str | None:
        """ "accept", "reject", or None: go on."""
        clean = math.log((1 - self.bad) / (1 - self.good))
        ratio = failing * math.log(self.bad / self.good) + (cuts - failing) * clean
        if ratio >= -math.log(self.alpha):
            return "reject"
        return "accept" if ratio <= math.log(self.beta) else None


@functools.lru_cache
def looks(chance: float, confidence: float = CONFIDENCE) -> tuple[int, ...]:
    """[k] is the number of cuts after which a campaign with k failing ones may end with "the chance per cut is below
    `chance`". Who looks after every cut whether upper_bound() is low enough looks often, and is wrong more often than
    1 - confidence. So the error is shared out: half of it to no failing cut, a quarter to one, and so on.

    What has not ended at look k has more than k failing cuts; so what ends at the next look had k + 1 at look k, and
    none since."""
    error = (1 - confidence) / 2
    going_on = np.zeros(MOST_FAILING + 1)  # the chance of this many failing cuts without having ended
    going_on[0] = 1.0
    out: list[int] = []
    at = 0
    for failing in range(MOST_FAILING):
        share = error / 2**failing  # of the error
        more = 0
        if going_on[failing] > share:
            more = math.ceil(math.log(share / going_on[failing]) / math.log1p(-chance))
        step = np.diff([0.0, *(at_most(k, more, chance) for k in range(MOST_FAILING + 1))])
        going_on = np.convolve(going_on, step)[: MOST_FAILING + 1]
        going_on[failing] = 0.0
        at += more
        out.append(at)
    return tuple(out)


class Stop(NamedTuple):
    """When a campaign ends, whichever comes first."""

    cuts: int | None = None  # after this many
    until: float | None = None  # when the chance per cut is known to be below this
    first: bool = False  # at the first failing cut

    def why(self, failing: int, cuts: int) -> str | None:
        """The reason to stop after `cuts` judged cuts; None: continue."""
        if self.first and failing:
            return "a cut broke a promise"
        if self.until is not None and failing < MOST_FAILING and cuts >= looks(self.until)[failing]:
            return f"the chance per cut is below {100 * self.until:g} % ({100 * CONFIDENCE:g} %)"
        if self.cuts is not None and cuts >= self.cuts:
            return f"{self.cuts} cuts were judged"
        return None


def parse_until(text: str) -> float:
    """ "p<1%" -> 0.01. Raises UsageError."""
    match = re.fullmatch(r"p\s*<\s*([0-9]+(?:\.[0-9]+)?)\s*%", text.strip())
    chance = float(match[1]) / 100 if match else 0.0
    if not 0.0001 <= chance <= 0.5:
        raise UsageError("a bound from p<0.01% to p<50%", text, "write it as in --until 'p<1%'")
    return chance


def percent(chance: float) -> str:
    """A bound for people, rounded up so that it stays one: "0.51 %"."""
    if chance >= 1:
        return "100 %"
    places = max(0, 1 - math.floor(math.log10(100 * chance)))
    return f"{math.ceil(100 * chance * 10**places - 1e-9) / 10**places:.{places}f} %"
