"""Rig ticks to host time, with a bound on the error.

A ping leaves the host at t1, is stamped by the rig at tick c, and its answer is read by the host at t4. So whatever the
delays were, host time T(c) of that tick lies between t1 and t4. The rig also reports for how long it held the ping:
its first byte arrived after t1 and the answer left before t4, so only the delays of cable and operating system remain
unknown. In a window of WINDOW_S the map is a line up to the drift of the crystal; all lines that pass every interval
[t1, t4] form a convex region, bounded by the lower hull of the points (c, t4) and the upper hull of (c, t1). The
estimate is the middle of what that region allows at a tick, the bound is half of its width: a proof, not a statistic,
as long as the delays are not negative and the rate is as steady as stated.
(Two-sided envelope; the hull formulation is that of Moon, Skelly and Towsley, "Estimation and removal of clock skew
from network delay measurements", INFOCOM 1999, for one direction.)

Allowances, all part of the bound: inside a window the rate stays within STEADY_PPM of a constant; over longer times
without pings it changes by no more than DRIFT_PPM; it is never further than NOMINAL_PPM from nominal; ticks are floored
to whole microseconds. A window in which no line passes is not hidden: pings that contradict all others are dropped and
counted (`outliers`), and if it still has no line its allowance grows until it has one (`strained`)."""

from dataclasses import dataclass

import numpy as np

from ssdrig.meter import fits

WINDOW_S = 60
STEADY_PPM = 0.2
DRIFT_PPM = 2.0
NOMINAL_PPM = 1000.0
KNOT_US = 1_000_000
TICK_NS = 1000  # a tick stands for any time within its microsecond
BEYOND_US = 3600 * KNOT_US  # how far the map reaches outside the pings
ROUGHLY_US = 60 * 1_000_000
# a ping is contradicted if the others' line misses it by more than this and 3 typical half round trips
OUTLIER_NS = 100_000
_STEEPEST, _TRUE = np.array([-NOMINAL_PPM * 1e-3, NOMINAL_PPM * 1e-3]), np.ones(1, bool)


def late_ns(hello: dict | None) -> int:
    """By how much a board with the rails of this hello may stamp a conversion behind its end: a stamp waits for the
    interrupt of each other rail (host/docs/decisions/stamp-by-interrupt.md)."""
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
        """How much faster than nominal the rig's clock runs, from the first ping to the last."""
        inner = slice(1, -1)
        x, y = self.tick_us[inner], self.offset_ns[inner]
        return -1e3 * float(y[-1] - y[0]) / float(x[-1] - x[0]) if len(x) > 1 else 0.0


def fit(t1_ns, tick_us, t4_ns, held_us=None) -> ClockMap:
    """The map of one boot from its pings, int64 arrays of equal length >= 1: ping sent, rig's stamp, answer read, and
    for how long the rig held it, half of it before its stamp (rounded down) and half behind (None: not known, 0).

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
    # both ends of the holding are told as of the stamp between them: the offset may change meanwhile by NOMINAL_PPM at
    # most
    low = (t1_ns[sane][order] - base_ns - (x - before_us) * 1000).astype(float) - before_us * NOMINAL_PPM * 1e-3
    low -= TICK_NS  # the event may lie a tick after its stamp
    high = (t4_ns[sane][order] - base_ns - (x + after_us) * 1000).astype(float) + after_us * NOMINAL_PPM * 1e-3
    x = x.astype(float)
    knots = np.arange(0.0, x[-1] + KNOT_US, KNOT_US)
    knots[-1] = max(x[-1], 1.0)
    block = np.floor(x / (WINDOW_S * 0.5e6))  # windows are made of whole ones
    for_high, for_low = _may_turn(x, high, block), _may_turn(x, -low, block)
    estimate = _Envelope(len(knots))
    dropped, strained = np.zeros(len(x), bool), 0
    length, hop = WINDOW_S * 1e6, WINDOW_S * 0.5e6
    starts = np.arange(0.0, max(x[-1] - length, 0.0) + hop, hop)
    first = last = None
    for n, start in enumerate(starts):
        rows = slice(*np.searchsorted(x, (start, start + length), side="left"))
        if n == len(starts) - 1:
            rows = slice(rows.start, len(x))
        if rows.stop == rows.start:
            continue
        region = _region(x[rows], low[rows], high[rows], for_low[rows], for_high[rows])
        dropped[rows] |= ~region.keep
        strained += region.strained
        span = slice(*np.searchsorted(knots, (x[rows][0] - KNOT_US, x[rows][-1] + KNOT_US)))
        estimate.add(span, *region.range_at(knots[span]))
        last = region
        first = region if first is None else first
    knots, mid, half = estimate.result(knots)
    assert first and last
    ends = []
    for region, knot, at in ((first, 0, knots[0] - BEYOND_US), (last, -1, knots[-1] + BEYOND_US)):
        lo, hi = region.range_at(np.array([at]))
        ends.append((at, (lo[0] + hi[0]) / 2, (hi[0] - lo[0]) / 2 + half[knot] + DRIFT_PPM * 1e-3 * BEYOND_US))
    knots, mid, half = (np.concatenate([[ends[0][i]], a, [ends[1][i]]]) for i, a in enumerate((knots, mid, half)))
    outliers = int(np.count_nonzero(dropped) + np.count_nonzero(~sane))
    return ClockMap(base_us, base_ns, knots, mid + TICK_NS / 2, half + TICK_NS / 2, len(sane), outliers, strained)


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

    def result(self, knots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Knots that a window covers, middle and half width there; between knots far apart one more, with DRIFT_PPM."""
        at_odds = self.low > self.high  # windows that contradict each other: then all that any of them allows
        low, high = np.where(at_odds, self.lowest, self.low), np.where(at_odds, self.highest, self.high)
        seen = np.isfinite(low)
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
    the chord of two neighbours in their block. Of all blocks at once: the hulls of thousands of windows then have a few
    points each."""
    kept = np.arange(len(x))
    while len(kept) > 2:
        dx, dy = np.diff(x[kept]), np.diff(y[kept])
        inner = (block[kept][:-2] == block[kept][2:]) & (dx[:-1] * dy[1:] < dx[1:] * dy[:-1])
        if np.count_nonzero(inner) <= len(kept) // 50:  # few: the hull of a window drops the rest
            break
        kept = kept[np.concatenate([[True], ~inner, [True]])]
    out = np.zeros(len(x), bool)
    out[kept] = True
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
