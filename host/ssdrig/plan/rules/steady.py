"""The steady-state rule of the SNIA Solid State Storage Performance Test Specification (PTS) 2.0.2, clause 2.1.24.

Over a measurement window of five rounds with the means y: max(y) - min(y) <= 20 % of the average, and the least-squares
line y = m x + b over x = 1 to 5 rises or falls by at most 10 % of the average from the first round to the last. A PTS
round is a minute; here a round is a fifth of the window, `round_s` long."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

ROUNDS = 5
RANGE_PERCENT = 20
SLOPE_PERCENT = 10
SHORTEST_ROUND_S = 2
RULE = (
    "SNIA PTS 2.0.2, 2.1.24: over five rounds, range <= 20 % of the average and rise or fall of the line <= 10 % of it"
)
# A drive may fall to a dip after its cliff and rise again. Models of such drives (selfcheck steady-models) stay in it
# for at most as many writes as the spare area holds, at 0.4 to 0.85 of their last level.
DIP_SPARE_AREAS = 1.0
NOT_ACHIEVED, NOT_KNOWN = "STEADY STATE NOT ACHIEVED", "STEADY STATE NOT KNOWN"
NOT_CLAIMED = "not claimed"
DIGITS = 9  # exactly 20 % passes whatever the order of the sum


# the basis of a verdict on a load or on rounds that write (spare.py): how often the tested range was written since the
# purge, whether that had used up the spare area, by which evidence, and how many times its size was written since
RESTS_ON = {"drive_writes": None, "past_spare": None, "past_spare_by": None, "spare_areas_since": None}


class Limits(NamedTuple):
    """What a rule allows, in percent of the average; slope None: any."""

    rule: str
    range_percent: float
    slope_percent: float | None


PTS = Limits(RULE, RANGE_PERCENT, SLOPE_PERCENT)


def verdict(rounds, limits: Limits = PTS) -> dict:
    """The rule applied to five means, oldest first: {"rule", "passed", "why", "average", "range_percent",
    "slope_percent", "m", "b", "r", "rounds", the limits "range_limit_percent", "slope_limit_percent", and RESTS_ON}.
    Without I/O there is no verdict: passed is None, `why` has the reason."""
    y = np.asarray(rounds, float)
    if len(y) != ROUNDS or not np.isfinite(y).all() or y.mean() <= 0:
        return untested("the rule needs five rounds with I/O", limits) | {"rounds": y.tolist()}
    x = np.arange(1, ROUNDS + 1)
    average, spread = float(y.mean()), float(y.max() - y.min())
    dx, dy = x - x.mean(), y - average
    m = float((dx * dy).sum() / (dx * dx).sum())
    r = float((dx * dy).sum() / math.sqrt((dx * dx).sum() * (dy * dy).sum())) if spread else None
    range_percent, slope_percent = 100 * spread / average, 100 * abs(m) * (ROUNDS - 1) / average
    flat = limits.slope_percent is None or round(slope_percent, DIGITS) <= limits.slope_percent
    return {
        "rule": limits.rule,
        "passed": round(range_percent, DIGITS) <= limits.range_percent and flat,
        "why": None,
        "average": average,
        "range_percent": range_percent,
        "slope_percent": slope_percent,
        "m": m,
        "b": average - m * float(x.mean()),
        "r": r,
        "rounds": y.tolist(),
        **_limits(limits),
        **RESTS_ON,
    }


def _limits(limits: Limits) -> dict:
    return {"range_limit_percent": limits.range_percent, "slope_limit_percent": limits.slope_percent}


def untested(why: str, limits: Limits = PTS) -> dict:
    """The verdict where the rule was not tested."""
    nothing = dict.fromkeys(("average", "range_percent", "slope_percent", "m", "b", "r"))
    return {"rule": limits.rule, "passed": None, "why": why, **nothing, "rounds": [], **_limits(limits), **RESTS_ON}


def heading(verdicts: Iterable[Mapping]) -> str:
    """What these verdicts come to, not all of which passed: one that failed shows that there is no steady state; one
    that was not tested, or rests on what does not show the drive, shows nothing."""
    return NOT_ACHIEVED if any(verdict["passed"] is False for verdict in verdicts) else NOT_KNOWN


def why_unknown(verdict: Mapping) -> str:
    """Why a verdict is neither: its rule was not tested, or nothing is claimed."""
    why = str(verdict["why"])
    return why if why.startswith(NOT_CLAIMED) else f"not tested: {why}"


def not_claimed(verdict: dict, why: str | None) -> dict:
    """A verdict on rounds that do not show what the drive does, such as of a busy host: it is not called steady. `why`:
    None where they show it."""
    return verdict | {"passed": None, "why": f"{NOT_CLAIMED}, {why}"} if why and verdict["passed"] else verdict


def limits_of(verdict: dict) -> Limits:
    """The limits of a verdict; the PTS's for an older run without recorded limits."""
    if verdict.get("range_limit_percent") is None:
        return PTS
    return Limits(verdict["rule"], verdict["range_limit_percent"], verdict["slope_limit_percent"])


