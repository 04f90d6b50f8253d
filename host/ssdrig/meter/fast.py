"""The fast current channel: the highest mean of 100 us, from what the board makes of its samples (firmware/fast.py),
corrected by the rail's sensor. Pure.

The channel's current is  I = a + b C  with C in counts of the ADC. Its parts give b to GAIN_PART; over the
time between two energy frames the sensor's CHARGE gives the true mean current, and the least squares over all of them
give a, and b as well as the load's changes allow; both values of b are combined by their variances. Of a peak

    u2(I) = (u(b) (C - mean C))2 + scatter2 / n + 2 non-linearity2 + burst2
    P = V I, V = mean V of the run - R (I - mean I),  R between 0 and SOURCE_OHM: the rail sags under a peak, unseen

What a Converter has and BURST_PART are rectangular (JCGM 100:2008, 4.3.7): the ADC's integral non-linearity, and what
filter and samples hide of a burst that lasts no longer than the window (hardware/spice/fast.cir); so is FLOOR_COUNTS,
below which the amplifier cannot read, times the share of the seconds that are near it: it is part of the line's u(I).
What the sensor itself is uncertain by at that power (uncertainty.py) comes on top.

A channel with two converters (the RP2350's front end) samples V beside I: then V is that at the peak, known to
volts_part, and nothing is assumed of the supply."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ssdrig.meter import calibration, chips, uncertainty, wire

GAIN = 50  # V/V of the amplifier (hardware/values.csv)
REFERENCE_V, STEPS = 3.3, 4096  # of the ADC


class Converter(NamedTuple):
    """What reads the amplifier. All +-."""

    inl_counts: float
    gain_part: float  # of a count's current before it is compared
    volts_part: float | None = None  # of the voltage beside it


# of the board's own: RP2040-E11; reference 2 %, amplifier 0.2 %, filter
BOARDS = Converter(8.0, 0.023)
# the front end's (hardware/frontend/README.md): reference 0.2 %, amplifier 0.2 %, a shunt of its own 1 %; two resistors
# of 0.1 % before the voltage's
CONVERTERS = {"ADS7042": Converter(1.0, 0.015, 0.006)}
FLOOR_COUNTS = 12.4  # 10 mV: the amplifier's output may not come nearer to ground (SBOS662C, from memory)
BURST_PART = 0.022  # of a peak's height above the mean
SOURCE_OHM = 0.05  # of supply, fuse and switch before the sensor
LEAST_COVERAGE = 0.99  # of a window
APART = 0.05  # of the current: more than this and APART_A between channel and sensor is an error
APART_A = 0.1
MOST_OF_A_FACT = 1 << 30
FACTS = ("rail", "gpio", "nA_per_count", "step_ns", "width", "limit")
COLUMNS = {"boot": "i4", "rail": "i4", "t0_us": "i8", "n": "i4", "sum": "i8", "peak": "i4", "at": "i4"}
COLUMNS |= {"limited": "i4", "volts": "i4"}
ROWS = np.dtype(list(COLUMNS.items()))
_BODY = np.dtype(
    [
        *(("rail", "u1"), ("channel", "u1"), ("number", "<u4"), ("t0_us", "<u8"), ("n", "<u4"), ("sum", "<u4")),
        *(("peak", "<u4"), ("at", "<u4"), ("limited", "u1"), ("lost", "<u4")),
        ("volts", "<u4"),
    ]
)


@dataclass(frozen=True)
class Peaks:
    """The channel's samples of one rail, on the host's clock. Without a `why` they are valid."""

    begin_ns: np.ndarray  # int64 (intervals,), rising; of the first sample
    end_ns: np.ndarray  # of the last
    at_ns: np.ndarray  # where the highest mean ends
    highest_A: np.ndarray  # float64
    limited: np.ndarray  # int64: samples of it at the amplifier's limit
    mean_A: float  # of the run
    u_slope: float  # of b, as a part of it
    u_A: float  # of the line at mean_A
    inl_A: float  # of the ADC, +-
    gain: float  # b over what the channel is made of
    scatter_A: float  # of the seconds about the line, rms
    why: str | None = None
    highest_V: np.ndarray | None = None  # float64: voltage beside highest_A, before the leads; None: not sampled
    volts_part: float = 0.0  # of it, +-


def nA_per_count(shunt_uOhm: int) -> int:
    """Current of one count of the ADC after the amplifier across that shunt."""
    return round(REFERENCE_V / STEPS / GAIN / (shunt_uOhm * 1e-6) * 1e9)


def apart_A(sensor_A: float) -> float:
    """By how much channel and sensor may differ."""
    return APART * abs(sensor_A) + APART_A


def rows_of(data: np.ndarray, start: np.ndarray, length: np.ndarray, boot: np.ndarray) -> np.ndarray:
    """Frames whose payloads begin at data[start] (uint8) -> ROWS; incomplete bodies are left out."""
    whole = length == wire.F_END
    at = start[whole] + wire.BODY
    body = data[at[:, None] + np.arange(_BODY.itemsize)].view(_BODY)[:, 0]
    rows = np.empty(len(at), ROWS)
    rows["boot"] = boot[whole]
    for name in list(COLUMNS)[1:]:
        rows[name] = body[name]
    sense = (rows["n"] > 0) & (rows["at"] >= 0) & (rows["at"] < rows["n"]) & (rows["peak"] >= 0)
    return rows[sense & (rows["t0_us"] >= 0) & (rows["t0_us"] < 1 << 52)]


def facts_of(hello: dict | None) -> dict | None:
    """The channel in a hello; None: no channel, or an invalid one."""
    facts = (hello or {}).get("fast")
    if not isinstance(facts, dict) or any(type(facts.get(name)) is not int for name in FACTS):
        return None
    facts = facts if facts.get("volts") is None else {"nV_per_count": None, **facts}
    wanted = (*FACTS[2:], *(("nV_per_count",) if "nV_per_count" in facts else ()))
    return facts if all(type(facts[name]) is int and 0 < facts[name] < MOST_OF_A_FACT for name in wanted) else None


def converter_of(facts: dict) -> Converter:
    """What reads the channel with these facts_of()."""
    return CONVERTERS.get(facts.get("adc") or "", BOARDS)


def of_rail(rail: int, rows: np.ndarray, energies: np.ndarray, boots: list, clocks: dict) -> Peaks | None:
    """What the channel saw of a rail (ROWS; frames.ENERGY of the rail; frames.Boot; boot -> clock); None: no board of
    this run has the channel on that rail."""
    facts_of_boots = [facts_of(boot.hello) for boot in boots]
    of = [b for b, facts in enumerate(facts_of_boots) if facts and facts["rail"] == rail]
    if not of:
        return None
    facts = facts_of_boots[of[-1]]
    assert facts
    mine = rows[
        (rows["rail"] == rail) & np.isin(rows["boot"], [b for b in of if b in clocks and facts_of_boots[b] == facts])
    ]
    step_us = facts["step_ns"] / 1000
    counts = mine["peak"] / facts["width"]
    x, y = _compared(rail, mine, energies, boots, step_us)
    a, b, fitted, why = _line(x, y, facts)
    begin_us, last = mine["t0_us"], (mine["n"] - 1) * step_us
    to_ns = lambda us: _host_ns(us.astype(np.int64), mine["boot"], clocks)
    return Peaks(
        to_ns(begin_us),
        to_ns(begin_us + last),
        to_ns(begin_us + mine["at"] * step_us),
        a + b * counts,
        mine["limited"].copy(),
        float(y.mean()) if len(y) else math.nan,
        *fitted,
        why,
        mine["volts"] / facts["width"] * facts["nV_per_count"] * 1e-9 if facts.get("volts") is not None else None,
        converter_of(facts).volts_part or 0.0,
    )


def _host_ns(t_us: np.ndarray, boot: np.ndarray, clocks: dict) -> np.ndarray:
    out = np.zeros(len(t_us), np.int64)
    for b in np.unique(boot).tolist():
        out[boot == b] = clocks[b].t_ns(t_us[boot == b])
    return out


def _compared(rail: int, rows, energies, boots, step_us: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean counts of the channel, and mean current of the sensor (A), between each two energy frames of a stretch over
    which both ran all the time."""
    x, y = [np.empty(0)], [np.empty(0)]
    for b in np.unique(rows["boot"]).tolist():
        of, e = rows[rows["boot"] == b], energies[energies["boot"] == b]
        end_us = of["t0_us"] + of["n"] * step_us
        broken = np.concatenate([[0], np.cumsum(np.abs(of["t0_us"][1:] - end_us[:-1]) > step_us)])
        edges_us, lasts_us = of["t0_us"] - step_us, of["n"] * step_us  # an interval's samples stand for that
        before = np.concatenate([[0.0], np.cumsum(of["sum"], dtype=float)])
        for config in np.unique(e["config"]).tolist():
            facts = boots[b].rails.get((rail, config))
            if facts is None or chips.of(facts) is None:
                continue
            conversions, charge = np.diff(e["index"]), np.diff(e["charge"]) % (1 << 40)
            at = np.searchsorted(edges_us, e["t_us"], "right") - 1
            share = (e["t_us"] - edges_us[at]) / lasts_us[at]  # of the interval; after its end the channel was silent
            inside = (at >= 0) & (share <= 1 + step_us / lasts_us[at])
            running = before[at] + of["sum"][at] * np.minimum(share, 1)
            good = (e["config"][1:] == config) & (e["config"][:-1] == config) & (conversions > 1)
            good &= np.diff(e["t_us"]) > 0  # a board may send anything
            good &= inside[1:] & inside[:-1]
            good[good] &= broken[at[1:][good]] == broken[at[:-1][good]]
            counts = np.diff(running)[good] * step_us / np.diff(e["t_us"])[good]
            charge = charge[good] - (charge[good] >> 39 << 40)
            _, _, i_scale, i_offset, _ = calibration.scales(facts)
            x.append(counts)
            y.append(charge / (conversions[good] * facts["conversion_ns"] * 1e-9) * i_scale + i_offset)
    return np.concatenate(x), np.concatenate(y)


