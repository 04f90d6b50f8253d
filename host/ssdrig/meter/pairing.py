"""Whether a rig feeds the drive that a load runs on: bursts and rests in a random pattern must show on the rail.

The pattern is drawn at random, so a rail that knows nothing of it is as likely to look like any other pattern of as
many bursts. The p-value counts those patterns: the share of them that the rail fits as well or better, by the ranks of
its slots. It holds whatever else the other drive does. A rail has several chances to fit: ALPHA covers all of them.

Only slots count in which the load did its requested work: a slot for a burst that moved few bytes, a rest in which
something was still under way, and a slot without samples are left out. On a busy host that leaves too few, so the slots
are also ranked by the requested pattern alone, which holds whatever the load did, and shows less; all tries count for
that together.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ssdrig.base.deferred import Deferred
from ssdrig.base.words import digits, size

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")  # the table of a dry run does without

SLOTS, SLOT_S = 24, 0.2  # half of them bursts: 2 704 156 patterns
LOOKS = 2  # a signature that does not show is tried once more
TRIES = 4  # of LOOKS: one with too few valid slots, on a busy host, does not count
ALPHA = 1e-4  # a rig that feeds another drive is taken for this one's, in all looks at all of its rails
SPENT = (1 / 4, 1 / 8, 1 / 8)  # shares of ALPHA that a rail's chances have: each of LOOKS, and both together
SPENT_ASKED = 1 / 8  # the same of the slots as they were asked for, after each of TRIES
LEAST_SLOTS = 7  # of bursts, and of rests, that count
MUCH, LITTLE = 0.25, 0.1  # of the median burst: a slot that moved more was a burst, one that moved less was a rest
LEAST_BURST_BYTES = 2 << 20  # of the usual burst: of fewer I/Os the energy comes in other slots than the bytes
SETTLE = 0.2  # of each slot, in which the drive's power follows the load
LEAST_SAMPLES = 5  # in a slot
EXPANDED = 2
# A drive that answers reads of blocks that it does not hold needs the least: 20 pJ/B and more for its controller and
# link. Programs of NAND take a hundred times that.
READ_J_PER_B, WRITE_J_PER_B = 1e-11, 2e-10
EVENT = "pairing"  # of the journal
NOT_BY_RIG = (EVENT, "host")  # events whose power no rig has measured, or that are the evidence
MEASURED = ("_W", "_J", "_A", "_uV")  # how the keys of an event end that a rig has measured
OF_QUIET = ("floor_W", "band_W", "energy_J", "above_J", "after_s")  # of a rest's end, which the power shows
PAIRED, NOT_PAIRED, UNKNOWN = "paired", "not_paired", "unknown"


class Look(NamedTuple):
    """One signature against one rail. `bursts`, `rests`: slots that count; `p`, `correlation` (-1 to 1): of the ranks
    of their power; `step_W`: the median burst above the median rest; `bound_W`: what the rig's noise may make of it;
    `rate_Bps`: of the bursts. None where too few slots count. `p_asked`: of all slots with samples, whatever the load
    did in them; 1 without a step, None where they are too few. `decides`: a signature of this drive would have been
    seen, and if not, `why`; `noisy`: unless the rail's other loads hide it."""

    p: float | None
    correlation: float | None
    step_W: float | None
    bound_W: float | None
    bursts: int
    rests: int
    rate_Bps: float
    decides: bool = True
    noisy: bool = False
    why: str = ""
    p_asked: float | None = None

    @property
    def steps(self) -> bool:
        """Whether the power of the bursts is higher by more than the rig's noise."""
        return self.step_W is not None and self.bound_W is not None and self.step_W > self.bound_W


class Rail(NamedTuple):
    """One rail in each slot: mean power (NaN: not known), its standard error, and the sensor's last digit in W."""

    mean_W: "np.ndarray"
    error_W: "np.ndarray"
    digit_W: float