def words(verdict: dict) -> str:
    """How far the rule is: "range 12 % of 20 %, slope 3 % of 10 %"; "" where it was not tested."""
    if verdict["range_percent"] is None:
        return ""
    spread, slope, limits = verdict["range_percent"], verdict["slope_percent"], limits_of(verdict)
    ranges = f"range {spread:.0f} % of {limits.range_percent:g} %"
    return ranges + (f", slope {slope:.0f} % of {limits.slope_percent:g} %" if limits.slope_percent else "")


def rests_on(verdict: dict) -> str:
    """ "at 1.4 drive writes since the purge, past the cliff (by raw NAND), 1.31 × the spare area written
    since"; "" if they were not counted. Soon after the cliff also what the verdict cannot exclude."""
    made = verdict.get("drive_writes")
    if made is None:
        return ""
    past = ""
    if verdict.get("past_spare") is not None:
        past = (
            f", past the cliff {cliff_words(verdict)[4:]}"
            if verdict["past_spare"]
            else ", perhaps NOT YET PAST THE CLIFF"
        )
    since = verdict.get("spare_areas_since")
    if verdict.get("passed") and since is not None and since < DIP_SPARE_AREAS:
        past += " (a dip that lasts longer, with a higher level after it, is not excluded)"
    return f"at {_times(made)} drive writes since the purge{past}"


def _times(count: float) -> str:
    """A multiple with three digits, or all of a larger one."""
    return f"{count:.{2 if count < 9.995 else 1 if count < 99.95 else 0}f}"


def cliff_words(verdict: dict) -> str:
    """ "yes (by raw NAND), 0.31 × the spare area written since", "perhaps not"; "" where it was not looked at."""
    if verdict.get("past_spare") is None:
        return ""
    by = {"raw": "by raw NAND", "cliff": "seen", "written": "by drive writes"}.get(str(verdict.get("past_spare_by")))
    since = verdict.get("spare_areas_since")
    ago = "" if since is None else f", {_times(since)} × the spare area written since"
    return f"yes ({by}){ago}" if verdict["past_spare"] else "perhaps not"


def excess(verdict: dict) -> float:
    """How far a verdict is from passing, as a share of the limits: at most 1 passes; 0 where nothing was tested."""
    if verdict["range_percent"] is None:
        return 0.0
    limits = limits_of(verdict)
    slope = verdict["slope_percent"] / limits.slope_percent if limits.slope_percent else 0.0
    return max(verdict["range_percent"] / limits.range_percent, slope)


def records(counts: "Sequence[float] | np.ndarray", record_s: float, spaced_s: float | None = None) -> list[float]:
    """The mean of each complete record: `record_s` of the counts (one a second), a record every `spaced_s`."""
    length, spaced = max(1, round(record_s)), max(1, round(spaced_s or record_s))
    return [float(sum(counts[begin : begin + length])) / length for begin in range(0, len(counts) - length + 1, spaced)]


def of_seconds(counts, least_s: float = ROUNDS * SHORTEST_ROUND_S) -> dict:
    """The verdict on a window of per-second counts (n,), cut into five rounds of n / 5 s each, and `round_s`. A second
    that two rounds share is divided between them. Not tested in a window of less than `least_s`."""
    n = len(counts)
    if n < least_s:
        return untested(
            f"the window has {n} s, and five rounds of at least {SHORTEST_ROUND_S} s need {ROUNDS * SHORTEST_ROUND_S} s"
        ) | {"round_s": None}
    done = np.concatenate([[0.0], np.cumsum(np.asarray(counts, float))])
    edges = np.linspace(0, n, ROUNDS + 1)
    return verdict(np.diff(np.interp(edges, np.arange(n + 1), done)) * ROUNDS / n) | {"round_s": n / ROUNDS}