Fitted = tuple[float, float, float, float, float]  # Peaks.u_slope and what follows it


def _line(x: np.ndarray, y: np.ndarray, facts: dict) -> tuple[float, float, Fitted, str | None]:
    """a, b, the fit of the line, and why it is invalid."""
    nominal = facts["nA_per_count"] * 1e-9
    of = converter_of(facts)
    inl_A, nan = of.inl_counts * nominal, math.nan
    if not len(x):
        return (
            nan,
            nan,
            (nan, nan, inl_A, nan, nan),
            "channel and sensor did not run together from one energy frame to the next",
        )
    u_nominal, spread = of.gain_part / math.sqrt(3) * nominal, float(x.std())
    b, u_b = nominal, u_nominal
    if spread > 0:
        slope = float(np.mean((x - x.mean()) * (y - y.mean())) / spread**2)
        rest = y - y.mean() - slope * (x - x.mean())
        u_fit = math.hypot(inl_A / math.sqrt(3), float(rest.std()) / math.sqrt(len(x))) / spread
        b = (slope / u_fit**2 + nominal / u_nominal**2) / (u_fit**-2 + u_nominal**-2)
        u_b = (u_fit**-2 + u_nominal**-2) ** -0.5
    a = float(y.mean() - b * x.mean())
    scatter = float(np.sqrt(np.mean((y - a - b * x) ** 2)))
    idle = float(np.mean(y < 2 * FLOOR_COUNTS * nominal))  # of the time: the channel may have read more than there was
    u_A = math.hypot(scatter / math.sqrt(len(x)), idle * FLOOR_COUNTS * nominal / math.sqrt(3))
    fitted = u_b / b, u_A, inl_A, b / nominal, scatter
    most_A = apart_A(float(y.mean()))
    seen_A = nominal * float(x.mean())
    if abs(seen_A - y.mean()) > most_A or scatter > most_A:
        reading = f"it reads {seen_A:.3f} A on average where the sensor reads {y.mean():.3f} A"
        return (
            a,
            b,
            fitted,
            f"{reading}, and the seconds scatter by {scatter:.3f} A: is its amplifier there, on this shunt?",
        )
    return a, b, fitted, None


