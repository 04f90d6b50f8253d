"""Where in a drive's work a cut falls: from a seed to the plan of one cut, and where it came to lie.

A cut cannot follow a command: from the host's order to the edge there are milliseconds of cable and system. So the cut
has its time, on the board's clock, and the command is moved to it: the writer submits it this long before or after.
What that came to is computed afterwards, from the history and the time that the board reports, with the bound of the
clock.

Times: ns of CLOCK_MONOTONIC."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ssdrig.base.deferred import Deferred
from ssdrig.plan.kinds.cut_aims import AGAIN, SIGNED, Aim
from ssdrig.powerloss.kinds import FLUSH, FUA, NEVER, TRIM, WRITE

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

GOLDEN = (5**0.5 - 1) / 2  # the k-th multiple of it, modulo 1, falls into the widest gap of those before
MOVED = {"flush": (FLUSH, 0), "fua": (WRITE, FUA), "trim": (TRIM, 0)}
# of a burst, at 1.1 ms each: a few program operations of TLC are shorter, and over before they have been seen
SIGNATURE_SAMPLES = 8
# the cut comes at one of this many samples that end such a row, in whichever bursts: as likely at any moment of them
SIGNATURE_NTH = (1, 12)
SIGNATURE_US = (1, 1000)  # and anywhere between two samples
SILENCE_NS = 1_000_000_000  # of the writer, before bursts are the drive's own
SDS = 4.0  # a threshold above the mean
BYTES_SLACK = 0.25  # of the aimed bytes; closer to the plan counts as near
NEAR_MS = 0.5  # by which a command may be submitted late on a busy host, and still is one of the aim
# of idle: this many parts are searched for levels; a level is in such a share of them; a part is at one whose standard
# deviation is less of its mean
LEVEL_PARTS, LEVEL_SHARE, STEADY = 100, 0.05, 0.05
LEAST_A = 0.001  # of a sleeping drive's current: smaller ones are mostly the sensor's own noise


class Thresholds(NamedTuple):
    """Currents, A, of a rail: mean and standard deviation outside bursts, idle and under load; above quiet_A an
    idle drive works on its own, above burst_A one under load does more than serve it. `burst_share`: how much of the
    load's samples were above burst_A."""

    idle_A: float
    idle_sd_A: float
    quiet_A: float
    load_A: float
    load_sd_A: float
    burst_A: float
    burst_share: float


class Plan(NamedTuple):
    """One cut. `cut_ns`: when it is to fire, None where another condition fires it: `unflushed_bytes` (as soon as this
    many are acknowledged and not flushed), or the board, by `above_A`, `nth`, `after_us` and `crosses` (wire.py,
    "samples"), not armed before `arm_ns`. The writer submits one command of `kind` and `flags` at `submit_ns`, or
    nothing if kind is 0, and nothing for `silence_ns` after that. `delta_us`: from the submission to the cut, as
    planned. `second_us`: a second cut this long after power has returned."""

    aim: str
    cut_ns: int | None
    kind: int = 0
    flags: int = 0
    submit_ns: int | None = None
    silence_ns: int = 0
    delta_us: float | None = None
    unflushed_bytes: int | None = None
    above_A: float | None = None
    nth: int = 1
    after_us: tuple[int, int] | None = None
    arm_ns: int | None = None
    crosses: bool = False
    second_us: int | None = None


class Actual(NamedTuple):
    """From the submission of a command to the cut, and from its acknowledgement (None: it never came), us; negative
    after the cut. True to bound_us."""

    delta_us: float
    ack_us: float | None
    bound_us: float


def swept(aim: Aim, seed: int, number: int) -> float:
    """The value of the aim's range for its number-th cut: whatever part of a range was swept, it was swept evenly."""
    assert aim.low is not None and aim.high is not None
    begin = np.random.default_rng([seed, 1]).random()
    return aim.low + (aim.high - aim.low) * ((begin + number * GOLDEN) % 1.0)


