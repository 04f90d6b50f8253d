"""Rig ticks to host time, with a bound on the error.

A ping leaves the host at t1, is stamped by the rig at tick c, and its answer is read by the host at t4. So whatever the
delays were, host time T(c) of that tick is between t1 and t4. The rig also reports for how long it held the ping:
its first byte arrived after t1 and the answer left before t4, so only the delays of cable and operating system remain
unknown. In a window of WINDOW_S the map is a line up to the drift of the crystal; all lines that pass every interval
[t1, t4] form a convex region, bounded by the lower hull of the points (c, t4) and the upper hull of (c, t1). The
estimate is the middle of what that region allows at a tick, the bound is half of its width: a proof, not a statistic,
if the delays are not negative and the rate is as steady as stated.
(Two-sided envelope; the hull formulation is that of Moon, Skelly and Towsley, "Estimation and removal of clock skew
from network delay measurements", INFOCOM 1999, for one direction.)

Allowances, all part of the bound: inside a window the rate stays within STEADY_PPM of a constant; over longer times
without pings it changes by no more than DRIFT_PPM; it is never further than NOMINAL_PPM from nominal; ticks are floored
to whole microseconds. A window in which no line passes is not hidden: pings that contradict all others are dropped and
counted (`outliers`), and if it still has no line its allowance grows until it has one (`strained`).

A busy host answers for a minute in seconds instead of microseconds; a crystal drifts by ppm. So the windows with quick
round trips bound the seconds without any, from both sides in time. With |rate'| <= A (WARMING_PPM_PER_MIN; 3 ppm a
minute are 6 degrees a minute on a crystal of 0.5 ppm per degree) and steps of the rate within +-STEADY_PPM, the offset
f at t obeys, for a < t < b and for a < b < t,

    between:  f(t) <= chord of (a, high(a)), (b, high(b)) + A (t - a)(b - t) / 2 + 2 STEADY (t - a)(b - t) / (b - a)
    beyond:   f(t) <= high(b) + (t - b) (high(b) - low(a)) / (b - a) + A (t - b)(t - a) / 2 + 2 STEADY (t - b)

and so from below, and backwards. A window is trusted as a source if three of its pings are nearly as quick as it is
narrow: a single ping may be wrong. A ping that contradicts the trusted ones is dropped (`outliers`). Where trusted
windows contradict each other the host's clock was set or slewed, or the crystal left its band: within REACH_S of that
nothing is bridged, and each window counts for itself alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ssdrig.meter import fits

WINDOW_S = 60
STEADY_PPM = 0.2
DRIFT_PPM = 2.0
NOMINAL_PPM = 1000.0
WARMING_PPM_PER_MIN = 3.0
REACH_S = 600
APART = sorted({int(1.25**n) for n in range(29)})  # knots: up to 516, each at most a quarter further than the last
CONFIRMING, NEARLY = 3, 3.0  # pings at most NEARLY times as wide as their window is narrow make it trusted
UNEVEN = 3.0  # of the widest knot to the narrowest: below it there is nothing to bridge
EDGE_S = 20  # before the first ping and after the last that other knots may bound
KNOT_US = 1_000_000
TICK_NS = 1000  # a tick covers any time within its microsecond
BEYOND_US = 3600 * KNOT_US  # how far the map reaches outside the pings
ROUGHLY_US = 60 * 1_000_000
# a ping is contradicted if the others' line misses it by more than this and 3 typical half round trips
OUTLIER_NS = 100_000
_BEND = WARMING_PPM_PER_MIN * 1e-3 / 60e6  # ns per us, per us
Limits = tuple[np.ndarray, np.ndarray, np.ndarray]  # of each knot: lowest and highest offset, whether they are at odds
_STEEPEST, _TRUE = np.array([-NOMINAL_PPM * 1e-3, NOMINAL_PPM * 1e-3]), np.ones(1, bool)


def late_ns(hello: dict | None) -> int:
    """By how much the times of a meter with this hello may be off, as it states itself: of our board, by how much a
    stamp may miss the end of its conversion. Of one that states nothing, what its interrupts may take
    (host/docs/develop/decisions/stamp-by-age.md)."""
    if hello and type(of_meter := hello.get("stamp_ns")) is int:
        return of_meter
    others = max(1, len(hello["rails"])) - 1 if hello else 0
    return 1000 * fits.delay_us(1, others)


@dataclass(frozen=True)
class ClockMap:
    """Piecewise linear map of one boot: at tick_us[k] + base_us host time is base_ns + tick_us[k] * 1000 +
    offset_ns[k], off by at most bound_ns[k]. Offsets are small numbers, so that float64 holds them to far less than a
    nanosecond."""

    base_us: int
    base_ns: int
    tick_us: np.ndarray  # float64 (knots,), rising, relative to base_us
    offset_ns: np.ndarray  # float64 (knots,)
    knot_bound_ns: np.ndarray  # float64 (knots,)
    pings: int
    outliers: int
    strained: int

    def t_ns(self, ticks_us) -> np.ndarray:
        """Host time (CLOCK_MONOTONIC, int64 ns) of ticks (int64 us of this boot)."""
        since_us = np.asarray(ticks_us, np.int64) - self.base_us
        offset = np.rint(np.interp(since_us, self.tick_us, self.offset_ns))
        t_ns = since_us * 1000
        t_ns += offset.astype(np.int64)
        t_ns += self.base_ns
        return t_ns

    def bound_ns(self, ticks_us) -> np.ndarray:
        """Largest possible error of t_ns(ticks), float64 ns."""
        return np.interp(np.asarray(ticks_us, np.int64) - self.base_us, self.tick_us, self.knot_bound_ns)

    def rate_ppm(self) -> float:
        """How much faster than nominal the rig's clock runs, over most of the pings."""
        a, z = self._apart()
        return -1e3 * float(self.offset_ns[z] - self.offset_ns[a]) / float(self.tick_us[z] - self.tick_us[a] or 1)

    def rate_error_ppm(self) -> float:
        """Largest possible error of rate_ppm()."""
        a, z = self._apart()
        open_ns = float(self.knot_bound_ns[a] + self.knot_bound_ns[z])
        return min(NOMINAL_PPM, 1e3 * open_ns / float(self.tick_us[z] - self.tick_us[a])) if z > a else NOMINAL_PPM

    def _apart(self) -> tuple[int, int]:
        """The knots of the first and of the last third that are known best."""
        bound_ns = self.knot_bound_ns[1:-1]
        third = -(-len(bound_ns) // 3)
        return 1 + int(np.argmin(bound_ns[:third])), 1 + len(bound_ns) - third + int(np.argmin(bound_ns[-third:]))


def claimed(claims: Sequence[tuple[int, int, int]]) -> ClockMap:
    """The map of a recording: at each tick (us) its host time and bound (ns), as its clock claims them; a line in
    between, and beyond them as far off as at the nearest, and by DRIFT_PPM more."""
    ticks, host_ns, bounds = (np.array(column, np.int64) for column in zip(*sorted(claims), strict=True))
    base_us, base_ns = int(ticks[0]), int(host_ns[0])
    knots = (ticks - base_us).astype(float)
    offset = (host_ns - base_ns - (ticks - base_us) * TICK_NS).astype(float)
    bound = bounds + TICK_NS / 2
    slope = (offset[-1] - offset[0]) / (knots[-1] - knots[0]) if len(knots) > 1 and knots[-1] > knots[0] else 0.0
    beyond = np.array([-BEYOND_US, BEYOND_US], float)
    knots = np.concatenate([[knots[0] + beyond[0]], knots, [knots[-1] + beyond[1]]])
    offset = np.concatenate([[offset[0] + slope * beyond[0]], offset, [offset[-1] + slope * beyond[1]]])
    further = DRIFT_PPM * 1e-3 * BEYOND_US
    bound = np.concatenate([[bound[0] + further], bound, [bound[-1] + further]])
    return ClockMap(base_us, base_ns, knots, offset, bound, 0, 0, 0)


def fit(t1_ns, tick_us, t4_ns, held_us=None) -> ClockMap:
    """The map of one boot from its pings, int64 arrays of equal length >= 1: ping sent, rig's stamp, answer read, and
    for how long the rig held it, half of it before its stamp (rounded down) and half after (None: not known, 0).

    Raises ValueError without pings. Pings with t4 < t1, or held for longer than that, are counted as outliers."""
    t1_ns, tick_us, t4_ns = (np.asarray(a, np.int64) for a in (t1_ns, tick_us, t4_ns))
    held_us = np.zeros(len(t1_ns), np.int64) if held_us is None else np.asarray(held_us, np.int64)
    sane = (t4_ns >= t1_ns) & ((held_us - 1) * TICK_NS * (1 - NOMINAL_PPM * 1e-6) <= t4_ns - t1_ns)
    if sane.any():  # and ticks that advance like time, roughly: nonsense must not stretch the map over centuries
        apart_us = tick_us - t1_ns // 1000
        usual = np.flatnonzero(sane)[np.argsort(apart_us[sane], kind="stable")[np.count_nonzero(sane) // 2]]
        off_us, since_us = np.abs(apart_us - apart_us[usual]), np.abs(t1_ns - t1_ns[usual]) // 1000
        sane &= off_us <= ROUGHLY_US + since_us * NOMINAL_PPM * 1e-6
    if not sane.any():
        raise ValueError("a clock needs at least one ping whose answer came after it was sent")
    order = np.argsort(tick_us[sane], kind="stable")
    base_us, base_ns = int(tick_us[sane][order[0]]), int(t1_ns[sane][order[0]])
    x = tick_us[sane][order] - base_us
    before_us = held_us[sane][order] >> 1
    after_us = held_us[sane][order] - before_us
    # both ends of the holding are taken as of the stamp between them: the offset may change meanwhile by NOMINAL_PPM at
    # most
    low = (t1_ns[sane][order] - base_ns - (x - before_us) * 1000).astype(float) - before_us * NOMINAL_PPM * 1e-3
    low -= TICK_NS  # the event may lie a tick after its stamp
    high = (t4_ns[sane][order] - base_ns - (x + after_us) * 1000).astype(float) + after_us * NOMINAL_PPM * 1e-3
    x = x.astype(float)
    knots = np.arange(0.0, x[-1] + KNOT_US, KNOT_US)
    knots[-1] = max(x[-1], 1.0)
    beyond = np.arange(1.0, EDGE_S + 1) * 1e6
    knots = np.concatenate([-beyond[::-1], knots, knots[-1] + beyond])
    windows, lying = _windows(knots, x, low, high), np.zeros(len(x), bool)
    others = -np.inf, np.inf
    if len(x) > 2 * CONFIRMING and _uneven(windows.all):
        halves = [
            _windows(knots, x[half], low[half], high[half]).trusted for half in (slice(0, None, 2), slice(1, None, 2))
        ]
        trusted = _either(*halves)
        lying = _lying(knots, trusted, x, low, high)
        if lying.any():
            windows = _windows(knots, x[~lying], low[~lying], high[~lying])
        others = _bridged(knots, windows.all.limits(), trusted)
    strained = windows.strained
    knots, mid, half = windows.all.result(knots, *others)
    ends = []
    for region, knot, at in ((windows.first, 0, knots[0] - BEYOND_US), (windows.last, -1, knots[-1] + BEYOND_US)):
        lo, hi = region.range_at(np.array([at]))
        ends.append((at, (lo[0] + hi[0]) / 2, (hi[0] - lo[0]) / 2 + half[knot] + DRIFT_PPM * 1e-3 * BEYOND_US))
    knots, mid, half = (np.concatenate([[ends[0][i]], a, [ends[1][i]]]) for i, a in enumerate((knots, mid, half)))
    outliers = int(windows.dropped + np.count_nonzero(lying) + np.count_nonzero(~sane))
    return ClockMap(base_us, base_ns, knots, mid + TICK_NS / 2, half + TICK_NS / 2, len(sane), outliers, strained)


class _Windows(NamedTuple):
    """What all windows of a boot allow together, and what those that are trusted do; the first and the last region;
    pings dropped in them, windows without a line."""

    all: "_Envelope"
    trusted: "_Envelope"
    first: "_Region"
    last: "_Region"
    dropped: int
    strained: int


def _windows(knots: np.ndarray, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> _Windows:
    block = np.floor(x / (WINDOW_S * 0.5e6))  # windows are made of whole ones
    for_high, for_low = _may_turn(x, high, block), _may_turn(x, -low, block)
    every, trusted = _Envelope(len(knots)), _Envelope(len(knots))
    dropped, regions = np.zeros(len(x), bool), []
    length, hop = WINDOW_S * 1e6, WINDOW_S * 0.5e6
    starts = np.arange(0.0, max(x[-1] - length, 0.0) + hop, hop)
    for n, start in enumerate(starts):
        rows = slice(*np.searchsorted(x, (start, start + length), side="left"))
        if n == len(starts) - 1:
            rows = slice(rows.start, len(x))
        if rows.stop == rows.start:
            continue
        region = _region(x[rows], low[rows], high[rows], for_low[rows], for_high[rows])
        dropped[rows] |= ~region.keep
        regions.append(region)
        begin, end = np.searchsorted(knots, (x[rows][0] - KNOT_US, x[rows][-1] + KNOT_US)).tolist()
        span = slice(max(begin, EDGE_S), min(end, len(knots) - EDGE_S))
        lowest, highest = region.range_at(knots[span])
        every.add(span, lowest, highest)
        width = (highest - lowest).min(initial=np.inf)
        confirming = np.count_nonzero((high[rows] - low[rows])[region.keep] <= NEARLY * width)
        if confirming >= CONFIRMING and not region.strained:
            trusted.add(span, lowest, highest)
    strained = sum(region.strained for region in regions)
    return _Windows(every, trusted, regions[0], regions[-1], int(np.count_nonzero(dropped)), strained)


def _uneven(every: "_Envelope") -> bool:
    """Whether some knots are known much worse than others, so that these may improve them."""
    low, high, odd = every.limits()
    width = (high - low)[np.isfinite(low)]
    return bool(odd.any() or width.max() > UNEVEN * width.min())


def _either(one: "_Envelope", other: "_Envelope") -> Limits:
    """What the windows of every second ping allow or those of the pings between them: a single wrong ping is in one of
    them only. Where one contradicts itself, the other's."""
    (low_1, high_1, odd_1), (low_2, high_2, odd_2) = one.limits(), other.limits()
    low = np.where(odd_1, low_2, np.where(odd_2, low_1, np.minimum(low_1, low_2)))
    high = np.where(odd_1, high_2, np.where(odd_2, high_1, np.maximum(high_1, high_2)))
    return low, high, odd_1 & odd_2


def _lying(knots: np.ndarray, trusted: Limits, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Which pings contradict what the trusted windows leave open (bool)."""
    least, most = _bridged(knots, trusted)
    known = np.isfinite(least) & np.isfinite(most)
    if not known.any():
        return np.zeros(len(x), bool)
    at = np.clip(np.searchsorted(knots, x), 1, len(knots) - 1)
    beside = known[at - 1] & known[at]
    off_ns = np.maximum(low - np.interp(x, knots[known], most[known]), np.interp(x, knots[known], least[known]) - high)
    return beside & (off_ns > TICK_NS)


def _bridged(knots: np.ndarray, *sources: Limits) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest offset at each knot by what the first of the sources, whose knots do not contradict each other
    near there, allows at the other knots; infinite where nothing follows."""
    least, most = np.full(len(knots), -np.inf), np.full(len(knots), np.inf)
    left = np.ones(len(knots), bool)
    for low, high, odd in sources:
        below, above = _from_others(knots, np.where(odd, -np.inf, low), np.where(odd, np.inf, high))
        free = left & ~_near(odd | (below > high) | (above < low) | (below > above), round(REACH_S * 1e6 / KNOT_US))
        least[free], most[free] = below[free], above[free]
        left &= ~free
    return least, most


def _near(odd: np.ndarray, reach: int) -> np.ndarray:
    """Which knots (bool) are at most `reach` from an odd one."""
    before = np.append(0, np.cumsum(odd))
    at = np.arange(len(odd))
    return before[np.minimum(at + reach + 1, len(odd))] > before[np.maximum(at - reach, 0)]


def _from_others(knots: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What low and high (infinite where not known) at all knots allow at each: see the head of this module."""
    back = slice(None, None, -1)

    def above(low: np.ndarray, high: np.ndarray) -> np.ndarray:
        later = _beyond(-knots[back], low[back], high[back])[back]
        return np.minimum(_between(knots, high), np.minimum(_beyond(knots, low, high), later))

    return -above(-high, -low), above(low, high)


def _between(knots: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The lowest chord over each knot: f + A t^2 / 2 is convex, so it is below the lower hull of its limits."""
    known = np.flatnonzero(np.isfinite(high))
    if len(known) < 2:
        return high.copy()
    parabola = _BEND / 2 * (knots - knots[known[0]]) ** 2
    corners_x, corners_y = _lower_hull(knots[known], high[known] + parabola[known])
    at = np.clip(np.searchsorted(corners_x, knots, "right"), 1, len(corners_x) - 1)
    since, left = knots - corners_x[at - 1], corners_x[at] - knots
    wander = 2 * STEADY_PPM * 1e-3 * since * left / (since + left)
    out = np.interp(knots, corners_x, corners_y) - parabola + wander
    return np.where((since >= 0) & (left >= 0), out, np.inf)


def _beyond(knots: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The highest offset at each knot by two earlier ones."""
    apart = [lag for lag in APART if lag < len(knots)]
    slope, out = np.full(len(knots), NOMINAL_PPM * 1e-3), np.full(len(knots), np.inf)
    for lag in apart:
        dx = knots[lag:] - knots[:-lag]
        slope[lag:] = np.minimum(slope[lag:], (high[lag:] - low[:-lag]) / dx + _BEND / 2 * dx)
    for gap in apart:
        dx = knots[gap:] - knots[:-gap]
        reached = high[:-gap] + dx * (slope[:-gap] + 2 * STEADY_PPM * 1e-3 + _BEND / 2 * dx)
        out[gap:] = np.minimum(out[gap:], reached)
    return out


class _Envelope:
    """What all windows together allow at each knot."""

    def __init__(self, knots: int):
        self.low, self.high = np.full(knots, -np.inf), np.full(knots, np.inf)  # what every window allows
        self.lowest, self.highest = np.full(knots, np.inf), np.full(knots, -np.inf)  # what any window allows

    def add(self, span: slice, low: np.ndarray, high: np.ndarray) -> None:
        np.maximum(self.low[span], low, out=self.low[span])
        np.minimum(self.high[span], high, out=self.high[span])
        np.minimum(self.lowest[span], low, out=self.lowest[span])
        np.maximum(self.highest[span], high, out=self.highest[span])

    def at_odds(self) -> np.ndarray:
        """Knots (bool) at which windows contradict each other."""
        return self.low > self.high

    def allowed(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest offset at each knot; where windows contradict each other all that any of them allows."""
        odd = self.at_odds()
        return np.where(odd, self.lowest, self.low), np.where(odd, self.highest, self.high)

    def limits(self) -> Limits:
        return *self.allowed(), self.at_odds()

    def result(self, knots: np.ndarray, least=-np.inf, most=np.inf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Knots that a window covers, middle and half width there; between knots far apart one more, with DRIFT_PPM.
        least, most: what other knots allow there."""
        low, high = self.allowed()
        seen = np.isfinite(low)
        covered = np.flatnonzero(seen)
        outside = np.ones(len(knots), bool)
        outside[covered[0] : covered[-1]] = False
        seen |= outside & np.isfinite(most) & np.isfinite(least)
        empty = np.maximum(low, least) > np.minimum(high, most)  # at odds with them: then all that either allows
        low, high = (
            np.where(empty, np.minimum(low, least), np.maximum(low, least)),
            np.where(empty, np.maximum(high, most), np.minimum(high, most)),
        )
        knots, mid, half = knots[seen], (low[seen] + high[seen]) / 2, (high[seen] - low[seen]) / 2
        wide = np.flatnonzero(np.diff(knots) > 1.5 * KNOT_US)
        between = (knots[wide] + knots[wide + 1]) / 2
        grown = np.maximum(half[wide], half[wide + 1]) + DRIFT_PPM * 1e-3 * (knots[wide + 1] - knots[wide]) / 2
        return (
            np.insert(knots, wide + 1, between),
            np.insert(mid, wide + 1, (mid[wide] + mid[wide + 1]) / 2),
            np.insert(half, wide + 1, grown),
        )


@dataclass
class _Region:
    """Corners of the region of feasible lines offset = a + b x, x relative to x0: upper and lower side."""

    x0: float
    b: np.ndarray
    top: np.ndarray
    bottom: np.ndarray
    allowance_ns: float
    keep: np.ndarray  # bool (pings,): False for outliers
    strained: bool

    def range_at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest offset that a feasible line has at each x, allowance included."""
        turned = np.multiply.outer(self.b, x - self.x0)
        return (
            (self.bottom[:, None] + turned).min(0) - self.allowance_ns,
            (self.top[:, None] + turned).max(0) + self.allowance_ns,
        )


def _region(x: np.ndarray, low: np.ndarray, high: np.ndarray, for_low=..., for_high=...) -> _Region:
    """All lines with low - e <= line <= high + e at every x (float64, us and ns), e being the stated allowance.
    for_low, for_high (bool): the points at which their hulls can turn."""
    allowance = STEADY_PPM * 1e-3 * (x[-1] - x[0]) / 2
    keep = np.ones(len(x), bool)
    x0 = (x[0] + x[-1]) / 2
    b, top, bottom = _corners((x - x0)[for_low], low[for_low], (x - x0)[for_high], high[for_high])
    if (top - bottom).max() + 2 * allowance < 0:
        keep = _consistent(x, low, high)
        b, top, bottom = _corners(x[keep] - x0, low[keep], x[keep] - x0, high[keep])
    slack = (top - bottom).max() + 2 * allowance
    strained = slack < 0
    if strained:
        allowance -= slack  # twice what the best line misses
    b, top, bottom = _feasible(b, top + allowance, bottom - allowance)
    return _Region(x0, b, top, bottom, allowance, keep, bool(strained))


def _corners(x_low, low, x_high, high) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slopes b at which the region can turn (NOMINAL_PPM at both ends), with the highest and lowest intercept there:
    top(b) = min(high - b x), bottom(b) = max(low - b x), both piecewise linear in b."""
    xh, yh = _lower_hull(x_high, high)
    xl, yl = _lower_hull(x_low, -low)
    # not np.diff() and np.unique(): of a few numbers they cost more than all the rest
    slopes_high, slopes_low = (yh[1:] - yh[:-1]) / (xh[1:] - xh[:-1]), (yl[1:] - yl[:-1]) / (xl[1:] - xl[:-1])
    b = np.concatenate([_STEEPEST, slopes_high, -slopes_low])
    b = np.sort(b[np.abs(b) <= NOMINAL_PPM * 1e-3])
    b = b[np.concatenate([_TRUE, b[1:] != b[:-1]])]
    i, j = np.searchsorted(slopes_high, b), np.searchsorted(slopes_low, -b)
    return b, yh[i] - b * xh[i], -yl[j] - b * xl[j]


def _feasible(b, top, bottom) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The part of the corners with top >= bottom, cut exactly where they meet. The gap is concave in b: one
    interval."""
    gap = top - bottom
    inside = np.flatnonzero(gap >= 0)
    first, last = inside[0], inside[-1]
    parts = [(b[first : last + 1], top[first : last + 1], bottom[first : last + 1])]
    for outer, inner, front in ((first - 1, first, True), (last + 1, last, False)):
        if 0 <= outer < len(b):
            share = gap[inner] / (gap[inner] - gap[outer])
            cut = [np.array([v[inner] + share * (v[outer] - v[inner])]) for v in (b, top, bottom)]
            parts.insert(0 if front else len(parts), (cut[0], cut[1], cut[2]))
    corners = [np.concatenate([part[i] for part in parts]) for i in range(3)]
    return corners[0], corners[1], corners[2]


def _may_turn(x: np.ndarray, y: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Points (bool) at which the lower hull of whole blocks that follow each other may have a corner: not those above
    the chord of two neighbours in their block. All blocks together: the hulls of thousands of windows then have a few
    points each."""
    hull = np.arange(len(x))
    while len(hull) > 2:
        dx, dy = np.diff(x[hull]), np.diff(y[hull])
        inner = (block[hull][:-2] == block[hull][2:]) & (dx[:-1] * dy[1:] < dx[1:] * dy[:-1])
        if np.count_nonzero(inner) <= len(hull) // 50:  # few: the hull of a window drops the rest
            break
        hull = hull[np.concatenate([[True], ~inner, [True]])]
    out = np.zeros(len(x), bool)
    out[hull] = True
    return out


def _lower_hull(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower convex hull of points sorted by x (Andrew's monotone chain). In plain Python: they are few, and thousands
    of windows have one each."""
    xs: list[float] = []
    ys: list[float] = []
    for to_x, to_y in zip(x.tolist(), y.tolist(), strict=True):
        if xs and xs[-1] == to_x:  # the lowest of those at one place
            if to_y >= ys[-1]:
                continue
            del xs[-1], ys[-1]
        while len(xs) > 1 and (xs[-1] - xs[-2]) * (to_y - ys[-1]) <= (ys[-1] - ys[-2]) * (to_x - xs[-1]):
            del xs[-1], ys[-1]
        xs.append(to_x)
        ys.append(to_y)
    return np.array(xs), np.array(ys)


def _consistent(x, low, high) -> np.ndarray:
    """Which pings agree with the line through the middle of the quickest ones (Theil and Sen's median of slopes)."""
    middle, half = (low + high) / 2, (high - low) / 2
    quick = np.sort(np.argsort(half, kind="stable")[: max(3, min(len(x) // 2, 60))])
    xq, yq = x[quick], middle[quick]
    i, j = np.triu_indices(len(quick), 1)
    apart = xq[j] > xq[i]
    slope = np.median((yq[j] - yq[i])[apart] / (xq[j] - xq[i])[apart]) if apart.any() else 0.0
    slope = float(np.clip(slope, -NOMINAL_PPM * 1e-3, NOMINAL_PPM * 1e-3))
    line = np.median(yq - slope * xq) + slope * x
    keep = np.abs(line - middle) <= half + OUTLIER_NS + 3 * np.median(half)
    return keep if keep.any() else np.ones(len(x), bool)