def highest(peaks: Peaks, begin_ns: int, end_ns: int) -> tuple[int | None, str | None]:
    """Which interval (its position) has the highest mean of 100 us that ends between two host times; None, and why."""
    if peaks.why:
        return None, peaks.why
    inside = (peaks.at_ns >= begin_ns) & (peaks.at_ns < end_ns)
    if not inside.any():
        return None, "the fast channel saw nothing of it"
    best = int(np.flatnonzero(inside)[np.argmax(peaks.highest_A[inside])])
    lies_ns = np.clip(peaks.end_ns, begin_ns, end_ns) - np.clip(peaks.begin_ns, begin_ns, end_ns)
    across = ~inside & (peaks.highest_A > peaks.highest_A[best])  # it may have a higher one in the window, too
    seen, hidden = (float(lies_ns[of].sum()) / (end_ns - begin_ns) for of in (slice(None), across))
    if seen < LEAST_COVERAGE:
        return None, f"the fast channel saw {100 * seen:.1f} % of the window"
    if hidden > 1 - LEAST_COVERAGE:
        return None, f"there is a higher one just outside, within {100 * hidden:.1f} % of the window's length"
    if peaks.limited[best]:
        return None, f"the amplifier of the fast channel was at its end, {peaks.highest_A[best]:.2f} A"
    return best, None