def plan(aim: Aim, seed: int, number: int, begin_ns: int, end_ns: int, thresholds: Thresholds | None = None) -> Plan:
    """Plan of the aim's number-th cut. It falls between begin_ns and end_ns, or the silence before it begins there.
    Same arguments, same plan.

    Raises ValueError for an aim at a burst without thresholds."""
    share = np.random.default_rng([seed, number, 2]).random()
    cut_ns = begin_ns + round(share * (end_ns - begin_ns))
    if aim.name in SIGNED:
        if thresholds is None:
            raise ValueError(f"the aim {aim.name} needs thresholds, learnt from idle and from load")
        low, high = SIGNATURE_NTH
        nth = low + int(np.random.default_rng([seed, number, 3]).integers(high - low + 1))
        made = Plan(aim.name, None, above_A=thresholds.burst_A, nth=nth, after_us=SIGNATURE_US, arm_ns=cut_ns)
        if aim.name == "burst":  # it may be armed in the midst of one, so it waits for the next
            return made._replace(crosses=True)
        arm_ns = cut_ns + SILENCE_NS
        return made._replace(above_A=thresholds.quiet_A, arm_ns=arm_ns, submit_ns=cut_ns, silence_ns=NEVER)
    if aim.name == "random":
        return Plan("random", cut_ns)
    if aim.name == AGAIN:
        return Plan(AGAIN, cut_ns, submit_ns=0, silence_ns=NEVER)
    value = swept(aim, seed, number)
    if aim.name == "bytes":
        return Plan("bytes", None, unflushed_bytes=round(value * (1 << 20)), arm_ns=begin_ns)
    if aim.name == "recovery":
        return Plan("recovery", cut_ns, second_us=round(value * 1000))
    before_ns = round(value * 1e6)
    if aim.name == "age":
        return Plan("age", cut_ns + before_ns, 0, 0, cut_ns, NEVER, value * 1000)
    kind, flags = MOVED[aim.name]
    return Plan(aim.name, cut_ns, kind, flags, cut_ns - before_ns, 0, value * 1000)


def when(made: Plan, board_us, lsb_A: float, rail: int, seed: int) -> dict:
    """`when` of a cut (wire.py). board_us(host ns) -> board time; lsb_A: of the rail's current."""
    if made.above_A is not None:
        assert made.after_us is not None
        level = {"samples": SIGNATURE_SAMPLES, "above_raw": round(made.above_A / lsb_A), "rail": rail}
        level |= {"nth": made.nth} | ({"crosses": True} if made.crosses else {})
        return {**level, "after_us": list(made.after_us), "seed": seed & 0x7FFFFFFF}
    return {"now": True} if made.cut_ns is None else {"t_us": board_us(made.cut_ns)}


def actual(
    rows: "np.ndarray", kind: int, flags: int, fired_ns: int, bound_ns: float, on_ns: int = NEVER
) -> Actual | None:
    """Result for the command of that kind (and FUA) submitted nearest to the cut; None without one. rows:
    history.ROW. fired_ns: the edge, known to bound_ns; answers after on_ns, the return of power, do not belong to that
    session."""
    mine = rows[(rows["kind"] == kind) & (rows["flags"] & flags == flags)]
    if not len(mine):
        return None
    row = mine[np.abs(mine["submit_ns"] - fired_ns).argmin()]
    acked = row["status"] == 0 and row["done_ns"] < on_ns
    done_us = (fired_ns - int(row["done_ns"])) / 1000 if acked else None
    return Actual((fired_ns - int(row["submit_ns"])) / 1000, done_us, bound_ns / 1000)


def reached(
    made: Plan, rows: "np.ndarray", seq: int | None, fired_ns: int, bound_ns: float, on_ns: int
) -> Actual | None:
    """Result for the command that was moved to the cut, seq in the history (None: it was not submitted). One that was
    to follow the cut finds no drive any more: for it the time counts at which it would have been submitted. Of a plan
    that only falls silent before the cut: of the last command. None where the plan has no distance, or the command was
    to come before the cut and is not there."""
    if made.delta_us is None:
        return None
    if not made.kind:
        last_ns = int(rows["submit_ns"].max(initial=0))
        return Actual((fired_ns - last_ns) / 1000, None, bound_ns / 1000) if last_ns else None
    if seq is not None:
        mine = rows[rows["seq"] == seq]
        return actual(mine, made.kind, made.flags, fired_ns, bound_ns, on_ns)
    if made.submit_ns is None or made.submit_ns < fired_ns - bound_ns:
        return None
    return Actual((fired_ns - made.submit_ns) / 1000, None, bound_ns / 1000)


