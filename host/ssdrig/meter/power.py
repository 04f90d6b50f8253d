"""Raw tables of a rig's stream -> volts, amperes, watts and joules on the host's clock, every sample accounted for.

A sample is one conversion; its time is when the conversion was seen to be ready, and it covers the time since the
one before it. Energy is the sum of P x dt in host time. Where conversions were lost, the sample after the gap covers
for one conversion only; the rest of the gap is filled with the mean of both sides and stated apart (`energy_filled_J`).

Chip arithmetic (INA228, TI SLYS021): V = VBUS x vbus_lsb, I = CURRENT x current_lsb, both corrected by the rail's
calibration where its hello carries one, and V, sensed at the shunt, by what the leads to the drive lose: volts and
watts are those at the drive (calibration.py). ENERGY_J = 16 x 3.2 x current_lsb x register, of VBUS x
|CURRENT|, where the chip multiplies with its own idea of time: its oscillator's error is taken out by comparing the
period of its conversions, measured on the host's clock, with the nominal one.
"""

import struct
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ssdrig.meter import calibration, chips, clock, ranges, uncertainty, wire
from ssdrig.meter.closure import Closure, Stretch, brackets, closed
from ssdrig.meter.frames import Boot, Frames, Heads, unpacked

LATE_NS = 10**9  # taken as the longest time under way when a boot has no pings at all
DARK_V = 1.0  # below this a rail has no power: no drive runs on it
SAMPLES_AT_ONCE = 1 << 15  # new memory for the numbers in between of a long run would cost more than to compute them


class Gaps(NamedTuple):
    """Gaps in a rail's samples: see power.Power; and the times of the samples before and after each."""

    at: np.ndarray  # int64: number of the sample after it
    lost: np.ndarray  # int64
    ns: np.ndarray  # int64
    J: np.ndarray  # float64
    from_ns: np.ndarray  # int64
    to_ns: np.ndarray  # int64
    bound_J: np.ndarray = np.empty(0)  # float64: by how much J may be off, where a bypass moved (ranges.py)