def off_by_edges_A(peaks: Peaks, best: int, begin_ns: int, end_ns: int, error_ns: float) -> float:
    """How far the highest mean between two host times, of the interval `best`, is off if those that end within
    `error_ns` of an edge belong to its other side."""
    inner, outer = (
        peaks.highest_A[(peaks.at_ns >= begin_ns + off_ns) & (peaks.at_ns < end_ns - off_ns)]
        for off_ns in (error_ns, -error_ns)
    )
    highest_A = float(peaks.highest_A[best])
    return max(float(outer.max()) - highest_A, highest_A - float(inner.max()) if len(inner) else 0.0)


def power_W(peaks: Peaks, i: int, rail: dict, mean_V: float) -> tuple[float, float]:
    """Power of the highest mean of an interval at the drive, and its expanded uncertainty (k = 2), in W."""
    amps = float(peaks.highest_A[i])
    above_A = max(0.0, amps - peaks.mean_A)
    half_V = SOURCE_OHM / 2 * above_A
    lead_ohm, _ = uncertainty.lead(rail)
    volts = mean_V - lead_ohm * above_A - half_V
    volts_off = half_V
    if peaks.highest_V is not None:
        volts = float(peaks.highest_V[i]) - lead_ohm * amps
        volts_off = peaks.volts_part * volts
    u_A = math.hypot(
        peaks.u_slope * (amps - peaks.mean_A),
        peaks.u_A,
        peaks.inl_A * math.sqrt(2 / 3),  # at the peak and at the mean
        BURST_PART * above_A / math.sqrt(3),
    )
    own_W = uncertainty.expanded_W([uncertainty.Mean(rail, volts, volts * amps)]) / calibration.EXPANDED
    u_W = math.hypot(volts * u_A, amps * volts_off / math.sqrt(3), own_W)
    return volts * amps, calibration.EXPANDED * u_W