def pattern(source: random.Random) -> tuple[bool, ...]:
    """Bursts and rests, each half of SLOTS, in random order."""
    slots = [True] * (SLOTS // 2) + [False] * (SLOTS - SLOTS // 2)
    source.shuffle(slots)
    return tuple(slots)


def slots_of(t_ns: "np.ndarray", watts: "np.ndarray", edges_ns: "np.ndarray", digit_W: float) -> Rail:
    """What a rail's samples (host time, power) come to in the slots between these edges."""
    n = len(edges_ns) - 1
    mean_W, error_W = np.full(n, math.nan), np.full(n, math.nan)
    for slot in range(n):
        begin_ns = edges_ns[slot] + SETTLE * (edges_ns[slot + 1] - edges_ns[slot])
        first, last = np.searchsorted(t_ns, (begin_ns, edges_ns[slot + 1]))
        if last - first >= LEAST_SAMPLES:
            part = watts[first:last]
            mean_W[slot], error_W[slot] = part.mean(), part.std() / math.sqrt(last - first)
    return Rail(mean_W, error_W, digit_W)


def together(rails: Sequence[Rail]) -> Rail:
    """The sum of several rails."""
    error_W = np.sqrt(sum(rail.error_W**2 for rail in rails))
    return Rail(np.asarray(sum(rail.mean_W for rail in rails)), error_W, math.hypot(*(rail.digit_W for rail in rails)))


def look(asked: Sequence[bool], done_bytes: Sequence[int], slot_s: float, rail: Rail, write: bool = False) -> Look:
    """The signature against a rail. `done_bytes`: what the load moved in each slot, `write`: whether it wrote."""
    wanted, done = np.array(asked, bool), np.array(done_bytes, float)
    usual = float(np.median(done[wanted])) if wanted.any() else 0.0
    known = np.isfinite(rail.mean_W)
    burst = wanted & known & (done > MUCH * usual)
    rest = ~wanted & known & (done < LITTLE * usual)
    counts, rate_Bps = (int(burst.sum()), int(rest.sum())), usual / slot_s
    p_asked = _asked(rail, wanted & known, ~wanted & known)
    if min(counts) < LEAST_SLOTS:
        why = f"{counts[0]} bursts and {counts[1]} rests count of {len(done)} slots, it takes {LEAST_SLOTS} of each"
        return Look(None, None, None, None, *counts, rate_Bps, decides=False, why=why, p_asked=p_asked)
    high, low = rail.mean_W[burst], rail.mean_W[rest]
    step_W, bound_W = _step_W(rail, burst, rest)
    scatter_W = EXPANDED * math.hypot(*(_error_of_median_W(part) for part in (high, low)))
    least_W = (WRITE_J_PER_B if write else READ_J_PER_B) * rate_Bps
    figures = (*_ranked(high, low), step_W, bound_W, *counts, rate_Bps)
    if usual < LEAST_BURST_BYTES:
        why = f"bursts of {size(rate_Bps)}/s are too thin to show: the drive is slow, or this host busy"
        return Look(*figures, decides=False, why=why, p_asked=p_asked)
    if least_W <= EXPANDED * rail.digit_W:
        why = f"bursts of {size(rate_Bps)}/s may draw less than the rig resolves, {digits(1e3 * rail.digit_W, 2)} mW"
        return Look(*figures, decides=False, why=why, p_asked=p_asked)
    return Look(*figures, noisy=max(scatter_W, bound_W) > least_W, p_asked=p_asked)


def _step_W(rail: Rail, burst: "np.ndarray", rest: "np.ndarray") -> tuple[float, float]:
    """(median burst above the median rest, what the rig's noise may make of it)."""
    noise_W = float(np.sqrt((rail.error_W[rest] ** 2).mean() / rest.sum()))
    step_W = float(np.median(rail.mean_W[burst]) - np.median(rail.mean_W[rest]))
    return step_W, EXPANDED * math.hypot(noise_W, rail.digit_W / math.sqrt(12))


def _asked(rail: Rail, burst: "np.ndarray", rest: "np.ndarray") -> float | None:
    if min(burst.sum(), rest.sum()) < LEAST_SLOTS:
        return None
    step_W, bound_W = _step_W(rail, burst, rest)
    return _ranked(rail.mean_W[burst], rail.mean_W[rest])[0] if step_W > bound_W else 1.0


def combined(p: Sequence[float]) -> float:
    """The p-value of two independent looks together (Fisher)."""
    if len(p) == 1:
        return p[0]
    product = math.prod(max(value, 1e-300) for value in p)
    terms = [1.0]
    for k in range(1, len(p)):
        terms.append(terms[-1] * -math.log(product) / k)
    return min(1.0, product * sum(terms))


def fits(looks: Sequence[Look], limit: float) -> bool:
    """Whether one rail shows the signature by its tries, by chance with at most `limit`, whatever chances it had."""
    counted = [item for item in looks if item.p is not None][:LOOKS]
    if _passes([test.p if test.steps else None for test in counted], limit):
        return True
    asked = [1.0 if test.p_asked is None else test.p_asked for test in looks[:TRIES]]
    return any(combined(asked[:n]) <= limit * SPENT_ASKED for n in range(1, len(asked) + 1))


def could_fit(looks: Sequence[Look], limit: float) -> bool:
    """Whether these looks had slots enough that a perfect fit would have counted."""
    return _passes([test.p and 1 / math.comb(test.bursts + test.rests, test.bursts) for test in looks], limit)


def _passes(p: Sequence[float | None], limit: float) -> bool:
    known = [chance for chance in p if chance is not None]
    chances = [*p[:LOOKS], *[None] * (LOOKS - len(p)), combined(known) if len(known) > 1 else None]
    return any(chance is not None and chance <= limit * share for chance, share in zip(chances, SPENT, strict=True))


def few(looks: Sequence[Look]) -> bool:
    """Whether too few slots of a try count, at each rail."""
    return all(test.p is None for test in looks)


def verdict(looks: Sequence[Sequence[Look]], busy: bool = False) -> tuple[str, str]:
    """(PAIRED, NOT_PAIRED or UNKNOWN, why) by the tries at each rail: looks[i][rail]. One rail that shows the signature
    is enough. `busy`: the drive may be at work on its own, so a rail with a load is not evidence against it."""
    rails = len(looks[-1])
    if any(fits(of_rail, ALPHA / rails) for of_rail in zip(*looks, strict=True)):
        return PAIRED, ""
    if few(looks[-1]):
        return UNKNOWN, looks[-1][0].why
    of_rails = [*zip(*[test for test in looks if not few(test)], strict=True)]
    last = [test for test in looks[-1] if test.decides]
    if not last:
        return UNKNOWN, looks[-1][0].why
    if not all(could_fit(of_rail, ALPHA / rails) for of_rail in of_rails):
        counts = "; ".join(f"{test.bursts} and {test.rests}" for test in last)
        return UNKNOWN, f"too few bursts and rests count to tell a signature from chance ({counts})"
    if busy and all(test.noisy for test in last):
        return UNKNOWN, "background work of the drive may hide the bursts"
    best = max(last, key=lambda item: item.correlation or -1.0)
    chance = f"correlation {best.correlation:.2f}, p {digits(best.p, 2)}, step {digits(1e3 * (best.step_W or 0), 3)} mW"
    return (NOT_PAIRED, f"bursts of {size(best.rate_Bps)}/s on the drive do not show on the rig's rails ({chance})")


def unpaired(events: Iterable[Mapping], so_far: bool = False) -> str:
    """Why what a run's rig measured is not taken for the drive's, "" where it is: the rig was seen to feed it, or the
    run did not look.

    so_far: more events may follow, so a postponed verdict is still open."""
    last: Mapping = {"verdict": PAIRED}
    for event in events:
        if event["kind"] == EVENT:
            if event.get("verdict") == NOT_PAIRED:
                return f"the rig feeds another drive: {event.get('why')}"
            if not (so_far and event.get("late")):
                last = event
    return "" if last.get("verdict") == PAIRED else f"not known whether the rig feeds this drive: {last.get('why')}"


def believed(events: Iterable[dict]) -> list[dict]:
    """All events of a part of a run; where its rig was not seen to feed the drive, without what that rig measured."""
    events = list(events)
    why = unpaired(events)
    return [without_power(event, why) for event in events] if why else events


def without_power(event: dict, why: str) -> dict:
    """An event whose figures of the rig are null, with the reason `why`. The pairing's own stay: they are the evidence.
    No rig has measured the host's.

    event: of the journal, which is not changed."""
    if event["kind"] in NOT_BY_RIG or event["kind"].startswith("rig."):
        return event
    if event["kind"] == "quiet":
        return {**event, **dict.fromkeys(OF_QUIET), "reached": False, "why": why}
    reduced = _nulled(event)
    if isinstance(event.get("fall"), Mapping):
        reduced |= {"fall": None, "fall_why": why}
    return event if reduced == event else reduced | {"power_why": why}


def _nulled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: None if str(key).endswith(MEASURED) else _nulled(item) for key, item in value.items()}
    return [_nulled(item) for item in value] if isinstance(value, list) else value