def achieved(aim: Aim, record: Mapping) -> tuple[float, float] | None:
    """Where a judged cut came to lie: (value, true to), in the unit of the aim's range; None where the aim has no range
    or that is not known."""
    if aim.low is None or aim.name == "recovery":
        return None
    if aim.name == "bytes":
        value, bound, unit = record.get("unflushed_bytes"), 0, 1 << 20
    else:
        value, bound, unit = record.get("delta_us"), record.get("delta_bound_us"), 1000
    if not isinstance(value, int | float) or not isinstance(bound, int | float):
        return None
    return value / unit, bound / unit


def near(record: Mapping) -> bool | None:
    """Whether the bytes that were not flushed at a judged cut are those of its plan, by a quarter; None where that is
    not known, or the cut had another aim."""
    planned, seen = record.get("planned_unflushed_bytes"), record.get("unflushed_bytes")
    if not isinstance(planned, int | float) or not isinstance(seen, int | float):
        return None
    return abs(seen - planned) <= BYTES_SLACK * planned


def hit(aim: Aim, value: float, bound: float) -> bool:
    """Whether a cut with this value is one of the aim: within its range, the bound of the clock allowed for, and of
    bytes the commands in flight when enough of them were acknowledged."""
    assert aim.low is not None and aim.high is not None
    below, above = (0.0, BYTES_SLACK * aim.high) if aim.name == "bytes" else (NEAR_MS, NEAR_MS)
    return aim.low - bound - below <= value <= aim.high + bound + above


def rests(idle_A) -> bool:
    """Whether a drive without a host is at rest: its highest steady level is steady in itself. One that folds its
    cache programs all the time, which is noise above STEADY; a threshold learnt from it is above its bursts."""
    idle, sd = _calm(_highest(idle_A))
    return sd <= max(STEADY * idle, LEAST_A)


def learn(idle_A, load_A) -> Thresholds:
    """From samples of some seconds each, A: mean + 4 standard deviations of the samples outside bursts. Samples further
    from the median than 4 robust standard deviations counts as burst; that holds while bursts are less than half of it.
    An idle drive is awake before it sleeps, which is not a burst either: its highest steady level counts.

    Raises ValueError for invalid samples."""
    idle, idle_sd = _calm(_highest(idle_A))
    load, load_sd = _calm(load_A)
    burst_A = load + SDS * load_sd
    share = float(np.mean(np.asarray(load_A) > burst_A))
    return Thresholds(idle, idle_sd, idle + SDS * idle_sd, load, load_sd, burst_A, share)


def _highest(amps) -> "np.ndarray":
    """The samples of the highest level at which the current stays for LEVEL_SHARE of the time."""
    amps = np.asarray(amps, float)
    if len(amps) < 2 * LEVEL_PARTS:
        return amps
    parts = np.array_split(amps, LEVEL_PARTS)
    middle, sd = (np.array(values) for values in zip(*(_calm(part) for part in parts)))
    steady = sd <= np.maximum(SDS * np.median(sd), STEADY * middle)
    for at in np.flatnonzero(steady)[np.argsort(-middle[steady])]:
        alike = steady & (np.abs(middle - middle[at]) <= SDS * max(sd[at], 1e-9))
        if alike.mean() >= LEVEL_SHARE:
            return np.concatenate([parts[i] for i in np.flatnonzero(alike)])
    return amps


def _calm(amps) -> tuple[float, float]:
    """Mean and standard deviation outside bursts."""
    amps = np.asarray(amps, float)
    if len(amps) < 2 or not np.isfinite(amps).all():
        raise ValueError("samples of the current were expected")
    middle = float(np.median(amps))
    usual = 1.4826 * float(np.median(np.abs(amps - middle)))  # a normal distribution's standard deviation
    calm = amps[np.abs(amps - middle) <= SDS * max(usual, 1e-9)]
    return float(calm.mean()), float(calm.std())