@dataclass
class Power:
    """One rail of one run. Arrays have one row per sample unless stated; times are CLOCK_MONOTONIC ns."""

    rail: int
    name: str
    t_ns: np.ndarray  # int64, not falling
    err_ns: np.ndarray  # float32, bound of |error| of t_ns: the clock's, and how late a stamp may be
    t_us: np.ndarray  # int64, board time of its boot
    index: np.ndarray  # int64, conversion number since `go`
    vbus: np.ndarray  # int32 raw
    current: np.ndarray  # int32 raw
    V: np.ndarray  # float64, at the drive, calibrated where the hello carries a calibration
    I: np.ndarray  # float64  # noqa: E741
    P: np.ndarray  # float64, V x I
    energy_J: np.ndarray  # float64, measured and filled energy up to and with this sample
    segment: np.ndarray  # int64 (segments,): first sample of each stretch of one boot, one `go` and one configuration
    segment_boot: np.ndarray  # int64 (segments,): position in boots
    gap: np.ndarray  # int64 (gaps,): the sample after each gap
    gap_lost: np.ndarray  # int64 (gaps,): conversions lost in it
    gap_ns: np.ndarray  # int64 (gaps,): time that no sample covers
    gap_J: np.ndarray  # float64 (gaps,): energy filled in for it
    boots: list[Boot]
    clocks: list[clock.ClockMap | None]  # of each boot
    counts: dict  # frames, frames_lost, repeated, damaged, malformed, resets, unconverted, missed
    # float64, energy_J as the chip's own register counts: at the shunt, without the calibration, power as a magnitude
    raw_J: np.ndarray
    clipped: (
        np.ndarray
    )  # int64 (clipped samples,): samples at the end of the sensor's range, which bound the truth only
    closure: Closure | None = field(default=None)
    in_low: np.ndarray = field(  # bool: whether a sample belongs to the low range; empty where it has one range
        default_factory=lambda: np.empty(0, bool)
    )
    gap_bound_J: np.ndarray = field(default_factory=lambda: np.empty(0))  # (gaps,): see Gaps; empty: 0

    @property
    def facts(self) -> dict:
        """The rail's entry of the last hello that named it."""
        last = last_facts(self.boots, self.rail)
        assert last
        return last

    def uncertainty_W(self, watts: float) -> float:
        """Expanded uncertainty (k = 2, about 95 %) of the mean power of the whole run, from the rail's calibration or,
        where there is none, from the data sheet: see uncertainty.py. NaN without samples or chip data."""
        if not len(self.V):
            return float("nan")
        low = uncertainty.part(len(self.P), self.in_low.sum(), self.P[: len(self.in_low)][self.in_low].sum())
        mean = uncertainty.Mean(self.facts, self.mean_V, watts, len(self.P), float(self.P.std()), low=low)
        return uncertainty.expanded_W([mean])

    def scatter(self, begin_ns: int, end_ns: int) -> tuple[int, float]:
        """How many samples there are with begin_ns <= t_ns < end_ns, and the standard deviation of their power (W)."""
        watts = self.P[slice(*np.searchsorted(self.t_ns, [begin_ns, end_ns]).tolist())]
        return len(watts), float(watts.std()) if len(watts) else 0.0

    def low_in(self, begin_ns: int, end_ns: int) -> tuple[int, float]:
        """How many of those samples belong to the low range, and the sum of their power (W)."""
        within = slice(*np.searchsorted(self.t_ns, [begin_ns, end_ns]).tolist())
        low = self.in_low[within]
        return int(low.sum()), float(self.P[within][: len(low)][low].sum())

    def clipped_in(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """(samples at the end of the sensor's range, all samples) of those with begin_ns <= t_ns < end_ns. If there is
        one of the former, mean, energy and extremes are lower bounds of the truth and have no uncertainty."""
        first, last = np.searchsorted(self.t_ns, [begin_ns, end_ns])
        a, z = np.searchsorted(self.clipped, [first, last])
        return int(z - a), int(last - first)

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """Times of the first and the last sample; None without samples."""
        return (int(self.t_ns[0]), int(self.t_ns[-1])) if len(self.t_ns) else None

    @property
    def mean_V(self) -> float:
        """Mean of the samples at which the rail had power; of all if it never had."""
        lit = self.V >= DARK_V
        return float(self.V[lit].mean() if lit.any() else self.V.mean())

    @property
    def gaps(self) -> Gaps:
        if not len(self.gap):
            return Gaps(self.gap, self.gap_lost, self.gap_ns, self.gap_J, self.gap, self.gap, self.gap_J)
        from_ns = np.where(
            self.gap > 0, self.t_ns[self.gap - 1], 2 * self.t_ns[0] - self.t_ns[min(1, len(self.t_ns) - 1)]
        )
        bound_J = self.gap_bound_J if len(self.gap_bound_J) else np.zeros(len(self.gap))
        return Gaps(self.gap, self.gap_lost, self.gap_ns, self.gap_J, from_ns, self.t_ns[self.gap], bound_J)

    def integral_J(self, t_ns) -> np.ndarray:
        return integral_J(self, t_ns)

    def edges(self, t_ns) -> uncertainty.Edges:
        """What the clock leaves open of the energy up to these host times."""
        at = np.asarray(t_ns, np.int64)
        clock_ns = (
            np.interp(at - self.t_ns[0], self.t_ns - self.t_ns[0], self.err_ns) if len(self.t_ns) else np.zeros(len(at))
        )
        error_ns = clock_ns + (self.facts["conversion_ns"] if len(self.t_ns) else 0)
        around = at[:, None] + np.rint(uncertainty.shifts_ns(error_ns)).astype(np.int64)
        return uncertainty.Edges(at, error_ns, self.integral_J(around.ravel()).reshape(around.shape))

    @property
    def lost(self) -> int:
        """Conversions that should be here and are not: by index, and by time across resets."""
        return int(self.gap_lost.sum())

    @property
    def energy_filled_J(self) -> float:
        return float(self.gap_J.sum())

    @property
    def energy_measured_J(self) -> float:
        return (float(self.energy_J[-1]) if len(self.energy_J) else 0.0) - self.energy_filled_J


def last_facts(boots: list[Boot], rail: int) -> dict | None:
    """A rail's entry of the last hello that named it; None: none did."""
    named = (f for b in reversed(boots) for (r, _), f in reversed(list(b.rails.items())) if r == rail)
    return next(named, None)


class Layout(NamedTuple):
    """How the frames of one rail follow each other; int64, one per frame unless stated."""

    first: np.ndarray  # sample that each frame begins with
    broken: np.ndarray  # (gaps,): frames after a gap known by index, or that begin after a `go`
    lost: np.ndarray  # (gaps,): conversions lost there, by index
    starts: np.ndarray  # (segments,): first frame of each
    missed: int  # conversions that the rig itself reports as missed


def layout(frames: Heads, boots: list[Boot]) -> Layout:
    """The layout of frames that a hello explains."""
    boot, n, index = frames.boot, frames.n, frames.index
    first = np.cumsum(n) - n
    same_boot = np.diff(boot, prepend=-1) == 0
    jump = index - np.concatenate([[0], (index + n)[:-1]])  # conversions missing before each frame
    go = ~same_boot | (jump < 0)  # first frame after a reset or a new `go`
    hello_frame = np.array([b.hello_frame if b.hello_frame is not None else 0 for b in boots], np.int64)
    ours = frames.number > hello_frame[boot] if len(boot) else np.zeros(0, bool)
    jump[go] = index[go]
    jump[~ours] = 0  # an earlier host's stream has no beginning here, and what that one did not read is not our loss
    broken = np.flatnonzero((jump > 0) | go)
    starts = np.flatnonzero(go | (np.diff(frames.config, prepend=-1) != 0))
    missed = int(frames.missed[np.concatenate([go[1:], [True]]) & ours].sum()) if len(n) else 0
    return Layout(first, broken, jump[broken], starts, missed)


def period_ns(facts: dict, spread: int, lasted_ns: int) -> float:
    """Period of a segment's conversions: as measured over `spread` of them if plausible, otherwise nominal."""
    nominal = facts["conversion_ns"]
    if spread >= 100 and 0.9 < (measured_ns := lasted_ns / spread) / nominal < 1.1:
        return measured_ns
    return nominal


def assemble(
    frames: Frames, boots: list[Boot], counts: dict | None = None, rail: int = 0, recent_pings: int | None = None
) -> Power:
    """Put the frames of one rail on the host's clock and into volts, amperes, watts and joules.

    Frames whose boot or configuration no hello explains cannot be converted: they count as lost (`unconverted`
    samples). recent_pings: fit the clocks from the last ones only (in a follower)."""
    known = explained(frames, boots, rail)
    counts = {**(counts or {}), "unconverted": int(frames.n[~known].sum())}
    frames = frames if known.all() else frames.only(known)
    first, broken, lost, starts, counts["missed"] = layout(frames, boots)
    total = len(frames.t_us)
    clocks, t_ns, err_ns = _host_time(frames, boots, first, recent_pings)
    sample_index = np.arange(total)
    sample_index += np.repeat(frames.index - first, frames.n)
    segment, segment_boot, config = first[starts], frames.boot[starts], frames.config[starts]
    ends = np.append(segment[1:], total)
    V, I, P, periods_ns = np.empty(total), np.empty(total), np.empty(total), np.empty(len(segment))  # noqa: E741
    clipped, in_low = [], np.zeros(total if any("low" in f for b in boots for f in b.rails.values()) else 0, bool)
    raw_P = None  # made where a calibration, leads or a negative current part it from P
    for s, (a, z) in enumerate(zip(segment.tolist(), ends.tolist())):
        facts = boots[segment_boot[s]].rails[(rail, int(config[s]))]
        if ranges.is_low(facts):
            in_low[a:z] = True
        clipped.append(a + np.flatnonzero(at_limit(facts, frames.vbus[a:z], frames.current[a:z])))
        convert(facts, frames.vbus[a:z], frames.current[a:z], V[a:z], I[a:z])
        if corrected(facts) or (frames.current[a:z] < 0).any():
            raw_P = np.zeros(total) if raw_P is None else raw_P
        fitted = clocks[segment_boot[s]]
        assert fitted
        first_ns, last_ns = fitted.t_ns(frames.t_us[[a, z - 1]]).tolist()
        periods_ns[s] = period_ns(facts, int(sample_index[z - 1] - sample_index[a]), last_ns - first_ns)
    np.multiply(V, I, out=P)
    gaps_in = first[broken], lost, segment, periods_ns
    fill_W, bound_J = np.full(len(broken), np.nan), np.zeros(len(broken))
    for s in range(1, len(segment)):  # a bypass moves between two of them
        boot, a, k = boots[segment_boot[s]], int(segment[s]), int(np.searchsorted(broken, starts[s]))
        if boot.moves.get(rail) and segment_boot[s - 1] == segment_boot[s] and starts[s] in broken[k : k + 1]:
            facts_of = (boot.rails[(rail, int(config[s - 1]))], boot.rails[(rail, int(config[s]))])
            of_both = (int(frames.t_us[a - 1]), int(frames.t_us[a])), (float(P[a - 1]), float(P[a]))
            fill_W[k], bound_J[k] = moved(boot, rail, facts_of, *of_both, int(lost[k]), float(periods_ns[s]))
    energy_J, gaps = running_J(t_ns, P, *gaps_in, fill_W)
    raw_J = energy_J
    if raw_P is not None:
        for s, (a, z) in enumerate(zip(segment.tolist(), ends.tolist())):
            facts = boots[segment_boot[s]].rails[(rail, int(config[s]))]
            raw_P[a:z] = raw_W(facts, frames.vbus[a:z], frames.current[a:z])
        raw_J = running_J(t_ns, raw_P, *gaps_in)[0]
    name = next((f["name"] for b in reversed(boots) for (r, _), f in b.rails.items() if r == rail), "")
    return Power(
        rail,
        name,
        t_ns,
        err_ns,
        frames.t_us,
        sample_index,
        frames.vbus,
        frames.current,
        V,
        I,
        P,
        energy_J,
        segment,
        segment_boot,
        *gaps,
        boots,
        clocks,
        counts,
        raw_J,
        np.concatenate(clipped) if clipped else np.empty(0, np.int64),
        in_low=in_low,
        gap_bound_J=bound_J[np.isin(first[broken], gaps[0])],
    )


def moved(
    boot: Boot, rail: int, facts: tuple[dict, dict], us: tuple, watts: tuple, lost: int, period_ns: float
) -> tuple[float, float]:
    """Mean power (W) over the lost conversions between two samples, and by how much their energy (J) may be off, where
    the bypass of a low range moved; not-a-number and 0 where it did not. facts, us, watts: of the two."""
    rows = boot.moves.get(rail, [])
    rows = rows[bisect_right(rows, us[0], key=lambda row: row[0]) : bisect_left(rows, us[1], key=lambda row: row[0])]
    high = next((of for (number, _), of in reversed(boot.rails.items()) if number == rail), {})
    if not rows or not high.get("low"):
        return np.nan, 0.0
    v_scale, v_offset, i_scale, i_offset, _ = calibration.scales(high)
    readings = [(vbus * v_scale + v_offset, current * i_scale + i_offset) for _, vbus, current in rows]
    ratio = high["low"]["shunt_uOhm"] / high["shunt_uOhm"]
    of = ranges.moves(readings, ratio, watts, (ranges.is_low(facts[0]), ranges.is_low(facts[1])))
    lost = max(lost, of.number)
    return (of.W + (lost - of.number) * sum(watts) / 2) / lost, of.bound_W * period_ns * 1e-9


def convert(facts: dict, vbus: np.ndarray, current: np.ndarray, V: np.ndarray, I: np.ndarray) -> None:  # noqa: E741
    """Readings (raw integers) -> volts at the drive and amperes (float64, in place)."""
    v_scale, v_offset, i_scale, i_offset, lead_ohm = calibration.scales(facts)
    np.multiply(vbus, v_scale, out=V)
    np.multiply(current, i_scale, out=I)
    if corrected(facts):
        np.add(V, v_offset, out=V)
        np.add(I, i_offset, out=I)
        V -= I * lead_ohm


def corrected(facts: dict) -> bool:
    """Whether anything but the chip's own steps turns a rail's readings into volts and amperes at the drive."""
    return any(facts.get(name) for name in ("calibration", "lead_mOhm", "amplifier_nA", "feed_nA"))


def at_limit(facts: dict, vbus: np.ndarray, current: np.ndarray) -> np.ndarray:
    """Which readings (raw integers) stand at the end of their register (bool)."""
    limits = chips.limits_raw(facts)
    if limits is None:
        return np.zeros(len(vbus), bool)
    return (np.abs(current) >= limits[0]) | (vbus >= limits[1])


def raw_W(facts: dict, vbus: np.ndarray, current: np.ndarray) -> np.ndarray:
    """What the chip itself makes of its readings (raw integers): without a calibration, as a magnitude."""
    lsb_W = facts["vbus_lsb_nV"] * 1e-9 * facts["current_lsb_pA"] * 1e-12
    return np.abs(vbus.astype(np.int64) * current) * lsb_W


def explained(frames: Heads, boots: list[Boot], rail: int) -> np.ndarray:
    """Which frames can be converted (bool, one per frame): a hello names their boot and their configuration."""
    pairs, which = np.unique(frames.boot << 8 | frames.config, return_inverse=True)
    facts = [boots[p >> 8].rails.get((rail, p & 255)) for p in pairs.tolist()]
    return np.array([of is not None and not ranges.is_moving(of) for of in facts], bool)[which]


def arrivals(last_us: list[int], arrival_ns: list[int]) -> list[tuple[int, int, int, int]]:
    """As pings, of a boot that has none: a frame's last sample is at most LATE_NS old when it comes."""
    return [(t4 - LATE_NS, tick, t4, 0) for tick, t4 in zip(last_us, arrival_ns, strict=True)]


def _host_time(frames: Frames, boots: list[Boot], first: np.ndarray, recent_pings: int | None):
    """Clock of each boot, host time (int64 ns, not falling) and its bound (float32 ns) of each sample."""
    total = len(frames.t_us)
    t_ns, err_ns = np.empty(total, np.int64), np.empty(total, np.float32)
    clocks: list[clock.ClockMap | None] = [None] * len(boots)
    edges = np.append(np.flatnonzero(np.diff(frames.boot, prepend=-1)), len(frames.boot))
    for a, z in zip(edges[:-1].tolist(), edges[1:].tolist()):
        b = int(frames.boot[a])
        rows = slice(int(first[a]), int(first[z]) if z < len(first) else total)
        fitted = boots[b].clock(recent_pings)
        if fitted is None:
            last = frames.t_us[np.append(first[a + 1 : z], rows.stop) - 1].tolist()
            fitted = clock.fit(*np.array(arrivals(last, frames.arrival_ns[a:z].tolist()), np.int64).T)
        clocks[b] = fitted
        for at in range(rows.start, rows.stop, SAMPLES_AT_ONCE):
            part = slice(at, min(at + SAMPLES_AT_ONCE, rows.stop))
            t_ns[part] = fitted.t_ns(frames.t_us[part])
            err_ns[part] = fitted.bound_ns(frames.t_us[part]) + clock.late_ns(boots[b].hello)
    if (t_ns[1:] < t_ns[:-1]).any():
        np.maximum.accumulate(t_ns, out=t_ns)
    return clocks, t_ns, err_ns


def running_J(
    t_ns, P, at, lost, segment, period_ns, fill_W=None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Running energy of each sample (J), and the gaps: sample after it, conversions lost, ns, J. `at` are the samples
    that follow a gap known by index (`lost` conversions) or begin after a `go`. fill_W: mean power in each, where
    it is another than the mean of both sides (else not-a-number)."""
    total = len(t_ns)
    if not total:
        return np.empty(0), (np.empty(0, np.int64),) * 3 + (np.empty(0),)
    dt_ns = np.empty(total)  # in place: new memory for millions of samples costs as much as the sum
    dt_ns[0] = int(period_ns[0])
    np.subtract(t_ns[1:], t_ns[:-1], out=dt_ns[1:])
    period = period_ns[np.searchsorted(segment, at, "right") - 1]
    dark_ns = np.maximum(dt_ns[at] - period, 0.0)
    begins = np.isin(at, segment)
    # the chip ran on unseen
    lost = np.where(begins, np.maximum(lost, np.rint(dark_ns / period)), lost).astype(np.int64)
    if len(at) and at[0] == 0:
        dark_ns[0] = lost[0] * period[0]  # nothing before it but the count
    lost[dark_ns < 0.5 * period] = np.where(begins, 0, lost)[dark_ns < 0.5 * period]
    filled_W = (P[np.maximum(at - 1, 0)] + P[at]) / 2  # before the first sample: of that one
    if fill_W is not None:
        filled_W = np.where(np.isnan(fill_W), filled_W, fill_W)
    filled_J = filled_W * dark_ns * 1e-9
    dt_ns[at] = np.minimum(dt_ns[at], period)
    own_J = dt_ns
    own_J *= 1e-9
    own_J *= P
    own_J[at] += filled_J
    gaps = (lost > 0) | (dark_ns > 0.5 * period)
    return np.cumsum(own_J, out=own_J), (at[gaps], lost[gaps], dark_ns[gaps].astype(np.int64), filled_J[gaps])


def integral_J(power: Power, t_ns) -> np.ndarray:
    """Energy from the first sample up to each host time (J, float64), linear within a sample's own time; the difference
    of two is the energy between them, gaps filled."""
    if not len(power.t_ns):
        return np.zeros(np.shape(t_ns))
    start_ns = 2 * power.t_ns[0] - power.t_ns[min(1, len(power.t_ns) - 1)]
    t_ns = np.asarray(t_ns, np.int64)
    upper = np.minimum(np.searchsorted(power.t_ns, t_ns, "right"), len(power.t_ns) - 1)
    around = np.unique([np.maximum(upper - 1, 0), upper])  # of millions of samples those that count here
    base = int(power.t_ns[0])  # float64 holds differences exactly, not the times themselves
    x = np.concatenate([[start_ns - base], power.t_ns[around] - base]).astype(float)
    return np.interp(t_ns - base, x, np.concatenate([[0.0], power.energy_J[around]]))


def mean_power_W(body: bytes, hello: dict | None) -> float | None:
    """Mean V x I of one samples frame's body by the hello's LSBs and calibration; None if the hello does not know its
    configuration."""
    facts, vbus, current = _readings(body, hello)
    if facts is None or not len(vbus):
        return None
    v_scale, v_offset, i_scale, i_offset, lead_ohm = calibration.scales(facts)
    amperes = current * i_scale + i_offset
    return float(np.mean((vbus * v_scale + v_offset - amperes * lead_ohm) * amperes))


def mean_V(body: bytes, hello: dict | None) -> float | None:
    """Mean voltage at the drive of one samples frame's body; None as above."""
    facts, vbus, current = _readings(body, hello)
    if facts is None or not len(vbus):
        return None
    V, I = np.empty(len(vbus)), np.empty(len(vbus))  # noqa: E741
    convert(facts, vbus, current, V, I)
    return float(V.mean())


def clipped_samples(body: bytes, hello: dict | None) -> int:
    """How many samples of one samples frame's body stand at the end of the sensor's range; 0 if the hello does not know
    its configuration."""
    facts, vbus, current = _readings(body, hello)
    return 0 if facts is None else int(np.count_nonzero(at_limit(facts, vbus, current)))


def _readings(body: bytes, hello: dict | None) -> tuple[dict | None, np.ndarray, np.ndarray]:
    """The hello's facts of a samples frame's configuration (None: it has none), its vbus and current (int64, raw)."""
    rail, config, n, _, _, _ = struct.unpack_from(wire.SAMPLES_HEAD, body)
    facts = ranges.by_config((hello or {}).get("rails", [])).get((rail, config))
    word = np.frombuffer(body, "<i8", n, wire.S_FIRST - wire.BODY)
    _, vbus, current = unpacked(word)
    return None if facts is None or ranges.is_moving(facts) else facts, vbus, current


def closure(power: Power, energies: np.ndarray) -> Closure | None:
    """Host against chip of one rail; energies: rows of frames.ENERGY of this rail (see closure.py)."""
    ends, stretches = np.append(power.segment[1:], len(power.t_ns)), []
    for a, z, b in zip(power.segment.tolist(), ends.tolist(), power.segment_boot.tolist()):

        def holds(index: np.ndarray, a: int = a, z: int = z) -> tuple[np.ndarray, np.ndarray]:
            there = a + np.searchsorted(power.index[a:z], index) - 1
            return np.where(there >= a, there, -1), power.index[there]

        stretches.append(Stretch(b, int(power.t_us[a]), int(power.t_us[z - 1]), holds))
    pairs, instead = brackets(stretches, energies, power.rail, power.boots)
    at = np.array([(one.first, one.last) for one in pairs], np.int64).reshape(-1, 2)
    return closed(pairs, instead, power.t_ns[at], power.err_ns[at].astype(float), power.raw_J[at])