def _error_of_median_W(values: "np.ndarray") -> float:
    """Standard error, by the spread of the middle half: one slot in which the host stalled changes it little."""
    first, third = np.quantile(values, (0.25, 0.75))
    return float(third - first) / 1.35 * 1.2533 / math.sqrt(len(values))


def _ranked(high: "np.ndarray", low: "np.ndarray") -> tuple[float, float]:
    """(p, correlation) of the ranks, exact over all patterns of as many bursts."""
    values = np.concatenate([high, low])
    _, inverse, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    ranks = (ends - (count - 1) / 2)[inverse]
    n, m = len(high), len(low)
    seen = float(ranks[:n].sum())
    correlation = 2 * (seen - n * (n + 1) / 2) / (n * m) - 1
    return _chance(np.round(2 * ranks).astype(np.int64), n, round(2 * seen)), correlation


def _chance(ranks: "np.ndarray", n: int, least: int) -> float:
    """The share of all choices of n of these ranks (whole numbers) whose sum is `least` or more."""
    counts = np.zeros((n + 1, int(ranks.sum()) + 1))  # of the choices of n, by their sum
    counts[0, 0] = 1.0
    for rank in ranks.tolist():
        counts[1:, rank:] += counts[:-1, : counts.shape[1] - rank].copy()
    return float(counts[n, least:].sum() / counts[n].sum())
